//! All that one trial produced.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::outcome::{Invalid, Warning};
use crate::subject::{Subject, hex};
use pagetide_quantity::{Bytes, Histogram, Metric, Nanos};

/// Newest version of the schema that this program reads; a reader refuses records of a later one. A record has the oldest that
/// has words for it ([`Subject::schema`]).
pub const SCHEMA: u32 = 4;

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
    /// Options that the kernel was built with and that bear on memory, without `CONFIG_`; empty where they are not known.
    /// Outside the digest: the kernel's own speaks for them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kernel_config: BTreeMap<String, String>,
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
