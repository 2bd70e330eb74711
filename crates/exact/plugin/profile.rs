//! Counts the instructions of each function and call stack that an emulator of the exact arena executes. Built as a
//! shared object that the emulator loads as a plugin.
//!
//! Counts are exact. Translated code adds inline to the count of a function. Each addition is the number of
//! instructions that are certain to be executed before the block can be left. An instruction that accesses memory may
//! fault, or may be executed again alone because it accesses a device. So it is counted only afterwards: by the
//! addition at the next instruction, or at the end of a block by the callback of the access. The plugin only counts: it
//! does not change the guest's time, which is its number of instructions.
//!
//! Arguments: `functions=PATH` is the file with the addresses of functions. `programs=PATH`, if given,
//! is the file with the code of programs. `out=PATH` is the file to which the counts
//! are written when the guest executes the instruction that marks the end. Formats: `src/profiler.rs`.
//! `annotate=NUMBER+…`, if given, are functions whose instructions are counted one by one.
//! `references=PATH`, if given, is the file to which references to pages are recorded, and `most=BYTES` its largest
//! size. Format: `profile/src/references.rs`. `places=NUMBER+…`, if given, are the places of [`format::PLACES`] in the
//! kernel's structures. `ram=NUMBER+…`, if given, are the kernel's `page_offset_base` and `phys_base`, and inode and size
//! of each file with the guest's memory.

#![no_std]

extern crate alloc;

mod annotated;
mod api;
mod arguments;
mod callbacks;
mod damon;
#[path = "../../profile/src/references/form.rs"]
mod form;
mod format;
mod heap;
mod insn;
mod mappings;
mod pages;
mod programs;
mod ram;
mod recorder;
mod sleeps;
mod span;
mod stacks;
mod tables;

use alloc::ffi::CString;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char, c_int};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use annotated::Annotated;
use arguments::{argument, decimal, numbers, read_functions};
use api::{Api, Handle, Id, Info};
use callbacks::{
    accessed, begun, called, changing, counted_ahead, dying, entered, entering, fetched, forked, loaded, marked, monitoring, referred, referred_by_kernel, referred_in_role, removing, resumed, returned, stored, switched, switching, translated, waking,
};
use format::{
    AT_STACK, AT_STATE, COPY, DIES, EXECUTE, FAULT, FORK, IDLE, INTERRUPT, KERNEL, MAGIC, MONITORS, NAMED,
    REMOVES, ROLES, STARTS, SWITCH, UNNAMED, USER, WAKE, WAKES,
};
use insn::Kind;
use mappings::Places;
use pages::Pages;
use programs::{FileOrigin, Programs};
use ram::Ram;
use recorder::Moment;
use span::{Nearest, Span};
use stacks::Stacks;
use tables::BEGINS;

/// Version of the plugin interface that this plugin asks for; set when the object is loaded.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// Sets [`qemu_plugin_version`] before the emulator reads it.
extern "C" fn choose() {
    if api::has_boards() {
        qemu_plugin_version.store(2, Ordering::Relaxed);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE: extern "C" fn() = choose;

/// Size of a page.
const PAGE: u64 = 1 << PAGE_SHIFT;
/// Base-2 logarithm of the size of a page.
const PAGE_SHIFT: u32 = 12;
/// Maximum size of an instruction in bytes.
const LONGEST: u64 = 15;

/// Flag in the data of a callback: the instruction reads memory and then writes it.
const UPDATES: u64 = 1 << 63;
/// Flag in the data of a callback: after the callback, an inline addition at this instruction counts the instruction
/// before it.
const FOLLOWED: u64 = 1 << 62;

/// Bytes of the instruction with which the idle loop jumps back, over 500 `nop`s and itself. Source:
/// `guest/src/idle.rs`.
const IDLE_JUMP: [u8; 5] = [0xe9, 0x07, 0xfe, 0xff, 0xff];
/// Number of `nop`s in a row by which the idle loop is recognised. No other code has so many.
const IDLE_NOPS: usize = 8;
const NOP: u8 = 0x90;

/// The most recent instruction that was counted before its execution. It was the last of its block.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ahead {
    function: u32,
    /// Data of the callback: the function, and the low bits of the instruction's address. Together they identify the
    /// instruction.
    insn: u64,
    /// Count of the function directly after this instruction was counted.
    count: u64,
    /// Value of [`Profile::later`] when this instruction was counted.
    later: u64,
}

const NOTHING: Ahead = Ahead {
    function: 0,
    insn: u64::MAX,
    count: 0,
    later: 0,
};

/// How much of a switch of tasks was seen. The kernel saves one stack pointer and then loads another.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Switching {
    Nothing,
    Begun,
    Saved,
}

