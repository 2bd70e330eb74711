//! Paired data: Wilcoxon's signed-rank test, the Hodges-Lehmann estimate and the matching interval.
//!
//! Sources: Wilcoxon (1945); Pratt (1959) for differences of zero; Hodges and Lehmann (1963); Hollander, Wolfe and
//! Chicken, "Nonparametric Statistical Methods" (3rd edition), sections 3.1 to 3.3.

use crate::ordered::{Cutoff, Ordered};
use std::sync::OnceLock;

use crate::error::{Result, Side};
use crate::interval::{EXACT_PAIRS, Interval, Test};
use crate::normal;
use crate::number::{all_finite, floor_u64, not_empty, probability, sorted};
use crate::rank::rank;

/// How differences of exactly zero are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zeros {
    /// Zeros are ranked with the other differences, then their ranks are dropped (Pratt 1959).
    Pratt,
    /// Zeros are dropped before ranking (Wilcoxon 1945).
    Drop,
}

/// Two-sided signed-rank test of the hypothesis that the differences are symmetric about zero.
///
/// For up to [`EXACT_PAIRS`] differences the null distribution, conditional on the (possibly tied) absolute values, is
/// enumerated. For more, the normal approximation with tie correction and a continuity correction of one half is used.
pub fn test(differences: &[f64], zeros: Zeros) -> Result<Test> {
    not_empty("a signed-rank test", differences)?;
    all_finite(Side::Effect, differences)?;
    let kept: Vec<f64> = differences
        .iter()
        .copied()
        .filter(|&d| zeros == Zeros::Pratt || d != 0.0)
        .collect();
    let sizes: Vec<f64> = kept.iter().map(|d| d.abs()).collect();
    let ranked = rank(&sizes);
    let ranks: Vec<(u32, bool)> = ranked
        .doubled
        .into_iter()
        .zip(&kept)
        .filter(|&(_, &d)| d != 0.0)
        .map(|(doubled, &d)| (doubled, d > 0.0))
        .collect();
    if ranks.is_empty() {
        return Ok(Test {
            p: 1.0,
            exact: true,
        });
    }
    let positive: u64 = ranks
        .iter()
        .filter(|(_, up)| *up)
        .map(|(doubled, _)| u64::from(*doubled))
        .sum();
    if differences.len() <= EXACT_PAIRS {
        let doubled: Vec<u32> = ranks.iter().map(|(doubled, _)| *doubled).collect();
        let plain = !ranked.ties && ranks.len() == kept.len();
        let p = if plain {
            two_sided_tail(untied(ranks.len()), positive / 2)
        } else {
            two_sided_tail(&sign_distribution(&doubled), positive)
        };
        return Ok(Test { p, exact: true });
    }
    let total: f64 = ranks.iter().map(|(doubled, _)| f64::from(*doubled)).sum();
    let squares: f64 = ranks
        .iter()
        .map(|(doubled, _)| f64::from(*doubled).powi(2))
        .sum();
    // In units of doubled ranks: mean Σr/2, variance Σr²/4, and half a rank is 1.
    let distance = (positive as f64 - total / 2.0).abs();
    let z = (distance - 1.0).max(0.0) / (squares / 4.0).sqrt();
    Ok(Test {
        p: normal::two_sided(z).min(1.0),
        exact: false,
    })
}

/// Returns the sum of signed ranks. If the sum is not zero, it has the same sign as the Hodges-Lehmann estimate: it
/// equals the number of Walsh averages above zero minus the number below. It is faster to compute than the estimate.
pub(crate) fn leaning(differences: &[f64]) -> f64 {
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    rank(&sizes)
        .doubled
        .iter()
        .zip(differences)
        .filter(|(_, d)| **d != 0.0)
        .map(|(&rank, d)| f64::from(rank).copysign(*d))
        .sum()
}

