//! Builds each side's [`Account`] (its measurements) from records: from counters of the timed trials and from traces of
//! the observed passes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use pagetide_probe::block::Direction;
use pagetide_probe::meaning::{Part, TaskTime};
use pagetide_record::Record;
use pagetide_store::{Store, short};
use serde::Serialize;

use super::account::{Account, Amounts, CpuHolder, ObservedPass, PassAccount, SiteTime, together};
use super::claims::{Claim, claims};
use super::effects::KERNEL;
use super::explanation::Explanation;
use crate::comparison::{Comparison, Side, TrialRef};
use crate::error::CompareError;
use crate::observation::{Observation, ObservationError, observe, partner, vmstat};
use crate::profiled::{Accountant, SeedAccount};

/// Maximum number of pairs of observed passes that are read. More pairs hardly change a mean, and reading a trace of
/// millions of events takes time.
const MAX_PAIRS: usize = 10;

/// Explanation of one column of one cell, in comparison with the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellExplanation {
    /// Index of the cell in [`Comparison::cells`].
    pub cell: usize,
    /// Index of the column in [`Comparison::columns`].
    pub column: usize,
    /// Explanation of the difference in time.
    pub explanation: Explanation,
    /// Exact account of the difference in the first seed that is profiled on both sides; `None` if there is no such
    /// seed, or if the explanation comes from [`explain`], which reads no profiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<SeedAccount>,
    /// Reasons why the explanation is based on less data than possible, one sentence each.
    pub notes: Vec<String>,
}

/// Explains every column in every cell that has trials both in the column and in the baseline, and adds the exact
/// accounts from the profiled passes.
pub fn explain_with_accounts(
    store: &Store,
    comparison: &Comparison,
) -> Result<Vec<CellExplanation>, CompareError> {
    let mut all = explain(store, comparison)?;
    for of_cell in all.chunk_by_mut(|a, b| a.cell == b.cell) {
        let sides = &comparison.cells[of_cell[0].cell].sides;
        let mut accountant = Accountant::new(store, &sides[0]);
        for explained in of_cell {
            let side = &sides[explained.column];
            explained.account = accountant.account(side, &mut explained.notes);
        }
    }
    Ok(all)
}

/// Explains every column in every cell that has trials both in the column and in the baseline. Reads no profiled
/// passes; [`explain_with_accounts`] does.
pub fn explain(
    store: &Store,
    comparison: &Comparison,
) -> Result<Vec<CellExplanation>, CompareError> {
    let mut gatherer = Gatherer {
        store,
        observed: HashMap::new(),
    };
    let mut all = Vec::new();
    for (cell, group) in comparison.cells.iter().enumerate() {
        let Some((baseline, others)) = group.sides.split_first() else {
            continue;
        };
        for (column, other) in (1..).zip(others) {
            if baseline.trials.is_empty() || other.trials.is_empty() {
                continue;
            }
            let (explanation, notes) = gatherer.pair(baseline, other, &claims(group, column))?;
            all.push(CellExplanation {
                cell,
                column,
                explanation,
                account: None,
                notes,
            });
        }
    }
    Ok(all)
}

/// Reads observed records from the store, each record only once.
struct Gatherer<'a> {
    store: &'a Store,
    observed: HashMap<String, PassAccount>,
}

