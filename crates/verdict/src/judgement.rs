//! Judgements: the verdict on a metric, with all data needed to check it.

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
    /// B differs significantly, and the metric has no better direction.
    Changed,
    /// The whole interval lies inside the margin, so any difference is too small to matter.
    Equivalent,
    /// The records of every pair are bit-identical.
    Identical,
    /// A claim of a difference or of equivalence was withdrawn, because an unintended difference between A and B may
    /// have caused the result.
    Confounded {
        /// The unintended difference, in one line.
        by: String,
    },
    /// The data support no claim.
    Inconclusive {
        /// Number of pairs, or trials of each variant, with which a verdict has a probability of 80 % if the true
        /// effect is the estimate. `None` if no number is enough or the number cannot be estimated.
        n_needed: Option<u64>,
    },
    /// The data cannot be judged.
    Invalid {
        /// Why the data cannot be judged, as one sentence.
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

    /// True if the verdict claims a difference.
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
    /// Returns the value that means no effect.
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
    /// Whether the numbers are ratios or differences.
    pub kind: EffectKind,
    /// The estimated effect, as a ratio or a difference.
    pub estimate: f64,
    /// Interval of the effect with its actual confidence level; `None` if there are too few values or resamples for an
    /// interval.
    pub interval: Option<Interval>,
}

/// Direction in which B differs significantly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shift {
    /// B is significantly larger than A.
    Up,
    /// B is significantly smaller than A.
    Down,
}

/// Descriptive statistics of one variant's values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of values: trials, or sampling units of nested data.
    pub n: u64,
    /// Arithmetic mean of the values.
    pub mean: f64,
    /// Standard deviation with n − 1 in the denominator; `None` for one value.
    pub deviation: Option<f64>,
    /// Median of the values.
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
    /// With so few values, even the clearest result cannot reach the requested confidence level.
    TooFew {
        /// Minimum number of pairs, or of trials of each variant, that can reach the requested confidence level.
        least: u64,
    },
    /// All pairs agree in direction, but the adjustment for the other metrics prevents a claim.
    AllAgree {
        /// Number of pairs measured.
        n: u64,
        /// Number of pairs that would be enough for a claim if all of them agree in direction and the other metrics do
        /// not change.
        least: u64,
    },
    /// This metric is not judged itself, because it is a fixed multiple of another metric of the same trials, which is
    /// judged.
    MultipleOf {
        /// Name of the metric that is judged instead.
        metric: String,
    },
    /// The difference is significant, but smaller than the margin.
    SmallButReal,
    /// Some values are zero or negative, so B was compared with A as a difference.
    NotPositive,
    /// Fewer than ten accesses lie beyond the quantile.
    ThinTail {
        /// Number of accesses beyond the quantile, in the smaller pool.
        beyond: f64,
    },
    /// Successive trials of an unpaired group are correlated, so they carry less information than the same number of
    /// independent trials. The interval was widened and the p-value raised to account for this.
    Dependent {
        /// Correlation of neighbouring trials.
        correlation: f64,
        /// Number of independent trials that carry as much information as the smaller group.
        worth: f64,
    },
    /// A pair was marked as having identical records, but its values differ. The pair was not counted as identical.
    ContradictoryPair {
        /// Index of the pair, from 0.
        index: usize,
    },
}

/// Names of the statistical methods used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Methods {
    /// Name of the estimator of the effect.
    pub estimator: String,
    /// Name of the method that computes the interval.
    pub interval: String,
    /// Name of the test that `p` comes from.
    pub test: String,
    /// Name of the procedure that adjusts the p-values of the family.
    pub adjustment: String,
}

/// The verdict on one metric with all figures that led to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// Name of the metric.
    pub name: String,
    /// Unit of the metric, as a label.
    pub unit: String,
    /// Whether lower or higher values are better, or neither.
    pub direction: Direction,
    /// True for a primary metric. Only primary metrics share the family's error rate.
    pub primary: bool,
    /// Verdict on the metric.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Direction of a significant difference, even if the difference is within the margin; `None` if the difference is
    /// not significant.
    pub shift: Option<Shift>,
    /// Size of the difference between B and A; `None` if invalid.
    pub effect: Option<Effect>,
    /// Two-sided p-value that the verdict is based on; `None` if invalid.
    pub p: Option<f64>,
    /// `p` adjusted for the other metrics of the family. It is compared with `alpha`.
    pub p_adjusted: Option<f64>,
    /// Sign-flip permutation p-value of the mean, for paired data. For information; the verdict does not use it.
    pub p_sign_flip: Option<f64>,
    /// The family's error rate.
    pub alpha: f64,
    /// Number of pairs, or of A's trials if unpaired. For nested data, the number of sampling units.
    pub n: u64,
    /// Number of B's trials or sampling units; `None` for pairs.
    pub n_b: Option<u64>,
    /// Number of pairs whose records are bit-identical; `None` for unpaired data.
    pub identical_pairs: Option<u64>,
    /// Descriptive statistics of A.
    pub a: Option<Summary>,
    /// Descriptive statistics of B.
    pub b: Option<Summary>,
    /// Values far from the other values. They are labelled, but still used.
    pub outliers: Vec<Outlier>,
    /// The equivalence margin; `None` if invalid.
    pub margin: Option<MarginUsed>,
    /// Variance between and within A's sampling units, of the logarithms if the effect is a ratio. `None` unless the
    /// data are nested with repetitions.
    pub components: Option<Components>,
    /// Names of the statistical methods that gave these numbers.
    pub methods: Methods,
    /// Additional information for the reader of the judgement.
    pub notes: Vec<Note>,
}
