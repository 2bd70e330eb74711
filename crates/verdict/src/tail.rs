//! Compares tail quantiles of many accesses by resampling trials.
//!
//! The accesses within a trial are strongly correlated: a bootstrap over accesses would claim a precision that a second
//! trial does not confirm. So whole trials are resampled, each with its whole distribution (Davison and Hinkley 1997,
//! section 3.8), and pairs stay together.
//!
//! A resample of `n` pairs is a random subset: each pair is in or out with probability one half, which is the
//! double-or-nothing bootstrap of Owen and Eckles (2012). If each pair adds one independent, symmetric error, the true
//! value is equally likely to lie between any two neighbours of the 2ⁿ − 1 sorted estimates (Hartigan 1969, "Using
//! subsample values as typical values"). So removing `k` estimates from each end leaves an interval of level 1 − 2k /
//! 2ⁿ, even for few pairs. Pooled quantiles, with the steps of the data smoothed, come close to this. Drawing with
//! replacement does not have this property: its percentile interval is far too narrow for few trials, and a correction
//! that is wide enough for trials that differ is too wide for trials that agree. Inverting the permutation test would
//! be exact, but gives an infinite interval if the tail lies in two or three of the trials.
//!
//! Unpaired trials are resampled as half of each side (McCarthy 1969, "Pseudo-replication: half samples"). They are
//! assumed to be independent of each other; serial correlation is only tested for single-value metrics
//! ([`mod@crate::serial`]).
//!
//! The p-value comes from swapping the labels of whole trials. `docs/notes/error-rates.md` states the error rates of
//! all of this, as measured by `examples/false_alarms.rs`.

mod pool;
mod ways;

use crate::error::{Result, Side, StatError};
use crate::interval::{Interval, Test};
use crate::normal;
use crate::number::{floor_usize, log_ratio, probability};
use crate::rank_sum;
use crate::sample::Bin;
use pool::Pool;
use ways::{Shape, Ways};

/// Result of comparing the pooled quantiles of A and B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailComparison {
    /// Quantile of all of A's trials pooled.
    pub a: f64,
    /// Quantile of all of B's trials pooled.
    pub b: f64,
    /// Log ratio or difference of the two quantiles.
    pub effect: f64,
    /// Bootstrap interval of the effect; `None` if a variant has a single trial, or if `resamples` is 0.
    pub interval: Option<Interval>,
    /// Permutation test of the effect: p-value, and whether it is exact.
    pub test: Test,
    /// Number of accesses beyond the quantile, in the pool with fewer of them. If it is below ten, the quantile is
    /// hardly more than a maximum.
    pub beyond: f64,
}

/// Parameters of a comparison of tails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailQuestion {
    /// The quantile to compare, in (0, 1).
    pub quantile: f64,
    /// True if trials of A and B with the same index are pairs.
    pub paired: bool,
    /// True if the effect is a log ratio, false if it is a difference.
    pub ratio: bool,
    /// Confidence level of the interval.
    pub level: f64,
    /// Number of random resamples to draw if there are too many to enumerate; at most 1,999 are drawn. 0 omits the
    /// interval.
    pub resamples: u32,
    /// Seed of the resampling.
    pub seed: u64,
}

/// Returns the quantile of several pooled distributions: the smallest value that a fraction of at least `quantile` of
/// all accesses does not exceed. It is definition 1 of Hyndman and Fan (1996), which HdrHistogram uses too.
pub fn pooled_quantile(trials: &[Vec<Bin>], quantile: f64) -> Result<f64> {
    probability("a quantile", quantile)?;
    if trials.is_empty() {
        return Err(StatError::Empty {
            what: "a pooled quantile".into(),
        });
    }
    let pool = Pool::new(Side::Effect, trials, &[], quantile, false)?;
    Ok(pool.quantile(|_| true))
}

