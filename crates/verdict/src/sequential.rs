//! Sampling until sure: looks at the data on the way, with an error rate that holds in spite of looking.
//!
//! The looks are planned before the first trial. Each spends a part of the error rate (Lan and DeMets 1983), and the
//! boundary that spends it follows from the joint distribution of the statistics at all looks so far (Armitage,
//! McPherson and Rowe 1969), by numerical integration. Two things are peculiar here:
//!
//! - Rank tests of few values have few p-values. A boundary is lowered to the next p-value that can occur, and what this
//!   leaves unspent goes to later looks.
//! - Primary metrics share the error rate by Holm's steps, with boundaries computed for each share of it (Maurer and
//!   Bretz 2013).
//!
//! Intervals at each look have the level of that look's threshold: repeated confidence intervals (Jennison and Turnbull
//! 1989), which cover the truth at all looks together with at least the level asked for. So stopping because the
//! interval lies inside the margin is as safe as stopping because it left zero.

use serde::{Deserialize, Serialize};

use crate::error::{Result, StatError};
use crate::judge::judge_by;
use crate::judgement::{Judgement, Verdict};
use crate::normal;
use crate::number::{floor_u64, probability};
use crate::rule::Rule;
use crate::sample::Family;
use crate::{rank_sum, signed_rank};

/// How the error rate is spread over the looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spending {
    /// Much of it early: clear effects end a campaign soon. α ln(1 + (e − 1) t).
    #[default]
    Pocock,
    /// Nearly all of it at the end: early stops need overwhelming evidence, the last look is almost that of a fixed
    /// number of trials. 4 (1 − Φ(z(1 − α/4) / √t)).
    ObrienFleming,
}

impl Spending {
    /// How much of `alpha` may be spent when the part `t` of all trials has been run.
    pub fn spent(self, alpha: f64, t: f64) -> f64 {
        if t >= 1.0 {
            return alpha;
        }
        match self {
            Self::Pocock => alpha * libm::log1p((std::f64::consts::E - 1.0) * t),
            Self::ObrienFleming => {
                let z = normal::quantile(alpha / 4.0) / t.sqrt();
                (4.0 * normal::cdf(z)).min(alpha)
            }
        }
    }
}

/// How trials of A and B belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// By seed or block.
    #[default]
    Paired,
    /// Not at all; both variants have as many trials.
    Unpaired,
}

impl Design {
    /// The smallest p-value of `n` pairs, or of `n` trials of each variant.
    fn smallest_p(self, n: u64) -> f64 {
        match self {
            Self::Paired => signed_rank::smallest_p(n),
            Self::Unpaired => rank_sum::smallest_p(n, n),
        }
    }

    /// The largest level at most `nominal` that the rank test of `n` can have; 0 where it has none.
    fn attainable(self, n: u64, nominal: f64) -> f64 {
        let n = usize::try_from(n).unwrap_or(usize::MAX);
        let error = match self {
            Self::Paired => signed_rank::cut(n, nominal).error,
            Self::Unpaired => rank_sum::cut(n, n, nominal).error,
        };
        if error <= nominal * (1.0 + 1e-9) {
            error
        } else {
            0.0
        }
    }
}

/// When to look, and what to claim at each look.
///
/// Not read back from anywhere: store the looks and make the plan again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    looks: Vec<u64>,
    rules: Vec<Rule>,
}

/// What to do after a look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "decision")]
pub enum Decision {
    /// Run no more.
    Stop {
        /// Why.
        why: Why,
        /// The final judgements.
        judgements: Vec<Judgement>,
    },
    /// Run on.
    Continue {
        /// Pairs, or trials of each variant, at the next look.
        next: u64,
        /// How it stands; metrics that are sure now may say so.
        judgements: Vec<Judgement>,
    },
}

/// Why sampling ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// Every primary metric has its verdict.
    Sure,
    /// The last planned look is over.
    Cap,
}

impl Plan {
    /// A plan that looks after `looks` pairs (or trials of each variant), for `primaries` primary metrics.
    pub fn new(
        alpha: f64,
        looks: &[u64],
        primaries: usize,
        design: Design,
        spending: Spending,
    ) -> Result<Self> {
        probability("the error rate", alpha)?;
        let grows = looks.windows(2).all(|pair| pair[0] < pair[1]);
        if looks.first().is_none_or(|&first| first == 0) || !grows {
            return Err(StatError::BadLooks {
                looks: looks.to_vec(),
            });
        }
        // Boundaries for the whole error rate, for half of it, a third, …: one for each step of Holm.
        let steps: Vec<Vec<f64>> = (1..=primaries.max(1))
            .map(|share| {
                let share = alpha / share as f64;
                thresholds(share, looks, spending, |n, p| design.attainable(n, p))
            })
            .collect();
        let rules = (0..looks.len())
            .map(|look| Rule::look(alpha, steps.iter().map(|step| step[look]).collect()))
            .collect();
        Ok(Self {
            looks: looks.to_vec(),
            rules,
        })
    }

