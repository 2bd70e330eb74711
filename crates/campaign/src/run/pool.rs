//! Runs trials in parallel threads of this process.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use pagetide_arena::{Arena, ArenaError, Progress, Step};
use pagetide_quantity::Nanos;
use pagetide_record::Record;
use pagetide_store::{CampaignNote, Store};

use super::error::RunError;
use super::ledger::Ledger;
use super::options::Options;
use super::prepared::Job;
use super::state::Run;
use crate::event::{Event, EventListener};
use crate::finish::{Circumstances, finish};
use crate::locked::locked;
use crate::settling::Settling;

/// Runs trials in parallel. Trials of one unit (the repetitions with the same cell, variant, block and pass) run one
/// after another in one thread. If `is_news`, first reports how many trials will run. Returns false if stopped.
pub(crate) fn execute(run: &mut Run<'_>, todo: &[Job], is_news: bool) -> Result<bool, RunError> {
    let units: Vec<&[Job]> = todo
        .chunk_by(|a, b| {
            let (a, b) = (&a.planned, &b.planned);
            (a.cell, a.variant, a.block, a.trial.pass) == (b.cell, b.variant, b.block, b.trial.pass)
        })
        .collect();
    let units = boots_first(run.arena, units);
    // A shard has only part of a cell's trials, so it does not settle cells one by one.
    let cells = run.options.shard.map_or(run.cells.len(), |_| 1);
    let settles = Settling::of(run.campaign, run.arena, cells);
    let (units, first) = settles.arranged(units);
    let jobs = side_by_side(run.arena, run.options.jobs, todo, units.len());
    run.ledger.tally.left = run.ledger.left(jobs);
    if is_news {
        run.watch.event(&Event::Planned(run.ledger.tally));
    }
    let pool = Pool {
        arena: run.arena,
        options: run.options,
        watch: run.watch,
        campaign: run.note.id(),
        store: Mutex::new(run.store),
        ledger: Mutex::new(&mut run.ledger),
        failure: Mutex::new(None),
        units: &units,
        first,
        later: OnceLock::new(),
        note: &run.note,
        settles,
        next: AtomicUsize::new(0),
        number: AtomicUsize::new(run.begun),
        running: AtomicUsize::new(0),
        ended: AtomicBool::new(false),
        jobs,
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| pool.work());
        }
    });
    run.begun = pool.number.into_inner();
    let failure = pool.failure.into_inner();
    match failure.unwrap_or_else(PoisonError::into_inner) {
        Some(failure) => Err(failure),
        None => Ok(!pool.ended.into_inner()),
    }
}

/// Returns the number of trials to run in parallel: as requested by the user, or else as the arena suggests for the
/// largest trial; at most the number of units, `most`.
fn side_by_side(arena: &dyn Arena, asked: Option<usize>, todo: &[Job], most: usize) -> usize {
    let jobs = asked.unwrap_or_else(|| {
        todo.iter()
            .max_by_key(|job| job.prepared.subject().memory.bytes())
            .map_or(1, |job| arena.side_by_side(&job.prepared))
    });
    jobs.clamp(1, most.max(1))
}

/// Moves the first unit of each guest that is not booted yet to the front. Guests then boot in parallel, and threads
/// rarely wait for a guest that another thread boots. If results have noise, the planned order is kept.
fn boots_first<'a>(arena: &dyn Arena, units: Vec<&'a [Job]>) -> Vec<&'a [Job]> {
    if arena.has_noise() {
        return units;
    }
    let mut booted = HashSet::new();
    let boots = |unit: &&[Job]| {
        let guest = unit.first().and_then(|job| arena.guest(&job.prepared));
        guest.is_some_and(|guest| guest.boot > Nanos(0) && booted.insert(guest.key))
    };
    let (mut all, others): (Vec<_>, Vec<_>) = units.into_iter().partition(boots);
    all.extend(others);
    all
}

