//! Two-level fractional factorial designs: which of several factors have an effect, from few runs.
//!
//! # The design
//!
//! Every factor has two levels, and every run sets all factors. With up to three factors, all combinations of levels
//! run. With more factors, the first three or four run in all combinations, and the levels of each other factor are
//! products of their levels ([`GENERATORS`]). These are the designs 2^(4-1), 2^(5-1), 2^(6-2), 2^(7-3) and 2^(8-4) of
//! Box and Hunter (1961), *The 2^(k-p) fractional factorial designs*, Technometrics 3, 311 and 449, tabulated in Box,
//! Hunter and Hunter, *Statistics for Experimenters* (2nd edition, 2005), table 6.22. All have at least resolution IV:
//!
//! - a main effect is aliased with interactions of three or more factors, but not with an interaction of two. So two
//!   factors that have an effect only in combination cause no false main effect;
//! - interactions of two factors are aliased with each other: an [`Interaction`] lists all pairs with the same
//!   contrast. If an interaction with several pairs is claimed, all combinations of the [`active`] factors run, which
//!   separates the pairs.
//!
//! # The effects
//!
//! A value is the logarithm of a cost. For each seed, the effect of a factor is the mean over the runs at its second
//! level minus the mean over the runs at its first level, so anything that a seed does to all runs cancels. The effects
//! of the seeds get Student's interval and p-value ([`mod@crate::student`]), which do not assume that the noise of
//! different runs is independent. All p-values of a family are adjusted together by Holm (1979), *A simple sequentially
//! rejective multiple test procedure*, Scandinavian Journal of Statistics 6, 65: without any effect, at most a fraction
//! α of all campaigns make a claim.
//!
//! A seed with a missing run is left out, because the remaining runs are not balanced. If a run failed under every seed
//! there are no effects, and [`blame`] returns the levels that all failed runs have in common.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::number::mean;
use crate::student;

/// Maximum number of factors in a design.
pub const MAX_FACTORS: usize = 8;
/// Maximum number of factors for which all combinations of levels run.
pub const MAX_ACTIVE: usize = 4;

/// Designs for four to eight factors. Each has the number of base factors, whose combinations all run. Then, for each
/// other factor, it lists the base factors whose levels are multiplied to get its level.
const GENERATORS: [(usize, &[&[usize]]); 5] = [
    (3, &[&[0, 1, 2]]),
    (4, &[&[0, 1, 2, 3]]),
    (4, &[&[0, 1, 2], &[1, 2, 3]]),
    (4, &[&[0, 1, 2], &[1, 2, 3], &[0, 2, 3]]),
    (4, &[&[1, 2, 3], &[0, 2, 3], &[0, 1, 2], &[0, 1, 3]]),
];

/// The runs of a design, with the level of each factor in each run; true is the second level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fraction {
    runs: Vec<Vec<bool>>,
    resolution: Option<u32>,
}

impl Fraction {
    /// Returns the design for this number of factors; `None` for 0 or more than [`MAX_FACTORS`].
    pub fn of(factors: usize) -> Option<Self> {
        if factors == 0 || factors > MAX_FACTORS {
            return None;
        }
        let (base, products) = match factors.checked_sub(4) {
            Some(place) => GENERATORS[place],
            None => (factors, &[][..]),
        };
        let run = |number: usize| {
            let mut levels: Vec<bool> = (0..base).map(|bit| number >> bit & 1 == 1).collect();
            for product in products {
                // A product of signs is positive if an even number of them is negative.
                let low = product.iter().filter(|factor| !levels[**factor]).count();
                levels.push(low % 2 == 0);
            }
            levels
        };
        Some(Self {
            runs: (0..1 << base).map(run).collect(),
            resolution: match factors {
                0..=3 => None,
                5 => Some(5),
                _ => Some(4),
            },
        })
    }

    /// Returns the levels of each run. In the last run all factors are at their second level.
    pub fn runs(&self) -> &[Vec<bool>] {
        &self.runs
    }

    /// Returns the resolution of the design; `None` if all combinations run.
    pub fn resolution(&self) -> Option<u32> {
        self.resolution
    }

    /// Returns the design that has all combinations of this number of factors; `None` for 0 or more than
    /// [`MAX_ACTIVE`].
    pub fn whole(factors: usize) -> Option<Self> {
        let run = |number: usize| (0..factors).map(|bit| number >> bit & 1 == 1).collect();
        (1..=MAX_ACTIVE).contains(&factors).then(|| Self {
            runs: (0..1 << factors).map(run).collect(),
            resolution: None,
        })
    }