    /// The plan for `until = "sure"` with a cap: the first look is the earliest at which anything can be claimed, each
    /// further one comes after half as many trials again.
    pub fn until_sure(alpha: f64, cap: u64, primaries: usize, design: Design) -> Result<Self> {
        probability("the error rate", alpha)?;
        let spending = Spending::default();
        let share = alpha / primaries.max(1) as f64;
        let first = (4..cap)
            .find(|&n| design.smallest_p(n) <= spending.spent(share, n as f64 / cap as f64));
        let mut looks = Vec::new();
        let mut next = first.unwrap_or(cap);
        // A look shortly before the last would cost error rate and save nothing.
        while next * 5 <= cap * 4 {
            looks.push(next);
            next = floor_u64(next as f64 * 1.5).max(next + 1);
        }
        looks.push(cap);
        Self::new(alpha, &looks, primaries, design, spending)
    }

    /// The sample sizes at which to look.
    pub fn looks(&self) -> &[u64] {
        &self.looks
    }

    /// The most pairs, or trials of each variant, that will be run.
    pub fn cap(&self) -> u64 {
        self.looks[self.looks.len() - 1]
    }

    /// The thresholds of a look, counted from 0; those of the last beyond it.
    pub fn rule(&self, look: usize) -> &Rule {
        &self.rules[look.min(self.rules.len() - 1)]
    }

    /// Judges the data collected until `look` (counted from 0) and says whether to run on. Trials that were invalid may
    /// be missing; data beyond the look must not be there.
    pub fn decide(&self, family: &Family, look: usize) -> Decision {
        let judgements = judge_by(family, self.rule(look));
        let any_primary = judgements.iter().any(|judgement| judgement.primary);
        let sure = judgements
            .iter()
            .filter(|judgement| judgement.primary || !any_primary)
            // What cannot be judged will not be cured by more of the same.
            .all(|j| j.verdict.is_sure() || matches!(j.verdict, Verdict::Invalid { .. }));
        match self.looks.get(look + 1) {
            Some(&next) if !sure => Decision::Continue { next, judgements },
            _ => Decision::Stop {
                why: if sure { Why::Sure } else { Why::Cap },
                judgements,
            },
        }
    }
}

/// Nominal two-sided thresholds for p-values at each look. `attainable(n, p)` gives the largest p-value at most `p` that
/// can occur with `n` trials; what it leaves unspent goes to later looks.
pub fn thresholds(
    alpha: f64,
    looks: &[u64],
    spending: Spending,
    attainable: impl Fn(u64, f64) -> f64,
) -> Vec<f64> {
    let Some(&cap) = looks.last() else {
        return Vec::new();
    };
    let mut path = Path::start();
    let mut spent = 0.0;
    let mut result = Vec::with_capacity(looks.len());
    for &n in looks {
        let t = n as f64 / cap as f64;
        let allowed = spending.spent(alpha, t) - spent;
        let step = path.step(t);
        let nominal = normal::two_sided(step.boundary(allowed));
        let threshold = attainable(n, nominal);
        let z = -normal::quantile(threshold / 2.0);
        spent += step.crossing(z);
        path = step.inside(z);
        result.push(threshold);
    }
    result
}

/// Points of the integration grid; Simpson's rule wants an odd number.
const POINTS: usize = 101;
/// Standard deviations beyond which nothing is left.
const FAR: f64 = 8.0;

/// Distribution of the sum of all evidence so far, for paths that have crossed no boundary. In units where the variance
/// of the sum is the part of all trials run.
struct Path {
    t: f64,
    points: Vec<f64>,
    /// Density times the weight of Simpson's rule.
    mass: Vec<f64>,
}

/// One more look, its boundary not yet chosen.
struct Step {
    from: Path,
    t: f64,
}

impl Path {
    /// Nothing run, all mass at zero.
    fn start() -> Self {
        Self {
            t: 0.0,
            points: vec![0.0],
            mass: vec![1.0],
        }
    }

    fn step(self, t: f64) -> Step {
        Step { from: self, t }
    }
}

impl Step {
    /// Probability of first crossing ±z at this look.
    fn crossing(&self, z: f64) -> f64 {
        if z.is_infinite() {
            return 0.0;
        }
        let spread = (self.t - self.from.t).sqrt();
        let limit = z * self.t.sqrt();
        let beyond =
            |x: f64| normal::cdf((x - limit) / spread) + normal::cdf((-x - limit) / spread);
        self.from
            .points
            .iter()
            .zip(&self.from.mass)
            .map(|(&x, mass)| mass * beyond(x))
            .sum()
    }

    /// How fast `crossing` falls as the boundary grows.
    fn slope(&self, z: f64) -> f64 {
        let spread = (self.t - self.from.t).sqrt();
        let root = self.t.sqrt();
        let limit = z * root;
        let at =
            |x: f64| normal::density((x - limit) / spread) + normal::density((x + limit) / spread);
        let sum: f64 = self
            .from
            .points
            .iter()
            .zip(&self.from.mass)
            .map(|(&x, mass)| mass * at(x))
            .sum();
        sum * root / spread
    }

