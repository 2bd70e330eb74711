//! Everything that one trial produced.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::outcome::{Invalid, Warning};
use crate::subject::{Subject, hex};
use pagetide_quantity::{Bytes, Histogram, Metric, Nanos};

/// Newest schema version that this program reads; a newer record is refused. A record is written with the oldest
/// version that can express it ([`Subject::schema`]).
pub const SCHEMA: u32 = 4;

/// The program and command that made a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maker {
    /// Version of pagetide.
    pub version: String,
    /// Command line that repeats this trial.
    pub command: String,
}

/// The machine that a trial ran on. Not covered by the digest, because an exact trial does not depend on it.
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

/// Everything that depends on the machine and the time. Not covered by the digest, and marked wherever it is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wall {
    /// Start of the trial, nanoseconds since 1970.
    pub started: Nanos,
    /// Time from starting the emulator to the scenario's first instruction.
    pub to_first_instruction: Nanos,
    /// Time from the scenario's first instruction to its end.
    pub scenario: Nanos,
    /// Time from the end of the scenario to the stored record.
    pub to_stored: Nanos,
    /// Time of the whole trial.
    pub total: Nanos,
    /// Number of concurrent trials when this one started, including itself.
    pub side_by_side: u32,
    /// Campaign that this trial belongs to.
    pub campaign: String,
    /// Index of the sampling unit within cell and variant: trials of one unit share a boot or a fresh arena.
    #[serde(default)]
    pub unit: u32,
    /// Index of the repetition within the unit.
    #[serde(default)]
    pub repetition: u32,
    /// The machine.
    pub machine: Machine,
}

/// Counters of one source, before and after the scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Value before and value after, by the kernel's name of the counter.
    pub values: BTreeMap<String, [u64; 2]>,
}

impl Counters {
    /// After minus before; `None` if the kernel has no such counter.
    pub fn delta(&self, name: &str) -> Option<u64> {
        self.values
            .get(name)
            .map(|[before, after]| after.wrapping_sub(*before))
    }

    /// Sum of the differences of several counters; `None` if the kernel has none of them.
    pub fn sum(&self, names: &[&str]) -> Option<u64> {
        names
            .iter()
            .filter_map(|name| self.delta(name))
            .reduce(u64::wrapping_add)
    }
}

/// Evidence that the guest's CPU never halted during the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halts {
    /// `idle_calls` of `/proc/timer_list` before and after; `None` if the kernel does not show it.
    pub idle_calls: Option<[u64; 2]>,
    /// Idle time of `/proc/stat` in clock ticks before and after.
    pub idle_ticks: [u64; 2],
}

impl Halts {
    /// How often the CPU went idle, as far as the kernel shows it.
    pub fn times(&self) -> u64 {
        let calls = self
            .idle_calls
            .map_or(0, |[before, after]| after.saturating_sub(before));
        calls.max(self.idle_ticks[1].saturating_sub(self.idle_ticks[0]))
    }
}

/// Everything that the guest (or the host arena) reports of a trial. All of it is covered by the digest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Reasons why the numbers must not be used; empty for a valid trial.
    pub invalid: Vec<Invalid>,
    /// Warnings for the reader.
    pub warnings: Vec<Warning>,
    /// Settings as read back after they were applied, including those that the arena always sets.
    pub settings: BTreeMap<String, String>,
    /// Facts about the guest: release, memory totals, timer resolution, memory used by the kernel.
    pub facts: BTreeMap<String, String>,
    /// Metrics of the scenario.
    pub metrics: Vec<Metric>,
    /// Counters by source (`vmstat`, `zram`, …) before and after.
    pub counters: BTreeMap<String, Counters>,
    /// Texts of `/proc` by name, such as `zoneinfo-before`.
    pub texts: BTreeMap<String, String>,
    /// Log-linear histograms by name, such as `access` in nanoseconds.
    pub histograms: BTreeMap<String, Histogram>,
    /// Time from the scenario's start to its end, on the trial's clock.
    pub elapsed: Nanos,
    /// Evidence of exactness; `None` if it is not needed.
    pub halts: Option<Halts>,
    /// The last lines of the kernel log.
    pub kernel_log: String,
}

/// Everything that one trial produced, except its bulk sections (series and blobs), which are read from the file on
/// demand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Schema version.
    pub schema: u32,
    /// What determined the trial.
    pub subject: Subject,
    /// The program and command that made it.
    pub maker: Maker,
    /// Results of the trial.
    pub results: Results,
    /// Memory-related build options of the kernel, without `CONFIG_`; empty if they are not known. Not covered by the
    /// digest, because the kernel's digest already covers them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kernel_config: BTreeMap<String, String>,
    /// Everything that depends on the machine and the time; not covered by the digest.
    pub wall: Wall,
    /// Digest of the results and every bulk section, in hex.
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
    /// Identity of this record: a hash of subject, results, machine and time.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.subject.key());
        hash.update(&self.digest);
        hash.update(serde_json::to_vec(&self.wall).unwrap_or_default());
        hex(&hash.finalize()[..16])
    }

    /// True if the numbers may be used.
    pub fn is_valid(&self) -> bool {
        self.results.invalid.is_empty()
    }

    /// The reasons why the numbers must not be used, in one sentence; `None` if they may be used.
    pub fn why_invalid(&self) -> Option<String> {
        let all = self.results.invalid.iter();
        let reasons: Vec<String> = all.map(ToString::to_string).collect();
        (!self.is_valid()).then(|| reasons.join("; "))
    }

    /// The metric with this name.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.results
            .metrics
            .iter()
            .find(|metric| metric.name == name)
    }

    /// Digest of results and bulk sections. Equal digests mean that the trials are equal bit by bit.
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
