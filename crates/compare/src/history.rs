//! A metric over time or over kernels, with the places where it changed.
//!
//! Seeds differ far more than kernels do. So each value is compared with the median of its seed before changes are
//! searched; the values shown are the original ones.
//!
//! Values of one kernel share everything specific to that kernel, so they are not independent. By kernels, each kernel
//! and variant is one point: the median of its values. A change lies between kernels. By dates, variants are separate,
//! and a point is one session of recording on one kernel.

use std::collections::BTreeMap;
use std::str::FromStr;

use pagetide_quantity::{Direction, Nanos, Unit};
use pagetide_record::{ArenaKind, Pass};
use pagetide_store::Store;
use pagetide_store::{Filter, Point};
use pagetide_verdict::change::{Search, change_points};
use pagetide_verdict::{number, signed_rank};
use serde::Serialize;

use crate::error::CompareError;
use crate::version::by_version;

/// Changes are searched in at most this number of records of a cell, the newest ones: the time of the search grows with
/// the square.
pub const MOST: usize = 200;

/// Order of the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// By kernel release, older versions first.
    #[default]
    Kernels,
    /// By start time of the trial, separately for each variant, because the variants of one campaign alternate.
    Dates,
}

impl FromStr for Order {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "kernels" => Ok(Self::Kernels),
            "dates" => Ok(Self::Dates),
            _ => Err("the order is kernels or dates".to_owned()),
        }
    }
}

/// A metric over the records of a scenario.
#[derive(Clone, Debug, Serialize)]
pub struct History {
    /// Name of the metric.
    pub metric: String,
    /// The order of the values.
    pub order: Order,
    /// The cells: values of different cells are never combined.
    pub cells: Vec<CellHistory>,
}

/// A metric over the records of one cell.
#[derive(Clone, Debug, Serialize)]
pub struct CellHistory {
    /// A short human label.
    pub label: String,
    /// Identity of the cell.
    pub cell: String,
    /// The arena of the trials.
    pub arena: ArenaKind,
    /// Unit of the metric.
    pub unit: Unit,
    /// Which direction is better.
    pub direction: Direction,
    /// The values in this order.
    pub values: Vec<HistoryValue>,
    /// The changes, in the same order.
    pub changes: Vec<Change>,
    /// Number of points between which changes are searched: kernels and variants, or sessions.
    pub points: usize,
    /// Number of records left out because there are more than [`MOST`].
    pub left_out: usize,
}

/// One value with the record it comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryValue {
    /// Identity of the record.
    pub record: String,
    /// Kernel release.
    pub release: String,
    /// Name of the variant.
    pub variant: String,
    /// Seed.
    pub seed: u64,
    /// Start of the trial, nanoseconds since 1970.
    pub started: Nanos,
    /// Number of the session of recording, if the order is by dates. A session is the trials of one campaign without a
    /// pause of an hour.
    pub session: usize,
    /// The value.
    pub value: f64,
}

impl HistoryValue {
    /// True if both values belong to the same point: same kernel, variant and session.
    fn is_with(&self, other: &Self) -> bool {
        let point = |value: &Self| (value.session, value.release.clone(), value.variant.clone());
        point(self) == point(other)
    }
}

/// Estimate of consecutive values of one kernel and variant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Index of the first of these values in [`CellHistory::values`].
    pub first: usize,
    /// Number of values.
    pub values: usize,
    /// Their Hodges-Lehmann estimate.
    pub estimate: f64,
    /// Ends of the confidence interval and its level; `None` if there are too few values.
    pub interval: Option<[f64; 3]>,
}

/// A change between two values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Index of the first value after the change in [`CellHistory::values`].
    pub at: usize,
    /// Median of the values after the change, up to the next one, divided by the median before, seed by seed. If some
    /// values are zero or negative, the difference of these medians.
    pub effect: f64,
    /// Whether `effect` is a ratio.
    pub is_ratio: bool,
    /// Permutation p-value.
    pub p: f64,
}

/// Consecutive values of one kernel and variant between two changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// Kernel release.
    pub release: String,
    /// Name of the variant.
    pub variant: String,
    /// Start of the first trial, nanoseconds since 1970.
    pub started: Nanos,
    /// Number of values.
    pub values: usize,
    /// Their median, in the metric's unit.
    pub median: f64,
    /// The change at its start, if there is one.
    pub change: Option<Change>,
}

/// Confidence level of the intervals in a history.
const LEVEL: f64 = 0.95;

