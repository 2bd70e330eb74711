//! Data shown with a comparison that the comparison itself does not contain, and functions that read parts of a
//! comparison.

use std::collections::BTreeMap;

use pagetide_compare::{Cell, Column, Comparison, InvalidTrial, MetricRow, Values};
use pagetide_quantity::Histogram;
use pagetide_record::{ArenaKind, Machine, Subject};
use pagetide_store::{CaseNote, short};
use pagetide_verdict::{Judgement, number};

/// Data that a comparison does not contain: its title, the command that repeats it, the machine, access latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Title of the comparison, such as the title in a campaign file.
    pub title: String,
    /// Command line that repeats the comparison.
    pub command: String,
    /// Machine on which the trials ran.
    pub machine: Machine,
    /// Access latencies in nanoseconds, merged over all trials of a column. The keys are the indices of cell and
    /// column. Empty if no histograms are drawn.
    pub access: BTreeMap<(usize, usize), Histogram>,
    /// The finding of a search that the comparison is about; `None` if it is about none. Only pages show it.
    pub case: Option<CaseNote>,
}

/// Index of the baseline: the column with which all other columns are compared.
pub(crate) const BASELINE: usize = 0;

/// Returns the indices of the columns that are compared with the baseline.
pub(crate) fn others(comparison: &Comparison) -> std::ops::Range<usize> {
    BASELINE + 1..comparison.columns.len()
}

/// Returns the indices of the columns that are compared with the baseline in a cell's tables. A column whose trials are
/// identical to those of an earlier one is left out: it is only mentioned in a sentence.
pub(crate) fn shown<'a>(
    comparison: &Comparison,
    cell: &'a Cell,
) -> impl Iterator<Item = usize> + use<'a> {
    others(comparison).filter(|&column| cell.twin(column).is_none())
}

/// Returns the judgement on a column compared with the baseline; `None` for the baseline itself, or if the column was
/// not judged.
pub(crate) fn judgement(row: &MetricRow, column: usize) -> Option<&Judgement> {
    row.judgements.get(column.checked_sub(1)?)?.as_ref()
}

/// Returns the name of a column; empty if there is no such column.
pub(crate) fn name(comparison: &Comparison, column: usize) -> &str {
    comparison
        .columns
        .get(column)
        .map_or("", |column| column.name.as_str())
}

/// Returns the kernel release of a column; empty if it is unknown.
pub(crate) fn release(column: &Column) -> &str {
    column
        .variant
        .as_ref()
        .map_or("", |variant| variant.kernel.release.as_str())
}

/// Returns the source from which pagetide built the kernel, followed by patches or other changes. `None` if pagetide
/// did not build the kernel.
fn built_from(column: &Column) -> Option<&str> {
    let source = &column.variant.as_ref()?.kernel.source;
    Some(source.strip_prefix("built:")?.split_once(' ')?.1)
}

/// Returns the kernel of a column as text. Kernels built from one source all have the same release, so the digest of
/// the image and the patches are added.
pub(crate) fn kernel(column: &Column) -> String {
    let release = release(column);
    let digest = column
        .variant
        .as_ref()
        .map_or("", |v| v.kernel.digest.as_str());
    match built_from(column) {
        Some(from) => format!("{release}, image {}, from {from}", short(digest)),
        None => release.to_owned(),
    }
}

/// Returns what distinguishes a variant, in one line: changes of its kernel's source such as patches, settings, boot
/// arguments, and swap if the variants differ in it.
pub(crate) fn what_differs(column: &Column) -> String {
    let patch = built_from(column).and_then(|from| Some(from.split_once(" + ")?.1));
    match (patch, settings(column).as_str()) {
        (None, settings) => settings.to_owned(),
        (Some(patch), "") => patch.to_owned(),
        (Some(patch), settings) => format!("{patch}, {settings}"),
    }
}

/// Returns the settings, boot arguments and swap of a column's variant, in one line. Swap is left out if all variants
/// have the same. Empty if the variant is unknown.
pub(crate) fn settings(column: &Column) -> String {
    let Some(variant) = &column.variant else {
        return String::new();
    };
    let swap = Some(column.swap.clone()).filter(|swap| !swap.is_empty());
    let settings = variant
        .settings
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let boot = variant.boot.iter().cloned();
    let all: Vec<String> = settings.chain(boot).chain(swap).collect();
    all.join(" ")
}

/// Returns the parameters of a cell in one line.
pub(crate) fn params(cell: &Cell) -> String {
    let all: Vec<String> = subject(cell)
        .params
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    all.join(" ")
}

/// Returns the subject of a cell; an empty subject if the cell has no record yet.
pub(crate) fn subject(cell: &Cell) -> Subject {
    cell.subject.clone().unwrap_or_default()
}

/// True if any cell is from the exact arena, so that its times are virtual.
pub(crate) fn is_exact(comparison: &Comparison) -> bool {
    comparison
        .cells
        .iter()
        .filter_map(|cell| cell.subject.as_ref())
        .any(|subject| subject.arena.kind == ArenaKind::Exact)
}

/// Summary of a metric's values in one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Centre {
    /// Number of values.
    pub n: usize,
    /// Median of the values.
    pub median: f64,
    /// Mean of the values.
    pub mean: f64,
    /// Standard deviation of the values; `None` if there is only one value.
    pub deviation: Option<f64>,
}

/// Returns a summary of the values; `None` if there are none or they have no median, mean or deviation.
pub(crate) fn centre(values: &Values) -> Option<Centre> {
    let numbers = values.numbers();
    Some(Centre {
        n: numbers.len(),
        median: number::median(&numbers).ok()?,
        mean: number::mean(&numbers).ok()?,
        deviation: number::standard_deviation(&numbers).ok()?,
    })
}

/// Returns the medians of a row by column; `None` for columns without values.
pub(crate) fn medians(row: &MetricRow) -> Vec<Option<f64>> {
    row.values
        .iter()
        .map(|values| centre(values).map(|centre| centre.median))
        .collect()
}

/// An invalid trial, with the names of its cell and column.
pub(crate) struct Invalid<'a> {
    /// Label of the cell to which the trial belongs.
    pub label: &'a str,
    /// Name of the column to which the trial belongs.
    pub column: &'a str,
    /// Seed of the trial and the reason why it is invalid.
    pub trial: &'a InvalidTrial,
}

/// Returns all invalid trials of a comparison except those that died for lack of memory.
pub(crate) fn invalid(comparison: &Comparison) -> Vec<Invalid<'_>> {
    without_values(comparison, false)
}

/// Returns all trials of a comparison that died for lack of memory.
pub(crate) fn died(comparison: &Comparison) -> Vec<Invalid<'_>> {
    without_values(comparison, true)
}

fn without_values(comparison: &Comparison, died: bool) -> Vec<Invalid<'_>> {
    let mut all = Vec::new();
    for cell in &comparison.cells {
        for (side, column) in cell.sides.iter().zip(&comparison.columns) {
            let trials = side.invalid.iter().filter(|trial| trial.died == died);
            all.extend(trials.map(|trial| Invalid {
                label: &cell.label,
                column: &column.name,
                trial,
            }));
        }
    }
    all
}

/// Meaning of times in the exact arena, for the end of outputs that show such times.
pub const EXACT_CAVEAT: &str = "Exact arena: one instruction is one nanosecond; caches, TLBs, branch prediction and \
    contention are not modelled.";
