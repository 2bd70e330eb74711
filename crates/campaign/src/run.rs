//! The run loop: runs a campaign's trials in an arena, stores the records, and resumes after an interruption.
//!
//! Progress is derived from the store alone, by the identity of trials: a trial with a record is not run again. There
//! is no other state to lose, so a run that was killed is simply started again. A trial that occurs twice in a plan (a
//! kernel compared with itself) needs two records.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::iter::Peekable;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pagetide_compare::CompareError;
use pagetide_quantity::Nanos;
use pagetide_record::{ArenaKind, Invalid, Maker, Pass, Record, RecordReader, Subject};
use pagetide_store::{CampaignNote, CellNote, Entry, Row, Store, StoreError};

use crate::batch::{self, ClusterError, Elsewhere};
use crate::campaign::{Campaign, Until};
use crate::deepen::deepen;
use crate::event::{Event, Tally, Watch};
use crate::finish::{Circumstances, finish};
use crate::forecast::{Times, shortened};
use crate::futility::{Futile, Futility};
use crate::plan::{Cell, PASSES, PlannedTrial};
use crate::sampling::until_sure;
use crate::settling::Settling;
use crate::shard::{Line, Shard};
use pagetide_arena::{Arena, ArenaError, PreparedTrial, Progress, Step, Trial};

/// Options for running a campaign.
pub struct Options<'a> {
    /// Number of parallel trials; `None` for the number that the arena suggests.
    pub jobs: Option<usize>,
    /// True if all trials are run again, even if they have records.
    pub fresh: bool,
    /// True if the campaign continues even if all trials of the first seeds are invalid for the same reason.
    pub keep_going: bool,
    /// The shard to run, which is a part of the campaign's trials; `None` for all trials.
    pub shard: Option<Shard>,
    /// Cluster that runs the trials; `None` if this process runs them.
    pub elsewhere: Option<Elsewhere<'a>>,
    /// The user's command line, quoted for a shell; stored with the campaign.
    pub command: String,
    /// Function that creates the maker for the record of a trial.
    pub maker: &'a (dyn Fn(&Trial) -> Maker + Sync),
}

/// Result of running a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The campaign's note in the store.
    pub note: CampaignNote,
    /// Final counts of the campaign's trials.
    pub tally: Tally,
    /// True if the run was stopped by the user before its end.
    pub stopped: bool,
    /// Reason why the run ended early although nobody stopped it; `None` if it did not.
    pub futile: Option<Futile>,
}

/// Why a campaign cannot continue. Records already stored are kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The arena refuses a trial, before any trial ran.
    #[error("{scenario} under variant {variant} cannot run: {source}")]
    Refused {
        /// Scenario of the refused trial.
        scenario: String,
        /// Variant of the refused trial.
        variant: String,
        /// The arena's reason.
        source: ArenaError,
    },
    /// The arena could not prepare or run a trial.
    #[error(transparent)]
    Arena(ArenaError),
    /// Reading or writing the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored records cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// The campaign requests an arena other than the available one.
    #[error(
        "campaign {name} asks for the {asked} arena, and this version has only {here}: name that one"
    )]
    OtherArena {
        /// Name of the campaign.
        name: String,
        /// Kind of arena that the campaign requests.
        asked: ArenaKind,
        /// Kind of arena that is available.
        here: ArenaKind,
    },
    /// A cell occurs twice in the campaign.
    #[error(
        "campaign {name} has the cell {cell} twice: remove one, or the same trials would run again"
    )]
    SameCell {
        /// Name of the campaign.
        name: String,
        /// Label of the cell.
        cell: String,
    },
    /// The campaign exceeds a limit on its size.
    #[error(
        "campaign {name} has {count} {what}, and more than {most} are not planned: leave some out, or split it"
    )]
    TooMany {
        /// Name of the campaign.
        name: String,
        /// Number of things in the campaign.
        count: usize,
        /// Kind of thing that is counted, such as "cells".
        what: &'static str,
        /// Most things of this kind.
        most: usize,
    },
    /// A shard was requested of a campaign whose number of trials depends on results.
    #[error(
        "campaign {name} samples until it is sure, so its trials depend on results of all shards: give a number of seeds, or run it whole"
    )]
    Sharded {
        /// Name of the campaign.
        name: String,
    },
    /// A cluster refused a request.
    #[error("the trials of campaign {name} cannot run on the cluster: {source}")]
    Cluster {
        /// Name of the campaign.
        name: String,
        /// Error of the cluster.
        source: ClusterError,
    },
    /// Tasks on the cluster ended before all their trials had a record.
    #[error(
        "{tasks} tasks of job {job} ended early, most because: {why}; their output is in {logs}, and the same command goes on from here"
    )]
    Tasks {
        /// Identity of the job.
        job: String,
        /// Number of tasks that ended early.
        tasks: u32,
        /// The most frequent reason why tasks ended early.
        why: String,
        /// Path of the folder with the tasks' output.
        logs: String,
    },
    /// The campaign has nothing to run.
    #[error("campaign {name} has no {what}: give at least one")]
    Empty {
        /// Name of the campaign.
        name: String,
        /// Kind of thing that the campaign lacks, such as "variant".
        what: &'static str,
    },
}

