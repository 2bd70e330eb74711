//! `memory.events` of a cgroup: how often its limits were hit (Documentation/admin-guide/cgroup-v2.rst).

use pagetide_system::Syntax;

use super::{Owner, Source, keys};

/// Description of `memory.events` and its numbers.
pub(super) static SOURCE: Source = Source {
    name: "memory.events",
    of: Owner::Group,
    files: &[("", "memory.events")],
    syntax: Syntax::KeyValue,
    over_time: &[],
    keys: keys! {
        Counter Count "low" "reclaims of the group although below its low protection";
        Counter Count "high" "tasks throttled above the high limit";
        Counter Count "max" "charges that hit the limit";
        Counter Count "oom" "times the group ran out of memory";
        Counter Count "oom_kill" "processes of the group killed for lack of memory";
        Counter Count "oom_group_kill" "times the whole group was killed";
    },
};
