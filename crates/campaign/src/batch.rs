//! Batches: trials that run as tasks of a cluster's job, and whose records are collected in the store.
//!
//! A batch is a folder in the store, `batches/NAME`, which must be on a file system that the nodes of the cluster
//! share:
//!
//! ```text
//! tasks/N.json   the trials of task N
//! job            ID of the cluster's job; missing before it is submitted
//! done/KEY-N     ID of the record of a trial; made once, whoever runs the trial
//! failed/N       why task N ended early
//! work/          records being written
//! logs/          output of the tasks
//! ```
//!
//! KEY is the trial's key; a search has no number after it. A task may be lost, restarted or run twice. The file in
//! `done` is created with a hard link, which succeeds for only one of two tasks, so a trial has one record. Tasks write
//! no index, and no lock is held across machines.

mod folder;
mod planned;
mod searched;
mod submit;
mod task;
mod tasks;

pub use folder::{BatchFolder, TaskTrial};
pub(crate) use planned::{execute, settle};
pub(crate) use searched::{search, settle_search};
pub use task::{Node, TaskError, work};

use std::path::Path;
use std::time::Duration;

/// A cluster that runs jobs of several tasks each, such as a Slurm cluster.
pub trait Cluster: Sync {
    /// Returns the largest number of tasks in one job; at least 1.
    fn most_tasks(&self) -> Result<u32, ClusterError>;

    /// Submits a job of `tasks` tasks, numbered from 1. Each task runs [`work`] for its number in `folder`. Returns the
    /// job's ID.
    fn submit(&self, folder: &Path, tasks: u32) -> Result<String, ClusterError>;

    /// True if at least one task of the job is running or waiting to run.
    fn is_active(&self, job: &str) -> Result<bool, ClusterError>;

    /// Cancels the tasks of a job that have not ended.
    fn cancel(&self, job: &str) -> Result<(), ClusterError>;

    /// Returns the minimum time between two calls of [`is_active`](Self::is_active), which ask a daemon of the whole
    /// cluster.
    fn pause(&self) -> Duration {
        Duration::from_secs(2)
    }
}

/// Why a request to a cluster failed, as a sentence with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ClusterError(pub String);

/// The cluster that runs the trials of a campaign or search, instead of this process.
#[derive(Clone, Copy)]
pub struct Elsewhere<'a> {
    /// The cluster that runs the trials.
    pub cluster: &'a dyn Cluster,
    /// True if this process ends as soon as the job is submitted.
    pub detach: bool,
}
