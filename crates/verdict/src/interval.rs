//! A confidence interval with its actual confidence level.

use serde::{Deserialize, Serialize};

/// A closed confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Lower end, in the unit of the effect.
    pub low: f64,
    /// Upper end, in the unit of the effect.
    pub high: f64,
    /// Actual confidence level. It may differ from the requested level, because a rank test of few values has few
    /// possible levels.
    pub level: f64,
    /// Requested confidence level.
    pub wanted: f64,
}

impl Interval {
    /// True if the actual level is at least the requested one. False means that there are too few values for that
    /// level.
    pub fn is_attained(&self) -> bool {
        self.level >= self.wanted - 1e-9
    }

    /// True if `value` is inside the interval, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// True if the whole interval is between `low` and `high`, ends included.
    pub fn is_inside(&self, low: f64, high: f64) -> bool {
        low <= self.low && self.high <= high
    }

    /// Returns half the distance between the ends.
    pub fn half_width(&self) -> f64 {
        0.5 * self.high - 0.5 * self.low
    }

    /// Returns the interval with the same level whose ends are mapped by the non-decreasing function `f`.
    #[must_use]
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            low: f(self.low),
            high: f(self.high),
            ..*self
        }
    }
}

/// Two-sided p-value of a test, and whether it is exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Test {
    /// Two-sided p-value, 0 < p ≤ 1.
    pub p: f64,
    /// True if the null distribution was enumerated, ties included. False if it was approximated or randomly sampled.
    pub exact: bool,
}

/// Maximum number of pairs for which the null distribution of a rank test is enumerated. scipy and R use 50 for paired
/// data too.
pub const EXACT_PAIRS: usize = 50;
/// Maximum total number of values in two unpaired groups for which the null distribution of a rank test is enumerated.
pub const EXACT_UNPAIRED: usize = 60;
