//! A comparison, as plain data: what was set against what, what came out, and which records every number comes from.

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
    /// The campaign it is about; `None` for records that were named one by one.
    pub campaign: Option<String>,
    /// Why the first variant is the baseline, where that was found when results of others were imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The variants.
    pub columns: Vec<Column>,
    /// The cells: what is the same for all columns.
    pub cells: Vec<Cell>,
    /// Error rate of the primary metrics together, over all cells and columns.
    pub alpha: f64,
    /// At which look of a sequential plan this is; `None` for a fixed number of trials.
    pub look: Option<Look>,
    /// All primary metrics in one word.
    pub overall: Overall,
    /// What a reader should know.
    pub cautions: Vec<Caution>,
    /// What else differs between columns and the baseline, settings that cannot act, and trials that died.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<ColumnNotes>,
    /// Why columns differ from the baseline, cell by cell; empty until [`crate::explain::explain`] was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<CellExplanation>,
}

/// A variant in a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Its name, distinct from the others'.
    pub name: String,
    /// What it is, as its first record says; `None` while there is none.
    pub variant: Option<Variant>,
    /// Valid trials.
    pub valid: usize,
    /// Invalid trials, all cells together.
    pub invalid: usize,
    /// Trials that are planned and have no record yet.
    pub pending: usize,
    /// Whether its sampling units and those of the baseline belong together, so that noisy trials are paired by them: one
    /// campaign ran both, or something in imported results pairs them.
    pub paired: bool,
}

/// One cell: a scenario with parameters, memory and swap, under every variant.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// A short human label.
    pub label: String,
    /// What is held fixed, as the baseline has it; `None` while there is no record.
    pub subject: Option<Subject>,
    /// The trials of each column.
    pub sides: Vec<Side>,
    /// The metrics, primary ones first.
    pub metrics: Vec<MetricRow>,
}

/// The trials of one column in one cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Side {
    /// Valid trials, by seed; values refer to them by their place.
    pub trials: Vec<TrialRef>,
    /// Trials that must not be used, with their reasons.
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

/// A trial that must not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InvalidTrial {
    /// Identity of its record.
    pub record: String,
    /// Seed.
    pub seed: u64,
    /// Why, in one line.
    pub why: String,
}

/// One metric over all columns.
#[derive(Clone, Debug, Serialize)]
pub struct MetricRow {
    /// Name.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// Which way is better.
    pub direction: Direction,
    /// Whether it decides.
    pub primary: bool,
    /// Values of each column.
    pub values: Vec<Values>,
    /// Judgements of the second, third, … column against the first; `None` where a side has no value at all, and where
    /// values are shown for scale.
    pub judgements: Vec<Option<Judgement>>,
}

/// Values of one metric in one column.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Values {
    /// Place of the trial in [`Side::trials`], and the value.
    pub values: Vec<(usize, f64)>,
    /// Why there are none, as the first trial without says.
    pub absent: Option<String>,
}

impl Values {
    /// The values alone, by seed.
    pub fn numbers(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }

    /// Their arithmetic mean; `None` where there are none.
    pub fn mean(&self) -> Option<f64> {
        let n = self.values.len();
        (n > 0).then(|| self.values.iter().map(|(_, v)| v / n as f64).sum())
    }
}

/// At which look of a sequential plan a comparison was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Look {
    /// Number of the look, counted from 0.
    pub number: usize,
    /// Seeds (or sampling units) of each variant that it looks at.
    pub units: u64,
    /// All looks that are planned.
    pub planned: Vec<u64>,
}

/// All primary metrics in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overall {
    /// At least one is worse beyond chance.
    Regressed,
    /// None is worse, but something that nobody asked for differs and may have made a difference.
    Confounded,
    /// None is worse, but for at least one nothing can be said.
    Inconclusive,
    /// None is worse, but at least one cannot be judged at all, or there is nothing to judge.
    Invalid,
    /// At least one is better, none is worse, nothing is open.
    Improved,
    /// At least one differs, and neither way is better.
    Changed,
    /// Whatever differs does not matter.
    Equivalent,
    /// All records are equal to the bit.
    Identical,
}

impl Overall {
    /// The word for some verdicts.
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

    /// Exit code of a command that ends with this verdict.
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

/// Which verdicts make a command fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailOn {
    /// None: `--exit-zero`.
    Nothing,
    /// A regression, with exit code 1.
    Regressed,
    /// A regression with 1, and what is confounded, inconclusive or invalid with 3.
    #[default]
    Inconclusive,
}

