//! Floors of free memory between a zone's watermarks, down to which a workload allocates.
//!
//! VM Regress put its kernel tests at four of them: *fast* stays above the high watermark, *low* ends between high and
//! low, where kswapd is awake, *min* between low and min, and *zero* takes all there is, where an allocation must reclaim
//! for itself.

use pagetide_quantity::{Bytes, Pages};
use pagetide_system::free::Zones;
use pagetide_system::meminfo;

use crate::trial::Trial;

/// A floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floor {
    /// Four times the high watermark stays free: of what a pass frees, hundreds of pages wait in the processors' own lists, where the
    /// next pass may not find them (kernels since 6.7 let those lists grow).
    Fast,
    /// Free memory ends between the high and the low watermark.
    Low,
    /// Between the low and the min watermark.
    Min,
    /// Nothing stays free.
    Zero,
}

/// All floors, from the highest.
pub(crate) const FLOORS: [Floor; 4] = [Floor::Fast, Floor::Low, Floor::Min, Floor::Zero];

impl Floor {
    /// Name in metrics and parameters.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Low => "low",
            Self::Min => "min",
            Self::Zero => "zero",
        }
    }

    /// Pages that stay free.
    fn stays_free(self, marks: &Zones) -> u64 {
        match self {
            Self::Fast => 4 * marks.high.0 + marks.reserve.0,
            Self::Low => u64::midpoint(marks.high.0, marks.low.0) + marks.reserve.0,
            Self::Min => u64::midpoint(marks.low.0, marks.min.0) + marks.reserve.0,
            Self::Zero => 0,
        }
    }

    /// Pages to allocate to get down to this floor: free memory less what stays free, and never more than the workload
    /// was given of a large machine.
    pub(crate) fn pages(self, ground: &Ground) -> Pages {
        // What waits in the processors' own lists is allocated first and counts as free nowhere: without it no floor
        // below the watermarks would be reached. The fast floor leaves it as room.
        let free = if self == Self::Fast {
            ground.free
        } else {
            Bytes(ground.free.0 + ground.zones.in_lists.bytes().0)
        };
        self.pages_of(free, ground.given, &ground.zones)
    }

    fn pages_of(self, free: Bytes, given: Bytes, marks: &Zones) -> Pages {
        // In a limited group of a large machine its limit is what counts, not what the machine has free; in a machine of
        // the workload's own, the reserve that is free beyond what was given has to be used up to reach a floor.
        let free = if free.0 / 2 > given.0 { given } else { free };
        let free = free.pages().0;
        Pages(free.saturating_sub(self.stays_free(marks)).max(1))
    }
}

/// Free memory before anything is allocated, and the watermarks. Taken once: what a workload frees lies on the
/// processors' own lists first, where it is free but not counted as such.
pub(crate) struct Ground {
    free: Bytes,
    given: Bytes,
    zones: Zones,
}

impl Ground {
    /// As it is now.
    pub(crate) fn now(trial: &Trial<'_>) -> Self {
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
