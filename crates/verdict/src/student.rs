//! A mean with Student's interval: for a handful of values, where rank tests have no level of 95 %.
//!
//! Student (1908). It assumes that values are roughly normal, which so few can neither show nor refute. So it is used
//! for explanations of a verdict, never for a verdict.

use crate::error::{Result, Side, StatError};
use crate::interval::Interval;
use crate::number::{all_finite, mean, standard_deviation};

/// Quantiles of 97.5 % for 1 to 30 degrees of freedom (Fisher and Yates, table III).
const QUANTILES: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The interval of 95 % around the mean of at least two values.
pub fn interval(values: &[f64]) -> Result<Interval> {
    all_finite(Side::Effect, values)?;
    let (Some(deviation), degrees) = (standard_deviation(values)?, values.len() - 1) else {
        return Err(StatError::TooFew {
            what: "the interval of a mean".into(),
            need: 2,
            got: values.len(),
        });
    };
    // Beyond the table, the first term of the expansion around the normal quantile (Abramowitz and Stegun, 26.7.5).
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
            // Four standard errors.
            assert!((3_745..=3_855).contains(&covered), "{count}: {covered}");
        }
    }

    #[test]
    fn one_value_has_no_interval() {
        assert!(interval(&[1.0]).is_err());
        assert!(interval(&[]).is_err());
        assert!(interval(&[1.0, f64::NAN]).is_err());
    }
}
