//! What is judged: metrics with their values, as plain data.

use pagetide_quantity::Direction;
use serde::{Deserialize, Serialize};

use crate::margin::Margin;

/// Metrics that are judged together and share one error rate: usually all metrics of one comparison of a campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Family {
    /// Probability of any false "improved" or "regressed" among the primary metrics that may be accepted.
    pub alpha: f64,
    /// Seed of whatever is drawn at random.
    pub seed: u64,
    /// Random patterns drawn by permutation tests that cannot be enumerated, and resamples of the bootstrap. 0 leaves
    /// out the sign-flip test and the intervals of tails, which saves most of the time.
    pub resamples: u32,
    /// The metrics, in the order in which judgements come back.
    pub metrics: Vec<MetricSample>,
}

impl Family {
    /// A family with the customary error rate of 5 % and 9,999 resamples.
    pub fn new(seed: u64, metrics: Vec<MetricSample>) -> Self {
        Self {
            alpha: 0.05,
            seed,
            resamples: 9_999,
            metrics,
        }
    }
}

/// How B is set against A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// As a ratio where all values are positive and the unit is not a share, else as a difference.
    #[default]
    Auto,
    /// B divided by A; refuses values that are not positive.
    Ratio,
    /// B minus A, in the metric's unit.
    Difference,
}

/// One metric under two variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricSample {
    /// The metric's name.
    pub name: String,
    /// Its unit as a label, such as `nanos`, `count` or `share`.
    pub unit: String,
    /// Which way is better.
    pub direction: Direction,
    /// Whether it shares in the family's error rate; the others are explanations.
    pub primary: bool,
    /// The equivalence margin; `None` takes the default for name and unit.
    #[serde(default)]
    pub margin: Option<Margin>,
    /// Ratio or difference.
    #[serde(default)]
    pub scale: Scale,
    /// The values.
    pub data: Data,
}

/// Values of A and B, in the shape in which they were sampled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "shape")]
pub enum Data {
    /// One value of each variant for every seed or block.
    Paired {
        /// The pairs.
        pairs: Vec<Pair>,
    },
    /// Unpaired values, such as those of two sessions, each in the order in which they were measured.
    Unpaired {
        /// Values of the baseline.
        a: Vec<f64>,
        /// Values of what is compared with it.
        b: Vec<f64>,
    },
    /// Sampling units (boots, fresh arenas) paired by block, with repetitions nested in each.
    NestedPaired {
        /// The paired units.
        units: Vec<UnitPair>,
    },
    /// Unpaired sampling units, with repetitions nested in each.
    NestedUnpaired {
        /// A's units, each with its repetitions.
        a: Vec<Vec<f64>>,
        /// B's units, each with its repetitions.
        b: Vec<Vec<f64>>,
    },
    /// Distributions of many accesses, one for each trial, of which a quantile is compared; paired by seed or block.
    PairedTails {
        /// Which quantile, in (0, 1).
        quantile: f64,
        /// The pairs.
        pairs: Vec<TailPair>,
    },
    /// As `PairedTails`, for unpaired trials.
    UnpairedTails {
        /// Which quantile, in (0, 1).
        quantile: f64,
        /// A's trials.
        a: Vec<Vec<Bin>>,
        /// B's trials.
        b: Vec<Vec<Bin>>,
    },
    /// No usable values.
    Invalid {
        /// Why, as one sentence.
        reason: String,
    },
}

impl Data {
    /// Pairs of values that are not known to be equal to the bit.
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
    /// The other's value.
    pub b: f64,
    /// Whether the two records behind the values are equal to the bit.
    #[serde(default)]
    pub identical: bool,
}

impl Pair {
    /// A pair whose records were not compared bit by bit, or differ.
    pub fn new(a: f64, b: f64) -> Self {
        Self {
            a,
            b,
            identical: false,
        }
    }
}

/// One sampling unit of each variant with the repetitions inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitPair {
    /// The baseline's repetitions.
    pub a: Vec<f64>,
    /// The other's repetitions.
    pub b: Vec<f64>,
    /// Whether all records behind them are equal to the bit.
    #[serde(default)]
    pub identical: bool,
}

/// Successes among attempts in one trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Attempts that succeeded.
    pub successes: u64,
    /// All attempts; at least one.
    pub attempts: u64,
}

/// A value and how often it was seen: one bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// The value that stands for the bucket.
    pub value: f64,
    /// Accesses in it.
    pub count: u64,
}

/// One trial's distribution for each variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TailPair {
    /// The baseline's distribution.
    pub a: Vec<Bin>,
    /// The other's distribution.
    pub b: Vec<Bin>,
    /// Whether the two records behind the distributions are equal to the bit.
    #[serde(default)]
    pub identical: bool,
}
