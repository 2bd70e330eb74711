//! How long trials take: by what the store knows of their cell, and by what this run has seen.

use std::collections::HashMap;

use pagetide_record::{Nanos, Store, StoreError, Subject};
use serde::Serialize;

/// Wall-clock time assumed for a trial of a scenario that has never run here.
pub const UNKNOWN_TRIAL: Nanos = Nanos::from_secs(20);

/// Where an estimate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Earlier trials of the same cell, or of its scenario.
    Measured,
    /// No such trial is in the store: [`UNKNOWN_TRIAL`].
    Assumed,
}

/// Estimates by cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    by_cell: HashMap<String, Estimate>,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    each: Nanos,
    basis: Basis,
    /// Trials of this run that it rests on.
    seen: u64,
}

impl Times {
    /// Learns what the store knows of a cell.
    pub fn learn(&mut self, store: &Store, subject: &Subject) -> Result<(), StoreError> {
        let cell = subject.cell();
        if self.by_cell.contains_key(&cell) {
            return Ok(());
        }
        let known = store.typical_wall(Some(&cell), &subject.scenario)?;
        let estimate = Estimate {
            each: known.unwrap_or(UNKNOWN_TRIAL),
            basis: if known.is_some() {
                Basis::Measured
            } else {
                Basis::Assumed
            },
            seen: 0,
        };
        self.by_cell.insert(cell, estimate);
        Ok(())
    }

    /// Takes note of a trial that took `wall`. What is seen now counts more than what was known before.
    pub fn saw(&mut self, cell: &str, wall: Nanos) {
        if let Some(estimate) = self.by_cell.get_mut(cell) {
            let sum = estimate
                .each
                .0
                .saturating_mul(estimate.seen)
                .saturating_add(wall.0);
            estimate.seen += 1;
            estimate.each = Nanos(sum / estimate.seen);
            estimate.basis = Basis::Measured;
        }
    }

    /// Time for one trial of a cell, and how that is known.
    pub fn each(&self, cell: &str) -> (Nanos, Basis) {
        self.by_cell
            .get(cell)
            .map_or((UNKNOWN_TRIAL, Basis::Assumed), |e| (e.each, e.basis))
    }

    /// Time for trials of these cells, `jobs` side by side.
    pub fn all<'a>(&self, cells: impl Iterator<Item = &'a str>, jobs: usize) -> Nanos {
        let sum = cells.fold(0_u64, |sum, cell| sum.saturating_add(self.each(cell).0.0));
        Nanos(sum / u64::try_from(jobs.max(1)).unwrap_or(1))
    }
}
