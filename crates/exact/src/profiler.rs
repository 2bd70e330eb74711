//! Counts the instructions of a trial by function: loads the plugin into the emulator and reads the plugin's counts.
//!
//! The plugin (`plugin/profile.rs`) is loaded only into emulators that restore a snapshot. It reads the addresses of
//! the guest's functions and the code of the guest's programs from anonymous files, and writes its counts to another
//! one when the scenario ends. All files consist of little-endian numbers of 64 bits:
//!
//! - functions: [`MAGIC`], number of functions, number of ranges, lowest number of a function of a program, number of
//!   watched instructions. Then for each range, in the order of addresses: its start; the number of its function in the
//!   lower half, and its flags in the upper half. Then the addresses of the watched instructions, in ascending order.
//! - programs: [`MAGIC`], number of segments. Then for each segment: its first address, its size, the number of its
//!   ranges, and the ranges as above. Then the bytes of all segments.
//! - counts: [`MAGIC`], number of functions that were executed, number of nodes, index of the root of the task that
//!   executed the instruction that marks the end. Then for each function: its number, instructions and calls. Then for
//!   each node: its parent and function (32 bits each), its instructions and calls, the time and the number of waits.
//!   Then for each watched instruction the number of its executions. Then the number of annotated instructions, and for
//!   each: the number of its function, its address, its executions, and 16 bytes, which are its code and its size. Then
//!   the number of combinations of sleeps, and for each: three nodes, which are [`NO_NODE`] if unknown, and their number,
//!   time and idle time. Then the number of tasks behind which others were in the run queue, and for each: the root of
//!   its tree, which is [`NO_NODE`] if unknown, and the number and time of these waits. At last, the root of the task that
//!   runs the idle loop, which is [`NO_NODE`] if unknown.

#[path = "../plugin/format.rs"]
#[allow(dead_code, reason = "a part of the plugin, which uses the rest")]
pub(crate) mod format;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

use pagetide_profile::{
    Annotation, NO_SYMBOL, Profile, Symbol, Tally, TallyNode, TallyQueue, TallySleep, USER,
    function_name,
};
use pagetide_quantity::{Bytes, Nanos, nearest};
use pagetide_root::CodeFile;

use crate::annotated::{self, CountedInstruction};
use crate::error::{ExactError, io};
pub use crate::layout::Layout;
use crate::memory;
pub use crate::ranges::Range;
use format::{
    BIND, CHECKS, CLEARS, COPY, COUNTS, DIES, ENTERS, EXECUTE, EXITS, FAULT, FAULTS, FILE, FILLS,
    FORK, IDLE, INTERRUPT, KERNEL, MAGIC, MAPS, MONITORS, NAMED, NO_FUNCTION, NO_NODE, PREPARES,
    READS, REMOVES, ROLES, STARTS, SWAPS, SWITCH, UNMAPS, UNNAMED, WAKE, WAKES,
};

/// Bytes of the plugin's shared object. Source: `build/object.rs`.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/profile.so"));
/// Maximum number of symbols of an annotated function. Further symbols are ignored.
const MAX_SYMBOLS: usize = 64;
/// Maximum size of the file of counts, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// Returns the flags of the function `name`. `names` returns true if the kernel has a function with the given name.
fn flags(name: &str, names: &dyn Fn(&str) -> bool) -> u32 {
    let special = match name {
        "asm_common_interrupt" | "asm_spurious_interrupt" => INTERRUPT,
        "__switch_to_asm" => SWITCH,
        "ret_from_fork_asm" => FORK,
        // Only called for each mapping of an address space that is copied.
        "copy_page_range" => COPY,
        "wake_up_new_task" => WAKE,
        "begin_new_exec" => EXECUTE,
        // These are called to unmap addresses, also for a new mapping that replaces others. Before 6.12 they
        // are `do_vmi_align_munmap` and, before 6.4, `do_mas_align_munmap`.
        "vms_gather_munmap_vmas" | "do_vmi_align_munmap" | "do_mas_align_munmap" => REMOVES,
        "do_exit" => REMOVES | EXITS,
        "do_task_dead" => DIES,
        // Since Linux 6.6, `ret_from_fork` is a C function that `ret_from_fork_asm` calls.
        "ret_from_fork" if !names("ret_from_fork_asm") => FORK,
        _ if name.starts_with("asm_exc_") => FAULT,
        _ if name.starts_with("asm_sysvec_") => INTERRUPT,
        _ => 0,
    };
    // Code jumps to the `.cold` part of a function; it is not called.
    let starts = if name.strip_suffix(".cold").is_some() {
        0
    } else {
        STARTS
    };
    let tables = on_tables(function_name(name));
    // In all kernels, one of these sets the state of a task that is woken; some of them are inlined into others.
    let wakes = match function_name(name) {
        "try_to_wake_up" | "ttwu_runnable" | "ttwu_do_wakeup" | "ttwu_do_activate" => WAKES,
        _ => 0,
    };
    wakes | special | starts | if starts == 0 { tables & ROLES } else { tables }
}

