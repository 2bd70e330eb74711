//! Runs the search: supplies kernels, runs trials and judges each version.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use pagetide_arena::{ArenaError, VariantSpec};
use pagetide_compare::bisected::{BisectResult, BisectStep, Version};
use pagetide_compare::{Comparison, MetricRow, compare_note};
use pagetide_quantity::Unit;
use pagetide_record::Pass;
use pagetide_store::whole_file::{self, WriteError};
use pagetide_store::{CampaignNote, CellNote, Entry};
use pagetide_verdict::bisect::{Mark, Search, looks, mark_of};
use pagetide_verdict::judgement::{EffectKind, Judgement, Shift, Verdict};

use super::{Bisect, BisectError, BisectOutcome, Say, Supplied, Supply, log};
use crate::campaign::{Campaign, Observe, Until};
use crate::run::{RunError, prepared};
use crate::site::Site;

/// Where the steps of a search are reported: log files and a function.
pub struct Audience<'a> {
    /// Paths of the log files, which are rewritten after each step.
    pub logs: &'a [PathBuf],
    /// Function that is called with each step.
    pub say: &'a Say<'a>,
}

/// Runs a bisection until it ends or is stopped.
pub fn bisect(
    asked: &Bisect,
    supply: &mut Supply<'_>,
    site: Site<'_>,
    audience: &Audience<'_>,
) -> Result<BisectOutcome, BisectError> {
    let _lock = site.store.lock_campaign(&asked.campaign.name)?;
    let history = &asked.history;
    let mut search = Search::new(history.parents.clone(), history.good, history.bad)?;
    let mut walk = Walk::new(asked, supply, site, audience);
    match walk.ends()? {
        Ends::Differ => {}
        Ends::Alike(why) => return Ok(BisectOutcome::Nothing(why)),
        Ends::Stopped => return Ok(BisectOutcome::Stopped(0)),
    }
    let candidates = search.suspects().len();
    while let Some(place) = search.next() {
        if !walk.step(place)? {
            return Ok(BisectOutcome::Stopped(walk.steps.len() - 1));
        }
        let mark = walk.steps[walk.steps.len() - 1].mark;
        search.mark(place, mark);
        walk.log(&[])?;
    }
    let first_bad = search.suspects();
    match walk.result(&first_bad, candidates)? {
        Some(result) => Ok(BisectOutcome::Found(Box::new(result))),
        None => Ok(BisectOutcome::Stopped(walk.steps.len() - 1)),
    }
}

/// Result of the comparison of good and bad.
enum Ends {
    /// Good and bad differ significantly.
    Differ,
    /// Good and bad do not differ significantly; the sentence says so.
    Alike(String),
    /// The user stopped the comparison.
    Stopped,
}

/// How running a set of trials ended.
enum Ran {
    /// All trials have records.
    Whole,
    /// The user stopped the trials.
    Stopped,
    /// A guest did not boot, for this reason.
    Dead(String),
}

/// A kernel under test, shared by all versions with the same image.
struct Column {
    /// Index of the version that was tried first with this kernel.
    place: usize,
    /// Digest of the kernel image.
    digest: String,
}

/// Column index of the good version.
const GOOD: usize = 0;
/// Column index of the bad version.
const BAD: usize = 1;

/// State of a bisection in progress.
struct Walk<'a> {
    asked: &'a Bisect,
    supply: &'a mut Supply<'a>,
    site: Site<'a>,
    audience: &'a Audience<'a>,
    /// Campaign with one variant for each column.
    campaign: Campaign,
    columns: Vec<Column>,
    /// Column index by version index, for the versions tried. Versions with equal images share a column.
    tried: BTreeMap<usize, usize>,
    /// Trials as (column, block, pass), in the order in which they were first requested.
    trials: Vec<(usize, u32, Pass)>,
    note: CampaignNote,
    looks: Vec<u32>,
    towards: Shift,
    margin: Option<f64>,
    unit: Unit,
    /// Steps for the bad version and for each version tried.
    steps: Vec<BisectStep>,
}

