//! Everything that one trial produced.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::outcome::{Invalid, Warning};
use crate::subject::{Subject, hex};
use pagetide_quantity::{Bytes, Histogram, Metric, Nanos};

/// Newest schema version that this program reads; it refuses records of newer versions. A record is written with the
/// oldest version that can express it ([`Subject::schema`]).
pub const SCHEMA: u32 = 6;

/// The version of pagetide that made a record, and the command that repeats the trial.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maker {
    /// Version of the pagetide program.
    pub version: String,
    /// Command line that repeats the trial.
    pub command: String,
}

/// The machine on which a trial ran. Not covered by the digest, because an exact trial does not depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Model name of the processor.
    pub cpu: String,
    /// Number of processors of the machine.
    pub cpus: u32,
    /// Total memory of the machine.
    pub memory: Bytes,
    /// Release of the machine's running kernel.
    pub kernel: String,
    /// Name of the machine's Linux distribution.
    pub system: String,
}

/// Data about a trial that depend on the machine and the time. They are not covered by the digest, and are marked
/// wherever they are shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Wall {
    /// Start of the trial, in nanoseconds since 1970.
    pub started: Nanos,
    /// Time from starting the emulator (in the arena `host`: from the preparation) to the scenario's first instruction.
    pub to_first_instruction: Nanos,
    /// Time from the scenario's first instruction to the scenario's end.
    pub scenario: Nanos,
    /// Time from the end of the scenario to the stored record.
    pub to_stored: Nanos,
    /// Wall-clock time of the whole trial.
    pub total: Nanos,
    /// Number of trials that were running when this trial started, including this trial.
    pub side_by_side: u32,
    /// Name of the campaign to which this trial belongs.
    pub campaign: String,
    /// Index of the sampling unit within cell and variant: trials of one unit share a boot or a fresh arena.
    #[serde(default)]
    pub unit: u32,
    /// Index of the repetition within the unit.
    #[serde(default)]
    pub repetition: u32,
    /// The machine on which the trial ran.
    pub machine: Machine,
}

/// Counters of one source, such as `/proc/vmstat`, before and after the scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Values of each counter before and after the scenario, by the kernel's name of the counter.
    pub values: BTreeMap<String, [u64; 2]>,
}

impl Counters {
    /// Returns the increase of the counter `name` during the scenario; `None` if the kernel has no such counter.
    pub fn delta(&self, name: &str) -> Option<u64> {
        self.values
            .get(name)
            .map(|[before, after]| after.wrapping_sub(*before))
    }

    /// Returns the sum of the increases of several counters; `None` if the kernel has none of these counters.
    pub fn sum(&self, names: &[&str]) -> Option<u64> {
        names
            .iter()
            .filter_map(|name| self.delta(name))
            .reduce(u64::wrapping_add)
    }
}

/// Counts that show whether the guest's CPU went idle during the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halts {
    /// `idle_calls` of `/proc/timer_list` before and after the measurement; `None` if the kernel does not print this
    /// line.
    pub idle_calls: Option<[u64; 2]>,
    /// Idle and I/O-wait time in `/proc/stat` before and after the measurement, in clock ticks.
    pub idle_ticks: [u64; 2],
}

impl Halts {
    /// Returns the larger increase: of `idle_calls` (0 if not shown) or of `idle_ticks`. Above 0, the CPU went idle.
    pub fn times(&self) -> u64 {
        let calls = self
            .idle_calls
            .map_or(0, |[before, after]| after.saturating_sub(before));
        calls.max(self.idle_ticks[1].saturating_sub(self.idle_ticks[0]))
    }
}

/// Everything that the guest (or the host arena) reports about a trial. All of it is covered by the digest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Reasons why the results must not be used; empty for a valid trial.
    pub invalid: Vec<Invalid>,
    /// Warnings to show with the results.
    pub warnings: Vec<Warning>,
    /// Value of each recorded setting by name, read after all settings were applied: settings of the trial, settings
    /// that the arena always applies, and common settings that nobody changed.
    pub settings: BTreeMap<String, String>,
    /// Facts about the guest: release, memory totals, timer resolution, memory used by the kernel.
    pub facts: BTreeMap<String, String>,
    /// Metrics of the scenario with their values.
    pub metrics: Vec<Metric>,
    /// Counters by source (`vmstat`, `zram`, …), each with values before and after the scenario.
    pub counters: BTreeMap<String, Counters>,
    /// Texts of files in `/proc` by name, such as `zoneinfo-before`.
    pub texts: BTreeMap<String, String>,
    /// Log-linear histograms by name, such as `access` in nanoseconds.
    pub histograms: BTreeMap<String, Histogram>,
    /// Time from the scenario's start to its end, on the trial's clock.
    pub elapsed: Nanos,
    /// Counts that show whether the guest's CPU went idle; `None` where an idle CPU is normal.
    pub halts: Option<Halts>,
    /// The last lines of the kernel log; in the arena `host`, of its reports of kills in the workload's cgroup.
    pub kernel_log: String,
}