    /// Returns the effect of each factor, in the order of the design. `values` holds one log cost per run and seed; a
    /// missing value is `None`.
    pub fn effects(&self, values: &[Vec<Option<f64>>]) -> Vec<Effect> {
        let factors = self.runs.first().map_or(0, Vec::len);
        let contrasts = (0..factors).map(|factor| self.contrast(&[factor]));
        self.of_contrasts(contrasts.collect(), values)
    }

    /// Returns the interactions of two factors, one per contrast. Each lists all pairs of factors that have this
    /// contrast.
    pub fn interactions(&self, values: &[Vec<Option<f64>>]) -> Vec<Interaction> {
        let factors = self.runs.first().map_or(0, Vec::len);
        let mut all: Vec<(Vec<bool>, Vec<[usize; 2]>)> = Vec::new();
        for second in 1..factors {
            for first in 0..second {
                let contrast = self.contrast(&[first, second]);
                match all.iter_mut().find(|(known, _)| *known == contrast) {
                    Some((_, pairs)) => pairs.push([first, second]),
                    None => all.push((contrast, vec![[first, second]])),
                }
            }
        }
        let (contrasts, pairs): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let effects = self.of_contrasts(contrasts, values);
        let pairs = pairs.into_iter().zip(effects);
        pairs
            .map(|(pairs, effect)| Interaction { pairs, effect })
            .collect()
    }

    /// Returns the sign of a product of factors in each run: true if an even number of them is at the first level.
    fn contrast(&self, factors: &[usize]) -> Vec<bool> {
        let low = |run: &Vec<bool>| factors.iter().filter(|factor| !run[**factor]).count();
        self.runs.iter().map(|run| low(run) % 2 == 0).collect()
    }

    /// Returns the effect of each contrast: mean over the runs in which the contrast is true, minus mean over the other
    /// runs.
    fn of_contrasts(&self, contrasts: Vec<Vec<bool>>, values: &[Vec<Option<f64>>]) -> Vec<Effect> {
        let seeds = values.iter().map(Vec::len).max().unwrap_or(0);
        let whole = |seed: usize| -> Option<Vec<f64>> {
            let of = |run: usize| values.get(run)?.get(seed).copied().flatten();
            let all: Option<Vec<f64>> = (0..self.runs.len()).map(of).collect();
            all.filter(|all| all.iter().all(|value| value.is_finite()))
        };
        let seeds: Vec<Vec<f64>> = (0..seeds).filter_map(whole).collect();
        let half = self.runs.len() as f64 / 2.0;
        let effect = |contrast: Vec<bool>| {
            let of_seed = |values: &Vec<f64>| {
                let signed =
                    |(is_high, value): (&bool, &f64)| if *is_high { *value } else { -value };
                contrast.iter().zip(values).map(signed).sum::<f64>() / half
            };
            Effect::of(seeds.iter().map(of_seed).collect())
        };
        contrasts.into_iter().map(effect).collect()
    }
}

/// An interaction of two factors: compares the cost of the runs in which both have the same level with the cost of the
/// runs in which their levels differ.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Interaction {
    /// Pairs of factors, as indices in the design; several if the design cannot separate them.
    pub pairs: Vec<[usize; 2]>,
    /// Size of the interaction: the cost with equal levels against the cost with different levels.
    pub effect: Effect,
}

/// Returns the factors named by a claimed effect or interaction, in the order of the design. If there are more than
/// [`MAX_ACTIVE`], only the factors with the largest sums of claimed effects are returned.
pub fn active(
    effects: &[Effect],
    interactions: &[Interaction],
    is_sure: impl Fn(&Effect) -> bool,
) -> Vec<usize> {
    let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
    let mut name = |factor: usize, effect: &Effect| {
        if is_sure(effect) {
            *sums.entry(factor).or_default() += effect.share.map_or(0.0, f64::abs);
        }
    };
    for (factor, effect) in effects.iter().enumerate() {
        name(factor, effect);
    }
    for interaction in interactions {
        for factor in interaction.pairs.iter().flatten() {
            name(*factor, &interaction.effect);
        }
    }
    let mut all: Vec<(usize, f64)> = sums.into_iter().collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut factors: Vec<usize> = all.into_iter().take(MAX_ACTIVE).map(|(at, _)| at).collect();
    factors.sort_unstable();
    factors
}

