//! Sampling until every primary metric is decided: looks (interim analyses) at the data, with an error rate that holds
//! over all looks.
//!
//! The looks are planned before the first trial, and each may spend a part of the error rate (Lan and DeMets 1983). A
//! look spends the level of its exact test, and the parts add up to at most the whole (Boole's inequality), so the rate
//! holds for any noise and any number of pairs. Boundaries from the joint normal distribution of all looks (Armitage,
//! McPherson and Rowe 1969) were tried and dropped: with the few pairs of early looks they gave 5.7 % false alarms
//! instead of 5 %. Two properties are special here:
//!
//! - Rank tests of few values have few possible p-values. A threshold is lowered to the next possible p-value, and the
//!   unspent rest goes to later looks.
//! - Primary metrics share the error rate by Holm's steps, with thresholds computed separately for each fraction of it
//!   (Maurer and Bretz 2013).
//!
//! Intervals at each look have the level of that look's threshold. They are repeated confidence intervals (Jennison and
//! Turnbull 1989): over all looks together they cover the true value with at least the requested probability. So
//! stopping because the interval lies inside the margin is as safe as stopping because it excludes zero.

use serde::{Deserialize, Serialize};

use crate::error::{Result, StatError};
use crate::judge::judge_by;
use crate::judgement::{Judgement, Verdict};
use crate::normal;
use crate::number::{floor_u64, probability};
use crate::rule::Rule;
use crate::sample::Family;
use crate::{rank_sum, signed_rank};

/// How the error rate is distributed over the looks (interim analyses) of a sequential plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spending {
    /// Early looks spend much of the error rate, so a clear effect ends a campaign soon: α ln(1 + (e − 1) t).
    #[default]
    Pocock,
    /// The last look spends nearly all of the error rate: 4 (1 − Φ(z(1 − α/4) / √t)). Stopping early needs very strong
    /// evidence, and the last look is almost as powerful as a fixed number of trials.
    ObrienFleming,
}

impl Spending {
    /// Part of `alpha` that may be spent when the fraction `t` of all trials has run.
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

/// Whether the trials of A and B are paired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Paired by seed or block.
    #[default]
    Paired,
    /// Unpaired, with the same number of trials for both variants.
    Unpaired,
}

impl Design {
    /// Returns the smallest p-value that is possible with `n` pairs, or with `n` trials of each variant.
    fn smallest_p(self, n: u64) -> f64 {
        match self {
            Self::Paired => signed_rank::smallest_p(n),
            Self::Unpaired => rank_sum::smallest_p(n, n),
        }
    }

    /// Returns the largest possible level of the rank test of `n` pairs (or trials of each variant) that is at most
    /// `nominal`; 0 if there is none.
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

/// The planned looks (interim analyses), with the thresholds at each look.
///
/// A plan is not stored. Store the looks and create the plan again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    looks: Vec<u64>,
    rules: Vec<Rule>,
}

/// What to do after a look.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "decision")]
pub enum Decision {
    /// Sampling stops.
    Stop {
        /// Why sampling stops.
        why: Reason,
        /// The final judgements.
        judgements: Vec<Judgement>,
    },
    /// Sampling continues.
    Continue {
        /// Number of pairs, or trials of each variant, at the next look.
        next: u64,
        /// Interim judgements. A verdict that is already reached may be reported.
        judgements: Vec<Judgement>,
    },
}

/// Why sampling ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Every primary metric has a verdict or cannot be judged. Without a primary metric, this applies to all metrics.
    Sure,
    /// The last planned look has been made.
    Cap,
}

impl Plan {
    /// Creates a plan with looks after `looks` pairs (or trials of each variant), for `primaries` primary metrics.
    /// Fails if `looks` is empty, not ascending or begins with 0, or if `alpha` is not in (0, 1).
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
        // Thresholds for the whole error rate, for half of it, a third, and so on: one set for each of Holm's steps.
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

    /// Creates the plan for `until = "sure"` with at most `cap` pairs, or trials of each variant. The first look is the
    /// earliest that can claim a difference. Each later look has 1.5 times as many trials as the look before, and the
    /// last look has `cap`.
    pub fn until_sure(alpha: f64, cap: u64, primaries: usize, design: Design) -> Result<Self> {
        probability("the error rate", alpha)?;
        let spending = Spending::default();
        let share = alpha / primaries.max(1) as f64;
        let first = (4..cap)
            .find(|&n| design.smallest_p(n) <= spending.spent(share, n as f64 / cap as f64));
        let mut looks = Vec::new();
        let mut next = first.unwrap_or(cap);
        // A look shortly before the last look would spend a part of the error rate and save few trials.
        while next * 5 <= cap * 4 {
            looks.push(next);
            next = floor_u64(next as f64 * 1.5).max(next + 1);
        }
        looks.push(cap);
        Self::new(alpha, &looks, primaries, design, spending)
    }