/// An instruction of the block that is being translated.
struct Part {
    handle: Handle,
    address: u64,
    size: usize,
    function: u32,
    flags: u32,
    kind: Kind,
    is_nop: bool,
    is_idle_jump: bool,
}

struct Profile {
    api: Api,
    spans: Vec<Span>,
    programs: Programs,
    functions: usize,
    /// Addresses of instructions whose executions are counted one by one, in ascending order.
    watched: Vec<u64>,
    /// Instructions of functions that are counted one by one.
    annotated: Annotated,
    stacks: Stacks,
    /// References to pages; `None` if they are not recorded.
    pages: Option<Pages>,
    /// [`SWITCH`] and [`WAKES`] of each function, and its [`ROLES`] if references are recorded.
    roles: Vec<u32>,
    /// Distance from the state of a task to its saved stack pointer; `None` if it is not known.
    state_to_stack: Option<u64>,
    /// Places in the kernel's structures; `None` if they are not known.
    places: Option<Places>,
    /// The argument `ram`; empty if it is not given.
    ram: Vec<u64>,
    /// How much of a switch of tasks was seen.
    switching: Switching,
    /// Address at which the stack pointer of the running task is saved; 0 if it is not known.
    saved: u64,
    ahead: Ahead,
    /// True if the instruction in `ahead` has been executed.
    is_done: bool,
    /// Serial number of the last call, return or indirect jump that was counted.
    begun: u64,
    out: CString,
    /// Counts when the guest marked the start of the scenario; empty before.
    base: Vec<u64>,
    /// Page number of the idle loop; 0 until the loop is seen.
    idle_page: u64,
    parts: Vec<Part>,
    /// Bytes of the block that is being translated.
    code: Vec<u8>,
    is_written: bool,
}

static PROFILE: AtomicPtr<Profile> = AtomicPtr::new(null_mut());

/// The only profile. All callbacks come from the thread of the only CPU, one at a time.
fn profile() -> &'static mut Profile {
    // SAFETY: set once in `qemu_plugin_install` before any callback, and never freed. Callbacks do not nest.
    unsafe { &mut *PROFILE.load(Ordering::Relaxed) }
}

/// Packs the data of a callback: the function in the low 24 bits, and `other` above them. `other` is the called
/// function or the low bits of an address.
const fn pack(function: u32, other: u64) -> u64 {
    function as u64 | other << 24
}

const fn function_of(data: u64) -> u32 {
    (data & 0xff_ffff) as u32
}

impl Profile {
    /// Function of an address, and the function's flags if the address is its start. `place` is the file that the
    /// current block belongs to, if it belongs to a program.
    fn span(&self, address: u64, place: Option<FileOrigin>) -> (u32, u32) {
        let found = Span::find(&self.spans, address).unwrap_or((UNNAMED, 0));
        match place.filter(|_| found.0 == USER) {
            Some(place) => self.programs.function(place, address).unwrap_or(found),
            None => found,
        }
    }

