//! Places for emulators: those of one cache, whatever process starts them, are no more at a time than there are processors.
//!
//! Six side by side on two processors take up to twice the processor time of two: each has its translated code, its emulated
//! TLB and its guest's memory, and they drive each other's out of the processors' caches. So a second run beside a first takes
//! turns with it, and both end sooner.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagetide_arena::Progress;
use rustix::fs::FlockOperation;

use crate::error::ExactError;
use crate::snapshot::try_lock;

/// How often somebody who waits looks again.
const PAUSE: Duration = Duration::from_millis(20);
/// Whoever holds a place may be stopped, or be in a trial of an hour: after this much time one goes on without.
const PATIENCE: Duration = Duration::from_secs(30);

/// The places of a cache.
#[derive(Clone, Debug)]
pub struct Places {
    folder: PathBuf,
    count: usize,
    patience: Duration,
}

/// A place, free again when dropped; the kernel frees it however its holder ends.
#[derive(Debug)]
#[must_use]
pub struct Place {
    /// Locked. `None` where there was nothing to lock, or nobody left his place in time.
    lock: Option<File>,
}

impl Place {
    /// Whether nobody else has it: not where one went on without.
    pub fn is_taken(&self) -> bool {
        self.lock.is_some()
    }
}

impl Places {
    /// So many places, below this cache folder.
    pub fn of(cache: &Path, count: usize) -> Self {
        Self {
            folder: cache.join("places"),
            count,
            patience: PATIENCE,
        }
    }

    /// Waits for a place.
    ///
    /// # Errors
    /// [`ExactError::Stopped`] when the wait is ended from outside. A cache that cannot be written has no places, and nobody
    /// waits.
    pub fn take(&self, progress: &dyn Progress) -> Result<Place, ExactError> {
        // Where it cannot be made, locking says so.
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
                return Ok(Place { lock: None });
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// A place, if one can be had now.
    fn free(&self) -> Option<Place> {
        (0..self.count).find_map(|number| {
            let path = self.folder.join(number.to_string());
            match try_lock(&path, FlockOperation::NonBlockingLockExclusive) {
                Ok(None) => None,
                Ok(lock) => Some(Place { lock }),
                Err(_) => Some(Place { lock: None }),
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

    fn islocked(place: &Place) -> bool {
        place.lock.is_some()
    }

    #[test]
    fn no_more_have_a_place_at_a_time_than_there_are() {
        let folder = tempfile::tempdir().unwrap();
        // How many have one now, and how many had at most.
        let seen = Mutex::new((0, 0));
        std::thread::scope(|scope| {
            for _ in 0..7 {
                // Of each its own, as in processes of their own.
                let places = Places::of(folder.path(), 2);
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
        // All are free again.
        let places = Places::of(folder.path(), 2);
        let both = [places.free().unwrap(), places.free().unwrap()];
        assert!(both.iter().all(islocked) && places.free().is_none());
    }

    #[test]
    fn a_wait_ends_when_told_and_goes_on_without_a_place_where_nobody_leaves_his() {
        let folder = tempfile::tempdir().unwrap();
        let mut places = Places::of(folder.path(), 1);
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
        let place = Places::of(&file, 2).take(&NoProgress).unwrap();
        assert!(!islocked(&place) && began.elapsed() < Duration::from_secs(5));
    }
}
