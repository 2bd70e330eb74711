//! Replaces the emulator's wall clock, and checks the guest's clock in a saved state.
//!
//! The guest never reads the host's clock, but the clock has an effect: QEMU resizes its emulated TLB by wall time, the
//! TLB's size decides which accessed bits the guest's reclaim finds set, and reclaim depends on them. So the emulator
//! is started with a preloaded clock (`preload/clock.rs`), and each start checks that this clock is in use. The same
//! preloaded object also orders the emulator's threads at a stop (`preload/stop.rs`).

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};

use serde_json::Value;

use crate::error::ExactError;
use crate::memory;

/// Bytes of the shared object to preload, which `build/main.rs` compiles.
pub const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/clock.so"));
/// Seconds in a year. The preloaded clock starts in 1970 and advances by a millisecond per call, so it stays in that
/// year during a trial.
const YEAR_SECONDS: i64 = 365 * 24 * 3600;

/// The shared object to preload, in an anonymous file that is freed when nobody uses it any more.
#[derive(Debug)]
pub struct Clock {
    file: File,
}

impl Clock {
    /// Writes the shared object to an anonymous file.
    pub fn new() -> Result<Self, ExactError> {
        memory::holding("pagetide-clock", OBJECT).map(|file| Self { file })
    }

    /// Returns the file descriptor of the shared object, which the emulator must inherit.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Returns the name and value of the environment variable that makes the emulator preload the shared object.
    /// Source: ld.so(8).
    pub fn variable(&self) -> (&'static str, OsString) {
        let mut value = OsString::from(memory::path(self.fd()));
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            value.push(":");
            value.push(others);
        }
        ("LD_PRELOAD", value)
    }
}

/// Returns true if the time stamp of a monitor event is from this clock. Format: QEMU `docs/interop/qmp-spec.rst`,
/// asynchronous events.
pub fn dated(event: &Value) -> bool {
    let seconds = event.pointer("/timestamp/seconds").and_then(Value::as_i64);
    seconds.is_some_and(|seconds| (0..YEAR_SECONDS).contains(&seconds))
}

/// The guest's clock in a saved state: nanoseconds since its start = bias + instructions × time per instruction.
/// Format: QEMU `softmmu/cpu-timers.c`, `icount_vmstate_timers` (version, bias in nanoseconds, instructions;
/// big-endian).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedClock {
    /// Byte offset of the bias in the state.
    at: usize,
    bias: i64,
    instructions: i64,
    /// True if the guest has several CPUs, and none was halted.
    do_several_run: bool,
}

impl SavedClock {
    /// Finds the clock in a saved state; `None` if the emulator that saved the state did not count instructions.
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
            do_several_run: do_several_run(state),
        })
    }

    /// Returns true if the emulator may have moved the guest's clock when the guest stopped.
    ///
    /// A guest at its ready point is stopped. Until the emulator's main loop has processed that stop, the loop may find
    /// the CPU idle and advance time to the next timer. Trials from that snapshot would then differ from trials from
    /// another snapshot. The preloaded object makes the threads process the stop in order (`preload/stop.rs`), and this
    /// function checks the result. If a kernel never halts during its boot, only instructions advance its time.
    ///
    /// The loop advances time only if all CPUs are idle: stopped or halted (QEMU `system/cpus.c`,
    /// `all_cpu_threads_idle`). The stop makes one CPU idle. If no other CPU was halted, the clock was moved earlier, by
    /// a kernel that waits while it boots: on several CPUs, 7.2 waits for RCU when cgroup2 is mounted. After that, a
    /// spinner keeps each CPU from halting, and each trial checks the idle counters since just before the stop.
    pub const fn is_moved(self) -> bool {
        self.bias != 0 && !self.do_several_run
    }

    /// Changes the rate of the clock in the state to one nanosecond per instruction, without changing the current time.
    /// `shift` is the previous time per instruction, as a power of two in nanoseconds.
    pub fn scale_clock(self, state: &mut [u8], shift: u32) {
        let ahead = (self.instructions << shift) - self.instructions;
        if let Some(bias) = state.get_mut(self.at..self.at + 8) {
            bias.copy_from_slice(&(self.bias + ahead).to_be_bytes());
        }
    }
}

/// Returns true if a saved state has several CPUs, and none is halted. Format: QEMU `migration/savevm.c`,
/// `save_section_header` (length of the name, name, instance, version), and `cpu-target.c`, `vmstate_cpu_common`
/// (halted, interrupt request); all numbers have 32 bits and are big-endian.
fn do_several_run(state: &[u8]) -> bool {
    const NAME: &[u8] = b"\x0acpu_common";
    /// Version of the section, and halted.
    const RUNS: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 0];
    let version_at = NAME.len() + size_of::<u32>();
    let cpus: Vec<bool> = state
        .windows(version_at + RUNS.len())
        .filter(|part| part.starts_with(NAME))
        .map(|part| part[version_at..] == RUNS)
        .collect();
    cpus.len() > 1 && cpus.iter().all(|runs| *runs)
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
        // Values that QEMU sends if it has no clock.
        assert!(!dated(&event(-1)));
        assert!(!dated(&json!({ "event": "STOP" })));
    }

    /// Returns the bytes of a saved state with this version, bias and number of instructions.
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
    fn a_clock_that_was_moved_is_accepted_if_no_cpu_of_several_was_halted_at_the_stop() {
        let is_moved = |bias, halted: &[u8]| {
            let mut state = state(1, bias, 2_366_164_948);
            for (cpu, halted) in (0..).zip(halted) {
                state.extend(b"\x04\0\0\0\x02\x0acpu_common\0\0\0");
                state.extend([cpu, 0, 0, 0, 1, 0, 0, 0, *halted, 0, 0, 0, 0]);
            }
            state.extend(b"{\"name\": \"cpu_common\", \"instance_id\": 0, \"version\": 1}");
            SavedClock::of(&state).unwrap().is_moved()
        };
        assert!(!is_moved(9_900_000, &[0, 0]));
        assert!(!is_moved(9_900_000, &[0; 4]));
        assert!(is_moved(9_900_000, &[0, 1]));
        assert!(is_moved(9_900_000, &[0, 0, 1, 0]));
        assert!(is_moved(9_900_000, &[0]));
        assert!(!is_moved(0, &[0, 1]));
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
