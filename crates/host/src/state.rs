//! The folder that contains the journals of this machine.

use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::error::{HostError, io};

/// Folder of journals: `/var/lib/pagetide/host` for root, else `pagetide/host` in the user's state folder. If the
/// environment variable `PAGETIDE_STATE` is set, it is the folder `host` in the folder that the variable names. The
/// folder must survive a reboot, and must be the same whenever the tool runs.
#[derive(Clone, Debug)]
pub struct StateFolder {
    path: PathBuf,
}

impl StateFolder {
    /// Returns the folder for the user of this process.
    pub fn of_user() -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        if let Some(path) = variable("PAGETIDE_STATE") {
            return Self::at(Path::new(&path).join("host"));
        }
        if rustix::process::geteuid().is_root() {
            return Self::at("/var/lib/pagetide/host");
        }
        let state = variable("XDG_STATE_HOME").map_or_else(
            || Path::new(&variable("HOME").unwrap_or_default()).join(".local/state"),
            PathBuf::from,
        );
        Self::at(state.join("pagetide/host"))
    }

    /// Returns the folder at this path.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the folder if needed.
    pub fn make(&self) -> Result<(), HostError> {
        // Only the owner may access the folder, so no other user can put a journal there.
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .map_err(io(
                "making the folder of journals (name another with PAGETIDE_STATE)",
                self.path.display().to_string(),
            ))
    }

    /// Locks the folder, so that no other process sweeps or creates a journal until the returned file is closed. Waits
    /// until the lock is free.
    pub fn lock(&self) -> Result<File, HostError> {
        self.make()?;
        let path = self.path.join("lock");
        let fault = || io("locking", path.display().to_string());
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(fault())?;
        flock(&file, FlockOperation::LockExclusive).map_err(|why| fault()(why.into()))?;
        Ok(file)
    }

    /// Returns the paths of all journals, sorted by name.
    pub fn journals(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = fs::read_dir(&self.path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "journal"))
            .collect();
        found.sort();
        found
    }
}
