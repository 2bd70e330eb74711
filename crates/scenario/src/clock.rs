//! The clock of a trial: one read an access, chained.

// Between two clock readings a call would be measured too.
#![allow(clippy::inline_always)]

use pagetide_quantity::Nanos;
use pagetide_system::clock;
pub(crate) use pagetide_system::clock::sleep;

/// Which clock a trial is timed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The time-stamp counter counts nanoseconds, as in an emulator that counts instructions.
    RawTsc,
    /// `CLOCK_MONOTONIC`, where the counter is not to be trusted.
    Monotonic,
}

impl Clock {
    /// This moment; only differences mean something.
    pub fn now(self) -> Nanos {
        Nanos(match self {
            Self::RawTsc => RawTsc.nanos(RawTsc::ticks()),
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