/// What a reader of a comparison should know.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "caution")]
pub enum Caution {
    /// Things were compared that differ in more than the variant.
    #[error("{a} and {b} differ in more than the variant ({}): the judgements mix those effects", list(.differences))]
    NotComparable {
        /// One column.
        a: String,
        /// The other.
        b: String,
        /// In what.
        differences: Vec<Difference>,
    },
    /// The guest programs differ.
    #[error(
        "{builds} guest programs made the records ({}), and another guest is another trajectory: {}; `run --fresh` makes all with one",
        .sides.join(", "), how_far(*.trials, .moved.as_ref())
    )]
    OtherGuest {
        /// Number of different guest programs.
        builds: usize,
        /// Each column with the digests of its guests.
        sides: Vec<String>,
        /// Trials that two of them ran, as far as the store holds both records.
        trials: usize,
        /// The metric that decides which is the farthest apart in them; `None` where there is none.
        moved: Option<Change>,
    },
    /// Several kernels made the records of one column.
    #[error(
        "the records of {column} are of {} kernels ({}), so it is not one thing that is compared: name a variant of a campaign (CAMPAIGN:VARIANT) instead",
        .kernels.len(), .kernels.join(", ")
    )]
    OtherKernel {
        /// The column.
        column: String,
        /// Digests of its kernels.
        kernels: Vec<String>,
    },
    /// The same exact trial gave different results.
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
        /// How many.
        trials: usize,
    },
    /// A sequential campaign has not come to its first look.
    #[error(
        "the campaign has not come to its first look after {units} seeds: these judgements are too early"
    )]
    TooEarly {
        /// Seeds (or sampling units) at the first look.
        units: u64,
    },
    /// Results with noise that were not run in blocks.
    #[error(
        "{a} and {b} were not run in one campaign: what drifted in between counts as a difference, and no test can tell; one campaign with both runs them in blocks"
    )]
    Apart {
        /// The baseline.
        a: String,
        /// The other column.
        b: String,
    },
    /// Imported results of which one variant was recorded after the other.
    #[error(
        "{a} and {b} were recorded one after the other, as their times say: what drifted in between counts as a difference, and no test can tell; let them take turns"
    )]
    Sessions {
        /// The baseline.
        a: String,
        /// The other column.
        b: String,
    },
    /// Imported results that do not tell in which order they were recorded.
    #[error(
        "nothing says that {a} and {b} took turns, so they count as recorded one after the other: what drifted in between would be a difference; if they did take turns, import them with --interleaved or with a column `started`"
    )]
    UnknownOrder {
        /// The baseline.
        a: String,
        /// The other column.
        b: String,
    },
    /// Imported results that took turns in one and the same order.
    #[error(
        "{first} ran before {second} in every pair: what drifts steadily, or what a trial leaves behind for the next, counts as a difference; change the order by chance"
    )]
    OneOrder {
        /// The column that was always first.
        first: String,
        /// The other.
        second: String,
    },
    /// Memory so small that a result may be one of its size.
    #[error(
        "with {memory} of memory the kernel's batches (32 to 64 pages) and reserves weigh much, and effects may differ from those of larger machines: `--sizes` asks at several"
    )]
    Small {
        /// The smallest memory of a cell.
        memory: pagetide_record::MemorySpec,
    },
    /// Only one side has records of a cell.
    #[error("only {column} has records of {label}: left out")]
    OneSided {
        /// The column that has them.
        column: String,
        /// The cell.
        label: String,
    },
    /// Exact times are not times of real hardware.
    #[error(
        "times are virtual (one instruction is one nanosecond, plus device latency): caches, TLBs and contention between processors are not modelled"
    )]
    VirtualTime,
}

/// By how much results move with the guest, as far as that is known.
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

/// Differences in one line.
fn list(differences: &[Difference]) -> String {
    let all: Vec<String> = differences.iter().map(ToString::to_string).collect();
    all.join(", ")
}

impl Comparison {
    /// What stands beside the judgements of this column in this cell.
    pub fn beside(&self, cell: usize, column: usize) -> Option<&ColumnNotes> {
        let mut beside = self.beside.iter();
        beside.find(|beside| (beside.cell, beside.column) == (cell, column))
    }

    /// Why this column of this cell differs from the baseline, where that was asked for.
    pub fn explained(&self, cell: usize, column: usize) -> Option<&CellExplanation> {
        self.explanations
            .iter()
            .find(|explained| (explained.cell, explained.column) == (cell, column))
    }

    /// Exit code of a command that judged it. Where there is a single variant nothing is judged, and invalid trials
    /// alone count.
    pub fn exit_code(&self, fail_on: FailOn) -> u8 {
        match self.columns.as_slice() {
            [_, _, ..] => self.overall.exit_code(fail_on),
            columns if columns.iter().any(|column| column.invalid > 0) => 3,
            _ => 0,
        }
    }

    /// Verdicts that decide: those on primary metrics, or on all where none is primary.
    pub fn deciding(&self) -> impl Iterator<Item = &Judgement> {
        let rows = || self.cells.iter().flat_map(|cell| &cell.metrics);
        let any_primary = rows().any(|row| row.primary);
        rows()
            .filter(move |row| row.primary || !any_primary)
            .flat_map(|row| row.judgements.iter().flatten())
    }

    /// Of the verdicts that decide, those that more trials might decide.
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
