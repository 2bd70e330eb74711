//! Data for the script in the page, in addition to the blobs. `web/src/data.ts` declares the same types.

use serde::Serialize;

use super::states::States;

/// Data of all figures of an HTML page.
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
    /// Label of the cell.
    pub label: String,
    /// Index of the cell on the page.
    pub place: usize,
    /// Logs of accesses, at most one for each variant.
    pub traces: Vec<AccessLog>,
    /// Series of records, as tables.
    pub tables: Vec<Table>,
    /// Memory by kind over time, of observed trials.
    pub makeups: Vec<MakeUp>,
    /// Histograms, each merged over all trials of a variant.
    pub histograms: Vec<Shares>,
    /// Bars with intervals.
    pub bars: Vec<Bars>,
    /// Time of observed trials, divided into parts.
    pub wholes: Vec<TimeTotal>,
    /// Call stacks of profiled trials, at most one trial for each variant.
    pub flames: Vec<Flame>,
    /// Recorded references of profiled trials, at most one trial for each variant.
    pub heats: Vec<Heat>,
}

/// Pages that a trial referenced, over time.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Heat {
    /// Index of the variant.
    pub column: usize,
    /// ID of the profiled record.
    pub record: String,
    /// Seed of the trial.
    pub seed: u64,
    /// Exact time in nanoseconds from the start of the scenario to the last recorded reference.
    pub until: u64,
    /// Time of the whole scenario in nanoseconds. More than `until` if the recorded references were cut.
    pub elapsed: u64,
    /// Number of used pages.
    pub pages: u64,
    /// Number of used pages in a row; the last row may have fewer.
    pub row_pages: u64,
    /// Number of rows.
    pub rows: usize,
    /// Number of windows of time, all equally long.
    pub windows: usize,
    /// Number of the blob with the windows and the rows.
    pub blob: usize,
    /// Ranges of addresses, in the order of the rows.
    pub ranges: Vec<HeatRange>,
}

/// Addresses that are used without large gaps.
#[derive(Debug, Default, Serialize)]
pub(crate) struct HeatRange {
    /// First address, in hexadecimal form.
    pub address: String,
    /// What is mapped there: a file and the place in it, or a kind of memory; empty if not known.
    pub memory: String,
    /// Number of the address space.
    pub space: u32,
    /// Number of used pages below this range in the picture.
    pub before: u64,
    /// Number of pages that were used.
    pub used: u64,
    /// Number of pages from the first to the last one.
    pub pages: u64,
    /// Number of references.
    pub references: u64,
}

/// Call stacks of a profiled trial.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Flame {
    /// Index of the variant.
    pub column: usize,
    /// ID of the profiled record.
    pub record: String,
    /// Seed of the trial.
    pub seed: u64,
    /// Names of functions, tasks and waits.
    pub names: Vec<String>,
    /// Number of nodes of the call tree.
    pub nodes: usize,
    /// Number of the blob with the nodes.
    pub blob: usize,
}

/// Bars of one quantity: groups next to each other, each with a bar for every variant.
#[derive(Debug, Serialize)]
pub(crate) struct Bars {
    /// Title of the figure.
    pub title: String,
    /// Unit of the bars' values.
    pub unit: pagetide_quantity::Unit,
    /// Groups of bars, from left to right.
    pub groups: Vec<BarGroup>,
}

/// A group of bars, one for each variant.
#[derive(Debug, Default, Serialize)]
pub(crate) struct BarGroup {
    /// Name of the group.
    pub label: String,
    /// One bar for each variant; `None` if the variant has no value.
    pub sides: Vec<Option<Bar>>,
}

/// A bar with its interval.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Bar {
    /// Hodges-Lehmann estimate over trials.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Confidence level of the interval; 0 if there are too few values.
    pub level: f64,
    /// The value of every trial.
    pub values: Vec<f64>,
}

/// The time of one process, or of several together, divided into parts that add up to it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TimeTotal {
    /// Index of the variant.
    pub column: usize,
    /// Name of the process; empty if there is only one process.
    pub label: String,
    /// ID of the observed record.
    pub record: String,
    /// Total time in nanoseconds.
    pub elapsed: u64,
    /// Name and nanoseconds of each part.
    pub parts: Vec<(&'static str, u64)>,
}

/// The log of every access of a trial.
#[derive(Debug, Default, Serialize)]
pub(crate) struct AccessLog {
    /// Index of the variant.
    pub column: usize,
    /// ID of the trial's record.
    pub record: String,
    /// Seed of the trial.
    pub seed: u64,
    /// Number of accesses.
    pub n: u64,
    /// Number of significant bits kept for each time; 0 if times are exact.
    pub bits: u32,
    /// Shortest time of an access in nanoseconds.
    pub min: u64,
    /// Longest time of an access in nanoseconds.
    pub max: u64,
    /// Number of memory pages: highest page index plus one.
    pub range: u64,
    /// Number of accesses in one block of the overview.
    pub block: u64,
    /// Number of the blob with the overview.
    pub overview: usize,
    /// Number of accesses in one chunk.
    pub chunk: u64,
    /// Numbers of the blobs with the times, one per chunk.
    pub times: Vec<usize>,
    /// The log keeps only the page number of every `stride`-th access.
    pub stride: u64,
    /// Numbers of the blobs with the kept page numbers, one per chunk.
    pub pages: Vec<usize>,
    /// Thresholds that give the state of each access by its latency. `None` if the record does not count faults, has
    /// more faults than accesses, or has too long a log.
    pub states: Option<States>,
}

/// A series of a record.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Table {
    /// Index of the variant.
    pub column: usize,
    /// ID of the record.
    pub record: String,
    /// Name of the series.
    pub name: String,
    /// Number of rows of the series that the page contains.
    pub rows: usize,
    /// The page contains only every `stride`-th row of the record's series.
    pub stride: usize,
    /// Columns of the series.
    pub columns: Vec<TableColumn>,
}

/// Memory by kind over the time of an observed trial.
#[derive(Debug, Default, Serialize)]
pub(crate) struct MakeUp {
    /// Name of the memory group whose memory this is; empty for the machine.
    pub of: String,
    /// The time of each sample, the kinds that add up, and then values that are drawn as lines, in bytes.
    pub table: Table,
    /// Number of the table's columns that add up. They follow the time.
    pub stacked: usize,
    /// Time and process of each kill for lack of memory, in the order of the record.
    pub kills: Vec<(u64, String)>,
}

/// A column of a series.
#[derive(Debug, Serialize)]
pub(crate) struct TableColumn {
    /// Name of the column.
    pub name: String,
    /// Unit of the values, as named in records.
    pub unit: pagetide_quantity::Unit,
    /// True if values are floating-point numbers of 8 bytes each; otherwise they are zigzag differences as LEB128.
    pub float: bool,
    /// Number of the blob with the values.
    pub blob: usize,
}

/// A histogram with its summary.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Shares {
    /// Name of the histogram.
    pub name: String,
    /// Index of the variant.
    pub column: usize,
    /// Number of trials that were merged.
    pub trials: usize,
    /// Number of values.
    pub count: u64,
    /// Mean of the values.
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
