//! Tests whether an effect is the same at every memory size.

use pagetide_record::MemorySpec;
use pagetide_record::subject::memory_label;
use pagetide_verdict::{Judgement, Verdict};
use serde::Serialize;

use crate::comparison::{Cell, Comparison};

/// With less memory than this, an effect may be specific to the size. The kernel reclaims in batches of 32 to 64 pages
/// and keeps reserves that do not shrink with memory.
pub const SMALL: pagetide_quantity::Bytes = pagetide_quantity::Bytes::from_mib(64);

/// One primary metric of one column, over cells that differ only in memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AcrossSizes {
    /// Label of the cells, without the part for memory.
    pub label: String,
    /// Name of the metric.
    pub metric: String,
    /// Index of the column that is compared with the baseline.
    pub column: usize,
    /// One entry for each size, ascending: index of the cell, memory, and the judgement if there is one.
    pub sizes: Vec<(usize, MemorySpec, Option<Judgement>)>,
    /// Whether the sign of the effect is the same at every size.
    pub sign: Constancy,
    /// Whether the amount of the effect is the same at every size.
    pub size: Constancy,
}

/// Result of the test whether the sign or the amount of an effect is the same at every size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Constancy {
    /// The sign or amount is the same at every size.
    Yes,
    /// The sign or amount differs significantly between sizes.
    No,
    /// The confidence intervals allow neither conclusion.
    Open,
}

/// Tests every primary metric over cells that differ only in memory; empty if there are no such cells.
pub fn sizes(comparison: &Comparison) -> Vec<AcrossSizes> {
    let mut groups: Vec<(String, Vec<(usize, MemorySpec)>)> = Vec::new();
    for (place, cell) in comparison.cells.iter().enumerate() {
        let Some((label, memory)) = without_memory(cell) else {
            continue;
        };
        match groups.iter_mut().find(|(known, _)| *known == label) {
            Some((_, cells)) => cells.push((place, memory)),
            None => groups.push((label, vec![(place, memory)])),
        }
    }
    let mut all = Vec::new();
    for (label, mut cells) in groups {
        if cells.len() < 2 {
            continue;
        }
        cells.sort_by_key(|(_, memory)| memory.bytes().0);
        let first = &comparison.cells[cells[0].0];
        for row in first.metrics.iter().filter(|row| row.primary) {
            for column in 1..comparison.columns.len() {
                let judgement = |place: usize| {
                    let mut rows = comparison.cells[place].metrics.iter();
                    let row =
                        rows.find(|other| other.name == row.name && other.unit == row.unit)?;
                    row.judgements.get(column - 1)?.clone()
                };
                let sizes: Vec<_> = cells
                    .iter()
                    .map(|&(place, memory)| (place, memory, judgement(place)))
                    .collect();
                let (sign, size) = holds(&sizes);
                all.push(AcrossSizes {
                    label: label.clone(),
                    metric: row.name.clone(),
                    column,
                    sizes,
                    sign,
                    size,
                });
            }
        }
    }
    all
}

/// Returns the label of a cell without its memory, and the memory; `None` if the cell has no record yet, or if its
/// label does not contain the memory.
fn without_memory(cell: &Cell) -> Option<(String, MemorySpec)> {
    let subject = cell.subject.as_ref()?;
    // If the workload has a memory limit, the limit is its memory.
    let memory = subject.limit.map_or(subject.memory, MemorySpec::Free);
    let part = format!(" · {} · ", memory_label(subject.memory, subject.limit));
    let at = cell.label.find(&part)?;
    let label = format!("{} · {}", &cell.label[..at], &cell.label[at + part.len()..]);
    Some((label, memory))
}