/// Returns the probability of a sum at least as extreme as `observed`, for a symmetric distribution that starts at 0.
pub(crate) fn two_sided_tail(distribution: &[f64], observed: u64) -> f64 {
    let observed = usize::try_from(observed).unwrap_or(usize::MAX);
    // The distribution is symmetric, so the p-value is twice the smaller tail.
    let mirrored = (distribution.len() - 1).saturating_sub(observed);
    let tail: f64 = distribution[..=observed.min(mirrored)].iter().sum();
    (2.0 * tail).min(1.0)
}

/// Null distribution of the positive rank sum of up to [`EXACT_PAIRS`] values without ties. It is computed once for
/// each number of values.
fn untied(n: usize) -> &'static [f64] {
    static TABLES: [OnceLock<Vec<f64>>; EXACT_PAIRS + 1] =
        [const { OnceLock::new() }; EXACT_PAIRS + 1];
    TABLES[n].get_or_init(|| {
        let ranks: Vec<u32> = (1..=u32::try_from(n).unwrap_or(u32::MAX)).collect();
        sign_distribution(&ranks)
    })
}

/// Returns the probability of every possible sum of `weights` if each is included with probability one half.
fn sign_distribution(weights: &[u32]) -> Vec<f64> {
    let mut reached = 0;
    let total: usize = weights.iter().map(|&weight| weight as usize).sum();
    let mut distribution = vec![0.0; total + 1];
    distribution[0] = 1.0;
    for &weight in weights {
        let weight = weight as usize;
        reached += weight;
        for sum in (0..=reached).rev() {
            let with = if sum >= weight {
                distribution[sum - weight]
            } else {
                0.0
            };
            distribution[sum] = 0.5 * (distribution[sum] + with);
        }
    }
    distribution
}

/// Returns the cutoff that excludes the most Walsh averages with an error rate of at most `alpha`. With too few values
/// nothing is excluded, and the error rate is larger.
pub(crate) fn cut(n: usize, alpha: f64) -> Cutoff {
    if n > EXACT_PAIRS {
        let n = n as f64;
        let mean = n * (n + 1.0) / 4.0;
        let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        let outside = (mean - 0.5 + normal::quantile(alpha / 2.0) * deviation).max(0.0);
        let outside = floor_u64(outside);
        let error = normal::two_sided((mean - 0.5 - outside as f64).max(0.0) / deviation);
        return Cutoff { outside, error };
    }
    cut_of(untied(n), alpha)
}

/// Returns the cutoff that excludes the most values with an error rate of at most `alpha`, for the null distribution of
/// any symmetric rank statistic that starts at 0.
pub(crate) fn cut_of(distribution: &[f64], alpha: f64) -> Cutoff {
    let mut best = Cutoff {
        outside: 0,
        error: (2.0 * distribution[0]).min(1.0),
    };
    let mut tail = 0.0;
    for (outside, probability) in (0_u64..).zip(distribution) {
        tail += probability;
        // The slack keeps a level that is met exactly, such as 2/64 of 0.03125, from being lost to rounding.
        if 2.0 * tail > alpha * (1.0 + 1e-12) {
            break;
        }
        best = Cutoff {
            outside,
            error: 2.0 * tail,
        };
    }
    best
}

/// A point estimate with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The point estimate, in the unit of the data.
    pub value: f64,
    /// The confidence interval; `None` for a single value, or for one value in each of two groups.
    pub interval: Option<Interval>,
}

/// Hodges-Lehmann estimate (the median of all Walsh averages) with the interval of the inverted signed-rank test.
///
/// The interval ends are order statistics of the Walsh averages, as in R's `wilcox.test(conf.int = TRUE)` for data
/// without ties. With ties the closed interval has at least its level (Randles and Wolfe 1979, section 6.2).
pub fn estimate(differences: &[f64], level: f64) -> Result<Estimate> {
    not_empty("a Hodges-Lehmann estimate", differences)?;
    all_finite(Side::Effect, differences)?;
    probability("a confidence level", level)?;
    let n = differences.len();
    let walsh = Walsh::new(sorted(differences));
    let value = walsh.median();
    let interval = (n > 1).then(|| walsh.interval(cut(n, 1.0 - level), level));
    Ok(Estimate { value, interval })
}