/// Compares the pooled quantile of B's trials with the pooled quantile of A's trials.
pub fn compare(a: &[Vec<Bin>], b: &[Vec<Bin>], question: &TailQuestion) -> Result<TailComparison> {
    probability("a quantile", question.quantile)?;
    probability("a confidence level", question.level)?;
    if a.is_empty() || b.is_empty() || (question.paired && a.len() != b.len()) {
        return Err(StatError::Empty {
            what: "a comparison of tails".into(),
        });
    }
    let pool = Pool::new(Side::A, a, b, question.quantile, question.ratio)?;
    let resampling = Resampling {
        pool: &pool,
        shape: Shape {
            of_a: a.len(),
            of_b: b.len(),
            paired: question.paired,
        },
        question,
    };
    let (quantile_a, quantile_b) =
        resampling.quantiles(|trial| trial < a.len(), |trial| trial >= a.len());
    let effect = resampling.effect(quantile_a, quantile_b);
    let interval = resampling.interval(effect);
    let ends = interval.map_or([effect; 2], |interval| [interval.low, interval.high]);
    if !(effect.is_finite() && ends.iter().all(|end| end.is_finite())) {
        return Err(StatError::Overflow { index: 0 });
    }
    let total = |trials: &[Vec<Bin>]| trials.iter().flatten().map(|bin| bin.count).sum::<u64>();
    Ok(TailComparison {
        a: quantile_a,
        b: quantile_b,
        effect,
        interval,
        test: resampling.test(effect),
        beyond: total(a).min(total(b)) as f64 * (1.0 - question.quantile),
    })
}

struct Resampling<'a> {
    pool: &'a Pool,
    shape: Shape,
    question: &'a TailQuestion,
}

