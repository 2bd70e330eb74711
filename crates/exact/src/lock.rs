//! Locks: of files that several processes share, and of values that several threads share.

use std::fs::File;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::FlockOperation;

use crate::error::{ExactError, io};

/// Opens a lock file, creating it if needed, and locks it. `how` must be a kind of lock that does not wait. Returns
/// `None` if another process holds the lock.
pub(crate) fn try_lock(path: &Path, how: FlockOperation) -> Result<Option<File>, ExactError> {
    let file = pagetide_outside::lock_file(path)
        .map_err(io("opening lock", path.display().to_string()))?;
    loop {
        match rustix::fs::flock(&file, how) {
            Ok(()) => return Ok(Some(file)),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
            Err(errno) => return Err(io("locking", path.display().to_string())(errno.into())),
        }
    }
}

/// Locks a mutex, even if a thread panicked while it held the lock.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
