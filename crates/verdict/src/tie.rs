//! Finds effects of equal size. Equality is decided from the values, because the logarithms of equal ratios differ by
//! rounding.
//!
//! Integers are compared exactly. Decimal fractions have no exact binary form (0.3 − 0.2 is not 0.2 − 0.1), so sizes
//! that differ by no more than rounding count as equal.

use std::cmp::Ordering;

use crate::judgement::EffectKind;

/// Largest number up to which every integer is exact as a 64-bit float: 2^53.
const WHOLE: f64 = 9_007_199_254_740_992.0;
/// Bound of the rounding error of an effect, relative to its magnitude. It covers the rounding of the values, their
/// quotient and its logarithm.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// Effect of one pair, with the data needed to compare its size exactly.
struct SizedEffect {
    /// The effect on the working scale: a log ratio or a difference.
    effect: f64,
    /// The smaller and the larger value of the pair; `None` unless both are integers.
    whole: Option<[u128; 2]>,
    /// Bound of the rounding error of the effect.
    error: f64,
}

/// Replaces each effect by a number with the same sign: the rank of its size among the distinct sizes, or 0 for no
/// effect. A rank test of the result is equivalent to a rank test of the effects. `effects` holds the effect of each
/// pair of `a` and `b` on the working scale.
pub(crate) fn places(kind: EffectKind, a: &[f64], b: &[f64], effects: &[f64]) -> Vec<f64> {
    let mut all: Vec<SizedEffect> = a
        .iter()
        .zip(b)
        .zip(effects)
        .map(|((&a, &b), &effect)| SizedEffect {
            effect,
            whole: whole(a.min(b)).zip(whole(a.max(b))).map(<[_; 2]>::from),
            error: ROUNDING
                * match kind {
                    EffectKind::Ratio => 1.0 + effect.abs(),
                    EffectKind::Difference => a.abs().max(b.abs()),
                },
        })
        .collect();
    if !all.iter().all(|one| one.whole.is_some()) {
        for one in &mut all {
            one.whole = None;
        }
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&i, &j| by_size(kind, &all[i], &all[j]));
    let mut places = vec![0.0; all.len()];
    let (mut place, mut start) = (0.0, None::<usize>);
    for &index in &order {
        let one = &all[index];
        if is_none(one) {
            continue;
        }
        if start.is_none_or(|start| !is_equal(kind, &all[start], one)) {
            place += 1.0;
            start = Some(index);
        }
        places[index] = f64::copysign(place, one.effect);
    }
    places
}

/// Replaces each value of both groups by its rank among the distinct values. Values that differ by no more than
/// rounding count as equal.
pub(crate) fn common_places(a: &[f64], b: &[f64]) -> [Vec<f64>; 2] {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|&i, &j| all[i].total_cmp(&all[j]));
    let mut places = vec![0.0; all.len()];
    let (mut place, mut start) = (0.0, None::<f64>);
    for &index in &order {
        let value = all[index];
        if start.is_none_or(|start| value - start > ROUNDING * value.abs().max(start.abs())) {
            place += 1.0;
            start = Some(value);
        }
        places[index] = place;
    }
    let of_b = places.split_off(a.len());
    [places, of_b]
}

fn is_none(one: &SizedEffect) -> bool {
    match one.whole {
        Some([low, high]) => low == high,
        None => one.effect.abs() <= one.error,
    }
}

fn is_equal(kind: EffectKind, one: &SizedEffect, other: &SizedEffect) -> bool {
    if one.whole.is_some() {
        return by_size(kind, one, other).is_eq();
    }
    (one.effect.abs() - other.effect.abs()).abs() <= one.error.max(other.error)
}

fn by_size(kind: EffectKind, one: &SizedEffect, other: &SizedEffect) -> Ordering {
    match (kind, one.whole, other.whole) {
        // Both products are below 2^106, so they fit into 128 bits.
        (EffectKind::Ratio, Some([low, high]), Some([other_low, other_high])) => {
            (high * other_low).cmp(&(other_high * low))
        }
        (EffectKind::Difference, Some([low, high]), Some([other_low, other_high])) => {
            (high - low).cmp(&(other_high - other_low))
        }
        _ => one.effect.abs().total_cmp(&other.effect.abs()),
    }
}

/// Returns the value as an integer; `None` if it is not an integer between 0 and 2^53.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a whole number between 0 and 2^53"
)]
fn whole(value: f64) -> Option<u128> {
    ((0.0..=WHOLE).contains(&value) && value.fract() == 0.0).then_some(value as u128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_sizes_and_keep_signs() {
        let (a, b) = ([10.0, 10.0, 7.0, 100.0], [12.0, 5.0, 7.0, 120.0]);
        let effects: Vec<f64> = a.iter().zip(&b).map(|(a, b)| libm::log(b / a)).collect();
        let found = places(EffectKind::Ratio, &a, &b, &effects);
        let wanted = [1.0, -2.0, 0.0, 1.0];
        assert!(
            found.iter().zip(wanted).all(|(x, y)| (x - y).abs() < 0.5),
            "{found:?}"
        );
    }

    #[test]
    fn groups_share_the_places_of_their_values() {
        let [a, b] = common_places(&[0.3, 7.0, -1.0], &[0.1 + 0.2, 9.0]);
        let wanted = [2.0, 3.0, 1.0, 2.0, 4.0];
        let found: Vec<f64> = a.into_iter().chain(b).collect();
        assert!(
            found.iter().zip(wanted).all(|(x, y)| (x - y).abs() < 0.5),
            "{found:?}"
        );
    }

    #[test]
    fn negative_numbers_and_fractions_are_compared_with_care_for_rounding() {
        let (a, b) = ([-0.1, 0.1, -3.0], [0.0, 0.2, -1.0]);
        let effects: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        let found = places(EffectKind::Difference, &a, &b, &effects);
        let wanted = [1.0, 1.0, 2.0];
        assert!(
            found.iter().zip(wanted).all(|(x, y)| (x - y).abs() < 0.5),
            "{found:?}"
        );
    }
}
