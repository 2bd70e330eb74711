//! What the script in the page reads, beside the blobs. `web/src/data.ts` has the same shapes.

use serde::Serialize;

use super::states::States;

/// All figures of a page.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Page {
    /// Names of the variants.
    pub columns: Vec<String>,
    /// Cells in the order of the comparison.
    pub cells: Vec<Cell>,
}

/// Figures of one cell.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Cell {
    /// Its label.
    pub label: String,
    /// Its place on the page.
    pub place: usize,
    /// Logs of accesses, at most one for each variant.
    pub traces: Vec<AccessLog>,
    /// Series.
    pub tables: Vec<Table>,
    /// Histograms over all trials of a variant.
    pub histograms: Vec<Shares>,
    /// Bars with intervals.
    pub bars: Vec<Bars>,
    /// Where time went.
    pub wholes: Vec<TimeTotal>,
}

/// Bars of one quantity: groups side by side, in each a bar for every variant.
#[derive(Debug, Serialize)]
pub(crate) struct Bars {
    /// What is shown.
    pub title: String,
    /// What it counts.
    pub unit: pagetide_quantity::Unit,
    /// The groups.
    pub groups: Vec<BarGroup>,
}

/// Bars that belong together.
#[derive(Debug, Default, Serialize)]
pub(crate) struct BarGroup {
    /// Its name.
    pub label: String,
    /// A bar for each variant that has one.
    pub sides: Vec<Option<Bar>>,
}

/// A bar.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Bar {
    /// Hodges-Lehmann estimate over trials.
    pub value: f64,
    /// Ends of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence of the interval; 0 where so few values allow none.
    pub level: f64,
    /// The value of every trial.
    pub values: Vec<f64>,
}

/// A time and the parts that add up to it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TimeTotal {
    /// Place of the variant.
    pub column: usize,
    /// Whose time; empty where there is one process.
    pub label: String,
    /// Identity of the observed record.
    pub record: String,
    /// The whole, in nanoseconds.
    pub elapsed: u64,
    /// Names and nanoseconds.
    pub parts: Vec<(&'static str, u64)>,
}

/// Every access of a trial.
#[derive(Debug, Default, Serialize)]
pub(crate) struct AccessLog {
    /// Place of the variant.
    pub column: usize,
    /// Identity of the record.
    pub record: String,
    /// Seed of the trial.
    pub seed: u64,
    /// Number of accesses.
    pub n: u64,
    /// Significant bits kept of each time; 0 where times are exact.
    pub bits: u32,
    /// Shortest time in nanoseconds.
    pub min: u64,
    /// Longest time.
    pub max: u64,
    /// Number of pages: highest page index plus one.
    pub range: u64,
    /// Accesses in a block of the overview.
    pub block: u64,
    /// Blob of the overview.
    pub overview: usize,
    /// Accesses in a chunk.
    pub chunk: u64,
    /// Blobs of times, chunk by chunk.
    pub times: Vec<usize>,
    /// Of so many accesses the page of the first is kept.
    pub stride: u64,
    /// Blobs of pages, a chunk's number of kept pages in each.
    pub pages: Vec<usize>,
    /// What each access met, by its time; `None` where the record does not say.
    pub states: Option<States>,
}

/// A series.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Table {
    /// Place of the variant.
    pub column: usize,
    /// Identity of the record.
    pub record: String,
    /// Name of the series.
    pub name: String,
    /// Rows that are in the page.
    pub rows: usize,
    /// Of so many rows of the record the first is in the page.
    pub stride: usize,
    /// Its columns.
    pub columns: Vec<TableColumn>,
}

/// A column of a series.
#[derive(Debug, Serialize)]
pub(crate) struct TableColumn {
    /// Name.
    pub name: String,
    /// Unit, as records name it.
    pub unit: pagetide_quantity::Unit,
    /// Whether values are floating-point numbers, 8 bytes each; else zigzag differences as LEB128.
    pub float: bool,
    /// Blob of the values.
    pub blob: usize,
}

/// A histogram.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Shares {
    /// Name.
    pub name: String,
    /// Place of the variant.
    pub column: usize,
    /// Trials together.
    pub trials: usize,
    /// Number of values.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Smallest value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// Values at 50, 90, 99, 99.9 and 99.99 %.
    pub quantiles: [u64; 5],
    /// Lowest value, highest value and count of each bucket that is not empty.
    pub buckets: Vec<(u64, u64, u64)>,
}
