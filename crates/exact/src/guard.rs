//! Ends the wait for a guest that will not become ready: because the user stops it, its kernel panics, or it makes no
//! progress.
//!
//! While a guest boots, its clock cannot be read without disturbing the guest. But a guest that makes progress either
//! touches new memory, which increases the size of its memory file, or its program updates the clock in the output
//! region. On a busy machine, an emulator may wait for a CPU longer than the guest's time limit; that wait does not
//! count.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pagetide_arena::Progress;

use crate::memory::{self, Output};

/// Wall-clock time for which a panicking kernel may continue to print messages.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Minimum interval between two readings of the time for which an emulator with progress has waited for a CPU.
const NOTED: Duration = Duration::from_secs(1);

/// Reason why the wait for a guest ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The user asked to stop.
    Stopped,
    /// The kernel printed that it has panicked or halted.
    Panicked,
    /// The guest made no progress for this long.
    Hung(Duration),
}

/// Numbers of which at least one changes while the guest makes progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moves {
    /// Number of allocated blocks (512 bytes) of the guest's memory file; zero except during a boot.
    touched: u64,
    clock: u64,
    done: u64,
    phase: u32,
}

/// Watches a guest while this process waits for it.
pub struct Guard<'a> {
    progress: &'a dyn Progress,
    console: &'a File,
    output: &'a Output,
    /// File with the guest's memory; `None` unless the guest is booting.
    ram: Option<&'a File>,
    emulator: u32,
    patience: Duration,
    moves: Moves,
    moved: Instant,
    /// How long the emulator had waited for a CPU at the last reading, and the time of that reading.
    waited: (Duration, Instant),
    heard: u64,
    panicked: Option<Instant>,
    end: Option<End>,
}

impl<'a> Guard<'a> {
    /// Starts watching a guest. The wait for it ends after `patience` without progress. `emulator` is the process ID of
    /// the guest's emulator.
    pub fn new(
        progress: &'a dyn Progress,
        patience: Duration,
        console: &'a File,
        output: &'a Output,
        ram: Option<&'a File>,
        emulator: u32,
    ) -> Self {
        Self {
            progress,
            console,
            output,
            ram,
            emulator,
            patience,
            moves: Moves::default(),
            moved: Instant::now(),
            waited: (waited(emulator), Instant::now()),
            heard: 0,
            panicked: None,
            end: None,
        }
    }

    /// Returns true if the wait should continue. Cheap enough to be called several times a second.
    pub fn should_wait(&mut self) -> bool {
        if self.end.is_none() {
            self.end = self.look();
        }
        self.end.is_none()
    }

    /// Returns the reason why the wait ended; `None` if it has not ended.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    fn look(&mut self) -> Option<End> {
        if self.progress.is_stopped() {
            return Some(End::Stopped);
        }
        let heard = self.console.metadata().map_or(0, |data| data.len());
        if heard != self.heard {
            self.heard = heard;
            if self.panicked.is_none() && is_dead(&memory::text(self.console)) {
                self.panicked = Some(Instant::now());
            }
        }
        if self.panicked.is_some_and(|at| at.elapsed() >= LAST_WORDS) {
            return Some(End::Panicked);
        }
        let head = self.output.region().head();
        let moves = Moves {
            touched: self
                .ram
                .and_then(|ram| ram.metadata().ok())
                .map_or(0, |data| data.blocks()),
            clock: head.clock.load(Ordering::Acquire),
            done: head.done.load(Ordering::Acquire),
            phase: head.phase.load(Ordering::Acquire),
        };
        if moves != self.moves {
            (self.moves, self.moved) = (moves, Instant::now());
            if self.waited.1.elapsed() > NOTED {
                self.waited = (waited(self.emulator), self.moved);
            }
        }
        let span = self.moved.elapsed();
        if span <= self.patience {
            return None;
        }
        let waited = waited(self.emulator).saturating_sub(self.waited.0);
        (span.saturating_sub(waited) > self.patience).then_some(End::Hung(span))
    }
}

