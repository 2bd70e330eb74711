//! The few counters that decide whether a trial did what it claims, by name.

use super::counters::Delta;
use pagetide_quantity::Pages;

/// Growth of well-known vmstat counters; `None` where this kernel's vmstat has none of them.
impl Delta {
    /// Processes killed for lack of memory (also stands in a cgroup's `memory.events`).
    pub fn oom_kills(&self) -> Option<u64> {
        self.growth("oom_kill")
    }

    /// Pages read from swap devices.
    pub fn swapped_in(&self) -> Option<Pages> {
        self.growth("pswpin").map(Pages)
    }

    /// Pages written to swap devices.
    pub fn swapped_out(&self) -> Option<Pages> {
        self.growth("pswpout").map(Pages)
    }

    /// Pages scanned by all reclaimers, memory cgroups included.
    pub fn scanned(&self) -> Option<Pages> {
        self.growth_of(&["pgscan_anon", "pgscan_file"]).map(Pages)
    }

    /// Pages reclaimed by all reclaimers, memory cgroups included.
    pub fn reclaimed(&self) -> Option<Pages> {
        self.growth_of(&["pgsteal_anon", "pgsteal_file"]).map(Pages)
    }

    /// Evicted pages that came back.
    pub fn refaults(&self) -> Option<Pages> {
        self.growth_of(&["workingset_refault_anon", "workingset_refault_file"])
            .map(Pages)
    }

    /// Faults that waited for I/O.
    pub fn major_faults(&self) -> Option<u64> {
        self.growth("pgmajfault")
    }

    /// Allocations that had to reclaim by themselves.
    pub fn direct_reclaims(&self) -> Option<u64> {
        self.growth_of(&[
            "allocstall_dma",
            "allocstall_dma32",
            "allocstall_normal",
            "allocstall_movable",
            "allocstall_device",
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_the_kernel_lacks_is_no_zero() {
        let delta: Delta = [("pgscan_anon", 5_i64), ("pswpin", 0)]
            .into_iter()
            .collect();
        assert_eq!(delta.scanned(), Some(Pages(5)));
        assert_eq!(delta.swapped_in(), Some(Pages(0)));
        assert_eq!(delta.swapped_out(), None);
        assert_eq!(delta.oom_kills(), None);
    }
}
