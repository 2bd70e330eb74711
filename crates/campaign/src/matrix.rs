//! Finds the settings that matter to a workload, and the values to choose. Runs the designs of
//! [`pagetide_verdict::factorial`] in an arena and stores the records.
//!
//! The same design runs with every kind of swap, so that the effect of a setting is known for each. A design with more
//! than three settings does not have all combinations. Then all combinations of the settings with a significant effect
//! or interaction run (at most four settings), with the other settings at their defaults.
//!
//! Then the candidates run, for each kind of swap: the defaults; the defaults with the better level of every setting
//! that has a significant effect; the fastest combination; the smallest set of changes that is equally fast; and each
//! single change that helps. Candidates run with new seeds. With the old seeds, an exact trial would only repeat the
//! chance by which the candidate was selected.

mod request;

use std::collections::BTreeMap;
use std::ops::Range;

use pagetide_arena::{ArenaError, VariantSpec};
use pagetide_compare::matrixed::{Choice, Factor, KindEffects, MatrixRuns, Matrixed, choices};
use pagetide_quantity::Nanos;
use pagetide_record::setting::means;
use pagetide_record::text::exact_time;
use pagetide_record::{Pass, SwapSpec};
use pagetide_store::CampaignNote;
use pagetide_verdict::choice::SAME;
use pagetide_verdict::factorial::{Effect, Fraction, active, adjust, blame, worth_choosing};
use pagetide_verdict::number::mean;

pub use request::{MatrixError, MatrixRequest};

use crate::campaign::{Campaign, Until};
use crate::program::PROGRAM;
use crate::run::{RunError, prepared};
use crate::site::Site;
use crate::vary::give;

/// Time limit of a program, as a multiple of its duration under the default settings.
const CUT: u64 = 20;
/// Name of a program's parameter for the time limit.
const TIME_LIMIT: &str = "time-limit";
/// Texts that occur in the reason for an invalid trial if the kernel lacks a setting or one of its values.
const LACKS: [&str; 2] = ["cannot be applied on this kernel", "was set to"];

/// A kind of swap to run the design with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Name of the kind, for display.
    pub name: String,
    /// The kind of swap, with its parameters.
    pub swap: SwapSpec,
}

/// Request for a matrix of settings: campaign, kinds of swap, settings and seeds.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// Campaign with one variant, which has everything that is common to all runs, and one scenario, which has a cell
    /// for each kind of swap.
    pub campaign: Campaign,
    /// Kinds of swap; the first is the default.
    pub kinds: Vec<Kind>,
    /// Settings that are varied, each with two levels.
    pub factors: Vec<Factor>,
    /// Number of seeds of the design; the candidates run with the same number of new seeds.
    pub seeds: u32,
    /// Name of the metric by which runs are compared.
    pub metric: String,
    /// True if another kernel may be used when the campaign's kernel lacks a kind of swap.
    pub may_choose_kernel: bool,
}

/// How a matrix ended.
#[derive(Debug)]
pub enum MatrixOutcome {
    /// The matrix was completed, with this result.
    Found(Box<Matrixed>),
    /// The user stopped the matrix.
    Stopped,
}

/// Runs a matrix until it ends or is stopped; `say` receives a message before each stage.
///
/// # Errors
///
/// If the arena or the store fails.
pub fn matrix(
    asked: Matrix,
    site: Site<'_>,
    say: &dyn Fn(&str),
) -> Result<MatrixOutcome, RunError> {
    let _lock = site.store.lock_campaign(&asked.campaign.name)?;
    let mut table = Table::new(asked, site);
    let ended = table.whole(say)?;
    Ok(ended.map_or(MatrixOutcome::Stopped, |found| {
        MatrixOutcome::Found(Box::new(found))
    }))
}

/// Identifies a trial: index of the kind of swap, index of the variant, number of the block.
type RunIndex = (usize, usize, u32);

/// All combinations of some factors with one kind of swap; each combination is a variant.
#[derive(Default)]
struct Combinations {
    /// Indices of the combined factors.
    factors: Vec<usize>,
    /// Levels of the combined factors in each run; true is the second level.
    rows: Vec<Vec<bool>>,
    /// Index of the variant of each run.
    variants: Vec<usize>,
}

