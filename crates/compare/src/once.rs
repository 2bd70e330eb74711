//! Avoids judging the same data twice. A metric may be a multiple of another one, and a variant may have the same
//! trials as another one. All judgements share one error rate, so every additional one makes the others less certain.

use pagetide_quantity::multiple_of;
use pagetide_verdict::Judgement;
use pagetide_verdict::judgement::{Note, Summary};

use crate::comparison::{Cell, MetricRow, Side};

/// Two metrics count as multiples of each other only if the quotient of their values is the same in every trial, up to
/// this relative difference. It is not zero because values are rounded.
const SAME_QUOTIENT: f64 = 1e-6;

/// Another row of the same cell, whose judgement also holds for this row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Multiple {
    /// Index of the row that is judged.
    pub of: usize,
    /// Factor by which values of the judged row are multiplied to get values of this row.
    pub factor: f64,
}

impl Cell {
    /// Returns the first earlier column with identical trials; `None` if there is none. Trials are identical if they
    /// have the same seeds, the same value of every metric for each seed, and the same invalid trials with the same
    /// reasons.
    pub fn same_as(&self, column: usize) -> Option<usize> {
        (0..column).find(|&earlier| self.is_same(earlier, column))
    }

    /// Returns the first earlier column with identical trials, like [`Self::same_as`], but ignores the baseline,
    /// because every column is compared with the baseline anyway.
    pub fn twin(&self, column: usize) -> Option<usize> {
        (1..column).find(|&earlier| self.is_same(earlier, column))
    }

    /// Returns the number of a column's trials if all of them are identical to the baseline's; otherwise `None`.
    pub(crate) fn equal_trials(&self, column: usize) -> Option<usize> {
        (self.same_as(column) == Some(0)).then(|| self.sides[column].trials.len())
    }

    fn is_same(&self, a: usize, b: usize) -> bool {
        let (Some(one), Some(other)) = (self.sides.get(a), self.sides.get(b)) else {
            return false;
        };
        let is_equal = |row: &MetricRow| match (row.values.get(a), row.values.get(b)) {
            (Some(a), Some(b)) => a.values == b.values,
            _ => false,
        };
        // Values are compared instead of digests, because digests depend on settings, which differ between columns.
        let has_values = |row: &MetricRow| row.values.get(a).is_some_and(|v| !v.values.is_empty());
        self.metrics.iter().any(has_values)
            && self.metrics.iter().all(is_equal)
            && are_of_same_seeds(one, other)
    }

    /// Returns the row from which the judgement on row `number` is derived; `None` if row `number` must be judged
    /// itself. A judgement is derived if one row is a fixed multiple of the other, both by definition and in its
    /// values. If only one of the two rows is primary, that one is judged.
    pub(crate) fn multiple(&self, number: usize) -> Option<Multiple> {
        let row = self.metrics.get(number)?;
        let others = self.metrics.iter().enumerate();
        others
            .filter(|(other, _)| *other != number)
            .find_map(|(of, other)| {
                let is_multiple = multiple_of(&row.name) == Some(other.name.as_str());
                let has_multiple = multiple_of(&other.name) == Some(row.name.as_str());
                let is_led = if is_multiple {
                    other.primary || !row.primary
                } else {
                    has_multiple && other.primary && !row.primary
                };
                let factor = is_led.then(|| factor(other, row)).flatten()?;
                Some(Multiple { of, factor })
            })
    }
}

fn are_of_same_seeds(a: &Side, b: &Side) -> bool {
    let trials = |side: &Side| -> Vec<(u64, u32, u32)> {
        let all = side.trials.iter();
        all.map(|trial| (trial.seed, trial.unit, trial.repetition))
            .collect()
    };
    let invalid = |side: &Side| -> Vec<(u64, String)> {
        let all = side.invalid.iter();
        all.map(|trial| (trial.seed, trial.why.clone())).collect()
    };
    !a.trials.is_empty() && trials(a) == trials(b) && invalid(a) == invalid(b)
}

/// Returns the factor from the values of `from` to those of `to`. `None` if the factor is not the same for all values,
/// if a value is not positive or has no counterpart, or if lower values are better in only one of the rows.
fn factor(from: &MetricRow, to: &MetricRow) -> Option<f64> {
    if from.direction != to.direction || from.values.len() != to.values.len() {
        return None;
    }
    let mut quotient: Option<f64> = None;
    for (from, to) in from.values.iter().zip(&to.values) {
        if from.values.len() != to.values.len() {
            return None;
        }
        for (&(place, from), &(other, to)) in from.values.iter().zip(&to.values) {
            // Values of zero are compared as differences, which do not scale by a factor.
            if place != other || from <= 0.0 || to <= 0.0 {
                return None;
            }
            let own = to / from;
            let first = *quotient.get_or_insert(own);
            if (own / first - 1.0).abs() > SAME_QUOTIENT {
                return None;
            }
        }
    }
    quotient
}

/// Derives the judgement on a row that is a multiple of the judged row.
pub(crate) fn as_multiple(
    judged: &Judgement,
    row: &MetricRow,
    unit: &str,
    multiple: Multiple,
) -> Judgement {
    let scaled = |summary: Summary| Summary {
        n: summary.n,
        mean: summary.mean * multiple.factor,
        deviation: summary
            .deviation
            .map(|deviation| deviation * multiple.factor),
        median: summary.median * multiple.factor,
        least: summary.least * multiple.factor,
        most: summary.most * multiple.factor,
    };
    Judgement {
        name: row.name.clone(),
        unit: unit.to_owned(),
        direction: row.direction,
        primary: row.primary,
        a: judged.a.map(scaled),
        b: judged.b.map(scaled),
        notes: vec![Note::MultipleOf {
            metric: judged.name.clone(),
        }],
        ..judged.clone()
    }
}
