//! The exact arena: a whole kernel in an emulator that counts instructions instead of time.
//!
//! The same subject gives the same results, bit for bit, on any machine and under any load, because nothing in the
//! guest depends on the host. [`machine`] lists the choices; `pagetide_guest::idle` and [`clock`] have the two that
//! mattered most.
//!
//! This crate does not depend on campaigns, statistics or reports. Start reading in [`exact`] (preparing and running a
//! trial), then [`machine`] (the emulated machine) and [`snapshot`] (storing a booted guest).

mod able;
mod annotated;
pub mod boot;
mod btf;
pub mod clock;
mod contents;
mod disks;
pub mod doctor;
pub mod emulator;
pub mod emulators;
pub mod error;
mod estimate;
pub mod exact;
mod features;
mod filesystem_image;
mod functions;
pub mod guard;
pub mod handover;
mod headroom;
pub mod initrd;
mod kernels;
mod layout;
mod limit;
mod lock;
pub mod machine;
mod making;
pub mod memory;
mod modules;
pub mod monitor;
mod nodes;
pub mod place;
mod preparation;
mod processor;
pub mod profiler;
pub mod program;
mod ranges;
pub mod recipe;
pub mod seal;
mod setting;
pub mod slow;
pub mod snapshot;
mod tiers;
pub mod timing;
pub mod trial;
pub mod turns;
mod watched;

pub use error::ExactError;
pub use exact::Exact;
