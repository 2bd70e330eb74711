//! A comparison as plain data: the variants, the verdicts, and the records that the numbers come from.

use std::fmt;

use pagetide_quantity::command::in_backticks;
use pagetide_quantity::{Direction, Unit};
use pagetide_record::{Subject, SwapSpec, Variant};
use pagetide_verdict::{Judgement, Verdict};
use serde::Serialize;

use crate::difference::Difference;
use crate::divergence::Change;
use crate::explain::CellExplanation;
use crate::kinds::{Kinds, SideSwap};
use crate::notes::{ColumnNotes, Deaths};

/// Comparison of several variants with the first one, the baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// ID of the campaign; `None` if the records were named individually.
    pub campaign: Option<String>,
    /// Why the first variant is the baseline, if the import of foreign results chose it; otherwise `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The variants, the baseline first.
    pub columns: Vec<Column>,
    /// The cells. Scenario, parameters, memory and swap of a cell are the same for all columns, unless variants have
    /// kinds of swap of their own or the user compares cells that differ.
    pub cells: Vec<Cell>,
    /// Error rate shared by all primary metrics of all cells and columns, from 0 to 1.
    pub alpha: f64,
    /// The interim analysis ("look") at which a sequential campaign was judged; `None` if the number of trials is
    /// fixed.
    pub look: Option<InterimLook>,
    /// Overall verdict on deaths and on the primary metrics, or on all metrics if none is primary.
    pub overall: Overall,
    /// Warnings about the records and the judgements, for the reader.
    pub cautions: Vec<Caution>,
    /// Notes for a cell and column: other differences from the baseline, settings that cannot act, and trials that ran
    /// out of memory.
    #[serde(rename = "beside", skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<ColumnNotes>,
    /// Comparison of kinds of swap, for each cell whose columns have different swap.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<Kinds>,
    /// Why columns differ from the baseline, for each cell and column; empty unless the caller fills it with the
    /// results of [`crate::explain::explain_with_accounts`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<CellExplanation>,
}

/// One variant in a comparison, with the numbers of its trials.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    /// Name of the variant, different for each column.
    pub name: String,
    /// The variant from the column's first record; `None` if there is no record yet.
    pub variant: Option<Variant>,
    /// Number of valid trials in all cells.
    pub valid: usize,
    /// Number of trials in all cells that are invalid, including those that died.
    pub invalid: usize,
    /// Number of planned trials of any pass without a record.
    pub pending: usize,
    /// True if trials of this column can be paired with those of the baseline by sampling unit: one campaign ran both
    /// columns, and if the results were imported, they state the pairs. In the exact arena, trials are paired by seed
    /// instead.
    pub paired: bool,
    /// Swap of the column in the form of the options `swap=` and `swap-size=`; empty if all columns have the same swap.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub swap: String,
}

/// One cell: a scenario with parameters, memory and swap, under every variant.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// Short label for display.
    pub label: String,
    /// Subject of a trial in this cell (everything that determines its results), from the baseline's first record or
    /// else that of another column; `None` if there is no record yet.
    pub subject: Option<Subject>,
    /// The trials of each column, in the order of the columns.
    pub sides: Vec<Side>,
    /// The metrics, primary ones first.
    pub metrics: Vec<MetricRow>,
}

/// The trials of one column in one cell.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Side {
    /// Valid trials in the order of their seeds. [`Values::values`] refers to them by index.
    pub trials: Vec<TrialRef>,
    /// Invalid trials, with the reasons.
    pub invalid: Vec<InvalidTrial>,
    /// Swap of this side; `None` if all sides of the cell have the same swap, or if this side has no trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<SideSwap>,
}

/// A valid trial: its record, and its place in the design.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TrialRef {
    /// ID of the trial's record.
    pub record: String,
    /// Random seed of the trial.
    pub seed: u64,
    /// Number of the sampling unit (one boot) that the trial belongs to.
    pub unit: u32,
    /// Index of the repetition within the sampling unit.
    pub repetition: u32,
    /// Digest of the trial's results.
    pub digest: String,
}

/// A trial whose numbers must not be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InvalidTrial {
    /// ID of the trial's record.
    pub record: String,
    /// Random seed of the trial.
    pub seed: u64,
    /// Reasons why the trial is invalid, in one line.
    pub why: String,
    /// True if the trial died for lack of memory. The death is a result, but the trial has no value of any metric.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub died: bool,
}

/// Values and judgements of one metric in all columns.
#[derive(Clone, Debug, Serialize)]
pub struct MetricRow {
    /// Name of the metric.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Whether lower or higher values are better.
    pub direction: Direction,
    /// True if the metric is primary, so that it counts for the overall verdict.
    pub primary: bool,
    /// Values of each column, in the order of the columns.
    pub values: Vec<Values>,
    /// Judgements of the second, third, … column against the first. `None` if one of the two columns has no value, or
    /// if the metric is only a reference value.
    pub judgements: Vec<Option<Judgement>>,
}

