//! Numerical helpers shared by all estimators.

pub(crate) use pagetide_quantity::floor as floor_u64;

use crate::error::{Result, Side, StatError};

/// Fails if a value is NaN or infinite. The error names the first such value.
pub(crate) fn all_finite(side: Side, values: &[f64]) -> Result<()> {
    values
        .iter()
        .position(|value| !value.is_finite())
        .map_or(Ok(()), |index| Err(StatError::NotFinite { side, index }))
}

/// Fails if there are no values. `what` names the statistic in the error.
pub(crate) fn not_empty(what: &str, values: &[f64]) -> Result<()> {
    if values.is_empty() {
        return Err(StatError::Empty { what: what.into() });
    }
    Ok(())
}

/// Fails if `value` is not in (0, 1). `what` names the probability in the error.
pub(crate) fn probability(what: &str, value: f64) -> Result<()> {
    if value > 0.0 && value < 1.0 {
        return Ok(());
    }
    Err(StatError::BadProbability {
        what: what.into(),
        value,
    })
}

/// Natural logarithm of `b / a` for positive values.
///
/// Swapping the arguments only changes the sign, and equal ratios give equal results for values of any size. Otherwise
/// rounding would break ties that exist in the data. `log1p` keeps small changes exact.
pub fn log_ratio(a: f64, b: f64) -> f64 {
    let (low, high, sign) = if b >= a { (a, b, 1.0) } else { (b, a, -1.0) };
    let excess = (high - low) / low;
    let size = if excess <= 1.0 {
        libm::log1p(excess)
    } else if (high / low).is_finite() {
        libm::log(high / low)
    } else {
        libm::log(high) - libm::log(low)
    };
    // Adding zero turns -0 into 0, so that "no change" has only one representation.
    sign * size + 0.0
}

/// Returns a sorted copy of the values.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut copy = values.to_vec();
    copy.sort_unstable_by(f64::total_cmp);
    copy
}

/// Returns the median of sorted, non-empty values.
pub(crate) fn median_of_sorted(values: &[f64]) -> f64 {
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        values[middle - 1].midpoint(values[middle])
    }
}

/// Returns the median of finite values. Fails without values.
pub fn median(values: &[f64]) -> Result<f64> {
    not_empty("a median", values)?;
    all_finite(Side::Effect, values)?;
    Ok(median_of_sorted(&sorted(values)))
}

/// Returns the arithmetic mean of finite values, computed without overflow for large values. Fails without values.
pub fn mean(values: &[f64]) -> Result<f64> {
    not_empty("a mean", values)?;
    all_finite(Side::Effect, values)?;
    let count = values.len() as f64;
    let plain = values.iter().sum::<f64>() / count;
    if plain.is_finite() {
        return Ok(plain);
    }
    Ok(values.iter().map(|value| value / count).sum())
}

/// Sample standard deviation (n − 1 in the denominator); `None` for one value. Fails without values.
pub fn standard_deviation(values: &[f64]) -> Result<Option<f64>> {
    let centre = mean(values)?;
    if values.len() < 2 {
        return Ok(None);
    }
    // Dividing by the largest distance first prevents overflow of the squares.
    let scale = values
        .iter()
        .map(|value| (value - centre).abs())
        .fold(0.0, f64::max);
    if scale == 0.0 {
        return Ok(Some(0.0));
    }
    let sum: f64 = values
        .iter()
        .map(|value| ((value - centre) / scale).powi(2))
        .sum();
    Ok(Some(scale * (sum / (values.len() - 1) as f64).sqrt()))
}

/// Converts `value` to an index with [`floor_u64`]; the result is at most `usize::MAX`.
pub(crate) fn floor_usize(value: f64) -> usize {
    usize::try_from(floor_u64(value)).unwrap_or(usize::MAX)
}

/// Maps a float to an integer with the same order, so that bisection can find an order statistic exactly.
pub(crate) fn ordered_bits(value: f64) -> u64 {
    let bits = (value + 0.0).to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | (1 << 63)
    }
}

/// Returns the float that [`ordered_bits`] maps to this integer.
pub(crate) fn from_ordered_bits(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 {
        bits & !(1 << 63)
    } else {
        !bits
    })
}

/// Returns the smallest float `t` between `low` and `high` with `count(t) >= wanted`. `count` must be non-decreasing.
pub(crate) fn bisect_floats(
    low: f64,
    high: f64,
    wanted: u64,
    mut count: impl FnMut(f64) -> u64,
) -> f64 {
    let (mut below, mut above) = (ordered_bits(low), ordered_bits(high));
    while below < above {
        let middle = below + (above - below) / 2;
        if count(from_ordered_bits(middle)) >= wanted {
            above = middle;
        } else {
            below = middle + 1;
        }
    }
    from_ordered_bits(above) + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_ratio_only_changes_sign_when_its_arguments_swap() {
        for (a, b) in [
            (1.0, 1.0 + 1e-15),
            (3.0, 7.0),
            (1e-300, 1e300),
            (99.0, 100.0),
        ] {
            assert_eq!(log_ratio(a, b).to_bits(), (-log_ratio(b, a)).to_bits());
        }
        assert_eq!(log_ratio(5.0, 5.0).to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn equal_quotients_of_different_size_are_tied() {
        assert_eq!(
            log_ratio(100.0, 101.0).to_bits(),
            log_ratio(700.0, 707.0).to_bits()
        );
        assert_eq!(
            log_ratio(3.0, 21.0).to_bits(),
            log_ratio(9.0, 63.0).to_bits()
        );
    }

    #[test]
    fn ordered_bits_sort_as_the_floats_do() {
        let values = [
            f64::MIN,
            -1.0,
            -1e-310,
            0.0,
            5e-324,
            1e-10,
            1.0,
            2.5,
            f64::MAX,
        ];
        for pair in values.windows(2) {
            assert!(ordered_bits(pair[0]) < ordered_bits(pair[1]));
            assert_eq!(
                from_ordered_bits(ordered_bits(pair[0])).to_bits(),
                pair[0].to_bits()
            );
        }
    }

    #[test]
    fn spread_of_enormous_values_does_not_overflow() {
        let deviation = standard_deviation(&[1e300, 2e300, 3e300]).unwrap().unwrap();
        assert!((deviation / 1e300 - 1.0).abs() < 1e-12);
        assert!((mean(&[1.7e308, 1.7e308]).unwrap() / 1.7e308 - 1.0).abs() < 1e-12);
    }
}