impl RunError {
    /// True if the user's input was wrong, as opposed to a failure of the machine.
    pub fn is_user_error(&self) -> bool {
        match self {
            Self::TooMany { .. }
            | Self::Empty { .. }
            | Self::OtherArena { .. }
            | Self::Sharded { .. }
            | Self::SameCell { .. } => true,
            Self::Refused { source, .. } => source.is_user_error(),
            Self::Arena(_)
            | Self::Store(_)
            | Self::Compare(_)
            | Self::Cluster { .. }
            | Self::Tasks { .. } => false,
        }
    }
}

/// A planned trial, prepared by the arena.
#[derive(Debug)]
pub(crate) struct Job {
    pub planned: PlannedTrial,
    pub prepared: PreparedTrial,
    pub cell: String,
}

/// Runs a campaign until it ends or is stopped.
pub fn run(
    campaign: &Campaign,
    arena: &dyn Arena,
    store: &mut Store,
    options: &Options<'_>,
    watch: &dyn Watch,
) -> Result<Outcome, RunError> {
    let _lock = store.lock_campaign(&campaign.name)?;
    let mut run = Run::begin(campaign, arena, store, options, watch)?;
    let sampling = &campaign.sampling;
    let of_cell = campaign.variants.len() * sampling.repetitions.max(1) as usize;
    if options.shard.is_none() {
        run.futility = Futility::new(
            run.cells.len() * of_cell,
            sampling.until.cap(),
            options.keep_going,
        );
    }
    let is_settled = match options.elsewhere {
        Some(elsewhere) => batch::settle(&mut run, elsewhere)?,
        None => true,
    };
    let finished = match &campaign.sampling.until {
        _ if !is_settled => false,
        Until::Sure { .. } if options.shard.is_some() => {
            return Err(RunError::Sharded {
                name: campaign.name.clone(),
            });
        }
        Until::Blocks(blocks) | Until::Enough(blocks) => run.blocks(0..*blocks)?,
        Until::Sure { cap, looks } => until_sure(&mut run, *cap, looks)?,
    };
    // Only when all shards have run is it known which differences are not explained yet.
    let finished = finished && (options.shard.is_some() || deepen(&mut run)?);
    Ok(Outcome {
        tally: run.tally,
        note: run.note,
        stopped: !finished,
        futile: run.futility.verdict().filter(|_| !finished),
    })
}

/// Number of trials that are prepared at a time, independent of the campaign's size.
const AT_ONCE: usize = 1024;
/// Number of trials in one job of a cluster. Jobs run one after another, but the tasks within a job do not wait for
/// each other.
const AT_ONCE_ELSEWHERE: usize = 65_536;
/// Most prepared trials of the first block that are kept. Those of a larger matrix are prepared again when needed.
const KEPT: usize = 4096;

