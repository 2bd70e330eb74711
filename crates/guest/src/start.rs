//! The start of a trial: what a seed varies in addition to the references.
//!
//! One trajectory is not a distribution. The kernel acts at every tick of 4 ms, and the workload meets the tick at some
//! phase. A few free pages more or less decide which page is evicted first. If all trials had the same phase and
//! memory, an interval over seeds would not show their effect. With a ballast of `seed % 65` pages, eight consecutive
//! seeds had nearly the same memory, and a loss of 1 % of memory was judged an improvement in one campaign of six. So
//! each seed draws order, phase and free pages independently.

use std::time::Duration;

use pagetide_reference::Rng;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Maximum number of additional free pages that a seed gives.
pub const MAX_PAGES: u64 = 64;
/// Length of the interval of virtual time from which the phase is drawn: 25 ticks. Longer periods, such as kcompactd's
/// 500 ms, are not covered, because that would cost every trial at least 10 ms of wall-clock time.
const PERIOD: Duration = Duration::from_millis(100);

/// Virtual time between the ready point and the first step of a trial. Longer than a tick of any kernel (10 ms at 100
/// Hz).
///
/// At the ready point the emulator stops the CPU. By chance it may move the guest's clock to the next timer before it
/// handles the stop, so two snapshots of the same guest may resume up to a tick apart. Both then wait for the same
/// point in time, counted from before the ready point. After that they are equal except for nanoseconds of rounding in
/// the kernel's clock.
const MARGIN: Duration = Duration::from_millis(12);

/// Returns the current time of the guest's monotonic clock.
pub fn now() -> Timespec {
    clock_gettime(ClockId::Monotonic)
}

/// Returns the time at which every trial from a snapshot continues. `ready` is a time read before the ready point.
pub fn after(ready: Timespec) -> Timespec {
    const SECOND: i64 = 1_000_000_000;
    let nanos = ready.tv_nsec + i64::from(MARGIN.subsec_nanos());
    Timespec {
        tv_sec: ready.tv_sec + nanos / SECOND,
        tv_nsec: nanos % SECOND,
    }
}

/// Sleeps until the time `moment`. Returns immediately if this time has passed.
pub fn wait_until(moment: Timespec) {
    while clock_nanosleep_absolute(ClockId::Monotonic, &moment) == Err(rustix::io::Errno::INTR) {}
}

/// Start conditions of a trial: free pages and phase. Determined by the trial's seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Number of free pages in addition to the specified amount, from 0 to [`MAX_PAGES`].
    pub pages: u64,
    /// Virtual time to wait between the ready point and the start, below 100 ms.
    pub phase: Duration,
}

impl Start {
    /// Returns the start conditions that belong to a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, "start");
        let pages = rng.below(MAX_PAGES + 1);
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
            assert!(pages.clone().all(|pages| pages <= MAX_PAGES));
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
