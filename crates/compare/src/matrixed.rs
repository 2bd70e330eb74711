//! Results of running a matrix of settings: which settings have an effect under which kind of swap, and which to
//! choose.

use std::collections::{BTreeMap, HashMap};

use pagetide_quantity::PAGE_SIZE;
use pagetide_record::ArenaKind;
use pagetide_store::{CampaignNote, Store};
use pagetide_verdict::choice::{self, SAME};
use pagetide_verdict::factorial::{Effect, Interaction, adjust};
use pagetide_verdict::number::{log_ratio, mean};
use pagetide_verdict::squeeze::Outcome;
use serde::Serialize;

use crate::error::CompareError;
use crate::judge::ALPHA;
use crate::squeezed::{cost, short, value};

/// Costs of one run; `None` for a cost that was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunCosts {
    /// Value of the primary metric, as a cost: the reciprocal if higher is better.
    pub time: f64,
    /// Peak of the program's memory cgroup, or else its peak resident set size, in bytes; `None` if neither was
    /// measured.
    pub memory: Option<f64>,
    /// Data written to disks, in bytes; `None` if not measured.
    pub written: Option<f64>,
    /// Number of reclaimed pages; `None` if not measured.
    pub reclaimed: Option<f64>,
}

/// Runs of a cell under a variant, by block number: the costs of a run, or the reason why it has none because it died
/// or lacks the metric.
pub type RunsOfCell = BTreeMap<u32, Result<RunCosts, String>>;

/// All runs of a campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MatrixRuns {
    /// Runs by index of the cell and index of the variant.
    pub runs: BTreeMap<(usize, usize), RunsOfCell>,
    /// Reason why a run is invalid through a fault of the host machine; `None` if there was no such run.
    pub accident: Option<String>,
}

impl MatrixRuns {
    /// Reads the runs of a campaign from the store. `is_zram` takes the index of a cell and of a variant, and returns
    /// true if they swap to zram; then pages written to swap do not count as written to disk. A run with several
    /// records counts once.
    pub fn of(
        store: &Store,
        note: &CampaignNote,
        metric: &str,
        is_zram: impl Fn(usize, usize) -> bool,
    ) -> Result<Self, CompareError> {
        let mut all = Self::default();
        let keys: Vec<String> = note.entries.iter().map(|entry| entry.key.clone()).collect();
        let rows = store.by_keys(&keys)?;
        let mut by_key = HashMap::new();
        for row in &rows {
            let kept = by_key.entry(row.key.as_str()).or_insert(row);
            if kept.accident && !row.accident {
                *kept = row;
            }
        }
        let Some(first) = rows.first() else {
            return Ok(all);
        };
        let places: Vec<i64> = rows.iter().map(|row| row.row).collect();
        let metrics = store.metrics(&first.cell.subject.scenario, &places)?;
        for entry in &note.entries {
            let Some(row) = by_key.get(entry.key.as_str()) else {
                continue;
            };
            let result = match &row.invalid {
                Some(why) if row.accident => {
                    all.accident = Some(why.to_string());
                    continue;
                }
                Some(why) => Err(why.to_string()),
                None => {
                    let of = |name: &str| value(&metrics, row.row, name)?.value.number();
                    let written = of("written").map(|bytes| {
                        let swapped = of("swapped-out").unwrap_or(0.0) * PAGE_SIZE as f64;
                        let to_memory = if is_zram(entry.cell, entry.variant) {
                            swapped
                        } else {
                            0.0
                        };
                        (bytes - to_memory).max(0.0)
                    });
                    match cost(&metrics, row.row, metric) {
                        Outcome::Cost(time) => Ok(RunCosts {
                            time,
                            memory: of("group-peak").or_else(|| of("peak-rss")),
                            written,
                            reclaimed: of("reclaimed"),
                        }),
                        Outcome::Died(why) => Err(why),
                    }
                }
            };
            let cell = all.runs.entry((entry.cell, entry.variant)).or_default();
            cell.insert(entry.unit, result);
        }
        Ok(all)
    }

    /// Returns the natural logarithms of the times in these blocks; `None` for a run without a time. `place` is the
    /// index of the cell and of the variant.
    pub fn logs(&self, place: (usize, usize), blocks: std::ops::Range<u32>) -> Vec<Option<f64>> {
        let runs = self.runs.get(&place);
        let of = |block| match runs?.get(&block)? {
            Ok(costs) => Some(libm::log(costs.time)),
            Err(_) => None,
        };
        blocks.map(of).collect()
    }

    /// Returns the full reason why the first run without costs in these blocks has none; `None` if all runs have costs.
    /// `place` is the index of the cell and of the variant.
    pub fn died(&self, place: (usize, usize), blocks: std::ops::Range<u32>) -> Option<&str> {
        let runs = self.runs.get(&place)?;
        runs.range(blocks)
            .find_map(|(_, run)| run.as_ref().err().map(String::as_str))
    }
}

