//! Comparisons over a real store with made-up records.

mod agreement;
mod bench;
mod history;
mod medians;
mod noise;
mod once;
mod origins;
mod sides;
mod standing;
mod verdicts;
