//! Judgements: a verdict with everything that is needed to check it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::margin::MarginUsed;
use crate::nested::Components;
use crate::outlier::Outlier;
use pagetide_quantity::Direction;

/// Verdict on one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    /// B is significantly better.
    Improved,
    /// B is significantly worse.
    Regressed,
    /// B differs significantly, in a metric for which neither direction is better.
    Changed,
    /// The whole interval lies inside the margin, so any difference is too small to matter.
    Equivalent,
    /// The records of every pair are equal to the bit.
    Identical,
    /// A claim would be made, but something that nobody asked for differs and may have made the difference.
    Confounded {
        /// What differs, in one line.
        by: String,
    },
    /// The data support no claim.
    Inconclusive {
        /// Number of pairs, or trials of each variant, with which a verdict is likely (80 %) if the true effect is the
        /// estimate. `None` if no number would be enough or it cannot be estimated.
        n_needed: Option<u64>,
    },
    /// The data cannot be judged.
    Invalid {
        /// The reason, as one sentence.
        reason: String,
    },
}

impl Verdict {
    /// True if the data support a claim, so that no more trials are needed.
    pub fn is_sure(&self) -> bool {
        !matches!(
            self,
            Self::Confounded { .. } | Self::Inconclusive { .. } | Self::Invalid { .. }
        )
    }

    /// True if a difference is claimed.
    pub fn is_difference(&self) -> bool {
        matches!(self, Self::Improved | Self::Regressed | Self::Changed)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Improved => "improved",
            Self::Regressed => "regressed",
            Self::Changed => "changed",
            Self::Equivalent => "equivalent",
            Self::Identical => "identical",
            Self::Confounded { .. } => "confounded",
            Self::Inconclusive { .. } => "inconclusive",
            Self::Invalid { .. } => "invalid",
        })
    }
}

/// Whether an effect is a ratio or a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectKind {
    /// B divided by A; 1 means no effect.
    Ratio,
    /// B minus A in the metric's unit; 0 means no effect.
    Difference,
}

impl EffectKind {
    /// The value that means no effect.
    pub fn null(self) -> f64 {
        match self {
            Self::Ratio => 1.0,
            Self::Difference => 0.0,
        }
    }
}

/// Size of the difference between B and A.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Ratio or difference.
    pub kind: EffectKind,
    /// The estimated effect.
    pub estimate: f64,
    /// Its interval with the actual level; `None` if a single value allows none.
    pub interval: Option<Interval>,
}

/// Direction in which B differs significantly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shift {
    /// B is larger.
    Up,
    /// B is smaller.
    Down,
}

/// Descriptive statistics of one variant's values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values: trials, or sampling units of nested data.
    pub n: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n − 1 in the denominator; `None` for one value.
    pub deviation: Option<f64>,
    /// Median.
    pub median: f64,
    /// Smallest value.
    pub least: f64,
    /// Largest value.
    pub most: f64,
}

/// Additional information for the reader of a judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "note")]
pub enum Note {
    /// With this few values even the clearest result cannot reach the requested level.
    TooFew {
        /// Fewest pairs, or trials of each variant, that can reach it.
        least: u64,
    },
    /// All pairs point the same way, but the adjustment for the other metrics prevents a claim.
    AllAgree {
        /// Number of pairs.
        n: u64,
        /// Number of pairs pointing the same way that would be enough if the other metrics do not change.
        least: u64,
    },
    /// Not judged: the metric is a fixed multiple of another metric of the same trials, which is judged.
    MultipleOf {
        /// The name of that metric.
        metric: String,
    },
    /// The difference is significant, but too small to matter.
    SmallButReal,
    /// Some values are zero or negative, so B was compared with A as a difference.
    NotPositive,
    /// Fewer than ten accesses lie beyond the quantile.
    ThinTail {
        /// Number of accesses beyond the quantile, in the smaller pool.
        beyond: f64,
    },
    /// Successive trials are correlated, so they carry less information than the same number of independent trials. The
    /// interval was widened and the p-value raised accordingly. For unpaired groups only.
    Dependent {
        /// Correlation of neighbouring trials.
        correlation: f64,
        /// Number of independent trials that carry as much information as the smaller group.
        worth: f64,
    },
    /// A pair was marked as identical, but its values differ. It was not counted as identical.
    ContradictoryPair {
        /// Index of the pair, from 0.
        index: usize,
    },
}

/// Names of the statistical methods used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Methods {
    /// Estimator of the effect.
    pub estimator: String,
    /// Method of the interval.
    pub interval: String,
    /// The test that `p` comes from.
    pub test: String,
    /// Adjustment of p-values for the family.
    pub adjustment: String,
}

/// The verdict on one metric with all figures that led to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The metric's name.
    pub name: String,
    /// Its unit, as a label.
    pub unit: String,
    /// Which direction is better.
    pub direction: Direction,
    /// Whether the metric is primary: only primary metrics share the family's error rate.
    pub primary: bool,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Direction of a significant difference, even if the difference is too small to matter.
    pub shift: Option<Shift>,
    /// Size of the difference between B and A; `None` if invalid.
    pub effect: Option<Effect>,
    /// Two-sided p-value that the verdict is based on; `None` if invalid.
    pub p: Option<f64>,
    /// `p` adjusted for the family; compared with `alpha`.
    pub p_adjusted: Option<f64>,
    /// Sign-flip permutation p-value of the mean, for paired data. For information; the verdict does not use it.
    pub p_sign_flip: Option<f64>,
    /// The family's error rate.
    pub alpha: f64,
    /// Number of pairs, or of A's trials; sampling units for nested data.
    pub n: u64,
    /// Number of B's trials; `None` for pairs.
    pub n_b: Option<u64>,
    /// Number of pairs whose records are equal to the bit; `None` for unpaired data.
    pub identical_pairs: Option<u64>,
    /// Descriptive statistics of A.
    pub a: Option<Summary>,
    /// Descriptive statistics of B.
    pub b: Option<Summary>,
    /// Values far from the others; all of them were used.
    pub outliers: Vec<Outlier>,
    /// The equivalence margin; `None` if invalid.
    pub margin: Option<MarginUsed>,
    /// Variance between and within A's sampling units, of logarithms for a ratio. Only for nested data with
    /// repetitions.
    pub components: Option<Components>,
    /// Names of the statistical methods used.
    pub methods: Methods,
    /// Additional information for the reader.
    pub notes: Vec<Note>,
}
