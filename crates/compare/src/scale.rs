//! What a cell's faults are measured against: the fewest possible, textbook policies, a model of the kernel's own.
//!
//! These are no results of a variant, so that none is judged by them. They are means over a column's trials.

use crate::comparison::{Cell, MetricRow};

/// Metrics that are shown for scale and never judged.
const SCALE: [&str; 6] = [
    "faults",
    "opt-faults",
    "lru-faults",
    "room",
    "room-opt-faults",
    "model-faults",
];

/// The scale of one column's faults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// References that did not find their page.
    pub faults: f64,
    /// Faults of an ideal policy (OPT) with all of the memory.
    pub opt: f64,
    /// Faults of LRU with all of the memory.
    pub lru: f64,
    /// What memory could hold, where that is known.
    pub room: Option<Room>,
}

/// Memory less watermarks and compressed swap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Pages.
    pub pages: f64,
    /// Faults of an ideal policy with these pages.
    pub opt: f64,
    /// Faults that a model of the kernel's own policy has with them.
    pub model: f64,
}

impl Cell {
    /// Whether a row is shown for scale rather than judged. Imports may use the same names for results of their own, so
    /// the cell has to have a headroom as well.
    pub fn is_scale(&self, row: &MetricRow) -> bool {
        let has = |name: &str| self.metrics.iter().any(|row| row.name == name);
        SCALE.contains(&row.name.as_str()) && has("headroom") && has("opt-faults")
    }

    /// The scale of a column's faults; none where its references are not known.
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
    /// Faults for each of the fewest possible; none where there need not be any.
    pub fn headroom(&self) -> Option<f64> {
        (self.opt > 0.0).then(|| self.faults / self.opt)
    }
}
