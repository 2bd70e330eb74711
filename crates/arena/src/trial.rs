//! A trial as it was asked for.

use std::collections::BTreeMap;

use pagetide_quantity::Bytes;
use pagetide_record::{MemorySpec, Pass, SwapSpec};
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
    /// Timed or observed.
    pub pass: Pass,
    /// Sampling unit within the cell, counted from 0. In an arena with noise, trials of one variant and cell with the
    /// same unit share a boot (or a fresh arena); where there is no noise every trial is a unit of its own.
    pub unit: u32,
    /// Repetition within the unit, counted from 0.
    pub repetition: u32,
}