/// Flags of a function that handles page tables. Source: Linux 6.1, 6.12 and 7.2, `mm/memory.c`, `mm/rmap.c`,
/// `mm/vmscan.c`, `mm/swapfile.c`, `mm/page_io.c` and `arch/x86/mm/pgtable.c`.
fn on_tables(name: &str) -> u32 {
    match name {
        "damon_pa_prepare_access_checks" => MONITORS,
        "handle_mm_fault" => FAULTS,
        "do_swap_page" => SWAPS | MAPS,
        "filemap_fault" => FILE,
        // `swap_readpage` is the name before 6.8.
        "swap_read_folio"
        | "swap_readpage"
        | "filemap_read_folio"
        | "page_cache_ra_unbounded"
        | "page_cache_ra_order" => READS,
        "swapcache_prepare" => PREPARES | COUNTS,
        "swap_duplicate" => BIND | COUNTS,
        "__swap_duplicate" => COUNTS,
        // Since 7.1, swap has a table of numbers of eight bytes instead of a map of bytes.
        "swap_cache_alloc_folio" => FILLS,
        "__swap_cache_do_add_folio" => PREPARES | ENTERS,
        "folio_dup_swap" => BIND | ENTERS,
        "swap_dup_entries_cluster" => ENTERS,
        // A kernel with `CONFIG_PARAVIRT_XXL` calls `native_set_pte`; others write entries inline.
        "native_set_pte" | "do_anonymous_page" | "do_pte_missing" | "do_fault" | "do_set_pte"
        | "set_pte_range" | "finish_fault" | "filemap_map_pages" | "wp_page_copy"
        | "handle_pte_fault" | "__handle_mm_fault" => MAPS,
        "try_to_unmap_one" => UNMAPS,
        "ptep_clear_flush" => CLEARS,
        "ptep_test_and_clear_young"
        | "ptep_clear_flush_young"
        // `walk_pte_range`, where it is not inlined into the function that calls it.
        | "walk_pte_range"
        | "walk_pud_range"
        | "lru_gen_look_around" => CHECKS,
        _ => 0,
    }
}

/// Parses lines `address type name [module]` to the functions of the kernel and its modules, in order of address. If an
/// address has several names, uses the first.
pub fn kernel_ranges(kallsyms: &[u8]) -> Vec<Range> {
    // The list has more than a hundred thousand lines, so a line's type is looked at first.
    let list = match str::from_utf8(kallsyms) {
        Ok(list) => list,
        Err(error) => str::from_utf8(&kallsyms[..error.valid_up_to()]).unwrap_or_default(),
    };
    let mut ranges = BTreeMap::new();
    for line in list.split('\n') {
        let Some((address, rest)) = line.split_once(' ') else {
            continue;
        };
        let Some((_, rest)) = rest
            .split_once(' ')
            .filter(|(kind, _)| matches!(*kind, "t" | "T" | "w" | "W"))
        else {
            continue;
        };
        let (name, module) = match rest.split_once('\t') {
            Some((name, module)) => (name, Some(module)),
            None => (rest, None),
        };
        // These symbols are the start of a section, or padding before a function.
        if ["_text", "_stext", "startup_64"].contains(&name) || name.starts_with("__pfx_") {
            continue;
        }
        if let Ok(start @ KERNEL..) = u64::from_str_radix(address, 16) {
            let module = module.map(|name| name.trim_matches(['[', ']']).to_owned());
            ranges.entry(start).or_insert_with(|| Range {
                start,
                name: name.to_owned(),
                module,
            });
        }
    }
    ranges.into_values().collect()
}

