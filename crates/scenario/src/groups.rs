//! Memory cgroups (version 2) of a workload, called groups: their description as text, their creation, requests to
//! reclaim from them, and their counters. Source: kernel `Documentation/admin-guide/cgroup-v2.rst`, "Memory".
//!
//! A scenario describes each group by a [`GroupSpec`], refuses impossible groups with [`check`] before anything boots,
//! creates them as [`MemoryGroup`]s, and lets processes join them. A [`Watch`] reads the counters of all groups before
//! and after the workload and over time, and makes the requests to reclaim. A [`GroupLog`] only reads the counters.

mod created;
mod log;
mod settings;
mod spec;
mod watch;

pub(crate) use created::MemoryGroup;
pub(crate) use log::{GroupLog, GroupUse};
pub use settings::GROUP_SETTING;
pub(crate) use settings::{names, of_trial};
pub(crate) use spec::{GroupSpec, Limit, ReclaimRequest, check, optional};
pub(crate) use watch::{MadeRequest, Watch};
