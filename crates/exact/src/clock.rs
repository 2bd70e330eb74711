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

/// Whether the emulator moved the guest's clock other than by counting instructions before this state was saved.
///
/// A guest at its ready point is stopped, and until the emulator's main loop has taken note of that, it may find the CPU idle and
/// move time on to the next timer, and every trial from that snapshot would differ from those of another one. The preloaded object
/// makes the threads take note in order (`preload/stop.rs`); this looks whether they did. While a kernel boots without ever
/// halting nothing else moves time, so there is none but by instructions.
/// Format: QEMU `softmmu/cpu-timers.c`, `icount_vmstate_timers` (version, bias in nanoseconds, instructions).
pub fn moved(state: &[u8]) -> bool {
    const NAME: &[u8] = b"timer/icount";
    let start = state.windows(NAME.len()).position(|part| part == NAME);
    let bias = start.and_then(|at| state.get(at + NAME.len() + 4..at + NAME.len() + 12));
    bias.is_some_and(|bias| bias != [0; 8])
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

    #[test]
    fn a_clock_that_was_moved_is_told_from_one_that_counted_instructions() {
        let state = |bias: i64| {
            let mut state = b"\x05\x0ctimer/icount\0\0\0\x01".to_vec();
            state.extend(bias.to_be_bytes());
            state.extend(2_366_164_948_i64.to_be_bytes());
            state
        };
        assert!(!moved(&state(0)));
        assert!(moved(&state(990_593)));
        assert!(!moved(b"something else"));
    }
}
