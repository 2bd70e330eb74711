//! A metric over time, with the places where it changed.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use pagetide_compare::history;
use pagetide_compare::history::{CellHistory, Order};
use pagetide_record::store::Filter;
use pagetide_report::draw::clean;
use pagetide_report::draw::quantity::{Scale, signed};
use serde::Deserialize;

use crate::Shared;
use crate::pages::{answer, given, rendered};

/// Width of the picture.
const WIDTH: f64 = 800.0;
/// Height of the picture.
const HEIGHT: f64 = 160.0;
/// Room at its edges.
const EDGE: f64 = 8.0;

/// What is wanted.
#[derive(Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    metric: String,
    #[serde(default)]
    scenario: String,
}

struct ValueRow {
    record: String,
    short: String,
    release: String,
    variant: String,
    seed: u64,
    value: String,
}

struct CellPage {
    label: String,
    points: Vec<(String, String)>,
    changes: Vec<String>,
    notes: Vec<String>,
    rows: Vec<ValueRow>,
}

#[derive(Template)]
#[template(path = "history.html")]
struct Page {
    title: &'static str,
    metric: String,
    scenario: String,
    trouble: String,
    cells: Vec<CellPage>,
}

pub(crate) async fn page(
    State(shared): State<Arc<Shared>>,
    Query(wanted): Query<Wanted>,
) -> Response {
    answer(shared, move |store| {
        let mut page = Page {
            title: "History",
            trouble: String::new(),
            cells: Vec::new(),
            metric: clean(&wanted.metric, 80, false),
            scenario: clean(&wanted.scenario, 80, false),
        };
        if let Some(metric) = given(&wanted.metric) {
            let filter = Filter {
                scenario: given(&wanted.scenario),
                ..Filter::default()
            };
            match history(store, &metric, &filter, Order::Dates) {
                Ok(found) => page.cells = found.cells.iter().map(cell).collect(),
                Err(error) => page.trouble = clean(&error.to_string(), 500, false),
            }
        }
        rendered(&page)
    })
    .await
}

fn cell(history: &CellHistory) -> CellPage {
    let values: Vec<f64> = history.values.iter().map(|value| value.value).collect();
    let scale = Scale::of_all(history.unit, values.iter().copied());
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = if high > low { high - low } else { 1.0 };
    let last = values.len().saturating_sub(1).max(1) as f64;
    let across = |at: f64| format!("{:.1}", EDGE + at / last * (WIDTH - 2.0 * EDGE));
    let down = |value: f64| {
        let share = (value - low) / span;
        format!("{:.1}", HEIGHT - EDGE - share * (HEIGHT - 2.0 * EDGE))
    };
    CellPage {
        label: clean(&history.label, 100, false),
        points: values
            .iter()
            .enumerate()
            .map(|(at, value)| (across(at as f64), down(*value)))
            .collect(),
        changes: history
            .changes
            .iter()
            .map(|change| across(change.at as f64 - 0.5))
            .collect(),
        notes: history
            .changes
            .iter()
            .filter_map(|change| {
                let first = history.values.get(change.at)?;
                let effect = if change.is_ratio {
                    format!("{} %", signed((change.effect - 1.0) * 100.0, 1, false))
                } else {
                    scale.show(change.effect, false)
                };
                Some(format!(
                    "{effect} from record {} ({}) on, p = {:.4}",
                    clean(&first.record, 13, false),
                    clean(&first.release, 60, false),
                    change.p
                ))
            })
            .collect(),
        rows: history
            .values
            .iter()
            .map(|value| ValueRow {
                record: value.record.clone(),
                short: clean(&value.record, 13, false),
                release: clean(&value.release, 60, false),
                variant: clean(&value.variant, 60, false),
                seed: value.seed,
                value: scale.show(value.value, false),
            })
            .collect(),
    }
}
