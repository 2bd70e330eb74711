//! A source before and after a trial.

use serde::{Deserialize, Serialize};

use super::counters::{Counters, Delta};

/// One source, read before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot<T> {
    /// The reading before the clock started.
    pub before: T,
    /// The reading after it stopped.
    pub after: T,
}

impl Snapshot<Counters> {
    /// What changed in between.
    pub fn delta(&self) -> Delta {
        self.after.delta(&self.before)
    }
}
