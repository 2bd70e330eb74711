//! Memory workloads: one file per scenario, and what all of them share.
//!
//! A scenario is described by its [`Definition`]: what it asks, where it comes from, its parameters and metrics. The
//! controller [`resolve`]s parameters and learns what the scenario [`needs`]; then, in a process of its own inside an
//! arena, [`run`] does the experiment and hands back an [`Outcome`], while bulk output (the access log, series) goes
//! straight into the output region, which costs the machine under test no memory.
//!
//! It knows nothing of arenas, kernels or records' files. It forks processes but never starts a thread, draws all
//! randomness from the seed, and reads no clock but the one it is given.
//!
//! Begin reading at a scenario, `scenario/patterns.rs` say, then [`touch`], the timed loop, and `workers`, the processes.

mod attempt;
mod bulk;
mod capture;
mod clock;
mod copy;
mod definition;
mod error;
mod expr;
mod files;
mod fill;
mod floors;
mod fragmentation;
mod group;
pub mod guide;
mod harness;
mod launch;
mod layout;
mod load;
mod mapping;
mod measure;
mod number;
mod order;
mod page_size;
mod pagemap;
mod params;
mod ready;
mod registry;
mod ring;
mod running;
mod scatter;
mod scenario;
mod session;
pub mod touch;
mod trial;
mod uses;
mod victim;
mod workers;

pub use clock::Clock;
pub use definition::{Context, Definition, Needs};
pub use error::ScenarioError;
pub use measure::Measure;
pub use params::{Kind, Param};
pub use registry::{find, list, needs, resolve};
pub use trial::{NoPhaseWatch, Outcome, PhaseWatch, Place, run};
pub use workers::ProcessUsage;
