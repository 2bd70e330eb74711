//! `numastat` of a memory node: where allocations were served (Documentation/admin-guide/numastat.rst).

use pagetide_system::Syntax;

use super::{Owner, Source, keys};

/// Description of a node's `numastat` and its numbers.
pub(super) static SOURCE: Source = Source {
    name: "node_numastat",
    of: Owner::Node,
    files: &[("", "numastat")],
    syntax: Syntax::KeyValue,
    over_time: &[],
    keys: keys! {
        Counter Pages "numa_hit" "pages allocated on this node as intended";
        Counter Pages "numa_miss" "pages allocated on this node although another was preferred";
        Counter Pages "numa_foreign" "pages intended for this node that were allocated on another";
        Counter Pages "interleave_hit" "pages allocated on this node by interleaving, as intended";
        Counter Pages "local_node" "pages allocated on this node by its own CPUs";
        Counter Pages "other_node" "pages allocated on this node by CPUs of other nodes";
    },
};
