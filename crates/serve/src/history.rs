//! The page of a metric over time, with the changes found in the metric.

use std::collections::BTreeSet;
use std::sync::Arc;

use askama::Template;
use axum::extract::{Query, State};
use axum::response::Response;
use pagetide_compare::history;
use pagetide_compare::history::{CellHistory, MIN_RECORDS, Order};
use pagetide_report::draw::clean;
use pagetide_report::draw::quantity::{Scale, signed};
use pagetide_store::Filter;
use pagetide_store::Store;
use serde::Deserialize;

use crate::pages::{answer, given, rendered};
use crate::site::Site;

/// Left and right end of the plotted area in pixels; values are printed to the left of it.
const ACROSS: (f64, f64) = (96.0, 786.0);
/// Upper and lower end of the plotted area in pixels; the names of kernels are printed below it.
const DOWN: (f64, f64) = (24.0, 170.0);
/// Width reserved for the name of a kernel, in pixels.
const NAMED: f64 = 90.0;
/// Maximum length of a kernel's name below the picture and at a change, in characters.
const RELEASE: usize = 14;
/// Number of colours for variants; if there are more variants, some share a colour.
const COLOURS: usize = 4;
/// Number of newest records whose scenarios are offered for selection.
const OFFERED: u32 = 40;

/// Query parameters of the history page.
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

/// A value of a record in the picture.
struct Point {
    across: String,
    down: String,
    colour: usize,
    record: String,
    /// Text of the tooltip.
    title: String,
}

/// Consecutive values of one kernel and variant.
struct Group {
    /// Horizontal position of the left end, a little before the first value.
    from: String,
    /// Horizontal position of the right end, a little after the last value.
    to: String,
    /// Horizontal position of the middle of the group.
    middle: String,
    /// Vertical position of the estimate.
    estimate: String,
    /// Vertical position of the lower end of the interval; empty if there are too few values.
    low: String,
    /// Vertical position of the upper end of the interval; empty if there are too few values.
    high: String,
    colour: usize,
    title: String,
}

/// A change in the metric, labelled with the first kernel after the change.
struct ChangeLine {
    across: String,
    name: String,
    /// True if the line is in the right half of the picture, where the label is to the left of the line.
    is_right: bool,
}

struct CellPage {
    label: String,
    /// Vertical position and value of each horizontal line.
    ticks: Vec<(String, String)>,
    points: Vec<Point>,
    groups: Vec<Group>,
    legend: Vec<(usize, String)>,
    /// Horizontal position and name of each kernel for which there is room.
    names: Vec<(String, String)>,
    changes: Vec<ChangeLine>,
    notes: Vec<String>,
    /// Message that no change is found, or why none can be; shown only if there are no changes.
    nothing: String,
    rows: Vec<ValueRow>,
}

#[derive(Template)]
#[template(path = "history.html")]
struct Page {
    title: String,
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
            title: match clean(&wanted.metric, 80, false) {
                metric if metric.is_empty() => "History".to_owned(),
                metric => format!("History of {metric}"),
            },
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

/// Adds the scenarios of the newest records to the page's selection lists, and the metrics of the newest record of each
/// of these scenarios.
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

/// Maps the values of a cell to positions in its picture.
struct Frame<'a> {
    history: &'a CellHistory,
    scale: Scale,
    low: f64,
    high: f64,
    variants: Vec<&'a str>,
}

impl<'a> Frame<'a> {
    fn of(history: &'a CellHistory) -> Self {
        let values = || history.values.iter().map(|value| value.value);
        let mut variants: Vec<&str> = Vec::new();
        for value in &history.values {
            if !variants.contains(&value.variant.as_str()) {
                variants.push(&value.variant);
            }
        }
        Self {
            history,
            scale: Scale::of_all(history.unit, values()),
            low: values().fold(f64::INFINITY, f64::min),
            high: values().fold(f64::NEG_INFINITY, f64::max),
            variants,
        }
    }

    fn across(&self, at: f64) -> f64 {
        let last = self.history.values.len().saturating_sub(1).max(1) as f64;
        ACROSS.0 + at / last * (ACROSS.1 - ACROSS.0)
    }

    fn down(&self, value: f64) -> String {
        let span = if self.high > self.low {
            self.high - self.low
        } else {
            1.0
        };
        let share = ((value - self.low) / span).clamp(0.0, 1.0);
        format!("{:.1}", DOWN.1 - share * (DOWN.1 - DOWN.0))
    }

    fn colour(&self, variant: &str) -> usize {
        let place = self.variants.iter().position(|name| *name == variant);
        place.unwrap_or(0) % COLOURS
    }

    fn show(&self, value: f64) -> String {
        self.scale.show(value, false)
    }

