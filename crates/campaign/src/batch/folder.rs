//! The folder of a batch.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pagetide_outside::FileOrigin;
use pagetide_record::KernelId;
use pagetide_store::{StoreError, at, deposit};
use serde::{Deserialize, Serialize};

use crate::plan::PlannedTrial;

/// Maximum size of a task's file in bytes. A trial takes about 1 KiB.
const MAX_TASK_BYTES: u64 = 256 << 20;
/// Maximum size in bytes of the files that hold an ID or a message.
const MAX_TEXT_BYTES: u64 = 64 << 10;

/// A trial of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTrial {
    /// Name of the trial in the batch: for a campaign the trial's key and a number, from 1, that counts the trials with
    /// the same key; for a search the key alone.
    pub name: String,
    /// Key of the trial (a hash of everything that determines its results), as computed on the submitting machine. A
    /// node that computes another key does not run the trial.
    pub key: String,
    /// Kernel of the trial, as resolved on the submitting machine.
    pub kernel: KernelId,
    /// Digest of the file system image (root) with the user's program, in hex; `None` for a trial without a program.
    pub root: Option<String>,
    /// Version of the emulator on the submitting machine.
    pub emulator: String,
    /// The trial and its position in the plan.
    pub planned: PlannedTrial,
}

/// The trials of one task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// ID of the campaign, or name of the search; written into records.
    pub campaign: String,
    /// Trials, in the order in which they run.
    pub trials: Vec<TaskTrial>,
}

/// The folder of a batch, in a store.
#[derive(Clone, Debug)]
pub struct BatchFolder {
    store: PathBuf,
    path: PathBuf,
}

/// Replaces the error "file not found" with `None`.
fn found<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl BatchFolder {
    /// Creates the handle of the batch folder of a campaign or search. The folder itself may not exist yet.
    pub fn of(store: &Path, campaign: &str) -> Self {
        Self {
            store: store.to_owned(),
            path: store.join("batches").join(campaign),
        }
    }

    /// Creates the handle of the batch folder at `path`, which must have the form `STORE/batches/NAME`; `None` for any
    /// other path.
    pub fn at(path: &Path) -> Option<Self> {
        let batches = path.parent()?;
        let is_there = batches.file_name()? == "batches";
        is_there.then(|| Self {
            store: batches.parent().unwrap_or(Path::new("")).to_owned(),
            path: path.to_owned(),
        })
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the folder of the tasks' logs.
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Returns the path of the folder in which records are written.
    pub(super) fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    /// Creates the folder on disk and writes a file for each task into it.
    pub(super) fn create(&self, tasks: &[Task]) -> Result<(), StoreError> {
        for folder in ["tasks", "done", "failed", "work", "logs"] {
            let folder = self.path.join(folder);
            fs::create_dir_all(&folder).map_err(at("creating", &folder))?;
        }
        for (number, task) in (1_u32..).zip(tasks) {
            let path = self.task_file(number);
            let json = serde_json::to_vec(task).unwrap_or_default();
            pagetide_outside::replace(&path, &json).map_err(at("writing", &path))?;
        }
        Ok(())
    }

    fn task_file(&self, number: u32) -> PathBuf {
        self.path.join("tasks").join(format!("{number}.json"))
    }

    /// Reads the trials of the task with this number. Fails if there is no such task or its file is damaged.
    pub(super) fn task(&self, number: u32) -> Result<Task, StoreError> {
        let path = self.task_file(number);
        let bytes = pagetide_outside::read(&path, FileOrigin::Own, MAX_TASK_BYTES)
            .map_err(at("reading", &path))?;
        serde_json::from_slice(&bytes).map_err(|error| StoreError::Note {
            why: error.to_string(),
            path,
        })
    }

    fn text(path: &Path) -> Result<Option<String>, StoreError> {
        found(pagetide_outside::read_text(
            path,
            FileOrigin::Own,
            MAX_TEXT_BYTES,
        ))
        .map_err(at("reading", path))
        .map(|text| text.map(|text| text.trim().to_owned()))
    }

    /// Returns the ID of the cluster's job; `None` if no job was submitted.
    pub fn job(&self) -> Result<Option<String>, StoreError> {
        Self::text(&self.path.join("job"))
    }

    /// Writes the ID of the cluster's job.
    pub(super) fn set_job(&self, job: &str) -> Result<(), StoreError> {
        let path = self.path.join("job");
        pagetide_outside::replace(&path, job.as_bytes()).map_err(at("writing", &path))
    }

    /// Returns the names of the trials of the batch that have a record.
    pub(super) fn done(&self) -> Result<Vec<String>, StoreError> {
        let folder = self.path.join("done");
        let Some(entries) = found(fs::read_dir(&folder)).map_err(at("reading", &folder))? else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(at("reading", &folder))?.file_name();
            names.extend(name.into_string());
        }
        Ok(names)
    }

    /// Returns the ID of the record of trial `name`, or `None` if the trial has no record. Moves the record file to its
    /// final path if the task ended before doing so.
    pub(super) fn record(&self, name: &str) -> Result<Option<String>, StoreError> {
        let Some(id) = Self::text(&self.path.join("done").join(name))? else {
            return Ok(None);
        };
        let waiting = self.work().join(format!("{id}.record"));
        if waiting.exists() {
            deposit(&self.store, &waiting, &id)?;
        }
        Ok(Some(id))
    }

    /// Makes the record file at `path`, whose ID is `id`, the record of trial `name`. If the trial already has a
    /// record, removes the file instead. Returns true if the file became the trial's record.
    pub(super) fn deliver(&self, name: &str, path: &Path, id: &str) -> Result<bool, StoreError> {
        let claim = self.work().join(format!("{id}.claim"));
        let done = self.path.join("done").join(name);
        pagetide_outside::replace(&claim, id.as_bytes()).map_err(at("writing", &claim))?;
        let linked = fs::hard_link(&claim, &done);
        let _ = fs::remove_file(&claim);
        match linked {
            Ok(()) => deposit(&self.store, path, id).map(|_| true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(path).map_err(at("removing", path))?;
                Ok(false)
            }
            Err(error) => Err(at("writing", &done)(error)),
        }
    }

    /// Writes the reason why task `number` ended early, for the submitting process.
    pub fn fail(&self, number: u32, why: &str) -> Result<(), StoreError> {
        let path = self.path.join("failed").join(number.to_string());
        pagetide_outside::replace(&path, why.as_bytes()).map_err(at("writing", &path))
    }

    /// Removes the failure message that an earlier attempt of this task left.
    pub(super) fn begin(&self, number: u32) {
        let _ = fs::remove_file(self.path.join("failed").join(number.to_string()));
    }

    /// Returns the reasons why tasks ended early, each with the number of tasks that gave it.
    pub(super) fn failures(&self) -> Result<BTreeMap<String, u32>, StoreError> {
        let folder = self.path.join("failed");
        let mut reasons = BTreeMap::new();
        let Some(entries) = found(fs::read_dir(&folder)).map_err(at("reading", &folder))? else {
            return Ok(reasons);
        };
        for entry in entries {
            let path = entry.map_err(at("reading", &folder))?.path();
            if let Some(why) = Self::text(&path)? {
                *reasons.entry(why).or_default() += 1;
            }
        }
        Ok(reasons)
    }

    /// Removes the batch's folder with all its files.
    pub(super) fn remove(&self) -> Result<(), StoreError> {
        found(fs::remove_dir_all(&self.path))
            .map(drop)
            .map_err(at("removing", &self.path))
    }
}
