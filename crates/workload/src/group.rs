//! Groups: memory control groups with limits and protection.

use serde::{Deserialize, Serialize};

use crate::size::Limit;

/// A memory control group (version 2) of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Group {
    /// Name of the group.
    pub name: String,
    /// True if each process of the group gets a group of its own, with the same limits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each: bool,
    /// Limit above which the kernel reclaims, and kills if it cannot (`memory.max`).
    #[serde(default, skip_serializing_if = "Limit::is_max")]
    pub max: Limit,
    /// Memory above which the kernel reclaims and throttles (`memory.high`).
    #[serde(default, skip_serializing_if = "Limit::is_max")]
    pub high: Limit,
    /// Memory that is reclaimed only if nothing unprotected is left (`memory.low`); `max` protects everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<Limit>,
    /// Memory that is never reclaimed (`memory.min`); `max` protects everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Limit>,
    /// Largest amount of swap (`memory.swap.max`); `0` for none.
    #[serde(default, skip_serializing_if = "Limit::is_max")]
    pub swap_max: Limit,
}

impl Group {
    /// Returns the group's files and their values on a machine with this memory, in the order in which they are
    /// written. Limits that are not given are left out.
    pub fn files(&self, memory: pagetide_quantity::Bytes) -> Vec<(&'static str, String)> {
        let limits = [
            ("memory.max", Some(self.max).filter(|limit| !limit.is_max())),
            (
                "memory.high",
                Some(self.high).filter(|limit| !limit.is_max()),
            ),
            ("memory.low", self.low),
            ("memory.min", self.min),
            (
                "memory.swap.max",
                Some(self.swap_max).filter(|limit| !limit.is_max()),
            ),
        ];
        let given = |(file, limit): (&'static str, Option<Limit>)| {
            limit.map(|limit| (file, limit.file_text(memory)))
        };
        limits.into_iter().filter_map(given).collect()
    }
}
