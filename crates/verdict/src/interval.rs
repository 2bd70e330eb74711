//! A confidence interval with the level that it really achieves.

use serde::{Deserialize, Serialize};

/// A closed confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end, in the unit of the effect.
    pub low: f64,
    /// Upper end, in the unit of the effect.
    pub high: f64,
    /// Confidence level achieved: with few values a rank test has few levels, so it differs from the one asked for.
    pub level: f64,
    /// Confidence level asked for.
    pub wanted: f64,
}

impl Interval {
    /// Whether the level achieved is at least the one asked for. If not, there are too few values for that level.
    pub fn is_attained(&self) -> bool {
        self.level >= self.wanted - 1e-9
    }

    /// Whether `value` lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether the whole interval lies between `low` and `high`, ends included.
    pub fn is_inside(&self, low: f64, high: f64) -> bool {
        low <= self.low && self.high <= high
    }

    /// Half the distance between the ends.
    pub fn half_width(&self) -> f64 {
        0.5 * self.high - 0.5 * self.low
    }

    /// The same interval with both ends mapped by a function that never falls.
    #[must_use]
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            low: f(self.low),
            high: f(self.high),
            ..*self
        }
    }
}

/// A test's two-sided p-value and how it was found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Test {
    /// Two-sided p-value, 0 < p ≤ 1.
    pub p: f64,
    /// True when the null distribution was enumerated, ties included; false for an approximation or a random sample of it.
    pub exact: bool,
}

/// The most values for which null distributions of rank tests are enumerated (both groups together for unpaired data).
/// Both scipy and R draw the line at 50 for paired data.
pub const EXACT_PAIRS: usize = 50;
/// As [`EXACT_PAIRS`], for two unpaired groups together.
pub const EXACT_UNPAIRED: usize = 60;
