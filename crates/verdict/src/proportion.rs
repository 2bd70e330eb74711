//! Success counts: intervals that stay inside 0 and 1, and exact tests.
//!
//! Sources: Wilson (1927); Newcombe (1998a), Statistics in Medicine 17:873, method 10, for independent proportions;
//! Newcombe (1998b), ibid. 17:2635, method 10, for paired ones; Fisher (1935); McNemar (1947), exact.

use crate::error::{Result, Side, StatError};
use crate::interval::{Interval, Test};
use crate::normal;
use crate::number::probability;
use crate::sample::Count;

/// Outcomes of pairs of single attempts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairedOutcomes {
    /// Both succeeded.
    pub both: u64,
    /// A succeeded, B did not.
    pub only_a: u64,
    /// B succeeded, A did not.
    pub only_b: u64,
    /// Neither succeeded.
    pub neither: u64,
}

impl PairedOutcomes {
    /// All pairs.
    pub fn count(&self) -> u64 {
        self.both + self.only_a + self.only_b + self.neither
    }
}

/// Refuses a count without attempts or with more successes than attempts.
pub(crate) fn check(side: Side, index: usize, count: Count) -> Result<()> {
    if count.attempts > 0 && count.successes <= count.attempts {
        return Ok(());
    }
    Err(StatError::BadCount {
        side,
        index,
        successes: count.successes,
        attempts: count.attempts,
    })
}

/// Wilson's score interval for one proportion.
pub fn wilson(count: Count, level: f64) -> Result<Interval> {
    check(Side::Effect, 0, count)?;
    probability("a confidence level", level)?;
    let z = -normal::quantile((1.0 - level) / 2.0);
    let n = count.attempts as f64;
    let (wins, losses) = (
        count.successes as f64,
        (count.attempts - count.successes) as f64,
    );
    let half = z / (n + z * z) * (wins * losses / n + z * z / 4.0).sqrt();
    let centre = (wins + z * z / 2.0) / (n + z * z);
    // At the extremes the formula gives 0 and 1 but for rounding.
    let low = if count.successes == 0 {
        0.0
    } else {
        centre - half
    };
    let high = if count.successes == count.attempts {
        1.0
    } else {
        centre + half
    };
    Ok(Interval {
        low,
        high,
        level,
        wanted: level,
    })
}

/// Newcombe's interval for the difference b − a of independent proportions.
pub fn newcombe(a: Count, b: Count, level: f64) -> Result<Interval> {
    let (wilson_a, wilson_b) = (wilson(a, level)?, wilson(b, level)?);
    Ok(square_and_add(
        a.share(),
        wilson_a,
        b.share(),
        wilson_b,
        0.0,
    ))
}

/// Newcombe's interval for the difference b − a of paired proportions.
pub fn newcombe_paired(outcomes: PairedOutcomes, level: f64) -> Result<Interval> {
    let n = outcomes.count();
    let count = |successes| Count {
        successes,
        attempts: n,
    };
    let (a, b) = (
        count(outcomes.both + outcomes.only_a),
        count(outcomes.both + outcomes.only_b),
    );
    let (wilson_a, wilson_b) = (wilson(a, level)?, wilson(b, level)?);
    let correlation = paired_correlation(outcomes);
    Ok(square_and_add(
        a.share(),
        wilson_a,
        b.share(),
        wilson_b,
        correlation,
    ))
}

/// The correlation φ of paired outcomes, with Newcombe's continuity correction.
fn paired_correlation(outcomes: PairedOutcomes) -> f64 {
    let [e, f, g, h] = [
        outcomes.both as f64,
        outcomes.only_a as f64,
        outcomes.only_b as f64,
        outcomes.neither as f64,
    ];
    let margins = (e + f) * (g + h) * (e + g) * (f + h);
    if margins == 0.0 {
        return 0.0;
    }
    let product = e * h - f * g;
    let corrected = if product > 0.0 {
        (product - (e + f + g + h) / 2.0).max(0.0)
    } else {
        product
    };
    corrected / margins.sqrt()
}

