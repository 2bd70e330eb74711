//! Finds the first kernel version that shows a difference. Runs the search of [`pagetide_verdict::bisect`] in an arena
//! and stores the records.
//!
//! Versions are variants of one campaign, in the order in which they were tried; the good and the bad version come
//! first, and versions with equal images share a variant. Each version is compared with the good one by records with
//! the same seeds. Trials that have a record are not run again, and kernels that were built are not built again. So a
//! stopped search resumes where it ended.

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

/// Default limit of seeds for one version. A version that is still undecided after this many seeds is skipped.
pub const MAX_SEEDS: u32 = 32;

/// Kernel versions and their parents, ordered so that parents come before their children.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// All versions, parents before their children.
    pub versions: Vec<Version>,
    /// Indices of the parents of each version.
    pub parents: Vec<Vec<usize>>,
    /// Index of the good version in `versions`.
    pub good: usize,
    /// Index of the bad version in `versions`.
    pub bad: usize,
}

impl History {
    /// Creates a history without branches: the first version is the good one, the last is the bad one.
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

/// Request for a bisection: workload, deciding metric and versions.
#[derive(Clone, Debug)]
pub struct Bisect {
    /// Campaign with one cell and one variant. The variant's kernel is replaced by the kernel of each version.
    pub campaign: Campaign,
    /// Name of the metric by which versions are judged.
    pub metric: String,
    /// Versions to search.
    pub history: History,
}

/// Kernel of a version, or the reason why the version has no kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supplied {
    /// Name of the version's kernel.
    Kernel(String),
    /// Reason why no kernel can be supplied; the version is skipped.
    Skip(String),
}

/// Error that ends the search, because no more kernels can be supplied.
pub type SupplyError = Box<dyn Error + Send + Sync>;

/// Function that supplies the kernel of the version with this index, and builds it if needed.
pub type Supply<'a> = dyn FnMut(usize) -> Result<Supplied, SupplyError> + 'a;

/// How a search ended.
#[derive(Debug)]
pub enum BisectOutcome {
    /// The search was completed, with this result.
    Found(Box<BisectResult>),
    /// Good and bad do not differ significantly; the sentence says so.
    Nothing(String),
    /// The search was stopped after this number of steps.
    Stopped(usize),
}

/// Function that receives each step of the search.
pub type Say<'a> = dyn Fn(&BisectStep) + 'a;
