//! Result of a search for the first version of the kernel that differs.

use pagetide_quantity::Unit;
use pagetide_verdict::Judgement;
use pagetide_verdict::bisect::Mark;
use serde::Serialize;

use crate::comparison::Comparison;

/// A version of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Version {
    /// Permanent identity: a commit, or the digest of a kernel.
    pub id: String,
    /// Short name, distinct from the others'.
    pub name: String,
    /// Description in one line: the subject of a commit, or the names of a kernel.
    pub what: String,
}

/// A version that was tested.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BisectStep {
    /// The version.
    pub version: Version,
    /// The conclusion: good, bad or skipped.
    pub mark: Mark,
    /// Number of seeds that were compared with those of the good version.
    pub seeds: u32,
    /// Comparison with the good version; `None` if none was possible.
    pub judgement: Option<Judgement>,
    /// Why the version is skipped, or why no trials were needed.
    pub why: Option<String>,
}

/// Result of a search.
#[derive(Clone, Debug, Serialize)]
pub struct BisectResult {
    /// Label of the cell.
    pub cell: String,
    /// The metric that decides whether a version is good.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// The good version.
    pub good: Version,
    /// The bad version that the search began with.
    pub bad: Version,
    /// Number of versions that could have been the first bad one.
    pub candidates: usize,
    /// The first bad version. Several if versions in between were skipped; then only the last one is known to be bad.
    pub first_bad: Vec<Version>,
    /// The last version before these that was found good; the original good version if none was tested.
    pub before: Version,
    /// The bad version, then every tested version in the order of the tests.
    pub steps: Vec<BisectStep>,
    /// Margin within which a version counts as good: half of the ratio between good and bad, as a share. `None` if the
    /// metric's own margin was used.
    pub margin: Option<f64>,
    /// Identity of the campaign with the records.
    pub campaign: String,
    /// Comparison of the last good with the first bad version.
    pub comparison: Comparison,
}

impl BisectResult {
    /// True if a single version was found, false if several remain that could not be tested separately.
    pub fn is_one(&self) -> bool {
        self.first_bad.len() == 1
    }

    /// The step that tested a version; `None` if it was not tested.
    pub fn step(&self, version: &Version) -> Option<&BisectStep> {
        self.steps.iter().find(|step| step.version == *version)
    }
}
