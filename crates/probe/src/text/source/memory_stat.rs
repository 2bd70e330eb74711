//! `memory.stat` of a cgroup: amounts in bytes, and events (Documentation/admin-guide/cgroup-v2.rst).

use pagetide_system::Syntax;

use super::{Owner, Source, keys};

/// Description of `memory.stat` and its numbers.
pub(super) static SOURCE: Source = Source {
    name: "memory.stat",
    of: Owner::Group,
    files: &[("", "memory.stat")],
    syntax: Syntax::KeyValue,
    over_time: &[
        "anon",
        "file",
        "swapcached",
        "inactive_anon",
        "active_anon",
        "inactive_file",
        "active_file",
        "pgfault",
        "pgmajfault",
        "pgscan",
        "pgsteal",
        "workingset_refault_anon",
        "workingset_refault_file",
    ],
    keys: keys! {
        Gauge Bytes "anon" "anonymous memory";
        Gauge Bytes "file" "page cache, shared memory included";
        Gauge Bytes "kernel" "kernel memory";
        Gauge Bytes "shmem" "shared memory";
        Gauge Bytes "file_mapped" "file memory in page tables";
        Gauge Bytes "file_dirty" "file memory waiting to be written";
        Gauge Bytes "file_writeback" "memory being written";
        Gauge Bytes "swapcached" "memory that still has a swap slot";
        Gauge Bytes "inactive_anon" "anonymous memory on the inactive list";
        Gauge Bytes "active_anon" "anonymous memory on the active list";
        Gauge Bytes "inactive_file" "page cache on the inactive list";
        Gauge Bytes "active_file" "page cache on the active list";
        Gauge Bytes "unevictable" "memory that cannot be reclaimed";
        Gauge Bytes "zswap" "compressed memory in zswap";
        Gauge Bytes "zswapped" "memory held by zswap, before compression";
        Counter Count "pgfault" "page faults";
        Counter Count "pgmajfault" "page faults that waited for I/O";
        Counter Pages "pgscan" "pages scanned";
        Counter Pages "pgsteal" "pages reclaimed";
        Counter Pages "pgscan_kswapd" "pages scanned by kswapd";
        Counter Pages "pgscan_direct" "pages scanned by the group's own tasks";
        Counter Pages "pgscan_khugepaged" "pages scanned by khugepaged";
        Counter Pages "pgscan_proactive" "pages scanned on request through memory.reclaim";
        Counter Pages "pgsteal_kswapd" "pages reclaimed by kswapd";
        Counter Pages "pgsteal_direct" "pages reclaimed by the group's own tasks";
        Counter Pages "pgsteal_khugepaged" "pages reclaimed by khugepaged";
        Counter Pages "pgsteal_proactive" "pages reclaimed on request through memory.reclaim";
        Counter Pages "pgrefill" "pages scanned on the active list";
        Counter Pages "pgactivate" "pages moved to the active list";
        Counter Pages "pgdeactivate" "pages moved to the inactive list";
        Counter Count "workingset_refault_anon" "evicted anonymous pages that came back";
        Counter Count "workingset_refault_file" "evicted file pages that were read again";
        Counter Count "workingset_activate_anon" "refaulted anonymous pages that went to the active list at once";
        Counter Count "workingset_activate_file" "refaulted file pages that went to the active list at once";
        Counter Count "workingset_restore_anon" "refaulted anonymous pages that had been in the workingset before";
        Counter Count "workingset_restore_file" "refaulted file pages that had been in the workingset before";
        Counter Pages "zswpin" "pages read back from zswap";
        Counter Pages "zswpout" "pages taken up by zswap";
        Counter Pages "zswpwb" "pages zswap wrote back";
        Counter Count "thp_fault_alloc" "huge pages given at a fault";
        Counter Count "thp_collapse_alloc" "huge pages allocated to collapse small ones into";
    },
};
