//! Clocks to measure durations; for dates see [`Nanos::wall_clock`].

use std::time::Duration;

use pagetide_quantity::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// The kernel's monotonic clock, which also stamps the kernel's log. Only differences are meaningful.
pub fn monotonic() -> Nanos {
    of(ClockId::Monotonic)
}

/// The time of any of the kernel's clocks.
pub fn of(clock: ClockId) -> Nanos {
    let now = clock_gettime(clock);
    let number = |value: i64| u64::try_from(value).unwrap_or(0);
    Nanos(number(now.tv_sec) * 1_000_000_000 + number(now.tv_nsec))
}

/// Sleeps for `span`, also if signals arrive.
pub fn sleep(span: Nanos) {
    // The standard library sleeps on `CLOCK_MONOTONIC` and goes on after a signal.
    std::thread::sleep(Duration::from_nanos(span.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_takes_its_time_on_the_monotonic_clock() {
        let before = monotonic();
        sleep(Nanos(2_000_000));
        assert!(monotonic().saturating_sub(before) >= Nanos(2_000_000));
    }
}
