//! Progress of a campaign's run, for other processes.
//!
//! The process that runs a campaign writes `runs/NAME.json` at most a few times a second. The file contains the
//! progress and the command line. The file does not show whether the process is alive. The campaign's lock does: the
//! process holds it, and the kernel releases it when the process dies.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use pagetide_outside::{FileOrigin, open, readable_json};
use pagetide_quantity::Nanos;

use crate::error::{StoreError, at};
use crate::note::said;

/// Maximum size of a progress file in bytes.
const MAX_RUN_BYTES: u64 = 16 << 20;

/// Progress of a campaign's run, as stored in `runs/NAME.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    /// Name of the campaign.
    pub name: String,
    /// ID of the process that runs the campaign.
    pub process: u32,
    /// Arguments of the process's command line, without the program name.
    pub arguments: Vec<String>,
    /// Working directory in which the process was started.
    pub folder: PathBuf,
    /// Time when the run started, in nanoseconds since 1970.
    pub started: Nanos,
    /// Time when this progress was written, in nanoseconds since 1970.
    pub updated: Nanos,
    /// How the run ended, or that it has not ended.
    pub end: RunEnd,
    /// Number of trials planned so far.
    pub total: usize,
    /// Number of planned trials that already have a record.
    pub done: usize,
    /// Number of invalid trials among those stored by this run.
    pub invalid: usize,
    /// Estimated wall-clock time until all planned trials are stored.
    pub left: Nanos,
    /// Trials that are running now.
    pub trials: Vec<RunningTrial>,
    /// The latest messages of the run, such as the reason why a trial is invalid.
    pub said: Vec<String>,
}

/// How a run ended, or that it has not ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// Not ended: the process is running or was killed. If it is running, it holds the campaign's lock.
    #[default]
    Open,
    /// Ended: all planned trials have records.
    Whole,
    /// Stopped at the user's request.
    Stopped,
    /// Aborted with an error, for this reason.
    Unable(String),
}

/// A trial that is running now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningTrial {
    /// Sequence number of the trial in this run.
    pub number: usize,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the variant.
    pub variant: String,
    /// Random seed of the trial.
    pub seed: u64,
    /// Phase of the trial, in a word or two.
    pub phase: String,
    /// Number of completed steps of the scenario.
    pub done: u64,
    /// Total number of steps of the scenario; zero if unknown.
    pub total: u64,
    /// Time on the trial's clock; virtual time in the exact arena.
    #[serde(default)]
    pub clock: Nanos,
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// Writes a progress file atomically: a reader sees the old or the new content.
pub(crate) fn write(folder: &Path, state: &RunState) -> Result<(), StoreError> {
    let path = file(folder, &state.name);
    match readable_json(state) {
        Ok(json) => crate::files::replace(&path, &json),
        Err(why) => Err(StoreError::Unreadable {
            path,
            why: why.to_string(),
        }),
    }
}

/// Deletes the progress file of a campaign. No error if the file does not exist.
pub(crate) fn remove(folder: &Path, name: &str) -> Result<(), StoreError> {
    crate::files::remove_if_present(&file(folder, name))
}

/// Reads the progress of a campaign's last run; `None` if there is no file or it cannot be parsed.
pub(crate) fn read(folder: &Path, name: &str) -> Option<RunState> {
    let bytes = pagetide_outside::read(&file(folder, name), FileOrigin::Own, MAX_RUN_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Returns the ID of the process that holds a campaign's lock; `None` if no process holds it or its ID cannot be read.
pub(crate) fn holder(folder: &Path, name: &str) -> Result<Option<u32>, StoreError> {
    use rustix::fs::{FlockOperation, flock};
    let path = folder.join(format!("{name}.lock"));
    let lock = match open(&path, FileOrigin::Own) {
        Ok(lock) => lock,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at("opening", &path)(error)),
    };
    // The lock is shared, so that two processes that check do not take each other for the holder.
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(None),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(said(&lock).parse().ok()),
        Err(error) => Err(at("locking", &path)(error.into())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

    use super::*;
    use crate::Store;

    #[test]
    fn a_run_is_read_back_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        assert_eq!(store.run_of("quick"), None);
        let state = RunState {
            name: "quick".into(),
            arguments: vec!["run".into(), "campaigns/quick.toml".into()],
            end: RunEnd::Unable("no kernel".into()),
            trials: vec![RunningTrial::default()],
            ..RunState::default()
        };
        store.note_run(&state).unwrap();
        assert_eq!(store.run_of("quick"), Some(state));
        std::fs::write(dir.path().join("runs/quick.json"), b"{").unwrap();
        assert_eq!(store.run_of("quick"), None, "half a file is no run");
    }

    #[test]
    fn whoever_holds_the_lock_is_known_and_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        assert_eq!(store.runner("quick").unwrap(), None);
        let lock = store.lock_campaign("quick").unwrap();
        assert_eq!(store.runner("quick").unwrap(), Some(std::process::id()));
        drop(lock);
        assert_eq!(store.runner("quick").unwrap(), None);
        std::fs::write(dir.path().join("campaigns/quick.lock"), "1").unwrap();
        assert_eq!(
            store.runner("quick").unwrap(),
            None,
            "its holder was killed"
        );
    }
}
