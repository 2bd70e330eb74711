//! Submits a batch to a cluster and waits for its records.

use std::time::{Duration, Instant};

use pagetide_store::Store;

use super::folder::{BatchFolder, Task};
use super::{ClusterError, Elsewhere};
use crate::event::{Event, EventListener};
use crate::run::RunError;

/// Maximum interval at which new records are looked for.
const GLANCE: Duration = Duration::from_millis(200);
/// Number of times that trials are submitted again if their tasks ended without a record and without a message.
const RETRIES: u32 = 2;

/// The trials of a batch, on the side of the process that submits them.
pub(super) trait Batched {
    /// Divides the trials that have no record yet into at most `most` tasks.
    fn tasks(&mut self, most: u32) -> Vec<Task>;

    /// Takes in the records that have arrived in `folder` since the last call. Returns false if the job should be
    /// cancelled.
    fn take_in(&mut self, folder: &BatchFolder) -> Result<bool, RunError>;

    /// Returns the number of trials without a record.
    fn open(&self) -> usize;

    /// Returns the store that has the batch's folder and receives the records.
    fn store(&mut self) -> &mut Store;
}

/// A batch on a cluster.
pub(super) struct Batch<'a> {
    /// Name of the campaign or search that the batch belongs to.
    name: &'a str,
    folder: BatchFolder,
    elsewhere: Elsewhere<'a>,
    watch: &'a dyn EventListener,
}

impl<'a> Batch<'a> {
    pub fn new(
        store: &Store,
        name: &'a str,
        elsewhere: Elsewhere<'a>,
        watch: &'a dyn EventListener,
    ) -> Self {
        Self {
            name,
            folder: BatchFolder::of(store.folder(), name),
            elsewhere,
            watch,
        }
    }

    /// Waits for a job that an earlier process submitted under this name, and stores its records. Returns at once if
    /// there is no such job. Returns false if the user stops the run.
    pub fn settle(&self, store: &mut Store) -> Result<bool, RunError> {
        let Some(job) = self.folder.job()? else {
            self.folder.remove()?;
            return Ok(true);
        };
        if self.is_active(&job)? {
            let text = format!("job {job} of this campaign has not ended yet: waiting for it");
            self.watch.event(&Event::Told(&text));
        }
        let is_whole = self.follow(&job, || Ok(true))?;
        for name in self.folder.done()? {
            self.folder.record(&name)?;
        }
        store.refresh()?;
        if is_whole {
            self.folder.remove()?;
        }
        Ok(is_whole)
    }

    /// Runs trials on the cluster. Returns false if the user stops the run, if [`Batched::take_in`] returns false, or
    /// if this process does not wait for the job. Fails if a trial still has no record after its task failed or was
    /// lost too often.
    pub fn run(&self, trials: &mut dyn Batched) -> Result<bool, RunError> {
        let most = self.elsewhere.cluster.most_tasks();
        let most = most.map_err(|source| self.failed(source))?;
        let mut job = String::new();
        for _ in 0..=RETRIES {
            let tasks = trials.tasks(most);
            let count = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
            self.folder.remove()?;
            self.folder.create(&tasks)?;
            let submitted = self.elsewhere.cluster.submit(self.folder.path(), count);
            job = submitted.map_err(|source| self.failed(source))?;
            self.folder.set_job(&job)?;
            let text = format!("job {job}: {} trials in {count} tasks", trials.open());
            self.watch.event(&Event::Told(&text));
            if self.elsewhere.detach {
                return Ok(false);
            }
            let is_whole = self.follow(&job, || trials.take_in(&self.folder))?;
            trials.store().refresh()?;
            if !is_whole {
                return Ok(false);
            }
            if trials.open() == 0 {
                self.folder.remove()?;
                return Ok(true);
            }
            let failures = self.folder.failures()?;
            if let Some((why, _)) = failures.iter().max_by_key(|(_, count)| **count) {
                return Err(self.early(&job, failures.values().sum(), why));
            }
        }
        let why = "the cluster ended them, and they left no message";
        Err(self.early(&job, 1, why))
    }

    fn early(&self, job: &str, tasks: u32, why: &str) -> RunError {
        RunError::Tasks {
            job: job.to_owned(),
            tasks,
            why: why.to_owned(),
            logs: self.folder.logs().display().to_string(),
        }
    }

    fn failed(&self, source: ClusterError) -> RunError {
        RunError::Cluster {
            name: self.name.to_owned(),
            source,
        }
    }

    fn is_active(&self, job: &str) -> Result<bool, RunError> {
        let active = self.elsewhere.cluster.is_active(job);
        active.map_err(|source| self.failed(source))
    }

    /// Waits for the end of a job. Calls `look` at short intervals, and once more after the end. If the user stops the
    /// run, or if `look` returns false, cancels the job and returns false.
    fn follow(
        &self,
        job: &str,
        mut look: impl FnMut() -> Result<bool, RunError>,
    ) -> Result<bool, RunError> {
        let pause = self.elsewhere.cluster.pause();
        let mut is_ended = false;
        let mut asked: Option<Instant> = None;
        loop {
            if !look()? || self.watch.is_stopped() {
                if let Err(error) = self.elsewhere.cluster.cancel(job) {
                    // This error is only reported as an event, so that it does not hide the reason why the run stopped.
                    let text = format!("job {job} may still run: {error}");
                    self.watch.event(&Event::Told(&text));
                }
                return Ok(false);
            }
            if is_ended {
                return Ok(true);
            }
            if asked.is_none_or(|asked| asked.elapsed() >= pause) {
                is_ended = !self.is_active(job)?;
                asked = Some(Instant::now());
            }
            if !is_ended {
                std::thread::sleep(GLANCE.min(pause));
            }
        }
    }
}
