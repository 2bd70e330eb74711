//! Pairs of values with the same seed, as input for power analysis and calibration.

use pagetide_verdict::Pair;

use crate::comparison::{Cell, MetricRow};

/// Returns the pairs of values of a metric in the baseline and in a column. Pairs are formed by seed and repetition, in
/// the order of the baseline; values without a partner are left out.
pub fn pairs(cell: &Cell, row: &MetricRow, column: usize) -> Vec<Pair> {
    let (Some(a), Some(b)) = (cell.sides.first(), cell.sides.get(column)) else {
        return Vec::new();
    };
    let (Some(of_a), Some(of_b)) = (row.values.first(), row.values.get(column)) else {
        return Vec::new();
    };
    let mut pairs = Vec::new();
    for (place, value) in &of_a.values {
        let Some(trial) = a.trials.get(*place) else {
            continue;
        };
        let other = of_b.values.iter().find_map(|(place, value)| {
            let other = b.trials.get(*place)?;
            let is_same = (other.seed, other.repetition) == (trial.seed, trial.repetition);
            is_same.then_some((other, *value))
        });
        if let Some((other, b)) = other {
            let mut pair = Pair::new(*value, b);
            pair.identical = other.digest == trial.digest;
            pairs.push(pair);
        }
    }
    pairs
}
