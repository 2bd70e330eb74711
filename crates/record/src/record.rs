//! All that one trial produced.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::metric::Metric;
use crate::outcome::{Invalid, Warning};
use crate::subject::{Subject, hex};
use crate::units::{Bytes, Nanos};

/// Version of the schema; a reader refuses records of a later one.
pub const SCHEMA: u32 = 1;

/// With what a record was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maker {
    /// Version of pagetide.
    pub version: String,
    /// Command line that repeats this trial.
    pub command: String,
}

/// The machine a trial ran on. Outside the digest: an exact trial does not depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Processor model.
    pub cpu: String,
    /// Number of processors.
    pub cpus: u32,
    /// Total memory.
    pub memory: Bytes,
    /// Kernel release of the host.
    pub kernel: String,
    /// Name of the host's distribution.
    pub system: String,
}

/// Everything that depends on the machine and the moment. Outside the digest, and marked so wherever it is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wall {
    /// Start of the trial, nanoseconds since 1970.
    pub started: Nanos,
    /// From starting the emulator to the scenario's first instruction.
    pub to_first_instruction: Nanos,
    /// From the scenario's first instruction to its end.
    pub scenario: Nanos,
    /// From the scenario's end to the stored record.
    pub to_stored: Nanos,
    /// Whole trial.
    pub total: Nanos,
    /// Trials running side by side when this one started, itself included.
    pub side_by_side: u32,
    /// Campaign this trial belongs to.
    pub campaign: String,
    /// Sampling unit within cell and variant: trials of one unit share a boot or a fresh arena.
    #[serde(default)]
    pub unit: u32,
    /// Repetition within the unit.
    #[serde(default)]
    pub repetition: u32,
    /// The machine.
    pub machine: Machine,
}

/// Counters of one source before and after the scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// By the kernel's own name: value before, value after.
    pub values: BTreeMap<String, [u64; 2]>,
}

impl Counters {
    /// After minus before; `None` where the kernel has no such counter.
    pub fn delta(&self, name: &str) -> Option<u64> {
        self.values
            .get(name)
            .map(|[before, after]| after.wrapping_sub(*before))
    }

    /// Sum of the differences of several counters; `None` where the kernel has none of them.
    pub fn sum(&self, names: &[&str]) -> Option<u64> {
        names
            .iter()
            .filter_map(|name| self.delta(name))
            .reduce(u64::wrapping_add)
    }
}

/// A log-linear histogram: bucket `i` below 64 holds the value `i`; above, each power of two has 32 buckets, so that a
/// bucket is at most 3.2 % wide. Bucket bounds follow from the index (see [`Histogram::bounds`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// Index and count of the buckets that are not empty, ascending.
    pub buckets: Vec<(u32, u64)>,
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: u64,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
}

/// Buckets for each power of two.
const SUB: u32 = 32;

impl Histogram {
    /// Number of buckets that cover all of `u64`.
    pub const BUCKETS: usize = 64 + 58 * SUB as usize;

    /// Bucket of a value.
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

    /// Smallest and largest value of a bucket.
    pub const fn bounds(index: u32) -> (u64, u64) {
        if index < 64 {
            return (index as u64, index as u64);
        }
        let exponent = (index - 64) / SUB + 6;
        let within = ((index - 64) % SUB) as u64;
        let low = (32 + within) << (exponent - 5);
        (low, low + ((1 << (exponent - 5)) - 1))
    }

    /// Builds a histogram from dense bucket counts.
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

    /// Mean of the values, exact; zero where there are none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum as f64 / self.count as f64
        }
    }

    /// The value below which a share `q` (0 to 1) of the values lies, by the nearest-rank rule, taken at the middle of
    /// its bucket and held within minimum and maximum; zero where there are no values.
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

    /// Adds another histogram's values.
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
        self.sum = self.sum.wrapping_add(other.sum);
        self.buckets = all.into_iter().collect();
    }
}