/// Trials prepared by the checks before a run, by cell, variant and pass. All belong to the first repetition of the
/// first block.
type FirstTrials = HashMap<Place, PreparedTrial>;
/// Index of the cell, index of the variant, and pass.
type Place = (usize, usize, Pass);

/// Returns a prepared trial: the one kept from the checks before the run, or one prepared now.
fn ready(
    arena: &dyn Arena,
    planned: PlannedTrial,
    tried: &mut FirstTrials,
) -> Result<Job, RunError> {
    let place = (planned.cell, planned.variant, planned.trial.pass);
    let is_first = planned.block == 0 && planned.trial.repetition == 0;
    let prepared = match is_first.then(|| tried.remove(&place)).flatten() {
        Some(prepared) => prepared,
        None => prepared(arena, &planned.trial)?,
    };
    Ok(Job {
        cell: prepared.subject().cell(),
        planned,
        prepared,
    })
}

/// A trial that may not be prepared yet, but whose identity is known.
struct KnownTrial {
    planned: PlannedTrial,
    subject: Subject,
    key: String,
}

/// Prepares one trial; fails if the arena refuses it.
pub(crate) fn prepared(arena: &dyn Arena, trial: &Trial) -> Result<PreparedTrial, RunError> {
    arena.prepare(trial).map_err(|source| match source {
        ArenaError::Refused(_) | ArenaError::OtherKernel { .. } | ArenaError::Wrong(_) => {
            RunError::Refused {
                scenario: trial.scenario.clone(),
                variant: trial.variant.name.clone(),
                source,
            }
        }
        other => RunError::Arena(other),
    })
}

/// Prepares the first trial of a cell under every variant; fails if the arena refuses one.
pub(crate) fn prepare(
    campaign: &Campaign,
    arena: &dyn Arena,
    cell: &Cell,
    pass: Pass,
) -> Result<Vec<PreparedTrial>, RunError> {
    (0..campaign.variants.len())
        .map(|variant| prepared(arena, &campaign.trial(cell, variant, (0, 0), pass)))
        .collect()
}

/// Prepares every cell under every variant, to detect refused trials early. Later blocks differ only in their seeds.
fn try_all(campaign: &Campaign, arena: &dyn Arena) -> Result<FirstTrials, RunError> {
    let mut tried = FirstTrials::new();
    let mut seen = HashSet::new();
    for (place, cell) in campaign.cells().enumerate() {
        for pass in PASSES {
            if campaign.trials_of_cell(pass) == 0 {
                continue;
            }
            let all = prepare(campaign, arena, &cell, pass)?;
            if !seen.insert(shortened(&all[0].subject().cell())) {
                return Err(RunError::SameCell {
                    name: campaign.name.clone(),
                    cell: cell.label(),
                });
            }
            if tried.len() < KEPT {
                let places = (0..all.len()).map(|variant| (place, variant, pass));
                tried.extend(places.zip(all));
            }
        }
    }
    Ok(tried)
}

/// Fails if a campaign requests another arena or has nothing to run.
pub(crate) fn check(campaign: &Campaign, arena: &dyn Arena) -> Result<(), RunError> {
    if campaign.arena != arena.kind() {
        return Err(RunError::OtherArena {
            name: campaign.name.clone(),
            asked: campaign.arena,
            here: arena.kind(),
        });
    }
    if let Some((what, count, most)) = campaign.excess() {
        return Err(RunError::TooMany {
            name: campaign.name.clone(),
            count,
            what,
            most,
        });
    }
    let missing = if campaign.variants.is_empty() {
        "variant"
    } else if campaign.scenarios.is_empty() {
        "scenario"
    } else if campaign.sampling.until.cap() == 0 {
        "seed"
    } else if campaign.variants.len() < 2 && matches!(campaign.sampling.until, Until::Sure { .. }) {
        // With one variant, there is nothing to decide.
        "second variant"
    } else {
        return Ok(());
    };
    Err(RunError::Empty {
        name: campaign.name.clone(),
        what: missing,
    })
}