/// Values of one metric in one column.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Values {
    /// Each value with the index of its trial in [`Side::trials`].
    pub values: Vec<(usize, f64)>,
    /// Why a value is missing, as stated by the first trial without one; `None` if no trial states a reason. Other
    /// trials may have values.
    pub absent: Option<String>,
}

impl Cell {
    /// Returns the kind of swap that the trials of the column with this index used.
    pub fn swap_of(&self, column: usize) -> SwapSpec {
        let own = self.sides.get(column).and_then(|side| side.swap.as_ref());
        let of_cell = || self.subject.as_ref().map(|subject| subject.swap);
        own.map(|own| own.kind).or_else(of_cell).unwrap_or_default()
    }
}

impl Values {
    /// Returns the values without indices, in the order of the seeds.
    pub fn numbers(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }

    /// Returns the arithmetic mean of the values; `None` if there are none.
    pub fn mean(&self) -> Option<f64> {
        let n = self.values.len();
        (n > 0).then(|| self.values.iter().map(|(_, v)| v / n as f64).sum())
    }
}

/// The interim analysis ("look") of a sequential campaign at which a comparison was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InterimLook {
    /// Number of the interim analysis, counted from 0.
    pub number: usize,
    /// Number of seeds (or sampling units) of each variant that this interim analysis includes.
    pub units: u64,
    /// Number of seeds (or sampling units) of each variant at every planned interim analysis, ascending.
    pub planned: Vec<u64>,
}

/// Overall verdict on the primary metrics and the deaths of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overall {
    /// At least one metric, or the number of deaths, is significantly worse.
    Regressed,
    /// No metric is worse, but an unintended difference may have changed at least one.
    Confounded,
    /// No metric is worse, but at least one is undecided.
    Inconclusive,
    /// No metric is worse, but at least one cannot be judged, or there is no metric to judge.
    Invalid,
    /// At least one metric is better; no metric is worse or undecided.
    Improved,
    /// No metric is better, worse or undecided, but at least one metric without a better direction differs.
    Changed,
    /// All differences of metrics lie within their margins.
    Equivalent,
    /// All results are bit-identical.
    Identical,
}

impl Overall {
    /// Combines single verdicts into an overall verdict: the first variant of this enum that one of them has.
    /// [`Self::Invalid`] without verdicts.
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