impl<'a> Walk<'a> {
    fn new(
        asked: &'a Bisect,
        supply: &'a mut Supply<'_>,
        site: Site<'a>,
        audience: &'a Audience<'_>,
    ) -> Self {
        let mut campaign = asked.campaign.clone();
        campaign.variants.clear();
        campaign.observe = Observe::None;
        let most = campaign.sampling.until.cap();
        campaign.sampling.until = Until::Blocks(most);
        let looks = looks(u64::from(most)).into_iter();
        Self {
            asked,
            supply,
            site,
            audience,
            campaign,
            columns: Vec::new(),
            tried: BTreeMap::new(),
            trials: Vec::new(),
            note: CampaignNote::default(),
            looks: looks.filter_map(|look| u32::try_from(look).ok()).collect(),
            towards: Shift::Up,
            margin: None,
            unit: Unit::Count,
            steps: Vec::new(),
        }
    }

    fn version(&self, place: usize) -> &'a Version {
        &self.asked.history.versions[place]
    }

    /// Returns the column index for a version. Versions with equal images share a column. The inner error is the reason
    /// why the version cannot be tried.
    fn column(&mut self, place: usize) -> Result<Result<usize, String>, BisectError> {
        let kernel = match (self.supply)(place).map_err(BisectError::Supply)? {
            Supplied::Kernel(kernel) => kernel,
            Supplied::Skip(why) => return Ok(Err(why)),
        };
        let template = &self.asked.campaign.variants[0];
        self.campaign.variants.push(VariantSpec {
            name: self.version(place).name.clone(),
            kernel,
            ..template.clone()
        });
        let variant = self.columns.len();
        let Some(cell) = self.campaign.cells().next() else {
            return Ok(Err("there is no workload".to_owned()));
        };
        let trial = self.campaign.trial(&cell, variant, (0, 0), Pass::Timed);
        let digest = match prepared(self.site.arena, &trial) {
            Ok(prepared) => prepared.subject().variant.kernel.digest.clone(),
            Err(RunError::Refused { source, .. }) if !source.is_user_error() => {
                self.campaign.variants.pop();
                return Ok(Err(source.to_string()));
            }
            Err(other) => return Err(other.into()),
        };
        let mut known = self.columns.iter();
        if let Some(same) = known.position(|column| column.digest == digest) {
            self.campaign.variants.pop();
            self.tried.insert(place, same);
            return Ok(Ok(same));
        }
        self.tried.insert(place, variant);
        self.columns.push(Column { place, digest });
        Ok(Ok(variant))
    }

    /// Runs the trials that have no record: those of the first `seeds` seeds for these columns, and all that were
    /// requested before.
    fn run(&mut self, columns: [usize; 2], seeds: u32, pass: Pass) -> Result<Ran, BisectError> {
        let before = self.trials.len();
        for block in 0..seeds {
            for column in columns {
                let trial = (column, block, pass);
                if !self.trials.contains(&trial) {
                    self.trials.push(trial);
                }
            }
        }
        let cells: Vec<_> = self.campaign.cells().collect();
        let planned: Vec<_> = self
            .trials
            .iter()
            .map(|(column, block, pass)| {
                self.campaign
                    .planned(&cells, 0, *column, (*block, 0), *pass)
            })
            .collect();
        match self.site.run(&self.campaign, &planned, &mut self.note) {
            Ok(true) => Ok(Ran::Whole),
            Ok(false) => Ok(Ran::Stopped),
            // The arena can supply this kernel but cannot use it.
            Err(RunError::Arena(ArenaError::Refused(why))) => {
                self.trials.truncate(before);
                Ok(Ran::Dead(why.to_string()))
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Returns the campaign's note (the description of its trials in the store), restricted to two columns and to the
    /// first `seeds` seeds.
    fn pair(&self, [a, b]: [usize; 2], seeds: u32) -> CampaignNote {
        let place = |variant| [a, b].iter().position(|column| *column == variant);
        let entries = self.note.entries.iter().filter(|entry| entry.unit < seeds);
        CampaignNote {
            variants: [a, b]
                .map(|column| self.campaign.variants[column].name.clone())
                .to_vec(),
            entries: entries
                .filter_map(|entry| {
                    Some(Entry {
                        variant: place(entry.variant)?,
                        ..entry.clone()
                    })
                })
                .collect(),
            ..self.note.clone()
        }
    }

    /// Compares a column with the good version, using the column's first `seeds` seeds. `None` if the metric has no
    /// value.
    fn judge(&mut self, column: usize, seeds: u32) -> Result<Option<Judgement>, BisectError> {
        let mut note = self.pair([GOOD, column], seeds);
        note.looks = self.looks.iter().map(|look| u64::from(*look)).collect();
        let metric = &self.asked.metric;
        let margins: BTreeMap<String, f64> = self
            .margin
            .map(|margin| (metric.clone(), margin))
            .into_iter()
            .collect();
        for cell in &mut note.cells {
            *cell = CellNote {
                margins: margins.clone(),
                ..cell.clone()
            };
        }
        let comparison = compare_note(self.site.store, &note)?;
        let Some(row) = row(&comparison, metric) else {
            return Ok(None);
        };
        self.unit = row.unit;
        Ok(row.judgements.first().cloned().flatten())
    }

    /// Runs the good and the bad version, and compares them.
    fn ends(&mut self) -> Result<Ends, BisectError> {
        let history = &self.asked.history;
        for (which, place) in [("good", history.good), ("bad", history.bad)] {
            let dead = |why| BisectError::End {
                which,
                name: self.asked.history.versions[place].name.clone(),
                why,
            };
            let column = self.column(place)?.map_err(dead)?;
            if place == history.bad && column == GOOD {
                return Ok(Ends::Alike(format!(
                    "nothing to bisect: good and bad are the same kernel to the last byte ({})",
                    self.columns[GOOD].digest.get(..12).unwrap_or_default()
                )));
            }
        }
        let mut judgement = None;
        let looks = self.looks.clone();
        let mut seeds = 0;
        for look in looks {
            match self.run([GOOD, BAD], look, Pass::Timed)? {
                Ran::Whole => {}
                Ran::Stopped => return Ok(Ends::Stopped),
                Ran::Dead(why) => return Err(self.dead_end(why)?),
            }
            seeds = look;
            judgement = self.judge(BAD, look)?;
            let is_done = |judgement: &Judgement| {
                judgement.shift.is_some()
                    || !matches!(judgement.verdict, Verdict::Inconclusive { .. })
            };
            if judgement.as_ref().is_none_or(is_done) {
                break;
            }
        }
        let Some((judgement, shift)) = judgement
            .as_ref()
            .and_then(|judgement| Some((judgement, judgement.shift?)))
        else {
            return Ok(Ends::Alike(self.alike(judgement.as_ref(), seeds)));
        };
        self.towards = shift;
        self.margin = half(judgement);
        let step = BisectStep {
            version: self.version(history.bad).clone(),
            mark: Mark::Bad,
            seeds,
            judgement: Some(judgement.clone()),
            why: None,
        };
        self.add(step)?;
        Ok(Ends::Differ)
    }

    /// Returns the error for a good or bad version that does not boot. Runs the good version alone to find out which of
    /// the two it is.
    fn dead_end(&mut self, why: String) -> Result<BisectError, BisectError> {
        let history = &self.asked.history;
        let (which, place) = match self.run([GOOD, GOOD], 1, Pass::Timed)? {
            Ran::Dead(_) => ("good", history.good),
            _ => ("bad", history.bad),
        };
        let name = self.version(place).name.clone();
        Ok(BisectError::End { which, name, why })
    }

    /// Returns a sentence that says why good and bad do not differ significantly.
    fn alike(&self, judgement: Option<&Judgement>, seeds: u32) -> String {
        let verdict = match judgement {
            None => "it has no value there".to_owned(),
            Some(judgement) => match &judgement.verdict {
                Verdict::Invalid { reason } => reason.clone(),
                verdict => format!("{verdict} after {seeds} seeds"),
            },
        };
        let [good, bad] = [GOOD, BAD].map(|column| &self.version(self.columns[column].place).name);
        format!(
            "nothing to bisect: {bad} does not surely differ from {good} in {} of {} ({verdict}); choose another metric or \
             workload, or allow more --seeds",
            self.asked.metric,
            self.note.cells.first().map_or("", |cell| &cell.label)
        )
    }

    fn add(&mut self, step: BisectStep) -> Result<(), BisectError> {
        (self.audience.say)(&step);
        self.steps.push(step);
        self.log(&[])
    }

    /// Tests a version and adds its step. Returns false if stopped.
    fn step(&mut self, place: usize) -> Result<bool, BisectError> {
        let mut step = BisectStep {
            version: self.version(place).clone(),
            mark: Mark::Skip,
            seeds: 0,
            judgement: None,
            why: None,
        };
        let columns = self.columns.len();
        match self.column(place)? {
            Err(why) => step.why = Some(why),
            Ok(column) if column < columns => self.like(column, &mut step),
            Ok(column) => {
                if !self.try_out(column, &mut step)? {
                    return Ok(false);
                }
            }
        }
        self.add(step)?;
        Ok(true)
    }

    /// Copies to `step` the result of another version with the same image.
    fn like(&self, column: usize, step: &mut BisectStep) {
        let other = self.version(self.columns[column].place);
        step.why = Some(format!("the same kernel as {}", other.name));
        step.mark = Mark::Good;
        if let Some(known) = self.steps.iter().find(|known| known.version == *other) {
            step.mark = known.mark;
            step.seeds = known.seeds;
            step.judgement.clone_from(&known.judgement);
        }
    }

    /// Runs the trials of a version until the version is judged or must be skipped. Returns false if stopped.
    fn try_out(&mut self, column: usize, step: &mut BisectStep) -> Result<bool, BisectError> {
        for look in self.looks.clone() {
            match self.run([GOOD, column], look, Pass::Timed)? {
                Ran::Whole => {}
                Ran::Stopped => return Ok(false),
                Ran::Dead(why) => {
                    step.why = Some(why);
                    return Ok(true);
                }
            }
            step.seeds = look;
            step.judgement = self.judge(column, look)?;
            let Some(judgement) = &step.judgement else {
                step.why = Some(self.no_value(column)?);
                return Ok(true);
            };
            if let Verdict::Invalid { reason } = &judgement.verdict {
                step.why = Some(reason.clone());
                return Ok(true);
            }
            if let Some(mark) = mark_of(judgement, self.towards) {
                step.mark = mark;
                return Ok(true);
            }
        }
        step.why = Some(format!("still open after {} seeds", step.seeds));
        Ok(true)
    }

    /// Returns the reason why the metric has no value for a column: the reason of the column's first invalid trial; if
    /// there is none, that no trial gave a value.
    fn no_value(&self, column: usize) -> Result<String, BisectError> {
        let comparison = compare_note(self.site.store, &self.pair([GOOD, column], u32::MAX))?;
        let mut sides = comparison.cells.iter().filter_map(|cell| cell.sides.get(1));
        let invalid = sides.find_map(|side| side.invalid.first());
        Ok(invalid.map_or_else(
            || format!("no trial gave a value of {}", self.asked.metric),
            |trial| trial.why.clone(),
        ))
    }

    fn log(&self, first_bad: &[Version]) -> Result<(), BisectError> {
        let text = log(&self.asked.history, &self.steps, first_bad);
        for path in self.audience.logs {
            let fault = |cause| BisectError::Log {
                path: path.clone(),
                cause,
            };
            if let Some(folder) = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty())
            {
                fs::create_dir_all(folder).map_err(fault)?;
            }
            let written = whole_file::write(path, |out| {
                let wrong = |source| WriteError {
                    path: path.clone(),
                    source,
                };
                out.write_all(text.as_bytes()).map_err(wrong)
            });
            written.map_err(|why| fault(why.source))?;
        }
        Ok(())
    }

    /// Returns the result of the search: a comparison of the last good with the first bad version, with observed passes
    /// if their kernels support tracing. `None` if stopped.
    fn result(
        &mut self,
        suspects: &[usize],
        candidates: usize,
    ) -> Result<Option<BisectResult>, BisectError> {
        let history = &self.asked.history;
        let first = suspects.last().copied().unwrap_or(history.bad);
        let good = self.last_good(first);
        let columns = [good, first].map(|place| self.tried.get(&place).copied().unwrap_or(GOOD));
        let seeds = |place: usize| {
            let version = self.version(place);
            let step = self.steps.iter().find(|step| step.version == *version);
            step.map_or(0, |step| step.seeds)
        };
        let seeds = seeds(good).max(seeds(first));
        match self.run(columns, seeds, Pass::Timed)? {
            Ran::Whole => {}
            Ran::Stopped => return Ok(None),
            Ran::Dead(why) => return Err(self.dead_end(why)?),
        }
        let observed = Observe::FEW.of(seeds);
        match self.run(columns, observed, Pass::Observed) {
            Ok(Ran::Stopped) => return Ok(None),
            // If a kernel does not support tracing, the comparison has no observed passes.
            Ok(_) | Err(BisectError::Run(RunError::Refused { .. })) => {}
            Err(other) => return Err(other),
        }
        let comparison = compare_note(self.site.store, &self.pair(columns, seeds))?;
        let first_bad: Vec<Version> = suspects
            .iter()
            .map(|place| self.version(*place).clone())
            .collect();
        self.log(&first_bad)?;
        Ok(Some(BisectResult {
            cell: self
                .note
                .cells
                .first()
                .map_or_else(String::new, |cell| cell.label.clone()),
            metric: self.asked.metric.clone(),
            unit: self.unit,
            good: self.version(history.good).clone(),
            bad: self.version(history.bad).clone(),
            candidates,
            first_bad,
            before: self.version(good).clone(),
            steps: std::mem::take(&mut self.steps),
            margin: self.margin,
            campaign: self.note.id(),
            comparison,
        }))
    }

    /// Returns the index of the last ancestor of version `of` that was judged good; that of the good version if none
    /// was.
    fn last_good(&self, of: usize) -> usize {
        let history = &self.asked.history;
        let mut ancestors = vec![false; history.versions.len()];
        let mut open = vec![of];
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut ancestors[at], true) {
                open.extend(&history.parents[at]);
            }
        }
        let is_good = |at: usize| {
            let mut steps = self.steps.iter();
            steps.any(|step| step.mark == Mark::Good && step.version == history.versions[at])
        };
        let found = (0..of).rev().find(|&at| ancestors[at] && is_good(at));
        found.unwrap_or(history.good)
    }
}

