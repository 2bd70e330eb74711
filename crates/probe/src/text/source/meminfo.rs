//! `/proc/meminfo`: memory statistics of the whole machine, in bytes (Documentation/filesystems/proc.rst).

use pagetide_system::Syntax;

use super::{Owner, Source, keys};

/// Description of `/proc/meminfo` and its numbers.
pub(super) static SOURCE: Source = Source {
    name: "meminfo",
    of: Owner::Machine,
    files: &[("", "proc/meminfo")],
    syntax: Syntax::KeyColonKib,
    over_time: &[
        "MemFree",
        "MemAvailable",
        "Cached",
        "SwapCached",
        "SwapFree",
        "AnonPages",
        "Mapped",
        "Dirty",
        "Writeback",
        "Slab",
        "PageTables",
        "AnonHugePages",
    ],
    keys: keys! {
        Gauge Bytes "MemTotal" "memory the page allocator manages";
        Gauge Bytes "MemFree" "free memory";
        Gauge Bytes "MemAvailable" "the kernel's estimate of what can be had without swapping";
        Gauge Bytes "Buffers" "page cache of block devices";
        Gauge Bytes "Cached" "page cache and shared memory, swap cache not included";
        Gauge Bytes "SwapCached" "memory that still has a swap slot";
        Gauge Bytes "Active" "memory on active lists";
        Gauge Bytes "Inactive" "memory on inactive lists";
        Gauge Bytes "Active(anon)" "anonymous and shared memory on active lists";
        Gauge Bytes "Inactive(anon)" "anonymous and shared memory on inactive lists";
        Gauge Bytes "Active(file)" "page cache on active lists";
        Gauge Bytes "Inactive(file)" "page cache on inactive lists";
        Gauge Bytes "Unevictable" "memory that cannot be reclaimed, such as locked pages";
        Gauge Bytes "Mlocked" "memory locked by mlock";
        Gauge Bytes "SwapTotal" "capacity of all swap areas";
        Gauge Bytes "SwapFree" "what of it is free";
        Gauge Bytes "Zswap" "compressed memory zswap uses";
        Gauge Bytes "Zswapped" "memory zswap holds, before compression";
        Gauge Bytes "Dirty" "file memory waiting to be written";
        Gauge Bytes "Writeback" "memory being written";
        Gauge Bytes "AnonPages" "anonymous memory in page tables";
        Gauge Bytes "Mapped" "file memory in page tables";
        Gauge Bytes "Shmem" "shared memory and tmpfs";
        Gauge Bytes "KReclaimable" "kernel memory that can be reclaimed";
        Gauge Bytes "Slab" "kernel objects";
        Gauge Bytes "SReclaimable" "kernel objects that can be shrunk";
        Gauge Bytes "SUnreclaim" "kernel objects that cannot be shrunk";
        Gauge Bytes "KernelStack" "stacks of tasks in the kernel";
        Gauge Bytes "PageTables" "page tables";
        Gauge Bytes "Percpu" "memory of per-CPU variables";
        Gauge Bytes "VmallocUsed" "memory mapped by vmalloc";
        Gauge Bytes "CommitLimit" "what may be promised under strict overcommit";
        Gauge Bytes "Committed_AS" "what is promised";
        Gauge Bytes "AnonHugePages" "anonymous memory in huge pages";
        Gauge Count "HugePages_Total" "huge pages in the pool";
        Gauge Count "HugePages_Free" "of those, free ones";
        Gauge Bytes "Hugepagesize" "size of the default huge page";
        Gauge Bytes "Hugetlb" "memory in huge-page pools of all sizes";
    },
};