/// Returns the longest time that any thread of a process has waited for a CPU; zero if the kernel does not report it.
/// Source: kernel `Documentation/scheduler/sched-stats.rst`, `/proc/PID/schedstat`.
fn waited(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task"));
    let waits = threads
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split_whitespace().nth(1)?.parse().ok()
        });
    Duration::from_nanos(waits.max().unwrap_or(0))
}

/// Returns true if the text of a console shows that the kernel has panicked or halted.
pub fn is_dead(console: &str) -> bool {
    // The second message is printed by the code that unpacks the kernel (arch/x86/boot/compressed/misc.c, `error`).
    console.contains("Kernel panic - not syncing") || console.contains("-- System halted")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::AtomicBool;

    use pagetide_arena::Step;
    use pagetide_quantity::Bytes;

    use super::*;

    #[derive(Default)]
    struct Flag(AtomicBool);

    impl Progress for Flag {
        fn step(&self, _: Step) {}

        fn is_stopped(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// Polls until the guard ends the wait. Returns how long that took, and the reason.
    fn over(guard: &mut Guard<'_>) -> (Duration, End) {
        let began = Instant::now();
        while guard.should_wait() {
            assert!(began.elapsed() < Duration::from_secs(20), "it never ends");
            std::thread::sleep(Duration::from_millis(5));
        }
        (began.elapsed(), guard.end().unwrap())
    }

    #[test]
    fn a_panic_ends_the_wait_after_its_last_words() {
        let output = Output::new(Bytes::from_mib(2), Bytes(0)).unwrap();
        let console = memory::anonymous("console").unwrap();
        let flag = Flag::default();
        let minute = Duration::from_mins(1);
        let mut guard = Guard::new(&flag, minute, &console, &output, None, 0);
        assert!(guard.should_wait());
        (&console)
            .write_all(b"[ 0.006] Kernel panic - not syncing: no memory\n")
            .unwrap();
        let (after, end) = over(&mut guard);
        assert_eq!(end, End::Panicked);
        assert!(after >= LAST_WORDS, "{after:?}");
    }

    #[test]
    fn a_process_that_wants_a_processor_others_have_is_seen_to_wait() {
        // There are more busy threads than processors, so each thread waits now and then.
        let threads = 4 * std::thread::available_parallelism().map_or(1, usize::from);
        let before = waited(std::process::id());
        let until = Instant::now() + Duration::from_millis(400);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| while Instant::now() < until {});
            }
            std::thread::sleep(Duration::from_millis(300));
            let span = waited(std::process::id()).saturating_sub(before);
            assert!(span > Duration::from_millis(50), "{span:?}");
        });
        assert_eq!(waited(u32::MAX), Duration::ZERO, "no such process");
    }

    #[test]
    fn a_flag_ends_the_wait_at_once() {
        let output = Output::new(Bytes::from_mib(2), Bytes(0)).unwrap();
        let console = memory::anonymous("console").unwrap();
        let flag = Flag::default();
        let mut guard = Guard::new(&flag, Duration::from_mins(1), &console, &output, None, 0);
        assert!(guard.should_wait());
        flag.0.store(true, Ordering::Relaxed);
        assert!(!guard.should_wait());
        assert_eq!(guard.end(), Some(End::Stopped));
    }

    #[test]
    fn a_guest_is_given_up_when_neither_memory_nor_clock_has_moved_for_long() {
        let output = Output::new(Bytes::from_mib(2), Bytes(0)).unwrap();
        let console = memory::anonymous("console").unwrap();
        let ram = tempfile::tempfile().unwrap();
        ram.set_len(64 << 20).unwrap();
        let flag = Flag::default();
        let patience = Duration::from_millis(400);
        let mut guard = Guard::new(&flag, patience, &console, &output, Some(&ram), 0);
        let began = Instant::now();
        // The guest makes progress for longer than the patience, first in memory, then in the clock.
        for step in 0..12_u64 {
            if step % 2 == 0 {
                ram.write_all_at(&[1; 4096], step << 20).unwrap();
            } else {
                output.region().head().clock.store(step, Ordering::Release);
            }
            assert!(guard.should_wait(), "after {:?}", began.elapsed());
            std::thread::sleep(Duration::from_millis(50));
        }
        let (_, end) = over(&mut guard);
        assert!(matches!(end, End::Hung(span) if span > patience), "{end:?}");
    }
}