    /// Returns the numbers of pairs, or trials of each variant, after which the data are judged.
    pub fn looks(&self) -> &[u64] {
        &self.looks
    }

    /// Returns the largest number of pairs, or trials of each variant, that will be run.
    pub fn cap(&self) -> u64 {
        self.looks[self.looks.len() - 1]
    }

    /// Returns the thresholds of a look, counted from 0. For a number beyond the last look, returns those of the last
    /// look.
    pub fn rule(&self, look: usize) -> &Rule {
        &self.rules[look.min(self.rules.len() - 1)]
    }

    /// Judges the data collected up to `look` (counted from 0) and decides whether to continue. `family` must not
    /// contain data from after the look. Invalid trials may be left out.
    pub fn decide(&self, family: &Family, look: usize) -> Decision {
        let judgements = judge_by(family, self.rule(look));
        let any_primary = judgements.iter().any(|judgement| judgement.primary);
        let sure = judgements
            .iter()
            .filter(|judgement| judgement.primary || !any_primary)
            // More trials do not help if a metric cannot be judged.
            .all(|j| j.verdict.is_sure() || matches!(j.verdict, Verdict::Invalid { .. }));
        match self.looks.get(look + 1) {
            Some(&next) if !sure => Decision::Continue { next, judgements },
            _ => Decision::Stop {
                why: if sure { Reason::Sure } else { Reason::Cap },
                judgements,
            },
        }
    }
}

/// Returns the thresholds for the p-values at each look, which together spend at most `alpha`. `attainable(n, p)`
/// returns the largest possible level of the test with `n` trials that is at most `p`. What a look does not spend goes
/// to later looks.
pub fn thresholds(
    alpha: f64,
    looks: &[u64],
    spending: Spending,
    attainable: impl Fn(u64, f64) -> f64,
) -> Vec<f64> {
    let Some(&cap) = looks.last() else {
        return Vec::new();
    };
    let mut spent = 0.0;
    looks
        .iter()
        .map(|&n| {
            let allowed = spending.spent(alpha, n as f64 / cap as f64) - spent;
            let threshold = attainable(n, allowed);
            spent += threshold;
            threshold
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spending_functions_agree_with_the_published_ones() {
        // Reboussin, DeMets, Kim and Lan (2000), five equally spaced looks at 5 %: the first O'Brien-Fleming boundary
        // is z = 4.8769.
        let first = Spending::ObrienFleming.spent(0.05, 0.2);
        assert!(
            (first / normal::two_sided(4.8769) - 1.0).abs() < 0.002,
            "{first}"
        );
        // The first Pocock-type boundary is z = 2.4380.
        let first = Spending::Pocock.spent(0.05, 0.2);
        assert!(
            (first / normal::two_sided(2.4380) - 1.0).abs() < 0.002,
            "{first}"
        );
        for spending in [Spending::Pocock, Spending::ObrienFleming] {
            assert!((spending.spent(0.05, 1.0 - 1e-12) - 0.05).abs() < 1e-9);
        }
    }

    #[test]
    fn the_looks_together_spend_no_more_than_the_error_rate_and_nearly_all_of_it() {
        for primaries in [1, 2, 7, 20] {
            for design in [Design::Paired, Design::Unpaired] {
                let plan = Plan::until_sure(0.05, 60, primaries, design).unwrap();
                let spent: f64 = plan
                    .rules
                    .iter()
                    .map(|rule| primaries as f64 * rule.threshold(primaries))
                    .sum();
                assert!(
                    spent <= 0.05 * (1.0 + 1e-9),
                    "{primaries} {design:?}: {spent}"
                );
                assert!(spent > 0.045, "{primaries} {design:?}: {spent}");
            }
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
    fn looks_that_do_not_grow_are_refused() {
        for looks in [&[][..], &[0, 5], &[5, 5], &[9, 4]] {
            let plan = Plan::new(0.05, looks, 1, Design::Paired, Spending::Pocock);
            assert!(matches!(plan, Err(StatError::BadLooks { .. })));
        }
    }
}
