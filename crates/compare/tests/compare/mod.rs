//! Comparisons over a real store with made-up records.

// Helpers of tests may unwrap as tests do.
#![allow(clippy::unwrap_used)]

mod bench;
mod history;
mod noise;
mod origins;
mod sides;
mod standing;
mod verdicts;