/// Returns the sets of levels worth choosing in a design with all combinations. `costs` has the mean log cost of each
/// run; `None` if the run failed. For each number of changes from `default`, the cheapest run is returned if its cost
/// is more than `same` below that of `default` and of all runs chosen for fewer changes. Each single change whose cost
/// is more than `same` below that of `default` is returned too. `same` is a difference of logarithms.
pub fn worth_choosing(
    runs: &[Vec<bool>],
    costs: &[Option<f64>],
    default: &[bool],
    same: f64,
) -> Vec<Vec<bool>> {
    let changes = |run: &[bool]| run.iter().zip(default).filter(|(a, b)| a != b).count();
    let timed = || {
        let timed = runs.iter().zip(costs);
        timed.filter_map(|(run, cost)| Some((run, (*cost)?)))
    };
    let with = |count: usize| timed().filter(move |(run, _)| changes(run) == count);
    let of_default = with(0).next().map_or(f64::INFINITY, |(_, cost)| cost);
    let mut all: Vec<Vec<bool>> = Vec::new();
    let mut least = of_default;
    for count in 1..=default.len() {
        let cheapest = with(count).min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((run, cost)) = cheapest
            && least - cost > same
        {
            all.push(run.clone());
            least = cost;
        }
    }
    let helps = with(1).filter(|(_, cost)| of_default - cost > same);
    all.extend(helps.map(|(run, _)| run.clone()));
    let mut kept: Vec<Vec<bool>> = Vec::new();
    for levels in all {
        if !kept.contains(&levels) {
            kept.push(levels);
        }
    }
    kept
}

/// Effect of a factor's second level against its first level, or of an interaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Effect {
    /// Effect in each seed that has all runs, as a log ratio.
    pub by_seed: Vec<f64>,
    /// Mean effect as a fraction: 0.05 means that the cost is 5 % higher. `None` without seeds.
    pub share: Option<f64>,
    /// 95 % interval of `share`, not adjusted for other effects.
    pub interval: Option<[f64; 2]>,
    /// Student's p-value, not adjusted for other effects.
    pub p: Option<f64>,
    /// p-value adjusted for all effects of the family by [`adjust`].
    pub adjusted: Option<f64>,
}

impl Effect {
    /// Computes the mean effect, its interval and its p-value from one log ratio per seed.
    pub fn of(by_seed: Vec<f64>) -> Self {
        let interval = student::interval(&by_seed).ok();
        Self {
            share: mean(&by_seed).ok().map(libm::expm1),
            interval: interval.map(|i| [libm::expm1(i.low), libm::expm1(i.high)]),
            p: student::p_value(&by_seed).ok(),
            adjusted: None,
            by_seed,
        }
    }

    /// True if the effect is significant at level `alpha` for the whole family, and the mean effect is at least the
    /// fraction `least` in either direction.
    pub fn is_sure(&self, alpha: f64, least: f64) -> bool {
        let is_large = self.share.is_some_and(|share| share.abs() >= least);
        is_large && self.adjusted.is_some_and(|p| p <= alpha)
    }
}

/// Adjusts the p-values of a family of effects with Holm's procedure. Effects without a p-value do not count.
pub fn adjust<'a>(family: impl Iterator<Item = &'a mut Effect>) {
    let mut all: Vec<&mut Effect> = family.filter(|effect| effect.p.is_some()).collect();
    all.sort_by(|a, b| a.p.unwrap_or(1.0).total_cmp(&b.p.unwrap_or(1.0)));
    let mut least = 0.0_f64;
    let count = all.len();
    for (place, effect) in all.into_iter().enumerate() {
        let p = effect.p.unwrap_or(1.0) * (count - place) as f64;
        least = least.max(p.min(1.0));
        effect.adjusted = Some(least);
    }
}

/// Returns the levels that all failed runs have in common and that at least one other run does not have. Each is the
/// index of a factor, and true for the second level. `died` holds one flag per run. Empty if no run or every run
/// failed.
pub fn blame(fraction: &Fraction, died: &[bool]) -> Vec<(usize, bool)> {
    let dead: Vec<&Vec<bool>> = fraction
        .runs()
        .iter()
        .zip(died)
        .filter_map(|(run, died)| died.then_some(run))
        .collect();
    let Some(first) = dead.first() else {
        return Vec::new();
    };
    if dead.len() == fraction.runs().len() {
        return Vec::new();
    }
    (0..first.len())
        .filter(|factor| dead.iter().all(|run| run[*factor] == first[*factor]))
        .map(|factor| (factor, first[factor]))
        .collect()
}
