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
/// Number of a node that is not known.
pub const NO_NODE: u32 = u32::MAX;

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
/// Flag of a range of addresses: its code writes the table of swap, which newer kernels have instead of the swap map.
pub const ENTERS: u32 = 1 << 21;
/// Flag of a range of addresses: its code reads pages from swap through [`ENTERS`] code, which otherwise allocates places.
pub const FILLS: u32 = 1 << 22;
/// Flag of a range of addresses: its start is executed before DAMON looks at pages of physical memory.
pub const MONITORS: u32 = 1 << 23;
/// Flag of a range of addresses: its start is executed when the current task ends.
pub const EXITS: u32 = 1 << 24;
/// Flag of a range of addresses: its start is executed when the current task is about to leave the CPU for the last time.
pub const DIES: u32 = 1 << 25;
/// Flag of a range of addresses: its code sets the state of a task that it wakes.
pub const WAKES: u32 = 1 << 19;
/// Flag of a range of addresses: its start is executed when mappings of the current task's address space are about to be
/// removed.
pub const REMOVES: u32 = 1 << 20;
/// Flags that matter for all code of a function, if references are recorded.
pub const ROLES: u32 = MAPS | UNMAPS | CLEARS | CHECKS | COUNTS | ENTERS | FILLS;

/// Names of the places in the kernel's structures that the plugin needs, in the order in which it receives them: the
/// structure, and then members. A place is given in bytes from the start of the structure.
pub const PLACES: [&str; 31] = [
    "task_struct.thread.sp",
    "task_struct.__state",
    "task_struct.mm",
    "mm_struct.mm_mt.ma_root",
    "mm_struct.start_brk",
    "mm_struct.brk",
    "mm_struct.start_stack",
    "mm_struct.context.vdso",
    "vm_area_struct.vm_start",
    "vm_area_struct.vm_end",
    "vm_area_struct.vm_pgoff",
    "vm_area_struct.vm_file",
    "file.f_path.dentry",
    "dentry.d_parent",
    "dentry.d_name.name",
    "maple_node.mr64.pivot",
    "maple_node.mr64.slot",
    "maple_node.ma64.pivot",
    "maple_node.ma64.slot",
    "task_struct.worker_private",
    "mm_struct.pgd",
    "kthread.data",
    "damon_ctx.attrs.aggr_interval",
    "damon_ctx.adaptive_targets",
    "damon_target.pid",
    "damon_target.regions_list",
    "damon_target.list",
    "damon_region.ar",
    "damon_region.nr_accesses",
    "damon_region.last_nr_accesses",
    "damon_region.list",
];
/// Number of places that all kernels have. The others are [`NO_PLACE`] if a kernel does not have them.
pub const NEEDED: usize = 19;
/// Place that a kernel does not have.
pub const NO_PLACE: u64 = u64::MAX;
/// Indices in [`PLACES`]. This one: where a task's stack pointer is saved.
pub const AT_STACK: usize = 0;
/// The state of a task.
pub const AT_STATE: usize = 1;
/// The address space of a task.
pub const AT_MM: usize = 2;
/// The root of the tree of an address space's mappings.
pub const AT_ROOT: usize = 3;
/// Start of the heap.
pub const AT_BRK_START: usize = 4;
/// End of the heap.
pub const AT_BRK: usize = 5;
/// An address on the first stack of an address space.
pub const AT_STACK_START: usize = 6;
/// Start of the kernel's code for programs.
pub const AT_VDSO: usize = 7;
/// First address of a mapping.
pub const AT_START: usize = 8;
/// Address after the last one of a mapping.
pub const AT_END: usize = 9;
/// Page of the file with which a mapping begins.
pub const AT_OFFSET: usize = 10;
/// File of a mapping.
pub const AT_FILE: usize = 11;
/// Entry of a file in its folder.
pub const AT_DENTRY: usize = 12;
/// Folder that contains an entry.
pub const AT_PARENT: usize = 13;
/// Name of an entry.
pub const AT_NAME: usize = 14;
/// Keys of a node of a tree.
pub const AT_PIVOT: usize = 15;
/// Entries of a node of a tree.
pub const AT_SLOT: usize = 16;
/// Keys of a node of a tree that also has the sizes of gaps.
pub const AT_ARANGE_PIVOT: usize = 17;
/// Entries of such a node.
pub const AT_ARANGE_SLOT: usize = 18;
/// What a thread of the kernel needs for itself.
pub const AT_WORKER: usize = 19;
/// Page table of an address space.
pub const AT_TABLE: usize = 20;
/// The argument of a thread of the kernel.
pub const AT_DATA: usize = 21;
/// Time after which DAMON adds up what it saw, in microseconds.
pub const AT_INTERVAL: usize = 22;
/// List of what a thread of DAMON watches: processes, or one element for physical memory.
pub const AT_TARGETS: usize = 23;
/// Process that is watched; 0 for physical memory.
pub const AT_TARGET_PID: usize = 24;
/// List of regions.
pub const AT_REGIONS: usize = 25;
/// Place of a target in its list.
pub const AT_TARGET_LIST: usize = 26;
/// First address of a region and the address after its last one.
pub const AT_ADDRESSES: usize = 27;
/// Accesses since DAMON added up, a number of 32 bits.
pub const AT_ACCESSES: usize = 28;
/// Accesses when DAMON last added up, a number of 32 bits.
pub const AT_LAST_ACCESSES: usize = 29;
/// Place of a region in its list.
pub const AT_REGION_LIST: usize = 30;