impl Gatherer<'_> {
    fn pair(
        &mut self,
        baseline: &Side,
        other: &Side,
        claims: &[Claim],
    ) -> Result<(Explanation, Vec<String>), CompareError> {
        let sides = common(baseline, other);
        let mut a = self.account(&sides[0])?;
        let mut b = self.account(&sides[1])?;
        if identical(&sides) {
            return Ok((Explanation::identical(&a, &b), Vec::new()));
        }
        if a.singles.len() != b.singles.len() {
            a.singles.clear();
            b.singles.clear();
        }
        let mut notes = Vec::new();
        let passes = [
            self.passes(&sides[0], &mut notes)?,
            self.passes(&sides[1], &mut notes)?,
        ];
        for pair in paired(passes) {
            if a.passes.len() == MAX_PAIRS {
                break;
            }
            if let Some([x, y]) = self.observations(pair, &mut notes) {
                a.passes.push(x);
                b.passes.push(y);
            }
        }
        // Repetitions of a seed share one observed pass.
        let mut told = HashSet::new();
        notes.retain(|note| told.insert(note.clone()));
        Ok((Explanation::of(&a, &b, claims), notes))
    }

    /// Reads the measurements of a pair of observed passes. If they cannot be compared, adds a note and returns `None`.
    fn observations(
        &mut self,
        pair: [(u64, String); 2],
        notes: &mut Vec<String>,
    ) -> Option<[ObservedPass; 2]> {
        let [a, b] = pair.map(|(seed, record)| {
            let observed = self.observation(&record, notes)?;
            Some(ObservedPass {
                record,
                seed,
                observed,
            })
        });
        let (a, b) = (a?, b?);
        if a.observed.attempts != b.observed.attempts {
            notes.push(format!(
                "the observed records {} and {} do not tell of the same time, for different versions made them: run both anew",
                short(&a.record),
                short(&b.record)
            ));
            return None;
        }
        Some([a, b])
    }

    /// Returns the seeds that have an observed pass, each with the ID of the pass's record. Adds a note for each pass
    /// that cannot be used.
    fn passes(
        &self,
        trials: &[&TrialRef],
        notes: &mut Vec<String>,
    ) -> Result<Vec<(u64, String)>, CompareError> {
        let mut found = Vec::new();
        for trial in trials {
            let row = self.store.find(&trial.record)?;
            match partner(self.store, &row)? {
                Some(observed) if observed.is_valid() => found.push((trial.seed, observed.id)),
                Some(observed) => notes.push(format!(
                    "observed record {} (seed {}) was left out: {}",
                    short(&observed.id),
                    trial.seed,
                    observed.invalid.as_deref().unwrap_or_default()
                )),
                None => {}
            }
        }
        Ok(found)
    }

    /// Reads the measurements of an observed record. If the record cannot be used, adds a note and returns `None`.
    fn observation(&mut self, id: &str, notes: &mut Vec<String>) -> Option<PassAccount> {
        if let Some(known) = self.observed.get(id) {
            return Some(known.clone());
        }
        match self.read(id) {
            Ok(observed) if observed.times.is_empty() => {
                notes.push(format!(
                    "observed record {} tells of no task's time",
                    short(id)
                ));
                None
            }
            Ok(observed) => {
                self.observed.insert(id.to_owned(), observed.clone());
                Some(observed)
            }
            Err(why) => {
                notes.push(format!("observed record {} was left out: {why}", short(id)));
                None
            }
        }
    }

    fn read(&self, id: &str) -> Result<PassAccount, ObservationError> {
        let reader = self.store.load(id)?;
        let observation = observe(&reader, None)?;
        let losses = &observation.table.losses;
        if losses.any() {
            let events = losses.events + losses.gaps_unknown + losses.damaged;
            return Err(ObservationError::LostEvents { events });
        }
        Ok(observed(&observation, reader.record()))
    }

    fn account(&self, trials: &[&TrialRef]) -> Result<Account, CompareError> {
        let mut account = Account::default();
        let share = 1.0 / trials.len().max(1) as f64;
        let mut levels: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for trial in trials {
            let single = single(&self.store.load(&trial.record)?.into_record());
            account.trials += 1;
            account.elapsed += single.elapsed * share;
            for (name, growth) in &single.growth {
                *account.growth.entry(name.clone()).or_default() += growth * share;
            }
            for (name, level) in &single.levels {
                levels.entry(name.clone()).or_default().push(*level);
            }
            if account.trials == 1 {
                account.settings.clone_from(&single.settings);
            }
            account.singles.push(single);
        }
        account.levels = levels
            .into_iter()
            .map(|(name, all)| (name, all.iter().sum::<f64>() / all.len() as f64))
            .collect();
        Ok(account)
    }
}

