//! Clocks for measuring durations; for dates see [`Nanos::wall_clock`].

use std::time::Duration;

use pagetide_quantity::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Reads `CLOCK_MONOTONIC`. It is close to the time stamps of the kernel log, which come from the kernel's
/// `local_clock`. Only differences between readings are meaningful.
pub fn monotonic() -> Nanos {
    of(ClockId::Monotonic)
}

/// Returns the current time of a kernel clock, such as `CLOCK_MONOTONIC`.
pub fn of(clock: ClockId) -> Nanos {
    let now = clock_gettime(clock);
    let number = |value: i64| u64::try_from(value).unwrap_or(0);
    Nanos(number(now.tv_sec) * 1_000_000_000 + number(now.tv_nsec))
}

/// Sleeps for the whole `span`, even if signals arrive.
pub fn sleep(span: Nanos) {
    // The standard library sleeps on `CLOCK_MONOTONIC` and resumes after a signal.
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