/// Results of a finished matrix of settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Matrixed {
    /// Label of the workload with the first kind of swap.
    pub cell: String,
    /// Name of the primary metric.
    pub metric: String,
    /// The settings that were varied.
    pub factors: Vec<Factor>,
    /// Number of runs of the design for each kind of swap and seed.
    pub runs: usize,
    /// Resolution of the fractional design; `None` if the design has all combinations of settings.
    pub resolution: Option<u32>,
    /// Number of seeds of the design. The choices ran with the same number of other seeds.
    pub seeds: u32,
    /// Effects of the settings, one entry for each kind of swap.
    pub kinds: Vec<KindEffects>,
    /// Settings that were left out, each with the reason.
    pub left_out: Vec<String>,
    /// Choices of settings, the defaults first. They ran with seeds that the design did not use.
    pub choices: Vec<Choice>,
    /// Index of the recommended choice in `choices`; 0 for the defaults.
    pub recommended: usize,
    /// Number of trials, without those that found out which settings the kernel has.
    pub trials: usize,
    /// The arena of the trials.
    pub arena: ArenaKind,
    /// ID of the campaign that contains the records.
    pub campaign: String,
}

/// A setting that was varied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Factor {
    /// Name of the setting.
    pub key: String,
    /// The two values of the setting.
    pub levels: [String; 2],
}

/// Effects of the settings under one kind of swap.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KindEffects {
    /// Name of the kind of swap.
    pub swap: String,
    /// For each factor, effect on the metric (as a cost) of changing the factor to its second level.
    pub effects: Vec<Effect>,
    /// Interactions of two factors. Pairs that the design cannot distinguish share one entry.
    pub interactions: Vec<Interaction>,
    /// Indices of the factors whose combinations all ran afterwards, with the other factors at their defaults; empty if
    /// the design has all combinations, or if no effect is significant.
    pub active: Vec<usize>,
    /// Interactions of the active factors, one for each pair. They replace the entries of `interactions` that include
    /// such a pair.
    pub told_apart: Vec<Interaction>,
    /// Number of runs of the design that died with at least one of the seeds.
    pub died: usize,
    /// Reason of the first death among the runs in `died`; `None` if no run died.
    pub why: Option<String>,
    /// Factors and levels that all runs in `died` have in common, but not all other runs. Empty if no run or every run
    /// died.
    pub blamed: Vec<(String, String)>,
}

/// A combination of settings that the user may choose, under one kind of swap.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Choice {
    /// Name of the kind of swap.
    pub swap: String,
    /// Names and values of the settings that differ from their defaults.
    pub settings: Vec<(String, String)>,
    /// Mean of the primary metric, as a cost; `None` without a valid run.
    pub time: Option<f64>,
    /// Mean of the peak memory in use, in bytes; `None` if it was not measured in every valid run.
    pub memory: Option<f64>,
    /// Mean of the bytes written to disks; `None` if they were not measured in every valid run.
    pub written: Option<f64>,
    /// Effect on the primary metric relative to the defaults, adjusted for the number of choices.
    pub against: Effect,
    /// Largest number of pages reclaimed in a run; `None` if they were not counted in every valid run.
    pub reclaimed: Option<f64>,
    /// True if no run of this choice died, and no other choice is significantly better in one cost and as good in the
    /// others.
    pub is_on_front: bool,
    /// Why a run of this choice died; `None` if none did.
    pub died: Option<String>,
}

impl Choice {
    /// True if no run of this choice died, and none reclaimed a page.
    pub fn is_without_pressure(&self) -> bool {
        self.died.is_none() && self.reclaimed == Some(0.0)
    }

    /// True if no run of the choice died and it is significantly faster than the defaults, by at least 1 %.
    pub fn is_surely_faster(&self) -> bool {
        self.died.is_none()
            && self.against.is_sure(ALPHA, SAME)
            && self.against.share.is_some_and(|share| share < 0.0)
    }
}

impl Matrixed {
    /// True if an effect is statistically significant and at least 1 % in either direction.
    pub fn is_sure(effect: &Effect) -> bool {
        effect.is_sure(ALPHA, SAME)
    }

    /// True if no run of any choice died or reclaimed a page, so that settings of reclaim had no effect.
    pub fn is_without_pressure(&self) -> bool {
        !self.choices.is_empty() && self.choices.iter().all(Choice::is_without_pressure)
    }
}

impl KindEffects {
    /// Returns the significant interactions. If all combinations of the active factors ran, the interactions of these
    /// factors are taken from those runs, and all others from the design.
    pub fn sure_interactions(&self) -> impl Iterator<Item = &Interaction> {
        let is_active = |pair: &[usize; 2]| pair.iter().all(|factor| self.active.contains(factor));
        let of_design = self
            .interactions
            .iter()
            .filter(move |interaction| !interaction.pairs.iter().any(is_active));
        let all = self.told_apart.iter().chain(of_design);
        all.filter(|interaction| Matrixed::is_sure(&interaction.effect))
    }
}

