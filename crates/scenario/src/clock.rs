//! The clock of a trial. The end of one access is the start of the next, so each access needs one reading of the clock.

// A function call between two clock readings would be measured too.
#![allow(clippy::inline_always)]

use pagetide_quantity::Nanos;
use pagetide_system::clock;
pub(crate) use pagetide_system::clock::sleep;

/// The clock that times a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The time-stamp counter. It counts nanoseconds in an emulator that counts instructions.
    RawTsc,
    /// `CLOCK_MONOTONIC`, for machines on which the counter cannot be used.
    Monotonic,
}

impl Clock {
    /// Returns the current time. Only differences between two times are meaningful.
    pub fn now(self) -> Nanos {
        Nanos(match self {
            Self::RawTsc => RawTsc.nanos(RawTsc::ticks()),
            Self::Monotonic => MonotonicTicks::ticks(),
        })
    }

    /// Returns the current time. `RawTsc` also marks this moment for the profiler in the emulator.
    pub(crate) fn mark(self, mark: Mark) -> Nanos {
        match (self, mark) {
            (Self::RawTsc, Mark::Begin) => Nanos(marked::<{ FIRST_MARK }>()),
            (Self::RawTsc, Mark::End) => Nanos(marked::<{ FIRST_MARK + 1 }>()),
            (Self::Monotonic, _) => self.now(),
        }
    }
}

/// A moment that is marked for the profiler: start or end of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The scenario starts.
    Begin,
    /// The scenario has ended.
    End,
}

/// Displacement in the `nop` instruction that marks the start of the scenario; this number plus one marks its end. The
/// instruction has no effect, and no compiler emits it with this displacement. `exact/plugin/insn.rs` recognises it.
const FIRST_MARK: i32 = 0x5047_5450;

/// Reads the time-stamp counter and returns its value. Executes the marking instruction, with the displacement `MARK`,
/// directly after the read.
#[inline(never)]
fn marked<const MARK: i32>() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: the fence, the counter's reading and a `nop` access no memory.
    unsafe {
        std::arch::asm!(
            "lfence",
            "rdtsc",
            "nop dword ptr [rax + {mark}]",
            mark = const MARK,
            out("eax") low,
            out("edx") high,
            options(nomem, nostack, preserves_flags)
        );
    }
    u64::from(high) << 32 | u64::from(low)
}

/// A clock as a type, so that the timed loop is compiled separately for each clock.
pub(crate) trait Ticks: Copy {
    /// Returns the current time in ticks. Earlier memory accesses are complete before the clock is read.
    fn ticks() -> u64;
    /// Converts ticks to nanoseconds.
    fn nanos(self, ticks: u64) -> u64;
}

/// The time-stamp counter, with ticks of one nanosecond.
#[derive(Clone, Copy)]
pub(crate) struct RawTsc;

impl Ticks for RawTsc {
    #[inline(always)]
    fn ticks() -> u64 {
        // The fence waits until earlier accesses are complete. Without it the processor may read the counter before the
        // access has finished (Intel SDM, RDTSC).
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

/// The kernel's monotonic clock, with ticks of one nanosecond.
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
