//! Campaign files, the plan of trials made from them, and the loop that runs the plan and can resume it.
//!
//! This crate does not depend on emulators, on the code of scenarios, or on reports: an arena is a trait, and a
//! scenario is a name with parameters. Start reading in [`campaign`] (the request), then [`plan`] (the order of trials)
//! and [`run()`] (the loop).

mod annotate;
mod batch;
pub mod bisect;
mod calibration;
pub mod campaign;
mod command;
mod deepen;
pub mod event;
pub mod file;
mod finish;
mod forecast;
mod futility;
mod host;
mod inert;
mod locked;
pub mod matrix;
pub mod plan;
mod program;
mod repeat;
mod request;
mod run;
mod sampling;
mod settling;
mod several;
mod shard;
mod shard_plan;
mod site;
pub mod squeeze;
mod standing;
mod swaps;
mod variants;
mod vary;
mod zoo;

pub use annotate::{AnnotatedPass, annotate};
pub use batch::{BatchFolder, Cluster, ClusterError, Elsewhere, Node, TaskError, TaskTrial, work};
pub use campaign::{
    Campaign, DEFAULT_CAP, DEFAULT_SEEDS, Observe, Sampling, ScenarioSpec, Until, even_looks,
};
pub use command::maker;
pub use deepen::MAX_OBSERVED;
pub use event::{Event, EventListener, Nobody, Tally};
pub use file::{
    FileError, Problem, ScenarioWords, Vocabulary, read as read_campaign, read_workload, reference,
    without_spaces,
};
pub use forecast::{Basis, CellForecast, Forecast, KernelForecast, UNKNOWN_TRIAL, forecast};
pub use futility::Futile;
pub use host::{DECIDING, RUNNING};
pub use inert::inert;
pub use plan::{Cell, PlannedTrial};
pub use program::{
    BesideLimits, CommandLine, NoValue, OwnProgram, PROGRAM, ProgramFiles, ProgramPlace,
    ProgramSpec, WORKLOAD,
};
pub use repeat::{RepeatError, Repetitions, repeat};
pub use request::{Adjustment, CONTROL, PATCHED, Request, RequestError};
pub use run::{Options, Outcome, RunError, run};
pub use several::Tried;
pub use shard::{MAX_SHARDS, NotAShard, Shard};
pub use shard_plan::{ShardPlan, plan_shard};
pub use site::Site;
pub use standing::StateWriter;
pub use swaps::{CellSwap, SwapConflict, striped};
pub use variants::{ChangeError, NameTaken, NotAPair, VariantChange, pair};
pub use vary::Vary;
pub use zoo::FILES as ZOO_FILES;