fn square_and_add(a: f64, wilson_a: Interval, b: f64, wilson_b: Interval, phi: f64) -> Interval {
    let join = |x: f64, y: f64| (x * x - 2.0 * phi * x * y + y * y).max(0.0).sqrt();
    let difference = b - a;
    Interval {
        low: difference - join(b - wilson_b.low, wilson_a.high - a),
        high: difference + join(wilson_b.high - b, a - wilson_a.low),
        ..wilson_a
    }
}

/// Fisher's exact test of two independent proportions: the sum of all tables that are no more likely than this one.
pub fn fisher(a: Count, b: Count) -> Result<Test> {
    check(Side::A, 0, a)?;
    check(Side::B, 0, b)?;
    let successes = a.successes + b.successes;
    let least = successes.saturating_sub(b.attempts);
    let most = successes.min(a.attempts);
    // Successive tables differ by a ratio of small products, which keeps all digits where factorials would lose them.
    let ratio = |k: u64| {
        let up = (a.attempts - k) as f64 * (successes - k) as f64;
        let down = (k + 1) as f64 * (b.attempts + k + 1 - successes) as f64;
        up / down
    };
    let p = no_more_likely(least, most, a.successes, ratio);
    Ok(Test { p, exact: true })
}

/// Exact McNemar test of paired outcomes: only pairs that differ speak, and each way is equally likely.
pub fn mcnemar(outcomes: PairedOutcomes) -> Test {
    let different = outcomes.only_a + outcomes.only_b;
    let ratio = |k: u64| (different - k) as f64 / (k + 1) as f64;
    let p = no_more_likely(0, different, outcomes.only_a, ratio);
    Test { p, exact: true }
}

/// Probability of all outcomes that are no more likely than `observed`, for a distribution on `least..=most` given by
/// the ratio of each probability to the one before. It must have one peak.
fn no_more_likely(least: u64, most: u64, observed: u64, ratio: impl Fn(u64) -> f64) -> f64 {
    // Outward from the observed outcome, in units of its own probability.
    let (mut as_rare, mut all) = (1.0, 1.0);
    let mut add = |weight: f64| {
        all += weight;
        // Outcomes that are equally likely differ in their last digits.
        if weight <= 1.0 + 1e-7 {
            as_rare += weight;
        }
    };
    let mut weight = 1.0;
    for k in observed..most {
        weight *= ratio(k);
        add(weight);
        if weight < 1e-30 && ratio(k) < 1.0 {
            break;
        }
    }
    weight = 1.0;
    for k in (least..observed).rev() {
        weight /= ratio(k);
        add(weight);
        if weight < 1e-30 && ratio(k) > 1.0 {
            break;
        }
    }
    // An outcome too rare to be compared with the peak overflows the sum; its p-value is then below any threshold.
    if all.is_finite() {
        (as_rare / all).min(1.0)
    } else {
        f64::MIN_POSITIVE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilson_bounds_stay_inside_zero_and_one() {
        for attempts in 1..40 {
            for successes in 0..=attempts {
                let bounds = wilson(
                    Count {
                        successes,
                        attempts,
                    },
                    0.95,
                )
                .unwrap();
                assert!(bounds.low >= 0.0 && bounds.high <= 1.0);
                assert!(bounds.contains(successes as f64 / attempts as f64));
            }
        }
    }

    #[test]
    fn pairs_that_agree_are_no_evidence() {
        let agree = PairedOutcomes {
            both: 40,
            neither: 10,
            ..PairedOutcomes::default()
        };
        assert!((mcnemar(agree).p - 1.0).abs() < 1e-15);
        assert!(newcombe_paired(agree, 0.95).unwrap().contains(0.0));
    }

    #[test]
    fn more_successes_than_attempts_are_refused() {
        let broken = Count {
            successes: 5,
            attempts: 4,
        };
        assert!(matches!(
            wilson(broken, 0.95),
            Err(StatError::BadCount { .. })
        ));
    }
}
