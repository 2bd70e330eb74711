//! The language of workloads: what processes map, touch, advise and fork, in which groups, and on what machine.
//!
//! A person writes a [`Workload`] as TOML. The controller checks it, and passes it to the guest in canonical form, where
//! the scenario `workload` runs it. A search for workloads that a kernel handles badly works on the same types.
//!
//! This crate does not depend on scenarios, arenas or campaigns: a workload is data with bounds. Begin reading at
//! [`Workload`], then `phase.rs`, then `check.rs`, which says what is refused.

mod bounds;
mod c;
mod check;
mod count;
mod error;
mod form;
mod group;
pub mod guide;
mod instances;
mod machine;
mod phase;
mod process;
mod segment;
mod size;
mod standstill;
mod text;
mod workload;

pub use bounds::{
    MAX_ACCESSES, MAX_DEPTH, MAX_FILES, MAX_GROUPS, MAX_NAMES, MAX_PHASES, MAX_PROCESSES,
    MAX_SEGMENTS, MAX_TEXT, MAX_TIME,
};
pub use c::{CaseMachine, c_file};
pub use check::Needed;
pub use count::Count;
pub use error::WorkloadError;
pub use form::plain_time;
pub use group::Group;
pub use instances::{group_names, instances, started};
pub use machine::Machine;
pub use phase::{Access, Advice, Amount, By, Phase};
pub use process::Process;
pub use segment::{Kind, PageSize, Segment};
pub use size::{Limit, Size, SizeError};
pub use workload::Workload;
