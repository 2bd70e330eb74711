//! Nested data: repetitions within one boot or fresh arena are not independent, so the boot is the sampling unit.
//!
//! Kalibera and Jones (2013), "Rigorous benchmarking in reasonable time": repetitions within a unit cannot average out
//! the variation between units. Each unit is reduced to one value, and n is the number of units.

use serde::{Deserialize, Serialize};

use crate::error::{Result, StatError};
use crate::number::mean;
use crate::signed_rank::pseudo_median;

/// Reduces each unit to one value: the Hodges-Lehmann estimate of its repetitions.
pub fn aggregate(units: &[Vec<f64>]) -> Result<Vec<f64>> {
    units.iter().map(|unit| pseudo_median(unit)).collect()
}

/// Variance of nested data, between units and within units.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Components {
    /// Variance between units; zero if the estimate is negative.
    pub between: f64,
    /// Variance of repetitions within a unit.
    pub within: f64,
    /// Mean number of repetitions per unit, weighted as in the analysis of variance.
    pub repetitions: f64,
}

/// Returns the variance components by one-way analysis of variance (Searle, Casella and McCulloch 1992, section 3.6).
/// Fails with fewer than two units or without repetitions.
pub fn components(units: &[Vec<f64>]) -> Result<Components> {
    let count: usize = units.iter().map(Vec::len).sum();
    if units.len() < 2 || count <= units.len() {
        return Err(StatError::TooFew {
            what: "the variance between and within units".into(),
            need: 2 * units.len().max(2),
            got: count,
        });
    }
    let all: Vec<f64> = units.iter().flatten().copied().collect();
    let overall = mean(&all)?;
    let (mut across, mut inside, mut squares) = (0.0, 0.0, 0.0);
    for unit in units {
        let centre = mean(unit)?;
        let size = unit.len() as f64;
        across += size * (centre - overall).powi(2);
        inside += unit.iter().map(|x| (x - centre).powi(2)).sum::<f64>();
        squares += size * size;
    }
    let (groups, total) = (units.len() as f64, count as f64);
    let repetitions = (total - squares / total) / (groups - 1.0);
    let within = inside / (total - groups);
    let between = ((across / (groups - 1.0) - within) / repetitions).max(0.0);
    Ok(Components {
        between,
        within,
        repetitions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_between_boots_is_told_from_variation_inside_them() {
        let boots = vec![
            vec![10.0, 10.1, 9.9],
            vec![20.0, 20.1, 19.9],
            vec![15.0, 15.1, 14.9],
        ];
        let parts = components(&boots).unwrap();
        assert!((parts.within - 0.01).abs() < 1e-9);
        assert!(parts.between > 20.0, "{parts:?}");
        let shuffled = vec![vec![10.0, 20.0, 15.0], vec![15.0, 10.0, 20.0]];
        assert!(components(&shuffled).unwrap().between < 1e-12);
    }
}