/// Returns the Hodges-Lehmann estimate without an interval.
pub fn pseudo_median(values: &[f64]) -> Result<f64> {
    not_empty("a Hodges-Lehmann estimate", values)?;
    all_finite(Side::Effect, values)?;
    Ok(Walsh::new(sorted(values)).median())
}

/// The averages of all pairs of values, including each value with itself.
struct Walsh {
    values: Vec<f64>,
    /// All averages, sorted; `None` if they are too many to be stored.
    averages: Option<Vec<f64>>,
}

impl Walsh {
    fn new(values: Vec<f64>) -> Self {
        let averages = (values.len() <= 2 * EXACT_PAIRS).then(|| {
            let mut all = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
            for (i, &x) in values.iter().enumerate() {
                all.extend(values[i..].iter().map(|&y| x.midpoint(y)));
            }
            all.sort_unstable_by(f64::total_cmp);
            all
        });
        Self { values, averages }
    }
}

impl Ordered for Walsh {
    fn kept(&self) -> Option<&[f64]> {
        self.averages.as_deref()
    }

    fn count(&self) -> u64 {
        let n = self.values.len() as u64;
        n * (n + 1) / 2
    }

    fn bounds(&self) -> (f64, f64) {
        (self.values[0], self.values[self.values.len() - 1])
    }

    /// Returns the number of averages that are at most `limit`, counted with two indices that move towards each other.
    fn at_most(&self, limit: f64) -> u64 {
        let mut count = 0;
        let mut end = self.values.len();
        for (i, &x) in self.values.iter().enumerate() {
            while end > i && x.midpoint(self.values[end - 1]) > limit {
                end -= 1;
            }
            if end <= i {
                break;
            }
            count += (end - i) as u64;
        }
        count
    }
}

/// Returns the smallest two-sided p-value that is possible with `n` pairs. It is reached if all differences have the
/// same sign.
pub fn smallest_p(n: u64) -> f64 {
    libm::exp2(1.0 - n as f64).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_pairs_are_the_fewest_that_reach_ninety_five_percent() {
        let five = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        let six = estimate(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.95).unwrap();
        let (five, six) = (five.interval.unwrap(), six.interval.unwrap());
        assert!(!five.is_attained() && (five.level - 0.9375).abs() < 1e-12);
        assert!(six.is_attained() && (six.level - 0.96875).abs() < 1e-12);
    }

    #[test]
    fn one_value_gives_an_estimate_but_no_interval() {
        let one = estimate(&[3.5], 0.95).unwrap();
        assert!(one.interval.is_none());
        assert!((one.value - 3.5).abs() < 1e-15);
    }

    #[test]
    fn the_sum_of_signed_ranks_leans_as_the_estimate_does() {
        let mut random = crate::rng::Xoshiro::new(8);
        for _ in 0..200 {
            let values: Vec<f64> = (0..15).map(|_| random.normal() + 0.2).collect();
            let estimate = pseudo_median(&values).unwrap();
            let lean = leaning(&values);
            // Half of the averages lie on each side: the estimate lies between the two middle ones.
            assert!(
                lean == 0.0 || (estimate > 0.0) == (lean > 0.0),
                "{values:?}"
            );
        }
    }

    #[test]
    fn bisection_finds_the_same_order_statistics_as_sorting() {
        let mut random = crate::rng::Xoshiro::new(3);
        let values = sorted(
            &(0..90)
                .map(|_| (random.normal() * 8.0).round())
                .collect::<Vec<_>>(),
        );
        let kept = Walsh::new(values.clone());
        let bisected = Walsh {
            values,
            averages: None,
        };
        for position in [1, 2, 700, kept.count() / 2, kept.count()] {
            let (a, b) = (
                kept.order_statistic(position),
                bisected.order_statistic(position),
            );
            assert!((a - b).abs() < f64::EPSILON, "{position}: {a} {b}");
        }
        assert!((kept.median() - bisected.median()).abs() < f64::EPSILON);
    }
}
