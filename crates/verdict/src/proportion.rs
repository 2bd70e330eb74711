//! Success counts: an interval within 0 and 1, and an exact test.
//!
//! Sources: Wilson (1927), Fisher (1935).

use crate::error::{Result, Side, StatError};
use crate::interval::{Interval, Test};
use crate::normal;
use crate::number::probability;
use crate::sample::Count;

/// Fails if there are no attempts or more successes than attempts.
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
    // At the extremes, the formula gives exactly 0 and 1 except for rounding.
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

/// Fisher's exact test of two independent proportions. The p-value is the total probability of all tables that are at
/// most as likely as the observed table.
pub fn fisher(a: Count, b: Count) -> Result<Test> {
    check(Side::A, 0, a)?;
    check(Side::B, 0, b)?;
    let successes = a.successes + b.successes;
    let least = successes.saturating_sub(b.attempts);
    let most = successes.min(a.attempts);
    // The ratio of successive tables is a ratio of small products, which is exact where factorials would lose
    // precision.
    let ratio = |k: u64| {
        let up = (a.attempts - k) as f64 * (successes - k) as f64;
        let down = (k + 1) as f64 * (b.attempts + k + 1 - successes) as f64;
        up / down
    };
    let p = no_more_likely(least, most, a.successes, ratio);
    Ok(Test { p, exact: true })
}

/// Returns the total probability of all outcomes that are at most as likely as `observed`. The distribution covers
/// `least..=most` and must have one peak. `ratio(k)` is the probability of `k + 1` divided by that of `k`.
fn no_more_likely(least: u64, most: u64, observed: u64, ratio: impl Fn(u64) -> f64) -> f64 {
    // Start at the observed outcome and sum outward, in units of its probability.
    let (mut as_rare, mut all) = (1.0, 1.0);
    let mut add = |weight: f64| {
        all += weight;
        // Outcomes of equal probability differ in their last digits because of rounding.
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
    // If the observed outcome is extremely rare the sum overflows; its p-value is then below any threshold.
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
