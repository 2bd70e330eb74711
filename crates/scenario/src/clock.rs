//! The clock of a trial: one read an access, chained.

// Between two clock readings a call would be measured too.
#![allow(clippy::inline_always)]

use std::time::Duration;

use pagetide_quantity::Nanos;
pub(crate) use pagetide_system::clock::sleep;
use pagetide_system::{clock, cpuinfo};

/// Which clock a trial is timed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The time-stamp counter counts nanoseconds, as in an emulator that counts instructions.
    RawTsc,
    /// The time-stamp counter, scaled to nanoseconds; made by [`Clock::calibrated`].
    Calibrated(Rate),
    /// `CLOCK_MONOTONIC`, where the counter is not to be trusted.
    Monotonic,
}

/// Nanoseconds a tick, as a binary fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Nanoseconds in 2^32 ticks.
    per_2_to_32: u64,
}

impl Clock {
    /// The best clock of this machine: the scaled counter if it ticks evenly on all processors, else the kernel's.
    pub fn calibrated() -> Self {
        if !cpuinfo::has(&["constant_tsc", "nonstop_tsc"]) {
            return Self::Monotonic;
        }
        // Two readings bracket a wait of 20 ms: the error is below 1 µs of it, 50 parts in a million.
        let (time, ticks) = (monotonic(), RawTsc::ticks());
        std::thread::sleep(Duration::from_millis(20));
        let (time, ticks) = (monotonic() - time, RawTsc::ticks().wrapping_sub(ticks));
        let per_2_to_32 = (u128::from(time) << 32)
            .checked_div(u128::from(ticks))
            .and_then(|rate| u64::try_from(rate).ok());
        match per_2_to_32 {
            Some(per_2_to_32) if per_2_to_32 > 0 => Self::Calibrated(Rate { per_2_to_32 }),
            _ => Self::Monotonic,
        }
    }

    /// This moment; only differences mean something.
    pub fn now(self) -> Nanos {
        Nanos(match self {
            Self::RawTsc => RawTsc.nanos(RawTsc::ticks()),
            Self::Calibrated(rate) => rate.nanos(Rate::ticks()),
            Self::Monotonic => MonotonicTicks::ticks(),
        })
    }
}

/// A clock as the timed loop sees it, so that the loop is compiled for each.
pub(crate) trait Ticks: Copy {
    /// This moment in ticks, after everything before it has been done.
    fn ticks() -> u64;
    /// Ticks in nanoseconds.
    fn nanos(self, ticks: u64) -> u64;
}

/// A counter of nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct RawTsc;

impl Ticks for RawTsc {
    #[inline(always)]
    fn ticks() -> u64 {
        // The fence waits until the access before it is complete; without it the processor reads the counter while
        // the access is still on its way to memory (Intel SDM, RDTSC).
        // SAFETY: every x86-64 processor has SSE2 and with it the fence; reading the time-stamp counter has no effect on
        // memory, and Linux leaves it readable (PR_TSC_ENABLE).
        unsafe {
            std::arch::x86_64::_mm_lfence();
            std::arch::x86_64::_rdtsc()
        }
    }

    #[inline(always)]
    fn nanos(self, ticks: u64) -> u64 {
        ticks
    }
}

impl Ticks for Rate {
    #[inline(always)]
    fn ticks() -> u64 {
        RawTsc::ticks()
    }

    #[inline(always)]
    fn nanos(self, ticks: u64) -> u64 {
        let product = u128::from(ticks) * u128::from(self.per_2_to_32);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "2^64 ns are 584 years, more than a trial takes"
        )]
        let nanos = (product >> 32) as u64;
        nanos
    }
}

/// The kernel's monotonic clock.
#[derive(Clone, Copy)]
pub(crate) struct MonotonicTicks;

impl Ticks for MonotonicTicks {
    #[inline(always)]
    fn ticks() -> u64 {
        monotonic()
    }

    #[inline(always)]
    fn nanos(self, ticks: u64) -> u64 {
        ticks
    }
}

fn monotonic() -> u64 {
    clock::monotonic().0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calibrated_clock_agrees_with_the_kernels_within_two_in_a_hundred() {
        let clock = Clock::calibrated();
        let (time, mine) = (monotonic(), clock.now());
        sleep(Nanos::from_millis(50));
        let (time, mine) = (monotonic() - time, clock.now().since(mine).0);
        assert!(mine.abs_diff(time) < time / 50, "{mine} against {time}");
    }
}
