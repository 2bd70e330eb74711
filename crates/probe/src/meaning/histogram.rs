//! A log-linear histogram of durations: 16 steps for each power of two, so a value is known to within 1/16.
//!
//! Fixed memory, no allocation when recording; the idea is HdrHistogram's (Gil Tene), reduced to what a record needs.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Steps within a power of two.
const STEPS: usize = 16;
/// Values from 2^40 ns (18 minutes) on share the last bucket.
const BUCKETS: usize = STEPS + (40 - 4) * STEPS;

/// Durations, counted by size. Serialises as the buckets that are not empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Stored", from = "Stored")]
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

/// What a histogram says in few numbers; nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HistogramSummary {
    /// How many durations.
    pub count: u64,
    /// Their sum.
    pub total: Nanos,
    /// The shortest, exact.
    pub min: Nanos,
    /// The mean, exact.
    pub mean: f64,
    /// The median, to within 1/16.
    pub p50: Nanos,
    /// The 90th percentile, to within 1/16.
    pub p90: Nanos,
    /// The 99th percentile, to within 1/16.
    pub p99: Nanos,
    /// The longest, exact.
    pub max: Nanos,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

/// Which bucket a value belongs to.
fn bucket(value: u64) -> usize {
    let Some(power) = value.checked_ilog2().filter(|&power| power >= 4) else {
        return usize::try_from(value).unwrap_or(0);
    };
    let step = usize::try_from(value >> (power - 4)).unwrap_or(0) - STEPS;
    let row = usize::try_from(power - 3).unwrap_or(0);
    (row * STEPS + step).min(BUCKETS - 1)
}

/// The smallest value of a bucket.
fn lowest(bucket: usize) -> u64 {
    let (row, step) = (bucket / STEPS, bucket % STEPS);
    let step = u64::try_from(step).unwrap_or(0);
    if row == 0 {
        step
    } else {
        (16 + step) << (row - 1)
    }
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&mut self, value: Nanos) {
        let value = value.get();
        self.counts[bucket(value)] += 1;
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, exact.
    pub fn total(&self) -> Nanos {
        Nanos(self.sum)
    }

    /// The value below which this share (0 to 1) of the durations lies, as the upper bound of its bucket and never above
    /// the maximum; `None` where there is none.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        if self.count == 0 {
            return None;
        }
        let wanted = share.clamp(0.0, 1.0) * self.count as f64;
        let mut seen = 0;
        for (at, &count) in self.counts.iter().enumerate() {
            seen += count;
            if count > 0 && seen as f64 >= wanted {
                let upper = lowest(at + 1).saturating_sub(1);
                return Some(Nanos(upper.clamp(self.min, self.max)));
            }
        }
        Some(Nanos(self.max))
    }

    /// In few numbers; all zero where nothing was counted.
    pub fn summary(&self) -> HistogramSummary {
        if self.count == 0 {
            return HistogramSummary::default();
        }
        let at = |share| self.quantile(share).unwrap_or_default();
        HistogramSummary {
            count: self.count,
            total: self.total(),
            min: Nanos(self.min),
            mean: self.sum as f64 / self.count as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: Nanos(self.max),
        }
    }

    /// The buckets that are not empty: the smallest value of each, and how many durations it has.
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.counts
            .iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0)
            .map(|(at, &count)| (Nanos(lowest(at)), count))
    }
}

/// The form in records.
#[derive(Serialize, Deserialize)]
struct Stored {
    total: u64,
    min: u64,
    max: u64,
    buckets: Vec<(u64, u64)>,
}

impl From<Histogram> for Stored {
    fn from(histogram: Histogram) -> Self {
        Self {
            total: histogram.sum,
            min: if histogram.count == 0 {
                0
            } else {
                histogram.min
            },
            max: histogram.max,
            buckets: histogram
                .buckets()
                .map(|(from, n)| (from.get(), n))
                .collect(),
        }
    }
}

impl From<Stored> for Histogram {
    fn from(stored: Stored) -> Self {
        let mut histogram = Self {
            sum: stored.total,
            max: stored.max,
            ..Self::default()
        };
        for (from, count) in stored.buckets {
            histogram.counts[bucket(from)] += count;
            histogram.count = histogram.count.saturating_add(count);
        }
        if histogram.count > 0 {
            histogram.min = stored.min;
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_buckets_are_narrow() {
        for value in (0..5000).chain([1 << 20, (1 << 30) + 12_345, (1 << 40) - 1]) {
            let at = bucket(value);
            assert!(lowest(at) <= value && value < lowest(at + 1), "{value}");
            assert!((lowest(at + 1) - lowest(at)) as f64 <= (value as f64 / 16.0).max(1.0));
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_within_a_sixteenth_and_extremes_exact() {
        let mut histogram = Histogram::default();
        for value in 1..=10_000_u64 {
            histogram.record(Nanos(value * 1000));
        }
        let summary = histogram.summary();
        assert_eq!(summary.min, Nanos(1000));
        assert_eq!(summary.max, Nanos(10_000_000));
        assert!((summary.mean - 5_000_500.0).abs() < 1e-6);
        let p99 = summary.p99.get() as f64;
        assert!((p99 / 9_900_000.0 - 1.0).abs() < 1.0 / 16.0, "{p99}");
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn the_stored_form_gives_the_same_histogram_back() {
        let mut histogram = Histogram::default();
        for value in [0, 5, 17, 900, 900, 1 << 50] {
            histogram.record(Nanos(value));
        }
        let text = serde_json::to_string(&histogram).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), histogram);
    }
}