/// Returns the row of the metric with this name; `None` if the comparison does not have it.
fn row<'a>(comparison: &'a Comparison, metric: &str) -> Option<&'a MetricRow> {
    let mut rows = comparison.cells.iter().flat_map(|cell| &cell.metrics);
    rows.find(|row| row.name == metric)
}

/// Returns half of an effect, as a share of the baseline, for increase and decrease alike. Computed on the ratio: √1.21
/// = 1.1, so half of an increase by 0.21 is 0.1. `None` if the effect is not a ratio, or if there is no effect.
fn half(judgement: &Judgement) -> Option<f64> {
    let effect = judgement.effect.as_ref()?;
    let ratio = match effect.kind {
        EffectKind::Ratio => effect.estimate,
        EffectKind::Difference => return None,
    };
    let share = ratio.max(1.0 / ratio).sqrt() - 1.0;
    (share.is_finite() && share > 0.0).then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_difference_is_as_far_from_good_as_from_bad() {
        let judged = |ratio: f64| {
            let a: Vec<f64> = (1..10).map(f64::from).collect();
            let b: Vec<f64> = a.iter().map(|a| a * ratio).collect();
            let sample = pagetide_verdict::MetricSample {
                name: "run".into(),
                unit: "nanos".into(),
                direction: pagetide_quantity::Direction::Lower,
                primary: true,
                margin: None,
                scale: pagetide_verdict::sample::Scale::Auto,
                data: pagetide_verdict::Data::paired(&a, &b),
            };
            let family = pagetide_verdict::Family::new(1, vec![sample]);
            half(&pagetide_verdict::judge(&family).unwrap()[0])
        };
        for ratio in [1.21, 1.0 / 1.21] {
            assert!((judged(ratio).unwrap() - 0.1).abs() < 1e-9);
        }
        assert_eq!(judged(1.0), None);
    }
}
