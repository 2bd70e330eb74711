//! What comes back: a verdict with everything needed to check it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::margin::MarginUsed;
use crate::nested::Components;
use crate::outlier::Outlier;
use pagetide_quantity::Direction;

/// The judgement on one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Verdict {
    /// B is better, beyond chance.
    Improved,
    /// B is worse, beyond chance.
    Regressed,
    /// B differs beyond chance, in a metric of which neither way is better.
    Changed,
    /// The whole interval lies inside the margin: whatever the difference is, it does not matter.
    Equivalent,
    /// The records of every pair are equal to the bit.
    Identical,
    /// A claim would be made, but something that nobody asked for differs and may have made the difference.
    Confounded {
        /// What differs, in one line.
        by: String,
    },
    /// The data allow neither claim.
    Inconclusive {
        /// Pairs, or trials of each variant, with which a verdict is likely (80 %) if the effect is as now estimated;
        /// `None` when no number would do or nothing can be said.
        n_needed: Option<u64>,
    },
    /// There is nothing that may be judged.
    Invalid {
        /// Why, as one sentence.
        reason: String,
    },
}

impl Verdict {
    /// Whether a claim is made, so that no further trials are needed.
    pub fn is_sure(&self) -> bool {
        !matches!(
            self,
            Self::Confounded { .. } | Self::Inconclusive { .. } | Self::Invalid { .. }
        )
    }

    /// Whether a difference is claimed.
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

/// How an effect is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EffectKind {
    /// B divided by A: 1 is no effect.
    Ratio,
    /// B minus A in the metric's unit: 0 is no effect.
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

/// By how much B differs from A.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Ratio or difference.
    pub kind: EffectKind,
    /// The estimate.
    pub estimate: f64,
    /// Its interval, with the level achieved; `None` when a single value allows none.
    pub interval: Option<Interval>,
}

/// Which way B differs from A beyond chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shift {
    /// B is larger.
    Up,
    /// B is smaller.
    Down,
}

/// Plain description of one variant's values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many values (trials, or sampling units of nested data).
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

/// What else a reader of a judgement should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "note")]
pub enum Note {
    /// With so few values no result, however clear, reaches the level asked for.
    TooFew {
        /// The fewest pairs, or trials of each variant, that can.
        least: u64,
    },
    /// A difference beyond chance that is too small to matter.
    SmallButReal,
    /// Values of zero or below were seen, so B was not divided by A.
    NotPositive,
    /// Fewer than ten accesses lie beyond the quantile.
    ThinTail {
        /// How many do, in the smaller pool.
        beyond: f64,
    },
    /// Successive trials are alike, so they carry less information than their number suggests; the interval was widened
    /// and the p-value raised accordingly. Only for unpaired groups.
    Dependent {
        /// Correlation of neighbouring trials.
        correlation: f64,
        /// Number of independent trials that would carry as much information as the smaller group.
        worth: f64,
    },
    /// A pair was said to be identical, but its values differ; it was not counted as identical.
    ContradictoryPair {
        /// Its position, counted from 0.
        index: usize,
    },
}

/// Methods behind the figures, by their usual names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Methods {
    /// The estimator.
    pub estimator: String,
    /// The interval.
    pub interval: String,
    /// The test behind `p`.
    pub test: String,
    /// How p-values were adjusted for the family.
    pub adjustment: String,
}

/// The verdict on one metric with all that led to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The metric's name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way is better.
    pub direction: Direction,
    /// Whether it shared in the family's error rate.
    pub primary: bool,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Which way B differs beyond chance, also where the difference is too small to matter.
    pub shift: Option<Shift>,
    /// By how much B differs from A; `None` when invalid.
    pub effect: Option<Effect>,
    /// Two-sided p-value that decides; `None` when invalid.
    pub p: Option<f64>,
    /// `p` adjusted for the family, to be compared with `alpha`.
    pub p_adjusted: Option<f64>,
    /// Sign-flip permutation p-value of the mean, a second opinion for paired data that does not decide.
    pub p_sign_flip: Option<f64>,
    /// The family's error rate.
    pub alpha: f64,
    /// Pairs, or A's trials; sampling units for nested data.
    pub n: u64,
    /// B's trials; `None` for pairs.
    pub n_b: Option<u64>,
    /// Pairs whose records are equal to the bit; `None` for unpaired data.
    pub identical_pairs: Option<u64>,
    /// A's values.
    pub a: Option<Summary>,
    /// B's values.
    pub b: Option<Summary>,
    /// Values far from the others; all were used.
    pub outliers: Vec<Outlier>,
    /// The margin of equivalence; `None` when invalid.
    pub margin: Option<MarginUsed>,
    /// Variance between and within A's sampling units, of logarithms for a ratio; only for nested data with repetitions.
    pub components: Option<Components>,
    /// Methods behind the figures.
    pub methods: Methods,
    /// What else a reader should know.
    pub notes: Vec<Note>,
}
