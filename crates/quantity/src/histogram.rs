//! A log-linear histogram: the distribution of values, to within 3.2 %.
//!
//! The idea is HdrHistogram's (Gil Tene), reduced to what a record needs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A log-linear histogram. Bucket `i` below 64 holds the value `i` alone. From 64 on, each power of two is divided into
/// 32 buckets, so a bucket is at most 3.2 % wide. The index of a bucket determines its bounds (see
/// [`Histogram::bounds`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Index and count of each bucket that is not empty, in ascending order of index.
    pub buckets: Vec<(u32, u64)>,
    /// Number of values in the histogram.
    pub count: u64,
    /// Sum of the values, in the values' unit. On overflow, `record` saturates and `merge` wraps around.
    pub sum: u64,
    /// Smallest value; 0 if there are no values.
    pub min: u64,
    /// Largest value; 0 if there are no values.
    pub max: u64,
}

/// Number of buckets into which each power of two is divided.
const SUB: u32 = 32;

impl Histogram {
    /// Number of buckets that are needed for all values of `u64`.
    pub const BUCKETS: usize = 64 + 58 * SUB as usize;

    /// Returns the index of the bucket that holds `value`.
    #[inline]
    pub const fn index(value: u64) -> u32 {
        if value < 64 {
            // Below 64 every value has its own bucket.
            return (value & 63) as u32;
        }
        let exponent = value.ilog2();
        let within = (value >> (exponent - 5)) & 31;
        64 + (exponent - 6) * SUB + (within & 31) as u32
    }

    /// Returns the smallest and the largest value that the bucket with this index holds.
    pub const fn bounds(index: u32) -> (u64, u64) {
        if index < 64 {
            return (index as u64, index as u64);
        }
        let exponent = (index - 64) / SUB + 6;
        let within = ((index - 64) % SUB) as u64;
        let low = (32 + within) << (exponent - 5);
        (low, low + ((1 << (exponent - 5)) - 1))
    }

    /// Builds a histogram from the counts of all buckets, starting at bucket 0, and from the sum, minimum and maximum
    /// of the values.
    pub fn from_dense(dense: &[u64], sum: u64, min: u64, max: u64) -> Self {
        let buckets: Vec<(u32, u64)> = dense
            .iter()
            .zip(0_u32..)
            .filter(|(count, _)| **count > 0)
            .map(|(count, index)| (index, *count))
            .collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        Self {
            buckets,
            count,
            sum,
            min,
            max,
        }
    }

    /// Adds one value to the histogram.
    pub fn record(&mut self, value: u64) {
        let index = Self::index(value);
        match self.buckets.binary_search_by_key(&index, |(at, _)| *at) {
            Ok(at) => self.buckets[at].1 += 1,
            Err(at) => self.buckets.insert(at, (index, 1)),
        }
        self.min = if self.count == 0 {
            value
        } else {
            self.min.min(value)
        };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
    }

    /// Returns count, total, minimum, mean, percentiles and maximum. All are zero if there are no values.
    pub fn summary(&self) -> HistogramSummary {
        HistogramSummary {
            count: self.count,
            total: self.sum,
            min: self.min,
            mean: self.mean(),
            p50: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            max: self.max,
        }
    }

    /// Returns the mean of the values, from their sum and not from the buckets; zero if there are no values.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// Returns quantile `q` (0 to 1) by the nearest-rank rule: the middle of the bucket that holds the value of that
    /// rank, clamped to minimum and maximum. The maximum if `q` is 1; zero if there are no values.
    pub fn quantile(&self, q: f64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        if q >= 1.0 {
            return self.max;
        }
        let wanted = q.clamp(0.0, 1.0) * self.count as f64;
        let mut seen = 0_u64;
        for (index, count) in &self.buckets {
            seen += count;
            if seen as f64 >= wanted {
                let (low, high) = Self::bounds(*index);
                return (low + (high - low) / 2).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Adds all values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let mut all: BTreeMap<u32, u64> = self.buckets.iter().copied().collect();
        for (index, count) in &other.buckets {
            *all.entry(*index).or_default() += count;
        }
        self.min = if self.count == 0 {
            other.min
        } else {
            self.min.min(other.min)
        };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.buckets = all.into_iter().collect();
    }
}

impl FromIterator<u64> for Histogram {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut histogram = Self::default();
        for value in values {
            histogram.record(value);
        }
        histogram
    }
}

/// Summary of a histogram, in the unit of the histogram's values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HistogramSummary {
    /// Number of values in the histogram.
    pub count: u64,
    /// Sum of the values, as [`Histogram::sum`] has it.
    pub total: u64,
    /// Smallest value; exact.
    pub min: u64,
    /// Mean of the values, from their sum and not from the buckets.
    pub mean: f64,
    /// Median of the values; its relative error is at most 1/32.
    pub p50: u64,
    /// 90th percentile of the values; its relative error is at most 1/32.
    pub p90: u64,
    /// 99th percentile of the values; its relative error is at most 1/32.
    pub p99: u64,
    /// Largest value; exact.
    pub max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_buckets_tile_all_values() {
        let mut next = 0;
        for index in 0..u32::try_from(Histogram::BUCKETS).unwrap() {
            let (low, high) = Histogram::bounds(index);
            assert_eq!(low, next, "bucket {index} starts where the one before ends");
            assert_eq!(Histogram::index(low), index);
            assert_eq!(Histogram::index(high), index);
            assert!(
                (high - low) as f64 <= 0.032 * low as f64,
                "bucket {index} is narrow"
            );
            next = high.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends at the largest value");
    }

    #[test]
    fn quantiles_come_from_the_right_bucket() {
        let mut dense = vec![0; Histogram::BUCKETS];
        for value in 1..=1000_u64 {
            dense[Histogram::index(value) as usize] += 1;
        }
        let histogram = Histogram::from_dense(&dense, 500_500, 1, 1000);
        assert!((histogram.mean() - 500.5).abs() < 1e-9);
        let median = histogram.quantile(0.5) as f64;
        assert!((median - 500.0).abs() < 17.0, "{median}");
        assert_eq!(histogram.quantile(1.0), 1000);
    }

    #[test]
    fn values_recorded_one_by_one_give_the_histogram_of_their_dense_counts() {
        let values = [7, 900, 900, 0, 1 << 50, u64::MAX, 65];
        let mut dense = vec![0; Histogram::BUCKETS];
        for value in values {
            dense[Histogram::index(value) as usize] += 1;
        }
        let counted = Histogram::from_dense(&dense, u64::MAX, 0, u64::MAX);
        assert_eq!(values.into_iter().collect::<Histogram>(), counted);
    }

    #[test]
    fn quantiles_are_within_a_sixteenth_and_extremes_exact() {
        let histogram: Histogram = (1..=10_000_u64).map(|value| value * 1000).collect();
        let summary = histogram.summary();
        assert_eq!(summary.min, 1000);
        assert_eq!(summary.max, 10_000_000);
        assert!((summary.mean - 5_000_500.0).abs() < 1e-6);
        let p99 = summary.p99 as f64;
        assert!((p99 / 9_900_000.0 - 1.0).abs() < 1.0 / 16.0, "{p99}");
        assert_eq!(Histogram::default().summary(), HistogramSummary::default());
    }

    #[test]
    fn the_stored_form_gives_the_same_histogram_back() {
        let histogram: Histogram = [0, 5, 17, 900, 900, 1 << 50].into_iter().collect();
        let text = serde_json::to_string(&histogram).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
    }
}
