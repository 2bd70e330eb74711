//! Order statistics of derived values, such as all pairwise averages. If there are many derived values, they are not
//! stored.

use crate::interval::Interval;
use crate::number::{bisect_floats, median_of_sorted};

/// Values derived from a sample, such as the averages of all its pairs or the differences from another sample.
pub(crate) trait Ordered {
    /// Returns all derived values in ascending order; `None` if they are too many to be stored.
    fn kept(&self) -> Option<&[f64]>;

    /// Returns the number of derived values.
    fn count(&self) -> u64;

    /// Returns the smallest and the largest derived value.
    fn bounds(&self) -> (f64, f64);

    /// Returns the number of derived values that are at most `limit`.
    fn at_most(&self, limit: f64) -> u64;

    /// Returns the derived value at `position` in ascending order, counted from 1. If the values are not stored,
    /// bisection over all floats finds it without additional memory.
    fn order_statistic(&self, position: u64) -> f64 {
        if let Some(kept) = self.kept() {
            let last = kept.len() - 1;
            return kept[usize::try_from(position - 1).map_or(last, |index| index.min(last))];
        }
        let (low, high) = self.bounds();
        bisect_floats(low, high, position, |limit| self.at_most(limit))
    }

    /// Returns the median of the derived values.
    fn median(&self) -> f64 {
        if let Some(kept) = self.kept() {
            return median_of_sorted(kept);
        }
        let count = self.count();
        let upper = self.order_statistic(count / 2 + 1);
        if count % 2 == 1 {
            upper
        } else {
            self.order_statistic(count / 2).midpoint(upper)
        }
    }

    /// Returns the interval that excludes `cut.outside` derived values at each end. `wanted` is the requested level.
    fn interval(&self, cut: Cutoff, wanted: f64) -> Interval {
        Interval {
            low: self.order_statistic(cut.outside + 1),
            high: self.order_statistic(self.count() - cut.outside),
            level: 1.0 - cut.error,
            wanted,
        }
    }
}

/// Where the two ends of an interval lie among the sorted derived values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cutoff {
    /// Number of derived values excluded at each end.
    pub outside: u64,
    /// Two-sided error rate of the test that is inverted to get the interval: 1 minus the confidence level.
    pub error: f64,
}
