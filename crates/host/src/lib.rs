//! Trials on the running kernel: a memory group, swap and settings of our own, and the undoing of every global change.
//!
//! Each change to the machine is written to a [`Journal`] and synced to disk before it is made. A
//! [`guardian`] process undoes the changes when the tool is gone, however it ended. The next
//! [`Session::start`] undoes what a killed guardian or a power cut left. A change is undone only where the value of the
//! tool still stands.
//!
//! This crate does not depend on campaigns, emulators or statistics. Begin reading in [`session`], then [`change`].

pub mod change;
pub mod conditions;
pub mod error;
pub mod foreign;
pub mod group;
pub mod group_files;
pub mod guardian;
pub mod hierarchy;
pub mod journal;
pub mod loop_device;
pub mod process;
pub mod session;
pub mod setting;
pub mod state;
pub mod swap_device;
pub mod sweep;
mod undo;

pub use change::{Change, Left};
pub use conditions::{Conditions, Doubt};
pub use error::HostError;
pub use foreign::ForeignUse;
pub use group::{Group, GroupUse, Limits};
pub use hierarchy::Hierarchy;
pub use journal::Journal;
pub use session::Session;
pub use setting::apply;
pub use state::StateFolder;
pub use swap_device::{SwapDevice, SwapOn};
pub use sweep::{Swept, sweep};
