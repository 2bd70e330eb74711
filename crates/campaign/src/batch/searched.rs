//! The batch of a search's trials, which are part of no campaign's plan.

use std::collections::HashMap;

use pagetide_arena::PreparedTrial;
use pagetide_quantity::Nanos;
use pagetide_record::{Record, RecordReader};
use pagetide_store::{Store, StoreError};

use super::Elsewhere;
use super::folder::{BatchFolder, Task};
use super::submit::{Batch, Batched};
use super::tasks::{divide, task_trial};
use crate::forecast::UNKNOWN_TRIAL;
use crate::plan::PlannedTrial;
use crate::run::RunError;
use crate::site::Site;

/// Waits for a job that an earlier process submitted for the search with this name, and stores its records. Returns at
/// once if there is no such job. Returns false if the user stops the search.
pub(crate) fn settle_search(
    site: &mut Site<'_>,
    elsewhere: Elsewhere<'_>,
    name: &str,
) -> Result<bool, RunError> {
    Batch::new(site.store, name, elsewhere, site.watch).settle(site.store)
}

/// Runs trials on the cluster, each with its key. Keys must differ. Returns the records by key, or `None` if the user
/// stops the search, or if this process does not wait for the job.
pub(crate) fn search(
    site: &mut Site<'_>,
    elsewhere: Elsewhere<'_>,
    name: &str,
    todo: &[(&str, &PreparedTrial)],
) -> Result<Option<HashMap<String, Record>>, RunError> {
    let batch = Batch::new(site.store, name, elsewhere, site.watch);
    let arena = site.arena;
    let each = |prepared: &PreparedTrial| arena.estimate(prepared.subject());
    let times = todo
        .iter()
        .map(|(_, prepared)| each(prepared).unwrap_or(UNKNOWN_TRIAL));
    let mut trials = Searched {
        name,
        todo,
        times: times.collect(),
        records: HashMap::new(),
        store: site.store,
    };
    let is_whole = batch.run(&mut trials)?;
    Ok(is_whole.then_some(trials.records))
}

/// Trials of a search.
struct Searched<'a> {
    name: &'a str,
    todo: &'a [(&'a str, &'a PreparedTrial)],
    /// Estimated wall-clock time of each trial.
    times: Vec<Nanos>,
    /// Records taken in so far, by key.
    records: HashMap<String, Record>,
    store: &'a mut Store,
}

impl Batched for Searched<'_> {
    fn tasks(&mut self, most: u32) -> Vec<Task> {
        let open = self.todo.iter().zip(&self.times);
        let open = open.filter(|((key, _), _)| !self.records.contains_key(*key));
        let trials = open.map(|((key, prepared), time)| {
            let planned = PlannedTrial {
                cell: 0,
                variant: 0,
                block: 0,
                trial: prepared.trial().clone(),
            };
            (*time, task_trial(key, prepared, planned))
        });
        divide(trials.collect(), self.name, most)
    }

    fn take_in(&mut self, folder: &BatchFolder) -> Result<bool, RunError> {
        for key in folder.done()? {
            let is_asked = self.todo.iter().any(|(asked, _)| **asked == key);
            if !is_asked || self.records.contains_key(&key) {
                continue;
            }
            if let Some(id) = folder.record(&key)? {
                let reader = RecordReader::open(&self.store.path(&id));
                let record = reader.map_err(StoreError::writing)?.into_record();
                self.records.insert(key, record);
            }
        }
        Ok(true)
    }

    fn open(&self) -> usize {
        self.todo.len() - self.records.len()
    }

    fn store(&mut self) -> &mut Store {
        self.store
    }
}
