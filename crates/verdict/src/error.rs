//! Why a statistic cannot be computed, and what to do about it.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which of the two variants a value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The baseline.
    A,
    /// What is compared with the baseline.
    B,
    /// Neither alone: the ratio or difference of a pair, or a single series.
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

/// Why a statistic cannot be computed. Positions count from 0.
#[derive(Clone, Debug, PartialEq, Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum StatError {
    /// There is nothing to compute from.
    #[error("{what} needs at least one value, but there is none: run at least one valid trial")]
    Empty {
        /// The statistic asked for.
        what: String,
    },
    /// A value is NaN or infinite.
    #[error(
        "value {index} of {side} is not a finite number: mark its trial invalid and leave it out"
    )]
    NotFinite {
        /// Where the value stands.
        side: Side,
        /// Its position.
        index: usize,
    },
    /// A ratio was asked for and a value is zero or negative.
    #[error(
        "a ratio needs positive values, but value {index} of {side} is {value}: compare as differences"
    )]
    NotPositive {
        /// Where the value stands.
        side: Side,
        /// Its position.
        index: usize,
        /// The value itself.
        value: f64,
    },
    /// A difference does not fit into a 64-bit floating-point number.
    #[error(
        "the difference at position {index} is too large for a 64-bit number: give the values in a larger unit"
    )]
    Overflow {
        /// Its position.
        index: usize,
    },
    /// A probability lies outside (0, 1).
    #[error("{what} must lie between 0 and 1, but is {value}: use for example 0.95")]
    BadProbability {
        /// Which probability.
        what: String,
        /// What was given.
        value: f64,
    },
    /// More successes than attempts, or no attempts.
    #[error(
        "count {index} of {side} has {successes} successes in {attempts} attempts: there must be at least one attempt and no more successes than attempts"
    )]
    BadCount {
        /// Where the count stands.
        side: Side,
        /// Its position.
        index: usize,
        /// Successes given.
        successes: u64,
        /// Attempts given.
        attempts: u64,
    },
    /// Fewer values than the statistic is defined for.
    #[error("{what} needs at least {need} values, but has {got}: run more trials")]
    TooFew {
        /// The statistic asked for.
        what: String,
        /// The least it works with.
        need: usize,
        /// What was given.
        got: usize,
    },
    /// The caller declared the data unusable.
    #[error("{reason}")]
    Refused {
        /// Why, as one sentence.
        reason: String,
    },
    /// The plan of looks is invalid.
    #[error("the plan of looks {looks:?} does not grow: give sample sizes in ascending order")]
    BadLooks {
        /// The sample sizes given.
        looks: Vec<u64>,
    },
}

/// Result of a statistic.
pub type Result<T> = std::result::Result<T, StatError>;
