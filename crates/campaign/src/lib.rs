//! Campaign files, the plan made of them, and the loop that runs it and can be resumed.
//!
//! This crate knows nothing of emulators, scenarios' insides or reports: an arena is a trait to it, a scenario a name
//! with parameters. Begin reading in [`campaign`] (what is asked for), then [`plan`] (in which order) and [`run()`]
//! (the loop).

pub mod bisect;
mod calibration;
pub mod campaign;
mod command;
mod deepen;
pub mod event;
pub mod file;
mod forecast;
mod futility;
mod inert;
pub mod matrix;
pub mod plan;
mod program;
mod repeat;
mod request;
mod run;
mod sampling;
mod site;
pub mod squeeze;
mod standing;
mod variants;
mod vary;

pub use campaign::{
    Campaign, DEFAULT_CAP, DEFAULT_SEEDS, Observe, Sampling, ScenarioSpec, Until, even_looks,
};
pub use command::maker;
pub use deepen::MOST_OBSERVED;
pub use event::{Event, Nobody, Tally, Watch};
pub use file::{FileError, Problem, ScenarioWords, Vocabulary, reference, without_spaces};
pub use forecast::{Basis, CellForecast, Forecast, KernelForecast, UNKNOWN_TRIAL, forecast};
pub use futility::Futile;
pub use inert::inert;
pub use plan::{Cell, PlannedTrial};
pub use program::{CommandLine, OwnProgram, PROGRAM, ProgramFiles, ProgramPlace, ProgramSpec};
pub use repeat::{RepeatError, Repetitions, repeat};
pub use request::{Adjustment, CONTROL, PATCHED, Request, RequestError};
pub use run::{Options, Outcome, RunError, run};
pub use site::Site;
pub use standing::StateWriter;
pub use variants::{NameTaken, NotAPair, VariantChange, pair};
pub use vary::Vary;