    /// Reads the instructions of a block. Returns the place of the block in the files of programs, if it is known.
    fn parse(&mut self, block: Handle) -> Option<FileOrigin> {
        self.parts.clear();
        self.code.clear();
        let mut nearest = Nearest::default();
        for at in 0..self.api.length(block) {
            let handle = self.api.insn(block, at);
            let address = self.api.address(handle);
            let (bytes, size) = self.api.bytes(handle);
            self.code.extend(&bytes[..size]);
            let found = nearest.find(&self.spans, address);
            let (function, flags) = found.unwrap_or((UNNAMED, 0));
            self.parts.push(Part {
                handle,
                address,
                size,
                function,
                flags,
                kind: insn::kind(&bytes, size, address, address >> 63 != 0),
                is_nop: size == 1 && bytes[0] == NOP,
                is_idle_jump: bytes.starts_with(&IDLE_JUMP),
            });
        }
        let first = self.parts.first()?.address;
        let page = first >> PAGE_SHIFT;
        let nops = self.parts.iter().take_while(|part| part.is_nop).count();
        let jumps = self.parts.get(nops).is_some_and(|part| part.is_idle_jump);
        let only = nops + usize::from(jumps) == self.parts.len();
        if first >> 63 == 0 && only && (jumps || nops >= IDLE_NOPS || page == self.idle_page) {
            self.idle_page = page;
            for part in &mut self.parts {
                part.function = IDLE;
            }
        } else if self.parts[0].function == USER && !self.programs.is_empty() {
            let place = self.programs.place(first, &self.code)?;
            for part in &mut self.parts {
                if let Some(found) = self.programs.function(place, part.address) {
                    (part.function, part.flags) = found;
                }
            }
            return Some(place);
        }
        None
    }

