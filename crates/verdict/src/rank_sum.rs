//! Unpaired data: the Mann-Whitney U test, the Hodges-Lehmann shift and the matching interval.
//!
//! Sources: Mann and Whitney (1947); Hodges and Lehmann (1963); Hollander, Wolfe and Chicken, "Nonparametric
//! Statistical Methods" (3rd edition), sections 4.1 to 4.3.

use crate::ordered::{Cutoff, Ordered};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Result, Side};
use crate::interval::{EXACT_UNPAIRED, Test};
use crate::normal;
use crate::number::{all_finite, floor_u64, not_empty, probability, sorted};
use crate::rank::rank;
use crate::signed_rank::{Estimate, cut_of, two_sided_tail};

fn check(a: &[f64], b: &[f64]) -> Result<()> {
    not_empty("A in an unpaired comparison", a)?;
    not_empty("B in an unpaired comparison", b)?;
    all_finite(Side::A, a)?;
    all_finite(Side::B, b)
}

/// Two-sided test of the hypothesis that A and B have the same distribution.
///
/// For up to [`EXACT_UNPAIRED`] values in total, all assignments of values to B are enumerated, ties included; p is
/// twice the smaller tail. For more values, the normal approximation with tie and continuity correction is used.
pub fn test(a: &[f64], b: &[f64]) -> Result<Test> {
    check(a, b)?;
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let ranks = rank(&all);
    let of_b: u64 = ranks.doubled[a.len()..].iter().map(|&r| u64::from(r)).sum();
    if all.len() <= EXACT_UNPAIRED {
        let p = if ranks.ties {
            exact_two_sided(&ranks.doubled, b.len(), of_b)
        } else {
            let size = b.len() as u64;
            two_sided_tail(&untied(a.len(), b.len()), of_b / 2 - size * (size + 1) / 2)
        };
        return Ok(Test { p, exact: true });
    }
    let (size_a, size_b, total) = (a.len() as f64, b.len() as f64, all.len() as f64);
    // In units of doubled ranks: the mean of B's rank sum is m(N + 1), and half a rank is 1.
    let mean_rank = total + 1.0;
    let spread: f64 = ranks
        .doubled
        .iter()
        .map(|&r| (f64::from(r) - mean_rank).powi(2))
        .sum();
    let variance = size_a * size_b / (total * (total - 1.0)) * spread;
    if variance == 0.0 {
        return Ok(Test {
            p: 1.0,
            exact: false,
        });
    }
    let distance = (of_b as f64 - size_b * mean_rank).abs();
    let z = (distance - 1.0).max(0.0) / variance.sqrt();
    Ok(Test {
        p: normal::two_sided(z).min(1.0),
        exact: false,
    })
}

/// Two-sided p-value: twice the smaller tail of the sum of `chosen` of the doubled ranks.
fn exact_two_sided(doubled: &[u32], chosen: usize, observed: u64) -> f64 {
    let (counts, least) = subset_sums(doubled, chosen);
    let all: f64 = counts.iter().sum();
    let position = usize::try_from(observed).unwrap_or(usize::MAX) - least;
    let below: f64 = counts[..=position].iter().sum();
    let above: f64 = counts[position..].iter().sum();
    (2.0 * below.min(above) / all).min(1.0)
}

/// Counts the subsets of `chosen` weights by their sum. Returns the count for each sum, starting at the smallest
/// possible sum, and the smallest possible sum.
///
/// Weights are taken relative to the smallest, which shortens the table. Counts are floats: all terms are positive, so
/// nothing cancels, and they are exact below 2^53.
fn subset_sums(weights: &[u32], chosen: usize) -> (Vec<f64>, usize) {
    let lowest = weights.iter().copied().min().unwrap_or(0);
    let mut relative: Vec<usize> = weights.iter().map(|&w| (w - lowest) as usize).collect();
    relative.sort_unstable();
    let most: usize = relative.iter().rev().take(chosen).sum();
    let least: usize = relative.iter().take(chosen).sum();
    let width = most + 1;
    let mut table = vec![0.0; (chosen + 1) * width];
    table[0] = 1.0;
    let mut reached = 0;
    for (seen, &weight) in relative.iter().enumerate() {
        reached = most.min(reached + weight);
        for size in (1..=chosen.min(seen + 1)).rev() {
            let (smaller, same) = table.split_at_mut(size * width);
            let smaller = &smaller[(size - 1) * width..];
            if weight > reached {
                continue;
            }
            for (to, from) in same[weight..=reached].iter_mut().zip(smaller) {
                *to += from;
            }
        }
    }
    let sums = table[chosen * width..][least..].to_vec();
    (sums, least + chosen * lowest as usize)
}

/// Returns the position of the interval ends in the sorted differences of `n` values from `m` values, for a level of at
/// least 1 − `alpha`. With too few values no difference is excluded, and the level is lower.
pub(crate) fn cut(n: usize, m: usize, alpha: f64) -> Cutoff {
    if n + m > EXACT_UNPAIRED {
        let (n, m) = (n as f64, m as f64);
        let mean = n * m / 2.0;
        let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
        let outside = (mean - 0.5 + normal::quantile(alpha / 2.0) * deviation).max(0.0);
        let outside = floor_u64(outside);
        let error = normal::two_sided((mean - 0.5 - outside as f64).max(0.0) / deviation);
        return Cutoff { outside, error };
    }
    cut_of(&untied(n, m), alpha)
}

