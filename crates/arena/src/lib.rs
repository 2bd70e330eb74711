//! Bounded places where a trial runs.
//!
//! An arena takes a trial's subject and gives back its results; it never lets a workload reach the machine around it.
//! Today there is one: [`exact`], a whole kernel in an emulator that counts instructions instead of time, bit for bit
//! reproducible.
//!
//! This crate knows nothing of statistics or reports. Begin reading in [`exact`] (how a trial is prepared and run), then
//! [`exact::machine`] (what the emulated machine is) and [`exact::snapshot`] (how a booted guest is kept).

pub mod doctor;
pub mod error;
pub mod exact;
pub mod host;

pub use error::ExactError;
pub use exact::Exact;
