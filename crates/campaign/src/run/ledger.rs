//! Counts and time estimates of a run.

use std::collections::BTreeMap;

use pagetide_arena::Arena;
use pagetide_quantity::Nanos;
use pagetide_record::{Invalid, Pass, Record};

use super::prepared::Job;
use crate::event::Tally;
use crate::forecast::Times;
use crate::futility::Futility;
use crate::plan::PlannedTrial;

/// Counts and time estimates of a run, updated with the record of each trial.
pub(crate) struct Ledger {
    pub tally: Tally,
    pub times: Times,
    /// Number of trials without a record, by the hash of their cell.
    waiting: BTreeMap<String, u64>,
    /// Number of timed trials without a record, by the index of their cell in the campaign.
    open: Vec<u64>,
    /// Detects that the campaign cannot give results.
    pub futility: Futility,
}

impl Ledger {
    /// Creates the ledger of a campaign with this number of cells.
    pub fn new(cells: usize) -> Self {
        Self {
            tally: Tally::default(),
            times: Times::default(),
            waiting: BTreeMap::new(),
            open: vec![0; cells],
            futility: Futility::of_search(),
        }
    }

    /// Counts a trial that has no record. `cell` is the hash of the trial's cell.
    pub fn add(&mut self, planned: &PlannedTrial, cell: String) {
        *self.waiting.entry(cell).or_default() += 1;
        self.open[planned.cell] += u64::from(planned.trial.pass == Pass::Timed);
    }

    /// Returns the estimated wall-clock time until all trials have a record, with `jobs` trials in parallel.
    pub fn left(&self, jobs: usize) -> Nanos {
        self.times.all(&self.waiting, jobs)
    }

    /// Counts the new record of a trial, and updates the time estimates. `jobs` is the number of trials that run in
    /// parallel.
    pub fn stored(&mut self, arena: &dyn Arena, job: &Job, record: &Record, jobs: usize) {
        self.times.saw(&job.cell, record.wall.total);
        self.times.boots.had(arena, &job.prepared);
        if let Some(waiting) = self.waiting.get_mut(&job.cell) {
            *waiting = waiting.saturating_sub(1);
        }
        if job.planned.trial.pass == Pass::Timed {
            self.futility.saw(job.planned.block, record);
            let open = &mut self.open[job.planned.cell];
            *open = open.saturating_sub(1);
        }
        let died = record.results.invalid.iter().any(Invalid::is_death);
        self.tally.ran += 1;
        self.tally.invalid += usize::from(!record.is_valid());
        self.tally.died += usize::from(died);
        self.tally.left = self.left(jobs);
    }

    /// True if this timed trial's cell is now complete while another cell is not.
    pub fn is_first_to_be_whole(&self, planned: &PlannedTrial) -> bool {
        planned.trial.pass == Pass::Timed
            && self.open[planned.cell] == 0
            && self.open.iter().any(|open| *open > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_arena::{ArenaError, PreparedTrial, Progress, Trial, TrialResult};
    use pagetide_record::{ArenaKind, Invalid, RecordWriter, Subject};

    /// An arena that cannot run anything; only its kind is used.
    struct Nowhere;

    impl Arena for Nowhere {
        fn kind(&self) -> ArenaKind {
            ArenaKind::Exact
        }

        fn prepare(&self, _: &Trial) -> Result<PreparedTrial, ArenaError> {
            Err(ArenaError::Stopped)
        }

        fn run(
            &self,
            _: &PreparedTrial,
            _: &mut RecordWriter,
            _: &dyn Progress,
        ) -> Result<TrialResult, ArenaError> {
            Err(ArenaError::Stopped)
        }
    }

    /// Returns a trial of a cell on one of two kinds of swap. The hash of the cell includes the swap.
    fn job(cell: usize, swap: &str, pass: Pass) -> Job {
        let trial = Trial {
            pass,
            ..Trial::default()
        };
        Job {
            planned: PlannedTrial {
                cell,
                variant: 0,
                block: 0,
                trial: trial.clone(),
            },
            prepared: PreparedTrial::new(trial, Subject::default(), ()),
            cell: format!("{cell} {swap}"),
        }
    }

    #[test]
    fn a_cell_is_whole_when_all_its_variants_are_and_deaths_are_counted() {
        let kinds = ["ssd", "zram"];
        let jobs: Vec<Job> = [0, 1]
            .into_iter()
            .flat_map(|cell| kinds.map(|swap| job(cell, swap, Pass::Timed)))
            .chain([job(0, "ssd", Pass::Observed)])
            .collect();
        let mut ledger = Ledger::new(2);
        for job in &jobs {
            ledger.add(&job.planned, job.cell.clone());
        }
        let mut whole = Vec::new();
        for job in [&jobs[0], &jobs[4], &jobs[1], &jobs[2], &jobs[3]] {
            ledger.stored(&Nowhere, job, &Record::default(), 2);
            whole.push(ledger.is_first_to_be_whole(&job.planned));
        }
        assert_eq!(whole, [false, false, true, false, false]);
        let mut dead = Record::default();
        dead.results.invalid.push(Invalid::OutOfMemory {
            process: "sort".to_owned(),
            after: Nanos(1),
        });
        ledger.stored(&Nowhere, &jobs[0], &dead, 2);
        let tally = ledger.tally;
        assert_eq!((tally.ran, tally.invalid, tally.died), (6, 1, 1));
    }
}
