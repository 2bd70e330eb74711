//! A comparison as plain data: the variants, the verdicts, and the records from which every number comes.

use std::fmt;

use pagetide_quantity::command::told;
use pagetide_quantity::{Direction, Unit};
use pagetide_record::{Subject, Variant};
use pagetide_verdict::{Judgement, Verdict};
use serde::Serialize;

use crate::beside::ColumnNotes;
use crate::difference::Difference;
use crate::divergence::Change;
use crate::explain::CellExplanation;

/// Several variants side by side; the first is the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The campaign; `None` if records were named individually.
    pub campaign: Option<String>,
    /// Why the first variant is the baseline, if that was derived when foreign results were imported; otherwise `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The variants.
    pub columns: Vec<Column>,
    /// The cells. Everything that defines a cell is the same for all columns.
    pub cells: Vec<Cell>,
    /// Error rate shared by all primary metrics of all cells and columns.
    pub alpha: f64,
    /// The look of a sequential plan; `None` if the number of trials is fixed.
    pub look: Option<Look>,
    /// Overall verdict on the primary metrics.
    pub overall: Overall,
    /// Warnings for the reader.
    pub cautions: Vec<Caution>,
    /// Notes for columns and cells: other differences from the baseline, settings that cannot act, and trials that ran
    /// out of memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<ColumnNotes>,
    /// Why columns differ from the baseline, by cell; empty until [`crate::explain::explain`] is called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<CellExplanation>,
}

/// A variant in a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Its name, distinct from the others'.
    pub name: String,
    /// The variant from the column's first record; `None` if there is no record yet.
    pub variant: Option<Variant>,
    /// Number of valid trials in all cells.
    pub valid: usize,
    /// Number of invalid trials in all cells.
    pub invalid: usize,
    /// Number of planned trials without a record.
    pub pending: usize,
    /// True if noisy trials can be paired with the baseline's by sampling unit: one campaign ran both columns, or
    /// imported results state the pairs.
    pub paired: bool,
}

/// One cell: a scenario with parameters, memory and swap, under every variant.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// A short human label.
    pub label: String,
    /// Parameters that are the same for all columns, from the baseline's records; `None` if there is no record yet.
    pub subject: Option<Subject>,
    /// The trials of each column.
    pub sides: Vec<Side>,
    /// The metrics, primary ones first.
    pub metrics: Vec<MetricRow>,
}

/// The trials of one column in one cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Side {
    /// Valid trials in the order of their seeds; values refer to them by index.
    pub trials: Vec<TrialRef>,
    /// Invalid trials, with the reasons.
    pub invalid: Vec<InvalidTrial>,
}

/// A valid trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrialRef {
    /// Identity of its record.
    pub record: String,
    /// Seed.
    pub seed: u64,
    /// Sampling unit.
    pub unit: u32,
    /// Repetition within the unit.
    pub repetition: u32,
    /// Digest of its results.
    pub digest: String,
}

/// A trial whose numbers must not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InvalidTrial {
    /// Identity of its record.
    pub record: String,
    /// Seed.
    pub seed: u64,
    /// The reasons, in one line.
    pub why: String,
}

/// One metric over all columns.
#[derive(Clone, Debug, Serialize)]
pub struct MetricRow {
    /// Name.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Which direction is better.
    pub direction: Direction,
    /// True if the metric is primary, so that it counts for the overall verdict.
    pub primary: bool,
    /// Values of each column.
    pub values: Vec<Values>,
    /// Judgements of the second, third, … column against the first. `None` if a side has no value, and for metrics that
    /// are only shown for scale.
    pub judgements: Vec<Option<Judgement>>,
}

/// Values of one metric in one column.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Values {
    /// Each value with the index of its trial in [`Side::trials`].
    pub values: Vec<(usize, f64)>,
    /// Why there are no values, from the first trial without one; `None` if there are values.
    pub absent: Option<String>,
}

impl Values {
    /// The values, in the order of the seeds.
    pub fn numbers(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }

    /// Arithmetic mean of the values; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        let n = self.values.len();
        (n > 0).then(|| self.values.iter().map(|(_, v)| v / n as f64).sum())
    }
}

/// The look of a sequential plan at which a comparison was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Look {
    /// Number of the look, counted from 0.
    pub number: usize,
    /// Seeds (or sampling units) of each variant that this look includes.
    pub units: u64,
    /// The same number for every planned look.
    pub planned: Vec<u64>,
}

/// Overall verdict on all primary metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overall {
    /// At least one metric is surely worse.
    Regressed,
    /// None is worse, but an unintended difference may have changed at least one.
    Confounded,
    /// None is worse, but at least one is undecided.
    Inconclusive,
    /// None is worse, but at least one cannot be judged, or there is nothing to judge.
    Invalid,
    /// At least one is better, none is worse or undecided.
    Improved,
    /// At least one differs, and its metric has no better direction.
    Changed,
    /// All differences lie within the margins.
    Equivalent,
    /// All results are identical, bit for bit.
    Identical,
}

