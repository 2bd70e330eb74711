//! Groups: memory control groups with limits and protection.

use serde::{Deserialize, Serialize};

use crate::size::{Limit, Size};

/// A memory control group (version 2) of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Group {
    /// Name of the group.
    pub name: String,
    /// True if each process in the group gets a group of its own, with the same limits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each: bool,
    /// Limit above which the kernel reclaims, and kills if it cannot (`memory.max`).
    #[serde(default, skip_serializing_if = "Limit::is_max")]
    pub max: Limit,
    /// Memory above which the kernel reclaims and throttles (`memory.high`).
    #[serde(default, skip_serializing_if = "Limit::is_max")]
    pub high: Limit,
    /// Memory that is reclaimed only if no unprotected memory is left (`memory.low`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<Size>,
    /// Memory that is never reclaimed (`memory.min`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Size>,
    /// Largest amount of swap (`memory.swap.max`); `0` for none.
    #[serde(default, skip_serializing_if = "Limit::is_max")]
    pub swap_max: Limit,
}

impl Group {
    /// Returns the limits and protections that are set, in the order in which they are written. Each is named like its
    /// cgroup file, without `memory.`.
    pub fn sizes(&self) -> Vec<(&'static str, Size)> {
        let limit = |limit: Limit| match limit {
            Limit::Max => None,
            Limit::Size(size) => Some(size),
        };
        let all = [
            ("max", limit(self.max)),
            ("high", limit(self.high)),
            ("low", self.low),
            ("min", self.min),
            ("swap.max", limit(self.swap_max)),
        ];
        all.into_iter()
            .filter_map(|(file, size)| size.map(|size| (file, size)))
            .collect()
    }
}