    fn points(&self) -> Vec<Point> {
        let values = self.history.values.iter().enumerate();
        values
            .map(|(at, value)| Point {
                across: format!("{:.1}", self.across(at as f64)),
                down: self.down(value.value),
                colour: self.colour(&value.variant),
                record: value.record.clone(),
                title: format!(
                    "{}: {}, {}, seed {}",
                    self.show(value.value),
                    clean(&value.release, 60, false),
                    clean(&value.variant, 60, false),
                    value.seed
                ),
            })
            .collect()
    }

    /// Returns the estimate for each run of consecutive values of one kernel and variant, with its interval if there
    /// are enough values.
    fn groups(&self) -> Vec<Group> {
        let spreads = self.history.spreads();
        let shown = spreads.iter().filter_map(|spread| {
            let first = self.history.values.get(spread.first)?;
            let (from, to) = (
                spread.first as f64,
                (spread.first + spread.values - 1) as f64,
            );
            let end = |at: usize| {
                let interval = spread.interval.as_ref();
                interval.map_or_else(String::new, |interval| self.down(interval[at]))
            };
            let told = spread
                .interval
                .map_or_else(String::new, |[low, high, level]| {
                    format!(
                        " [{}, {}] at {:.1} %",
                        self.show(low),
                        self.show(high),
                        level * 100.0
                    )
                });
            Some(Group {
                from: format!("{:.1}", self.across(from) - 3.0),
                to: format!("{:.1}", self.across(to) + 3.0),
                middle: format!("{:.1}", self.across(f64::midpoint(from, to))),
                estimate: self.down(spread.estimate),
                low: end(0),
                high: end(1),
                colour: self.colour(&first.variant),
                title: format!(
                    "{}, {}: {}{told}, {} values",
                    clean(&first.release, 60, false),
                    clean(&first.variant, 60, false),
                    self.show(spread.estimate),
                    spread.values
                ),
            })
        });
        shown.collect()
    }

    /// Returns the horizontal position and the name of each kernel, at the first of its consecutive values. A name for
    /// which there is no room is left out.
    fn names(&self) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::new();
        let mut free = f64::NEG_INFINITY;
        let mut before = "";
        for (at, value) in self.history.values.iter().enumerate() {
            let x = self.across(at as f64);
            if value.release != before && x >= free && x <= ACROSS.1 - NAMED / 2.0 {
                all.push((format!("{x:.1}"), clean(&value.release, RELEASE, false)));
                free = x + NAMED;
            }
            before = &value.release;
        }
        all
    }

    /// Returns each change as a line before the first value after it, and as a sentence.
    fn changes(&self) -> Vec<(ChangeLine, String)> {
        let changes = self.history.changes.iter();
        changes
            .filter_map(|change| {
                let first = self.history.values.get(change.at)?;
                let effect = if change.is_ratio {
                    format!("{} %", signed((change.effect - 1.0) * 100.0, 1, false))
                } else {
                    self.show(change.effect)
                };
                let x = self.across(change.at as f64 - 0.5);
                let release = clean(&first.release, 60, false);
                let line = ChangeLine {
                    across: format!("{x:.1}"),
                    name: format!("{} {effect}", clean(&first.release, RELEASE, false)),
                    is_right: x > f64::midpoint(ACROSS.0, ACROSS.1),
                };
                let variant = match self.variants.len() {
                    1 => String::new(),
                    _ => format!(" under {}", clean(&first.variant, 60, false)),
                };
                let note = format!("{effect} from {release}{variant} on, p = {:.4}", change.p);
                Some((line, note))
            })
            .collect()
    }
}

fn cell(history: &CellHistory) -> CellPage {
    let frame = Frame::of(history);
    let (low, high) = (frame.low, frame.high);
    let (changes, notes) = frame.changes().into_iter().unzip();
    CellPage {
        label: clean(&history.label, 100, false),
        ticks: if high > low {
            vec![low, f64::midpoint(low, high), high]
        } else {
            vec![low]
        }
        .into_iter()
        .map(|value| (frame.down(value), frame.show(value)))
        .collect(),
        points: frame.points(),
        groups: frame.groups(),
        legend: frame
            .variants
            .iter()
            .map(|name| (frame.colour(name), clean(name, 60, false)))
            .collect(),
        names: frame.names(),
        changes,
        notes,
        nothing: if history.points == 1 {
            "One kernel or run alone has no change.".to_owned()
        } else if history.points < MIN_RECORDS {
            format!(
                "{} kernels or runs are too few to find a change among, which takes {MIN_RECORDS}: a comparison judges two.",
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
                value: frame.show(value.value),
            })
            .collect(),
    }
}