impl CellHistory {
    /// Estimates with intervals, in order: one for each run of consecutive values with the same kernel and variant.
    pub fn spreads(&self) -> Vec<Spread> {
        let mut all = Vec::new();
        let mut first = 0;
        for part in self.values.chunk_by(HistoryValue::is_with) {
            let values: Vec<f64> = part.iter().map(|value| value.value).collect();
            if let Ok(found) = signed_rank::estimate(&values, LEVEL) {
                all.push(Spread {
                    first,
                    values: part.len(),
                    estimate: found.value,
                    interval: found.interval.map(|i| [i.low, i.high, i.level]),
                });
            }
            first += part.len();
        }
        all
    }

    /// The values grouped into stretches, in order.
    pub fn stretches(&self) -> Vec<Stretch> {
        let mut all: Vec<Stretch> = Vec::new();
        let mut from = 0;
        for at in 1..=self.values.len() {
            let first = &self.values[from];
            let goes_on = self.values.get(at).is_some_and(|next| {
                next.is_with(first) && self.changes.iter().all(|change| change.at != at)
            });
            if goes_on {
                continue;
            }
            let values: Vec<f64> = self.values[from..at].iter().map(|v| v.value).collect();
            all.push(Stretch {
                release: first.release.clone(),
                variant: first.variant.clone(),
                started: first.started,
                values: values.len(),
                median: number::median(&values).unwrap_or(f64::NAN),
                change: self
                    .changes
                    .iter()
                    .find(|change| change.at == from)
                    .copied(),
            });
            from = at;
        }
        all
    }
}

/// The history of a metric over all valid timed records that match the filter, by cell.
pub fn history(
    store: &Store,
    metric: &str,
    filter: &Filter,
    order: Order,
) -> Result<History, CompareError> {
    let filter = Filter {
        valid: Some(true),
        pass: filter.pass.or(Some(Pass::Timed)),
        ..filter.clone()
    };
    let mut cells: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for point in store.history(metric, &filter)? {
        let mut cell = point.record.cell.hash.clone();
        if order == Order::Dates {
            cell = format!("{cell} {}", point.record.variant.name);
        }
        cells.entry(cell).or_default().push(point);
    }
    if cells.is_empty() {
        return Err(CompareError::NoRecords {
            what: format!("metric {metric}"),
        });
    }
    let mut cells = cells
        .into_values()
        .map(|points| of_cell(points, order))
        .collect::<Result<Vec<_>, _>>()?;
    cells.sort_by(|a, b| a.label.cmp(&b.label));
    Ok(History {
        metric: metric.to_owned(),
        order,
        cells,
    })
}

fn of_cell(mut points: Vec<Point>, order: Order) -> Result<CellHistory, CompareError> {
    // Points are sorted by time, oldest first.
    let left_out = points.len().saturating_sub(MOST);
    points.drain(..left_out);
    if order == Order::Kernels {
        points.sort_by(|a, b| {
            let [x, y] = [a, b].map(|point| &point.record.variant);
            by_version(&x.kernel.release, &y.kernel.release).then_with(|| x.name.cmp(&y.name))
        });
    }
    let first = &points[0];
    let (unit, direction) = (first.metric.unit, first.metric.direction);
    let subject = &first.record.cell.subject;
    let (mut label, arena) = (subject.cell_label(), subject.arena.kind);
    if order == Order::Dates {
        label = format!("{label} · {}", first.record.variant.name);
    }
    let sittings = match order {
        Order::Kernels => vec![0; points.len()],
        Order::Dates => sittings(&points),
    };
    let cell = first.record.cell.hash.clone();
    let values: Vec<HistoryValue> = points
        .into_iter()
        .zip(sittings)
        .filter_map(|(point, session)| {
            Some(HistoryValue {
                session,
                value: point.metric.value.number()?,
                release: point.record.variant.kernel.release.clone(),
                variant: point.record.variant.name.clone(),
                seed: point.record.seed,
                started: point.record.started,
                record: point.record.id,
            })
        })
        .collect();
    let is_ratio = values.iter().all(|value| value.value > 0.0);
    let (points, changes) = changes(&values, is_ratio)?;
    Ok(CellHistory {
        label,
        cell,
        arena,
        unit,
        direction,
        values,
        changes,
        points,
        left_out,
    })
}

/// A longer pause between two trials starts a new session.
const PAUSE: Nanos = Nanos::from_secs(3600);

/// The session number of each point. Points are sorted by time, oldest first.
fn sittings(points: &[Point]) -> Vec<usize> {
    let mut session = 0;
    let mut all = vec![0; points.len().min(1)];
    for pair in points.windows(2) {
        let [a, b] = [&pair[0].record, &pair[1].record];
        let pause = b.started.0.saturating_sub(a.started.0);
        session += usize::from(a.campaign != b.campaign || pause > PAUSE.0);
        all.push(session);
    }
    all
}

