//! Medians of the primary metrics of a campaign with a single variant, in which no variants can be compared.

use std::fmt;

use pagetide_quantity::{Metric, Unit};
use pagetide_store::{CampaignNote, Row, Store};
use pagetide_verdict::number;
use serde::Serialize;

use crate::error::CompareError;
use crate::input::Input;

/// Median and range of a metric over the seeds of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricMedian {
    /// Label of the cell.
    pub cell: String,
    /// Name of the metric.
    pub metric: String,
    /// Unit of the metric.
    pub unit: Unit,
    /// Number of valid trials with a value.
    pub seeds: usize,
    /// Median of the values, in the metric's unit.
    pub median: f64,
    /// Smallest value, in the metric's unit.
    pub least: f64,
    /// Largest value, in the metric's unit.
    pub most: f64,
}

/// A trial of the campaign whose numbers must not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InvalidSeed {
    /// Label of the cell.
    pub cell: String,
    /// Random seed of the trial.
    pub seed: u64,
    /// Reasons why the trial is invalid, in one line.
    pub why: String,
}

impl fmt::Display for InvalidSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid: {} with seed {}: {}",
            self.cell, self.seed, self.why
        )
    }
}

/// Returns the medians of the primary metrics of every cell of a campaign, and the invalid trials. Each planned trial
/// counts once, with the record that a comparison would use; older records of the same trial are ignored.
pub fn medians(
    store: &Store,
    note: &CampaignNote,
) -> Result<(Vec<MetricMedian>, Vec<InvalidSeed>), CompareError> {
    let (mut medians, mut all_invalid) = (Vec::new(), Vec::new());
    let input = Input::of_campaign(store, note, None)?;
    let cells = input.cells;
    let trials = input.columns.into_iter().flat_map(|column| column.trials);
    let mut by_cell: Vec<Vec<Row>> = cells.iter().map(|_| Vec::new()).collect();
    for trial in trials {
        if let Some(rows) = by_cell.get_mut(trial.cell) {
            rows.push(trial.row);
        }
    }
    for (cell, rows) in cells.iter().zip(by_cell) {
        let Some(first) = rows.first() else { continue };
        let scenario = first.cell.subject.scenario.clone();
        let (valid, invalid): (Vec<_>, Vec<_>) = rows.into_iter().partition(Row::is_valid);
        all_invalid.extend(invalid.into_iter().map(|row| InvalidSeed {
            cell: cell.label.clone(),
            seed: row.seed,
            why: row.invalid.map_or_else(String::new, |why| why.to_string()),
        }));
        let rows: Vec<i64> = valid.iter().map(|row| row.row).collect();
        let metrics = store.metrics(&scenario, &rows)?;
        let mut names: Vec<&str> = Vec::new();
        let decides = |metric: &Metric| match &cell.primary {
            Some(names) => names.contains(&metric.name),
            None => metric.primary,
        };
        for (_, metric) in metrics.iter().filter(|(_, metric)| decides(metric)) {
            if !names.contains(&metric.name.as_str()) {
                names.push(&metric.name);
            }
        }
        for name in names {
            let of = || metrics.iter().filter(|(_, metric)| metric.name == name);
            let values: Vec<f64> = of()
                .filter_map(|(_, metric)| metric.value.number())
                .collect();
            let (Some((_, metric)), Ok(median)) = (of().next(), number::median(&values)) else {
                continue;
            };
            medians.push(MetricMedian {
                cell: cell.label.clone(),
                metric: name.to_owned(),
                unit: metric.unit,
                seeds: values.len(),
                median,
                least: values.iter().copied().fold(f64::INFINITY, f64::min),
                most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            });
        }
    }
    Ok((medians, all_invalid))
}