    /// Returns the exit code of a command with this overall verdict: 0, 1 or 3.
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

/// Which verdicts cause an exit code other than 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailOn {
    /// No verdict causes a failure: `--exit-zero`.
    Nothing,
    /// Only a regression causes a failure: exit code 1.
    Regressed,
    /// A regression causes exit code 1; confounded, inconclusive or invalid results cause exit code 3.
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
        /// Name of the first column.
        a: String,
        /// Name of the second column.
        b: String,
        /// Differences between the trials of the two columns other than the variant.
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
        /// Each column with the digests of the guest programs that ran it.
        sides: Vec<String>,
        /// Number of trials that have valid records from at least two of these guest programs; the count stops at 20.
        trials: usize,
        /// The largest change of a primary metric between two guest programs in these trials; `None` if there is none.
        moved: Option<Change>,
    },
    /// The records of one column come from several kernels.
    #[error(
        "the records of {column} are of {} kernels ({}), so different kernels are compared as one: name a variant of a campaign (CAMPAIGN:VARIANT) instead",
        .kernels.len(), .kernels.join(", ")
    )]
    OtherKernel {
        /// Name of the column.
        column: String,
        /// Digests of the kernels in the column, each with its number of trials.
        kernels: Vec<String>,
    },
    /// Two runs of the same exact trial gave different results.
    #[error(
        "records {a} and {b} are of the same exact trial but differ: run {} and report it", in_backticks(&format!("repeat {a}"))
    )]
    NotExact {
        /// ID of the first record.
        a: String,
        /// ID of the second record.
        b: String,
    },
    /// Other processes of the machine may have influenced trials of the running kernel.
    #[error(
        "{doubtful} of {trials} trials are doubtful in their times, and {in_counts} of these in their counts too, because others were at work on this machine (such as: {example})"
    )]
    Doubtful {
        /// Number of valid trials on the running kernel.
        trials: usize,
        /// Number of these trials that others may have influenced.
        doubtful: usize,
        /// Number of these trials whose counts may be wrong too, and not only their times.
        in_counts: usize,
        /// What happened in one of them.
        example: String,
    },
    /// Some trials have not run yet.
    #[error("{trials} planned trials have no record yet: run the campaign to its end")]
    Pending {
        /// Number of planned trials without a record.
        trials: usize,
    },
    /// A sequential campaign has not reached its first interim analysis.
    #[error(
        "the campaign has not reached its first look after {units} seeds: these judgements are too early"
    )]
    TooEarly {
        /// Number of seeds (or sampling units) at the first interim analysis.
        units: u64,
    },
    /// Two columns whose results have noise, and whose trials did not alternate in one campaign.
    #[error(
        "{a} and {b} were not run in one campaign: drift between the two runs would look like a difference, and no test can detect it; one campaign with both runs them in blocks"
    )]
    Apart {
        /// Name of the baseline.
        a: String,
        /// Name of the other column.
        b: String,
    },
    /// Two columns of imported results that did not alternate: one was recorded after the other.
    #[error(
        "{a} and {b} were recorded one after the other, as their times show: drift between the two sessions would look like a difference, and no test can detect it; let them take turns"
    )]
    Sessions {
        /// Name of the baseline.
        a: String,
        /// Name of the other column.
        b: String,
    },
    /// Two columns of imported results without start times, so that the order of recording is unknown.
    #[error(
        "the results do not show whether {a} and {b} took turns, so they count as recorded one after the other: drift between the two sessions would look like a difference; if they did take turns, import them with --interleaved or with a column `started`"
    )]
    UnknownOrder {
        /// Name of the baseline.
        a: String,
        /// Name of the other column.
        b: String,
    },
    /// Two columns of imported results that alternated, always in the same order.
    #[error(
        "{first} ran before {second} in every pair: steady drift, or an effect of one trial on the next, would look like a difference; randomize the order"
    )]
    OneOrder {
        /// Name of the column that ran first in every pair.
        first: String,
        /// Name of the column that ran second in every pair.
        second: String,
    },
    /// The memory of a cell is so small that an effect may not hold for larger machines.
    #[error(
        "with {memory} of memory the kernel's batches (32 to 64 pages) and reserves weigh much, and effects may differ from those of larger machines: `--sizes` asks at several"
    )]
    Small {
        /// The smallest memory of all cells.
        memory: pagetide_record::MemorySpec,
    },
    /// The trials had several CPUs, and all had turns of one length.
    #[error(
        "the CPUs took turns, and whether a verdict depends on the length of a turn is not known: `--cpus {cpus},{other}` judges two lengths"
    )]
    OneTurn {
        /// The CPUs of a cell.
        cpus: pagetide_record::CpusSpec,
        /// The same number of CPUs with turns of another length.
        other: pagetide_record::CpusSpec,
    },
    /// Only one column has records of a cell.
    #[error("only {column} has records of {label}: left out")]
    OneSided {
        /// Name of the column that has records.
        column: String,
        /// Label of the cell.
        label: String,
    },
    /// Times of the exact arena are virtual, not those of real hardware.
    #[error(
        "times are virtual (one instruction is one nanosecond, plus device latency): caches, TLBs and contention between processors are not modelled"
    )]
    VirtualTime,
}

/// Returns the clause that states how much results changed with the guest program, or that no trial ran with two of
/// them.
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

/// Returns the differences, separated by commas.
fn list(differences: &[Difference]) -> String {
    let all: Vec<String> = differences.iter().map(ToString::to_string).collect();
    all.join(", ")
}

impl Comparison {
    /// Returns the notes on a column of a cell, both given by index; `None` if there are none.
    pub fn column_notes(&self, cell: usize, column: usize) -> Option<&ColumnNotes> {
        let mut notes = self.notes.iter();
        notes.find(|notes| (notes.cell, notes.column) == (cell, column))
    }

    /// Returns the deaths in a column and in the baseline of a cell, both given by index; `None` if no trial died.
    pub fn deaths(&self, cell: usize, column: usize) -> Option<&Deaths> {
        self.column_notes(cell, column)?.deaths.as_ref()
    }

    /// Returns the explanation for a column of a cell, both given by index; `None` if it was not computed.
    pub fn explained(&self, cell: usize, column: usize) -> Option<&CellExplanation> {
        self.explanations
            .iter()
            .find(|explained| (explained.cell, explained.column) == (cell, column))
    }

    /// Returns the exit code of a command that made this comparison: 0, 1 or 3. With a single variant nothing is
    /// judged, and the code is 3 if a trial is invalid.
    pub fn exit_code(&self, fail_on: FailOn) -> u8 {
        match self.columns.as_slice() {
            [_, _, ..] => self.overall.exit_code(fail_on),
            columns if columns.iter().any(|column| column.invalid > 0) => 3,
            _ => 0,
        }
    }

    /// Returns the judgements that count for the overall verdict: those of primary metrics, or of all metrics if none
    /// is primary.
    pub fn deciding(&self) -> impl Iterator<Item = &Judgement> {
        let rows = || self.cells.iter().flat_map(|cell| &cell.metrics);
        let any_primary = rows().any(|row| row.primary);
        rows()
            .filter(move |row| row.primary || !any_primary)
            .flat_map(|row| row.judgements.iter().flatten())
    }

    /// Returns the number of judgements in [`Self::deciding`] that are inconclusive; more trials might decide them.
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
