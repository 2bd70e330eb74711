//! Counts the instructions of each function and call stack that an emulator of the exact arena executes. Built as a
//! shared object and loaded into the emulator as a plugin, after a snapshot was restored.
//!
//! Counts are exact. Translated code adds to a function's count inline, as many as it executes without leaving the
//! block. An instruction that accesses memory may fault, or be executed again alone because it accesses a device, so it
//! is counted by what follows it: the next instruction's addition, or the access itself at the end of a block. The
//! plugin only counts; the guest's time, which is its number of instructions, does not change.
//!
//! Arguments: `functions=PATH`, the addresses of functions, and `out=PATH`, the file that is written when the guest
//! executes the instruction that marks the end. Formats: `src/profiler.rs`.

#![no_std]

extern crate alloc;

mod api;
mod heap;
mod insn;
mod stacks;

use alloc::ffi::CString;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use api::{Api, Handle, Id, Info};
use insn::Kind;
use stacks::Stacks;

/// Version of the interface that this plugin asks for, set when the object is loaded.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// Chooses the version before the emulator reads it.
extern "C" fn choose() {
    if api::has_boards() {
        qemu_plugin_version.store(2, Ordering::Relaxed);
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE: extern "C" fn() = choose;

/// First number of both formats: "pgprof1\0".
const MAGIC: u64 = 0x0031_666f_7270_6770;
/// Function of kernel code without a name.
const UNNAMED: u32 = 0;
/// Function of the loop that keeps the CPU from halting.
const IDLE: u32 = 2;
/// First function with a name; those below are also [`stacks::USER`].
const NAMED: u32 = 3;

/// Size of a page.
const PAGE: u64 = 4096;
/// Most bytes of an instruction.
const LONGEST: u64 = 15;
/// Highest bit of an address: set in the kernel's.
const KERNEL: u64 = 1 << 63;

/// Set in the number of an instruction that reads memory and then writes it.
const UPDATES: u64 = 1 << 63;
/// Set in the number of an instruction at which the one before it is added inline, after the callback.
const FOLLOWED: u64 = 1 << 62;

/// What is special about the start of a range of addresses.
const STARTS: u32 = 1;
const FAULT: u32 = 2;
const INTERRUPT: u32 = 4;
const SWITCH: u32 = 8;
const FORK: u32 = 16;

/// Length of the idle loop's jump backwards, over 500 `nop`s and itself. Source: `guest/src/idle.rs`.
const IDLE_JUMP: [u8; 5] = [0xe9, 0x07, 0xfe, 0xff, 0xff];
/// Least number of `nop`s in a row that only the idle loop has.
const IDLE_NOPS: usize = 8;
const NOP: u8 = 0x90;

/// Addresses from `start` to the next range's start belong to `function`.
struct Span {
    start: u64,
    function: u32,
    flags: u32,
}

/// The last instruction of a block that was counted before it was executed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ahead {
    function: u32,
    /// Low bits of the address, with the function: identifies the instruction.
    insn: u64,
    /// The function's count just after.
    count: u64,
}

const NOTHING: Ahead = Ahead {
    function: 0,
    insn: u64::MAX,
    count: 0,
};

/// An instruction of the block that is being translated.
struct Part {
    handle: Handle,
    address: u64,
    function: u32,
    flags: u32,
    kind: Kind,
    is_nop: bool,
    is_idle_jump: bool,
}

struct Profile {
    api: Api,
    spans: Vec<Span>,
    functions: usize,
    stacks: Stacks,
    ahead: Ahead,
    /// True if the instruction counted ahead has been executed.
    is_done: bool,
    /// Number of the last call or return that was counted.
    begun: u64,
    out: CString,
    /// Counts at the mark of the begin; empty before.
    base: Vec<u64>,
    /// Page of the idle loop; 0 if it was not seen yet.
    idle_page: u64,
    parts: Vec<Part>,
    is_written: bool,
}

static PROFILE: AtomicPtr<Profile> = AtomicPtr::new(null_mut());

/// The only profile. All callbacks come from the thread of the only CPU, one at a time.
fn profile() -> &'static mut Profile {
    // SAFETY: set once in `qemu_plugin_install` before any callback, and never freed. Callbacks do not nest.
    unsafe { &mut *PROFILE.load(Ordering::Relaxed) }
}

/// Number that a callback receives: the function, and the target's function or low bits of an address.
const fn pack(function: u32, other: u64) -> u64 {
    function as u64 | other << 24
}

const fn function_of(data: u64) -> u32 {
    (data & 0xff_ffff) as u32
}

impl Profile {
    fn span(&self, address: u64) -> (u32, u32) {
        let at = self.spans.partition_point(|span| span.start <= address);
        match at.checked_sub(1).and_then(|at| self.spans.get(at)) {
            Some(span) if span.start == address => (span.function, span.flags),
            Some(span) => (span.function, 0),
            None => (UNNAMED, 0),
        }
    }