/// Judges choices by their runs in these blocks. `asked` lists each choice with the index of its cell and variant; the
/// first choice must be the defaults. Returns the choices and the index of the recommended one.
pub fn choices(
    asked: Vec<(Choice, (usize, usize))>,
    runs: &MatrixRuns,
    blocks: &std::ops::Range<u32>,
) -> (Vec<Choice>, usize) {
    let times = |place| runs.logs(place, blocks.clone());
    let baseline = asked
        .first()
        .map(|(_, place)| times(*place))
        .unwrap_or_default();
    let mut costs = Vec::new();
    let mut all: Vec<Choice> = Vec::new();
    for (number, (mut choice, place)) in asked.into_iter().enumerate() {
        let of_cell = runs.runs.get(&place);
        let valid: Vec<RunCosts> = of_cell
            .into_iter()
            .flat_map(|runs| runs.range(blocks.clone()))
            .filter_map(|(_, run)| run.as_ref().ok().copied())
            .collect();
        let kind = |of: &dyn Fn(&RunCosts) -> Option<f64>| -> Vec<f64> {
            let values: Option<Vec<f64>> = valid.iter().map(of).collect();
            values.unwrap_or_default()
        };
        let own = vec![
            kind(&|run| Some(run.time)),
            kind(&|run| run.memory),
            kind(&|run| run.written),
        ];
        let means = |values: &Vec<f64>| mean(values).ok();
        (choice.time, choice.memory, choice.written) =
            (means(&own[0]), means(&own[1]), means(&own[2]));
        choice.died = runs.died(place, blocks.clone()).map(short);
        choice.reclaimed = kind(&|run| run.reclaimed).into_iter().reduce(f64::max);
        if number > 0 {
            let pairs = baseline.iter().zip(times(place));
            let by_seed = pairs.filter_map(|(a, b)| Some(b? - (*a)?)).collect();
            choice.against = Effect::of(by_seed);
        }
        costs.push(own);
        all.push(choice);
    }
    adjust(all.iter_mut().map(|choice| &mut choice.against));
    let alive: Vec<usize> = (0..all.len()).filter(|i| all[*i].died.is_none()).collect();
    let alive_costs: Vec<choice::Costs> = alive.iter().map(|i| costs[*i].clone()).collect();
    for (place, is_on_front) in alive.iter().zip(choice::front(&alive_costs)) {
        all[*place].is_on_front = is_on_front;
    }
    let recommended = recommended(&all);
    (all, recommended)
}

/// Returns the index of the recommended choice; 0, the defaults, without candidates. Candidates are the choices that
/// are surely faster than the defaults or, if the defaults died, all that did not die. If neither a choice nor the
/// defaults reclaimed a page, the choice is no candidate, because its settings cannot have had an effect. Of the
/// candidates that are not surely slower than the fastest one, the one with the fewest settings is recommended.
fn recommended(all: &[Choice]) -> usize {
    let is_dead = all.first().is_some_and(|defaults| defaults.died.is_some());
    let is_idle = all.first().is_some_and(Choice::is_without_pressure);
    let candidates = || {
        let fit = move |(_, choice): &(usize, &Choice)| {
            let has_cause = !(is_idle && choice.is_without_pressure());
            has_cause && choice.is_surely_faster() || is_dead && choice.died.is_none()
        };
        all.iter().enumerate().skip(1).filter(fit)
    };
    let time = |choice: &Choice| choice.time.unwrap_or(f64::INFINITY);
    let fastest = candidates().min_by(|(_, a), (_, b)| time(a).total_cmp(&time(b)));
    let Some((_, fastest)) = fastest else {
        return 0;
    };
    let near = candidates().filter(|(_, choice)| !is_surely_slower(choice, fastest));
    let simplest = near.min_by(|(_, a), (_, b)| {
        let size = |choice: &Choice| choice.settings.len();
        size(a).cmp(&size(b)).then(time(a).total_cmp(&time(b)))
    });
    simplest.map_or(0, |(place, _)| place)
}