/// The campaign's note in the store: the previous one if it is continued, else a new one.
pub(crate) fn note_for(
    campaign: &Campaign,
    cells: &[Cell],
    before: Option<&CampaignNote>,
    fresh: bool,
) -> CampaignNote {
    let generation = before.map_or(1, |note| note.generation.max(1));
    let again = fresh && before.is_some();
    CampaignNote {
        name: campaign.name.clone(),
        generation: if again { generation + 1 } else { generation },
        fresh: fresh || before.is_some_and(|note| note.fresh),
        command: String::new(),
        started: match before {
            Some(note) if !again => note.started,
            _ => Nanos::wall_clock(),
        },
        arena: campaign.arena,
        variants: campaign.variants.iter().map(|v| v.name.clone()).collect(),
        cells: cells
            .iter()
            .map(|cell| CellNote {
                label: cell.label(),
                primary: cell.primary.clone(),
                margins: cell.margins.clone(),
            })
            .collect(),
        entries: Vec::new(),
        accept: campaign.accept.clone(),
        imported: None,
        looks: match (&campaign.sampling.until, before) {
            // The looks planned first stay valid, even if the plan's number of trials has changed since.
            (Until::Sure { cap, looks }, Some(note))
                if looks.is_empty() && !again && note.looks.last() == Some(&u64::from(*cap)) =>
            {
                note.looks.clone()
            }
            _ => Vec::new(),
        },
    }
}

/// Number of blocks in the campaign's previous note `before`. Zero if variants or cells differ, or if a fresh run has
/// begun since.
fn blocks_of(before: Option<&CampaignNote>, note: &CampaignNote) -> u32 {
    let before = before.filter(|before| {
        before.generation == note.generation
            && before.variants == note.variants
            && before.cells == note.cells
    });
    let units = before.iter().flat_map(|before| &before.entries);
    units.map(|entry| entry.unit + 1).max().unwrap_or(0)
}

/// Finds a record for each of these trials, preferring valid ones. Records invalidated by an accident do not count. If
/// results have noise or a fresh run was requested, only the campaign's own records count. All trials with the same
/// identity must be passed together, because each needs a record of its own.
fn found(
    store: &Store,
    note: &CampaignNote,
    has_noise: bool,
    trials: &[KnownTrial],
) -> Result<Vec<Option<Row>>, StoreError> {
    let mut keys: Vec<String> = trials.iter().map(|trial| trial.key.clone()).collect();
    keys.sort_unstable();
    keys.dedup();
    let id = note.id();
    let own = has_noise || note.fresh;
    let mut records: HashMap<String, Vec<Row>> = HashMap::new();
    for row in store.by_keys(&keys)? {
        if !row.accident && (!own || *row.campaign == *id) {
            records.entry(row.key.clone()).or_default().push(row);
        }
    }
    for rows in records.values_mut() {
        rows.sort_by_key(Row::is_valid);
    }
    let taken = |trial: &KnownTrial| records.get_mut(&trial.key).and_then(Vec::pop);
    Ok(trials.iter().map(taken).collect())
}

