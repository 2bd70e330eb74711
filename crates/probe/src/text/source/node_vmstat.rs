//! `vmstat` of a memory node: events and amounts of the node, mostly in pages (mm/vmstat.c, drivers/base/node.c).

use pagetide_system::Syntax;

use super::{Owner, Source, keys};

/// Description of a node's `vmstat` and its numbers.
pub(super) static SOURCE: Source = Source {
    name: "node_vmstat",
    of: Owner::Node,
    files: &[("", "vmstat")],
    syntax: Syntax::KeyValue,
    over_time: &[
        "nr_free_pages",
        "nr_inactive_anon",
        "nr_active_anon",
        "nr_inactive_file",
        "nr_active_file",
        "pgdemote_kswapd",
        "pgdemote_direct",
        "pgpromote_success",
    ],
    keys: keys! {
        Gauge Pages "nr_free_pages" "free pages of the node, per-CPU lists not included";
        Gauge Pages "nr_inactive_anon" "anonymous and shared memory on the node's inactive list (MGLRU: older generations)";
        Gauge Pages "nr_active_anon" "anonymous and shared memory on the node's active list (MGLRU: younger generations)";
        Gauge Pages "nr_inactive_file" "page cache on the node's inactive list";
        Gauge Pages "nr_active_file" "page cache on the node's active list";
        Gauge Pages "nr_unevictable" "pages of the node that cannot be reclaimed, such as locked ones";
        Gauge Pages "nr_anon_pages" "anonymous pages of the node that are mapped into page tables";
        Gauge Pages "nr_file_pages" "page cache on the node, shared memory and swap cache included";
        Counter Pages "numa_hit" "pages allocated on this node as intended";
        Counter Pages "numa_miss" "pages allocated on this node although another was preferred";
        Counter Pages "numa_foreign" "pages intended for this node that were allocated on another";
        Counter Pages "interleave_hit" "pages allocated on this node by interleaving, as intended";
        Counter Pages "local_node" "pages allocated on this node by its own CPUs";
        Counter Pages "other_node" "pages allocated on this node by CPUs of other nodes";
        Counter Count "workingset_refault_anon" "anonymous pages evicted from this node that came back";
        Counter Count "workingset_refault_file" "file pages evicted from this node that were read again";
        Counter Pages "pgdemote_kswapd" "pages that kswapd moved from this node to a lower tier";
        Counter Pages "pgdemote_direct" "pages that allocating tasks moved from this node to a lower tier";
        Counter Pages "pgdemote_khugepaged" "pages that khugepaged moved from this node to a lower tier";
        Counter Pages "pgdemote_proactive" "pages moved from this node to a lower tier on request through memory.reclaim";
        Counter Pages "pgpromote_success" "pages moved from a lower tier to this node";
        Counter Pages "pgpromote_candidate" "pages of a lower tier found hot enough to be moved to this node";
    },
};
