//! Result of a search for the first kernel version whose metric differs from the good version.

use pagetide_quantity::Unit;
use pagetide_verdict::Judgement;
use pagetide_verdict::bisect::Mark;
use serde::Serialize;

use crate::comparison::Comparison;

/// A kernel version in a search: a commit, or a kernel of the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Version {
    /// Permanent ID: the hash of a commit, or the digest of a kernel.
    pub id: String,
    /// Short name, different for each version of a search.
    pub name: String,
    /// Description in one line: the subject of a commit, or the names of a kernel.
    pub what: String,
}

/// A version that was tested in the search, with the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BisectStep {
    /// The tested version.
    pub version: Version,
    /// Result of the test: good, bad or skipped.
    pub mark: Mark,
    /// Number of seeds that both this version and the good version have run; 0 if the version needed no trials.
    pub seeds: u32,
    /// Judgement of the deciding metric against the good version; `None` if no comparison was possible.
    pub judgement: Option<Judgement>,
    /// Why the version is skipped, or why it needed no trials; otherwise `None`.
    pub why: Option<String>,
}

/// Result of a search for the first bad version.
#[derive(Clone, Debug, Serialize)]
pub struct BisectResult {
    /// Label of the compared cell.
    pub cell: String,
    /// Name of the metric that decides whether a version is good.
    pub metric: String,
    /// Unit of the metric.
    pub unit: Unit,
    /// The good version that the search began with.
    pub good: Version,
    /// The bad version that the search began with.
    pub bad: Version,
    /// Number of versions that could have been the first bad one before the first version between good and bad was
    /// tested.
    pub candidates: usize,
    /// The first bad version. If versions next to it were skipped, all candidates are listed; only the last one is
    /// known to be bad.
    pub first_bad: Vec<Version>,
    /// The last version before `first_bad` that was found good; the original good version if no other was.
    pub before: Version,
    /// One step for the original bad version, then one for every tested version in the order of the tests.
    pub steps: Vec<BisectStep>,
    /// Margin within which a version counts as good, as a fraction: half of the effect between the good and the bad
    /// version. `None` if the metric's own margin was used.
    pub margin: Option<f64>,
    /// ID of the campaign that contains the records.
    pub campaign: String,
    /// Comparison of the last good version with the first bad one.
    pub comparison: Comparison,
}

impl BisectResult {
    /// True if `first_bad` is a single version; false if it lists several that could not be tested separately.
    pub fn is_one(&self) -> bool {
        self.first_bad.len() == 1
    }

    /// Returns the step that tested a version; `None` if the version was not tested.
    pub fn step(&self, version: &Version) -> Option<&BisectStep> {
        self.steps.iter().find(|step| step.version == *version)
    }
}