/// Takes about `most` trials from the front of `trials`. Trials with the same cell, block and pass stay together.
fn next_of(
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

/// Number of trials to run in parallel: as requested by the user, or else as the arena suggests for the largest trial.
fn side_by_side(arena: &dyn Arena, asked: Option<usize>, todo: &[Job], most: usize) -> usize {
    let jobs = asked.unwrap_or_else(|| {
        todo.iter()
            .max_by_key(|job| job.prepared.subject().memory.bytes())
            .map_or(1, |job| arena.side_by_side(&job.prepared))
    });
    jobs.clamp(1, most.max(1))
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of a campaign in progress.
pub(crate) struct Run<'a> {
    pub campaign: &'a Campaign,
    pub arena: &'a dyn Arena,
    pub store: &'a mut Store,
    pub options: &'a Options<'a>,
    pub watch: &'a dyn Watch,
    pub cells: Arc<[Cell]>,
    pub note: CampaignNote,
    pub tally: Tally,
    pub times: Times,
    /// Number of trials without a record, by cell.
    pub waiting: BTreeMap<String, u64>,
    /// Number of trials started so far; the next trial gets the next number.
    pub begun: usize,
    tried: FirstTrials,
    /// Subjects of the trials prepared by the checks before the run.
    subjects: HashMap<Place, Subject>,
    /// Cell, variant and pass of the trials without a record, among the trials examined so far.
    needed: HashSet<Place>,
    /// Number of blocks in the campaign's previous note.
    pub before: u32,
    /// Detects that the campaign cannot give results.
    pub futility: Futility,
}

impl<'a> Run<'a> {
    /// Starts a run, after checking everything that can be checked before a trial runs.
    pub fn begin(
        campaign: &'a Campaign,
        arena: &'a dyn Arena,
        store: &'a mut Store,
        options: &'a Options<'a>,
        watch: &'a dyn Watch,
    ) -> Result<Self, RunError> {
        check(campaign, arena)?;
        let tried = try_all(campaign, arena)?;
        let subjects = tried
            .iter()
            .map(|(place, prepared)| (*place, prepared.subject().clone()))
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
            cells,
            note,
            tally: Tally::default(),
            times: Times::default(),
            waiting: BTreeMap::new(),
            begun: 0,
            tried,
            subjects,
            needed: HashSet::new(),
            before,
            futility: Futility::of_search(),
        })
    }

    /// Runs the trials of some blocks that have no record. Returns false if stopped.
    pub fn blocks(&mut self, blocks: Range<u32>) -> Result<bool, RunError> {
        let (campaign, cells) = (self.campaign, Arc::clone(&self.cells));
        match self.options.shard {
            None => self.trials(|| campaign.trials(&cells, blocks.clone())),
            Some(shard) => {
                let line = Line::new(campaign, &cells, shard);
                self.trials(|| {
                    let trials = campaign.trials(&cells, blocks.clone());
                    trials.filter(|trial| line.has(trial))
                })
            }
        }
    }

    /// Runs the trials without a record among those returned by `of`, which is called repeatedly. Returns false if
    /// stopped.
    pub fn trials<I: Iterator<Item = PlannedTrial>>(
        &mut self,
        of: impl Fn() -> I,
    ) -> Result<bool, RunError> {
        let found = self.look(of())?;
        self.store.note(&self.note)?;
        self.tally.total += found.len();
        self.tally.found += found.iter().filter(|found| **found).count();
        let todo = of().zip(found);
        let mut todo = todo
            .filter_map(|(trial, found)| (!found).then_some(trial))
            .peekable();
        let mut is_first = true;
        if todo.peek().is_some() && self.is_futile() {
            return Ok(false);
        }
        loop {
            let most = self
                .options
                .elsewhere
                .map_or(AT_ONCE, |_| AT_ONCE_ELSEWHERE);
            let next = next_of(&mut todo, most)
                .into_iter()
                .map(|planned| ready(self.arena, planned, &mut self.tried))
                .collect::<Result<Vec<_>, _>>()?;
            if !self.execute(&next, std::mem::take(&mut is_first))? {
                self.is_futile();
                return Ok(false);
            }
            if todo.peek().is_none() {
                return Ok(true);
            }
        }
    }

    /// True if the campaign ends now because it cannot give results; if so, reports that as an event.
    fn is_futile(&self) -> bool {
        let futile = self.futility.verdict();
        if let Some(futile) = &futile {
            self.watch.event(&Event::Futile(futile));
        }
        futile.is_some()
    }

    /// Passes the record of a trial of the first seeds to `futility`. A record that cannot be read is ignored.
    fn saw(&mut self, planned: &PlannedTrial, row: &Row) {
        if planned.trial.pass == Pass::Timed && self.futility.asks(planned.block) {
            let record = if row.is_valid() {
                Record::default()
            } else {
                self.store
                    .load(&row.id)
                    .map_or_else(|_| Record::default(), RecordReader::into_record)
            };
            self.futility.saw(planned.block, &record);
        }
    }

    /// Adds trials to the campaign's note, and estimates how long those without a record take. Returns for each trial
    /// true if it has a record.
    fn look(&mut self, trials: impl Iterator<Item = PlannedTrial>) -> Result<Vec<bool>, RunError> {
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
                self.times.learn(self.arena, self.store, asked, &cell)?;
                if found.is_none() {
                    let planned = &trial.planned;
                    let place = (planned.cell, planned.variant, planned.trial.pass);
                    // Trials with the same cell, variant and pass start from the same guest.
                    if self.needed.insert(place)
                        && let Some(prepared) = self.tried.get(&place)
                    {
                        self.times.boots.need(self.arena, prepared);
                    }
                    *self.waiting.entry(cell).or_default() += 1;
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

    /// Identity of a trial. Derived from the prepared trial with the same cell, variant and pass, which differs only in
    /// its seed.
    fn known(&self, planned: PlannedTrial) -> Result<KnownTrial, RunError> {
        let place = (planned.cell, planned.variant, planned.trial.pass);
        let subject = match self.subjects.get(&place) {
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

    /// Number of timed trials of each cell among `todo`.
    fn open(&self, todo: &[Job]) -> Vec<AtomicUsize> {
        let mut open = vec![0; self.cells.len()];
        for job in todo {
            open[job.planned.cell] += usize::from(job.planned.trial.pass == Pass::Timed);
        }
        open.into_iter().map(AtomicUsize::new).collect()
    }

    /// Runs trials in parallel; those of one sampling unit run one after another in one thread. If `is_news`, first
    /// reports how many trials will run. Returns false if stopped.
    fn execute(&mut self, todo: &[Job], is_news: bool) -> Result<bool, RunError> {
        if let Some(elsewhere) = self.options.elsewhere
            && !todo.is_empty()
        {
            return batch::execute(self, elsewhere, todo, is_news);
        }
        let units: Vec<&[Job]> = todo
            .chunk_by(|a, b| {
                let (a, b) = (&a.planned, &b.planned);
                (a.cell, a.variant, a.block, a.trial.pass)
                    == (b.cell, b.variant, b.block, b.trial.pass)
            })
            .collect();
        let units = boots_first(self.arena, units);
        // A shard has only part of a cell's trials, so it does not settle cells one by one.
        let cells = self.options.shard.map_or(self.cells.len(), |_| 1);
        let settles = Settling::of(self.campaign, self.arena, cells);
        let (units, first) = settles.arranged(units);
        let jobs = side_by_side(self.arena, self.options.jobs, todo, units.len());
        self.tally.left = self.times.all(&self.waiting, jobs);
        if is_news {
            self.watch.event(&Event::Planned(self.tally));
        }
        let open = self.open(todo);
        let floor = Floor {
            arena: self.arena,
            options: self.options,
            watch: self.watch,
            campaign: self.note.id(),
            store: Mutex::new(self.store),
            ledger: Mutex::new(Ledger {
                tally: self.tally,
                times: std::mem::take(&mut self.times),
                waiting: std::mem::take(&mut self.waiting),
                futility: self.futility.clone(),
                failure: None,
            }),
            units: &units,
            first,
            later: OnceLock::new(),
            note: &self.note,
            settles,
            open,
            next: AtomicUsize::new(0),
            number: AtomicUsize::new(self.begun),
            running: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            jobs,
        };
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| floor.work());
            }
        });
        self.begun = floor.number.into_inner();
        let ledger = floor
            .ledger
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        self.tally = ledger.tally;
        self.times = ledger.times;
        self.waiting = ledger.waiting;
        self.futility = ledger.futility;
        match ledger.failure {
            Some(failure) => Err(failure),
            None => Ok(!floor.ended.into_inner()),
        }
    }
}