impl Results {
    /// Returns the peak memory of all zram devices of swap in bytes, as the sum of the devices' own maxima; `None` if
    /// there is no zram device. The source `zram` has the counters of the first device. If there are several, each has
    /// a source of its own too, such as `zram-zram1`.
    pub fn zram_peak(&self) -> Option<u64> {
        let most = |counters: &Counters| counters.values.get("mem_used_max").map(|[_, most]| *most);
        let each = self.counters.iter();
        let each = each.filter(|(source, _)| source.starts_with("zram-"));
        let sum = each.filter_map(|(_, zram)| most(zram)).reduce(|a, b| a + b);
        sum.or_else(|| most(self.counters.get("zram")?))
    }
}

/// Everything that one trial produced, except its bulk sections (series and blobs), which are read from the file on
/// demand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Schema version of the record's JSON.
    pub schema: u32,
    /// Everything that determined the trial.
    pub subject: Subject,
    /// The version of pagetide that made the record, and the command that repeats the trial.
    pub maker: Maker,
    /// Everything that the guest (or the host arena) reported.
    pub results: Results,
    /// Memory-related build options of the kernel, without `CONFIG_`; empty if they are not known. Not covered by the
    /// digest, because the kernel's digest already covers them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kernel_config: BTreeMap<String, String>,
    /// Data that depend on the machine and the time; not covered by the digest.
    pub wall: Wall,
    /// SHA-256 of the results and all bulk sections, in hex.
    pub digest: String,
    /// Kind, name, size and digest of each bulk section.
    pub sections: Vec<SectionInfo>,
}

/// Kind, name, size and digest of a bulk section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionInfo {
    /// Kind of the section: `series` or `blob`.
    pub kind: String,
    /// Name of the section, unique within its kind.
    pub name: String,
    /// Size of the section before compression.
    pub size: Bytes,
    /// SHA-256 of the uncompressed bytes, in hex.
    pub digest: String,
}

impl Record {
    /// Returns the ID of this record: a hash of the subject's key, the digest and the wall data, in hex.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(self.subject.key());
        hash.update(&self.digest);
        hash.update(serde_json::to_vec(&self.wall).unwrap_or_default());
        hex(&hash.finalize()[..16])
    }

    /// Returns true if the results may be used.
    pub fn is_valid(&self) -> bool {
        self.results.invalid.is_empty()
    }

    /// Returns the reasons why the results must not be used, in one sentence; `None` if they may be used.
    pub fn why_invalid(&self) -> Option<String> {
        let all = self.results.invalid.iter();
        let reasons: Vec<String> = all.map(ToString::to_string).collect();
        (!self.is_valid()).then(|| reasons.join("; "))
    }

    /// Returns the metric with this name; `None` if the record has no such metric.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.results
            .metrics
            .iter()
            .find(|metric| metric.name == name)
    }

    /// Returns the SHA-256 of results and bulk sections, in hex. Two trials with equal digests are equal bit by bit.
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
    fn the_memory_of_zram_is_that_of_all_devices_each_counted_once() {
        let counters = |most: u64| Counters {
            values: [("mem_used_max".to_owned(), [0, most])].into(),
        };
        let results = |sources: &[(&str, u64)]| Results {
            counters: sources
                .iter()
                .map(|(name, most)| ((*name).to_owned(), counters(*most)))
                .collect(),
            ..Results::default()
        };
        assert_eq!(results(&[]).zram_peak(), None);
        assert_eq!(results(&[("vmstat", 9)]).zram_peak(), None);
        assert_eq!(results(&[("zram", 4)]).zram_peak(), Some(4));
        let one = [("zram", 4), ("zram-zram0", 4), ("writeback-zram0", 1)];
        assert_eq!(results(&one).zram_peak(), Some(4));
        let two = [("zram", 4), ("zram-zram0", 4), ("zram-zram1", 3)];
        assert_eq!(results(&two).zram_peak(), Some(7));
    }
}
