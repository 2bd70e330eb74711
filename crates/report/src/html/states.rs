//! The state of each access: page present, minor fault, major fault, or stall.
//!
//! The log contains only pages and times. The record has the numbers of faults, and an access with a fault usually
//! takes longer than one without. So the longest accesses are taken as major faults, as many as were counted; the next
//! longest are taken as minor faults.

use pagetide_record::Record;
use serde::Serialize;

/// A stall takes at least this many times as long as the median major fault.
const STALL_FACTOR: u64 = 10;
/// Maximum number of accesses in a log whose states are computed: that requires sorting, which takes four bytes per
/// access.
const MAX_ACCESSES: u64 = 1 << 24;

/// The time from which an access counts as a fault or a stall, and the number of accesses in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct States {
    /// Time of the shortest minor fault in nanoseconds, or `major_from` if there was none. `None` if the record does
    /// not count minor faults, or counts more of them than accesses.
    pub minor_from: Option<u64>,
    /// Time of the shortest major fault in nanoseconds; larger than all times if there was no major fault.
    pub major_from: u64,
    /// An access that takes at least this many nanoseconds is a stall; larger than all times if there was no major
    /// fault.
    pub stall_from: u64,
    /// Numbers of accesses: hits, minor faults, major faults without stalls, stalls.
    pub counts: [u64; 4],
}

/// Numbers of faults among the accesses of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    major: u64,
    /// Number of minor faults; `None` if the record does not count minor faults.
    minor: Option<u64>,
}

impl Faults {
    /// Returns the numbers of faults in a record; `None` if the record does not count major faults.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let count = |name: &str| -> Option<u64> {
            let number = record.metric(name)?.value.number()?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a number of faults, and checked to be one"
            )]
            let count = number as u64;
            (number >= 0.0).then_some(count)
        };
        Some(Self {
            major: count("major-faults")?,
            minor: count("minor-faults"),
        })
    }
}

/// Collects the times of a log to sort them.
pub(crate) struct Sorter {
    faults: Faults,
    times: Vec<u32>,
}

impl Sorter {
    /// Returns a sorter for a log with this number of accesses; `None` if the log is too long, or if it has fewer
    /// accesses than faults.
    pub(crate) fn new(faults: Faults, entries: u64) -> Option<Self> {
        let faults = Faults {
            minor: faults.minor.filter(|minor| *minor <= entries),
            ..faults
        };
        let all = faults.major.saturating_add(faults.minor.unwrap_or(0));
        (entries <= MAX_ACCESSES && all <= entries).then(|| Self {
            faults,
            times: Vec::with_capacity(usize::try_from(entries).unwrap_or(0)),
        })
    }

    /// Adds accesses by their times in nanoseconds; longer times count as 2^32 − 1 ns (4.3 s).
    pub(crate) fn add(&mut self, times: impl Iterator<Item = u64>) {
        self.times
            .extend(times.map(|nanos| u32::try_from(nanos).unwrap_or(u32::MAX)));
    }

    /// Computes the states of the accesses.
    pub(crate) fn states(mut self) -> States {
        split(&mut self.times, self.faults.major, self.faults.minor)
    }
}

fn split(times: &mut [u32], major: u64, minor: Option<u64>) -> States {
    times.sort_unstable_by(|a, b| b.cmp(a));
    let count = |number: u64| {
        usize::try_from(number)
            .unwrap_or(usize::MAX)
            .min(times.len())
    };
    // This is the shortest of the `number` longest times; larger than all times if `number` is 0.
    let from = |number: u64| match count(number) {
        0 => u64::MAX >> 12,
        n => u64::from(times[n - 1]),
    };
    let major_from = from(major);
    let minor_from = minor.map(|minor| {
        if minor == 0 {
            major_from
        } else {
            from(major + minor)
        }
    });
    let stall_from = match count(major) {
        0 => u64::MAX >> 12,
        n => (STALL_FACTOR * u64::from(times[n / 2])).max(major_from),
    };
    let least = |limit: u64| times.partition_point(|time| u64::from(*time) >= limit) as u64;
    let (stalls, majors) = (least(stall_from), least(major_from));
    let faults = minor_from.map_or(majors, least);
    States {
        minor_from,
        major_from,
        stall_from,
        counts: [
            times.len() as u64 - faults,
            faults - majors,
            majors - stalls,
            stalls,
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_accesses_are_the_faults_in_any_order() {
        let mut times = vec![9, 80_000, 9, 12, 81_000, 900_000, 2_000, 2_100, 9, 80_500];
        let states = split(&mut times, 4, Some(2));
        assert_eq!(states.counts, [4, 2, 3, 1]);
        assert_eq!(
            (states.minor_from, states.major_from, states.stall_from),
            (Some(2_000), 80_000, 805_000)
        );
    }

    #[test]
    fn without_faults_all_are_hits_and_without_minor_faults_none_is_distinguished() {
        let mut times = vec![9, 10, 11];
        assert_eq!(split(&mut times, 0, Some(0)).counts, [3, 0, 0, 0]);
        assert_eq!(split(&mut times, 1, None).minor_from, None);
        assert_eq!(split(&mut times, 1, None).counts, [2, 0, 1, 0]);
        assert_eq!(split(&mut [], 0, None).counts, [0; 4]);
    }
}
