//! Finds the smallest memory size at which a workload is not much slower than with more than enough memory ("plenty").
//! Runs the search of [`pagetide_verdict::squeeze`] in an arena and stores the records.
//!
//! Every size is a cell of one campaign, in the order in which sizes were tried; plenty comes first. Trials that have a
//! record are not run again, so a stopped search resumes where it ended.

mod request;

use std::collections::BTreeMap;
use std::sync::Mutex;

use pagetide_arena::ArenaError;
use pagetide_compare::pressure::PressureMeanings;
use pagetide_compare::squeezed::{CUT, Knob, Resident, Runs, SqueezeResult};
use pagetide_compare::tried::{RunMeans, TriedSize};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::text::exact_time;
use pagetide_record::{MemorySpec, Pass};
use pagetide_store::CampaignNote;
pub use pagetide_verdict::squeeze::{Answer, Design, Point};
use pagetide_verdict::squeeze::{Fit, Outcome, Search, Step, knee};

use crate::campaign::{Campaign, ScenarioSpec, Until};
use crate::event::{Event, EventListener, Tally};
use crate::locked::locked;
use crate::run::{RunError, prepared};
use crate::site::Site;

pub use request::{
    ScenarioFacts, SqueezeError, SqueezeRequest, by_variant, check_searchable, share, varied_word,
};

/// Maximum number of runs of a search, including one observed run.
pub const MAX_RUNS: u32 = 15;

/// Request for a search: campaign, varied size, metric and limits.
#[derive(Clone, Debug)]
pub struct Squeeze {
    /// Campaign with one variant and one scenario. The scenario has the largest size ("plenty").
    pub campaign: Campaign,
    /// The size that is varied: the machine's memory, or the memory limit of the program's cgroup.
    pub knob: Knob,
    /// Name of the metric that decides.
    pub metric: String,
    /// Names of the parameters whose values are computed from the memory size. At every size, they keep the values
    /// computed for the largest size.
    pub pins: Vec<String>,
    /// The scenario's parameter for a time limit: its name, and its value; `None` if the scenario has none.
    pub time_limit: Option<(String, Nanos)>,
    /// Range of sizes, acceptable slowdown, and number of seeds.
    pub design: Design,
}

/// How a search ended.
#[derive(Debug)]
pub enum SqueezeOutcome {
    /// The search was completed, with this result.
    Found(Box<SqueezeResult>),
    /// The search was stopped after this number of runs.
    Stopped(u32),
}

/// Runs a search until it ends or is stopped. `say` receives the result at each size.
pub fn squeeze(
    asked: &Squeeze,
    site: Site<'_>,
    say: &dyn Fn(&Point),
) -> Result<SqueezeOutcome, RunError> {
    let _lock = site.store.lock_campaign(&asked.campaign.name)?;
    let mut walk = Walk::begin(asked, site)?;
    while let Some(step) = walk.search.next() {
        if !walk.step(&step)? {
            return Ok(SqueezeOutcome::Stopped(walk.search.made()));
        }
        if let Some(point) = walk.search.curve().iter().find(|p| p.size == step.size) {
            say(point);
        }
    }
    let answer = walk.search.answer();
    let enough = match &answer {
        Answer::Never { enough } | Answer::AtMost { enough } | Answer::Between { enough, .. } => {
            Some(enough.size)
        }
        Answer::PlentyDied { .. } | Answer::NothingTried => None,
    };
    let mut resident = None;
    // In an arena with noise, no trial is observed, and the peak memory of the cgroup was measured instead.
    let observes = !walk.site.arena.has_noise();
    if let Some(size) = enough.filter(|_| observes) {
        if !walk.run(Some(walk.cell(size)))? {
            return Ok(SqueezeOutcome::Stopped(walk.search.made()));
        }
        resident = walk.resident()?;
    }
    let curve = walk.search.curve();
    let runs = walk.search.made() + u32::from(enough.is_some() && observes);
    let (knee, cautions) = (knee(&curve), walk.cautions(&curve, &answer));
    let none = Runs::default();
    let of = |size: u64| walk.runs.get(&size).unwrap_or(&none);
    let plenty = of(asked.design.plenty);
    let tried = curve.into_iter().map(|point| TriedSize {
        means: of(point.size).means.clone(),
        pressed: of(point.size).pressed(plenty),
        point,
    });
    let curve: Vec<TriedSize> = tried.collect();
    Ok(SqueezeOutcome::Found(Box::new(SqueezeResult {
        cell: walk.label.clone(),
        knob: asked.knob,
        metric: asked.metric.clone(),
        design: *walk.search.design(),
        answer,
        runs,
        knee,
        pressure: PressureMeanings::of(&curve),
        cautions,
        curve,
        resident,
        campaign: walk.note.id(),
    })))
}

