//! Predicts how long trials take: from records of the same cell, from trials of this run, or else from the arena's
//! estimate, multiplied by the ratio of measured durations to estimates in earlier records. Without an estimate, the
//! duration stated in the campaign is used, or that of the scenario at other sizes.
//!
//! A plan may have a million cells, so the work per cell is small. All variants and passes are prepared once for each
//! shape (everything about a cell except its parameters). Every further cell of a shape that has no records is prepared
//! under the baseline only, which detects impossible parameters. [`run`](crate::run()) prepares all of them before its
//! first trial.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write;

use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::{
    ArenaKind, CpusSpec, FilesSpec, MemorySpec, NodesSpec, Pass, Subject, SwapSpec,
};
use pagetide_store::{CampaignNote, Filter, Row, Store, StoreError};
use serde::Serialize;

use crate::campaign::{Campaign, Until};
use crate::plan::{Cell, PASSES, shortened};
use crate::program::PROGRAM;
use crate::run::{RunError, check, note_for, prepare, prepared};
use pagetide_arena::{Arena, PreparedTrial};

/// Wall-clock time assumed for a trial without records and without an estimate.
pub const UNKNOWN_TRIAL: Nanos = Nanos::from_secs(20);
/// Maximum number of newest records whose durations are averaged, or compared with the arena's estimates.
const COMPARED_RECORDS: u32 = 31;
/// Maximum number of newest records of programs that are searched for the same command.
const COMPARED_PROGRAMS: u32 = 500;

/// Source of a predicted duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Measured: trials of the same cell, earlier ones or of this run.
    Measured,
    /// Estimated from the trial's sizes or from the duration stated in the campaign, corrected by the speed measured on
    /// this machine; or taken from trials of the same scenario at other sizes.
    Reckoned,
    /// Assumed to be [`UNKNOWN_TRIAL`], because there are neither records nor an estimate.
    Assumed,
}

/// Wall-clock time assumed for booting a guest whose kernel is not in the cache yet.
const UNKNOWN_BOOT: Nanos = Nanos::from_secs(15);

/// Forecast for a kernel that is built from source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelForecast {
    /// Index in the campaign of the variant with this kernel.
    #[serde(skip)]
    pub place: usize,
    /// Name of the variant with this kernel.
    pub variant: String,
    /// Description of source, configuration and patches, and whether the kernel is in the cache.
    pub what: String,
    /// True if the kernel is in the cache. If false, the variant's trials are estimated with another kernel, and none
    /// has a record.
    pub is_built: bool,
    /// Wall-clock time of the kernel's build; zero if it is in the cache.
    pub build: Nanos,
}

/// Trials that a campaign would run, and their predicted duration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Name of the campaign.
    pub name: String,
    /// Kind of arena that would run the campaign's trials.
    pub arena: ArenaKind,
    /// Names of the variants; the first is the baseline.
    pub variants: Vec<String>,
    /// Total number of trials.
    pub trials: u64,
    /// Number of trials that already have a record.
    pub found: u64,
    /// True if fewer trials may suffice, because sampling ends when every primary metric is decided.
    pub at_most: bool,
    /// Number of trials that run in parallel.
    pub side_by_side: usize,
    /// Number of guests that must be booted before their first trials.
    pub boots: u64,
    /// Forecasts for the kernels that are built from source.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelForecast>,
    /// Wall-clock time until all trials have records, including builds and boots.
    pub left: Nanos,
    /// Sources other than measurement from which durations were predicted.
    #[serde(skip)]
    pub guessed: BTreeSet<Basis>,
}

/// Forecast for one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellForecast {
    /// Short label of the cell, for display.
    pub label: String,
    /// Number of trials in the cell.
    pub trials: u64,
    /// Number of the cell's trials that already have a record.
    pub found: u64,
    /// Wall-clock time of one timed trial, as a mean over the variants.
    pub each: Nanos,
    /// Source of `each`.
    pub basis: Basis,
}

impl Forecast {
    /// Describes in two lines what would run, and adds one line for each kernel that is built from source.
    pub fn head(&self) -> String {
        let mut text = format!(
            "{}: {}{} trials in the {} arena, {} have records, {} side by side\nvariants: {}\n",
            self.name,
            self.most(),
            self.trials,
            self.arena,
            self.found,
            self.side_by_side,
            self.variants.join(", ")
        );
        for kernel in &self.kernels {
            let _ = writeln!(text, "kernel of {}: {}", kernel.variant, kernel.what);
        }
        text
    }

