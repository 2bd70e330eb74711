//! Additional data for some of the papers' tables: processor times, elapsed times, times of processes, reclaim tables,
//! and VM Regress's report.

use std::collections::BTreeMap;

use pagetide_probe::meaning::ReclaimTable;
use pagetide_quantity::Nanos;

/// Index of a cell, then index of a column.
pub(super) type CellColumn = (usize, usize);

/// Additional data for some tables, by indices of cell and column.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// User and system time of all processes together, for each trial; see [`cpu_time`](super::cpu_time).
    pub cpu: BTreeMap<CellColumn, Vec<CpuTime>>,
    /// Elapsed time of each trial in nanoseconds.
    pub elapsed: BTreeMap<CellColumn, Vec<Nanos>>,
    /// Mean times of each process over trials and passes, by indices of cell and column.
    pub processes: BTreeMap<CellColumn, Vec<ProcessTimes>>,
    /// Reclaim table of each observed column.
    pub reclaim: BTreeMap<CellColumn, ReclaimTable>,
    /// Reason in one word why a column has no reclaim table. A column that is neither here nor in `reclaim` was not
    /// observed.
    pub no_reclaim: BTreeMap<CellColumn, &'static str>,
    /// VM Regress's report of one run; `None` if no cell comes from VM Regress, or the cell has no valid trial.
    pub report: Option<String>,
}

/// Processor time of all processes of one trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// Time in user mode in nanoseconds.
    pub user: Nanos,
    /// Time in the kernel in nanoseconds.
    pub system: Nanos,
}

/// Mean times of one process in nanoseconds; `None` for an operation that the process did not execute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessTimes {
    /// Time to read all memory of the process.
    pub read: Option<f64>,
    /// Time to write all memory of the process.
    pub write: Option<f64>,
}
