//! Why a statistic cannot be computed, and what to do about it.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The variant that a value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The variant that is the baseline.
    A,
    /// The variant that is compared with the baseline.
    B,
    /// Neither variant: the ratio or difference of a pair, or a single series.
    Effect,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
            Self::Effect => "the sample",
        })
    }
}

/// Why a statistic cannot be computed. Indices count from 0.
#[derive(Clone, Debug, PartialEq, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum StatError {
    /// There are no values.
    #[error("{what} needs at least one value, but there is none: run at least one valid trial")]
    Empty {
        /// Name of the statistic.
        what: String,
    },
    /// A value is NaN or infinite.
    #[error(
        "value {index} of {side} is not a finite number: mark its trial invalid and leave it out"
    )]
    NotFinite {
        /// The variant, or the effect, that the value belongs to.
        side: Side,
        /// Index of the value in its series, from 0.
        index: usize,
    },
    /// A ratio was requested, but a value is zero or negative.
    #[error(
        "a ratio needs positive values, but value {index} of {side} is {value}: compare as differences"
    )]
    NotPositive {
        /// The variant, or the effect, that the value belongs to.
        side: Side,
        /// Index of the value in its series, from 0.
        index: usize,
        /// The value that is zero or negative.
        value: f64,
    },
    /// A difference overflows a 64-bit floating-point number.
    #[error(
        "the difference at position {index} is too large for a 64-bit number: give the values in a larger unit"
    )]
    Overflow {
        /// Index of the pair, from 0; always 0 for unpaired data.
        index: usize,
    },
    /// A probability lies outside (0, 1).
    #[error("{what} must lie between 0 and 1, but is {value}: use for example 0.95")]
    BadProbability {
        /// Name of the probability.
        what: String,
        /// The invalid probability.
        value: f64,
    },
    /// A count has more successes than attempts, or no attempts.
    #[error(
        "count {index} of {side} has {successes} successes in {attempts} attempts: there must be at least one attempt and no more successes than attempts"
    )]
    BadCount {
        /// The variant that the count belongs to.
        side: Side,
        /// Index of the count in its series, from 0.
        index: usize,
        /// Number of successes of the count.
        successes: u64,
        /// Number of attempts of the count.
        attempts: u64,
    },
    /// There are fewer values than the statistic needs.
    #[error("{what} needs at least {need} values, but has {got}: run more trials")]
    TooFew {
        /// Name of the statistic.
        what: String,
        /// Minimum number of values that the statistic needs.
        need: usize,
        /// Number of values given.
        got: usize,
    },
    /// The caller marked the data as unusable.
    #[error("{reason}")]
    Refused {
        /// Why the data are unusable, as one sentence.
        reason: String,
    },
    /// The sample sizes of a sequential plan are not ascending.
    #[error("the plan of looks {looks:?} does not grow: give sample sizes in ascending order")]
    BadLooks {
        /// The sample sizes of the plan, in the order of the plan.
        looks: Vec<u64>,
    },
}

/// Result of computing a statistic.
pub type Result<T> = std::result::Result<T, StatError>;
