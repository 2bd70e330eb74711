//! Locks on files and folders (`flock`). The kernel releases a lock when the process that holds it dies.

use std::fs::File;
use std::io;
use std::path::Path;

use pagetide_outside::lock_file;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// A held lock. It is released on drop, and when the process dies.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Waits for the lock on the file at `path`, creating the file if needed.
    pub fn wait(path: &Path) -> io::Result<Self> {
        let file = lock_file(path)?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Self { file }),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Returns a second handle of the locked file. If a child process inherits it and this process is killed, the lock
    /// is held until the child has ended. Dropping the lock releases it at once.
    pub fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Takes the lock on an existing file or folder without waiting. Returns `None` if another process holds the lock.
    pub fn try_existing(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child that was just forked has it open until it calls exec.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_the_place_of_a_lock_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (there, link) = (folder.path().join("there"), folder.path().join("lock"));
        std::os::unix::fs::symlink(&there, &link).unwrap();
        let said = Lock::wait(&link).unwrap_err().to_string();
        assert!(said.contains("a symbolic link"), "{said}");
        assert!(!there.exists());
    }

    #[test]
    fn a_held_lock_is_refused_and_a_dropped_one_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let held = Lock::try_existing(folder.path()).unwrap();
        assert!(held.is_some());
        assert!(Lock::try_existing(folder.path()).unwrap().is_none());
        drop(held);
        assert!(Lock::try_existing(folder.path()).unwrap().is_some());
    }
}
