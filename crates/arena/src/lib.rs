//! The interface between the run loop and the places where trials run.
//!
//! An arena is a place where trials run: an emulated machine, a virtual machine, or a memory cgroup of this machine. It
//! takes the subject of a trial and returns its results. The run loop uses arenas only through the trait [`Arena`], so
//! its order, resumption and stopping are tested with a scripted arena, without an emulator. The arenas are in the
//! crates `exact` (the arenas exact and vm) and `host`.
//!
//! This crate does not depend on campaigns, emulators, statistics or reports. Begin reading in [`mod@arena`] (the
//! trait), then [`trial`] (the request), [`prepared`] (a trial that is ready to run) and [`error`] (why there is no
//! record).

pub mod arena;
pub mod doctor;
pub mod error;
pub mod host;
pub mod measured;
pub mod options;
pub mod prepared;
pub mod progress;
pub mod trial;

pub use arena::{Arena, Guest};
pub use error::ArenaError;
pub use options::Options;
pub use prepared::{PreparedTrial, TrialResult};
pub use progress::{NoProgress, Progress, Step};
pub use trial::{Trial, VariantSpec};
