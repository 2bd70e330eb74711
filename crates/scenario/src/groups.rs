//! Memory control groups (version 2) of a workload: their description as text, their creation, the requests to reclaim
//! from them, and their counters. Source: kernel `Documentation/admin-guide/cgroup-v2.rst`, "Memory".
//!
//! A scenario describes each group by a [`GroupSpec`], refuses impossible groups with [`check`] before anything boots,
//! creates them as [`MemoryGroup`]s, and lets processes join them. A [`GroupLog`] reads the counters of all groups
//! before and after the workload, and over time.

mod created;
mod log;
mod spec;

pub(crate) use created::{MemoryGroup, Reclaimed};
pub(crate) use log::{GroupLog, GroupUse};
pub(crate) use spec::{GroupSpec, Limit, check, needs, optional};