/// Moves the units that boot a guest to the front. Guests then boot in parallel, and no thread waits for another's
/// guest. If results have noise, the planned order is kept.
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
struct Floor<'a> {
    arena: &'a dyn Arena,
    options: &'a Options<'a>,
    watch: &'a dyn Watch,
    campaign: String,
    store: Mutex<&'a mut Store>,
    ledger: Mutex<Ledger>,
    /// All units of trials. The first `first` units run in this order; the order of the later ones is in `later`.
    units: &'a [&'a [Job]],
    /// Number of units that run in the order of `units`.
    first: usize,
    /// Indices of the later units, in the order in which they run. Set when all of the first units have started.
    later: OnceLock<Vec<usize>>,
    note: &'a CampaignNote,
    settles: Settling,
    /// Number of timed trials of each cell that have no record yet.
    open: Vec<AtomicUsize>,
    next: AtomicUsize,
    number: AtomicUsize,
    running: AtomicUsize,
    /// True if the run was stopped or has failed, so that the other threads end too.
    ended: AtomicBool,
    jobs: usize,
}

/// Counts and estimates shared by the threads that run trials.
struct Ledger {
    tally: Tally,
    times: Times,
    /// Number of trials without a record, by cell.
    waiting: BTreeMap<String, u64>,
    futility: Futility,
    failure: Option<RunError>,
}