/// Null distribution of U for groups of `n` and `m` values without ties. It is computed once for each pair of sizes.
fn untied(n: usize, m: usize) -> Arc<[f64]> {
    type Tables = BTreeMap<(usize, usize), Arc<[f64]>>;
    static KNOWN: Mutex<Tables> = Mutex::new(Tables::new());
    // Entries are inserted whole, so the map is valid even if a thread panicked while it held the lock.
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = known.entry((n, m)).or_insert_with(|| {
        let ranks: Vec<u32> = (1..=u32::try_from(n + m).unwrap_or(u32::MAX)).collect();
        let (counts, _) = subset_sums(&ranks, m);
        let all: f64 = counts.iter().sum();
        counts.iter().map(|count| count / all).collect()
    });
    Arc::clone(entry)
}

/// Hodges-Lehmann shift: the median of all differences b − a, with the interval of the inverted Mann-Whitney test.
pub fn estimate(a: &[f64], b: &[f64], level: f64) -> Result<Estimate> {
    check(a, b)?;
    probability("a confidence level", level)?;
    let differences = Differences::new(sorted(a), sorted(b));
    let value = differences.median();
    let cut = cut(a.len(), b.len(), 1.0 - level);
    let interval = (cut.error < 1.0).then(|| differences.interval(cut, level));
    Ok(Estimate { value, interval })
}

/// The differences between every value of B and every value of A.
struct Differences {
    a: Vec<f64>,
    b: Vec<f64>,
    /// All differences, sorted; `None` if they are too many to be stored.
    all: Option<Vec<f64>>,
}

impl Differences {
    fn new(a: Vec<f64>, b: Vec<f64>) -> Self {
        let all = (a.len() * b.len() <= 5_000).then(|| {
            let mut all: Vec<f64> = a
                .iter()
                .flat_map(|x| b.iter().map(move |y| y - x))
                .collect();
            all.sort_unstable_by(f64::total_cmp);
            all
        });
        Self { a, b, all }
    }
}

impl Ordered for Differences {
    fn kept(&self) -> Option<&[f64]> {
        self.all.as_deref()
    }

    fn count(&self) -> u64 {
        self.a.len() as u64 * self.b.len() as u64
    }

    fn bounds(&self) -> (f64, f64) {
        let low = self.b[0] - self.a[self.a.len() - 1];
        (low, self.b[self.b.len() - 1] - self.a[0])
    }

    /// Returns the number of differences b − a that are at most `limit`. One pass is enough, because
    /// more values of `b` satisfy the limit as `a` ascends.
    fn at_most(&self, limit: f64) -> u64 {
        let mut end = 0;
        let mut count = 0;
        for &x in &self.a {
            while end < self.b.len() && self.b[end] - x <= limit {
                end += 1;
            }
            count += end as u64;
        }
        count
    }
}

/// Returns the smallest two-sided p-value that is possible for groups of `n` and `m` values: 2 / C(n + m, n). It is
/// reached if every value of one group is above every value of the other group.
pub fn smallest_p(n: u64, m: u64) -> f64 {
    let (small, all) = (n.min(m), n + m);
    // ln C(N, k) as a sum stays finite where the coefficient overflows.
    let log: f64 = (0..small)
        .map(|i| libm::log((all - i) as f64 / (small - i) as f64))
        .sum();
    (2.0 * libm::exp(-log)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_separation_of_four_and_four_reaches_two_in_seventy() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        assert!((test(&a, &b).unwrap().p - 2.0 / 70.0).abs() < 1e-15);
        assert!((smallest_p(4, 4) - 2.0 / 70.0).abs() < 1e-15);
    }

    #[test]
    fn equal_values_everywhere_are_no_evidence() {
        assert!((test(&[7.0; 5], &[7.0; 6]).unwrap().p - 1.0).abs() < 1e-15);
        assert!((test(&[7.0; 50], &[7.0; 60]).unwrap().p - 1.0).abs() < 1e-15);
    }

    #[test]
    fn bisection_finds_the_same_order_statistics_as_sorting() {
        let mut random = crate::rng::Xoshiro::new(4);
        let mut draw = |n| {
            sorted(
                &(0..n)
                    .map(|_| (random.normal() * 9.0).round())
                    .collect::<Vec<_>>(),
            )
        };
        let kept = Differences::new(draw(40), draw(30));
        let bisected = Differences {
            a: kept.a.clone(),
            b: kept.b.clone(),
            all: None,
        };
        for position in [1, 2, 350, 600, 1200] {
            let (x, y) = (
                kept.order_statistic(position),
                bisected.order_statistic(position),
            );
            assert!((x - y).abs() < f64::EPSILON, "{position}: {x} {y}");
        }
    }
}
