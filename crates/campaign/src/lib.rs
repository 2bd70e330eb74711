//! Campaign files, the plan made of them, and the loop that runs it and can be resumed.
//!
//! This crate knows nothing of emulators, scenarios' insides or reports: an arena is a trait to it, a scenario a name
//! with parameters. Begin reading in [`arena`] (the seam).

pub mod arena;
pub mod campaign;
pub mod plan;

pub use arena::{Arena, ArenaError, Finding, Progress, Step, Trial, Unwatched, VariantSpec};
pub use campaign::{Campaign, Observe, Sampling, ScenarioSpec, Until, even_looks};
pub use plan::{Cell, Plan, Planned};
