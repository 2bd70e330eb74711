//! A search over workloads, settings and machines for where a kernel fails, and the smallest case that shows it.
//!
//! This crate does not depend on emulators, statistics of comparisons, or reports. Start reading in [`goal`] (what
//! counts as a failure), then [`hunt()`] (the loop), [`search`] (which candidates come next) and [`shrink`] (the
//! smallest case).

pub mod behaviour;
pub mod case;
pub mod compared;
pub mod death;
pub mod evidence;
pub mod examine;
pub mod executed;
pub mod extent;
pub mod forecast;
pub mod goal;
pub mod hunt;
pub mod opt;
pub mod request;
pub mod search;
pub mod shrink;
pub mod space;
pub mod table;
pub mod trials;
pub mod workloads;

pub use case::{Case, Shown};
pub use compared::Compared;
pub use death::Death;
pub use evidence::Evidence;
pub use examine::{Budget, Examiner, Meter, Question};
pub use executed::{Executed, Reached};
pub use extent::{Extent, ExtentError};
pub use goal::{Goal, Outcome};
pub use hunt::{Account, Find, News, Plan, Share, hunt};
pub use request::{HuntRequest, Hunted};
pub use search::Guidance;
pub use space::Space;
pub use trials::Trials;
pub use workloads::Workloads;
