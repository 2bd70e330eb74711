//! Collects a series in bounded memory while the clock runs.
//!
//! When the memory is full, every second stored sample is dropped, and from then on half as many of the new samples are
//! stored. So the stored samples cover the whole time, at even distances if samples are taken at even distances. Once
//! full, the memory stays at least half full. It is allocated once, when the sampler is created.

use crate::{Column, ColumnData, Nanos, Series, Unit};

/// A series under construction: samples of a fixed set of columns over time, at most as many as fit into its memory.
#[derive(Debug, Clone)]
pub struct Sampler {
    columns: Vec<Column>,
    capacity: usize,
    stride: u64,
    offered: u64,
    times: Vec<Nanos>,
    values: Vec<u64>,
}

impl Sampler {
    /// Creates a sampler for these columns that stores at most `capacity` samples; a capacity below two counts as two.
    pub fn new(columns: Vec<Column>, capacity: usize) -> Self {
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

    /// Passes one sample to the sampler: the time, and a value for each column. Missing values are stored as 0, surplus
    /// values are ignored. Never allocates.
    pub fn push(&mut self, time: Nanos, values: &[u64]) {
        let turn = self.offered.is_multiple_of(self.stride);
        self.offered += 1;
        if !turn {
            return;
        }
        if self.times.len() == self.capacity {
            self.halve();
            // After halving, store this sample only if its index is a multiple of the new, doubled distance.
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

    /// Converts the stored samples to a series: first the column `time` in nanoseconds, then the given columns.
    pub fn into_series(self, name: &str) -> Series {
        let width = self.columns.len();
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let times = self.times.iter().map(|time| number(time.0));
        let mut series = Series::new(name).int("time", Unit::Nanos, times);
        for (at, column) in self.columns.into_iter().enumerate() {
            let values = self.values.iter().skip(at).step_by(width);
            let values = values.map(|&value| number(value)).collect();
            series.columns.push((column, ColumnData::Int(values)));
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(columns: &[&str], capacity: usize) -> Sampler {
        let column = |name: &&str| Column {
            name: (*name).to_owned(),
            unit: Unit::Pages,
        };
        Sampler::new(columns.iter().map(column).collect(), capacity)
    }

    #[test]
    fn a_long_series_stays_within_its_memory_and_evenly_spaced() {
        let mut sampler = sampler(&["n"], 8);
        for at in 0..1000_u64 {
            sampler.push(Nanos(at), &[at * 3]);
        }
        assert_eq!(sampler.offered, 1000);
        let step = sampler.stride;
        let series = sampler.into_series("n");
        assert!(series.rows() <= 8 && series.rows() >= 4);
        let expected: Vec<_> = (0..series.rows() as u64).map(|at| at * step).collect();
        let numbers = |factor: u64| expected.iter().map(move |at| (at * factor).cast_signed());
        let same =
            Series::new("n")
                .int("time", Unit::Nanos, numbers(1))
                .int("n", Unit::Pages, numbers(3));
        assert_eq!(series, same);
    }

    #[test]
    fn the_memory_of_a_series_does_not_grow() {
        let mut sampler = sampler(&["a", "b"], 16);
        let (times, values) = (sampler.times.capacity(), sampler.values.capacity());
        for at in 0..10_000 {
            sampler.push(Nanos(at), &[1, 2]);
        }
        assert_eq!(sampler.times.capacity(), times);
        assert_eq!(sampler.values.capacity(), values);
    }
}
