//! The request for a trial.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{
    ArenaSpec, CpusSpec, FilesSpec, KernelId, MemorySpec, NodesSpec, Pass, Subject, SwapSpec,
    TraceRing, Variant,
};
use serde::{Deserialize, Serialize};

/// A requested variant: name, kernel, boot arguments, settings and swap. The kernel is given by name, not yet resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantSpec {
    /// Short name of the variant, used as column heading in tables.
    pub name: String,
    /// The kernel, as named by the user, such as `debian:sid`, `deb:PACKAGE=VERSION` or a path. Empty for the arena's
    /// default kernel.
    pub kernel: String,
    /// Boot arguments of the variant, appended to those of the arena.
    pub boot: Vec<String>,
    /// Values of settings by name, such as `vm.swappiness`, `lru_gen/enabled` or a path below `/sys` or `/proc/sys`.
    pub settings: BTreeMap<String, String>,
    /// Kind of swap of this variant; `None` for the cell's. Planning copies it to [`Trial::swap`], which arenas read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapSpec>,
    /// Size of swap of this variant; `None` for the cell's. Planning copies it to [`Trial::swap_size`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_size: Option<Bytes>,
}

/// The request for one trial, as in a campaign file: the kernel's name and defaults are not resolved yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Name of the scenario.
    pub scenario: String,
    /// True to run the scenario exactly as the original program did, including its mistakes.
    pub as_written: bool,
    /// Parameters given by the user, as text. All other parameters have the scenario's defaults.
    pub params: BTreeMap<String, String>,
    /// Random seed of the page references, the start phase and the small ballast.
    pub seed: u64,
    /// The kernel, boot arguments and settings that a comparison varies.
    pub variant: VariantSpec,
    /// Memory that is free at the workload's start or, with `total:`, the machine's whole memory.
    pub memory: MemorySpec,
    /// Memory nodes of the machine; by default a single node.
    #[serde(default, skip_serializing_if = "NodesSpec::is_default")]
    pub nodes: NodesSpec,
    /// Memory limit of a cgroup around the whole workload; `None` for no such cgroup. The host arena then uses `memory`
    /// as the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Bytes>,
    /// Kind of swap of the trial.
    pub swap: SwapSpec,
    /// Size of the swap device; `None` for the arena's default.
    pub swap_size: Option<Bytes>,
    /// Type of the file system and the device under it, if the scenario needs a file system.
    #[serde(default, skip_serializing_if = "FilesSpec::is_default")]
    pub files_on: FilesSpec,
    /// CPUs of the machine.
    #[serde(default, skip_serializing_if = "CpusSpec::is_default")]
    pub cpus: CpusSpec,
    /// Timed, observed or profiled pass.
    pub pass: Pass,
    /// Size of the kernel's ring buffer for trace events in an observed trial; the default in other trials.
    #[serde(default, skip_serializing_if = "TraceRing::is_default")]
    pub trace_ring: TraceRing,
    /// True if a profiled pass also records references to pages. They do not change its results, so they are not part
    /// of the subject.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub references: bool,
    /// Function whose instructions a profiled pass counts one by one, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotate: Option<String>,
    /// Index of the sampling unit within the cell, from 0. In an arena with noise, trials of the same variant, cell and
    /// unit share a boot (or a fresh arena). In an arena without noise, every trial is a unit.
    pub unit: u32,
    /// Index of the repetition within the unit, from 0.
    pub repetition: u32,
    /// Wall-clock time of the trial on the machine described at [`Arena::here`](crate::Arena::here), if stated. Used
    /// for forecasts only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Nanos>,
}

impl Trial {
    /// Creates a request that repeats the trial of this subject. `kernel` is the name by which the kernel can be found.
    pub fn again(subject: &Subject, kernel: &str) -> Self {
        Self {
            scenario: subject.scenario.clone(),
            as_written: subject.as_written,
            params: subject.params.clone(),
            seed: subject.seed,
            variant: VariantSpec {
                name: subject.variant.name.clone(),
                kernel: kernel.to_owned(),
                boot: subject.variant.boot.clone(),
                settings: subject.variant.settings.clone(),
                ..VariantSpec::default()
            },
            memory: subject.memory,
            nodes: subject.nodes.clone(),
            limit: subject.limit,
            swap: subject.swap,
            swap_size: Some(subject.swap_size),
            files_on: subject.files_on,
            cpus: subject.cpus,
            pass: subject.pass,
            trace_ring: subject.trace_ring,
            references: false,
            annotate: None,
            unit: 0,
            repetition: 0,
            takes: None,
        }
    }

    /// Returns the subject of this trial as far as the request determines it. The arena adds its own properties and may
    /// resolve parameters. `kernel` is the resolved kernel. `swap_size` is used if the request has no swap size.
    pub fn subject(&self, kernel: KernelId, swap_size: Bytes) -> Subject {
        Subject {
            scenario: self.scenario.clone(),
            as_written: self.as_written,
            params: self.params.clone(),
            seed: self.seed,
            variant: Variant {
                name: self.variant.name.clone(),
                kernel,
                boot: self.variant.boot.clone(),
                settings: self.variant.settings.clone(),
            },
            arena: ArenaSpec::default(),
            memory: self.memory,
            nodes: self.nodes.clone(),
            limit: self.limit,
            swap: self.swap,
            swap_size: self.swap_size.unwrap_or(swap_size),
            files_on: self.files_on,
            cpus: self.cpus,
            pass: self.pass,
            trace_ring: self.trace_ring,
        }
    }
}
