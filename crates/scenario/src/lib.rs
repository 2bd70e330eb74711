//! Memory workloads: one file per scenario, and the code that all of them share.
//!
//! A scenario is described by its [`Definition`]: its question, origin, parameters and metrics. The controller
//! [`resolve`]s the parameters and asks for the scenario's requirements ([`needs`]). Then, in a separate process inside
//! an arena, [`run`] performs the experiment and returns an [`Outcome`]. Bulk output (the access log, series) is
//! written directly to the output region, which uses no memory of the machine under test.
//!
//! This crate does not depend on arenas, kernels or record files. It forks processes but never starts a thread, derives
//! all random numbers from the seed, and reads only the clock that it is given.
//!
//! Begin reading at a scenario, for example `scenario/patterns.rs`. Then read [`touch`] (the timed loop) and `workers`
//! (the processes).

mod actors;
mod attempt;
mod beside;
mod bulk;
mod capture;
mod clock;
mod content;
mod copy;
mod definition;
mod error;
mod expr;
mod files;
mod fill;
mod floors;
mod form;
mod fragmentation;
mod group;
mod groups;
pub mod guide;
mod harness;
mod launch;
mod layout;
mod load;
mod mapping;
mod measure;
mod number;
mod order;
mod paced;
mod page;
mod page_size;
mod pagemap;
mod params;
mod ready;
mod registry;
mod relay;
mod ring;
mod run;
mod running;
mod scatter;
mod scenario;
mod session;
mod tiers;
pub mod touch;
mod trial;
mod uses;
mod victim;
mod workers;

pub use clock::Clock;
pub use content::compressed_share;
pub use definition::{Context, Definition, Needs};
pub use error::ScenarioError;
pub use fill::pages;
pub use group::Group;
pub use groups::GROUP_SETTING;
pub use measure::Measure;
pub use params::{Kind, Param};
pub use registry::{find, list, needs, resolve};
pub use run::run;
pub use trial::{NoPhaseWatch, Outcome, PhaseWatch, Surroundings, TrialContext};
pub use workers::ProcessUsage;
