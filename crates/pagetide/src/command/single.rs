//! What is shown of a campaign with a single variant: there is nothing to judge, so the medians alone.

use anyhow::Result;
use pagetide_record::Pass;
use pagetide_report::draw::{Align, quantity};
use pagetide_report::terminal::Row;
use pagetide_store::CampaignNote;
use pagetide_store::Store;
use pagetide_verdict::number;
use serde::Serialize;

use crate::exit::End;
use crate::output::{Output, say};

/// A metric over the seeds of a cell.
#[derive(Serialize)]
struct Measured {
    cell: String,
    metric: String,
    unit: pagetide_quantity::Unit,
    seeds: usize,
    median: f64,
    least: f64,
    most: f64,
}

impl Row for Measured {
    const HEADS: &'static [(&'static str, Align)] = &[
        ("cell", Align::Left),
        ("metric", Align::Left),
        ("seeds", Align::Right),
        ("median", Align::Right),
        ("least", Align::Right),
        ("most", Align::Right),
    ];

    fn cells(&self) -> Vec<String> {
        let show = |value| quantity::show(self.unit, value, false);
        vec![
            self.cell.clone(),
            self.metric.clone(),
            self.seeds.to_string(),
            show(self.median),
            show(self.least),
            show(self.most),
        ]
    }
}

/// Shows the primary metrics of every cell; all invalid trials with their reasons.
pub fn show(store: &Store, note: &CampaignNote, out: Output) -> Result<End> {
    let mut table = Vec::new();
    let mut any_invalid = false;
    for (place, cell) in note.cells.iter().enumerate() {
        let mut keys: Vec<String> = note
            .entries
            .iter()
            .filter(|entry| entry.cell == place)
            .map(|entry| entry.key.clone())
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let mut rows = store.by_keys(&keys)?;
        // An observed trial explains; its times carry the observer's cost.
        rows.retain(|row| row.cell.subject.pass == Pass::Timed);
        let Some(first) = rows.first() else { continue };
        let scenario = first.cell.subject.scenario.clone();
        let valid: Vec<i64> = rows
            .iter()
            .filter(|r| r.is_valid())
            .map(|r| r.row)
            .collect();
        for row in rows.iter().filter(|row| !row.is_valid()) {
            any_invalid = true;
            let why = row.invalid.as_deref().unwrap_or_default();
            say(&format!(
                "invalid: {} with seed {}: {why}",
                cell.label, row.seed
            ));
        }
        let mut names: Vec<String> = Vec::new();
        let metrics = store.metrics(&scenario, &valid)?;
        for (_, metric) in metrics.iter().filter(|(_, metric)| metric.primary) {
            if !names.contains(&metric.name) {
                names.push(metric.name.clone());
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
            table.push(Measured {
                cell: cell.label.clone(),
                unit: metric.unit,
                metric: name,
                seeds: values.len(),
                median,
                least: values.iter().copied().fold(f64::INFINITY, f64::min),
                most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            });
        }
    }
    out.list(&table, "no trial gave a number")?;
    Ok(if any_invalid { End::Open } else { End::Done })
}
