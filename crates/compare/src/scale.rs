//! Reference values for the faults of a cell: the minimum number of faults, the faults of textbook policies, and those
//! of a model of the kernel's policy.
//!
//! Reference values are not results of a variant, so they are never judged. Each is the mean over the trials of a
//! column.

use crate::comparison::{Cell, MetricRow};

/// Names of the metrics that are shown as reference values and never judged.
const SCALE: [&str; 6] = [
    "faults",
    "opt-faults",
    "lru-faults",
    "room",
    "room-opt-faults",
    "model-faults",
];

/// Reference values for the faults of one column, as means over its trials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Number of references whose page was not in memory.
    pub faults: f64,
    /// Faults of an optimal policy (OPT) with all of the memory.
    pub opt: f64,
    /// Faults of LRU with all of the memory.
    pub lru: f64,
    /// Reference values for the memory that can hold pages of the workload; `None` if this size is unknown.
    pub room: Option<Room>,
}

/// Reference values for the memory that can hold pages of the workload. This memory excludes the watermarks, and the
/// part used by compressed swap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Size of this memory in pages.
    pub pages: f64,
    /// Faults of an optimal policy (OPT) with this number of pages.
    pub opt: f64,
    /// Faults of a model of the kernel's policy with this number of pages.
    pub model: f64,
}

impl Cell {
    /// True if the row is one of the cell's reference values, which are not judged. The name alone does not decide,
    /// because imported results may have metrics with these names: the cell must also have the metrics `headroom` and
    /// `opt-faults`.
    pub fn is_scale(&self, row: &MetricRow) -> bool {
        let has = |name: &str| self.metrics.iter().any(|row| row.name == name);
        SCALE.contains(&row.name.as_str()) && has("headroom") && has("opt-faults")
    }

    /// Returns the reference values for a column; `None` if the memory references of the workload are unknown.
    pub fn scale(&self, column: usize) -> Option<Scale> {
        let mean = |name: &str| {
            let row = self.metrics.iter().find(|row| row.name == name)?;
            row.values.get(column)?.mean()
        };
        let room = || {
            Some(Room {
                pages: mean("room")?,
                opt: mean("room-opt-faults")?,
                model: mean("model-faults")?,
            })
        };
        Some(Scale {
            faults: mean("faults")?,
            opt: mean("opt-faults")?,
            lru: mean("lru-faults")?,
            room: room(),
        })
    }
}

impl Scale {
    /// Returns the faults divided by the minimum number of faults (those of OPT); `None` if no fault is necessary.
    pub fn headroom(&self) -> Option<f64> {
        (self.opt > 0.0).then(|| self.faults / self.opt)
    }
}
