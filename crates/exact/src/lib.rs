//! The exact arena: a whole kernel in an emulator that counts instructions instead of time.
//!
//! The same subject gives the same results, bit for bit, on any machine and under any load, because nothing in the guest
//! depends on the host: see [`machine`] for the choices, and `pagetide_guest::idle` and [`clock`] for the two that mattered
//! most.
//!
//! This crate knows nothing of campaigns, statistics or reports. Begin reading in [`exact`] (how a trial is prepared and
//! run), then [`machine`] (what the emulated machine is) and [`snapshot`] (how a booted guest is kept).

pub mod boot;
pub mod clock;
pub mod doctor;
pub mod emulator;
pub mod error;
mod estimate;
pub mod exact;
mod functions;
pub mod guard;
pub mod handover;
mod headroom;
pub mod initrd;
pub mod machine;
mod making;
mod measured;
pub mod memory;
pub mod monitor;
pub mod place;
mod processor;
pub mod program;
pub mod seal;
pub mod snapshot;
pub mod trial;

pub use error::ExactError;
pub use exact::Exact;
