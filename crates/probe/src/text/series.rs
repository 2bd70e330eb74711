//! A series of samples in bounded memory.
//!
//! When the memory is full, every second sample is dropped and from then on only every second one offered is kept: the
//! series always spans the whole time, evenly, with between half and all of its capacity, and allocates only when made.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Samples of a fixed set of columns over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    columns: Vec<String>,
    capacity: usize,
    stride: u64,
    offered: u64,
    times: Vec<Nanos>,
    values: Vec<u64>,
}

impl Series {
    /// A series with these columns that keeps at most `capacity` samples (at least two).
    pub fn new(columns: Vec<String>, capacity: usize) -> Self {
        let capacity = capacity.max(2);
        Self {
            times: Vec::with_capacity(capacity),
            values: Vec::with_capacity(capacity * columns.len()),
            columns,
            capacity,
            stride: 1,
            offered: 0,
        }
    }

    /// Offers a sample: one value for each column (missing ones count as 0, further ones are left out).
    pub fn push(&mut self, time: Nanos, values: &[u64]) {
        let turn = self.offered.is_multiple_of(self.stride);
        self.offered += 1;
        if !turn {
            return;
        }
        if self.times.len() == self.capacity {
            self.halve();
            // After halving, the sample at hand is kept only if it lies on the wider grid.
            if !(self.offered - 1).is_multiple_of(self.stride) {
                return;
            }
        }
        self.times.push(time);
        for column in 0..self.columns.len() {
            self.values.push(values.get(column).copied().unwrap_or(0));
        }
    }

    fn halve(&mut self) {
        let width = self.columns.len();
        let kept = self.times.len().div_ceil(2);
        for at in 1..kept {
            self.times[at] = self.times[2 * at];
            self.values
                .copy_within(2 * at * width..(2 * at + 1) * width, at * width);
        }
        self.times.truncate(kept);
        self.values.truncate(kept * width);
        self.stride = self.stride.saturating_mul(2);
    }

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// How many samples are kept.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there is no sample yet.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Every how many offered samples one is kept.
    pub fn stride(&self) -> u64 {
        self.stride
    }

    /// How many samples were offered in all.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// The kept samples: time and one value for each column.
    pub fn rows(&self) -> impl Iterator<Item = (Nanos, &[u64])> {
        let width = self.columns.len();
        self.times.iter().enumerate().map(move |(at, &time)| {
            (
                time,
                self.values.get(at * width..(at + 1) * width).unwrap_or(&[]),
            )
        })
    }

    /// One column over time; `None` where there is no such column.
    pub fn column(&self, name: &str) -> Option<impl Iterator<Item = (Nanos, u64)>> {
        let at = self.columns.iter().position(|column| column == name)?;
        Some(
            self.rows()
                .map(move |(time, row)| (time, row.get(at).copied().unwrap_or(0))),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_stays_within_its_memory_and_evenly_spaced() {
        let mut series = Series::new(vec!["n".into()], 8);
        for at in 0..1000_u64 {
            series.push(Nanos(at), &[at * 3]);
        }
        assert!(series.len() <= 8 && series.len() >= 4);
        assert_eq!(series.offered(), 1000);
        let times: Vec<_> = series.rows().map(|(time, _)| time.get()).collect();
        let step = series.stride();
        let expected: Vec<_> = (0..times.len() as u64).map(|at| at * step).collect();
        assert_eq!(times, expected);
        assert!(series.rows().all(|(time, row)| row[0] == time.get() * 3));
    }

    #[test]
    fn the_memory_of_a_series_does_not_grow() {
        let mut series = Series::new(vec!["a".into(), "b".into()], 16);
        let (times, values) = (series.times.capacity(), series.values.capacity());
        for at in 0..10_000 {
            series.push(Nanos(at), &[1, 2]);
        }
        assert_eq!(series.times.capacity(), times);
        assert_eq!(series.values.capacity(), values);
    }
}