impl Overall {
    /// The overall verdict for several verdicts.
    pub fn of<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Self {
        verdicts
            .into_iter()
            .map(|verdict| match verdict {
                Verdict::Regressed => Self::Regressed,
                Verdict::Confounded { .. } => Self::Confounded,
                Verdict::Inconclusive { .. } => Self::Inconclusive,
                Verdict::Invalid { .. } => Self::Invalid,
                Verdict::Improved => Self::Improved,
                Verdict::Changed => Self::Changed,
                Verdict::Equivalent => Self::Equivalent,
                Verdict::Identical => Self::Identical,
            })
            .min_by_key(|overall| *overall as u8)
            .unwrap_or(Self::Invalid)
    }

    /// Exit code of a command with this overall verdict.
    pub fn exit_code(self, fail_on: FailOn) -> u8 {
        match (self, fail_on) {
            (_, FailOn::Nothing)
            | (Self::Confounded | Self::Inconclusive | Self::Invalid, FailOn::Regressed)
            | (Self::Improved | Self::Changed | Self::Equivalent | Self::Identical, _) => 0,
            (Self::Regressed, _) => 1,
            (Self::Confounded | Self::Inconclusive | Self::Invalid, FailOn::Inconclusive) => 3,
        }
    }
}

impl fmt::Display for Overall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Regressed => "regressed",
            Self::Confounded => "confounded",
            Self::Inconclusive => "inconclusive",
            Self::Invalid => "invalid",
            Self::Improved => "improved",
            Self::Changed => "changed",
            Self::Equivalent => "equivalent",
            Self::Identical => "identical",
        })
    }
}

/// Which verdicts cause a failing exit code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailOn {
    /// None: `--exit-zero`.
    Nothing,
    /// A regression: exit code 1.
    Regressed,
    /// A regression: exit code 1. Confounded, inconclusive or invalid results: exit code 3.
    #[default]
    Inconclusive,
}

/// A warning for the reader of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "caution")]
pub enum Caution {
    /// Records were compared that differ in more than the variant.
    #[error("{a} and {b} differ in more than the variant ({}): the judgements mix those effects", list(.differences))]
    NotComparable {
        /// One column.
        a: String,
        /// The other.
        b: String,
        /// The differences.
        differences: Vec<Difference>,
    },
    /// Different guest programs made the records.
    #[error(
        "{builds} guest programs made the records ({}), and another guest is another trajectory: {}; `run --fresh` makes all with one",
        .sides.join(", "), how_far(*.trials, .moved.as_ref())
    )]
    OtherGuest {
        /// Number of different guest programs.
        builds: usize,
        /// Each column with the digests of its guests.
        sides: Vec<String>,
        /// Number of trials that were run by two of these guests and whose records are both in the store.
        trials: usize,
        /// The primary metric with the largest difference between two guests in these trials; `None` if there is none.
        moved: Option<Change>,
    },
    /// The records of one column come from several kernels.
    #[error(
        "the records of {column} are of {} kernels ({}), so different kernels are compared as one: name a variant of a campaign (CAMPAIGN:VARIANT) instead",
        .kernels.len(), .kernels.join(", ")
    )]
    OtherKernel {
        /// The column.
        column: String,
        /// Digests of its kernels.
        kernels: Vec<String>,
    },
    /// Two runs of the same exact trial gave different results.
    #[error(
        "records {a} and {b} are of the same exact trial but differ: run {} and report it", told(&format!("repeat {a}"))
    )]
    NotExact {
        /// One record.
        a: String,
        /// The other.
        b: String,
    },
    /// Some trials have not run yet.
    #[error("{trials} planned trials have no record yet: run the campaign to its end")]
    Pending {
        /// Number of these trials.
        trials: usize,
    },
    /// A sequential campaign has not reached its first look.
    #[error(
        "the campaign has not reached its first look after {units} seeds: these judgements are too early"
    )]
    TooEarly {
        /// Seeds (or sampling units) at the first look.
        units: u64,
    },
    /// Noisy results that were not run in blocks.
    #[error(
        "{a} and {b} were not run in one campaign: drift between the two runs would look like a difference, and no test can detect it; one campaign with both runs them in blocks"
    )]
    Apart {
        /// The baseline.
        a: String,
        /// The other column.
        b: String,
    },
    /// Imported results in which one variant was recorded after the other.
    #[error(
        "{a} and {b} were recorded one after the other, as their times show: drift between the two sessions would look like a difference, and no test can detect it; let them take turns"
    )]
    Sessions {
        /// The baseline.
        a: String,
        /// The other column.
        b: String,
    },
    /// Imported results without the times that would show their order.
    #[error(
        "the results do not show whether {a} and {b} took turns, so they count as recorded one after the other: drift between the two sessions would look like a difference; if they did take turns, import them with --interleaved or with a column `started`"
    )]
    UnknownOrder {
        /// The baseline.
        a: String,
        /// The other column.
        b: String,
    },
    /// Imported results in which the variants alternated, always in the same order.
    #[error(
        "{first} ran before {second} in every pair: steady drift, or an effect of one trial on the next, would look like a difference; randomize the order"
    )]
    OneOrder {
        /// The column that was always first.
        first: String,
        /// The other.
        second: String,
    },
    /// Memory is so small that an effect may not hold for larger machines.
    #[error(
        "with {memory} of memory the kernel's batches (32 to 64 pages) and reserves weigh much, and effects may differ from those of larger machines: `--sizes` asks at several"
    )]
    Small {
        /// The smallest memory of a cell.
        memory: pagetide_record::MemorySpec,
    },
    /// A cell that only one side has records of.
    #[error("only {column} has records of {label}: left out")]
    OneSided {
        /// The column that has them.
        column: String,
        /// The cell.
        label: String,
    },
    /// Times of the exact arena are virtual, not those of real hardware.
    #[error(
        "times are virtual (one instruction is one nanosecond, plus device latency): caches, TLBs and contention between processors are not modelled"
    )]
    VirtualTime,
}

