//! The tables of the five papers, each in its own shape, for the scenarios that come from them (`--as paper`).
//!
//! A *paper* is one of the historical systems whose workloads pagetide repeats.
//!
//! They show what the originals showed: means and deviations, whole percents, seconds; no intervals and no verdicts. A
//! value that was not measured is `-`, never zero.

pub mod contswap;
pub mod filecopy;
pub mod highalloc;
pub mod swapbench;
pub mod vmregress;

use std::collections::BTreeMap;

use pagetide_compare::{Cell, Comparison};
use pagetide_probe::meaning::ReclaimTable;
use pagetide_quantity::{ColumnData, Nanos};
use pagetide_record::{FileError, RecordReader};

use crate::about::{self, Centre};
use crate::draw::clean;

/// Longest name of a column.
const HEAD: usize = 20;

/// What some of the shapes show beside metrics, by place of cell and column.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// User and system time of each trial's processes together, see [`cpu_time`].
    pub cpu: BTreeMap<(usize, usize), Vec<CpuTime>>,
    /// Reclaim tables, one for each column.
    pub reclaim: BTreeMap<(usize, usize), ReclaimTable>,
}

/// Processor time of one trial's processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In user mode.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
}

/// Processor time of a trial, from its series `usage`; `None` where it has none.
pub fn cpu_time(reader: &RecordReader) -> Result<Option<CpuTime>, FileError> {
    if !reader.series_names().any(|name| name == "usage") {
        return Ok(None);
    }
    let usage = reader.series("usage")?;
    let sum = |name: &str| match usage.column(name) {
        Some(ColumnData::Int(times)) => Nanos(
            times
                .iter()
                .filter_map(|time| u64::try_from(*time).ok())
                .fold(0, u64::saturating_add),
        ),
        _ => Nanos(0),
    };
    Ok(Some(CpuTime {
        user: sum("user"),
        system: sum("system"),
    }))
}

/// Writes every cell in the shape of its scenario's original; a cell whose scenario had none says so.
pub fn paper(comparison: &Comparison, extras: &Extras) -> String {
    let mut out = String::new();
    for (place, cell) in comparison.cells.iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        let view = View {
            comparison,
            cell,
            place,
            extras,
        };
        let subject = about::subject(cell);
        let text = match subject.scenario.as_str() {
            "contswap" => contswap::table(&view),
            "swapbench" => swapbench::table(&view),
            "filecopy" => filecopy::table(&view),
            name if name.starts_with("highalloc") => highalloc::table(&view),
            _ if view.has("access-mean") => vmregress::table(&view),
            _ => format!(
                "{}\nThis scenario comes from no paper: leave --as out for its table.\n",
                view.label()
            ),
        };
        out.push_str(&text);
    }
    out
}

/// One cell of a comparison.
pub(crate) struct View<'a> {
    comparison: &'a Comparison,
    cell: &'a Cell,
    place: usize,
    extras: &'a Extras,
}

impl View<'_> {
    /// Label of the cell.
    fn label(&self) -> String {
        clean(&self.cell.label, 75, true)
    }

    /// Names of the columns.
    fn heads(&self) -> Vec<String> {
        self.comparison
            .columns
            .iter()
            .map(|column| clean(&column.name, HEAD, true))
            .collect()
    }

    /// Whether any column has values of a metric.
    fn has(&self, metric: &str) -> bool {
        self.centres(metric).iter().any(Option::is_some)
    }

    /// Mean, deviation and so on of a metric, column by column.
    fn centres(&self, metric: &str) -> Vec<Option<Centre>> {
        let row = self.cell.metrics.iter().find(|row| row.name == metric);
        (0..self.comparison.columns.len())
            .map(|column| row?.values.get(column).and_then(about::centre))
            .collect()
    }

    /// Means of a metric, column by column.
    fn means(&self, metric: &str) -> Vec<Option<f64>> {
        self.centres(metric)
            .into_iter()
            .map(|centre| centre.map(|centre| centre.mean))
            .collect()
    }

    /// The most trials that any column has.
    fn trials(&self) -> usize {
        self.cell
            .sides
            .iter()
            .map(|side| side.trials.len())
            .max()
            .unwrap_or(0)
    }
}

/// Lines of a table whose first column is at the left and whose others are at the right, as wide as they need to be.
pub(crate) fn lay(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |index: usize| {
        rows.iter()
            .filter_map(|row| row.get(index))
            .map(|text| crate::draw::width(text))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (index, text) in row.iter().enumerate() {
            let space = " ".repeat(widths[index] - crate::draw::width(text));
            if index == 0 {
                put!(line, "{text}{space}");
            } else {
                put!(line, "  {space}{text}");
            }
        }
        put!(out, "{}\n", line.trim_end());
    }
    out
}

/// Seconds with two digits, as the originals print them: `74.97s`, and `2m52.66s` from a minute on.
pub(crate) fn clock(nanos: f64) -> String {
    let seconds = nanos / 1e9;
    if seconds < 60.0 {
        return format!("{seconds:.2}s");
    }
    let minutes = (seconds / 60.0).floor();
    format!("{minutes:.0}m{:05.2}s", seconds - 60.0 * minutes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_printed_with_leading_zeros() {
        assert_eq!(clock(74.97e9), "1m14.97s");
        assert_eq!(clock(45.26e9), "45.26s");
        assert_eq!(clock(172.66e9), "2m52.66s");
        assert_eq!(clock(0.0512e9), "0.05s");
        assert_eq!(clock(125.07e9), "2m05.07s");
    }
}
