//! Serial correlation: whether each trial of a session resembles the one before. If so, the trials carry less
//! information than the same number of independent trials.
//!
//! Successive trials are correlated because a machine warms up, a page cache fills, or another load comes and goes. Two
//! trials of one block share these conditions, so their difference does not depend on them. A difference between
//! unpaired groups does. Rank tests assume independent values, so an interval from two drifting sessions is several
//! times too narrow. This module tests the correlation between neighbours and computes how much wider the interval must
//! be.
//!
//! Only *detected* correlation is corrected, and few trials show little of it. For example, let each trial retain 80 %
//! of the deviation of the trial before. For eight trials against eight, 95 % intervals that assume independence cover
//! 49 %. If they are widened when correlation is detected, they cover 79 %. For thirty trials against thirty, the
//! coverages are 48 % and 89 %. A difference between two whole sessions cannot be detected from the values of either
//! session. Only blocks with one trial of each variant avoid both problems.

use crate::error::{Result, Side};
use crate::number::all_finite;
use crate::rank::rank;
use crate::rng::Xoshiro;

/// Number of random orders with which the measured order is compared.
const ORDERS: u32 = 499;
/// Significance level of the test. It is higher than the usual 5 %, because the errors are not equally bad: widening an
/// interval needlessly makes its coverage half a percent too high, but not widening it when needed costs many percent.
pub const LEVEL: f64 = 0.1;
/// Maximum correlation used. For values closer to 1, the effective number of trials would be almost zero.
const MAX: f64 = 0.95;

/// Serial correlation of trials, and by how much it increases the variance of an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dependence {
    /// Correlation of neighbouring values, corrected for its bias in short series; between 0 and 0.95.
    pub correlation: f64,
    /// One-sided p-value of the hypothesis that the order is random. It is small if neighbours are correlated.
    pub p: f64,
    /// Variance of an estimate divided by the variance for independent values.
    pub inflation: f64,
}

impl Dependence {
    /// True if the correlation is significant.
    pub fn is_seen(&self) -> bool {
        self.p <= LEVEL && self.inflation > 1.0
    }
}

/// Tests the correlation between neighbours in groups whose values are in order of measurement.
///
/// The statistic is the serial correlation of ranks within groups (Wald and Wolfowitz 1943; Bartels 1982), pooled over
/// the groups. Its p-value comes from random orders, including the measured one. `None` if no group has at least four
/// values that are not all equal.
pub fn dependence(groups: &[&[f64]], seed: u64) -> Result<Option<Dependence>> {
    let mut centred: Vec<Vec<f64>> = Vec::new();
    for group in groups {
        all_finite(Side::Effect, group)?;
        if group.len() < 4 {
            continue;
        }
        let middle = group.len() as f64 + 1.0;
        let ranks = rank(group).doubled;
        let ranks: Vec<f64> = ranks.iter().map(|&r| f64::from(r) - middle).collect();
        if ranks.iter().any(|&r| r != 0.0) {
            centred.push(ranks);
        }
    }
    if centred.is_empty() {
        return Ok(None);
    }
    let squares: f64 = centred.iter().flatten().map(|r| r * r).sum();
    let products = |groups: &[Vec<f64>]| -> f64 {
        let neighbours = groups.iter().flat_map(|group| group.windows(2));
        neighbours.map(|pair| pair[0] * pair[1]).sum()
    };
    let observed = products(&centred);
    let count: usize = centred.iter().map(Vec::len).sum();
    let length = count as f64 / centred.len() as f64;
    let mut random = Xoshiro::new(seed);
    let mut extreme = 1;
    for _ in 0..ORDERS {
        for group in &mut centred {
            random.shuffle(group);
        }
        extreme += u32::from(products(&centred) >= observed * (1.0 - 1e-12));
    }
    // Kendall and Stuart, volume 3, section 48.4: in a series of n, r is too small by about (1 + 4 rho) / n.
    let raw = observed / squares;
    let correlation = if length > 4.0 {
        (length * raw + 1.0) / (length - 4.0)
    } else {
        MAX
    }
    .clamp(0.0, MAX);
    Ok(Some(Dependence {
        correlation,
        p: f64::from(extreme) / f64::from(ORDERS + 1),
        inflation: inflation(correlation, length),
    }))
}

/// Returns the variance of a mean of `n` values divided by (sample variance / `n`), if neighbours have this correlation
/// (Bayley and Hammersley 1946; Law and Kelton, section 4.4).
fn inflation(correlation: f64, n: f64) -> f64 {
    let mut design = 1.0;
    let (mut lag, mut power) = (1.0, correlation);
    while lag < n && power > 1e-12 {
        design += 2.0 * (1.0 - lag / n) * power;
        lag += 1.0;
        power *= correlation;
    }
    // Correlated values also vary less around their own mean.
    design / (1.0 - (design - 1.0) / (n - 1.0)).max(1.0 / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembering(memory: f64, count: usize, random: &mut Xoshiro) -> Vec<f64> {
        let mut value = random.normal();
        (0..count)
            .map(|_| {
                value = memory * value + (1.0 - memory * memory).sqrt() * random.normal();
                value
            })
            .collect()
    }

    #[test]
    fn memory_is_seen_and_measured_in_long_series() {
        let mut random = Xoshiro::new(1);
        let (a, b) = (
            remembering(0.8, 200, &mut random),
            remembering(0.8, 200, &mut random),
        );
        let found = dependence(&[&a, &b], 1).unwrap().unwrap();
        assert!(found.is_seen());
        assert!((found.correlation - 0.8).abs() < 0.1, "{found:?}");
        // For large n, the inflation is (1 + 0.8) / (1 - 0.8).
        assert!((found.inflation - 9.0).abs() < 4.0, "{found:?}");
    }

    #[test]
    fn independent_values_are_seldom_called_dependent() {
        let mut random = Xoshiro::new(2);
        let mut seen = 0;
        for seed in 0..1_000 {
            let (a, b) = (
                remembering(0.0, 8, &mut random),
                remembering(0.0, 8, &mut random),
            );
            seen += u32::from(dependence(&[&a, &b], seed).unwrap().unwrap().is_seen());
        }
        // The tolerance is four standard errors.
        assert!(seen <= 100 + 38, "{seen}");
    }

    #[test]
    fn a_short_series_of_strong_memory_counts_for_little() {
        // Expected value from the definition, for eight values with a correlation of 0.8.
        assert!((inflation(0.8, 8.0) - 10.715).abs() < 0.001);
        assert!((inflation(0.0, 8.0) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn groups_too_short_or_all_equal_say_nothing() {
        assert_eq!(dependence(&[&[1.0, 2.0, 3.0], &[4.0; 9]], 1).unwrap(), None);
        assert!(dependence(&[&[1.0, f64::NAN, 3.0, 4.0]], 1).is_err());
    }
}
