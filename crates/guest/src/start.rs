//! Where a trial starts from: what a seed varies beside the references.
//!
//! One trajectory is no distribution. What a kernel does at every tick of 4 ms meets a workload in some phase, and a few pages
//! more or less free decide which page is evicted first. Trials that shared phase and memory would share what these do to
//! them, which no interval over seeds could tell: with a ballast of `seed % 65` pages eight seeds in a row had nearly the same
//! memory, and a loss of 1 % of it was judged an improvement in one campaign of six. So both are drawn, independently for each
//! seed.

use std::time::Duration;

use pagetide_reference::Rng;

/// Most pages that a seed leaves free beyond what was promised.
pub const MOST_PAGES: u64 = 64;
/// The phase is drawn from so much virtual time: 25 ticks. Longer periods (kcompactd's 500 ms, the sweep of counters every
/// second) are left to the workload's own course; to draw from them would cost every trial 10 ms of real time and more.
const PERIOD: Duration = Duration::from_millis(100);

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
