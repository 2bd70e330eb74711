//! How a run of a campaign stands, for whoever watches from another process.
//!
//! `runs/NAME.json` is written by the process that runs a campaign, a few times a second at most, and says how far it is
//! and with which words it was started. That the process still lives is not taken from the file: it holds the campaign's
//! lock, which the kernel takes back when it dies.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use pagetide_quantity::Nanos;

use crate::error::{StoreError, at};

/// How a run stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    /// Name of the campaign.
    pub name: String,
    /// Number of the process.
    pub process: u32,
    /// The words of its command line, without the program's own name.
    pub arguments: Vec<String>,
    /// Folder in which it was started.
    pub folder: PathBuf,
    /// When it was started, nanoseconds since 1970.
    pub started: Nanos,
    /// When this was written, nanoseconds since 1970.
    pub updated: Nanos,
    /// Whether it goes on, or how it ended.
    pub end: RunEnd,
    /// Trials of the campaign as far as planned.
    pub total: usize,
    /// Trials that have a record.
    pub done: usize,
    /// Of those this run has stored, how many are invalid.
    pub invalid: usize,
    /// Estimated wall-clock time until all planned trials are stored.
    pub left: Nanos,
    /// Trials that run now.
    pub trials: Vec<RunningTrial>,
    /// What was said last, such as why a trial is invalid.
    pub said: Vec<String>,
}

/// Whether a run goes on, or how it ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunEnd {
    /// It goes on, or was killed: the campaign's lock tells which.
    #[default]
    Open,
    /// All planned trials have their records.
    Whole,
    /// It was told to stop.
    Stopped,
    /// It could not go on, and why.
    Unable(String),
}

/// A trial that runs now.
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
    /// Phase of the trial, in a word.
    pub phase: String,
    /// Steps of the scenario done.
    pub done: u64,
    /// Steps in all; zero where unknown.
    pub total: u64,
    /// Time on the trial's own clock (virtual in the exact arena).
    #[serde(default)]
    pub clock: Nanos,
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.json"))
}

/// Writes how a run stands, at once.
pub(crate) fn write(folder: &Path, state: &RunState) -> Result<(), StoreError> {
    let json = serde_json::to_vec(state).unwrap_or_default();
    crate::store::replace(&file(folder, &state.name), &json)
}

/// Forgets how a run stood.
pub(crate) fn remove(folder: &Path, name: &str) -> Result<(), StoreError> {
    crate::store::take_away(&file(folder, name))
}

/// Reads how the last run of a campaign stands; `None` where none was noted, or what is there cannot be read.
pub(crate) fn read(folder: &Path, name: &str) -> Option<RunState> {
    let bytes = std::fs::read(file(folder, name)).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The process that holds the lock of a campaign; `None` where nobody does.
pub(crate) fn holder(folder: &Path, name: &str) -> Result<Option<u32>, StoreError> {
    use rustix::fs::{FlockOperation, flock};
    let path = folder.join(format!("{name}.lock"));
    let lock = match std::fs::File::open(&path) {
        Ok(lock) => lock,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at("opening", &path)(error)),
    };
    // Shared, so that two who look do not take each other for a holder.
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(None),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            Ok(text.trim().parse().ok())
        }
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