/// Returns the measurements of one timed trial.
fn single(record: &Record) -> Account {
    Account {
        trials: 1,
        elapsed: record.results.elapsed.0 as f64,
        growth: growth(record),
        levels: levels_of(record),
        settings: settings(record),
        ..Account::default()
    }
}

/// Pairs observed passes by seed; if there is no common seed, by index.
fn paired([a, b]: [Vec<(u64, String)>; 2]) -> Vec<[(u64, String); 2]> {
    let of_one_seed: Vec<_> = a
        .iter()
        .filter_map(|own| {
            let other = b.iter().find(|(seed, _)| *seed == own.0)?;
            Some([own.clone(), other.clone()])
        })
        .collect();
    if of_one_seed.is_empty() {
        a.into_iter().zip(b).map(<[_; 2]>::from).collect()
    } else {
        of_one_seed
    }
}

/// Returns the trials of both sides that are compared: those with common seeds, or all trials if there is no common
/// seed.
fn common<'a>(a: &'a Side, b: &'a Side) -> [Vec<&'a TrialRef>; 2] {
    let seeds = |side: &Side| side.trials.iter().map(|trial| trial.seed).collect();
    let (of_a, of_b): (BTreeSet<u64>, BTreeSet<u64>) = (seeds(a), seeds(b));
    let shared: BTreeSet<u64> = of_a.intersection(&of_b).copied().collect();
    [a, b].map(|side| {
        side.trials
            .iter()
            .filter(|trial| shared.is_empty() || shared.contains(&trial.seed))
            .collect()
    })
}

/// True if every trial has a trial with the same seed and the same results on the other side.
fn identical(sides: &[Vec<&TrialRef>; 2]) -> bool {
    let digests = |trials: &[&TrialRef]| -> BTreeSet<(u64, String)> {
        trials
            .iter()
            .map(|trial| (trial.seed, trial.digest.clone()))
            .collect()
    };
    digests(&sides[0]) == digests(&sides[1])
}

fn growth(record: &Record) -> Amounts {
    vmstat(record)
        .map(|delta| {
            delta
                .iter()
                .map(|(name, growth)| (name.to_owned(), growth as f64))
                .collect()
        })
        .unwrap_or_default()
}

fn levels_of(record: &Record) -> Amounts {
    let metrics = record
        .results
        .metrics
        .iter()
        .filter_map(|metric| Some((metric.name.clone(), metric.value.number()?)));
    let free = record.results.facts.get("free-at-start");
    let free = free.and_then(|text| Some(("free-at-start".to_owned(), text.parse().ok()?)));
    metrics.chain(free).collect()
}

fn settings(record: &Record) -> BTreeMap<String, String> {
    let mut settings = record.results.settings.clone();
    // If a setting was not read back from the kernel, its requested value is used.
    for (name, value) in &record.subject.variant.settings {
        settings
            .entry(name.clone())
            .or_insert_with(|| value.clone());
    }
    settings.insert("swap".to_owned(), record.subject.swap_label());
    let kernel = &record.subject.variant.kernel;
    let kernel = format!("{} {} {}", kernel.release, kernel.version, kernel.digest);
    settings.insert(KERNEL.to_owned(), kernel);
    settings
}