impl Floor<'_> {
    fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed) || self.watch.is_stopped()
    }

    /// The unit at position `number` in the order of running; `None` if there are no more units.
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

    /// Body of a thread: runs one unit after another until none is left.
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
                        locked(&self.ledger).failure.get_or_insert(failure);
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
        let progress = Relay {
            floor: self,
            number,
        };
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
        let tally = {
            let mut ledger = locked(&self.ledger);
            let ledger = &mut *ledger;
            ledger.times.saw(&job.cell, record.wall.total);
            ledger.times.boots.had(self.arena, &job.prepared);
            if let Some(waiting) = ledger.waiting.get_mut(&job.cell) {
                *waiting -= 1;
            }
            if job.planned.trial.pass == Pass::Timed {
                ledger.futility.saw(job.planned.block, record);
                if ledger.futility.verdict().is_some() {
                    self.ended.store(true, Ordering::Relaxed);
                }
            }
            ledger.tally.ran += 1;
            ledger.tally.invalid += usize::from(!record.is_valid());
            let died = record.results.invalid.iter().any(Invalid::is_death);
            ledger.tally.died += usize::from(died);
            ledger.tally.left = ledger.times.all(&ledger.waiting, self.jobs);
            ledger.tally
        };
        let invalid = record.why_invalid();
        self.watch.event(&Event::Stored {
            number,
            trial: &job.planned,
            id: &record.id(),
            invalid: invalid.as_deref(),
            tally,
        });
        let cell = job.planned.cell;
        let is_last = job.planned.trial.pass == Pass::Timed
            && self.open[cell].fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last
            && self
                .open
                .iter()
                .any(|open| open.load(Ordering::Relaxed) > 0)
        {
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

/// Forwards a trial's progress to the watcher, and the watcher's request to stop to the trial.
struct Relay<'a, 'b> {
    floor: &'a Floor<'b>,
    number: usize,
}

impl Progress for Relay<'_, '_> {
    fn step(&self, step: Step) {
        self.floor.watch.event(&Event::Step {
            number: self.number,
            step,
        });
    }

    fn is_stopped(&self) -> bool {
        self.floor.is_ended()
    }
}