/// The proof that the guest's CPU never halted while it was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halts {
    /// `idle_calls` of `/proc/timer_list` before and after; `None` where the kernel does not tell.
    pub idle_calls: Option<[u64; 2]>,
    /// Idle time of `/proc/stat` in clock ticks before and after.
    pub idle_ticks: [u64; 2],
}

impl Halts {
    /// How often the CPU went idle, as far as the kernel tells.
    pub fn times(&self) -> u64 {
        let calls = self
            .idle_calls
            .map_or(0, |[before, after]| after.saturating_sub(before));
        calls.max(self.idle_ticks[1].saturating_sub(self.idle_ticks[0]))
    }
}

/// What the guest (or the host arena) reports of a trial. All of it is under the digest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Why the numbers must not be used; empty for a valid trial.
    pub invalid: Vec<Invalid>,
    /// What a reader should know.
    pub warnings: Vec<Warning>,
    /// Settings as read back after they were applied, and those the arena itself fixes.
    pub settings: BTreeMap<String, String>,
    /// Facts of the machine inside: release, memory totals, timer resolution, footprint.
    pub facts: BTreeMap<String, String>,
    /// What the scenario measured.
    pub metrics: Vec<Metric>,
    /// Counters by source (`vmstat`, `zram`, …) before and after.
    pub counters: BTreeMap<String, Counters>,
    /// Texts of `/proc` by name, such as `zoneinfo-before`.
    pub texts: BTreeMap<String, String>,
    /// Log-linear histograms by name, such as `access` in nanoseconds.
    pub histograms: BTreeMap<String, Histogram>,
    /// From the scenario's start to its end on the trial's clock.
    pub elapsed: Nanos,
    /// The proof of exactness; `None` where it is not needed.
    pub halts: Option<Halts>,
    /// The last lines of the kernel's log.
    pub kernel_log: String,
}

/// All that one trial produced, without its bulk sections (series and blobs), which are read from the file on demand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the schema.
    pub schema: u32,
    /// What determined the trial.
    pub subject: Subject,
    /// With what it was made.
    pub maker: Maker,
    /// What came out.
    pub results: Results,
    /// What depends on machine and moment; outside the digest.
    pub wall: Wall,
    /// Digest over the results and every bulk section, in hex.
    pub digest: String,
    /// Names and sizes of the bulk sections.
    pub sections: Vec<SectionInfo>,
}

/// Name and size of a bulk section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionInfo {
    /// `series` or `blob`.
    pub kind: String,
    /// Name, unique within its kind.
    pub name: String,
    /// Size before compression.
    pub size: Bytes,
    /// SHA-256 of the uncompressed bytes, in hex.
    pub digest: String,
}

impl Record {
    /// Identity of this very record: subject, results and moment.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.subject.key());
        hash.update(&self.digest);
        hash.update(serde_json::to_vec(&self.wall).unwrap_or_default());
        hex(&hash.finalize()[..16])
    }

    /// Whether the numbers may be used.
    pub fn is_valid(&self) -> bool {
        self.results.invalid.is_empty()
    }

    /// Why the numbers must not be used, all reasons in one sentence; `None` where they may.
    pub fn why_invalid(&self) -> Option<String> {
        let all = self.results.invalid.iter();
        let reasons: Vec<String> = all.map(ToString::to_string).collect();
        (!self.is_valid()).then(|| reasons.join("; "))
    }

    /// The metric of this name.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.results
            .metrics
            .iter()
            .find(|metric| metric.name == name)
    }

    /// Digest over results and bulk sections: equal digests mean equal trials, bit for bit.
    pub fn digest_of(results: &Results, sections: &[SectionInfo]) -> String {
        let mut hash = Sha256::new();
        hash.update(serde_json::to_vec(results).unwrap_or_default());
        for section in sections {
            hash.update(&section.kind);
            hash.update([0]);
            hash.update(&section.name);
            hash.update([0]);
            hash.update(&section.digest);
        }
        hex(&hash.finalize())
    }
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
}
