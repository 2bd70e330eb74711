//! Number of repeats that are needed to detect a difference of times, computed from the noise of earlier trials.

use pagetide_quantity::Unit;
use pagetide_store::Store;
use serde::Serialize;

use crate::comparison::Values;
use crate::error::CompareError;
use crate::select::{campaign, show_note};

/// Minimum number of trials from which noise is estimated.
const MIN_VALUES: usize = 3;
/// Maximum number of repeats that is reported.
const MAX_TRIALS: f64 = 100_000.0;
/// Sum of the quantiles of the normal distribution for an error rate of 5 % (two-sided) and a probability of 90 %.
const QUANTILES: f64 = 1.959_964 + 1.281_552;

/// Number of repeats that are needed to detect a difference in one time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimeNeed {
    /// Label of the cell.
    pub cell: String,
    /// Name of the metric.
    pub metric: String,
    /// Standard deviation of the time relative to its mean.
    pub noise: f64,
    /// Number of repeats of each variant with which the difference is detected with a probability of 90 %, rounded up;
    /// at most [`MAX_TRIALS`].
    pub repeats: u64,
}

/// Returns the number of repeats of each variant that would detect a difference of `effect` (0.05 for 5 %) in the main
/// time of each cell. Computed from the trials of the baseline that the campaign `name` already has; empty without such
/// a campaign. Cells with too few trials are omitted.
pub fn times_needed(store: &Store, name: &str, effect: f64) -> Result<Vec<TimeNeed>, CompareError> {
    let note = match campaign(store, Some(name)) {
        Ok(note) => note,
        Err(CompareError::NoCampaign { .. }) => return Ok(Vec::new()),
        Err(why) => return Err(why),
    };
    let comparison = show_note(store, &note)?;
    let mut all = Vec::new();
    for cell in &comparison.cells {
        let times = cell.metrics.iter().filter(|row| row.unit == Unit::Nanos);
        // The first primary time is the scenario's main time. Its quantiles and parts have more noise.
        let time = times
            .clone()
            .find(|row| row.primary && row.name != "system");
        let Some(row) = time.or_else(|| times.clone().next()) else {
            continue;
        };
        let Some(noise) = row.values.first().and_then(relative_deviation) else {
            continue;
        };
        all.push(TimeNeed {
            cell: cell.label.clone(),
            metric: row.name.clone(),
            noise,
            repeats: repeats(noise, effect),
        });
    }
    Ok(all)
}

/// Returns the standard deviation of values relative to their mean; `None` for fewer than [`MIN_VALUES`] values, or if the
/// mean is not positive.
fn relative_deviation(values: &Values) -> Option<f64> {
    let numbers = values.numbers();
    let mean = values.mean().filter(|mean| *mean > 0.0)?;
    if numbers.len() < MIN_VALUES {
        return None;
    }
    let squares: f64 = numbers.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (numbers.len() - 1) as f64).sqrt() / mean)
}

/// Returns the number of repeats of each variant that detects a difference of `effect` between the means: n = 2 (z₁ +
/// z₂)² (noise / effect)², rounded up, at least 2 and at most [`MAX_TRIALS`].
fn repeats(noise: f64, effect: f64) -> u64 {
    let needed = 2.0 * (QUANTILES * noise / effect).powi(2);
    pagetide_quantity::floor(needed.clamp(2.0, MAX_TRIALS).ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repeats_are_those_of_the_table_of_noise() {
        // Noise of 3.7 % needs 12 repeats for a difference of 5 %; noise of 17 % needs 243.
        let found = [0.0, 0.037, 0.17].map(|noise| repeats(noise, 0.05));
        assert_eq!(found[0], 2);
        assert!((11..=14).contains(&found[1]), "{found:?}");
        assert!((235..=250).contains(&found[2]), "{found:?}");
        let values = Values {
            values: vec![(0, 9.0), (1, 10.0), (2, 11.0)],
            absent: None,
        };
        assert!((relative_deviation(&values).unwrap() - 0.1).abs() < 1e-9);
    }
}
