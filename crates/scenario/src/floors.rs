//! Floors of free memory between a zone's watermarks, down to which a workload allocates.
//!
//! VM Regress put its kernel tests at four of them: *fast* stays above the high watermark, *low* ends between high and
//! low, where kswapd is awake, *min* between low and min, and *zero* takes all there is, where an allocation must reclaim
//! for itself.

use pagetide_quantity::{Bytes, Pages};

use crate::trial::{Trial, meminfo};

/// A floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Floor {
    /// Twice the high watermark stays free.
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
    fn stays_free(self, marks: &Watermarks) -> u64 {
        match self {
            Self::Fast => 2 * marks.high + marks.reserve,
            Self::Low => u64::midpoint(marks.high, marks.low) + marks.reserve,
            Self::Min => u64::midpoint(marks.low, marks.min) + marks.reserve,
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
            Bytes(ground.free.0 + ground.lists.bytes().0)
        };
        self.pages_of(free, ground.given, &ground.marks)
    }

    fn pages_of(self, free: Bytes, given: Bytes, marks: &Watermarks) -> Pages {
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
    /// Pages in the processors' own lists.
    lists: Pages,
    given: Bytes,
    marks: Watermarks,
}

impl Ground {
    /// As it is now.
    pub(crate) fn now(trial: &Trial<'_>) -> Self {
        let zones = std::fs::read_to_string("/proc/zoneinfo").unwrap_or_default();
        Self {
            free: meminfo("MemFree").unwrap_or(trial.memory()),
            lists: Pages(in_lists(&zones)),
            given: trial.memory(),
            marks: Watermarks::parse(&zones),
        }
    }
}

/// Pages in the processors' own lists, in the text of `/proc/zoneinfo`.
fn in_lists(zones: &str) -> u64 {
    zones
        .lines()
        .filter_map(|line| {
            line.trim()
                .strip_prefix("count:")?
                .trim()
                .parse::<u64>()
                .ok()
        })
        .sum()
}

/// Watermarks summed over all zones, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watermarks {
    /// Below this an allocation must reclaim for itself.
    pub min: u64,
    /// Below this kswapd wakes.
    pub low: u64,
    /// Above this kswapd sleeps.
    pub high: u64,
    /// What low zones keep back from memory of programs, on top of every watermark: `lowmem_reserve`.
    pub reserve: u64,
}

impl Watermarks {
    /// Reads the text of `/proc/zoneinfo`.
    pub(crate) fn parse(text: &str) -> Self {
        let mut marks = Self::default();
        for line in text.lines() {
            if let Some(list) = line.trim().strip_prefix("protection: (") {
                // By the highest zone an allocation may use; programs' memory may use all, which come last.
                let last = list.trim_end_matches(')').rsplit(", ").next();
                marks.reserve += last.and_then(|pages| pages.parse().ok()).unwrap_or(0);
                continue;
            }
            let mut words = line.split_ascii_whitespace();
            let (Some(name), Some(Ok(value)), None) = (
                words.next(),
                words.next().map(str::parse::<u64>),
                words.next(),
            ) else {
                continue;
            };
            match name {
                "min" => marks.min += value,
                "low" => marks.low += value,
                "high" => marks.high += value,
                _ => {}
            }
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONES: &str = "\
Node 0, zone      DMA
  pages free     3840
        boost    0
        min      10
        low      12
        high     14
        spanned  4095
        protection: (0, 39, 39, 39)
Node 0, zone    DMA32
  pages free     10000
        min      90
        low      112
        high     134
  pagesets
    cpu: 0
              count:    5
              high:     90
";

    #[test]
    fn watermarks_are_summed_over_zones_and_not_mixed_with_the_cpu_lists() {
        let expected = Watermarks {
            min: 100,
            low: 124,
            high: 148,
            reserve: 39,
        };
        assert_eq!(Watermarks::parse(ZONES), expected);
        assert_eq!(in_lists(ZONES), 5);
    }

    #[test]
    fn lower_floors_take_more_pages_but_never_all_of_a_large_machine() {
        let marks = Watermarks::parse(ZONES);
        let pages = FLOORS.map(|floor| {
            floor
                .pages_of(Pages(10_000).bytes(), Bytes::from_mib(1024), &marks)
                .0
        });
        assert_eq!(pages, [10_000 - 335, 10_000 - 175, 10_000 - 151, 10_000]);
        let own = Floor::Zero.pages_of(Bytes::from_mib(70), Bytes::from_mib(64), &marks);
        assert_eq!(own.bytes(), Bytes::from_mib(70));
        let given = Floor::Zero.pages_of(Bytes::from_mib(24_000), Bytes::from_mib(64), &marks);
        assert_eq!(given.bytes(), Bytes::from_mib(64));
    }
}
