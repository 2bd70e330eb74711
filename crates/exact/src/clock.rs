//! The emulator's wall clock, taken away from it, and what the same preloaded object does beside.
//!
//! Nothing in the guest reads the host's clock, yet it gets in: QEMU resizes its emulated TLB by wall time, the TLB's size
//! decides which accessed bits the guest's reclaim finds set, and reclaim acts on them. So the emulator is started with a
//! clock of ours preloaded (`preload/clock.rs`), and every start is proven to use it.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};

use serde_json::Value;

use crate::error::ExactError;
use crate::memory;

/// The shared object. Source: `build.rs`.
pub const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/clock.so"));
/// A clock that starts in 1970 and moves a millisecond a call does not leave that year within a trial.
const YEAR_SECONDS: i64 = 365 * 24 * 3600;

/// The clock, in a file that vanishes with its last user.
#[derive(Debug)]
pub struct Clock {
    file: File,
}

impl Clock {
    /// Writes it to anonymous memory.
    pub fn new() -> Result<Self, ExactError> {
        memory::holding("pagetide-clock", OBJECT).map(|file| Self { file })
    }

    /// Descriptor that the emulator must inherit.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The variable of the emulator's environment that preloads it. Source: ld.so(8).
    pub fn variable(&self) -> (&'static str, OsString) {
        let mut value = OsString::from(memory::path(self.fd()));
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            value.push(":");
            value.push(others);
        }
        ("LD_PRELOAD", value)
    }
}

/// Whether an event of the monitor was dated by this clock.
/// Format: QEMU `docs/interop/qmp-spec.rst`, asynchronous events.
pub fn dated(event: &Value) -> bool {
    let seconds = event.pointer("/timestamp/seconds").and_then(Value::as_i64);
    seconds.is_some_and(|seconds| (0..YEAR_SECONDS).contains(&seconds))
}

/// The guest's clock in a saved state: nanoseconds since its start are the bias, and its instructions times what each takes.
/// Format: QEMU `softmmu/cpu-timers.c`, `icount_vmstate_timers` (version, bias in nanoseconds, instructions; big-endian).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedClock {
    /// Where the bias lies in the state.
    at: usize,
    bias: i64,
    instructions: i64,
}

impl SavedClock {
    /// Finds it; `None` where the state is of no emulator that counts instructions.
    pub fn of(state: &[u8]) -> Option<Self> {
        const NAME: &[u8] = b"timer/icount";
        const VERSION: [u8; 4] = [0, 0, 0, 1];
        let start = state.windows(NAME.len()).position(|part| part == NAME)? + NAME.len();
        let at = start + VERSION.len();
        let number = |at: usize| {
            let bytes = state.get(at..at + 8)?.try_into().ok()?;
            Some(i64::from_be_bytes(bytes))
        };
        (state.get(start..at)? == VERSION).then_some(Self {
            at,
            bias: number(at)?,
            instructions: number(at + 8)?,
        })
    }

    /// Whether the emulator moved the guest's clock other than by counting instructions before this state was saved.
    ///
    /// A guest at its ready point is stopped, and until the emulator's main loop has taken note of that, it may find the CPU idle
    /// and move time on to the next timer, and every trial from that snapshot would differ from those of another one. The
    /// preloaded object makes the threads take note in order (`preload/stop.rs`); this looks whether they did. While a kernel
    /// boots without ever halting nothing else moves time, so there is none but by instructions.
    pub const fn is_moved(self) -> bool {
        self.bias != 0
    }

    /// Makes the state that of a guest whose instructions took a nanosecond each from the start, at the same time on its clock:
    /// so it goes on from there with an emulator that counts them so. `shift` is what they took, as a power of two.
    pub fn scale_clock(self, state: &mut [u8], shift: u32) {
        let ahead = (self.instructions << shift) - self.instructions;
        if let Some(bias) = state.get_mut(self.at..self.at + 8) {
            bias.copy_from_slice(&(self.bias + ahead).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_of_another_clock_is_told_apart() {
        let event = |seconds: i64| json!({ "event": "STOP", "timestamp": { "seconds": seconds, "microseconds": 7 } });
        assert!(dated(&event(0)));
        assert!(dated(&event(50)));
        assert!(!dated(&event(1_767_225_600)));
        // What QEMU says where it has no clock.
        assert!(!dated(&event(-1)));
        assert!(!dated(&json!({ "event": "STOP" })));
    }

    /// A state with this version of its clock, bias and count of instructions.
    fn state(version: u8, bias: i64, instructions: i64) -> Vec<u8> {
        let mut state = b"\x05\x0ctimer/icount\0\0\0".to_vec();
        state.push(version);
        state.extend(bias.to_be_bytes());
        state.extend(instructions.to_be_bytes());
        state.extend(b"what follows, timer/icount among it");
        state
    }

    #[test]
    fn a_clock_that_was_moved_is_told_from_one_that_counted_instructions() {
        let is_moved = |bias| {
            SavedClock::of(&state(1, bias, 2_366_164_948))
                .unwrap()
                .is_moved()
        };
        assert!(!is_moved(0));
        assert!(is_moved(990_593));
    }

    #[test]
    fn a_guest_is_quickened_at_the_same_time_on_its_clock() {
        for bias in [0, 990_593] {
            let old = state(1, bias, 610_000_123);
            let clock = SavedClock::of(&old).unwrap();
            let mut new = old.clone();
            clock.scale_clock(&mut new, 3);
            let quick = SavedClock::of(&new).unwrap();
            assert_eq!(quick.instructions, clock.instructions);
            assert_eq!(
                quick.bias + quick.instructions,
                clock.bias + clock.instructions * 8
            );
            let others = |state: &[u8]| [&state[..18], &state[26..]].concat();
            assert_eq!(others(&old), others(&new), "nothing else is touched");
            clock.scale_clock(&mut new, 0);
            assert_eq!(old, new);
        }
    }

    #[test]
    fn a_state_without_a_clock_or_with_one_of_another_format_has_none() {
        assert_eq!(SavedClock::of(b"something else"), None);
        assert_eq!(SavedClock::of(&state(2, 0, 5)), None);
        let whole = state(1, 7, 5);
        for end in 0..34 {
            assert_eq!(SavedClock::of(&whole[..end]), None, "{end}");
        }
        assert!(SavedClock::of(&whole[..34]).is_some());
    }
}
