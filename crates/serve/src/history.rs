//! A metric over time, with the places where it changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use pagetide_compare::history;
use pagetide_compare::history::{CellHistory, FEWEST, HistoryValue, Order};
use pagetide_report::draw::clean;
use pagetide_report::draw::quantity::{Scale, signed};
use pagetide_store::Filter;
use pagetide_store::Store;
use serde::Deserialize;

use crate::Site;
use crate::pages::{answer, given, rendered};

/// Left and right end of the picture; left of it stand the values.
const ACROSS: (f64, f64) = (96.0, 786.0);
/// Upper and lower end of the picture; below it stands what is first and last.
const DOWN: (f64, f64) = (14.0, 170.0);
/// Colours of variants.
const COLOURS: usize = 4;
/// Newest records whose metrics are offered.
const OFFERED: u32 = 40;

/// What is wanted.
#[derive(Deserialize)]
pub(crate) struct HistoryQuery {
    #[serde(default)]
    metric: String,
    #[serde(default)]
    scenario: String,
    #[serde(default)]
    order: String,
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
    /// Value and place of each line across.
    ticks: Vec<(String, String)>,
    /// Across, down and colour.
    points: Vec<(String, String, usize)>,
    legend: Vec<(usize, String)>,
    first: String,
    last: String,
    changes: Vec<String>,
    notes: Vec<String>,
    /// What is said where no change stands.
    nothing: String,
    rows: Vec<ValueRow>,
}

#[derive(Template)]
#[template(path = "history.html")]
struct Page {
    title: &'static str,
    metric: String,
    scenario: String,
    by_dates: bool,
    metrics: BTreeSet<String>,
    scenarios: BTreeSet<String>,
    trouble: String,
    cells: Vec<CellPage>,
}

pub(crate) async fn page(
    State(shared): State<Arc<Site>>,
    Query(wanted): Query<HistoryQuery>,
) -> Response {
    answer(shared, move |store| {
        let mut page = Page {
            title: "History",
            by_dates: wanted.order == "dates",
            metrics: BTreeSet::new(),
            scenarios: BTreeSet::new(),
            trouble: String::new(),
            cells: Vec::new(),
            metric: clean(&wanted.metric, 80, false),
            scenario: clean(&wanted.scenario, 80, false),
        };
        offer(store, &mut page);
        let order = if page.by_dates {
            Order::Dates
        } else {
            Order::Kernels
        };
        if let Some(metric) = given(&wanted.metric) {
            let filter = Filter {
                scenario: given(&wanted.scenario),
                ..Filter::default()
            };
            match history(store, &metric, &filter, order) {
                Ok(found) => page.cells = found.cells.iter().map(cell).collect(),
                Err(error) => page.trouble = clean(&error.to_string(), 500, false),
            }
        }
        rendered(&page)
    })
    .await
}

/// Metrics and scenarios of the newest records, to choose from.
fn offer(store: &Store, page: &mut Page) {
    let filter = Filter {
        limit: Some(OFFERED),
        ..Filter::default()
    };
    for row in store.select(&filter).unwrap_or_default() {
        let scenario = clean(&row.cell.subject.scenario, 80, false);
        if page.scenarios.insert(scenario)
            && let Ok(reader) = store.load(&row.id)
        {
            let metrics = &reader.record().results.metrics;
            page.metrics
                .extend(metrics.iter().map(|metric| clean(&metric.name, 80, false)));
        }
    }
}

fn cell(history: &CellHistory) -> CellPage {
    let values: Vec<f64> = history.values.iter().map(|value| value.value).collect();
    let scale = Scale::of_all(history.unit, values.iter().copied());
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = if high > low { high - low } else { 1.0 };
    let last = values.len().saturating_sub(1).max(1) as f64;
    let across = |at: f64| format!("{:.1}", ACROSS.0 + at / last * (ACROSS.1 - ACROSS.0));
    let down = |value: f64| {
        let share = (value - low) / span;
        format!("{:.1}", DOWN.1 - share * (DOWN.1 - DOWN.0))
    };
    let mut names: Vec<&str> = Vec::new();
    for value in &history.values {
        if !names.contains(&value.variant.as_str()) {
            names.push(&value.variant);
        }
    }
    let colour = |name: &str| names.iter().position(|n| *n == name).unwrap_or(0) % COLOURS;
    let ends = |place: Option<&HistoryValue>| {
        place.map_or(String::new(), |value| clean(&value.release, 60, false))
    };
    CellPage {
        label: clean(&history.label, 100, false),
        ticks: if high > low {
            vec![low, f64::midpoint(low, high), high]
        } else {
            vec![low]
        }
        .into_iter()
        .map(|value| (down(value), scale.show(value, false)))
        .collect(),
        points: history
            .values
            .iter()
            .enumerate()
            .map(|(at, value)| (across(at as f64), down(value.value), colour(&value.variant)))
            .collect(),
        legend: names
            .iter()
            .map(|name| (colour(name), clean(name, 60, false)))
            .collect(),
        first: ends(history.values.first()),
        last: ends(history.values.last()),
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
        nothing: if history.points < FEWEST {
            format!(
                "{} kernels or runs are too few to find a change among, which takes {FEWEST}: a comparison judges two.",
                history.points
            )
        } else {
            "No change is found.".to_owned()
        },
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
