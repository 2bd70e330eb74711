//! Memory cgroups of a workload, with limits and protection.

use serde::{Deserialize, Serialize};

use crate::size::{Limit, Size};

/// A memory cgroup (version 2) of a workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Group {
    /// Name of the group in the workload; also of its cgroup, unless `each` is true.
    pub name: String,
    /// True if each process in the group gets a cgroup of its own, with the same limits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub each: bool,
    /// Limit above which the kernel reclaims, and OOM-kills if it cannot (`memory.max`).
    #[serde(default, skip_serializing_if = "Limit::is_max")]
    pub max: Limit,
    /// Memory usage above which the kernel reclaims and throttles (`memory.high`).
    #[serde(default, skip_serializing_if = "Limit::is_max")]
    pub high: Limit,
    /// Amount of memory that is reclaimed only if no unprotected memory is left (`memory.low`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<Size>,
    /// Amount of memory that is never reclaimed (`memory.min`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Size>,
    /// Maximum amount of swap that the group uses (`memory.swap.max`); `0` for none.
    #[serde(default, skip_serializing_if = "Limit::is_max")]
    pub swap_max: Limit,
}

impl Group {
    /// Returns the limits and protections that are set, in the order in which they are written. Each has the name of
    /// its cgroup file without `memory.`.
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