/// State of a search in progress.
struct Walk<'a> {
    asked: &'a Squeeze,
    site: Site<'a>,
    base: ScenarioSpec,
    search: Search,
    /// Sizes tried so far, in bytes; the index is the cell.
    sizes: Vec<u64>,
    /// Index of the cell and number of the block of each trial requested so far.
    trials: Vec<(usize, u32)>,
    runs: BTreeMap<u64, Runs>,
    /// Time limit for runs below the largest size; `None` until known.
    cut: Option<Nanos>,
    note: CampaignNote,
    /// Label of the cell with the largest size, for display.
    label: String,
}

impl<'a> Walk<'a> {
    fn begin(asked: &'a Squeeze, site: Site<'a>) -> Result<Self, RunError> {
        let mut walk = Self {
            base: asked.campaign.scenarios[0].clone(),
            search: Search::new(asked.design),
            sizes: vec![asked.design.plenty],
            trials: Vec::new(),
            runs: BTreeMap::new(),
            cut: None,
            note: CampaignNote::default(),
            label: String::new(),
            asked,
            site,
        };
        // The workload must be the same at every size, so parameters that depend on memory are computed from the
        // largest size.
        let campaign = walk.campaign();
        let Some(cell) = campaign.cells().next() else {
            return Ok(walk);
        };
        let trial = campaign.trial(&cell, 0, (0, 0), Pass::Timed);
        let plenty = prepared(walk.site.arena, &trial)?;
        let subject = plenty.subject();
        for name in &asked.pins {
            if let Some(value) = subject.params.get(name) {
                walk.base.params.insert(name.clone(), vec![value.clone()]);
            }
        }
        walk.base.swap_size = Some(subject.swap_size);
        walk.label = subject.cell_label();
        Ok(walk)
    }

    /// Returns the scenario with memory or limit set to `size` bytes.
    fn scenario(&self, size: u64) -> ScenarioSpec {
        let mut spec = self.base.clone();
        match self.asked.knob {
            Knob::Memory => {
                spec.memory = vec![match spec.memory.first() {
                    Some(MemorySpec::Total(_)) => MemorySpec::Total(Bytes(size)),
                    _ => MemorySpec::Free(Bytes(size)),
                }];
            }
            Knob::Limit => {
                spec.params
                    .insert("limit".to_owned(), vec![size.to_string()]);
            }
        }
        if let (Some(cut), Some((name, _))) = (self.cut, &self.asked.time_limit)
            && size < self.asked.design.plenty
        {
            spec.params.insert(name.clone(), vec![exact_time(cut)]);
        }
        spec
    }

    /// Returns the campaign with a cell for each size tried.
    fn campaign(&self) -> Campaign {
        let mut campaign = self.asked.campaign.clone();
        campaign.scenarios = self.sizes.iter().map(|size| self.scenario(*size)).collect();
        campaign.sampling.until = Until::Blocks(self.asked.design.seeds);
        campaign
    }

    /// Returns the index of the cell with this size, in bytes.
    fn cell(&self, size: u64) -> usize {
        self.sizes.iter().position(|s| *s == size).unwrap_or(0)
    }

    /// Adds the trials of a step of the search to those to run. If the arena refuses the size, adds nothing and returns
    /// the reason.
    fn request(&mut self, step: &Step) -> Option<ArenaError> {
        if !self.sizes.contains(&step.size) {
            self.sizes.push(step.size);
            let campaign = self.campaign();
            if let Some(cell) = campaign.cells().last() {
                let trial = campaign.trial(&cell, 0, (0, 0), Pass::Timed);
                if let Err(RunError::Refused { source, .. }) = prepared(self.site.arena, &trial) {
                    self.sizes.pop();
                    return Some(source);
                }
            }
        }
        let cell = self.cell(step.size);
        self.trials
            .extend(step.seeds.iter().map(|seed| (cell, *seed)));
        None
    }