    /// The boundary that is first crossed here with probability `allowed`: Newton's method, kept inside a bracket.
    fn boundary(&self, allowed: f64) -> f64 {
        if allowed <= 0.0 {
            return f64::INFINITY;
        }
        // Crossing here for the first time is at most as likely as crossing here at all.
        let (mut low, mut high) = (0.0, -normal::quantile(allowed.min(1.0) / 2.0));
        let mut z = high;
        for _ in 0..60 {
            let excess = self.crossing(z) - allowed;
            if excess > 0.0 {
                low = z;
            } else {
                high = z;
            }
            let next = z + excess / self.slope(z);
            let next = if next > low && next < high {
                next
            } else {
                0.5 * (low + high)
            };
            if (next - z).abs() < 1e-10 {
                break;
            }
            z = next;
        }
        z
    }

    /// What stays inside ±z.
    fn inside(self, z: f64) -> Path {
        let spread = (self.t - self.from.t).sqrt();
        let limit = z.min(FAR) * self.t.sqrt();
        let width = 2.0 * limit / (POINTS - 1) as f64;
        let points: Vec<f64> = (0..POINTS).map(|i| -limit + width * i as f64).collect();
        // The distribution is symmetric: one half is computed, the other mirrored.
        let half: Vec<f64> = points[..=POINTS / 2]
            .iter()
            .enumerate()
            .map(|(i, &x)| {
                let weight = match i {
                    0 => 1.0,
                    _ if i % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                let density: f64 = self
                    .from
                    .points
                    .iter()
                    .zip(&self.from.mass)
                    .map(|(&y, mass)| mass * normal::density((x - y) / spread) / spread)
                    .sum();
                weight * width / 3.0 * density
            })
            .collect();
        let mass = half
            .iter()
            .chain(half.iter().rev().skip(1))
            .copied()
            .collect();
        Path {
            t: self.t,
            points,
            mass,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boundaries(spending: Spending) -> Vec<f64> {
        thresholds(0.05, &[1, 2, 3, 4, 5], spending, |_, p| p)
            .into_iter()
            .map(|p| -normal::quantile(p / 2.0))
            .collect()
    }

    #[test]
    fn boundaries_agree_with_the_published_ones() {
        // Reboussin, DeMets, Kim and Lan (2000), "Computations for group sequential boundaries using the Lan-DeMets
        // spending function method", five equally spaced looks, two-sided 5 %.
        let pocock = [2.438, 2.427, 2.410, 2.397, 2.386];
        let obrien_fleming = [4.8769, 3.3569, 2.6803, 2.2898, 2.0310];
        for (got, want) in boundaries(Spending::Pocock).iter().zip(pocock) {
            assert!((got - want).abs() < 6e-4, "{got} {want}");
        }
        for (got, want) in boundaries(Spending::ObrienFleming)
            .iter()
            .zip(obrien_fleming)
        {
            assert!((got - want).abs() < 6e-4, "{got} {want}");
        }
    }

    #[test]
    fn a_single_look_is_a_fixed_number_of_trials() {
        let plan = Plan::new(0.05, &[8], 1, Design::Paired, Spending::Pocock).unwrap();
        // The largest level of eight pairs below 5 %: 10/256.
        assert!((plan.rule(0).threshold(1) - 10.0 / 256.0).abs() < 1e-9);
    }

    #[test]
    fn the_first_look_can_claim_something_and_the_last_is_the_cap() {
        for primaries in [1, 3, 10] {
            for design in [Design::Paired, Design::Unpaired] {
                let plan = Plan::until_sure(0.05, 60, primaries, design).unwrap();
                let first = plan.looks()[0];
                assert!(plan.rule(0).threshold(primaries) >= design.smallest_p(first) * 0.999);
                assert_eq!(plan.cap(), 60);
                assert!(plan.looks().len() >= 4, "{:?}", plan.looks());
            }
        }
    }

    #[test]
    fn every_share_of_the_error_rate_is_spent_and_no_more() {
        // Crossing probability of the final boundaries, found by walking the looks again.
        let looks = [8, 12, 18, 27, 40, 60];
        for alpha in [0.05, 0.05 / 7.0, 0.001] {
            let chosen = thresholds(alpha, &looks, Spending::Pocock, |_, p| p);
            let (mut path, mut spent) = (Path::start(), 0.0);
            for (n, threshold) in looks.iter().zip(&chosen) {
                let step = path.step(*n as f64 / 60.0);
                let z = -normal::quantile(threshold / 2.0);
                spent += step.crossing(z);
                path = step.inside(z);
            }
            assert!((spent / alpha - 1.0).abs() < 1e-6, "{alpha}: {spent}");
            // What has not crossed is still there.
            assert!((path.mass.iter().sum::<f64>() + spent - 1.0).abs() < 1e-4);
        }
    }

    #[test]
    fn looks_that_do_not_grow_are_refused() {
        for looks in [&[][..], &[0, 5], &[5, 5], &[9, 4]] {
            let plan = Plan::new(0.05, looks, 1, Design::Paired, Spending::Pocock);
            assert!(matches!(plan, Err(StatError::BadLooks { .. })));
        }
    }
}
