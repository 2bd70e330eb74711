//! Trials on the running kernel: a memory cgroup, swap and settings of our own, and the undoing of every global change.
//!
//! Each change to the machine is written to a [`Journal`] and synced to disk before it is made. A [`guardian`] process
//! undoes the changes when the tool is gone, however it ended. The next [`Session::start`] undoes what a killed
//! guardian or a power cut left. A setting is restored only if it still has the value that the tool wrote.
//!
//! This crate does not depend on campaigns, emulators or statistics. Begin reading in [`arena`] (trials), then
//! [`session`] and [`change`] (undoing).

pub mod arena;
pub mod change;
pub mod conditions;
pub mod doctor;
pub mod error;
pub mod foreign;
pub mod group;
pub mod group_files;
pub mod guardian;
pub mod hierarchy;
mod identity;
pub mod journal;
mod kernel_log;
mod loop_control;
mod loop_device;
mod observer;
mod plan;
mod proactive;
pub mod process;
mod program_root;
pub mod refusal;
mod region;
pub mod session;
pub mod setting;
pub mod state;
pub mod swap_device;
mod swap_header;
pub mod sweep;
mod topology;
mod tracing;
mod trial;
mod undo;
mod workload;

pub use arena::Host;
pub use change::{Change, Left};
pub use conditions::{Conditions, Doubt};
pub use error::HostError;
pub use foreign::ForeignUse;
pub use group::{Group, GroupUse, Limits};
pub use hierarchy::Hierarchy;
pub use journal::Journal;
pub use refusal::Refusal;
pub use session::Session;
pub use setting::apply;
pub use state::StateFolder;
pub use swap_device::{SwapDevice, SwapOn};
pub use sweep::{Swept, sweep};

/// If the command line asks for the guardian or the workload's process, does its whole work, then returns true or
/// exits. Otherwise does nothing and returns false. Must be called at the start of `main`, before any thread is
/// started, by each program that opens the arena.
pub fn serve_if_asked() -> bool {
    workload::serve_if_asked() || guardian::serve_if_asked()
}