    /// Runs the trials of a step of the search. Returns false if stopped.
    fn step(&mut self, step: &Step) -> Result<bool, RunError> {
        // If the arena refuses a size, that size is too small.
        if let Some(why) = self.request(step) {
            let why = format!("cannot run: {why}");
            self.search
                .add(step.size, step.seeds[0], Outcome::Died(why));
            return Ok(true);
        }
        // A cluster has room for the steps that can follow; the next step then finds the records of one of them.
        if self.site.options.elsewhere.is_some() && !self.run_ahead(step)? {
            return Ok(false);
        }
        if !self.run(None)? {
            return Ok(false);
        }
        let cell = self.cell(step.size);
        let runs = Runs::of(self.site.store, &self.note, cell, &self.asked.metric)?;
        if let Some(why) = &runs.accident {
            return Err(RunError::Arena(ArenaError::broken(why.clone())));
        }
        for (seed, outcome) in &runs.outcomes {
            self.search.add(step.size, *seed, outcome.clone());
        }
        if step.size == self.asked.design.plenty {
            self.learn(&runs.means);
        }
        self.runs.insert(step.size, runs);
        Ok(true)
    }

    /// Evaluates the runs with the largest size: sets the time limit of the other runs and, if the limit is varied, the
    /// first smaller size to try.
    fn learn(&mut self, means: &RunMeans) {
        if let (Knob::Limit, Some(peak)) = (self.asked.knob, means.group_peak) {
            self.search.hint(pagetide_quantity::floor(peak));
        }
        if let (Some(elapsed), Some((_, given))) = (means.elapsed, &self.asked.time_limit) {
            // Rounded up to whole milliseconds, for readability.
            let cut = pagetide_quantity::floor(elapsed * CUT).next_multiple_of(1_000_000);
            self.cut = Some(Nanos(cut.min(given.0)));
        }
    }

    /// Runs the trials of `step`, which are already requested, and at the same time those of the steps that may follow
    /// it. Returns false if stopped.
    fn run_ahead(&mut self, step: &Step) -> Result<bool, RunError> {
        let (sizes, trials) = (self.sizes.len(), self.trials.len());
        for next in self.search.ahead(step) {
            // The search finds out by itself that a size is refused.
            let _ = self.request(&next);
        }
        let ran = if self.trials.len() > trials {
            self.run(None)
        } else {
            Ok(true)
        };
        // Only the search decides which sizes belong to it.
        self.sizes.truncate(sizes);
        self.trials.truncate(trials);
        ran
    }

    /// Runs the trials without a record: all requested so far, and one observed trial in the cell `observed` if given.
    /// Returns false if stopped.
    fn run(&mut self, observed: Option<usize>) -> Result<bool, RunError> {
        let campaign = self.campaign();
        let cells: Vec<_> = campaign.cells().collect();
        let counting = Counting {
            inner: self.site.watch,
            is_first: self.sizes.len() == 1,
            before: Mutex::new(None),
        };
        let timed = self
            .trials
            .iter()
            .map(|(cell, block)| campaign.planned(&cells, *cell, 0, (*block, 0), Pass::Timed));
        let observed =
            observed.map(|cell| campaign.planned(&cells, cell, 0, (0, 0), Pass::Observed));
        let all: Vec<_> = timed.chain(observed).collect();
        let mut site = self.site.watched(&counting);
        site.run(&campaign, &all, &mut self.note)
    }

    /// Returns the memory in use during the observed run; `None` if that run did not finish, or has too few samples.
    fn resident(&self) -> Result<Option<Resident>, RunError> {
        let Some(entry) = self.note.entries.last() else {
            return Ok(None);
        };
        let rows = self.site.store.by_keys(std::slice::from_ref(&entry.key))?;
        match rows.iter().find(|row| row.is_valid()) {
            Some(row) => Ok(Resident::of(&self.site.store.load(&row.id)?)),
            None => Ok(None),
        }
    }

