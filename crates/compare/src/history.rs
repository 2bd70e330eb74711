//! A metric over time or over kernels, with the points at which it changed.
//!
//! Values differ far more between seeds than between kernels. So each value is divided by the median of its seed (or
//! the median is subtracted) before changes are searched. The values shown are the original ones.
//!
//! Values of one kernel are not independent: they share everything specific to that kernel. In the order of kernels,
//! each kernel with a variant is one point, the median of its values, and a change lies between two points. In the
//! order of dates, variants are separate, and a point is one recording session on one kernel.

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

/// Maximum number of records of a cell in which changes are searched. The newest records are used. The time of the
/// search grows with the square of their number.
pub const MAX_RECORDS: usize = 200;

/// Order in which the records of a history are arranged.
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
    /// The order in which the values are arranged.
    pub order: Order,
    /// One history for each cell or, in the order of dates, for each cell and variant. Values of different cells are
    /// never combined.
    pub cells: Vec<CellHistory>,
}

/// Values of one metric in the records of one cell, in the order of the history.
#[derive(Clone, Debug, Serialize)]
pub struct CellHistory {
    /// Short label for display.
    pub label: String,
    /// Hash that identifies the cell.
    pub cell: String,
    /// The arena of the trials.
    pub arena: ArenaKind,
    /// Unit of the metric.
    pub unit: Unit,
    /// Whether lower or higher values are better.
    pub direction: Direction,
    /// The values, in the order of [`History::order`].
    pub values: Vec<HistoryValue>,
    /// The changes, in the order of the values.
    pub changes: Vec<Change>,
    /// Number of points between which changes are searched. A point is a kernel with a variant, or a recording session.
    pub points: usize,
    /// Number of older records that are left out because there are more than [`MAX_RECORDS`].
    pub left_out: usize,
}

/// One value with the record it comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryValue {
    /// ID of the record.
    pub record: String,
    /// Release of the kernel as `uname -r` prints it, such as `6.12.48+deb12-amd64`.
    pub release: String,
    /// Name of the variant.
    pub variant: String,
    /// Random seed of the trial.
    pub seed: u64,
    /// Start of the trial, nanoseconds since 1970.
    pub started: Nanos,
    /// Number of the recording session, if the order is by dates; otherwise 0. Trials belong to one session if they are
    /// of one campaign and no pause between them is longer than an hour.
    pub session: usize,
    /// Value of the metric, in its unit.
    pub value: f64,
}

impl HistoryValue {
    /// True if both values belong to the same point: same kernel, variant and session.
    fn is_with(&self, other: &Self) -> bool {
        let point = |value: &Self| (value.session, value.release.clone(), value.variant.clone());
        point(self) == point(other)
    }
}

/// Estimated value of a metric for consecutive values of one kernel, variant and session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Index of the first of these values in [`CellHistory::values`].
    pub first: usize,
    /// Number of values.
    pub values: usize,
    /// Hodges-Lehmann estimate of the values, in the metric's unit.
    pub estimate: f64,
    /// Lower end, upper end and confidence level of the interval; `None` if there are too few values.
    pub interval: Option<[f64; 3]>,
}

/// A change of the metric between two points.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Index of the first value after the change in [`CellHistory::values`].
    pub at: usize,
    /// Median after the change divided by the median before it, both relative to the median of each seed. If `is_ratio`
    /// is false, the difference of these two medians.
    pub effect: f64,
    /// True if `effect` is a ratio; false if it is a difference, because some values are zero or negative.
    pub is_ratio: bool,
    /// Permutation p-value of the change.
    pub p: f64,
}

/// Consecutive values of one kernel, variant and session without a change between them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stretch {
    /// Release of the kernel as `uname -r` prints it, such as `6.12.48+deb12-amd64`.
    pub release: String,
    /// Name of the variant.
    pub variant: String,
    /// Start of the first trial, nanoseconds since 1970.
    pub started: Nanos,
    /// Number of these consecutive values.
    pub values: usize,
    /// Median of the values, in the metric's unit.
    pub median: f64,
    /// The change before the first of these values; `None` if there is none.
    pub change: Option<Change>,
}

/// Confidence level of the intervals in a history: 95 %.
const LEVEL: f64 = 0.95;

impl CellHistory {
    /// Returns one estimate with an interval for each run of consecutive values of the same kernel, variant and
    /// session.
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

    /// Groups consecutive values between which nothing changed, in order.
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

/// Returns the history of a metric for each cell, over all valid records that match the filter. If the filter names no
/// pass, only timed records are included. Fails if no record has the metric.
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
    // `points` is sorted by time, oldest first, so the oldest are left out.
    let left_out = points.len().saturating_sub(MAX_RECORDS);
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
    let sessions = match order {
        Order::Kernels => vec![0; points.len()],
        Order::Dates => sessions(&points),
    };
    let cell = first.record.cell.hash.clone();
    let values: Vec<HistoryValue> = points
        .into_iter()
        .zip(sessions)
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

/// A pause between two trials that is longer than this starts a new session.
const PAUSE: Nanos = Nanos::from_secs(3600);

/// Returns the session number of each point. `points` must be sorted by time, oldest first.
fn sessions(points: &[Point]) -> Vec<usize> {
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

/// Returns the number of points and the changes between them. Consecutive values of one kernel, variant and session
/// form one point.
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

/// Returns each value relative to the median of its seed: the logarithm of the ratio if `is_ratio`, otherwise the
/// difference.
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

/// Minimum number of points in which a change can be found. With fewer points, no p-value is below 5 %.
pub const MIN_RECORDS: usize = 8;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use pagetide_verdict::rng::Xoshiro;

    use super::*;

    /// Returns the values of eight seeds for each of `kernels` kernels. Seeds differ by 10 % and kernels by 1 %. From
    /// the middle kernel on, all values are multiplied by `step`.
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
        // A test at 5 % finds about five changes in a hundred series. More than ten would be more than two standard
        // deviations above that.
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
        assert_eq!(found(MIN_RECORDS as u64 - 1), 0);
        assert_eq!(found(MIN_RECORDS as u64), 1);
        let (points, none) = changes(&series(1, 1.0, &mut random), true).unwrap();
        assert!((points, none.len()) == (1, 0));
    }
}
