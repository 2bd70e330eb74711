//! Levels of free memory, relative to the zone watermarks, down to which a workload allocates.
//!
//! VM Regress ran its kernel tests at four levels. *Fast* stays above the high watermark. *Low* ends between the high
//! and the low watermark, where kswapd is awake. *Min* ends between the low and the min watermark. *Zero* uses all free
//! memory, so allocations enter direct reclaim.

use pagetide_quantity::{Bytes, Pages};
use pagetide_system::free::Zones;
use pagetide_system::meminfo;

use crate::trial::Trial;

/// A level of free memory (relative to the watermarks) down to which a workload allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floor {
    /// Four times the high watermark stays free. After a pass frees its memory, hundreds of pages are on the per-CPU
    /// lists, where the next pass may not find them (kernels since 6.7 let those lists grow).
    Fast,
    /// After the allocation, free memory is between the high and the low watermark.
    Low,
    /// After the allocation, free memory is between the low and the min watermark.
    Min,
    /// No memory stays free.
    Zero,
}

/// All levels, from the highest to the lowest.
pub(crate) const FLOORS: [Floor; 4] = [Floor::Fast, Floor::Low, Floor::Min, Floor::Zero];

impl Floor {
    /// Returns the name of the level in metrics and parameters.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Low => "low",
            Self::Min => "min",
            Self::Zero => "zero",
        }
    }

    /// Returns the number of pages that stay free at this level.
    fn stays_free(self, marks: &Zones) -> u64 {
        match self {
            Self::Fast => 4 * marks.high.0 + marks.reserve.0,
            Self::Low => u64::midpoint(marks.high.0, marks.low.0) + marks.reserve.0,
            Self::Min => u64::midpoint(marks.low.0, marks.min.0) + marks.reserve.0,
            Self::Zero => 0,
        }
    }

    /// Returns the number of pages to allocate to reach this level: free memory minus the pages that stay free. On a
    /// machine with other users, it is at most the number that the workload may use.
    pub(crate) fn pages(self, ground: &InitialMemory) -> Pages {
        // Pages on the per-CPU lists are allocated first, but are not counted as free. Without them no level below the
        // watermarks would be reached. The fast level leaves them as a reserve.
        let free = if self == Self::Fast {
            ground.free
        } else {
            Bytes(ground.free.0 + ground.zones.in_lists.bytes().0)
        };
        self.pages_of(free, ground.given, &ground.zones)
    }

    fn pages_of(self, free: Bytes, given: Bytes, marks: &Zones) -> Pages {
        // In a limited group on a large machine, the limit counts, not the machine's free memory. On a machine used by
        // the workload alone, the reserve beyond the given memory must be used up too.
        let free = if free.0 / 2 > given.0 { given } else { free };
        let free = free.pages().0;
        Pages(free.saturating_sub(self.stays_free(marks)).max(1))
    }
}

/// Free memory and watermarks before anything is allocated. They are read once: freed pages first go to the per-CPU
/// lists, where they are not counted as free.
pub(crate) struct InitialMemory {
    free: Bytes,
    given: Bytes,
    zones: Zones,
}

impl InitialMemory {
    /// Reads the current amount of free memory and the watermarks.
    ///
    /// In a memory cgroup, free memory is its limit, and there are no watermarks.
    pub(crate) fn now(trial: &Trial<'_>) -> Self {
        if trial.subject.limit.is_some() {
            return Self {
                free: trial.memory(),
                given: trial.memory(),
                zones: Zones::default(),
            };
        }
        Self {
            free: meminfo::amount("MemFree").unwrap_or(trial.memory()),
            given: trial.memory(),
            zones: Zones::now().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_floors_take_more_pages_but_never_all_of_a_large_machine() {
        let marks = Zones {
            min: Pages(100),
            low: Pages(124),
            high: Pages(148),
            reserve: Pages(39),
            ..Zones::default()
        };
        let pages = FLOORS.map(|floor| {
            floor
                .pages_of(Pages(10_000).bytes(), Bytes::from_mib(1024), &marks)
                .0
        });
        assert_eq!(pages, [10_000 - 631, 10_000 - 175, 10_000 - 151, 10_000]);
        let own = Floor::Zero.pages_of(Bytes::from_mib(70), Bytes::from_mib(64), &marks);
        assert_eq!(own.bytes(), Bytes::from_mib(70));
        let given = Floor::Zero.pages_of(Bytes::from_mib(24_000), Bytes::from_mib(64), &marks);
        assert_eq!(given.bytes(), Bytes::from_mib(64));
    }
}
