//! Labels outliers, so that a reader can look at their records. Outliers are never dropped.

use serde::{Deserialize, Serialize};

use crate::error::{Result, Side};
use crate::number::{all_finite, median_of_sorted, sorted};

/// A value is an outlier if its modified z-score exceeds this (Iglewicz and Hoaglin 1993, "How to Detect and Handle
/// Outliers", p. 12).
pub const THRESHOLD: f64 = 3.5;

/// A value far from the other values of its sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlier {
    /// What the value is: a value of A, a value of B, or the ratio or difference of a pair.
    pub side: Side,
    /// Index of the value, pair or sampling unit, from 0.
    pub index: usize,
    /// Modified z-score of the outlier; negative if the outlier lies below the median.
    pub score: f64,
}

/// Modified z-scores: 0.6745 (x − median) / MAD.
///
/// MAD is the median absolute deviation. It is zero if more than half of the values are equal. Then 1.253314 times the
/// mean absolute deviation replaces 1.4826 times the MAD. If all values are equal, all scores are zero.
pub fn modified_z_scores(values: &[f64]) -> Result<Vec<f64>> {
    all_finite(Side::Effect, values)?;
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let centre = median_of_sorted(&sorted(values));
    let scale = values.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    if scale == 0.0 {
        return Ok(vec![0.0; values.len()]);
    }
    // Dividing first prevents overflow for very large values.
    let distances: Vec<f64> = values.iter().map(|x| x / scale - centre / scale).collect();
    let sizes: Vec<f64> = distances.iter().map(|d| d.abs()).collect();
    let deviation = median_of_sorted(&sorted(&sizes));
    let spread = if deviation > 0.0 {
        deviation / 0.6745
    } else {
        1.253314 * sizes.iter().sum::<f64>() / sizes.len() as f64
    };
    if spread == 0.0 {
        return Ok(vec![0.0; values.len()]);
    }
    Ok(distances.iter().map(|d| d / spread).collect())
}

/// Labels values whose modified z-score exceeds [`THRESHOLD`]. Fewer than five values are too few to identify an
/// outlier, so none is labelled.
pub fn label(side: Side, values: &[f64]) -> Result<Vec<Outlier>> {
    let scores = modified_z_scores(values)?;
    if values.len() < 5 {
        return Ok(Vec::new());
    }
    Ok(scores
        .into_iter()
        .enumerate()
        .filter(|(_, score)| score.abs() > THRESHOLD)
        .map(|(index, score)| Outlier { side, index, score })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_far_from_the_others_is_labelled_and_the_others_are_not() {
        let found = label(Side::A, &[10.0, 10.2, 9.9, 10.1, 25.0, 10.0]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].index, 4);
        assert!(found[0].score > THRESHOLD);
    }

    #[test]
    fn a_lone_difference_among_equal_values_is_labelled() {
        let mut values = vec![5.0; 20];
        values[7] = 6.0;
        assert_eq!(label(Side::B, &values).unwrap()[0].index, 7);
        assert!(label(Side::B, &[5.0; 9]).unwrap().is_empty());
    }
}
