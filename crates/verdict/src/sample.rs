//! The input of a judgement: metrics with their values, as plain data.

use pagetide_quantity::Direction;
use serde::{Deserialize, Serialize};

use crate::margin::Margin;

/// Metrics that are judged together and share one error rate: usually all metrics of one comparison in a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Family {
    /// Accepted probability of at least one false "improved", "regressed" or "changed" among the primary metrics.
    pub alpha: f64,
    /// Random seed of permutation tests and bootstrap.
    pub seed: u64,
    /// Number of random patterns in a permutation test that is not enumerated, and of bootstrap resamples. 0 omits the
    /// sign-flip test and the intervals of tails, which saves most of the time.
    pub resamples: u32,
    /// The metrics of the family. Judgements are returned in this order.
    pub metrics: Vec<MetricSample>,
}

impl Family {
    /// Creates a family with the usual error rate of 5 % and 9,999 resamples.
    pub fn new(seed: u64, metrics: Vec<MetricSample>) -> Self {
        Self {
            alpha: 0.05,
            seed,
            resamples: 9_999,
            metrics,
        }
    }
}

/// How B is compared with A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// As a ratio if all values are positive and the unit is not a share. Otherwise as a difference.
    #[default]
    Auto,
    /// B divided by A; fails for values that are not positive.
    Ratio,
    /// B minus A, in the metric's unit.
    Difference,
}

/// One metric under two variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSample {
    /// Name of the metric.
    pub name: String,
    /// Unit of the metric as a label, such as `nanos`, `count` or `share`.
    pub unit: String,
    /// Whether lower or higher values are better, or neither.
    pub direction: Direction,
    /// True for a primary metric, which shares the family's error rate. The other metrics only explain.
    pub primary: bool,
    /// The equivalence margin; `None` for the default margin of this name and unit.
    #[serde(default)]
    pub margin: Option<Margin>,
    /// Whether A and B are compared as a ratio or as a difference.
    #[serde(default)]
    pub scale: Scale,
    /// Values of the metric under both variants.
    pub data: Data,
}

/// Values of A and B, by sampling design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "shape")]
pub enum Data {
    /// One value of each variant for every seed or block.
    Paired {
        /// One pair for every seed or block.
        pairs: Vec<Pair>,
    },
    /// Unpaired values, such as those of two sessions, each in order of measurement.
    Unpaired {
        /// Values of the baseline.
        a: Vec<f64>,
        /// Values of the variant that is compared.
        b: Vec<f64>,
    },
    /// Sampling units (boots, fresh arenas) paired by block, with repetitions nested in each.
    NestedPaired {
        /// One pair of sampling units for every block.
        units: Vec<UnitPair>,
    },
    /// Unpaired sampling units, with repetitions nested in each.
    NestedUnpaired {
        /// Repetitions of each of A's units.
        a: Vec<Vec<f64>>,
        /// Repetitions of each of B's units.
        b: Vec<Vec<f64>>,
    },
    /// A quantile of distributions of many accesses, one distribution for each trial; paired by seed or block.
    PairedTails {
        /// The quantile to compare, in (0, 1).
        quantile: f64,
        /// Distributions of both variants for every seed or block.
        pairs: Vec<TailPair>,
    },
    /// A quantile of distributions of many accesses, one distribution for each trial; unpaired.
    UnpairedTails {
        /// The quantile to compare, in (0, 1).
        quantile: f64,
        /// Distribution of each of A's trials.
        a: Vec<Vec<Bin>>,
        /// Distribution of each of B's trials.
        b: Vec<Vec<Bin>>,
    },
    /// No usable values.
    Invalid {
        /// Why no values are usable, as one sentence.
        reason: String,
    },
}

impl Data {
    /// Creates paired data. The records of a pair count as not identical.
    pub fn paired(a: &[f64], b: &[f64]) -> Self {
        let pairs = a.iter().zip(b).map(|(&a, &b)| Pair::new(a, b)).collect();
        Self::Paired { pairs }
    }
}

/// One value of each variant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The baseline's value.
    pub a: f64,
    /// The other variant's value.
    pub b: f64,
    /// True if the records of the two values are bit-identical.
    #[serde(default)]
    pub identical: bool,
}

impl Pair {
    /// Creates a pair whose records differ or were not compared.
    pub fn new(a: f64, b: f64) -> Self {
        Self {
            a,
            b,
            identical: false,
        }
    }
}

/// One sampling unit of each variant, with its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitPair {
    /// Values of the baseline's repetitions.
    pub a: Vec<f64>,
    /// Values of the other variant's repetitions.
    pub b: Vec<f64>,
    /// True if all records of both units are bit-identical.
    #[serde(default)]
    pub identical: bool,
}

/// Number of successes among a number of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Number of attempts that succeeded.
    pub successes: u64,
    /// Number of all attempts; at least one.
    pub attempts: u64,
}

/// A value and its frequency: one bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Representative value of the bucket.
    pub value: f64,
    /// Number of accesses in the bucket.
    pub count: u64,
}

/// One trial's distribution for each variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailPair {
    /// The baseline's distribution.
    pub a: Vec<Bin>,
    /// The other variant's distribution.
    pub b: Vec<Bin>,
    /// True if the records of the two distributions are bit-identical.
    #[serde(default)]
    pub identical: bool,
}
