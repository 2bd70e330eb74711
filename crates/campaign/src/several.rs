//! Runs trials that are not part of a campaign's plan, for a search that chooses each trial by the results of earlier
//! ones.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pagetide_arena::{ArenaError, PreparedTrial, Progress, Step, Trial};
use pagetide_record::Record;
use pagetide_store::{Row, StoreError};

use crate::batch;
use crate::event::EventListener;
use crate::finish::{Circumstances, finish};
use crate::locked::locked;
use crate::run::RunError;
use crate::site::Site;

/// Result of a trial that was requested with [`Site::several`].
#[derive(Clone, Debug)]
pub enum Tried {
    /// The record of the trial, from this run or an earlier one.
    Ran(Box<Record>),
    /// The arena refused the trial, with this sentence as the reason.
    Refused(String),
}

impl Site<'_> {
    /// Runs the trials that have no record in the store, in parallel. Returns one result for each trial, in the order
    /// of `trials`, or `None` if stopped; records of finished trials are kept. Trials with equal subjects run once.
    /// `name` is written into the records as the name of the campaign.
    pub fn several(
        &mut self,
        name: &str,
        trials: &[Trial],
    ) -> Result<Option<Vec<Tried>>, RunError> {
        let elsewhere = self.options.elsewhere;
        if let Some(elsewhere) = elsewhere
            && !batch::settle_search(self, elsewhere, name)?
        {
            return Ok(None);
        }
        let prepared: Vec<Result<PreparedTrial, String>> = trials
            .iter()
            .map(|trial| match self.arena.prepare(trial) {
                Ok(prepared) => Ok(Ok(prepared)),
                Err(
                    refused @ (ArenaError::Refused(_)
                    | ArenaError::OtherKernel { .. }
                    | ArenaError::Wrong(_)),
                ) => Ok(Err(refused.to_string())),
                Err(ArenaError::Stopped) => Err(None),
                Err(other) => Err(Some(RunError::Arena(other))),
            })
            .collect::<Result<_, _>>()
            .or_else(|failure| failure.map_or(Ok(Vec::new()), Err))?;
        if prepared.len() < trials.len() {
            return Ok(None);
        }
        let keys: Vec<Option<String>> = prepared
            .iter()
            .map(|one| one.as_ref().ok().map(|ready| ready.subject().key()))
            .collect();
        let mut records = self.known(keys.iter().flatten())?;
        let mut todo: Vec<(&str, &PreparedTrial)> = Vec::new();
        for (key, one) in keys.iter().zip(&prepared) {
            if let (Some(key), Ok(one)) = (key, one)
                && !records.contains_key(key)
                && todo.iter().all(|(other, _)| other != key)
            {
                todo.push((key, one));
            }
        }
        let ran = match elsewhere {
            Some(elsewhere) if !todo.is_empty() => batch::search(self, elsewhere, name, &todo)?,
            _ => self.in_parallel(name, &todo)?,
        };
        let Some(ran) = ran else {
            return Ok(None);
        };
        records.extend(ran);
        let tried = keys.into_iter().zip(prepared).filter_map(|(key, one)| {
            let record = key.and_then(|key| records.get(&key).cloned());
            match one {
                Err(why) => Some(Tried::Refused(why)),
                Ok(_) => record.map(|record| Tried::Ran(Box::new(record))),
            }
        });
        Ok(Some(tried.collect()))
    }

    /// Returns the stored records with these keys, preferring valid ones. Records invalidated by an accident do not
    /// count.
    fn known<'k>(
        &self,
        keys: impl Iterator<Item = &'k String>,
    ) -> Result<HashMap<String, Record>, StoreError> {
        let mut keys: Vec<String> = keys.cloned().collect();
        keys.sort_unstable();
        keys.dedup();
        let mut rows: Vec<Row> = self.store.by_keys(&keys)?;
        rows.retain(|row| !row.accident);
        rows.sort_by_key(Row::is_valid);
        let rows: HashMap<&str, &Row> = rows.iter().map(|row| (&*row.key, row)).collect();
        let load = |(key, row): (&str, &Row)| {
            let record = self.store.load(&row.id)?.into_record();
            Ok((key.to_owned(), record))
        };
        rows.into_iter().map(load).collect()
    }

    /// Runs prepared trials in this process and stores their records. Returns the records by key, or `None` if stopped.
    fn in_parallel(
        &mut self,
        name: &str,
        todo: &[(&str, &PreparedTrial)],
    ) -> Result<Option<HashMap<String, Record>>, RunError> {
        let largest = todo
            .iter()
            .max_by_key(|(_, one)| one.subject().memory.bytes());
        let jobs = largest.map_or(0, |(_, largest)| {
            let jobs = self.options.jobs;
            jobs.unwrap_or_else(|| self.arena.side_by_side(largest))
                .clamp(1, todo.len())
        });
        let (arena, options, watch) = (self.arena, self.options, self.watch);
        let store = Mutex::new(&mut *self.store);
        let (next, running, ended) = (
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicBool::new(false),
        );
        let (records, failure) = (Mutex::new(HashMap::new()), Mutex::new(None));
        let run = |key: &str, one: &PreparedTrial| -> Result<(), RunError> {
            let sink = locked(&store).writer()?;
            let side_by_side = running.fetch_add(1, Ordering::Relaxed) + 1;
            let circumstances = Circumstances {
                campaign: name,
                trial: one.trial(),
                kernel: None,
                side_by_side: u32::try_from(side_by_side).unwrap_or(u32::MAX),
                maker: options.maker,
            };
            let life = Life {
                watch,
                ended: &ended,
            };
            let finished = finish(arena, one, sink, &life, circumstances);
            running.fetch_sub(1, Ordering::Relaxed);
            let (path, record) = finished?;
            locked(&store).admit(&path, &record)?;
            locked(&records).insert(key.to_owned(), record);
            Ok(())
        };
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    while let Some((key, one)) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if ended.load(Ordering::Relaxed) || watch.is_stopped() {
                            ended.store(true, Ordering::Relaxed);
                            return;
                        }
                        if let Err(error) = run(key, one) {
                            ended.store(true, Ordering::Relaxed);
                            if !matches!(error, RunError::Arena(ArenaError::Stopped)) {
                                locked(&failure).get_or_insert(error);
                            }
                            return;
                        }
                    }
                });
            }
        });
        if let Some(failure) = locked(&failure).take() {
            return Err(failure);
        }
        if ended.into_inner() {
            return Ok(None);
        }
        Ok(Some(std::mem::take(&mut *locked(&records))))
    }
}

/// Passes the request to stop on to a running trial.
struct Life<'a> {
    watch: &'a dyn EventListener,
    ended: &'a AtomicBool,
}

impl Progress for Life<'_> {
    fn step(&self, _: Step) {}

    fn is_stopped(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.watch.is_stopped()
    }
}
