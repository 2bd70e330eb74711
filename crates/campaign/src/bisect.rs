//! Finds the first version of the kernel that shows a difference: runs the search of [`pagetide_verdict::bisect`]
//! through an arena into the store.
//!
//! Versions are variants of one campaign, in the order in which they were tried, the good and the bad one first. Each
//! is compared with the good one by records with the same seeds. Trials that have a record are not run again, and
//! kernels that were built are not built again. So a search that was stopped resumes where it ended.

mod log;
mod request;
mod walk;

use std::error::Error;

pub use pagetide_compare::bisected::Version;
use pagetide_compare::bisected::{BisectResult, BisectStep};

pub use log::log;
pub use request::{BisectError, BisectRequest, predict, question};
pub use walk::{Audience, bisect};

use crate::campaign::Campaign;

/// Default number of seeds after which a version that is still undecided is skipped.
pub const MOST_SEEDS: u32 = 32;

/// Versions ordered so that parents come before their children.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The versions.
    pub versions: Vec<Version>,
    /// Indices of the parents of each version.
    pub parents: Vec<Vec<usize>>,
    /// Index of the good version.
    pub good: usize,
    /// Index of the bad version.
    pub bad: usize,
}

impl History {
    /// A history without branches, from good to bad.
    pub fn line(versions: Vec<Version>) -> Self {
        Self {
            parents: (0..versions.len())
                .map(|at| at.checked_sub(1).into_iter().collect())
                .collect(),
            good: 0,
            bad: versions.len().saturating_sub(1),
            versions,
        }
    }
}

/// The search that is asked for.
#[derive(Clone, Debug)]
pub struct Bisect {
    /// One variant, whose kernel is replaced by each version's, and one cell.
    pub campaign: Campaign,
    /// The metric that decides.
    pub metric: String,
    /// The versions.
    pub history: History,
}

/// The kernel of a version, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supplied {
    /// The kernel's name.
    Kernel(String),
    /// No kernel can be supplied, for this reason: the version is skipped.
    Skip(String),
}

/// Error that ends the search, because no more kernels can be supplied.
pub type SupplyError = Box<dyn Error + Send + Sync>;

/// Supplies the kernel of the version at an index, building it if needed.
pub type Supply<'a> = dyn FnMut(usize) -> Result<Supplied, SupplyError> + 'a;

/// How a search ended.
#[derive(Debug)]
pub enum BisectOutcome {
    /// The search was completed.
    Found(Box<BisectResult>),
    /// Good and bad do not significantly differ; the sentence says so.
    Nothing(String),
    /// The search was stopped after this number of steps.
    Stopped(usize),
}

/// Receives each step.
pub type Say<'a> = dyn Fn(&BisectStep) + 'a;