fn observed(observation: &Observation, record: &Record) -> PassAccount {
    let tasks = match &observation.attempts {
        Some(attempts) => std::slice::from_ref(attempts),
        None => observation.tasks.as_slice(),
    };
    let mut growth = growth(record);
    if let Some(attempts) = &observation.attempts {
        only_within(&mut growth, attempts);
    }
    let mut times = BTreeMap::new();
    for (part, time) in tasks.iter().flat_map(|task| task.parts.iter()) {
        *times.entry(part).or_insert(0.0) += time.0 as f64;
    }
    let (mut waits, mut longest) = (BTreeMap::new(), BTreeMap::new());
    for (part, of_task) in tasks.iter().flat_map(|task| &task.waits) {
        *waits.entry(*part).or_insert(0.0) += of_task.count as f64;
        let longest: &mut f64 = longest.entry(*part).or_default();
        *longest = longest.max(of_task.longest.0 as f64);
    }
    let slept: Vec<SiteTime> = tasks
        .iter()
        .flat_map(|task| &task.slept)
        .filter_map(|slept| {
            Some(SiteTime {
                part: slept.part,
                site: slept.site.as_ref()?.to_string(),
                count: slept.count as f64,
                time: slept.time.0 as f64,
            })
        })
        .collect();
    let (queue, others) = queues(tasks);
    let left_out = queue.get(&None).copied().unwrap_or(0.0);
    if let Some(time) = times.get_mut(&Part::RunQueue) {
        *time = (*time - left_out).max(0.0);
    }
    let devices = || observation.blocks.devices.iter().map(|device| &device.sums);
    PassAccount {
        attempts: observation.attempts.is_some(),
        times,
        waits,
        longest,
        sites: together(slept.iter(), 1.0),
        queue: queue
            .into_iter()
            .filter_map(|(ahead, time)| Some((ahead?, time)))
            .collect(),
        others,
        growth,
        levels: levels_of(record),
        rows: observation
            .table
            .rows
            .iter()
            .filter_map(|row| Some((row.id, row.value.number()?)))
            .collect(),
        read: mean(devices().map(|sums| &sums.reads)),
        write: mean(devices().map(|sums| &sums.writes)),
    }
}

/// Replaces counters of the whole machine by those of one task, if known, because the times are also those of this
/// task. Counters of reads are removed, because it is unknown which task caused the reads.
fn only_within(growth: &mut Amounts, attempts: &TaskTime) {
    let machine = [
        "pgpgin",
        "pswpin",
        "pgmajfault",
        "swap_ra",
        "pgsteal_",
        "pgscan_",
    ];
    growth.retain(|name, _| !machine.iter().any(|whole| name.starts_with(whole)));
    for (name, value) in [
        ("pgfault", attempts.faults),
        ("pgscan_direct", attempts.scanned),
        ("pgsteal_direct", attempts.reclaimed),
        ("pgsteal_anon", attempts.reclaimed),
    ] {
        growth.insert(name.to_owned(), value as f64);
    }
}

/// Returns the mean time of requests from issue to completion, in nanoseconds; `None` if there were no requests.
fn mean<'a>(requests: impl Iterator<Item = &'a Direction>) -> Option<f64> {
    let (time, count) = requests.fold((0, 0), |(time, count), direction| {
        (
            time + direction.latency.sum,
            count + direction.latency.count,
        )
    });
    (count > 0).then(|| time as f64 / count as f64)
}

/// Name of the process in the guest that records the trace.
const OBSERVER: &str = "pagetide-watch";

/// Returns the time waiting for a CPU by the kind of task that ran on it, in nanoseconds. The key `None` has time that
/// does not count: waiting for the tracing process, and for other tasks of the workload, whose running time is counted
/// anyway. The second value is the time of [`CpuHolder::Other`] by task name.
fn queues(tasks: &[TaskTime]) -> (BTreeMap<Option<CpuHolder>, f64>, Amounts) {
    let own: BTreeSet<u32> = tasks.iter().map(|task| task.pid).collect();
    let (mut all, mut others) = (BTreeMap::new(), Amounts::new());
    for queued in tasks.iter().flat_map(|task| &task.behind) {
        let time = queued.time.0 as f64;
        let ahead = match queued.name.as_str() {
            _ if own.contains(&queued.pid) => None,
            OBSERVER => None,
            name if name.starts_with("kswapd") => Some(CpuHolder::Kswapd),
            name if name.starts_with("kcompactd") => Some(CpuHolder::Kcompactd),
            name => {
                // Workers are named after their last work item: `kworker/0:1H-kblockd`.
                let name = if name.starts_with("kworker") {
                    "kworker"
                } else {
                    name
                };
                *others.entry(name.to_owned()).or_default() += time;
                Some(CpuHolder::Other)
            }
        };
        *all.entry(ahead).or_insert(0.0) += time;
    }
    (all, others)
}
