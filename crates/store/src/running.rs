//! Progress of a campaign's run, for other processes.
//!
//! The process that runs a campaign writes `runs/NAME.json` at most a few times a second. The file contains the
//! progress and the command line. It does not tell whether the process is alive: for that, the process holds the
//! campaign's lock, which the kernel releases when it dies.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use pagetide_outside::{Place, open, readable_json};
use pagetide_quantity::Nanos;

use crate::error::{StoreError, at};
use crate::note::said;

/// Most bytes of what is known of a run.
const MOST_RUN_BYTES: u64 = 16 << 20;

/// Progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    /// Name of the campaign.
    pub name: String,
    /// Process id.
    pub process: u32,
    /// The arguments of its command line, without the program name.
    pub arguments: Vec<String>,
    /// Working directory in which it was started.
    pub folder: PathBuf,
    /// Time of the start, nanoseconds since 1970.
    pub started: Nanos,
    /// Time of this update, nanoseconds since 1970.
    pub updated: Nanos,
    /// Whether it is running, or how it ended.
    pub end: RunEnd,
    /// Number of trials planned so far.
    pub total: usize,
    /// Number of trials that have a record.
    pub done: usize,
    /// Number of invalid trials among those stored by this run.
    pub invalid: usize,
    /// Estimated wall-clock time until all planned trials are stored.
    pub left: Nanos,
    /// Trials that are running now.
    pub trials: Vec<RunningTrial>,
    /// The latest messages, such as the reason why a trial is invalid.
    pub said: Vec<String>,
}

/// Whether a run is going on, or how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// Running, or killed: the campaign's lock tells which.
    #[default]
    Open,
    /// All planned trials have records.
    Whole,
    /// Stopped on request.
    Stopped,
    /// Aborted, with the reason.
    Unable(String),
}

/// A trial that is running now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningTrial {
    /// Number of the trial in this run.
    pub number: usize,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the variant.
    pub variant: String,
    /// Seed.
    pub seed: u64,
    /// Phase of the trial, one word.
    pub phase: String,
    /// Number of completed steps of the scenario.
    pub done: u64,
    /// Total number of steps; zero if unknown.
    pub total: u64,
    /// Time on the trial's clock (virtual time in the exact arena).
    #[serde(default)]
    pub clock: Nanos,
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// Writes the progress of a run atomically.
pub(crate) fn write(folder: &Path, state: &RunState) -> Result<(), StoreError> {
    let path = file(folder, &state.name);
    match readable_json(state) {
        Ok(json) => crate::store::replace(&path, &json),
        Err(why) => Err(StoreError::Unreadable {
            path,
            why: why.to_string(),
        }),
    }
}

/// Removes the progress file of a run; no error if it does not exist.
pub(crate) fn remove(folder: &Path, name: &str) -> Result<(), StoreError> {
    crate::store::take_away(&file(folder, name))
}

/// The progress of a campaign's last run; `None` if there is no file or it cannot be parsed.
pub(crate) fn read(folder: &Path, name: &str) -> Option<RunState> {
    let bytes = pagetide_outside::read(&file(folder, name), Place::Own, MOST_RUN_BYTES).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The id of the process that holds the lock of a campaign; `None` if no process does.
pub(crate) fn holder(folder: &Path, name: &str) -> Result<Option<u32>, StoreError> {
    use rustix::fs::{FlockOperation, flock};
    let path = folder.join(format!("{name}.lock"));
    let lock = match open(&path, Place::Own) {
        Ok(lock) => lock,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at("opening", &path)(error)),
    };
    // A shared lock, so that two processes that check do not take each other for the holder.
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