    /// Returns warnings about the result, as sentences.
    fn cautions(&self, curve: &[Point], answer: &Answer) -> Vec<String> {
        let mut cautions = Vec::new();
        let plenty = self.runs.get(&self.asked.design.plenty);
        let moved = plenty.map_or(0.0, |Runs { means, .. }| {
            means.refaults.unwrap_or(0.0) + means.swapped_out.unwrap_or(0.0)
        });
        if moved >= 1.0 {
            let size = MemorySpec::Free(Bytes(self.asked.design.plenty));
            cautions.push(format!(
                "{size} was not plenty: pages were evicted there and came back, or went to swap ({moved:.0}); raise --memory"
            ));
        }
        let slower = |pair: &&[Point]| match (pair[0].slowdown, pair[1].slowdown) {
            (Some(small), Some(large)) => {
                pair[0].is_full && large > small + self.asked.design.within
            }
            _ => false,
        };
        if let Some(pair) = curve.windows(2).find(slower) {
            cautions.push(format!(
                "the curve does not only fall: with {} it was slower than with {}",
                MemorySpec::Free(Bytes(pair[1].size)),
                MemorySpec::Free(Bytes(pair[0].size)),
            ));
        }
        cautions.extend(unsure(curve, answer, self.asked.design.within));
        cautions
    }
}

/// Returns a warning that one end of the resulting range is based on a single seed, because undecided sizes used up the
/// runs. `None` if both ends are based on more seeds, or if no size is undecided.
fn unsure(curve: &[Point], answer: &Answer, within: f64) -> Option<String> {
    let ends = match answer {
        Answer::Between { too_small, enough } => vec![too_small, enough],
        Answer::Never { enough } | Answer::AtMost { enough } => vec![enough],
        Answer::PlentyDied { .. } | Answer::NothingTried => Vec::new(),
    };
    let unsure: Vec<String> = ends
        .iter()
        .filter(|end| !end.is_sure)
        .map(|end| Bytes(end.size).to_string())
        .collect();
    let open: Vec<String> = curve
        .iter()
        .filter(|point| point.is_full && point.fit == Fit::Open)
        .map(|point| Bytes(point.size).to_string())
        .collect();
    if unsure.is_empty() || open.is_empty() {
        return None;
    }
    let rest = if unsure.len() == 1 { "rests" } else { "rest" };
    Some(format!(
        "{} {rest} on the first seed alone: the {MAX_RUNS} runs went to the search and to {} with every seed, which leave open whether it is \
         {} % there; a wider --within may decide more",
        unsure.join(" and "),
        open.join(" and "),
        (within * 1000.0).round() / 10.0
    ))
}

/// An [`EventListener`] that converts the progress of one step to progress of the whole search, which has a limited
/// number of runs.
struct Counting<'a> {
    inner: &'a dyn EventListener,
    is_first: bool,
    /// Estimated wall-clock time left and number of trials when this step began; `None` before the first event.
    before: Mutex<Option<(Nanos, usize)>>,
}

impl Counting<'_> {
    fn tally(&self, tally: Tally) -> Tally {
        let total = tally.total.max(MAX_RUNS as usize);
        let mut before = locked(&self.before);
        let todo = tally.total - tally.done();
        let (left, of) = *before.get_or_insert((tally.left, todo.max(1)));
        // Every later run is assumed to take as long as this step's estimate for one run.
        let later = (total - tally.total) as u64;
        Tally {
            total,
            left: Nanos(tally.left.0 + later * (left.0 / of as u64)),
            ..tally
        }
    }
}

impl EventListener for Counting<'_> {
    fn event(&self, event: &Event<'_>) {
        match event {
            // Each step makes a new plan; only the first is reported.
            Event::Planned(tally) if self.is_first => {
                self.inner.event(&Event::Planned(self.tally(*tally)));
            }
            Event::Planned(_) => {}
            Event::Stored {
                number,
                trial,
                id,
                tally,
                ..
            } => self.inner.event(&Event::Stored {
                number: *number,
                trial,
                id,
                // Runs with too little memory are expected to die; the result shows that.
                invalid: None,
                tally: self.tally(*tally),
            }),
            other => self.inner.event(other),
        }
    }

    fn is_stopped(&self) -> bool {
        self.inner.is_stopped()
    }
}