    fn parse(&mut self, block: Handle) {
        self.parts.clear();
        for at in 0..self.api.length(block) {
            let handle = self.api.insn(block, at);
            let address = self.api.address(handle);
            let (bytes, size) = self.api.bytes(handle);
            let (function, flags) = self.span(address);
            self.parts.push(Part {
                handle,
                address,
                function,
                flags,
                kind: insn::kind(&bytes, size, address, address >> 63 != 0),
                is_nop: size == 1 && bytes[0] == NOP,
                is_idle_jump: bytes.starts_with(&IDLE_JUMP),
            });
        }
        let Some(first) = self.parts.first().map(|part| part.address) else {
            return;
        };
        let page = first >> 12;
        let nops = self.parts.iter().take_while(|part| part.is_nop).count();
        let jumps = self.parts.get(nops).is_some_and(|part| part.is_idle_jump);
        let only = nops + usize::from(jumps) == self.parts.len();
        if first >> 63 == 0 && only && (jumps || nops >= IDLE_NOPS || page == self.idle_page) {
            self.idle_page = page;
            for part in &mut self.parts {
                part.function = IDLE;
            }
        }
    }

    fn translate(&mut self, block: Handle) {
        self.parse(block);
        let (parts, api) = (&self.parts, &self.api);
        let count = parts.len();
        // QEMU 7.2 also tells of an instruction that would cross the end of the page, although it ends the block before
        // it. Then the one before is the last, and what is added at this one never is.
        let near = |part: &Part| part.address & (PAGE - 1) > PAGE - LONGEST;
        let is_doubtful = count > 1 && parts.last().is_some_and(near);
        let may_be_last = |at: usize| at + 1 == count || is_doubtful && at + 2 == count;
        // What was not added yet is added at the instruction `leader`, and at each break.
        let (mut leader, mut open) = (0, 0);
        let close = |leader: usize, open: u64| {
            if open > 0 {
                let function = parts[leader].function as usize;
                api.add(parts[leader].handle, 2 * function, open);
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
            if let Kind::Mark(which) = part.kind {
                api.before(part.handle, marked, u64::from(which));
            }
            if part.flags & STARTS != 0 {
                api.add(part.handle, 2 * function as usize + 1, 1);
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
                        api.add(part.handle, 2 * before.function as usize, 1);
                    }
                }
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
                    // If a device is accessed, the instruction is executed again, alone, without callbacks before it.
                    // In a program, what comes next may be on a page that is not there.
                    let is_program = part.address < KERNEL;
                    if part.kind != Kind::Repeat && (count == 1 || is_program) {
                        api.after(part.handle, accessed, data);
                    }
                }
                Kind::Memory | Kind::Update | Kind::Repeat => {}
                Kind::Call(target) => {
                    let target = target.map_or(0, |target| self.span(target).0);
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
    }

    /// Index of the number of calls, returns and jumps by a pointer that were begun.
    const fn serial(&self) -> usize {
        2 * self.functions
    }

    /// True if an access at `at` is the one of the call, return or jump that was begun last. `data` is that of its callback.
    ///
    /// QEMU 7.2 forgets to remove the callbacks of an instruction that leaves its block by a pointer. Later accesses by
    /// helper functions, such as those of `iret`, of a fault and of `cmpxchg16b`, then call them again.
    fn is_own(&mut self, at: u64, data: u64) -> bool {
        let serial = self.serial();
        let begun = self.api.values()[serial];
        let is_new = begun != self.begun && at & KERNEL == data & KERNEL;
        if is_new {
            self.begun = begun;
        }
        is_new
    }

    /// Counts one more instruction of a function; returns the count.
    fn count(&mut self, function: u32) -> u64 {
        match self.api.values().get_mut(2 * function as usize) {
            Some(count) => {
                *count += 1;
                *count
            }
            None => 0,
        }
    }

    /// Takes back an instruction that was counted ahead and has faulted.
    fn take_back(&mut self) {
        let Ahead {
            function, count, ..
        } = self.ahead;
        if self.ahead != NOTHING
            && !self.is_done
            && let Some(now) = self.api.values().get_mut(2 * function as usize)
            && *now == count
        {
            *now -= 1;
        }
    }

    fn begin(&mut self) {
        self.base = self.api.values().to_vec();
        self.stacks.reset(&self.base);
    }

    /// Writes all counts since the begin.
    fn end(&mut self) {
        if self.base.is_empty() || self.is_written {
            return;
        }
        self.is_written = true;
        let mut out: Vec<u8> = Vec::new();
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
            out.extend(node.own.to_le_bytes());
            out.extend(node.calls.to_le_bytes());
        }
        heap::store(&self.out, &out);
    }
}

extern "C" fn translated(_: Id, block: Handle) {
    profile().translate(block);
}

extern "C" fn counted_ahead(_: c_uint, data: *mut c_void) {
    let (profile, insn) = (profile(), data as u64);
    let function = function_of(insn);
    let count = profile.count(function) + u64::from(insn & FOLLOWED != 0);
    profile.ahead = Ahead {
        function,
        insn,
        count,
    };
    profile.is_done = false;
}