/// True if a choice is slower than the fastest one by more than the margin, and surely so if both have times of the
/// same seeds. Settings without an effect would otherwise be recommended where they were a little faster by chance.
fn is_surely_slower(choice: &Choice, fastest: &Choice) -> bool {
    let time = |choice: &Choice| choice.time.unwrap_or(f64::INFINITY);
    let is_slower = log_ratio(time(fastest), time(choice)) > libm::log1p(SAME);
    let (own, other) = (&choice.against.by_seed, &fastest.against.by_seed);
    if !is_slower || own.is_empty() || own.len() != other.len() {
        return is_slower;
    }
    let by_seed = own.iter().zip(other).map(|(own, other)| own - other);
    Effect::of(by_seed.collect()).p.is_none_or(|p| p <= ALPHA)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(times: &[&[f64]]) -> MatrixRuns {
        let of = |times: &&[f64]| -> RunsOfCell {
            let run = |(block, time): (usize, &f64)| {
                let costs = RunCosts {
                    time: *time,
                    memory: Some(1e6),
                    written: Some(0.0),
                    reclaimed: Some(1000.0),
                };
                let result = if time.is_nan() {
                    Err("the kernel killed x for lack of memory after 1 s: raise".to_owned())
                } else {
                    Ok(costs)
                };
                (u32::try_from(block).unwrap(), result)
            };
            times.iter().enumerate().map(run).collect()
        };
        let places = (0..times.len()).map(|variant| (0, variant));
        MatrixRuns {
            runs: places.zip(times.iter().map(of)).collect(),
            accident: None,
        }
    }

    fn judged(settings: &[usize], times: &[&[f64]]) -> (Vec<Choice>, usize) {
        let choice = |(variant, count): (usize, &usize)| {
            let settings = (0..*count).map(|n| (format!("s{n}"), "1".to_owned()));
            let choice = Choice {
                settings: settings.collect(),
                ..Choice::default()
            };
            (choice, (0, variant))
        };
        let asked = settings.iter().enumerate().map(choice).collect();
        choices(asked, &runs(times), &(0..4))
    }

    const DEFAULTS: &[f64] = &[1.0, 1.02, 0.99, 1.01];

    #[test]
    fn if_nothing_is_surely_faster_the_defaults_are_recommended() {
        let (all, recommended) = judged(&[0, 1], &[DEFAULTS, &[0.7, 1.3, 0.8, 1.1]]);
        assert_eq!(recommended, 0);
        assert!(!all[1].is_surely_faster() && all[1].is_on_front);
        let (_, recommended) = judged(&[0, 1], &[DEFAULTS, &[1.2, 1.22, 1.19, 1.21]]);
        assert_eq!(recommended, 0, "slower is no recommendation");
    }

    #[test]
    fn of_two_that_are_as_fast_the_one_with_fewer_settings_is_taken() {
        let fast = [0.5, 0.51, 0.495, 0.505];
        let faster = fast.map(|time| time * 0.995);
        let (all, recommended) = judged(&[0, 3, 1], &[DEFAULTS, &faster, &fast]);
        assert_eq!(recommended, 2);
        assert!(all[1].is_on_front && all[2].is_on_front && !all[0].is_on_front);
        let (_, recommended) = judged(&[0, 3, 1], &[DEFAULTS, &fast.map(|t| t * 0.9), &fast]);
        assert_eq!(recommended, 1, "a tenth is worth two settings");
        // Two per cent faster on average, but not surely.
        let by_chance = [0.465, 0.515, 0.48, 0.51];
        let (_, recommended) = judged(&[0, 3, 1], &[DEFAULTS, &by_chance, &fast]);
        assert_eq!(recommended, 2);
    }

    #[test]
    fn if_nothing_was_reclaimed_nothing_is_recommended() {
        let fast = [0.5, 0.51, 0.495, 0.505];
        let mut idle = runs(&[DEFAULTS, &fast]);
        for run in idle.runs.values_mut().flat_map(BTreeMap::values_mut) {
            run.as_mut().unwrap().reclaimed = Some(0.0);
        }
        let asked = |number: usize| (Choice::default(), (0, number));
        let (all, recommended) = choices(vec![asked(0), asked(1)], &idle, &(0..4));
        assert!(all[1].is_surely_faster() && all[1].is_without_pressure());
        assert_eq!(recommended, 0);
        // If the defaults reclaimed even one page, settings may have had an effect.
        let defaults = idle.runs.get_mut(&(0, 0)).unwrap();
        defaults.get_mut(&2).unwrap().as_mut().unwrap().reclaimed = Some(1.0);
        assert_eq!(choices(vec![asked(0), asked(1)], &idle, &(0..4)).1, 1);
    }

    #[test]
    fn what_died_is_never_chosen_and_defaults_that_died_are_left() {
        let dead = [0.1, f64::NAN, 0.1, 0.1];
        let (all, recommended) = judged(&[0, 1], &[DEFAULTS, &dead]);
        assert_eq!((recommended, all[1].is_on_front), (0, false));
        assert_eq!(
            all[1].died.as_deref(),
            Some("was killed for lack of memory")
        );
        let (_, recommended) = judged(&[0, 1, 1], &[&dead, &dead, &[3.0, 3.0, 3.0, 3.1]]);
        assert_eq!(recommended, 2);
        assert_eq!(judged(&[], &[]).1, 0);
    }
}
