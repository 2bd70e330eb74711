//! The first version of the kernel that shows a difference: the search of [`pagetide_verdict::bisect`], run through an arena into
//! the store.
//!
//! Versions are variants of one campaign, in the order in which they were tried, the good and the bad one first. Each is judged
//! against the good one's records, with the same seeds. What has a record is not run again and what was built is not built again,
//! so a search that was stopped goes on where it was.

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

/// Seeds after which a version that is still open is skipped, where nobody says how many.
pub const MOST_SEEDS: u32 = 32;

/// Versions in an order in which parents come before their children.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The versions.
    pub versions: Vec<Version>,
    /// Places of the parents of each.
    pub parents: Vec<Vec<usize>>,
    /// Place of the good one.
    pub good: usize,
    /// Place of the bad one.
    pub bad: usize,
}

impl History {
    /// A straight line from good to bad.
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

/// What is searched.
#[derive(Clone, Debug)]
pub struct Bisect {
    /// One variant, which each version's kernel is put into, and one cell.
    pub campaign: Campaign,
    /// The metric that decides.
    pub metric: String,
    /// The versions.
    pub history: History,
}

/// The kernel of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supplied {
    /// It has this name.
    Kernel(String),
    /// It cannot be had, for this reason: the version is skipped.
    Skip(String),
}

/// What ends the search because no kernel can be supplied any more.
pub type SupplyError = Box<dyn Error + Send + Sync>;

/// Supplies the kernel of the version at a place, building it if need be.
pub type Supply<'a> = dyn FnMut(usize) -> Result<Supplied, SupplyError> + 'a;

/// How a search ended.
#[derive(Debug)]
pub enum BisectOutcome {
    /// It came to its end.
    Found(Box<BisectResult>),
    /// Good and bad do not surely differ: in a sentence.
    Nothing(String),
    /// It was stopped after so many steps.
    Stopped(usize),
}

/// Who is told of every step.
pub type Say<'a> = dyn Fn(&BisectStep) + 'a;
