//! `meminfo` of a memory node: memory statistics of the node, in bytes (drivers/base/node.c).

use pagetide_system::Syntax;

use super::{Owner, Source, keys};

/// Description of a node's `meminfo` and its numbers.
pub(super) static SOURCE: Source = Source {
    name: "node_meminfo",
    of: Owner::Node,
    files: &[("", "meminfo")],
    syntax: Syntax::NodeKeyColonKib,
    over_time: &["MemFree", "AnonPages", "FilePages", "SwapCached", "Slab"],
    keys: keys! {
        Gauge Bytes "MemTotal" "memory of the node that the page allocator manages";
        Gauge Bytes "MemFree" "free memory of the node";
        Gauge Bytes "MemUsed" "memory of the node that is not free";
        Gauge Bytes "SwapCached" "memory of the node that still has a swap slot";
        Gauge Bytes "Active" "memory on the node's active lists";
        Gauge Bytes "Inactive" "memory on the node's inactive lists";
        Gauge Bytes "AnonPages" "anonymous memory of the node in page tables";
        Gauge Bytes "FilePages" "page cache on the node, shared memory and swap cache included";
        Gauge Bytes "Mapped" "file memory of the node in page tables";
        Gauge Bytes "Shmem" "shared memory and tmpfs on the node";
        Gauge Bytes "Dirty" "file memory of the node waiting to be written";
        Gauge Bytes "Writeback" "memory of the node being written";
        Gauge Bytes "Slab" "kernel objects on the node";
        Gauge Bytes "PageTables" "page tables on the node";
        Gauge Bytes "KernelStack" "stacks of tasks on the node";
        Gauge Bytes "Unevictable" "memory of the node that cannot be reclaimed, such as locked pages";
        Gauge Bytes "Mlocked" "memory of the node locked by mlock";
        Gauge Bytes "AnonHugePages" "anonymous memory of the node in huge pages";
        Gauge Count "HugePages_Total" "huge pages in the node's pool";
        Gauge Count "HugePages_Free" "of those, free ones";
    },
};
