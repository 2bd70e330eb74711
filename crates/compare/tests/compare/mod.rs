//! Comparisons over a real store with made-up records.

mod bench;
mod history;
mod noise;
mod origins;
mod sides;
mod standing;
mod verdicts;