    /// Describes the duration in one line, and adds one line for each source of predictions other than measurement.
    pub fn end(&self) -> String {
        let boots = match self.boots {
            0 => String::new(),
            1 => ", the boot of one guest with them".to_owned(),
            n => format!(", the boots of {n} guests with them"),
        };
        let builds = match self
            .kernels
            .iter()
            .filter(|kernel| !kernel.is_built)
            .count()
        {
            0 => String::new(),
            1 => ", the build of one kernel with them".to_owned(),
            n => format!(", the builds of {n} kernels with them"),
        };
        let mut text = format!(
            "{}{} until the end{boots}{builds}\n",
            self.most(),
            self.left.about()
        );
        let unknown =
            format!("? unknown until its first trial here: {UNKNOWN_TRIAL} are assumed\n");
        for basis in &self.guessed {
            text.push_str(match basis {
                Basis::Measured => "",
                Basis::Reckoned => {
                    "~ has never run here as it is: reckoned from its sizes, or what is told of it, and the speed of this machine\n"
                }
                Basis::Assumed => &unknown,
            });
        }
        text
    }

    fn most(&self) -> &'static str {
        if self.at_most { "at most " } else { "" }
    }
}

impl CellForecast {
    /// Returns text with the wall-clock time of one trial, and a mark for the source of that time.
    pub fn each(&self) -> String {
        match self.basis {
            Basis::Measured => self.each.to_string(),
            Basis::Reckoned => format!("~{}", self.each),
            Basis::Assumed => format!("{}?", self.each),
        }
    }
}

/// Predicts what a campaign would run and how long that would take. Runs no trial. The arena prepares cells and
/// variants, so impossible trials are refused here as in a run. Each cell goes to `take` as soon as it is known, in the
/// campaign's order, so a plan of a million cells is not held in memory. `jobs` is the number of parallel trials,
/// `None` for the number that the arena suggests. If `fresh`, earlier records do not count.
pub fn forecast(
    campaign: &Campaign,
    arena: &dyn Arena,
    store: &Store,
    jobs: Option<usize>,
    fresh: bool,
    kernels: &[KernelForecast],
    take: &mut dyn FnMut(CellForecast),
) -> Result<Forecast, RunError> {
    check(campaign, arena)?;
    let before = store.latest_of(&campaign.name)?;
    let mut looked = Forecaster {
        campaign,
        arena,
        store,
        note: note_for(campaign, &[], before.as_ref(), fresh),
        known: store.cell_hashes()?,
        seen: HashSet::new(),
        shapes: HashSet::new(),
        speed: Speed::default(),
        boots: Boots::default(),
        unbuilt: kernels
            .iter()
            .filter(|kernel| !kernel.is_built)
            .map(|kernel| kernel.place)
            .collect(),
        largest: None,
    };
    let (mut trials, mut found, mut sum) = (0_u64, 0_u64, Nanos(0));
    let mut guessed = BTreeSet::new();
    for cell in campaign.cells() {
        let (cell, left) = looked.cell(&cell)?;
        trials = trials.saturating_add(cell.trials);
        found = found.saturating_add(cell.found);
        sum.0 = sum.0.saturating_add(left.0);
        guessed.insert(cell.basis);
        take(cell);
    }
    let todo = usize::try_from(trials - found).unwrap_or(usize::MAX);
    let jobs = jobs
        .unwrap_or_else(|| looked.largest.as_ref().map_or(1, |s| arena.side_by_side(s)))
        .clamp(1, todo.max(1));
    guessed.remove(&Basis::Measured);
    Ok(Forecast {
        guessed,
        name: campaign.name.clone(),
        arena: campaign.arena,
        variants: campaign.variants.iter().map(|v| v.name.clone()).collect(),
        trials,
        found,
        at_most: matches!(campaign.sampling.until, Until::Sure { .. }),
        side_by_side: jobs,
        boots: looked.boots.count(),
        kernels: kernels.to_vec(),
        left: Nanos(
            (sum.0 / u64::try_from(jobs).unwrap_or(1))
                .saturating_add(looked.boots.time(jobs).0)
                // Kernels are built one at a time, each with all processors.
                .saturating_add(kernels.iter().map(|kernel| kernel.build.0).sum()),
        ),
    })
}

