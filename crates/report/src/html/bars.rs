//! Bars with intervals for filecopy: for each way of copying, its time and the access times of the other process (the
//! victim).

use std::collections::BTreeMap;

use pagetide_compare::Cell as Group;
use pagetide_quantity::Unit;
use pagetide_record::RecordReader;
use pagetide_verdict::signed_rank::estimate;

use super::data::{Bar, BarGroup, Bars};
use super::{Input, or_omit};
use crate::draw::clean;

/// Confidence level of each bar's interval.
const LEVEL: f64 = 0.95;
/// Maximum number of records that are opened for one side.
const MAX_TRIALS: usize = 64;
/// Prefix of the names of metrics that give the time of a way to copy.
const TIME: &str = "time-";
/// Maximum length of a name, in characters.
const NAME_CHARS: usize = 60;

/// Values of all trials by way of copying; the outer list has one item for each column.
type Ways = BTreeMap<String, Vec<Vec<f64>>>;

/// Returns the bars of a cell; empty for scenarios that do not do the same work in several ways.
pub(crate) fn bars(input: &Input<'_>, group: &Group, omitted: &mut Vec<String>) -> Vec<Bars> {
    let mut times = Ways::new();
    let mut order = Vec::new();
    for row in &group.metrics {
        let Some(way) = row.name.strip_prefix(TIME) else {
            continue;
        };
        if row.unit == Unit::Nanos && row.values.iter().any(|values| !values.values.is_empty()) {
            order.push(way.to_owned());
            let sides = row.values.iter().map(pagetide_compare::Values::numbers);
            times.insert(way.to_owned(), sides.collect());
        }
    }
    if order.len() < 2 {
        return Vec::new();
    }
    let (mean, tail) = victims(input, group, omitted);
    [
        ("Time of each copy", times),
        ("Mean access of the victim during each copy", mean),
        ("99 % of the victim's accesses took less than", tail),
    ]
    .into_iter()
    .filter(|(_, ways)| !ways.is_empty())
    .map(|(title, ways)| Bars {
        title: title.to_owned(),
        unit: Unit::Nanos,
        groups: order
            .iter()
            .filter_map(|way| {
                Some(BarGroup {
                    label: clean(way, NAME_CHARS, false),
                    sides: ways.get(way)?.iter().map(|values| bar(values)).collect(),
                })
            })
            .collect(),
    })
    .collect()
}

fn bar(values: &[f64]) -> Option<Bar> {
    let estimate = estimate(values, LEVEL).ok()?;
    let (low, high) = estimate
        .interval
        .map_or((estimate.value, estimate.value), |i| (i.low, i.high));
    Some(Bar {
        value: estimate.value,
        low,
        high,
        level: estimate.interval.map_or(0.0, |i| i.level),
        values: values.to_vec(),
    })
}

/// Returns the mean and 99th percentile of the access times of the other process (the victim), by way of copying, from
/// the series of each side's first [`MAX_TRIALS`] trials.
fn victims(input: &Input<'_>, group: &Group, omitted: &mut Vec<String>) -> (Ways, Ways) {
    let (mut mean, mut tail) = (Ways::new(), Ways::new());
    let columns = group.sides.len();
    for (column, side) in group.sides.iter().enumerate() {
        for trial in side.trials.iter().take(MAX_TRIALS) {
            let reader = match (input.open)(&trial.record) {
                Ok(reader) => reader,
                Err(why) => {
                    omitted.push(format!("copies of record {}: {why}", trial.record));
                    continue;
                }
            };
            for (way, values) in copies(&reader, &trial.record, omitted) {
                for (all, value) in [(&mut mean, values[0]), (&mut tail, values[1])] {
                    let sides = all.entry(way.clone()).or_default();
                    sides.resize(columns, Vec::new());
                    sides[column].push(value);
                }
            }
        }
    }
    (mean, tail)
}

/// Returns the ways of copying in one trial, each with mean and 99th percentile of the victim's access times, in
/// nanoseconds. The series does not name the ways; their names come from the metrics with equal times.
fn copies(reader: &RecordReader, id: &str, omitted: &mut Vec<String>) -> Vec<(String, [f64; 2])> {
    if !reader.series_names().any(|name| name == "copies") {
        return Vec::new();
    }
    let what = format!("copies of record {id}");
    let Some(series) = or_omit(reader.series("copies"), &what, omitted) else {
        return Vec::new();
    };
    let names = ["time", "victim-accesses", "victim-mean", "victim-p99"];
    let [Some(time), Some(accesses), Some(mean), Some(tail)] =
        names.map(|name| series.column(name))
    else {
        return Vec::new();
    };
    (0..series.rows())
        .filter(|row| accesses.get(*row).is_some_and(|count| count > 0.0))
        .filter_map(|row| {
            let time = time.get(row)?;
            let metrics = &reader.record().results.metrics;
            let named = metrics.iter().find_map(|metric| {
                let way = metric.name.strip_prefix(TIME)?;
                (metric.value.number()? - time)
                    .abs()
                    .lt(&0.5)
                    .then_some(way)
            })?;
            Some((named.to_owned(), [mean.get(row)?, tail.get(row)?]))
        })
        .collect()
}