/// State of a matrix in progress.
struct Table<'a> {
    asked: Matrix,
    site: Site<'a>,
    base: VariantSpec,
    trials: Vec<RunIndex>,
    left_out: Vec<String>,
    /// Value of each setting in the run under the defaults.
    defaults: BTreeMap<String, String>,
    note: CampaignNote,
    label: String,
}

impl<'a> Table<'a> {
    fn new(asked: Matrix, site: Site<'a>) -> Self {
        Self {
            base: asked.campaign.variants[0].clone(),
            trials: Vec::new(),
            left_out: Vec::new(),
            defaults: BTreeMap::new(),
            note: CampaignNote::default(),
            label: String::new(),
            asked,
            site,
        }
    }

    /// Runs all stages and returns the result; `None` if stopped.
    fn whole(&mut self, say: &dyn Fn(&str)) -> Result<Option<Matrixed>, RunError> {
        self.asked.campaign.variants.clear();
        if self.asked.may_choose_kernel {
            self.choose_kernel(say)?;
        }
        if !self.probe()? {
            return Ok(None);
        }
        let (design, confirmed) = (0..self.asked.seeds, self.asked.seeds..2 * self.asked.seeds);
        let fraction = Fraction::of(self.asked.factors.len());
        let rows = fraction.as_ref().map_or(&[][..], Fraction::runs).to_vec();
        let places: Vec<Vec<usize>> = (0..self.asked.kinds.len())
            .map(|_| {
                rows.iter()
                    .map(|row| self.variant(&self.levels(row)))
                    .collect()
            })
            .collect();
        if !rows.is_empty() {
            say(&format!(
                "which settings matter: {} runs for each of {} kinds of swap and {} seeds",
                rows.len(),
                self.asked.kinds.len(),
                self.asked.seeds
            ));
        }
        for block in design.clone() {
            for (kind, variants) in places.iter().enumerate() {
                self.trials
                    .extend(variants.iter().map(|variant| (kind, *variant, block)));
            }
        }
        // If the kernel has none of the settings, there is no design, and only the defaults are run.
        if !rows.is_empty() && !self.run()? {
            return Ok(None);
        }
        let mut runs = self.runs()?;
        let mut kinds = Vec::new();
        for (kind, variants) in places.iter().enumerate() {
            if let Some(fraction) = &fraction {
                kinds.push(self.effects(kind, variants, fraction, &runs, &design));
            }
        }
        adjust(kinds.iter_mut().flat_map(|kind| {
            let together = kind.interactions.iter_mut();
            (kind.effects.iter_mut()).chain(together.map(|interaction| &mut interaction.effect))
        }));
        let is_whole = fraction.as_ref().is_some_and(|f| f.resolution().is_none());
        let combinations = if is_whole {
            let whole = |variants: &Vec<usize>| Combinations {
                factors: (0..self.asked.factors.len()).collect(),
                rows: rows.clone(),
                variants: variants.clone(),
            };
            places.iter().map(whole).collect()
        } else {
            match self.tell_apart(&mut kinds, &mut runs, &design, say)? {
                Some(combinations) => combinations,
                None => return Ok(None),
            }
        };
        let asked = self.candidates(&kinds, &rows, &places, &combinations, &runs, &design);
        say(&format!(
            "what to choose: {} choices with {} new seeds",
            asked.len(),
            self.asked.seeds
        ));
        for block in confirmed.clone() {
            self.trials.extend(
                asked
                    .iter()
                    .map(|(_, kind, variant)| (*kind, *variant, block)),
            );
        }
        if !self.run()? {
            return Ok(None);
        }
        let runs = self.runs()?;
        let asked = asked
            .into_iter()
            .map(|(choice, kind, variant)| (choice, (self.cell(kind), variant)));
        let (choices, recommended) = choices(asked.collect(), &runs, &confirmed);
        Ok(Some(Matrixed {
            cell: self.label.clone(),
            metric: self.asked.metric.clone(),
            factors: self.asked.factors.clone(),
            runs: rows.len(),
            resolution: fraction.and_then(|fraction| fraction.resolution()),
            seeds: self.asked.seeds,
            kinds,
            left_out: self.left_out.clone(),
            choices,
            recommended,
            trials: self.trials.len(),
            arena: self.asked.campaign.arena,
            campaign: self.note.id(),
        }))
    }

    /// Returns the index of the cell with the swap device of this kind.
    fn cell(&self, kind: usize) -> usize {
        let swap = self.asked.kinds[kind].swap;
        let swaps = &self.asked.campaign.scenarios[0].swap;
        swaps.iter().position(|other| *other == swap).unwrap_or(0)
    }