/// State of a forecast, which examines one cell after another.
struct Forecaster<'a> {
    campaign: &'a Campaign,
    arena: &'a dyn Arena,
    store: &'a Store,
    note: CampaignNote,
    /// Hashes of the cells that have records in the store.
    known: HashSet<String>,
    /// Shortened hashes of the cells examined so far.
    seen: HashSet<u64>,
    /// Shapes (everything about a cell except its parameters) that were prepared under all variants.
    shapes: HashSet<Shape>,
    speed: Speed,
    boots: Boots,
    /// Indices of the variants whose kernels are not built yet.
    unbuilt: HashSet<usize>,
    /// The trial with the largest memory among those without a record.
    largest: Option<PreparedTrial>,
}

/// Shape of a cell: everything about a cell except its parameters.
type Shape = (
    String,
    bool,
    (MemorySpec, NodesSpec, Option<Bytes>),
    SwapSpec,
    Option<Bytes>,
    FilesSpec,
    CpusSpec,
);

fn shape(cell: &Cell) -> Shape {
    (
        cell.scenario.clone(),
        cell.as_written,
        (cell.memory, cell.nodes.clone(), cell.limit),
        cell.swap,
        cell.swap_size,
        cell.files_on,
        cell.cpus,
    )
}

impl Forecaster<'_> {
    /// Returns the forecast of a cell, and the total wall-clock time of the cell's trials without records.
    fn cell(&mut self, cell: &Cell) -> Result<(CellForecast, Nanos), RunError> {
        let mut forecast = CellForecast {
            label: cell.label(),
            trials: 0,
            found: 0,
            each: UNKNOWN_TRIAL,
            basis: Basis::Assumed,
        };
        let trial = self.campaign.trial(cell, 0, (0, 0), Pass::Timed);
        let baseline = prepared(self.arena, &trial)?;
        forecast.label = baseline.subject().with_swap_label(&forecast.label);
        let hash = baseline.subject().cell();
        if !self.seen.insert(shortened(&hash)) {
            return Err(RunError::SameCell {
                name: self.campaign.name.clone(),
                cell: cell.label(),
            });
        }
        let is_new = self.shapes.insert(shape(cell));
        let mut left = Nanos(0);
        for pass in PASSES {
            let trials = self.campaign.trials_of_cell(pass);
            if trials == 0 {
                continue;
            }
            let subject = Subject {
                pass,
                trace_ring: self.campaign.ring_of(pass),
                ..baseline.subject().clone()
            };
            let mut rows = self.rows(&subject)?;
            // Variants with their own kind of swap have records in other cells.
            let compares_swap = self.campaign.compares_swap();
            let (found, each, basis) = if is_new || compares_swap || !rows.is_empty() {
                let all = prepare(self.campaign, self.arena, cell, pass)?;
                if compares_swap {
                    rows = self.rows_of_all(&all)?;
                }
                let found = self.found(&all, pass, &rows);
                let (each, basis) = self.of_variants(&all, &rows)?;
                if found < trials {
                    for (place, prepared) in all.iter().enumerate() {
                        let unbuilt = self.unbuilt.contains(&place).then_some(place);
                        self.boots.need_of(self.arena, prepared, unbuilt);
                    }
                    self.remember(all);
                }
                (found, each, basis)
            } else {
                let (each, basis) =
                    (self.speed).of(self.arena, self.store, (&subject, cell.takes), &rows)?;
                (0, each, basis)
            };
            if pass == Pass::Timed {
                (forecast.each, forecast.basis) = (each, basis);
            }
            forecast.trials += trials;
            forecast.found += found;
            left.0 = left.0.saturating_add(each.0.saturating_mul(trials - found));
        }
        Ok((forecast, left))
    }

    /// Returns the stored records of the cell to which `subject` belongs.
    fn rows(&self, subject: &Subject) -> Result<Vec<Row>, StoreError> {
        if self.known.is_empty() {
            return Ok(Vec::new());
        }
        let hash = subject.cell();
        if !self.known.contains(&hash) {
            return Ok(Vec::new());
        }
        records_of(self.store, hash)
    }

    /// Returns the stored records of all cells to which the trials in `all` belong.
    fn rows_of_all(&self, all: &[PreparedTrial]) -> Result<Vec<Row>, StoreError> {
        let mut cells: Vec<String> = all.iter().map(|one| one.subject().cell()).collect();
        cells.sort_unstable();
        cells.dedup();
        cells.retain(|cell| self.known.contains(cell));
        let rows = cells.into_iter().map(|cell| records_of(self.store, cell));
        Ok(rows.collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Returns the wall-clock time of one trial, as a mean over variants, and the source of the last variant's time.
    /// Each variant is estimated separately, because speeds may differ.
    fn of_variants(
        &mut self,
        all: &[PreparedTrial],
        rows: &[Row],
    ) -> Result<(Nanos, Basis), StoreError> {
        let (mut sum, mut basis) = (0_u64, Basis::Assumed);
        for prepared in all {
            let asked = (prepared.subject(), prepared.trial().takes);
            let (time, how) = self.speed.of(self.arena, self.store, asked, rows)?;
            sum = sum.saturating_add(time.0);
            basis = how;
        }
        Ok((Nanos(sum / all.len().max(1) as u64), basis))
    }

    /// Returns the number of a cell's trials that have a record. Searches the cell's records, which are few even if
    /// there are many seeds. Variants whose kernels are not built count as without records.
    fn found(&self, all: &[PreparedTrial], pass: Pass, rows: &[Row]) -> u64 {
        let id = self.note.id();
        let own = self.arena.has_noise() || self.note.fresh;
        let usable = |row: &&Row| !row.accident && (!own || *row.campaign == *id);
        let mut records: HashMap<&str, u64> = HashMap::new();
        for row in rows.iter().filter(usable) {
            *records.entry(&row.key).or_default() += 1;
        }
        let of_variant = self.campaign.trials_of_cell(pass) / all.len().max(1) as u64;
        let is_planned = |seed: u64| match pass {
            Pass::Timed => seed.wrapping_sub(self.campaign.sampling.first_seed) < of_variant,
            Pass::Observed | Pass::Profiled => (0..u32::try_from(of_variant).unwrap_or(u32::MAX))
                .any(|block| self.campaign.seed_of(block, 0) == seed),
        };
        let seeds: HashSet<u64> = rows.iter().filter(usable).map(|row| row.seed).collect();
        let mut found = 0;
        for seed in seeds.into_iter().filter(|seed| is_planned(*seed)) {
            let is_built = |(place, _): &(usize, &PreparedTrial)| !self.unbuilt.contains(place);
            for (_, prepared) in all.iter().enumerate().filter(is_built) {
                let subject = Subject {
                    seed,
                    ..prepared.subject().clone()
                };
                if let Some(left) = records.get_mut(subject.key().as_str())
                    && *left > 0
                {
                    *left -= 1;
                    found += 1;
                }
            }
        }
        found
    }

    fn remember(&mut self, all: Vec<PreparedTrial>) {
        let memory = |prepared: &PreparedTrial| prepared.subject().memory.bytes();
        for prepared in all {
            let most = self.largest.as_ref().map(memory);
            if most.is_none_or(|most| most < memory(&prepared)) {
                self.largest = Some(prepared);
            }
        }
    }
}

/// Returns the records of a cell, newest first.
fn records_of(store: &Store, cell: String) -> Result<Vec<Row>, StoreError> {
    store.select(&Filter {
        cell: Some(cell),
        ..Filter::default()
    })
}

/// Returns the mean wall-clock time of a cell's newest valid records with the same swap: those of the same variant if
/// there are any, else of all variants. `None` if there are no valid records.
fn measured(subject: &Subject, rows: &[Row]) -> Option<Nanos> {
    let mean = |rows: &mut dyn Iterator<Item = &Row>| {
        let (mut sum, mut count) = (0_u64, 0_u64);
        for row in rows.take(COMPARED_RECORDS as usize) {
            sum = sum.saturating_add(row.wall.0);
            count += 1;
        }
        sum.checked_div(count).map(Nanos)
    };
    let usable = |row: &&Row| {
        let own = &row.cell.subject;
        let is_swap = own.swap == subject.swap && own.swap_size == subject.swap_size;
        row.is_valid() && row.wall.0 > 0 && is_swap
    };
    let same = |row: &&Row| {
        let (ours, theirs) = (&subject.variant, &row.variant);
        ours.kernel.digest == theirs.kernel.digest
            && ours.boot == theirs.boot
            && ours.settings == theirs.settings
    };
    mean(&mut rows.iter().filter(usable).filter(same))
        .or_else(|| mean(&mut rows.iter().filter(usable)))
}

/// What earlier records say of the duration of trials: the ratio of measured durations to the arena's estimates, and
/// typical durations where the arena has no estimate.
#[derive(Clone, Debug, Default)]
struct Speed {
    /// Ratio of wall-clock time to estimate, by scenario; the empty name stands for all scenarios. `None` if there are
    /// no usable records.
    factors: HashMap<String, Option<f64>>,
    /// Typical wall-clock time of a scenario for which the arena has no estimate, by scenario and, for programs,
    /// command. `None` if there are no usable records.
    typical: HashMap<(String, Option<String>), Option<Nanos>>,
}

impl Speed {
    /// Returns the wall-clock time of one trial and the source of that time, given the records of the trial's cell and
    /// any duration stated in the campaign.
    fn of(
        &mut self,
        arena: &dyn Arena,
        store: &Store,
        (subject, takes): (&Subject, Option<Nanos>),
        rows: &[Row],
    ) -> Result<(Nanos, Basis), StoreError> {
        if let Some(time) = measured(subject, rows) {
            return Ok((time, Basis::Measured));
        }
        if let Some(estimate) = arena.estimate(subject) {
            let factor = match self.factor(arena, store, &subject.scenario)? {
                Some(factor) => factor,
                None => self.factor(arena, store, "")?.unwrap_or(1.0),
            };
            return Ok((scaled(estimate, factor), Basis::Reckoned));
        }
        if let Some(takes) = takes {
            return Ok((arena.here(takes), Basis::Reckoned));
        }
        Ok(match self.typical(store, subject)? {
            Some(time) => (time, Basis::Reckoned),
            None => (UNKNOWN_TRIAL, Basis::Assumed),
        })
    }

    /// Returns the median wall-clock time of the newest valid records of the same scenario or, for programs, the same
    /// command, at any size; `None` if there are none.
    fn typical(&mut self, store: &Store, subject: &Subject) -> Result<Option<Nanos>, StoreError> {
        let command = |subject: &Subject| subject.params.get("command").cloned();
        // Every program has a command. Other scenarios may have a parameter called `command`, which is ignored here.
        let own = command(subject).filter(|_| subject.scenario == PROGRAM);
        let key = (subject.scenario.clone(), own.clone());
        if let Some(known) = self.typical.get(&key) {
            return Ok(*known);
        }
        let time = if own.is_none() {
            store.typical_wall(None, &subject.scenario)?
        } else {
            let rows = store.select(&Filter {
                scenario: Some(subject.scenario.clone()),
                arena: Some(subject.arena.kind),
                valid: Some(true),
                limit: Some(COMPARED_PROGRAMS),
                ..Filter::default()
            })?;
            let same = |row: &&Row| row.wall.0 > 0 && command(&row.subject()) == own;
            let mut times: Vec<Nanos> = rows.iter().filter(same).map(|row| row.wall).collect();
            times.sort_unstable();
            times.get(times.len() / 2).copied()
        };
        self.typical.insert(key, time);
        Ok(time)
    }

    /// Returns the median of wall-clock time / estimate over the newest valid records of a scenario, or of all
    /// scenarios.
    fn factor(
        &mut self,
        arena: &dyn Arena,
        store: &Store,
        scenario: &str,
    ) -> Result<Option<f64>, StoreError> {
        if let Some(known) = self.factors.get(scenario) {
            return Ok(*known);
        }
        let rows = store.select(&Filter {
            scenario: (!scenario.is_empty()).then(|| scenario.to_owned()),
            arena: Some(arena.kind()),
            valid: Some(true),
            limit: Some(COMPARED_RECORDS),
            ..Filter::default()
        })?;
        let mut factors: Vec<f64> = rows
            .iter()
            .filter(|row| row.wall.0 > 0)
            .filter_map(|row| {
                let estimate = arena.estimate(&row.subject())?;
                (estimate.0 > 0).then(|| row.wall.secs() / estimate.secs())
            })
            .collect();
        factors.sort_by(f64::total_cmp);
        let factor = factors.get(factors.len() / 2).copied();
        self.factors.insert(scenario.to_owned(), factor);
        Ok(factor)
    }
}

fn scaled(time: Nanos, factor: f64) -> Nanos {
    let time = std::time::Duration::try_from_secs_f64(time.secs() * factor).unwrap_or_default();
    Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// Guests that are not booted yet, with the wall-clock time of each boot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Boots(BTreeMap<String, Nanos>);

impl Boots {
    /// Adds the guest of a trial that will run, unless the guest is already booted.
    pub fn need(&mut self, arena: &dyn Arena, prepared: &PreparedTrial) {
        self.need_of(arena, prepared, None);
    }

    /// Adds the guest of a trial that will run, unless the guest is already booted. `unbuilt` is the index of the
    /// variant if its kernel is not built yet, so that the guest cannot exist.
    fn need_of(&mut self, arena: &dyn Arena, prepared: &PreparedTrial, unbuilt: Option<usize>) {
        let Some(guest) = arena.guest(prepared) else {
            return;
        };
        match (guest.boot, unbuilt) {
            (Nanos(0), None) => {}
            (boot, None) => {
                self.0.insert(guest.key, boot);
            }
            (boot, Some(place)) => {
                let boot = if boot.0 > 0 { boot } else { UNKNOWN_BOOT };
                self.0.insert(format!("{place} {}", guest.key), boot);
            }
        }
    }

    /// Removes the guest of a trial that has run, because the guest is booted now.
    pub fn had(&mut self, arena: &dyn Arena, prepared: &PreparedTrial) {
        if !self.0.is_empty()
            && let Some(guest) = arena.guest(prepared)
        {
            self.0.remove(&guest.key);
        }
    }

    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the wall-clock time of all boots with `jobs` trials in parallel. A guest is booted once, while other
    /// trials that need it wait.
    fn time(&self, jobs: usize) -> Nanos {
        let side_by_side = u64::try_from(jobs).unwrap_or(1).min(self.count()).max(1);
        let sum: u64 = self.0.values().map(|boot| boot.0).sum();
        Nanos(sum / side_by_side)
    }
}

/// Predicted durations of trials by cell, and remaining boots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    by_cell: HashMap<String, Estimate>,
    speed: Speed,
    pub boots: Boots,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    each: Nanos,
    basis: Basis,
    /// Number of trials of this run from which `each` was computed.
    seen: u64,
}

impl Times {
    /// Computes the prediction for the cell with this hash, if there is none yet, from the store's records and the
    /// arena's estimate.
    pub fn learn(
        &mut self,
        arena: &dyn Arena,
        store: &Store,
        asked: (&Subject, Option<Nanos>),
        cell: &str,
    ) -> Result<(), StoreError> {
        if self.by_cell.contains_key(cell) {
            return Ok(());
        }
        let rows = records_of(store, cell.to_owned())?;
        let (each, basis) = self.speed.of(arena, store, asked, &rows)?;
        let estimate = Estimate {
            each,
            basis,
            seen: 0,
        };
        self.by_cell.insert(cell.to_owned(), estimate);
        Ok(())
    }

    /// Adds the measured duration `wall` of a trial of this run. The first one replaces the prediction, later ones are
    /// averaged with it.
    pub fn saw(&mut self, cell: &str, wall: Nanos) {
        if let Some(estimate) = self.by_cell.get_mut(cell) {
            let sum = estimate
                .each
                .0
                .saturating_mul(estimate.seen)
                .saturating_add(wall.0);
            estimate.seen += 1;
            estimate.each = Nanos(sum / estimate.seen);
            estimate.basis = Basis::Measured;
        }
    }

    /// Returns the wall-clock time of one trial of a cell, and the source of that time.
    pub fn each(&self, cell: &str) -> (Nanos, Basis) {
        self.by_cell
            .get(cell)
            .map_or((UNKNOWN_TRIAL, Basis::Assumed), |e| (e.each, e.basis))
    }

    /// Returns the wall-clock time of trials, including boots, with `jobs` trials in parallel. `cells` has the number
    /// of trials of each cell.
    pub fn all(&self, cells: &BTreeMap<String, u64>, jobs: usize) -> Nanos {
        let sum = cells.iter().fold(0_u64, |sum, (cell, count)| {
            sum.saturating_add(self.each(cell).0.0.saturating_mul(*count))
        });
        let trials = sum / u64::try_from(jobs.max(1)).unwrap_or(1);
        Nanos(trials.saturating_add(self.boots.time(jobs).0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_guest_is_waited_for_by_all_and_several_boot_side_by_side() {
        let boots = |guests: u64| {
            let times = (0..guests).map(|n| (n.to_string(), Nanos::from_secs(10)));
            Boots(times.collect())
        };
        assert_eq!(boots(0).time(2), Nanos(0));
        assert_eq!(boots(1).time(2), Nanos::from_secs(10));
        assert_eq!(boots(2).time(2), Nanos::from_secs(10));
        assert_eq!(boots(6).time(2), Nanos::from_secs(30));
        assert_eq!(boots(6).time(1), Nanos::from_secs(60));
    }
}