/// State shared by the threads that run trials.
struct Pool<'a> {
    arena: &'a dyn Arena,
    options: &'a Options<'a>,
    watch: &'a dyn EventListener,
    campaign: String,
    store: Mutex<&'a mut Store>,
    ledger: Mutex<&'a mut Ledger>,
    /// The first error that ended the run; `None` if there is none. A stop is no error.
    failure: Mutex<Option<RunError>>,
    /// All sampling units, each a list of trials that run one after another. The first `first` units run in the order
    /// of this list; `later` has the order of the others.
    units: &'a [&'a [Job]],
    /// Number of units that run in the order of `units`.
    first: usize,
    /// Run order of the units from position `first` on, as indices into `units`. Computed when a thread reaches that
    /// position.
    later: OnceLock<Vec<usize>>,
    note: &'a CampaignNote,
    settles: Settling,
    next: AtomicUsize,
    number: AtomicUsize,
    running: AtomicUsize,
    /// True if the run was stopped, has failed or is futile, so that the other threads end too.
    ended: AtomicBool,
    jobs: usize,
}

impl Pool<'_> {
    fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.watch.is_stopped()
    }

    /// Returns the unit that runs at position `number`; `None` if there are no more units.
    fn unit(&self, number: usize) -> Option<&[Job]> {
        let index = match number.checked_sub(self.first) {
            None => number,
            Some(later) => {
                let order = || {
                    let store = locked(&self.store);
                    Settling::order(&store, self.note, self.units, self.first)
                };
                *self.later.get_or_init(order).get(later)?
            }
        };
        self.units.get(index).copied()
    }

    /// Body of a thread: runs one unit after another until none is left or the run has ended.
    fn work(&self) {
        while let Some(unit) = self.unit(self.next.fetch_add(1, Ordering::Relaxed)) {
            for job in unit {
                if self.is_ended() {
                    self.ended.store(true, Ordering::Relaxed);
                    return;
                }
                match self.trial(job) {
                    Ok(()) => {}
                    Err(RunError::Arena(ArenaError::Stopped)) => {
                        self.ended.store(true, Ordering::Relaxed);
                        return;
                    }
                    Err(failure) => {
                        self.ended.store(true, Ordering::Relaxed);
                        locked(&self.failure).get_or_insert(failure);
                        return;
                    }
                }
            }
        }
    }

    /// Runs one trial and stores its record.
    fn trial(&self, job: &Job) -> Result<(), RunError> {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let trial = &job.planned.trial;
        let sink = locked(&self.store).writer()?;
        let side_by_side = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.watch.event(&Event::Started {
            number,
            trial: &job.planned,
            side_by_side,
        });
        let progress = Relay { pool: self, number };
        let finished = finish(
            self.arena,
            &job.prepared,
            sink,
            &progress,
            Circumstances {
                campaign: &self.campaign,
                trial,
                kernel: None,
                side_by_side: u32::try_from(side_by_side).unwrap_or(u32::MAX),
                maker: self.options.maker,
            },
        );
        self.running.fetch_sub(1, Ordering::Relaxed);
        let (path, record) = finished?;
        locked(&self.store).admit(&path, &record)?;
        self.stored(number, job, &record);
        Ok(())
    }

    fn stored(&self, number: usize, job: &Job, record: &Record) {
        let (tally, is_settled) = {
            let mut ledger = locked(&self.ledger);
            ledger.stored(self.arena, job, record, self.jobs);
            if ledger.futility.verdict().is_some() {
                self.ended.store(true, Ordering::Relaxed);
            }
            (ledger.tally, ledger.is_first_to_be_whole(&job.planned))
        };
        let invalid = record.why_invalid();
        self.watch.event(&Event::Stored {
            number,
            trial: &job.planned,
            id: &record.id(),
            invalid: invalid.as_deref(),
            tally,
        });
        if is_settled {
            let cell = job.planned.cell;
            let verdicts = self.settles.verdicts(&locked(&self.store), self.note, cell);
            if let (Some(verdicts), Some(cell)) = (verdicts, self.note.cells.get(cell)) {
                self.watch.event(&Event::Settled {
                    label: &cell.label,
                    verdicts: &verdicts,
                });
            }
        }
    }
}

/// Forwards a trial's progress to the [`EventListener`], and the listener's request to stop to the trial.
struct Relay<'a, 'b> {
    pool: &'a Pool<'b>,
    number: usize,
}

impl Progress for Relay<'_, '_> {
    fn step(&self, step: Step) {
        self.pool.watch.event(&Event::Step {
            number: self.number,
            step,
        });
    }

    fn is_stopped(&self) -> bool {
        self.pool.is_ended()
    }
}
