//! Campaign files, the plan made of them, and the loop that runs it and can be resumed.
//!
//! This crate knows nothing of emulators, scenarios' insides or reports: an arena is a trait to it, a scenario a name
//! with parameters. Begin reading in [`campaign`] (what is asked for), then [`plan`] (in which order) and [`run()`]
//! (the loop).

pub mod campaign;
mod command;
mod deepen;
pub mod event;
pub mod file;
mod forecast;
mod inert;
pub mod plan;
mod repeat;
mod run;
mod sampling;
mod screening;
mod standing;
mod variants;

pub use campaign::{
    Campaign, DEFAULT_CAP, DEFAULT_SEEDS, Observe, Sampling, ScenarioSpec, Until, even_looks,
    seeds_for,
};
pub use command::{maker, shell};
pub use deepen::MOST_OBSERVED;
pub use event::{Event, Nobody, Tally, Watch};
pub use file::{FileError, Problem, ScenarioWords, Vocabulary, reference, without_spaces};
pub use forecast::{Basis, CellForecast, Forecast, UNKNOWN_TRIAL, forecast};
pub use inert::inert;
pub use plan::{Cell, PlannedTrial};
pub use repeat::{RepeatError, prepare_again, run_again};
pub use run::{Options, Outcome, RunError, run};
pub use screening::screening;
pub use standing::StateWriter;
pub use variants::{
    DEFAULT_SOURCE, NameTaken, NotAPair, VariantChange, built_kernel, pair, variants,
};
