//! State of a campaign in progress.

use std::collections::{HashMap, HashSet};
use std::iter::Peekable;
use std::sync::Arc;

use pagetide_arena::Arena;
use pagetide_record::{Pass, Record, RecordReader, Subject};
use pagetide_store::{CampaignNote, Entry, Row, Store};

use super::error::RunError;
use super::found::{KnownTrial, found};
use super::ledger::Ledger;
use super::note::{blocks_of, note_for};
use super::options::Options;
use super::prepared::{FirstTrials, TrialKind, check, prepared, try_all};
use crate::campaign::Campaign;
use crate::event::EventListener;
use crate::plan::{Cell, PlannedTrial};

/// Number of trials that are prepared at a time, independent of the campaign's size.
pub(crate) const AT_ONCE: usize = 1024;

/// State of a campaign in progress.
pub(crate) struct Run<'a> {
    pub campaign: &'a Campaign,
    pub arena: &'a dyn Arena,
    pub store: &'a mut Store,
    pub options: &'a Options<'a>,
    pub watch: &'a dyn EventListener,
    pub cells: Arc<[Cell]>,
    pub note: CampaignNote,
    pub ledger: Ledger,
    /// Number of trials started so far; the next trial gets the next number.
    pub begun: usize,
    pub tried: FirstTrials,
    /// Subjects (everything that determines a trial's results) of the trials prepared by the checks before the run.
    subjects: HashMap<TrialKind, Subject>,
    /// Cell, variant and pass of the trials without a record, among the trials examined so far.
    needed: HashSet<TrialKind>,
    /// Number of blocks in the campaign's previous note.
    pub before: u32,
}

impl<'a> Run<'a> {
    /// Starts a run, after checking everything that can be checked before a trial runs.
    pub fn begin(
        campaign: &'a Campaign,
        arena: &'a dyn Arena,
        store: &'a mut Store,
        options: &'a Options<'a>,
        watch: &'a dyn EventListener,
    ) -> Result<Self, RunError> {
        check(campaign, arena)?;
        let tried = try_all(campaign, arena)?;
        let subjects = tried
            .iter()
            .map(|(kind, prepared)| (*kind, prepared.subject().clone()))
            .collect();
        let cells: Arc<[Cell]> = campaign.cells().collect();
        let before = store.latest_of(&campaign.name)?;
        let mut note = note_for(campaign, &cells, before.as_ref(), options.fresh);
        note.command.clone_from(&options.command);
        let before = blocks_of(before.as_ref(), &note);
        Ok(Self {
            campaign,
            arena,
            store,
            options,
            watch,
            ledger: Ledger::new(cells.len()),
            cells,
            note,
            begun: 0,
            tried,
            subjects,
            needed: HashSet::new(),
            before,
        })
    }

    /// Passes the record of a trial of the first seeds to `futility`, which may end the campaign. A record that cannot
    /// be read counts as valid.
    fn saw(&mut self, planned: &PlannedTrial, row: &Row) {
        if planned.trial.pass == Pass::Timed && self.ledger.futility.asks(planned.block) {
            let record = if row.is_valid() {
                Record::default()
            } else {
                self.store
                    .load(&row.id)
                    .map_or_else(|_| Record::default(), RecordReader::into_record)
            };
            self.ledger.futility.saw(planned.block, &record);
        }
    }

    /// Adds trials to the campaign's note, and estimates how long those without a record take. Returns true for each
    /// trial that has a record.
    pub fn look(
        &mut self,
        trials: impl Iterator<Item = PlannedTrial>,
    ) -> Result<Vec<bool>, RunError> {
        let (mut all, mut trials) = (Vec::new(), trials.peekable());
        loop {
            let known = next_of(&mut trials, AT_ONCE)
                .into_iter()
                .map(|planned| self.known(planned))
                .collect::<Result<Vec<_>, _>>()?;
            if known.is_empty() {
                return Ok(all);
            }
            let found = found(self.store, &self.note, self.arena.has_noise(), &known)?;
            for (trial, found) in known.into_iter().zip(&found) {
                if let Some(row) = found {
                    self.saw(&trial.planned, row);
                }
                let cell = trial.subject.cell();
                let asked = (&trial.subject, trial.planned.trial.takes);
                self.ledger
                    .times
                    .learn(self.arena, self.store, asked, &cell)?;
                if found.is_none() {
                    let planned = &trial.planned;
                    let kind = (planned.cell, planned.variant, planned.trial.pass);
                    // Trials with the same cell, variant and pass start from the same guest.
                    if self.needed.insert(kind)
                        && let Some(prepared) = self.tried.get(&kind)
                    {
                        self.ledger.times.boots.need(self.arena, prepared);
                    }
                    self.ledger.add(planned, cell);
                }
                self.note.entries.push(Entry {
                    key: trial.key,
                    cell: trial.planned.cell,
                    variant: trial.planned.variant,
                    unit: trial.planned.block,
                    repetition: trial.planned.trial.repetition,
                });
            }
            all.extend(found.iter().map(Option::is_some));
        }
    }

    /// Returns the trial with its key. The key is derived from the trial with the same cell, variant and pass that the
    /// checks prepared, which differs only in its seed. If there is none, this trial is prepared.
    fn known(&self, planned: PlannedTrial) -> Result<KnownTrial, RunError> {
        let kind = (planned.cell, planned.variant, planned.trial.pass);
        let subject = match self.subjects.get(&kind) {
            Some(tried) => Subject {
                seed: planned.trial.seed,
                ..tried.clone()
            },
            None => prepared(self.arena, &planned.trial)?.subject().clone(),
        };
        Ok(KnownTrial {
            key: subject.key(),
            planned,
            subject,
        })
    }
}

/// Takes about `most` trials from the front of `trials`. Trials with the same cell, block and pass stay together.
pub(crate) fn next_of(
    trials: &mut Peekable<impl Iterator<Item = PlannedTrial>>,
    most: usize,
) -> Vec<PlannedTrial> {
    let together = |a: &PlannedTrial, b: &PlannedTrial| {
        (a.block, a.cell, a.trial.pass) == (b.block, b.cell, b.trial.pass)
    };
    let mut next: Vec<PlannedTrial> = Vec::new();
    while let Some(trial) = trials
        .next_if(|trial| next.len() < most || next.last().is_some_and(|last| together(last, trial)))
    {
        next.push(trial);
    }
    next
}