    /// For each kind of swap, runs all combinations of the active factors, those with a significant effect or
    /// interaction. Sets `active` and `told_apart` in `kinds`, and replaces `runs` by all runs so far. Returns the
    /// combinations; `None` if stopped.
    fn tell_apart(
        &mut self,
        kinds: &mut [KindEffects],
        runs: &mut MatrixRuns,
        blocks: &Range<u32>,
        say: &dyn Fn(&str),
    ) -> Result<Option<Vec<Combinations>>, RunError> {
        let mut all = Vec::new();
        for kind in kinds.iter_mut() {
            kind.active = active(&kind.effects, &kind.interactions, Matrixed::is_sure);
            let whole = Fraction::whole(kind.active.len());
            let rows = whole.as_ref().map_or(&[][..], Fraction::runs).to_vec();
            let variants = rows
                .iter()
                .map(|row| self.variant(&self.levels_of(&kind.active, row)))
                .collect();
            all.push(Combinations {
                factors: kind.active.clone(),
                rows,
                variants,
            });
        }
        let count: usize = all.iter().map(|all| all.rows.len()).sum();
        if count == 0 {
            return Ok(Some(all));
        }
        say(&format!(
            "what they do together: {count} combinations of the settings that matter, with {} seeds",
            self.asked.seeds
        ));
        for block in blocks.clone() {
            for (kind, combinations) in all.iter().enumerate() {
                let variants = combinations.variants.iter();
                self.trials
                    .extend(variants.map(|variant| (kind, *variant, block)));
            }
        }
        if !self.run()? {
            return Ok(None);
        }
        *runs = self.runs()?;
        for (number, (kind, combinations)) in kinds.iter_mut().zip(&all).enumerate() {
            let Some(whole) = Fraction::whole(combinations.factors.len()) else {
                continue;
            };
            let cell = self.cell(number);
            let variants = combinations.variants.iter();
            let values: Vec<_> = variants
                .map(|variant| runs.logs((cell, *variant), blocks.clone()))
                .collect();
            kind.told_apart = whole.interactions(&values);
            for factor in kind.told_apart.iter_mut().flat_map(|i| &mut i.pairs) {
                *factor = factor.map(|place| combinations.factors[place]);
            }
        }
        adjust(
            kinds
                .iter_mut()
                .flat_map(|kind| &mut kind.told_apart)
                .map(|interaction| &mut interaction.effect),
        );
        Ok(Some(all))
    }

    /// Returns the names and values of all settings for the levels in a run of the design.
    fn levels(&self, row: &[bool]) -> Vec<(String, String)> {
        let all: Vec<usize> = (0..self.asked.factors.len()).collect();
        self.levels_of(&all, row)
    }

    /// Returns the names and values of the settings for the levels of these factors.
    fn levels_of(&self, factors: &[usize], row: &[bool]) -> Vec<(String, String)> {
        let level = |(place, second): (&usize, &bool)| {
            let factor = &self.asked.factors[*place];
            (
                factor.key.clone(),
                factor.levels[usize::from(*second)].clone(),
            )
        };
        factors.iter().zip(row).map(level).collect()
    }

    /// For each factor, true if its default value in the kernel is the factor's second level.
    fn default_levels(&self, factors: &[usize]) -> Vec<bool> {
        let is_second = |place: &usize| {
            let factor = &self.asked.factors[*place];
            let reads = self.defaults.get(&factor.key);
            reads.is_some_and(|read| means(read, &factor.levels[1]))
        };
        factors.iter().map(is_second).collect()
    }

    /// Returns the index of the variant with these settings. Adds the variant if there is none.
    fn variant(&mut self, settings: &[(String, String)]) -> usize {
        let mut variant = self.base.clone();
        let mut words = Vec::new();
        for (key, value) in settings {
            give(&mut variant, key, value);
            words.push(format!("{}={value}", key.rsplit('.').next().unwrap_or(key)));
        }
        if words.is_empty() {
            words.push("defaults".to_owned());
        }
        variant.name = words.join(" ").replace([':', ',', '\n'], "-");
        let variants = &mut self.asked.campaign.variants;
        if let Some(place) = variants.iter().position(|other| *other == variant) {
            return place;
        }
        variants.push(variant);
        variants.len() - 1
    }

