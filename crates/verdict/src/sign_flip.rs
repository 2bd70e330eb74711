//! Sign-flip permutation test of a mean difference: the observed mean is compared with the means after random swaps of
//! A and B within pairs.
//!
//! Sources: Fisher (1935), section 21; Phipson and Smyth (2010) for the +1 correction; Horowitz and Sahni (1974) for
//! enumerating subset sums from two halves.

use crate::error::{Result, Side};
use crate::interval::Test;
use crate::number::{all_finite, not_empty};
use crate::rng::Xoshiro;

/// Maximum number of pairs for which all 2^n sign patterns are enumerated.
pub const ENUMERATED_PAIRS: usize = 20;

/// Two-sided sign-flip test of the hypothesis that the differences are symmetric about zero, with the mean as
/// statistic.
///
/// For up to [`ENUMERATED_PAIRS`] differences, all sign patterns are counted, including the observed one. For more,
/// `resamples` patterns are drawn from `seed` and p = (1 + extreme) / (1 + resamples).
pub fn test(differences: &[f64], resamples: u32, seed: u64) -> Result<Test> {
    not_empty("a sign-flip test", differences)?;
    all_finite(Side::Effect, differences)?;
    let scale = differences
        .iter()
        .fold(0.0, |most: f64, d| most.max(d.abs()));
    if scale == 0.0 {
        return Ok(Test {
            p: 1.0,
            exact: true,
        });
    }
    // Dividing by the largest value prevents overflow and underflow of the sums.
    let scaled: Vec<f64> = differences.iter().map(|d| d / scale).collect();
    let observed: f64 = scaled.iter().sum::<f64>().abs();
    let total: f64 = scaled.iter().map(|d| d.abs()).sum();
    // Sums in another order differ in their last digits, so patterns within rounding count as equally extreme.
    let extreme = observed - 1e-13 * total;
    if scaled.len() <= ENUMERATED_PAIRS {
        return Ok(Test {
            p: enumerate(&scaled, extreme),
            exact: true,
        });
    }
    let mut random = Xoshiro::new(seed);
    let mut count = 0_u32;
    for _ in 0..resamples {
        let mut sum = 0.0;
        for chunk in scaled.chunks(64) {
            let mut bits = random.bits();
            for &d in chunk {
                // The sign bit is flipped by a random bit.
                sum += f64::from_bits(d.to_bits() ^ (bits << 63));
                bits >>= 1;
            }
        }
        count += u32::from(sum.abs() >= extreme);
    }
    Ok(Test {
        p: (1.0 + f64::from(count)) / (1.0 + f64::from(resamples)),
        exact: false,
    })
}

/// Returns the fraction of all sign patterns whose sum has an absolute value of at least `extreme`.
fn enumerate(values: &[f64], extreme: f64) -> f64 {
    let (left, right) = values.split_at(values.len() / 2);
    let left = signed_sums(left);
    let mut right = signed_sums(right);
    right.sort_unstable_by(f64::total_cmp);
    let mut count = 0;
    for x in &left {
        let below = right.partition_point(|y| x + y <= -extreme);
        let above = right.len() - right.partition_point(|y| x + y < extreme);
        count += if extreme <= 0.0 {
            right.len()
        } else {
            below + above
        };
    }
    count as f64 / (left.len() * right.len()) as f64
}

/// Returns all 2^n sums of the values, in which each value is added or subtracted.
fn signed_sums(values: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0];
    for &value in values {
        sums = sums
            .iter()
            .flat_map(|sum| [sum + value, sum - value])
            .collect();
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_all_on_one_side_give_the_smallest_possible_p() {
        let test = test(&[1.0, 2.0, 3.0, 4.0], 99, 0).unwrap();
        assert!((test.p - 2.0 / 16.0).abs() < 1e-15);
        assert!(test.exact);
    }

    #[test]
    fn a_random_sample_of_patterns_never_gives_zero() {
        let differences: Vec<f64> = (1..=40).map(f64::from).collect();
        let test = test(&differences, 999, 5).unwrap();
        assert!((test.p - 1.0 / 1000.0).abs() < 1e-15);
        assert!(!test.exact);
    }

    #[test]
    fn a_sampled_p_is_near_the_enumerated_one() {
        let mut random = Xoshiro::new(11);
        let mut differences: Vec<f64> = (0..20).map(|_| random.normal() + 0.3).collect();
        let exact = test(&differences, 0, 0).unwrap().p;
        // Adding a difference of zero only makes the data longer, so that sign patterns are sampled.
        differences.push(0.0);
        let sampled = test(&differences, 20_000, 1).unwrap().p;
        assert!((exact - sampled).abs() < 0.015, "{exact} {sampled}");
    }
}