impl Resampling<'_> {
    /// Returns the quantile of the trials selected by `is_a`, and the quantile of the trials selected by `is_b`.
    fn quantiles(&self, is_a: impl Fn(usize) -> bool, is_b: impl Fn(usize) -> bool) -> (f64, f64) {
        (self.pool.quantile(is_a), self.pool.quantile(is_b))
    }

    fn effect(&self, a: f64, b: f64) -> f64 {
        if self.question.ratio {
            log_ratio(a, b)
        } else {
            b - a
        }
    }

    fn interval(&self, effect: f64) -> Option<Interval> {
        if self.shape.of_a.min(self.shape.of_b) < 2 || self.question.resamples == 0 {
            return None;
        }
        let ways = Ways::subsets(self.shape, self.question.resamples, self.question.seed);
        let of_a = self.shape.of_a;
        let mut effects = Vec::new();
        ways.visit(&mut |chosen| {
            let a = self.pool.smooth(|trial| trial < of_a && chosen[trial]);
            let b = self.pool.smooth(|trial| trial >= of_a && chosen[trial]);
            effects.push(b - a);
        });
        effects.sort_unstable_by(f64::total_cmp);
        let alpha = 1.0 - self.question.level;
        let gaps = effects.len() as f64 + 1.0;
        let tail = if self.shape.paired {
            0.5 * alpha
        } else {
            // Estimates from halves spread as the normal distribution has it; few trials call for Student's (Hesterberg
            // 2015, section 4.2).
            let freedom = (self.shape.of_a + self.shape.of_b - 2) as f64;
            normal::cdf(normal::student_quantile(0.5 * alpha, freedom))
        };
        let cut = floor_usize(tail * gaps * (1.0 + 1e-12)).max(1);
        // There are too few trials for this level, so the actual level is reported.
        let error = if self.shape.paired {
            2.0 * cut as f64 / gaps
        } else {
            let Shape { of_a, of_b, .. } = self.shape;
            alpha.max(rank_sum::smallest_p(of_a as u64, of_b as u64))
        };
        Some(Interval {
            low: effects[cut - 1].min(effect),
            high: effects[effects.len() - cut].max(effect),
            level: 1.0 - error,
            wanted: self.question.level,
        })
    }

    fn test(&self, effect: f64) -> Test {
        let extreme = effect.abs() * (1.0 - 1e-12);
        let ways = Ways::labels(
            self.shape,
            self.question.resamples,
            self.question.seed ^ 0x7a69,
        );
        let (mut extreme_ones, mut seen) = (0_u64, 0_u64);
        ways.visit(&mut |is_b| {
            let (a, b) = self.quantiles(|trial| !is_b[trial], |trial| is_b[trial]);
            seen += 1;
            extreme_ones += u64::from(self.effect(a, b).abs() >= extreme);
        });
        Test {
            p: extreme_ones as f64 / seen as f64,
            exact: ways.are_all(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Xoshiro;

    fn trial(values: &[f64]) -> Vec<Bin> {
        values
            .iter()
            .map(|&value| Bin { value, count: 1 })
            .collect()
    }

    fn question(paired: bool) -> TailQuestion {
        TailQuestion {
            quantile: 0.99,
            paired,
            ratio: true,
            level: 0.95,
            resamples: 1_999,
            seed: 1,
        }
    }

    fn trials(count: usize, factor: f64, random: &mut Xoshiro) -> Vec<Vec<Bin>> {
        let mut values = || -> Vec<f64> {
            (0..500)
                .map(|_| factor * (10.0 + random.normal()))
                .collect()
        };
        (0..count).map(|_| trial(&values())).collect()
    }

    #[test]
    fn a_pooled_quantile_is_a_value_that_was_seen() {
        let trials = vec![vec![
            Bin {
                value: 1.0,
                count: 99,
            },
            Bin {
                value: 9.0,
                count: 1,
            },
        ]];
        assert!((pooled_quantile(&trials, 0.99).unwrap() - 1.0).abs() < 1e-15);
        assert!((pooled_quantile(&trials, 0.991).unwrap() - 9.0).abs() < 1e-15);
        assert!((pooled_quantile(&trials, 0.2).unwrap() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn a_tail_that_is_longer_in_every_trial_is_found() {
        let mut random = Xoshiro::new(9);
        for count in [8, 20] {
            let a = trials(count, 1.0, &mut random);
            let b = trials(count, 1.3, &mut random);
            for paired in [true, false] {
                let found = compare(&a, &b, &question(paired)).unwrap();
                assert!((found.effect.exp() - 1.3).abs() < 0.05);
                assert!(found.test.p < 0.01);
                let interval = found.interval.unwrap();
                assert!(!interval.contains(0.0) && interval.is_attained());
            }
        }
    }

    #[test]
    fn the_interval_of_pairs_is_cut_from_the_estimates_of_all_subsets() {
        let mut random = Xoshiro::new(2);
        let (a, b) = (trials(6, 1.0, &mut random), trials(6, 1.1, &mut random));
        let mut estimates: Vec<f64> = (1..64_u32)
            .map(|subset| {
                let pick = |trials: &[Vec<Bin>]| -> Vec<Vec<Bin>> {
                    let taken = (0..6).filter(|pair| subset >> pair & 1 == 1);
                    taken.map(|pair: usize| trials[pair].clone()).collect()
                };
                let of = |side: &[Vec<Bin>]| {
                    let pool = Pool::new(Side::A, &pick(side), &[], 0.99, true).unwrap();
                    pool.smooth(|_| true)
                };
                of(&b) - of(&a)
            })
            .collect();
        estimates.sort_unstable_by(f64::total_cmp);
        // 2.5 % of 64 is 1.6, so one value is cut from each end. The level is that of Wilcoxon's interval for six
        // pairs.
        let interval = compare(&a, &b, &question(true)).unwrap().interval.unwrap();
        assert!((interval.low - estimates[0]).abs() < 1e-12);
        assert!((interval.high - estimates[62]).abs() < 1e-12);
    }

    #[test]
    fn equal_distributions_differ_by_nothing() {
        let mut random = Xoshiro::new(6);
        let a = trials(8, 1.0, &mut random);
        let found = compare(&a, &a, &question(true)).unwrap();
        let interval = found.interval.unwrap();
        assert!((found.test.p - 1.0).abs() < 1e-15);
        assert!(interval.contains(0.0) && interval.half_width() < 1e-12);
    }
}