    /// Runs the default settings, and under each kind of swap a variant with all settings at their second level.
    /// Removes the settings that the kernel lacks, and finds the duration under the default settings. Returns false if
    /// stopped.
    fn probe(&mut self) -> Result<bool, RunError> {
        // This comes first, because a trial that is refused in one cell would make the whole campaign fail.
        self.leave_out_refused()?;
        self.asked.campaign.variants.clear();
        let defaults = self.variant(&[]);
        self.trials = vec![(0, defaults, 0)];
        if !self.run()? {
            return Ok(false);
        }
        self.learn_defaults()?;
        let mut kind = 0;
        while kind < self.asked.kinds.len() {
            let row = vec![true; self.asked.factors.len()];
            let settings = self.levels(&row);
            self.asked.campaign.variants.clear();
            let variant = self.variant(&settings);
            self.trials = vec![(kind, variant, 0)];
            if !self.run()? {
                return Ok(false);
            }
            let runs = self.runs()?;
            let why = runs
                .died((self.cell(kind), variant), 0..1)
                .unwrap_or_default();
            match self.lacking(why) {
                None => kind += 1,
                Some(place) => {
                    let factor = self.asked.factors.remove(place);
                    let why = without_remedy(why);
                    self.left_out.push(format!("{}: {why}", factor.key));
                }
            }
        }
        self.asked.campaign.variants.clear();
        self.trials.clear();
        Ok(true)
    }

    /// If the campaign's kernel lacks a kind of swap, switches to the kernel that the arena suggests. Runs no trial.
    fn choose_kernel(&mut self, say: &dyn Fn(&str)) -> Result<(), RunError> {
        let of_kinds = (0..self.asked.kinds.len()).map(|kind| (kind, Vec::new()));
        let swaps = self
            .asked
            .factors
            .iter()
            .filter(|factor| factor.key == "swap");
        let of_factors = swaps.flat_map(|factor| {
            let levels = factor.levels.iter();
            levels.map(|level| (0, vec![(factor.key.clone(), level.clone())]))
        });
        for (kind, settings) in of_kinds.chain(of_factors).collect::<Vec<_>>() {
            if let Err(ArenaError::OtherKernel { why, kernel }) = self.tried(kind, &settings)? {
                say(&format!(
                    "takes --kernel {kernel}, which has all kinds of swap that are asked about: {}",
                    without_remedy(&why.to_string())
                ));
                self.base.kernel = kernel;
            }
        }
        Ok(())
    }

    /// Removes the settings and the kinds of swap (except the first) that the arena refuses for this kernel. Runs no
    /// trial.
    fn leave_out_refused(&mut self) -> Result<(), RunError> {
        let mut kind = 1;
        while kind < self.asked.kinds.len() {
            match self.refused(kind, &[])? {
                None => kind += 1,
                Some(why) => {
                    let kind = self.asked.kinds.remove(kind);
                    let swaps = &mut self.asked.campaign.scenarios[0].swap;
                    swaps.retain(|swap| *swap != kind.swap);
                    self.left_out.push(format!("swap on {}: {why}", kind.name));
                }
            }
        }
        let mut place = 0;
        while let Some(factor) = self.asked.factors.get(place).cloned() {
            let mut why = None;
            for level in factor.levels {
                why = why.or(self.refused(0, &[(factor.key.clone(), level)])?);
            }
            match why {
                None => place += 1,
                Some(why) => {
                    self.asked.factors.remove(place);
                    self.left_out.push(format!("{}: {why}", factor.key));
                }
            }
        }
        Ok(())
    }

    /// Returns the reason why the arena refuses a trial with these settings under the kind of swap with index `kind`;
    /// `None` if it does not.
    fn refused(
        &mut self,
        kind: usize,
        settings: &[(String, String)],
    ) -> Result<Option<String>, RunError> {
        Ok(match self.tried(kind, settings)? {
            Ok(()) => None,
            Err(ArenaError::OtherKernel { why, kernel }) => Some(format!(
                "{} (--kernel {kernel} has it)",
                without_remedy(&why.to_string())
            )),
            Err(why) => Some(without_remedy(&why.to_string())),
        })
    }