/// True if the message of an emulator that failed with the plugin is about the plugin. An emulator without plugins refuses
/// the option and names it.
pub(crate) fn is_about_plugins(message: &str) -> bool {
    message.contains("plugin")
}

/// Code whose instructions a [`Profiler`] counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted<'a> {
    /// Functions of the kernel, in the order of their addresses.
    pub ranges: &'a [Range],
    /// Code of the guest's programs.
    pub programs: &'a [CodeFile],
    /// Addresses of instructions whose executions are counted one by one, in ascending order.
    pub watched: &'a [u64],
    /// Maximum size of the recorded references to pages; `None` not to record them.
    pub references: Option<Bytes>,
    /// Layout of the guest's kernel; `None` if it is not known.
    pub layout: Option<&'a Layout>,
    /// Function whose instructions are counted one by one; with `MODULE:` before it, only the function of that module
    /// or program file. `None` for no function.
    pub annotate: Option<&'a str>,
}

/// What a profiled pass counted.
#[derive(Debug)]
pub struct PassCounts {
    /// Instructions by function and call stack.
    pub profile: Profile,
    /// Number of executions of each watched instruction, by address.
    pub executed: BTreeMap<u64, u64>,
    /// Instructions of the annotated function; `None` if no function is annotated.
    pub annotation: Option<Annotation>,
}

/// The annotated function of a profiled pass.
#[derive(Debug)]
struct Annotate {
    name: String,
    /// Numbers of the function's symbols in the plugin's files.
    numbers: Vec<u32>,
}

/// A plugin that counts the instructions of one trial.
#[derive(Debug)]
pub struct Profiler {
    object: File,
    functions: File,
    /// Code of the guest's programs; `None` if there are none.
    programs: Option<File>,
    counts: File,
    /// File for the recorded references to pages, and its maximum size; `None` if they are not recorded.
    references: Option<(File, Bytes)>,
    annotate: Option<Annotate>,
    layout: Option<Layout>,
    /// Functions of the kernel, in the order of their addresses, if a function is annotated.
    ranges: Vec<Range>,
    symbols: Vec<Symbol>,
    watched: Vec<u64>,
}

