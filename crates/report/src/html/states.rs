//! What each access met: its page at once, a fault that found it in memory, a fault that waited, or a stall.
//!
//! The log holds times only. The record counts the faults, and an access that faults takes longer than one that does not,
//! so the longest accesses, as many as there were major faults, are those; the next longest are the minor ones.

use pagetide_record::Record;
use serde::Serialize;

/// A stall takes so many times as long as the median major fault.
const STALL_FACTOR: u64 = 10;
/// Logs beyond this are not sorted: four bytes an access.
const MOST_ACCESSES: u64 = 1 << 24;

/// From which time on an access is of a state, and how many are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct States {
    /// Shortest minor fault in nanoseconds; `None` where the record does not count them apart from hits.
    pub minor_from: Option<u64>,
    /// Shortest major fault; above all times where there was none.
    pub major_from: u64,
    /// Shortest stall.
    pub stall_from: u64,
    /// Accesses: hits, minor faults, major faults without stalls, stalls.
    pub counts: [u64; 4],
}

/// How many accesses of a log were faults.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    major: u64,
    /// `None` where the record does not count them apart from hits.
    minor: Option<u64>,
}

impl Faults {
    /// As the record counts them; `None` where it does not.
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

/// Collects the times of a log.
pub(crate) struct Sorter {
    faults: Faults,
    times: Vec<u32>,
}

impl Sorter {
    /// Begins; `None` for a log that is too long, or has fewer entries than there were faults.
    pub(crate) fn new(faults: Faults, entries: u64) -> Option<Self> {
        let faults = Faults {
            minor: faults.minor.filter(|minor| *minor <= entries),
            ..faults
        };
        let all = faults.major.saturating_add(faults.minor.unwrap_or(0));
        (entries <= MOST_ACCESSES && all <= entries).then(|| Self {
            faults,
            times: Vec::with_capacity(usize::try_from(entries).unwrap_or(0)),
        })
    }

    /// Adds accesses by their times in nanoseconds.
    pub(crate) fn add(&mut self, times: impl Iterator<Item = u64>) {
        self.times
            .extend(times.map(|nanos| u32::try_from(nanos).unwrap_or(u32::MAX)));
    }

    /// What the accesses met.
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
    // The shortest of the so many longest; beyond all times where there is none.
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
    fn the_longest_accesses_are_the_faults_whatever_their_order() {
        let mut times = vec![9, 80_000, 9, 12, 81_000, 900_000, 2_000, 2_100, 9, 80_500];
        let states = split(&mut times, 4, Some(2));
        assert_eq!(states.counts, [4, 2, 3, 1]);
        assert_eq!(
            (states.minor_from, states.major_from, states.stall_from),
            (Some(2_000), 80_000, 805_000)
        );
    }

    #[test]
    fn without_faults_all_are_hits_and_without_minor_faults_none_is_told_apart() {
        let mut times = vec![9, 10, 11];
        assert_eq!(split(&mut times, 0, Some(0)).counts, [3, 0, 0, 0]);
        assert_eq!(split(&mut times, 1, None).minor_from, None);
        assert_eq!(split(&mut times, 1, None).counts, [2, 0, 1, 0]);
        assert_eq!(split(&mut [], 0, None).counts, [0; 4]);
    }
}