    /// Prepares a trial with these settings under the kind of swap with index `kind`. The inner error is the reason why
    /// the arena refuses the trial.
    fn tried(
        &mut self,
        kind: usize,
        settings: &[(String, String)],
    ) -> Result<Result<(), ArenaError>, RunError> {
        self.asked.campaign.variants.clear();
        let variant = self.variant(settings);
        let campaign = &self.asked.campaign;
        let cell = campaign.cells().nth(self.cell(kind));
        let Some(cell) = cell else {
            return Ok(Ok(()));
        };
        let trial = campaign.trial(&cell, variant, (0, 0), Pass::Timed);
        match prepared(self.site.arena, &trial) {
            Ok(_) => Ok(Ok(())),
            Err(RunError::Refused { source, .. }) => Ok(Err(source)),
            Err(other) => Err(other),
        }
    }

    /// Returns the index of the varied setting that the kernel lacks according to this reason for an invalid trial;
    /// `None` if the reason names none.
    fn lacking(&self, why: &str) -> Option<usize> {
        if !LACKS.iter().any(|part| why.contains(part)) {
            return None;
        }
        let is_named = |key: &str| why.contains(&format!("setting {key} "));
        let factors = &self.asked.factors;
        factors.iter().position(|factor| is_named(&factor.key))
    }

    /// Reads the default value of each setting from the run under the default settings. Derives the time limit for
    /// programs from that run.
    fn learn_defaults(&mut self) -> Result<(), RunError> {
        let keys: Vec<String> = self
            .note
            .entries
            .iter()
            .map(|entry| entry.key.clone())
            .collect();
        let rows = self.site.store.by_keys(&keys)?;
        if let Some(row) = rows.first() {
            let record = self.site.store.load(&row.id)?.into_record();
            self.defaults = record.results.settings;
        }
        if let Some(swap) = self
            .asked
            .factors
            .iter()
            .find(|factor| factor.key == "swap")
        {
            let default = (swap.key.clone(), swap.levels[0].clone());
            self.defaults.extend([default]);
        }
        let spec = &self.asked.campaign.scenarios[0];
        let is_limited = spec.name != PROGRAM || spec.params.contains_key(TIME_LIMIT);
        if let (false, Some(row)) = (is_limited, rows.iter().find(|row| row.is_valid())) {
            // Rounded up to whole seconds, for readability.
            let limit = Nanos((row.elapsed.0 * CUT).next_multiple_of(1_000_000_000));
            let params = &mut self.asked.campaign.scenarios[0].params;
            params.insert(TIME_LIMIT.to_owned(), vec![exact_time(limit)]);
        }
        Ok(())
    }

    /// Runs the requested trials that have no record. Returns false if stopped.
    fn run(&mut self) -> Result<bool, RunError> {
        let mut campaign = self.asked.campaign.clone();
        campaign.sampling.until = Until::Blocks(2 * self.asked.seeds);
        let cells: Vec<_> = campaign.cells().collect();
        if let (true, Some(cell)) = (self.label.is_empty(), cells.first()) {
            let trial = campaign.trial(cell, 0, (0, 0), Pass::Timed);
            self.label = prepared(self.site.arena, &trial)?.subject().cell_label();
        }
        let planned = |(kind, variant, block): &RunIndex| {
            campaign.planned(&cells, self.cell(*kind), *variant, (*block, 0), Pass::Timed)
        };
        let all: Vec<_> = self.trials.iter().map(planned).collect();
        self.site.run(&campaign, &all, &mut self.note)
    }

    fn runs(&self) -> Result<MatrixRuns, RunError> {
        let swaps = &self.asked.campaign.scenarios[0].swap;
        let variants = &self.asked.campaign.variants;
        let is_zram = |cell: usize, variant: usize| {
            let own = variants.get(variant).and_then(|own| own.swap.as_ref());
            own.or(swaps.get(cell)).is_some_and(|swap| swap.is_zram())
        };
        let runs = MatrixRuns::of(self.site.store, &self.note, &self.asked.metric, is_zram)?;
        match &runs.accident {
            Some(why) => Err(RunError::Arena(ArenaError::broken(why.clone()))),
            None => Ok(runs),
        }
    }