/// Returns whether the sign and the amount of the effect are the same at every size. The sign is the same if all
/// intervals lie on the same side of zero effect (a ratio of 1 or a difference of 0); it differs if two intervals lie
/// on opposite sides. The amount is the same if all intervals have a common value; it differs if the intervals of two
/// conclusive judgements ([`Verdict::is_sure`]) do not overlap. Otherwise the result is open. Both results are open if
/// a size has no usable interval, or if the effects are of different kinds.
fn holds(sizes: &[(usize, MemorySpec, Option<Judgement>)]) -> (Constancy, Constancy) {
    let mut intervals = Vec::new();
    for (_, _, judgement) in sizes {
        let interval = judgement.as_ref().and_then(|judgement| {
            let effect = judgement.effect?;
            let usable = !matches!(
                judgement.verdict,
                Verdict::Invalid { .. } | Verdict::Confounded { .. }
            );
            let interval = effect.interval.filter(|_| usable)?;
            Some((
                interval.low,
                interval.high,
                effect.kind,
                judgement.verdict.is_sure(),
            ))
        });
        match interval {
            Some(interval) => intervals.push(interval),
            None => return (Constancy::Open, Constancy::Open),
        }
    }
    let kind = intervals[0].2;
    if intervals.iter().any(|(_, _, other, _)| *other != kind) {
        return (Constancy::Open, Constancy::Open);
    }
    let null = kind.null();
    let above = intervals.iter().filter(|(low, ..)| *low > null).count();
    let below = intervals
        .iter()
        .filter(|(_, high, ..)| *high < null)
        .count();
    let sign = if above == intervals.len() || below == intervals.len() {
        Constancy::Yes
    } else if above > 0 && below > 0 {
        Constancy::No
    } else {
        Constancy::Open
    };
    let low = intervals
        .iter()
        .map(|(low, ..)| *low)
        .fold(f64::NEG_INFINITY, f64::max);
    let high = intervals
        .iter()
        .map(|(_, high, ..)| *high)
        .fold(f64::INFINITY, f64::min);
    let apart = intervals.iter().enumerate().any(|(place, x)| {
        intervals[place + 1..]
            .iter()
            .any(|y| x.3 && y.3 && (x.1 < y.0 || y.1 < x.0))
    });
    let size = if apart {
        Constancy::No
    } else if low <= high {
        Constancy::Yes
    } else {
        Constancy::Open
    };
    (sign, size)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use pagetide_quantity::Direction;
    use pagetide_verdict::sample::Scale;
    use pagetide_verdict::{Data, Family, MetricSample, judge};

    use super::*;

    /// Judgement on eight pairs whose ratios lie between `low` and `high`.
    fn judged(low: f64, high: f64) -> Judgement {
        let a: Vec<f64> = (0..8).map(|n| 1000.0 + f64::from(n)).collect();
        let ratio = |n: usize| low + (high - low) * n as f64 / 7.0;
        let b: Vec<f64> = a.iter().enumerate().map(|(n, a)| a * ratio(n)).collect();
        let sample = MetricSample {
            name: "time".into(),
            unit: "nanos".into(),
            direction: Direction::Lower,
            primary: true,
            margin: None,
            scale: Scale::Auto,
            data: Data::paired(&a, &b),
        };
        judge(&Family::new(1, vec![sample])).unwrap().remove(0)
    }

    fn found(ranges: &[(f64, f64)]) -> (Constancy, Constancy) {
        let sizes = ranges
            .iter()
            .map(|&(low, high)| (0, MemorySpec::default(), Some(judged(low, high))));
        holds(&sizes.collect::<Vec<_>>())
    }

    #[test]
    fn an_effect_holds_where_intervals_agree_and_not_where_they_are_apart() {
        assert_eq!(
            found(&[(0.80, 0.90), (0.82, 0.88)]),
            (Constancy::Yes, Constancy::Yes)
        );
        // The variant is faster at both sizes, but the amount at one size is three times that at the other.
        assert_eq!(
            found(&[(0.90, 0.92), (0.70, 0.72)]),
            (Constancy::Yes, Constancy::No)
        );
        // The variant is faster at one size and slower at the other.
        assert_eq!(
            found(&[(0.80, 0.90), (1.10, 1.20)]),
            (Constancy::No, Constancy::No)
        );
        // The sign is uncertain at one size.
        assert_eq!(found(&[(0.80, 0.90), (0.70, 1.30)]).0, Constancy::Open);
    }

    #[test]
    fn a_size_without_judgement_leaves_all_open() {
        let sizes = [
            (0, MemorySpec::default(), Some(judged(0.8, 0.9))),
            (1, MemorySpec::default(), None),
        ];
        assert_eq!(holds(&sizes), (Constancy::Open, Constancy::Open));
    }
}
