//! The seam between the run loop and the places where trials run.
//!
//! An arena is a bounded place where a trial runs: it takes a trial's subject and gives back its results, and never lets a
//! workload reach the machine around it. Whoever runs trials knows arenas only as the trait [`Arena`], so that order,
//! resumption and stopping are tested with a scripted arena and no emulator; each arena is a crate of its own.
//!
//! This crate knows nothing of campaigns, emulators, statistics or reports. Begin reading in [`mod@arena`] (the trait), then
//! [`trial`] (what is asked for), [`prepared`] (what is ready to run) and [`error`] (why there is no record).

pub mod arena;
pub mod doctor;
pub mod error;
pub mod host;
pub mod options;
pub mod prepared;
pub mod progress;
pub mod trial;

pub use arena::{Arena, Finding, Guest};
pub use error::ArenaError;
pub use options::Options;
pub use prepared::PreparedTrial;
pub use progress::{NoProgress, Progress, Step};
pub use trial::{Trial, VariantSpec};
