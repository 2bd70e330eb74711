//! The mean of a few values with Student's interval. Rank tests cannot reach a level of 95 % for so few values.
//!
//! Source: Student (1908). The interval assumes roughly normal values, and a few values are too few to check this. So
//! [`judge()`](crate::judge()) never uses it. It is used to explain verdicts, and by [`mod@crate::choice`],
//! [`mod@crate::factorial`], [`mod@crate::squeeze`] and [`mod@crate::waiting`].

use crate::error::{Result, Side, StatError};
use crate::interval::Interval;
use crate::number::{all_finite, mean, standard_deviation};

/// Quantiles of 97.5 % for 1 to 30 degrees of freedom (Fisher and Yates, table III).
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Returns the 95 % interval of the mean of the values. Fails for fewer than two values.
pub fn interval(values: &[f64]) -> Result<Interval> {
    let deviation = deviation(values, "the interval of a mean")?;
    let degrees = values.len() - 1;
    // Beyond the table, this is the first term of the expansion around the normal quantile (Abramowitz and Stegun,
    // 26.7.5).
    let quantile = QUANTILES
        .get(degrees - 1)
        .copied()
        .unwrap_or(1.96 + 2.372 / degrees as f64);
    let half = quantile * deviation / (values.len() as f64).sqrt();
    let centre = mean(values)?;
    Ok(Interval {
        low: centre - half,
        high: centre + half,
        level: 0.95,
        wanted: 0.95,
    })
}

/// Returns the interval of the mean at another level, consistent with [`p_value`]. Fails for fewer than two values.
pub fn interval_at(values: &[f64], level: f64) -> Result<Interval> {
    let deviation = deviation(values, "the interval of a mean")?;
    let degrees = values.len() - 1;
    let error = 1.0 - level;
    // Double the upper bound until the quantile is between the two bounds.
    let (mut low, mut high) = (0.0, 1.0);
    while beyond(high, degrees) > error && high < 1e9 {
        (low, high) = (high, 2.0 * high);
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if beyond(middle, degrees) > error {
            low = middle;
        } else {
            high = middle;
        }
    }
    let half = high * deviation / (values.len() as f64).sqrt();
    let centre = mean(values)?;
    Ok(Interval {
        low: centre - half,
        high: centre + half,
        level,
        wanted: level,
    })
}

/// Two-sided p-value of Student's test of the hypothesis that the mean is zero. If all values are equal, the result is
/// 1 if they are zero, otherwise 0. Fails for fewer than two values.
pub fn p_value(values: &[f64]) -> Result<f64> {
    let deviation = deviation(values, "Student's test")?;
    let centre = mean(values)?;
    if deviation == 0.0 {
        return Ok(if centre == 0.0 { 1.0 } else { 0.0 });
    }
    let t = centre / deviation * (values.len() as f64).sqrt();
    Ok(beyond(t.abs(), values.len() - 1))
}

/// Returns the standard deviation of at least two values. `what` names the statistic in the error.
fn deviation(values: &[f64], what: &str) -> Result<f64> {
    all_finite(Side::Effect, values)?;
    standard_deviation(values)?.ok_or_else(|| StatError::TooFew {
        what: what.into(),
        need: 2,
        got: values.len(),
    })
}

/// Returns the probability that Student's t with this number of degrees of freedom has an absolute value above `t`
/// (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn beyond(t: f64, degrees: usize) -> f64 {
    let angle = libm::atan(t / (degrees as f64).sqrt());
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let is_odd = degrees % 2 == 1;
    // Each term is the one before times cos² and (k - 1) / k, with k of the same parity as the degrees of freedom.
    let first = if is_odd { cosine } else { 1.0 };
    let (mut term, mut sum, mut k) = (first, first, if is_odd { 3 } else { 2 });
    while k + 2 <= degrees {
        term *= cosine * cosine * (k - 1) as f64 / k as f64;
        sum += term;
        k += 2;
    }
    let within = match (is_odd, degrees) {
        (true, 1) => angle * std::f64::consts::FRAC_2_PI,
        (true, _) => (angle + sine * sum) * std::f64::consts::FRAC_2_PI,
        (false, _) => sine * sum,
    };
    (1.0 - within).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Xoshiro;

    #[test]
    fn intervals_of_few_values_cover_as_often_as_they_say() {
        let mut random = Xoshiro::new(9);
        for count in [2, 3, 5, 12, 40] {
            let covered = (0..4_000)
                .filter(|_| {
                    let values: Vec<f64> = (0..count).map(|_| random.normal()).collect();
                    interval(&values).unwrap().contains(0.0)
                })
                .count();
            // The tolerance is four standard errors.
            assert!((3_745..=3_855).contains(&covered), "{count}: {covered}");
        }
    }

    #[test]
    fn what_is_at_a_quantile_has_its_probability() {
        // Published quantiles of 97.5 % have three digits.
        for (place, quantile) in QUANTILES.iter().enumerate() {
            let p = beyond(*quantile, place + 1);
            assert!((p - 0.05).abs() < 1e-4, "{}: {p}", place + 1);
        }
        // The density for four degrees of freedom is integrated numerically.
        for (t, p) in [
            (1.0, 0.373_900_966_3),
            (3.0, 0.039_941_968_1),
            (10.0, 0.000_562_003_6),
        ] {
            assert!((beyond(t, 4) - p).abs() < 1e-8, "{t}");
        }
        assert!((p_value(&[1.0, -1.0, 0.0]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!((p_value(&[2.0; 3]), p_value(&[0.0; 3])), (Ok(0.0), Ok(1.0)));
        assert!(p_value(&[2.0]).is_err());
    }

    #[test]
    fn an_interval_of_another_level_is_as_wide_as_its_quantile_says() {
        let values = [0.1, 0.4, -0.2];
        let (known, same) = (
            interval(&values).unwrap(),
            interval_at(&values, 0.95).unwrap(),
        );
        assert!((known.low - same.low).abs() < 1e-3 && (known.high - same.high).abs() < 1e-3);
        // For two degrees of freedom at 97.5 %, the quantile is 6.205 (Fisher and Yates, table III); it is 4.303 at 95
        // %.
        let wider = interval_at(&values, 0.975).unwrap();
        let ratio = (wider.high - wider.low) / (known.high - known.low);
        assert!((ratio - 6.205 / 4.303).abs() < 1e-3, "{ratio}");
        assert!(interval_at(&[1.0], 0.95).is_err());
    }

    #[test]
    fn one_value_has_no_interval() {
        assert!(interval(&[1.0]).is_err());
        assert!(interval(&[]).is_err());
        assert!(interval(&[1.0, f64::NAN]).is_err());
    }
}
