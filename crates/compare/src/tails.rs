//! Tails: quantiles over all accesses of a cell, from the histograms in the records.
//!
//! A comparison judges the quantiles that each trial reports. Here the accesses of all trials are pooled. Their
//! quantiles are compared by a bootstrap over trials, because accesses within one trial depend on each other. This
//! reads every record, so it is done only on request. Its verdicts do not count for the overall verdict.

use std::collections::BTreeMap;

use pagetide_quantity::Direction;
use pagetide_quantity::Histogram;
use pagetide_record::ArenaKind;
use pagetide_store::Store;
use pagetide_verdict::sample::{Bin, TailPair};
use pagetide_verdict::{Data, Family, Judgement, MetricSample, judge};
use serde::Serialize;

use crate::comparison::{Comparison, Side};
use crate::error::CompareError;
use crate::judge::{ALPHA, SEED};

/// The judged quantiles, each with the name shown to users.
const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

/// Judgements on the quantiles of one histogram in one cell, for a column compared with the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Tails {
    /// Index of the cell in [`Comparison::cells`].
    pub cell: usize,
    /// Index of the column in [`Comparison::columns`].
    pub column: usize,
    /// Name of the histogram, such as `access`, whose values are in nanoseconds.
    pub histogram: String,
    /// One judgement for each quantile, from the median upwards.
    pub judgements: Vec<Judgement>,
}

/// Judges the quantiles of every histogram in the baseline's first trial, for every cell and column that have values of
/// it.
pub fn tails(store: &Store, comparison: &Comparison) -> Result<Vec<Tails>, CompareError> {
    let mut all = Vec::new();
    for (place, cell) in comparison.cells.iter().enumerate() {
        let exact = cell
            .subject
            .as_ref()
            .is_some_and(|subject| subject.arena.kind == ArenaKind::Exact);
        let sides = cell
            .sides
            .iter()
            .map(|side| read(store, side))
            .collect::<Result<Vec<_>, _>>()?;
        let Some((baseline, others)) = sides.split_first() else {
            continue;
        };
        for (column, other) in (1..).zip(others) {
            let paired = comparison.columns[column].paired;
            for name in names(baseline) {
                let Some(data) = pair(baseline, other, &name, exact, paired) else {
                    continue;
                };
                all.push(Tails {
                    cell: place,
                    column,
                    judgements: judge(&family(&name, &data))?,
                    histogram: name,
                });
            }
        }
    }
    Ok(all)
}

/// A trial with the histograms from its record.
struct Trial {
    seed: u64,
    unit: u32,
    digest: String,
    histograms: BTreeMap<String, Histogram>,
}

fn read(store: &Store, side: &Side) -> Result<Vec<Trial>, CompareError> {
    side.trials
        .iter()
        .map(|trial| {
            let record = store.load(&trial.record)?.into_record();
            Ok(Trial {
                seed: trial.seed,
                unit: trial.unit,
                digest: trial.digest.clone(),
                histograms: record.results.histograms,
            })
        })
        .collect()
}

/// Returns the names of the histograms in the baseline's first trial.
fn names(trials: &[Trial]) -> Vec<String> {
    trials
        .first()
        .map(|trial| trial.histograms.keys().cloned().collect())
        .unwrap_or_default()
}

/// The histograms of both sides: paired by seed if the results have no noise, paired by block if
/// [`Column::paired`](crate::Column::paired) is true, otherwise unpaired.
enum TailSamples {
    Paired(Vec<TailPair>),
    Unpaired(Vec<Vec<Bin>>, Vec<Vec<Bin>>),
}

/// Histogram bins of each sampling unit, with the digests of the unit's records.
type Units<'a> = BTreeMap<u64, (Vec<Bin>, Vec<&'a str>)>;

/// Returns the bins of one histogram by seed if `exact`, otherwise by block. All repetitions of a block are pooled,
/// because the bootstrap resamples whole blocks.
fn units<'a>(trials: &'a [Trial], name: &str, exact: bool) -> Units<'a> {
    let mut units = Units::new();
    for trial in trials {
        let Some(histogram) = trial.histograms.get(name).filter(|found| found.count > 0) else {
            continue;
        };
        let key = if exact { trial.seed } else { trial.unit.into() };
        let unit = units.entry(key).or_default();
        unit.0.extend(bins(histogram));
        unit.1.push(&trial.digest);
    }
    units
}

fn pair(a: &[Trial], b: &[Trial], name: &str, exact: bool, paired: bool) -> Option<TailSamples> {
    let (a, mut b) = (units(a, name, exact), units(b, name, exact));
    if !(exact || paired) {
        let [a, b] = [a, b]
            .map(|side| -> Vec<Vec<Bin>> { side.into_values().map(|(bins, _)| bins).collect() });
        return (!a.is_empty() && !b.is_empty()).then_some(TailSamples::Unpaired(a, b));
    }
    let pairs: Vec<TailPair> = a
        .into_iter()
        .filter_map(|(key, (a, digests))| {
            let (b, others) = b.remove(&key)?;
            Some(TailPair {
                a,
                b,
                identical: digests == others,
            })
        })
        .collect();
    (!pairs.is_empty()).then_some(TailSamples::Paired(pairs))
}

/// Returns one bin for each bucket of a histogram. The value of a bin is the middle of its bucket, within the
/// histogram's minimum and maximum.
fn bins(histogram: &Histogram) -> Vec<Bin> {
    histogram
        .buckets
        .iter()
        .map(|&(index, count)| {
            let (low, high) = Histogram::bounds(index);
            let middle = (low + (high - low) / 2).clamp(histogram.min, histogram.max);
            Bin {
                value: middle as f64,
                count,
            }
        })
        .collect()
}

/// Returns all quantiles of one histogram as one family of tests.
fn family(name: &str, data: &TailSamples) -> Family {
    let metrics = QUANTILES
        .iter()
        .map(|&(label, quantile)| MetricSample {
            name: format!("{name}-{label}"),
            unit: "nanos".to_owned(),
            direction: Direction::Lower,
            primary: false,
            margin: None,
            scale: pagetide_verdict::sample::Scale::Auto,
            data: match data {
                TailSamples::Paired(pairs) => Data::PairedTails {
                    quantile,
                    pairs: pairs.clone(),
                },
                TailSamples::Unpaired(a, b) => Data::UnpairedTails {
                    quantile,
                    a: a.clone(),
                    b: b.clone(),
                },
            },
        })
        .collect();
    Family {
        alpha: ALPHA,
        ..Family::new(SEED, metrics)
    }
}
