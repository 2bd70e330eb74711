//! Constants of the three files that the plugin and `src/profiler.rs` exchange: the file of functions, the file of
//! programs and the file of counts. Formats: `src/profiler.rs`.

/// First number of each file: the bytes "pgprof1\0".
pub const MAGIC: u64 = 0x0031_666f_7270_6770;

/// Number of the function under which all kernel code without a symbol is counted.
pub const UNNAMED: u32 = 0;
/// Number of the function under which all code of programs is counted.
pub const USER: u32 = 1;
/// Number of the function under which the idle loop, which keeps the CPU from halting, is counted.
pub const IDLE: u32 = 2;
/// Lowest number of a function with a symbol. The numbers below it are [`UNNAMED`], [`USER`] and [`IDLE`].
pub const NAMED: u32 = 3;
/// Function number of a node that is the root of the tree of a task.
pub const NO_FUNCTION: u32 = u32::MAX;

/// Highest bit of an address. It is set in all addresses of the kernel and in none of programs, so this value separates
/// both. Source: Linux `Documentation/arch/x86/x86_64/mm.rst`.
pub const KERNEL: u64 = 1 << 63;

/// Flag of a range of addresses: a function begins at its start.
pub const STARTS: u32 = 1;
/// Flag of a range of addresses: its start is an entry of the kernel for a fault.
pub const FAULT: u32 = 2;
/// Flag of a range of addresses: its start is an entry of the kernel for an interrupt.
pub const INTERRUPT: u32 = 4;
/// Flag of a range of addresses: its start is executed when the kernel switches tasks.
pub const SWITCH: u32 = 8;
/// Flag of a range of addresses: its start is the first code of a new task.
pub const FORK: u32 = 16;
/// Flag of a range of addresses: its start is executed when the kernel copies an address space for a new task.
pub const COPY: u32 = 32;
/// Flag of a range of addresses: its start is executed when a new task may run for the first time.
pub const WAKE: u32 = 64;
/// Flag of a range of addresses: its start is executed when a task replaces its program by another one.
pub const EXECUTE: u32 = 128;

/// Flag of a range of addresses: its start is executed when the kernel handles a page fault.
pub const FAULTS: u32 = 1 << 8;
/// Flag of a range of addresses: its start is executed when a page fault is of a page in swap.
pub const SWAPS: u32 = 1 << 9;
/// Flag of a range of addresses: its start is executed when a page fault is of a page of a file.
pub const FILE: u32 = 1 << 10;
/// Flag of a range of addresses: its start is executed when a page is read from a device.
pub const READS: u32 = 1 << 11;
/// Flag of a range of addresses: its start is executed when a place in swap is about to be read.
pub const PREPARES: u32 = 1 << 12;
/// Flag of a range of addresses: its start is executed when an entry of a page table gets a place in swap.
pub const BIND: u32 = 1 << 13;
/// Flag of a range of addresses: its code writes entries of page tables to map pages.
pub const MAPS: u32 = 1 << 14;
/// Flag of a range of addresses: its code removes entries of page tables to evict pages.
pub const UNMAPS: u32 = 1 << 15;
/// Flag of a range of addresses: its code removes an entry of a page table, to evict the page if [`UNMAPS`] code calls it.
pub const CLEARS: u32 = 1 << 16;
/// Flag of a range of addresses: its code reads and clears accessed bits of entries of page tables.
pub const CHECKS: u32 = 1 << 17;
/// Flag of a range of addresses: its code writes the swap map.
pub const COUNTS: u32 = 1 << 18;
/// Flags that matter for all code of a function, if references are recorded.
pub const ROLES: u32 = MAPS | UNMAPS | CLEARS | CHECKS | COUNTS;