/// Appends numbers to `bytes`, in the format of the plugin's files.
fn put(bytes: &mut Vec<u8>, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

/// Adds the functions of programs to `symbols`. Returns the content of the file that describes the programs' code to
/// the plugin.
fn code_of(programs: &[CodeFile], symbols: &mut Vec<Symbol>) -> Vec<u8> {
    let (mut head, mut code, mut count) = (Vec::new(), Vec::new(), 0);
    for file in programs {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let mut add = |symbol: &str| {
            symbols.push(Symbol {
                name: symbol.to_owned(),
                module: Some(name.to_owned()),
                is_program: true,
                ..Symbol::default()
            });
            symbols.len() as u64 - 1
        };
        let none = add(NO_SYMBOL);
        for segment in &file.segments {
            let mut spans = vec![[segment.start, none]];
            for symbol in &segment.symbols {
                // Where symbols overlap, the earlier one ends at the start of the later one.
                while spans
                    .last()
                    .is_some_and(|[start, _]| *start >= symbol.start)
                {
                    spans.pop();
                }
                let number = add(&symbol.name);
                spans.push([symbol.start, number | u64::from(STARTS) << 32]);
                spans.push([symbol.start + symbol.size, none]);
            }
            count += 1;
            let size = segment.bytes.len() as u64;
            put(&mut head, [segment.start, size, spans.len() as u64]);
            put(&mut head, spans.into_iter().flatten());
            code.extend_from_slice(&segment.bytes);
        }
    }
    let mut bytes = Vec::new();
    put(&mut bytes, [MAGIC, count]);
    bytes.extend(head);
    bytes.extend(code);
    bytes
}

impl Annotate {
    /// Finds the symbols of the function `name`. If there are none, fails with an error that suggests a similar name.
    fn find(name: &str, symbols: &[Symbol]) -> Result<Self, ExactError> {
        let (module, function) = match name.split_once(':') {
            Some((module, function)) if !function.starts_with(':') => (Some(module), function),
            _ => (None, name),
        };
        let is_wanted = |symbol: &Symbol| {
            function_name(&symbol.name) == function
                && module.is_none_or(|module| symbol.module.as_deref() == Some(module))
        };
        let numbers = (0..).zip(symbols).filter(|(_, symbol)| is_wanted(symbol));
        let numbers: Vec<u32> = numbers
            .map(|(number, _)| number)
            .take(MAX_SYMBOLS)
            .collect();
        if numbers.is_empty() {
            let names = symbols.iter().map(|symbol| function_name(&symbol.name));
            return Err(ExactError::NoFunction {
                name: name.to_owned(),
                near: nearest(function, names),
            });
        }
        Ok(Self {
            name: name.to_owned(),
            numbers,
        })
    }
}

impl Profiler {
    /// Creates the files from which the plugin learns what to count. Fails if the function to annotate does not exist.
    pub fn new(counted: Counted<'_>) -> Result<Self, ExactError> {
        let Counted {
            ranges,
            programs,
            watched,
            references,
            layout,
            annotate,
        } = counted;
        let unnamed = |name: &str| Symbol {
            name: name.to_owned(),
            ..Symbol::default()
        };
        // The functions with fixed numbers, in the order of their numbers.
        let fixed: [Symbol; NAMED as usize] = [
            unnamed(pagetide_profile::UNNAMED),
            unnamed(USER),
            unnamed("(idle loop)"),
        ];
        let mut symbols = Vec::from(fixed);
        let names = |name: &str| ranges.iter().any(|range| range.name == name);
        let mut spans: Vec<[u64; 2]> = Vec::with_capacity(ranges.len() + 2);
        if ranges.first().is_none_or(|first| first.start > 0) {
            spans.push([0, format::USER.into()]);
        }
        let mut is_kernel = false;
        for range in ranges {
            if range.start >= KERNEL && !is_kernel {
                is_kernel = true;
                spans.push([KERNEL, UNNAMED.into()]);
            }
            let number = symbols.len() as u64;
            spans.push([
                range.start,
                number | u64::from(flags(&range.name, &names)) << 32,
            ]);
            symbols.push(Symbol {
                name: range.name.clone(),
                module: range.module.clone(),
                ..Symbol::default()
            });
        }
        // A kernel without a list of its functions.
        if !is_kernel {
            spans.push([KERNEL, UNNAMED.into()]);
        }
        let first = symbols.len() as u64;
        let code = code_of(programs, &mut symbols);
        let mut bytes = Vec::new();
        let sizes = [symbols.len(), spans.len()].map(|size| size as u64);
        put(&mut bytes, [MAGIC].into_iter().chain(sizes));
        put(&mut bytes, [first, watched.len() as u64]);
        put(&mut bytes, spans.into_iter().flatten());
        put(&mut bytes, watched.iter().copied());
        let annotate = annotate
            .map(|name| Annotate::find(name, &symbols))
            .transpose()?;
        let programs = (!programs.is_empty()).then(|| memory::holding("programs", &code));
        Ok(Self {
            object: memory::holding("pagetide-profile", OBJECT)?,
            functions: memory::holding("functions", &bytes)?,
            programs: programs.transpose()?,
            counts: memory::anonymous("counts")?,
            references: references
                .map(|most| Ok::<_, ExactError>((memory::anonymous("references")?, most)))
                .transpose()?,
            ranges: annotate
                .as_ref()
                .map(|_| ranges.to_vec())
                .unwrap_or_default(),
            annotate,
            layout: layout.cloned(),
            symbols,
            watched: watched.to_vec(),
        })
    }

    /// Returns the arguments that make an emulator load the plugin.
    pub fn arguments(&self) -> [String; 2] {
        let path = |file: &File| memory::path(file.as_raw_fd());
        let [object, functions, counts] = [&self.object, &self.functions, &self.counts].map(path);
        let mut value = format!("file={object},functions={functions},out={counts}");
        if let Some(programs) = &self.programs {
            value.push_str(",programs=");
            value.push_str(&path(programs));
        }
        if let Some((references, most)) = &self.references {
            let path = path(references);
            value = format!("{value},references={path},most={}", most.0);
        }
        if let Some(layout) = &self.layout {
            value.push_str(&layout.arguments());
        }
        if let Some(annotate) = &self.annotate {
            let numbers: Vec<String> = annotate.numbers.iter().map(u32::to_string).collect();
            value = format!("{value},annotate={}", numbers.join("+"));
        }
        ["-plugin".to_owned(), value]
    }

    /// Returns the file descriptors that the emulator must inherit.
    pub fn fds(&self) -> Vec<RawFd> {
        let files = [&self.object, &self.functions, &self.counts];
        let references = self.references.as_ref().map(|(file, _)| file);
        let files = files.into_iter().chain(&self.programs).chain(references);
        files.map(AsRawFd::as_raw_fd).collect()
    }

    /// Returns the file with the recorded references, positioned at its start, and its size in bytes. `None` if they
    /// were not recorded or the scenario did not end.
    pub fn references(&self) -> Result<Option<(&File, u64)>, ExactError> {
        let Some((file, _)) = &self.references else {
            return Ok(None);
        };
        let mut reader = file;
        let fault = || io("reading", "the references of the emulator's plugin");
        let size = file.metadata().map_err(fault())?.len();
        let mut first = [0; 8];
        // The header is written last.
        if size < 8 || file.read_exact_at(&mut first, 0).is_err() || first == [0; 8] {
            return Ok(None);
        }
        reader.seek(SeekFrom::Start(0)).map_err(fault())?;
        Ok(Some((reader, size)))
    }

    /// Converts the counts of the plugin to a profile of a scenario that took `elapsed` on the guest's clock, and to
    /// the numbers of executions of single instructions. `None` if the scenario did not end.
    pub fn profile(mut self, elapsed: Nanos) -> Result<Option<PassCounts>, ExactError> {
        let mut bytes = Vec::new();
        let fault = || io("reading", "the counts of the emulator's plugin");
        self.counts.seek(SeekFrom::Start(0)).map_err(fault())?;
        let counts = &self.counts;
        counts
            .take(MAX_BYTES)
            .read_to_end(&mut bytes)
            .map_err(fault())?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let (tally, executed, instructions) = self
            .tally(&bytes, elapsed)
            .ok_or_else(|| fault()(std::io::Error::other("they contradict themselves")))?;
        let annotation = self.annotate.as_ref().map(|annotate| {
            annotated::annotation(&annotate.name, &tally.symbols, &self.ranges, instructions)
        });
        Ok(Some(PassCounts {
            profile: tally.profile(),
            executed,
            annotation,
        }))
    }

    /// Parses what the plugin wrote: the counts, the executions of the watched instructions, and the annotated
    /// instructions. `None` if the data is incomplete or contradicts itself.
    fn tally(
        &mut self,
        bytes: &[u8],
        elapsed: Nanos,
    ) -> Option<(Tally, BTreeMap<u64, u64>, Vec<CountedInstruction>)> {
        let mut numbers = bytes
            .chunks_exact(8)
            .filter_map(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
        let mut number = || numbers.next();
        let mut length = || number().and_then(|number| usize::try_from(number).ok());
        if length()? as u64 != MAGIC {
            return None;
        }
        let (functions, nodes) = (length()?, length()?);
        let mut tally = Tally {
            workload: u32::try_from(length()?).ok()?,
            elapsed: elapsed.0,
            symbols: std::mem::take(&mut self.symbols),
            ..Tally::default()
        };
        for _ in 0..functions {
            let at = usize::try_from(numbers.next()?).ok()?;
            let symbol = tally.symbols.get_mut(at)?;
            (symbol.instructions, symbol.calls) = (numbers.next()?, numbers.next()?);
        }
        let low = |number: u64| u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default();
        for at in 0..nodes {
            let what = numbers.next()?;
            let (parent, function) = (low(what), low(what >> 32));
            let symbol = (function != NO_FUNCTION).then_some(function);
            let is_known = symbol.is_none_or(|symbol| (symbol as usize) < tally.symbols.len());
            if parent as usize > at || !is_known {
                return None;
            }
            tally.nodes.push(TallyNode {
                parent,
                symbol,
                own: numbers.next()?,
                calls: numbers.next()?,
                waited: numbers.next()?,
                waits: numbers.next()?,
            });
        }
        let mut watched = BTreeMap::new();
        for address in &self.watched {
            watched.insert(*address, numbers.next()?);
        }
        let mut instructions = Vec::new();
        for _ in 0..numbers.next()? {
            let symbol = usize::try_from(numbers.next()?).ok()?;
            (symbol < tally.symbols.len()).then_some(())?;
            instructions.push(CountedInstruction {
                symbol,
                address: numbers.next()?,
                executed: numbers.next()?,
                code: [numbers.next()?, numbers.next()?],
            });
        }
        let place = |number: u64| {
            let node = low(number);
            (node == NO_NODE || (node as usize) < nodes)
                .then_some((node != NO_NODE).then_some(node))
        };
        for _ in 0..numbers.next()? {
            let mut next = || place(numbers.next()?);
            let [slept, before, woken] = [next()?, next()?, next()?];
            tally.sleeps.push(TallySleep {
                slept,
                before,
                woken,
                count: numbers.next()?,
                time: numbers.next()?,
                idle: numbers.next()?,
            });
        }
        for _ in 0..numbers.next()? {
            tally.queue.push(TallyQueue {
                root: place(numbers.next()?)?,
                count: numbers.next()?,
                time: numbers.next()?,
            });
        }
        tally.idle_task = place(numbers.next()?)?;
        let idle = tally.symbols.get_mut(IDLE as usize)?;
        tally.idle = std::mem::take(&mut idle.instructions);
        Some((tally, watched, instructions))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_read_from_the_kernels_list_with_their_modules() {
        let list = b"0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\nffffffff81000000 T real\n\
            ffffffff81000010 D data\nffffffff81000020 t other\nffffffff81000020 t alias\n\
            ffffffffc0000000 t zram_slot_lock\t[zram]\n";
        let ranges = kernel_ranges(list);
        let names: Vec<&str> = ranges.iter().map(|range| range.name.as_str()).collect();
        assert_eq!(names, ["real", "other", "zram_slot_lock"]);
        assert_eq!(ranges[2].module.as_deref(), Some("zram"));
    }

    #[test]
    fn without_the_kernels_list_its_code_is_one_function_without_a_name() {
        for list in [&b""[..], b"\n", b"0000000000000000 T hidden\n"] {
            assert_eq!(kernel_ranges(list), [], "{list:?}");
        }
        let mut profiler = Profiler::new(Counted::default()).unwrap();
        let mut bytes = Vec::new();
        profiler.functions.seek(SeekFrom::Start(0)).unwrap();
        profiler.functions.read_to_end(&mut bytes).unwrap();
        let mut expected = Vec::new();
        put(
            &mut expected,
            [0, format::USER.into(), KERNEL, UNNAMED.into()],
        );
        assert!(bytes.ends_with(&expected), "{bytes:?}");
    }

    #[test]
    fn counts_that_are_cut_off_are_refused() {
        let mut profiler = Profiler::new(Counted::default()).unwrap();
        let symbols = profiler.symbols.clone();
        let mut bytes: Vec<u8> = [MAGIC, 1, 2, 0, u64::from(IDLE), 70, 0]
            .into_iter()
            .flat_map(u64::to_le_bytes)
            .collect();
        for (parent, function, own) in [(0_u32, NO_FUNCTION, 0_u64), (0, 1, 30)] {
            bytes.extend(parent.to_le_bytes());
            bytes.extend(function.to_le_bytes());
            bytes.extend(own.to_le_bytes());
            for number in [1_u64, 0, 0] {
                bytes.extend(number.to_le_bytes());
            }
        }
        for number in [
            0_u64,
            1,
            1,
            u64::from(NO_NODE),
            0,
            3,
            40,
            20,
            1,
            0,
            5,
            60,
            0,
        ] {
            bytes.extend(number.to_le_bytes());
        }
        let (tally, ..) = profiler.tally(&bytes, Nanos(100)).unwrap();
        assert_eq!((tally.idle, tally.nodes.len()), (70, 2));
        let sleep = tally.sleeps[0];
        assert_eq!(
            (sleep.slept, sleep.before, sleep.woken),
            (Some(1), None, Some(0))
        );
        let queue = tally.queue[0];
        assert_eq!((queue.root, queue.count, queue.time), (Some(0), 5, 60));
        for length in 0..bytes.len() {
            profiler.symbols = symbols.clone();
            assert_eq!(
                profiler.tally(&bytes[..length], Nanos(100)),
                None,
                "{length}"
            );
        }
    }
}