    fn effects(
        &self,
        kind: usize,
        variants: &[usize],
        fraction: &Fraction,
        runs: &MatrixRuns,
        blocks: &Range<u32>,
    ) -> KindEffects {
        let place = |variant: &usize| (self.cell(kind), *variant);
        let values: Vec<_> = variants
            .iter()
            .map(|variant| runs.logs(place(variant), blocks.clone()))
            .collect();
        let why = |variant: &usize| runs.died(place(variant), blocks.clone());
        let died: Vec<bool> = variants
            .iter()
            .map(|variant| why(variant).is_some())
            .collect();
        let blamed = blame(fraction, &died).into_iter().map(|(factor, second)| {
            let factor = &self.asked.factors[factor];
            (
                factor.key.clone(),
                factor.levels[usize::from(second)].clone(),
            )
        });
        KindEffects {
            swap: self.asked.kinds[kind].name.clone(),
            effects: fraction.effects(&values),
            interactions: fraction.interactions(&values),
            died: died.iter().filter(|died| **died).count(),
            why: variants.iter().find_map(why).map(str::to_owned),
            blamed: blamed.collect(),
            ..KindEffects::default()
        }
    }

    /// Returns the candidates, each with the index of its kind of swap and of its variant. The defaults of the first
    /// kind come first.
    fn candidates(
        &mut self,
        kinds: &[KindEffects],
        rows: &[Vec<bool>],
        places: &[Vec<usize>],
        combinations: &[Combinations],
        runs: &MatrixRuns,
        blocks: &Range<u32>,
    ) -> Vec<(Choice, usize, usize)> {
        let mut all: Vec<(Choice, usize, usize)> = Vec::new();
        for kind in 0..self.asked.kinds.len() {
            let mut sets = vec![Vec::new()];
            if let Some(effects) = kinds.get(kind) {
                let sure = effects.effects.iter().zip(&self.asked.factors);
                let better =
                    sure.filter(|(effect, _)| Matrixed::is_sure(effect))
                        .map(|(effect, factor)| {
                            let second = effect.share.is_some_and(|share| share < 0.0);
                            (
                                factor.key.clone(),
                                factor.levels[usize::from(second)].clone(),
                            )
                        });
                sets.push(better.collect());
            }
            let time = |variant: &usize| {
                let logs = runs.logs((self.cell(kind), *variant), blocks.clone());
                let logs: Option<Vec<f64>> = logs.into_iter().collect();
                mean(&logs?).ok()
            };
            let ran = combinations.get(kind).filter(|ran| !ran.rows.is_empty());
            if let Some(ran) = ran {
                let costs: Vec<Option<f64>> = ran.variants.iter().map(time).collect();
                let default = self.default_levels(&ran.factors);
                let worth = worth_choosing(&ran.rows, &costs, &default, SAME);
                sets.extend(worth.iter().map(|row| self.levels_of(&ran.factors, row)));
            }
            let timed = places.get(kind).into_iter().flatten().zip(rows);
            let fastest = timed
                .filter_map(|(variant, row)| Some((time(variant)?, row)))
                .min_by(|a, b| a.0.total_cmp(&b.0));
            if let (None, Some((_, row))) = (ran, fastest) {
                // A setting without an effect is left out of a choice.
                let effects = kinds.get(kind).map_or(&[][..], |kind| &kind.effects);
                let moves = |effect: &Effect| effect.share.is_none_or(|share| share.abs() >= SAME);
                let levels = self.levels(row).into_iter().zip(effects);
                let moved = levels.filter_map(|(level, effect)| moves(effect).then_some(level));
                sets.push(moved.collect());
            }
            for mut settings in sets {
                let reads = |key: &String| self.defaults.get(key);
                settings.retain(|(key, level)| !reads(key).is_some_and(|read| means(read, level)));
                let variant = self.variant(&settings);
                let known = |(_, k, v): &(Choice, usize, usize)| (*k, *v) == (kind, variant);
                if all.iter().any(known) {
                    continue;
                }
                let factor = self
                    .asked
                    .factors
                    .iter()
                    .find(|factor| factor.key == "swap");
                let own = settings.iter().position(|(key, _)| key == "swap");
                let swap = match (own.map(|place| settings.remove(place)), factor) {
                    (Some((_, swap)), _) => swap,
                    (None, Some(factor)) => factor.levels[0].clone(),
                    (None, None) => self.asked.kinds[kind].name.clone(),
                };
                let choice = Choice {
                    swap,
                    settings,
                    ..Choice::default()
                };
                all.push((choice, kind, variant));
            }
        }
        all
    }
}

/// Returns the reason without the part after its last colon. That part is advice, and does not fit a setting that the
/// user did not ask for.
fn without_remedy(why: &str) -> String {
    why.rsplit_once(": ")
        .map_or(why, |(what, _)| what)
        .to_owned()
}
