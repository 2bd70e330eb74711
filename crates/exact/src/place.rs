//! Limits the number of emulators that run at the same time on one cache, across all processes, to the number of CPUs,
//! or to the requested number of jobs if that is larger.
//!
//! On two CPUs, six emulators at once take up to twice the processor time of two. Each has its own translated code,
//! emulated TLB and guest memory, and they evict each other from the CPUs' caches. So two runs at once take turns, and
//! both end sooner.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagetide_arena::Progress;
use rustix::fs::FlockOperation;

use crate::error::ExactError;
use crate::lock::try_lock;

/// Interval at which a waiting thread tries again to take a slot.
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum wait for a slot; after that, a thread continues without a slot. The holder of a slot may be suspended, or
/// run a trial of an hour.
const PATIENCE: Duration = Duration::from_secs(30);

/// The slots for emulators on one cache. Each running emulator holds one.
#[derive(Clone, Debug)]
pub struct EmulatorSlots {
    folder: PathBuf,
    count: usize,
    patience: Duration,
}

/// A slot for one emulator, released when dropped. The kernel releases it however the holder ends.
#[derive(Debug)]
#[must_use]
pub struct EmulatorSlot {
    /// The locked file of the slot. `None` if no file could be locked, or if the wait timed out.
    lock: Option<File>,
}

impl EmulatorSlot {
    /// Returns true if a slot is held, false if the wait timed out or no file could be locked.
    pub fn is_taken(&self) -> bool {
        self.lock.is_some()
    }
}

impl EmulatorSlots {
    /// Creates `count` slots, whose files are in the cache folder.
    pub fn of(cache: &Path, count: usize) -> Self {
        Self {
            folder: cache.join("places"),
            count,
            patience: PATIENCE,
        }
    }

    /// Waits until a slot is free and takes it. If the cache is not writable, returns at once without a slot.
    ///
    /// # Errors
    ///
    /// [`ExactError::Stopped`] if the user stops the wait.
    pub fn take(&self, progress: &dyn Progress) -> Result<EmulatorSlot, ExactError> {
        // If the folder cannot be created, locking reports the error.
        let _ = std::fs::create_dir_all(&self.folder);
        let began = Instant::now();
        loop {
            if progress.is_stopped() {
                return Err(ExactError::Stopped);
            }
            if let Some(place) = self.free() {
                return Ok(place);
            }
            if began.elapsed() >= self.patience {
                return Ok(EmulatorSlot { lock: None });
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes a free slot without waiting; `None` if all slots are taken. If a file cannot be opened or locked, returns
    /// a slot without a lock.
    fn free(&self) -> Option<EmulatorSlot> {
        (0..self.count).find_map(|number| {
            let path = self.folder.join(number.to_string());
            match try_lock(&path, FlockOperation::NonBlockingLockExclusive) {
                Ok(None) => None,
                Ok(lock) => Some(EmulatorSlot { lock }),
                Err(_) => Some(EmulatorSlot { lock: None }),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use pagetide_arena::{NoProgress, Step};

    use super::*;

    struct Stop(AtomicBool);

    impl Progress for Stop {
        fn step(&self, _: Step) {}

        fn is_stopped(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    fn islocked(place: &EmulatorSlot) -> bool {
        place.lock.is_some()
    }

    #[test]
    fn no_more_have_a_place_at_a_time_than_there_are() {
        let folder = tempfile::tempdir().unwrap();
        // Number of threads that hold a slot now, and the maximum so far.
        let seen = Mutex::new((0, 0));
        std::thread::scope(|scope| {
            for _ in 0..7 {
                // Each thread creates its own [`EmulatorSlots`], as a separate process would.
                let places = EmulatorSlots::of(folder.path(), 2);
                let seen = &seen;
                scope.spawn(move || {
                    let place = places.take(&NoProgress).unwrap();
                    assert!(islocked(&place));
                    {
                        let mut seen = seen.lock().unwrap();
                        seen.0 += 1;
                        seen.1 = seen.1.max(seen.0);
                    }
                    std::thread::sleep(Duration::from_millis(30));
                    seen.lock().unwrap().0 -= 1;
                });
            }
        });
        assert_eq!(*seen.lock().unwrap(), (0, 2));
        // All slots are free again.
        let places = EmulatorSlots::of(folder.path(), 2);
        // A child of another test holds the file of a lock between its fork and its exec, so this may take a moment.
        let both = [(); 2].map(|()| places.take(&NoProgress).unwrap());
        assert!(both.iter().all(islocked) && places.free().is_none());
    }

    #[test]
    fn a_wait_ends_when_told_and_goes_on_without_a_place_where_nobody_leaves_his() {
        let folder = tempfile::tempdir().unwrap();
        let mut places = EmulatorSlots::of(folder.path(), 1);
        let held = places.take(&NoProgress).unwrap();
        let stop = Stop(AtomicBool::new(false));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| places.take(&stop));
            std::thread::sleep(Duration::from_millis(60));
            assert!(!waiting.is_finished());
            stop.0.store(true, Ordering::Relaxed);
            assert!(matches!(waiting.join().unwrap(), Err(ExactError::Stopped)));
        });
        places.patience = Duration::from_millis(60);
        assert!(!islocked(&places.take(&NoProgress).unwrap()));
        drop(held);
        assert!(islocked(&places.take(&NoProgress).unwrap()));
    }

    #[test]
    fn a_cache_that_cannot_be_written_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, b"").unwrap();
        let began = Instant::now();
        let place = EmulatorSlots::of(&file, 2).take(&NoProgress).unwrap();
        assert!(!islocked(&place) && began.elapsed() < Duration::from_secs(5));
    }
}