/// Number of points, and where they change. Consecutive values of one kernel and variant are one point.
fn changes(values: &[HistoryValue], is_ratio: bool) -> Result<(usize, Vec<Change>), CompareError> {
    let mut begins: Vec<usize> = Vec::new();
    let mut points: Vec<Vec<f64>> = Vec::new();
    for (at, value) in against_seed(values, is_ratio).into_iter().enumerate() {
        match points.last_mut() {
            Some(point) if values[at].is_with(&values[at - 1]) => point.push(value),
            _ => {
                begins.push(at);
                points.push(vec![value]);
            }
        }
    }
    let medians = points
        .iter()
        .map(|point| number::median(point))
        .collect::<Result<Vec<f64>, _>>()?;
    let found = change_points(&medians, &Search::default())?
        .into_iter()
        .map(|change| {
            let step = change.after - change.before;
            Change {
                at: begins[change.at],
                effect: if is_ratio { step.exp() } else { step },
                is_ratio,
                p: change.p,
            }
        })
        .collect();
    Ok((medians.len(), found))
}

/// Each value relative to the median of its seed: as the logarithm of the ratio, or as a difference.
fn against_seed(values: &[HistoryValue], is_ratio: bool) -> Vec<f64> {
    let scale = |value: f64| if is_ratio { value.ln() } else { value };
    let mut seeds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for value in values {
        seeds
            .entry(value.seed)
            .or_default()
            .push(scale(value.value));
    }
    let medians: BTreeMap<u64, f64> = seeds
        .into_iter()
        .map(|(seed, mut values)| {
            values.sort_by(f64::total_cmp);
            let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
            (seed, f64::midpoint(low, high))
        })
        .collect();
    values
        .iter()
        .map(|value| scale(value.value) - medians[&value.seed])
        .collect()
}

/// Fewest points in which a change can be found: with fewer points, no order is rare enough for 5 %.
pub const FEWEST: usize = 8;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use pagetide_verdict::rng::Xoshiro;

    use super::*;

    /// Values of eight seeds for each kernel. Seeds differ by 10 %, kernels by 1 %; kernels from a certain one on
    /// differ by a step.
    fn series(kernels: u64, step: f64, random: &mut Xoshiro) -> Vec<HistoryValue> {
        let seeds: Vec<f64> = (0..8).map(|_| (0.1 * random.normal()).exp()).collect();
        (0..kernels)
            .flat_map(|kernel| {
                let level = (0.01 * random.normal()).exp();
                let level = if 2 * kernel >= kernels {
                    level * step
                } else {
                    level
                };
                let noise: Vec<f64> = seeds
                    .iter()
                    .map(|seed| 1e9 * seed * level * (0.002 * random.normal()).exp())
                    .collect();
                noise
                    .into_iter()
                    .zip(0..)
                    .map(move |(value, seed)| HistoryValue {
                        record: String::new(),
                        release: format!("6.{kernel}"),
                        variant: "plain".into(),
                        seed,
                        started: Nanos(0),
                        session: 0,
                        value,
                    })
            })
            .collect()
    }

    #[test]
    fn kernels_that_differ_by_chance_show_a_change_in_five_percent_of_series_at_most() {
        let mut random = Xoshiro::new(31);
        let found = (0..100)
            .filter(|_| {
                let (points, found) = changes(&series(12, 1.0, &mut random), true).unwrap();
                assert_eq!(points, 12);
                !found.is_empty()
            })
            .count();
        // Five of a hundred are expected; ten is more than two standard deviations more.
        assert!(found <= 10, "{found}");
    }

    #[test]
    fn a_step_between_kernels_is_found_at_the_first_value_after_it() {
        let mut random = Xoshiro::new(32);
        for _ in 0..20 {
            let (_, found) = changes(&series(12, 1.08, &mut random), true).unwrap();
            assert_eq!(
                found.iter().map(|change| change.at).collect::<Vec<_>>(),
                [48]
            );
            assert!((found[0].effect - 1.08).abs() < 0.02, "{found:?}");
        }
    }

    #[test]
    fn fewer_kernels_than_can_tell_show_no_change() {
        let mut random = Xoshiro::new(33);
        let mut found = |count| {
            changes(&series(count, 1.5, &mut random), true)
                .unwrap()
                .1
                .len()
        };
        assert_eq!(found(FEWEST as u64 - 1), 0);
        assert_eq!(found(FEWEST as u64), 1);
        let (points, none) = changes(&series(1, 1.0, &mut random), true).unwrap();
        assert!((points, none.len()) == (1, 0));
    }
}