/// How much results change with the guest, as a clause; it says so if no trial ran under two guests.
fn how_far(trials: usize, change: Option<&Change>) -> String {
    match (trials, change) {
        (0, _) => {
            "no trial was run by two of them, so by how much results move is not known".to_owned()
        }
        (1, Some(change)) => format!("in the one trial that two of them ran, {change}"),
        (many, Some(change)) => {
            format!("in {many} trials that two of them ran, at most {change}")
        }
        (many, None) => {
            format!("in {many} of the trials that two of them ran, no metric that decides moved")
        }
    }
}

/// Differences as one line.
fn list(differences: &[Difference]) -> String {
    let all: Vec<String> = differences.iter().map(ToString::to_string).collect();
    all.join(", ")
}

impl Comparison {
    /// The notes on this column of this cell; `None` if there are none.
    pub fn beside(&self, cell: usize, column: usize) -> Option<&ColumnNotes> {
        let mut beside = self.beside.iter();
        beside.find(|beside| (beside.cell, beside.column) == (cell, column))
    }

    /// The explanation of this column of this cell; `None` if none was asked for.
    pub fn explained(&self, cell: usize, column: usize) -> Option<&CellExplanation> {
        self.explanations
            .iter()
            .find(|explained| (explained.cell, explained.column) == (cell, column))
    }

    /// Exit code of a command that made this comparison. With a single variant nothing is judged, and only invalid
    /// trials cause a failure.
    pub fn exit_code(&self, fail_on: FailOn) -> u8 {
        match self.columns.as_slice() {
            [_, _, ..] => self.overall.exit_code(fail_on),
            columns if columns.iter().any(|column| column.invalid > 0) => 3,
            _ => 0,
        }
    }

    /// Judgements that count for the overall verdict: those of primary metrics, or of all metrics if none is primary.
    pub fn deciding(&self) -> impl Iterator<Item = &Judgement> {
        let rows = || self.cells.iter().flat_map(|cell| &cell.metrics);
        let any_primary = rows().any(|row| row.primary);
        rows()
            .filter(move |row| row.primary || !any_primary)
            .flat_map(|row| row.judgements.iter().flatten())
    }

    /// Number of these judgements that are inconclusive, so that more trials might decide them.
    pub fn open(&self) -> usize {
        self.deciding()
            .filter(|judgement| matches!(judgement.verdict, Verdict::Inconclusive { .. }))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_word_wins_and_decides_the_exit_code() {
        let open = Verdict::Inconclusive { n_needed: Some(9) };
        let all = [
            (vec![Verdict::Improved, Verdict::Regressed], "regressed", 1),
            (vec![Verdict::Improved, open.clone()], "inconclusive", 3),
            (vec![Verdict::Identical, Verdict::Improved], "improved", 0),
            (
                vec![Verdict::Identical, Verdict::Equivalent],
                "equivalent",
                0,
            ),
            (vec![Verdict::Identical; 3], "identical", 0),
            (vec![], "invalid", 3),
        ];
        for (verdicts, word, code) in all {
            let overall = Overall::of(&verdicts);
            assert_eq!(overall.to_string(), word);
            assert_eq!(overall.exit_code(FailOn::default()), code);
            assert_eq!(overall.exit_code(FailOn::Nothing), 0);
        }
        assert_eq!(Overall::of(&[open]).exit_code(FailOn::Regressed), 0);
    }
}
