//! A trial as it was asked for.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{
    ArenaSpec, FilesSpec, KernelId, MemorySpec, Pass, Subject, SwapSpec, TraceRing, Variant,
};
use serde::{Deserialize, Serialize};

/// A variant as it was asked for: the kernel is still only named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantSpec {
    /// Short name, the column head in tables.
    pub name: String,
    /// The kernel as the user names it: `debian:sid`, `deb:PACKAGE=VERSION`, a path. Empty for the arena's own.
    pub kernel: String,
    /// Boot arguments added to the arena's own.
    pub boot: Vec<String>,
    /// Settings by name: `vm.swappiness`, `lru_gen/enabled`, or a path below `/sys` or `/proc/sys`.
    pub settings: BTreeMap<String, String>,
}

/// One trial as it was asked for: what stands in a campaign file, nothing resolved yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Name of the scenario.
    pub scenario: String,
    /// Whether the scenario runs as its original did, faults included.
    pub as_written: bool,
    /// The parameters that were given, as text; the others take the scenario's defaults.
    pub params: BTreeMap<String, String>,
    /// Seed of the references, the start phase and the small ballast.
    pub seed: u64,
    /// What is compared.
    pub variant: VariantSpec,
    /// Memory the workload finds.
    pub memory: MemorySpec,
    /// What it swaps to.
    pub swap: SwapSpec,
    /// Size of the swap device; `None` for the arena's default.
    pub swap_size: Option<Bytes>,
    /// What its file system lies on, where it needs one.
    #[serde(default, skip_serializing_if = "FilesSpec::is_default")]
    pub files_on: FilesSpec,
    /// Timed or observed.
    pub pass: Pass,
    /// Where events of an observed trial wait; the default of a timed one.
    #[serde(default, skip_serializing_if = "TraceRing::is_default")]
    pub trace_ring: TraceRing,
    /// Sampling unit within the cell, counted from 0. In an arena with noise, trials of one variant and cell with the
    /// same unit share a boot (or a fresh arena); where there is no noise every trial is a unit of its own.
    pub unit: u32,
    /// Repetition within the unit, counted from 0.
    pub repetition: u32,
    /// What it takes on the machine of [`Arena::here`](crate::Arena::here), where somebody said so: forecasts alone ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<Nanos>,
}

impl Trial {
    /// The trial that determines itself so, asked for again with this kernel.
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
            },
            memory: subject.memory,
            swap: subject.swap,
            swap_size: Some(subject.swap_size),
            files_on: subject.files_on,
            pass: subject.pass,
            trace_ring: subject.trace_ring,
            unit: 0,
            repetition: 0,
            takes: None,
        }
    }

    /// What determines this trial, as far as it was asked for; the arena adds where it runs, and may resolve the
    /// parameters. `swap_size` is the arena's choice where none was asked for.
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
            swap: self.swap,
            swap_size: self.swap_size.unwrap_or(swap_size),
            files_on: self.files_on,
            pass: self.pass,
            trace_ring: self.trace_ring,
        }
    }
}