extern "C" fn accessed(_: c_uint, access: u32, at: u64, data: *mut c_void) {
    let (profile, insn) = (profile(), data as u64);
    let function = function_of(insn);
    let count = profile.api.values()[2 * function as usize];
    let here = Ahead {
        function,
        insn,
        count,
    };
    if profile.ahead != here {
        let count = profile.count(function);
        profile.ahead = Ahead { count, ..here };
    }
    // After a fault, its delivery reads and writes the kernel's memory, with the callbacks of the instruction.
    if at < KERNEL {
        profile.is_done = insn & UPDATES == 0 || profile.api.is_store(access);
    }
}

extern "C" fn stored(_: c_uint, access: u32, at: u64, data: *mut c_void) {
    let (profile, data) = (profile(), data as u64);
    if profile.api.is_store(access) && profile.is_own(at, data) {
        profile.count(function_of(data));
    }
}

extern "C" fn loaded(_: c_uint, _: u32, at: u64, data: *mut c_void) {
    let (profile, data) = (profile(), data as u64);
    if profile.is_own(at, data) {
        profile.count(function_of(data));
    }
}

extern "C" fn called(_: c_uint, access: u32, at: u64, data: *mut c_void) {
    let (profile, data) = (profile(), data as u64);
    // A call by a pointer in memory reads that pointer first.
    if !profile.api.is_store(access) || !profile.is_own(at, data) {
        return;
    }
    let site = function_of(data);
    profile.count(site);
    let target = (data >> 24) as u32 & 0xff_ffff;
    let target = (target != 0).then_some(target);
    profile.stacks.call(site, target, at, profile.api.values());
}

extern "C" fn returned(_: c_uint, _: u32, at: u64, data: *mut c_void) {
    let (profile, data) = (profile(), data as u64);
    if !profile.is_own(at, data) {
        return;
    }
    let site = function_of(data);
    profile.count(site);
    profile.stacks.leave(site, at, profile.api.values());
}

extern "C" fn entering(_: c_uint, data: *mut c_void) {
    let profile = profile();
    let site = function_of(data as u64);
    profile.stacks.enter(Some(site), profile.api.values());
}

extern "C" fn entered(_: c_uint, data: *mut c_void) {
    let profile = profile();
    if (data as u64 >> 24) as u32 & FAULT != 0 {
        profile.take_back();
    }
    profile.ahead = NOTHING;
    profile.stacks.enter(None, profile.api.values());
}

extern "C" fn resumed(_: c_uint, data: *mut c_void) {
    let profile = profile();
    let site = function_of(data as u64);
    profile.stacks.resume(site, profile.api.values());
}

extern "C" fn switched(_: c_uint, _: *mut c_void) {
    profile().stacks.switch();
}

extern "C" fn forked(_: c_uint, _: *mut c_void) {
    profile().stacks.fork();
}

extern "C" fn marked(_: c_uint, which: *mut c_void) {
    if which.is_null() {
        profile().begin();
    } else {
        profile().end();
    }
}

/// Value of the argument `name=value`.
fn argument<'a>(arguments: &[&'a CStr], name: &str) -> Option<&'a CStr> {
    arguments.iter().find_map(|argument| {
        let bytes = argument.to_bytes_with_nul();
        let value = bytes.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        CStr::from_bytes_with_nul(value).ok()
    })
}

/// Ranges of addresses and number of functions from the file of functions.
fn read_spans(bytes: &[u8]) -> Option<(Vec<Span>, usize)> {
    let number = |at: usize| {
        let bytes = bytes.get(8 * at..8 * at + 8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    (number(0)? == MAGIC).then_some(())?;
    let functions = number(1)? as usize;
    let mut spans = Vec::new();
    for at in 0..number(2)? as usize {
        let what = number(4 + 2 * at)?;
        let function = what as u32;
        if function as usize >= functions {
            return None;
        }
        spans.push(Span {
            start: number(3 + 2 * at)?,
            function,
            flags: (what >> 32) as u32,
        });
    }
    Some((spans, functions))
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
    // SAFETY: the caller vouches for both.
    let (version, arguments) = unsafe {
        let arguments: Vec<&CStr> = (0..count as usize)
            .map(|at| CStr::from_ptr(*values.add(at)))
            .collect();
        ((*info).version, arguments)
    };
    let made = (|| {
        let out = argument(&arguments, "out")?;
        let (spans, functions) = read_spans(&heap::content(argument(&arguments, "functions")?)?)?;
        Some(Profile {
            api: Api::new(version, 2 * functions + 1)?,
            spans,
            functions,
            stacks: Stacks::new(functions),
            ahead: NOTHING,
            is_done: false,
            begun: 0,
            out: out.into(),
            base: Vec::new(),
            idle_page: 0,
            parts: Vec::new(),
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