    fn translate(&mut self, block: Handle) {
        let place = self.parse(block);
        let (parts, api) = (&self.parts, &self.api);
        let count = parts.len();
        // QEMU 7.2 also reports an instruction that would cross the end of the page, although the block ends before
        // this instruction. Then the instruction before it is the last of the block, and additions at the reported
        // instruction never happen.
        let near = |part: &Part| part.address & (PAGE - 1) > PAGE - LONGEST;
        let is_doubtful = count > 1 && parts.last().is_some_and(near);
        let may_be_last = |at: usize| at + 1 == count || is_doubtful && at + 2 == count;
        if self.pages.is_some() {
            self.watch(if is_doubtful { count - 1 } else { count });
        }
        let total = self.pages.is_some().then(|| self.total());
        let add = |part: &Part, function: u32, amount: u64| {
            api.add(part.handle, 2 * function as usize, amount);
            if let Some(total) = total {
                api.add(part.handle, total, amount);
            }
        };
        // `open` is the number of instructions that are not added yet. They will be added at the instruction `leader`.
        let (mut leader, mut open) = (0, 0);
        let close = |leader: usize, open: u64| {
            if open > 0 {
                add(&parts[leader], parts[leader].function, open);
            }
        };
        for (at, part) in parts.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &parts[before]);
            let accesses = |part: &Part| matches!(part.kind, Kind::Memory | Kind::Update | Kind::Repeat);
            let after_memory = before.is_some_and(accesses) && !may_be_last(at - 1);
            let function = part.function;
            if part.flags & (FAULT | INTERRUPT) != 0 {
                let data = pack(function, u64::from(part.flags));
                api.before(part.handle, entered, data);
            }
            if part.flags & SWITCH != 0 {
                api.before(part.handle, switched, pack(function, 0));
            }
            if part.flags & FORK != 0 {
                api.before(part.handle, forked, pack(function, 0));
            }
            if part.flags & DIES != 0 {
                api.before(part.handle, dying, 0);
            }
            if part.flags & MONITORS != 0 && total.is_some() {
                api.before(part.handle, monitoring, 0);
            }
            if part.flags & REMOVES != 0 && total.is_some() {
                api.before(part.handle, removing, u64::from(part.flags));
            }
            let roles = self.roles.get(part.function as usize).copied().unwrap_or(0);
            if part.address & KERNEL != 0 && accesses(part) {
                if roles & SWITCH != 0 {
                    api.after(part.handle, switching, 0);
                }
                if roles & WAKES != 0 {
                    api.after(part.handle, waking, 0);
                }
            }
            if part.flags & (COPY | WAKE | EXECUTE) != 0 && total.is_some() {
                api.before(part.handle, changing, pack(function, u64::from(part.flags)));
            }
            if part.flags & BEGINS != 0 && total.is_some() {
                api.before(part.handle, begun, u64::from(part.flags));
            }
            if let Kind::Mark(which) = part.kind {
                api.before(part.handle, marked, u64::from(which));
            }
            if part.flags & STARTS != 0 {
                api.add(part.handle, 2 * function as usize + 1, 1);
            }
            if let Ok(watched) = self.watched.binary_search(&part.address) {
                api.add(part.handle, self.first_watched() + watched, 1);
            }
            let is_break = after_memory
                || at + 1 == count && is_doubtful
                || part.flags != 0
                || matches!(part.kind, Kind::Mark(_))
                || before.is_some_and(|before| before.function != function);
            if at > 0 && is_break {
                close(leader, open);
                (leader, open) = (at, 0);
                if after_memory && let Some(before) = before {
                    if before.function == function {
                        open = 1;
                    } else {
                        add(part, before.function, 1);
                    }
                }
            }
            if at == 0 && accesses(part) && !may_be_last(at) {
                api.add(part.handle, self.begins(), 1);
            }
            match part.kind {
                Kind::Memory | Kind::Update | Kind::Repeat if may_be_last(at) => {
                    let mut data = pack(function, part.address & 0x3f_ffff_ffff);
                    if part.kind == Kind::Update {
                        data |= UPDATES;
                    }
                    if leader == at && open > 0 {
                        data |= FOLLOWED;
                    }
                    api.before(part.handle, counted_ahead, data);
                    // An instruction that accesses a device is executed again, alone, without the callback before it.
                    // In a program, the next instruction may be on a page that is not present.
                    let is_program = part.address < KERNEL;
                    if part.kind != Kind::Repeat && (count == 1 || is_program) {
                        api.after(part.handle, accessed, data);
                    }
                }
                Kind::Memory | Kind::Update | Kind::Repeat => {}
                Kind::Call(target) => {
                    let target = target.map_or(0, |target| self.span(target, place).0);
                    let known = if target >= NAMED { u64::from(target) } else { 0 };
                    let data = pack(function, known) | part.address & KERNEL;
                    let then = if function >= NAMED { called } else { stored };
                    api.add(part.handle, self.serial(), 1);
                    api.after(part.handle, then, data);
                }
                Kind::Jump => {
                    let data = pack(function, 0) | part.address & KERNEL;
                    api.add(part.handle, self.serial(), 1);
                    api.after(part.handle, loaded, data);
                }
                Kind::Return => {
                    let data = pack(function, 0) | part.address & KERNEL;
                    let then = if function >= NAMED { returned } else { loaded };
                    api.add(part.handle, self.serial(), 1);
                    api.after(part.handle, then, data);
                }
                Kind::Syscall => {
                    api.before(part.handle, entering, pack(function, 0));
                    open += 1;
                }
                Kind::TrapReturn => {
                    api.before(part.handle, resumed, pack(function, 0));
                    open += 1;
                }
                Kind::Plain | Kind::Mark(_) => open += 1,
            }
        }
        close(leader, open);
        if self.parts.iter().any(|part| self.annotated.has(part.function)) {
            self.annotate(place, may_be_last);
        }
    }

    /// Counts the instructions of annotated functions in the block that is being translated, one by one. An instruction
    /// that may fault is counted at the next one. `may_be_last` returns true for the place of an instruction that may
    /// have no next one; if it faults, it is counted once more.
    fn annotate(&mut self, place: Option<FileOrigin>, may_be_last: impl Fn(usize) -> bool) {
        let mut offset = 0;
        for (at, part) in self.parts.iter().enumerate() {
            let code = self.code.get(offset..offset + part.size).unwrap_or_default();
            offset += part.size;
            if !self.annotated.has(part.function) {
                continue;
            }
            let address = match place {
                Some(place) => self.programs.address_in_file(place, part.address),
                None => part.address,
            };
            let Some(entry) = self.annotated.index(part.function, address, code) else {
                continue;
            };
            let may_fault = matches!(part.kind, Kind::Memory | Kind::Update | Kind::Repeat);
            let counting = match self.parts.get(at + 1) {
                Some(next) if may_fault && !may_be_last(at) => next.handle,
                _ => part.handle,
            };
            self.api.add(counting, self.first_annotated() + entry, 1);
        }
    }

    /// Index of the number that counts the executions of the first annotated instruction.
    const fn first_annotated(&self) -> usize {
        self.total() + 1
    }

    /// Adds the callbacks that record references to the block that is being translated. `count` is the number of its
    /// instructions that are certain to belong to it.
    fn watch(&self, count: usize) {
        let (parts, api) = (&self.parts, &self.api);
        for part in parts {
            if part.address & KERNEL != 0 {
                let roles = self.roles.get(part.function as usize).copied().unwrap_or(0);
                let roles = roles & ROLES;
                if roles == 0 {
                    api.after(part.handle, referred_by_kernel, 0);
                } else {
                    api.after(part.handle, referred_in_role, u64::from(roles));
                }
            } else {
                api.after(part.handle, referred, part.address >> PAGE_SHIFT);
            }
        }
        // The callback for an access of a program also tells the page of the code that makes it. Code without accesses
        // needs a callback of its own.
        let certain = parts.get(..count).unwrap_or_default();
        for on_page in certain.chunk_by(|a, b| a.address >> PAGE_SHIFT == b.address >> PAGE_SHIFT) {
            let accesses = on_page.iter().any(|part| {
                matches!(
                    part.kind,
                    Kind::Memory | Kind::Update | Kind::Call(_) | Kind::Return | Kind::Jump
                )
            });
            if let Some(first) = on_page.first()
                && first.address & KERNEL == 0
                && first.function != IDLE
                && !accesses
            {
                api.before(first.handle, fetched, first.address >> PAGE_SHIFT);
            }
        }
    }

    /// Index of the number that counts all instructions, if references are recorded.
    const fn total(&self) -> usize {
        2 * self.functions + 2 + self.watched.len()
    }

    /// Index of the number that counts all calls, returns and indirect jumps, each before it is executed.
    const fn serial(&self) -> usize {
        2 * self.functions
    }

    /// Index of the number that counts the executions of blocks whose first instruction accesses memory.
    const fn begins(&self) -> usize {
        2 * self.functions + 1
    }

    /// Index of the number that counts the executions of the first watched instruction.
    const fn first_watched(&self) -> usize {
        2 * self.functions + 2
    }

    /// Returns a number that changes when a later instruction executes but does not change its function's count before
    /// it accesses memory.
    fn later(&mut self) -> u64 {
        let (serial, begins) = (self.serial(), self.begins());
        let values = self.api.values();
        values[serial] + values[begins]
    }

    /// True if an access at address `at` belongs to the most recent call, return or indirect jump. `data` is the data
    /// of the callback.
    ///
    /// QEMU 7.2 forgets to remove the callbacks of an instruction that leaves its block by an indirect jump. Later
    /// accesses by helper functions, such as those of `iret`, of a fault and of `cmpxchg16b`, then call these callbacks
    /// again.
    fn is_own(&mut self, at: u64, data: u64) -> bool {
        let serial = self.serial();
        let begun = self.api.values()[serial];
        let is_new = begun != self.begun && at & KERNEL == data & KERNEL;
        if is_new {
            self.begun = begun;
        }
        is_new
    }

    /// Adds one to the count of a function and returns the new count; 0 if there is no such function.
    fn count(&mut self, function: u32) -> u64 {
        if self.pages.is_some() {
            let total = self.total();
            self.api.values()[total] += 1;
        }
        match self.api.values().get_mut(2 * function as usize) {
            Some(count) => {
                *count += 1;
                *count
            }
            None => 0,
        }
    }

    /// Subtracts the instruction in `ahead` from the count of its function, if it has faulted instead of being
    /// executed.
    fn take_back(&mut self) {
        let Ahead {
            function,
            count,
            later,
            ..
        } = self.ahead;
        if self.ahead != NOTHING
            && !self.is_done
            && self.later() == later
            && let Some(now) = self.api.values().get_mut(2 * function as usize)
            && *now == count
        {
            *now -= 1;
            if self.pages.is_some() {
                let total = self.total();
                self.api.values()[total] -= 1;
            }
        }
    }

    /// References to pages, with the current time and task; `None` if they are not recorded.
    #[inline]
    fn pages(&mut self) -> Option<(&mut Pages, Moment)> {
        let total = self.total();
        let pages = self.pages.as_mut()?;
        let start = self.base.get(total).copied().unwrap_or(0);
        let task = self.stacks.now();
        let moment = Moment {
            at: self.api.values()[total].wrapping_sub(start),
            task: task as u32,
            space: pages.space(task),
        };
        Some((pages, moment))
    }

    /// True if the current function or its caller has this role.
    fn is_within(&self, role: u32) -> bool {
        let has_role = |function: &u32| {
            let roles = self.roles.get(*function as usize);
            roles.is_some_and(|roles| roles & role != 0)
        };
        self.stacks.innermost().iter().any(has_role)
    }

    /// Records the mappings of the current task's address space, if references are recorded.
    fn list_mappings(&mut self) {
        let now = self.stacks.now();
        if let Some(pages) = &mut self.pages {
            pages.list_mappings(now, self.saved);
        }
    }

    fn begin(&mut self) {
        self.base = self.api.values().to_vec();
        self.stacks.reset(&self.base);
        if let Some(pages) = &mut self.pages {
            // The emulator has no memory for the guest yet when it loads the plugin.
            if let (Some(places), [direct, image, files @ ..]) = (self.places, &self.ram[..])
                && let Some(ram) = Ram::find(c"/proc/self/maps", files, [*direct, *image])
            {
                pages.read_mappings(ram, places);
            }
            pages.begin();
        }
    }

    /// Writes all counts since the marked start to the output file. Does so only once.
    fn end(&mut self) {
        if self.base.is_empty() || self.is_written {
            return;
        }
        self.is_written = true;
        let main = self.stacks.main() as u32;
        if let Some(pages) = &mut self.pages {
            let now = self.stacks.now();
            pages.list_mappings(now, self.saved);
            for (saved, task) in self.stacks.sleeps.known().filter(|(_, task)| *task != now) {
                pages.list_mappings(task, saved);
            }
        }
        if let Some((pages, moment)) = self.pages() {
            pages.end(moment.at, main);
        }
        let mut out: Vec<u8> = Vec::new();
        let first_annotated = self.first_annotated();
        let counts = self.api.values();
        let since = |at: usize| counts[at].wrapping_sub(self.base[at]);
        let used = (0..self.functions).filter(|at| since(2 * at) | since(2 * at + 1) != 0);
        out.extend(MAGIC.to_le_bytes());
        out.extend((used.clone().count() as u64).to_le_bytes());
        out.extend((self.stacks.nodes.len() as u64).to_le_bytes());
        out.extend(u64::from(self.stacks.root()).to_le_bytes());
        for at in used {
            out.extend((at as u64).to_le_bytes());
            out.extend(since(2 * at).to_le_bytes());
            out.extend(since(2 * at + 1).to_le_bytes());
        }
        for node in &self.stacks.nodes {
            out.extend(node.parent.to_le_bytes());
            out.extend(node.function.to_le_bytes());
            for count in [node.own, node.calls, node.waited, node.waits] {
                out.extend(count.to_le_bytes());
            }
        }
        for at in 0..self.watched.len() {
            out.extend(since(2 * self.functions + 2 + at).to_le_bytes());
        }
        out.extend((self.annotated.entries.len() as u64).to_le_bytes());
        for (at, entry) in self.annotated.entries.iter().enumerate() {
            out.extend(u64::from(entry.function).to_le_bytes());
            out.extend(entry.address.to_le_bytes());
            out.extend(since(first_annotated + at).to_le_bytes());
            out.extend(entry.bytes);
        }
        let sums = &self.stacks.sleeps.sums;
        out.extend((sums.len() as u64).to_le_bytes());
        for (nodes, sum) in sums {
            out.extend(nodes.iter().flat_map(|node| u64::from(*node).to_le_bytes()));
            for number in [sum.count, sum.time, sum.idle] {
                out.extend(number.to_le_bytes());
            }
        }
        let queue = &self.stacks.sleeps.queue;
        out.extend((queue.len() as u64).to_le_bytes());
        for (root, sum) in queue {
            for number in [u64::from(*root), sum.count, sum.time] {
                out.extend(number.to_le_bytes());
            }
        }
        out.extend(u64::from(self.stacks.idle_task).to_le_bytes());
        heap::store(&self.out, &out);
    }
}

