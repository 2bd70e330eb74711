//! Where a trial starts from: what a seed varies beside the references.
//!
//! One trajectory is no distribution. What a kernel does at every tick of 4 ms meets a workload in some phase, and a few pages
//! more or less free decide which page is evicted first. Trials that shared phase and memory would share what these do to
//! them, which no interval over seeds could tell: with a ballast of `seed % 65` pages eight seeds in a row had nearly the same
//! memory, and a loss of 1 % of it was judged an improvement in one campaign of six. So both are drawn, independently for each
//! seed.

use std::time::Duration;

use pagetide_reference::Rng;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Most pages that a seed leaves free beyond what was promised.
pub const MOST_PAGES: u64 = 64;
/// The phase is drawn from so much virtual time: 25 ticks. Longer periods (kcompactd's 500 ms, the sweep of counters every
/// second) are left to the workload's own course; to draw from them would cost every trial 10 ms of real time and more.
const PERIOD: Duration = Duration::from_millis(100);

/// Virtual time between the ready point and the first step of a trial. Longer than a tick of any kernel (10 ms at 100 Hz).
///
/// At the ready point the emulator stops the CPU, and by chance moves the guest's clock to the next timer before it has taken
/// note of that. So two snapshots of the same guest may differ by up to a tick in when they go on. Both wait for the same moment,
/// counted from before the ready point; then they do the same, but for nanoseconds by which the kernel's clock was rounded.
const MARGIN: Duration = Duration::from_millis(12);

/// The time of the guest's clock, which counts instructions.
pub fn now() -> Timespec {
    clock_gettime(ClockId::Monotonic)
}

/// The moment at which every trial from a snapshot goes on, where `ready` was taken before its ready point.
pub fn after(ready: Timespec) -> Timespec {
    const SECOND: i64 = 1_000_000_000;
    let nanos = ready.tv_nsec + i64::from(MARGIN.subsec_nanos());
    Timespec {
        tv_sec: ready.tv_sec + nanos / SECOND,
        tv_nsec: nanos % SECOND,
    }
}

/// Sleeps until then. A clock that cannot be waited for is one that went by already.
pub fn wait_until(moment: Timespec) {
    while clock_nanosleep_absolute(ClockId::Monotonic, &moment) == Err(rustix::io::Errno::INTR) {}
}

/// Where a trial starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Pages free beyond what was promised, from 0 to [`MOST_PAGES`].
    pub pages: u64,
    /// How long the guest waits between the ready point and the start, below a tenth of a second of virtual time.
    pub phase: Duration,
}

impl Start {
    /// That of a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, "start");
        let pages = rng.below(MOST_PAGES + 1);
        let period = u64::try_from(PERIOD.as_nanos()).unwrap_or(u64::MAX);
        Self {
            pages,
            phase: Duration::from_nanos(rng.below(period)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_goes_on_a_margin_after_its_ready_point_across_the_second_too() {
        let at = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
        assert_eq!(after(at(3, 5)), at(3, 12_000_005));
        assert_eq!(after(at(3, 999_000_000)), at(4, 11_000_000));
        let moment = after(now());
        wait_until(moment);
        assert!((now().tv_sec, now().tv_nsec) >= (moment.tv_sec, moment.tv_nsec));
    }

    #[test]
    fn seeds_that_follow_each_other_start_all_over_the_range() {
        for first in [1, 9, 101, 1001] {
            let starts: Vec<Start> = (first..first + 8).map(Start::of).collect();
            let pages = starts.iter().map(|start| start.pages);
            assert!(
                pages.clone().max() >= pages.clone().min().map(|least| least + 24),
                "{starts:?}"
            );
            assert!(pages.clone().all(|pages| pages <= MOST_PAGES));
            let phases = starts.iter().map(|start| start.phase);
            assert!(
                phases.clone().max() >= phases.clone().min().map(|least| least + PERIOD / 3),
                "{starts:?}"
            );
            assert!(phases.clone().all(|phase| phase < PERIOD));
        }
        assert_eq!(Start::of(7), Start::of(7));
    }
}
