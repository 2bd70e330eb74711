//! What is shown of a comparison beside its own data, and how its parts are read.

use std::collections::BTreeMap;

use pagetide_compare::{Cell, Column, Comparison, InvalidTrial, MetricRow, Values};
use pagetide_quantity::Histogram;
use pagetide_record::{ArenaKind, Machine, Subject};
use pagetide_verdict::{Judgement, number};

/// What a comparison itself does not know: its title, the command that repeats it, the machine, pictures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Title, such as the campaign file's.
    pub title: String,
    /// Command line that repeats the comparison.
    pub command: String,
    /// Machine on which the trials ran.
    pub machine: Machine,
    /// Access latencies by place of cell and column, the trials of both together.
    pub access: BTreeMap<(usize, usize), Histogram>,
}

/// Place of the column that the others are set against.
pub(crate) const BASELINE: usize = 0;

/// Places of the columns that are judged.
pub(crate) fn others(comparison: &Comparison) -> std::ops::Range<usize> {
    BASELINE + 1..comparison.columns.len()
}

/// Places of the columns that a cell shows: a column with the same trials as an earlier one is told in a sentence instead.
pub(crate) fn shown<'a>(
    comparison: &Comparison,
    cell: &'a Cell,
) -> impl Iterator<Item = usize> + use<'a> {
    others(comparison).filter(|&column| cell.twin(column).is_none())
}

/// The judgement on a column.
pub(crate) fn judgement(row: &MetricRow, column: usize) -> Option<&Judgement> {
    row.judgements.get(column.checked_sub(1)?)?.as_ref()
}

/// Name of a column.
pub(crate) fn name(comparison: &Comparison, column: usize) -> &str {
    comparison
        .columns
        .get(column)
        .map_or("", |column| column.name.as_str())
}

/// Kernel release of a column.
pub(crate) fn release(column: &Column) -> &str {
    column
        .variant
        .as_ref()
        .map_or("", |variant| variant.kernel.release.as_str())
}

/// What a kernel was built from, where that was here: its source, and its patches or what else was done to it.
fn built_from(column: &Column) -> Option<&str> {
    let source = &column.variant.as_ref()?.kernel.source;
    Some(source.strip_prefix("built:")?.split_once(' ')?.1)
}

/// The kernel of a column in words. Releases of kernels that were built here from one source are all the same: the image's
/// digest and the patches tell them apart.
pub(crate) fn kernel(column: &Column) -> String {
    let release = release(column);
    let digest = column
        .variant
        .as_ref()
        .map_or("", |v| v.kernel.digest.as_str());
    match built_from(column) {
        Some(from) => format!(
            "{release}, image {}, from {from}",
            digest.get(..12).unwrap_or(digest)
        ),
        None => release.to_owned(),
    }
}

/// What sets a variant apart, in one line: the patches of its kernel, settings, boot arguments.
pub(crate) fn what_differs(column: &Column) -> String {
    let patch = built_from(column).and_then(|from| Some(from.split_once(" + ")?.1));
    match (patch, settings(column).as_str()) {
        (None, settings) => settings.to_owned(),
        (Some(patch), "") => patch.to_owned(),
        (Some(patch), settings) => format!("{patch}, {settings}"),
    }
}

/// Settings and boot arguments that make a variant, in one line.
pub(crate) fn settings(column: &Column) -> String {
    let Some(variant) = &column.variant else {
        return String::new();
    };
    let settings = variant
        .settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let all: Vec<String> = settings.chain(variant.boot.iter().cloned()).collect();
    all.join(" ")
}

/// Parameters of a cell in one line.
pub(crate) fn params(cell: &Cell) -> String {
    let all: Vec<String> = subject(cell)
        .params
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    all.join(" ")
}

/// What a cell holds fixed; an empty subject while it has no record.
pub(crate) fn subject(cell: &Cell) -> Subject {
    cell.subject.clone().unwrap_or_default()
}

/// Whether times are those of the exact arena.
pub(crate) fn is_exact(comparison: &Comparison) -> bool {
    comparison
        .cells
        .iter()
        .filter_map(|cell| cell.subject.as_ref())
        .any(|subject| subject.arena.kind == ArenaKind::Exact)
}

/// Values of a metric in one column, in short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Centre {
    /// How many.
    pub n: usize,
    /// Their median.
    pub median: f64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation; `None` for one value.
    pub deviation: Option<f64>,
}

/// Median, mean and deviation; `None` where there are no values.
pub(crate) fn centre(values: &Values) -> Option<Centre> {
    let numbers = values.numbers();
    Some(Centre {
        n: numbers.len(),
        median: number::median(&numbers).ok()?,
        mean: number::mean(&numbers).ok()?,
        deviation: number::standard_deviation(&numbers).ok()?,
    })
}

/// Medians of a row, column by column.
pub(crate) fn medians(row: &MetricRow) -> Vec<Option<f64>> {
    row.values
        .iter()
        .map(|values| centre(values).map(|centre| centre.median))
        .collect()
}

/// A trial that is not used, and where it belongs.
pub(crate) struct Invalid<'a> {
    /// Label of its cell.
    pub label: &'a str,
    /// Name of its column.
    pub column: &'a str,
    /// The trial.
    pub trial: &'a InvalidTrial,
}

/// All trials that are not used.
pub(crate) fn invalid(comparison: &Comparison) -> Vec<Invalid<'_>> {
    let mut all = Vec::new();
    for cell in &comparison.cells {
        for (side, column) in cell.sides.iter().zip(&comparison.columns) {
            all.extend(side.invalid.iter().map(|trial| Invalid {
                label: &cell.label,
                column: &column.name,
                trial,
            }));
        }
    }
    all
}
