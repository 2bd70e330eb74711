//! The batch of a campaign's trials.

use std::collections::HashMap;

use pagetide_record::RecordReader;
use pagetide_store::{Store, StoreError};

use super::Elsewhere;
use super::folder::{BatchFolder, Task};
use super::submit::{Batch, Batched};
use super::tasks::{divide, task_trial};
use crate::event::Event;
use crate::plan::PASSES;
use crate::run::{Job, Run, RunError};

/// Waits for a job that an earlier process submitted for this campaign, and stores its records. Returns at once if
/// there is no such job. Returns false if the user stops the run.
pub(crate) fn settle(run: &mut Run<'_>, elsewhere: Elsewhere<'_>) -> Result<bool, RunError> {
    Batch::new(run.store, &run.campaign.name, elsewhere, run.watch).settle(run.store)
}

/// Runs the trials `todo` on the cluster. Returns false if the user stops the run, if the trials prove futile, or if
/// this process does not wait for the job.
pub(crate) fn execute(
    run: &mut Run<'_>,
    elsewhere: Elsewhere<'_>,
    todo: &[Job],
    is_news: bool,
) -> Result<bool, RunError> {
    let batch = Batch::new(run.store, &run.campaign.name, elsewhere, run.watch);
    let names = names(todo);
    let mut trials = Planned {
        open: vec![true; todo.len()],
        places: names.iter().cloned().zip(0..).collect(),
        names,
        tasks: 0,
        run,
        todo,
        is_news,
    };
    batch.run(&mut trials)
}

/// Trials of a campaign's plan.
struct Planned<'a, 'r> {
    run: &'a mut Run<'r>,
    todo: &'a [Job],
    /// Name of each trial in the batch.
    names: Vec<String>,
    /// Index of each trial, by its name.
    places: HashMap<String, usize>,
    /// True for each trial without a record.
    open: Vec<bool>,
    /// Number of tasks of the current job.
    tasks: usize,
    /// True if the plan has not been reported yet.
    is_news: bool,
}

/// Returns the names of the trials in a batch. A name consists of the trial's key and a number that counts the trials
/// with this key, from 1.
fn names(todo: &[Job]) -> Vec<String> {
    let mut seen: HashMap<String, u32> = HashMap::new();
    let name = |job: &Job| {
        let key = job.prepared.subject().key();
        let number = seen.entry(key.clone()).or_default();
        *number += 1;
        format!("{key}-{number}")
    };
    todo.iter().map(name).collect()
}

impl Batched for Planned<'_, '_> {
    /// Trials that boot the same guest are adjacent, so that few nodes boot each guest.
    fn tasks(&mut self, most: u32) -> Vec<Task> {
        let mut places: Vec<usize> = (0..self.todo.len())
            .filter(|place| self.open[*place])
            .collect();
        places.sort_by_key(|place| {
            let planned = &self.todo[*place].planned;
            (
                planned.cell,
                planned.variant,
                PASSES.iter().position(|pass| *pass == planned.trial.pass),
                planned.block,
                *place,
            )
        });
        let trials = places.into_iter().map(|place| {
            let Job {
                planned,
                prepared,
                cell,
            } = &self.todo[place];
            let time = self.run.ledger.times.each(cell).0;
            (
                time,
                task_trial(&self.names[place], prepared, planned.clone()),
            )
        });
        let tasks = divide(trials.collect(), &self.run.note.id(), most);
        self.tasks = tasks.len();
        let run = &mut *self.run;
        run.ledger.tally.left = run.ledger.left(tasks.len());
        if std::mem::take(&mut self.is_news) {
            run.watch.event(&Event::Planned(run.ledger.tally));
        }
        tasks
    }

    fn take_in(&mut self, folder: &BatchFolder) -> Result<bool, RunError> {
        let run = &mut *self.run;
        for name in folder.done()? {
            let place = self.places.get(&name).copied();
            let Some(place) = place.filter(|place| self.open[*place]) else {
                continue;
            };
            let Some(id) = folder.record(&name)? else {
                continue;
            };
            let reader = RecordReader::open(&run.store.path(&id)).map_err(StoreError::writing)?;
            let (record, job) = (reader.into_record(), &self.todo[place]);
            self.open[place] = false;
            run.ledger.stored(run.arena, job, &record, self.tasks);
            let invalid = record.why_invalid();
            run.watch.event(&Event::Stored {
                number: run.begun,
                trial: &job.planned,
                id: &id,
                invalid: invalid.as_deref(),
                tally: run.ledger.tally,
            });
            run.begun += 1;
        }
        Ok(run.ledger.futility.verdict().is_none())
    }

    fn open(&self) -> usize {
        self.open.iter().filter(|is_open| **is_open).count()
    }

    fn store(&mut self) -> &mut Store {
        self.run.store
    }
}