/// Called by the emulator when it loads the plugin. Returns 0, or 1 if the plugin cannot work.
///
/// # Safety
/// `info` must be valid, and `values` must point to `count` C strings that live as long as the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    count: c_int,
    values: *const *const c_char,
) -> c_int {
    // SAFETY: the caller guarantees that `info` and `values` are valid.
    let (version, arguments) = unsafe {
        let arguments: Vec<&CStr> = (0..count as usize)
            .map(|at| CStr::from_ptr(*values.add(at)))
            .collect();
        ((*info).version, arguments)
    };
    let made = (|| {
        let out = argument(&arguments, "out")?;
        let functions = read_functions(&heap::content(argument(&arguments, "functions")?)?)?;
        let programs = match argument(&arguments, "programs") {
            Some(path) => Programs::read(&heap::content(path)?, functions.count)?,
            None => Programs::default(),
        };
        let all_flags = functions.spans.iter().fold(0, |all, span| all | span.flags);
        let pages = match (argument(&arguments, "references"), argument(&arguments, "most")) {
            (Some(path), Some(most)) => Some(Pages::new(path.into(), decimal(most)?, all_flags)?),
            _ => None,
        };
        let places = match argument(&arguments, "places") {
            Some(text) => Some(Places::try_from(numbers(text)?).ok()?),
            None => None,
        };
        let ram = argument(&arguments, "ram").and_then(numbers).unwrap_or_default();
        let mut roles = alloc::vec![0; functions.count];
        let wanted = SWITCH | WAKES | if pages.is_some() { ROLES } else { 0 };
        for span in &functions.spans {
            roles[span.function as usize] |= span.flags & wanted;
        }
        let annotated = match argument(&arguments, "annotate") {
            Some(text) => Annotated::read(text.to_str().ok()?)?,
            None => Annotated::default(),
        };
        let numbers = 2 * functions.count + 3 + functions.watched.len() + annotated::MAX;
        let mut stacks = Stacks::new(functions.count, functions.programs);
        stacks.sleeps.has_wakes = places.is_some();
        Some(Profile {
            api: Api::new(version, numbers)?,
            spans: functions.spans,
            programs,
            functions: functions.count,
            watched: functions.watched,
            annotated,
            stacks,
            pages,
            roles,
            state_to_stack: places.map(|places| places[AT_STACK].wrapping_sub(places[AT_STATE])),
            places,
            ram,
            switching: Switching::Nothing,
            saved: 0,
            ahead: NOTHING,
            is_done: false,
            begun: 0,
            out: out.into(),
            base: Vec::new(),
            idle_page: 0,
            parts: Vec::new(),
            code: Vec::new(),
            is_written: false,
        })
    })();
    let Some(made) = made else {
        return 1;
    };
    let made = alloc::boxed::Box::leak(alloc::boxed::Box::new(made));
    made.api.translations(id, translated);
    PROFILE.store(made, Ordering::Relaxed);
    0
}
