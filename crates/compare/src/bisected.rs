//! What a search for the first version that differs has found.

use pagetide_quantity::Unit;
use pagetide_verdict::Judgement;
use pagetide_verdict::bisect::Mark;
use serde::Serialize;

use crate::comparison::Comparison;

/// A version of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Version {
    /// What it is known by for good: a commit, or the digest of a kernel.
    pub id: String,
    /// Short name, distinct from the others'.
    pub name: String,
    /// What it is, in a line: the subject of a commit, the names of a kernel.
    pub what: String,
}

/// A version that was tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BisectStep {
    /// The version.
    pub version: Version,
    /// What follows.
    pub mark: Mark,
    /// Seeds that were compared with the good version's.
    pub seeds: u32,
    /// How it compares with the good version; `None` where that cannot be told.
    pub judgement: Option<Judgement>,
    /// Why it is skipped, or what spared its trials.
    pub why: Option<String>,
}

/// What a search came to.
#[derive(Clone, Debug, Serialize)]
pub struct BisectResult {
    /// Label of the cell.
    pub cell: String,
    /// The metric that decides.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// The good version.
    pub good: Version,
    /// The bad version that the search began with.
    pub bad: Version,
    /// Versions that might have been the first bad one.
    pub candidates: usize,
    /// The first bad version; several where those between were skipped, the last of them surely bad.
    pub first_bad: Vec<Version>,
    /// The last version before that was found good; the good one itself where none was tried.
    pub before: Version,
    /// The bad version and every version tried, in that order.
    pub steps: Vec<BisectStep>,
    /// Share within which a version counts as good: half of what separates good and bad, by ratio. `None` where the
    /// metric's own margin was used.
    pub margin: Option<f64>,
    /// Identity of the campaign that has the records.
    pub campaign: String,
    /// The last good and the first bad version, compared with each other.
    pub comparison: Comparison,
}

impl BisectResult {
    /// Whether one version was found, rather than several that cannot be told apart.
    pub fn is_one(&self) -> bool {
        self.first_bad.len() == 1
    }

    /// The step at which a version was tried.
    pub fn step(&self, version: &Version) -> Option<&BisectStep> {
        self.steps.iter().find(|step| step.version == *version)
    }
}
