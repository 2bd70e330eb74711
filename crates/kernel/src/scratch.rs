//! Temporary folders in the cache. Each folder is locked by the process that created it, and removed on drop. If this
//! process dies, its lock is released, and the next process that opens the cache removes the folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::KernelError;
use crate::lock::Lock;

/// A temporary folder that this process created and locked. It is removed on drop.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
    _lock: Lock,
}

impl Scratch {
    /// Creates an empty temporary folder in the cache at `root`, which is [`Cache::root`](crate::Cache::root).
    pub fn new(root: &Path) -> Result<Self, KernelError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let gate_path = root.join("lock");
        // The lock is held until the new folder is locked, so that no other process removes it as abandoned.
        let gate = Lock::wait(&gate_path).map_err(KernelError::cache("locking", &gate_path))?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        let name = format!(
            "{}-{}-{now}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let folder = root.join("tmp").join(name);
        fs::create_dir_all(&folder).map_err(KernelError::cache("making", &folder))?;
        let lock = Lock::try_existing(&folder).map_err(KernelError::cache("locking", &folder))?;
        drop(gate);
        let lock = lock.ok_or_else(|| {
            KernelError::cache("locking", &folder)(io::Error::other(
                "another process holds a folder just made",
            ))
        })?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// Returns the path of the temporary folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates a folder with this name inside the temporary folder and returns its path.
    pub fn inner(&self, name: &str) -> Result<PathBuf, KernelError> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).map_err(KernelError::cache("making", &folder))?;
        Ok(folder)
    }

    /// Removes the temporary folders in the cache at `root` whose processes died. Errors are ignored here; the next
    /// write reports them.
    pub(crate) fn clean(root: &Path) {
        let Ok(entries) = fs::read_dir(root.join("tmp")) else {
            return;
        };
        for entry in entries.flatten() {
            if let Ok(Some(_abandoned)) = Lock::try_existing(&entry.path()) {
                let _ = fs::remove_dir_all(entry.path()).or_else(|_| fs::remove_file(entry.path()));
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After a rename there is nothing left here to remove.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;

    #[test]
    fn what_is_dropped_or_was_left_by_a_dead_process_is_removed_and_what_is_in_use_stays() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::open(root.path()).unwrap();
        let used = Scratch::new(cache.root()).unwrap();
        fs::write(used.inner("a").unwrap().join("file"), "x").unwrap();
        let left = root.path().join("tmp/left-by-a-dead-process");
        fs::create_dir_all(left.join("deep")).unwrap();
        Cache::open(root.path()).unwrap();
        assert!(used.folder().join("a/file").is_file() && !left.exists());
        let folder = used.folder().to_owned();
        drop(used);
        assert!(!folder.exists());
    }
}
