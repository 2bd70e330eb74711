//! The accesses of all trials in one sorted list.

use crate::error::{Result, Side, StatError};
use crate::number::probability;
use crate::sample::Bin;

/// The accesses of one trial that have the same value.
#[derive(Clone, Copy, Debug)]
struct Point {
    value: f64,
    /// Logarithm of the value if the effect is a ratio, otherwise the value.
    working: f64,
    count: u64,
    trial: usize,
}

/// Distributions whose quantile is computed repeatedly, for different subsets of trials.
///
/// The search for the quantile starts at the nearer end, so that an extreme quantile is found in a few steps.
pub(super) struct Pool {
    quantile: f64,
    /// Accesses of all trials, in ascending order of value.
    points: Vec<Point>,
    /// Number of accesses of each trial.
    sizes: Vec<u64>,
}

impl Pool {
    /// Builds the pool from A's trials followed by B's trials. An error names the variant (`side` for the first trials,
    /// else B) and the trial. Fails if `ratio` is set and a value is not positive, or if a trial is empty.
    pub fn new(
        side: Side,
        a: &[Vec<Bin>],
        b: &[Vec<Bin>],
        quantile: f64,
        ratio: bool,
    ) -> Result<Self> {
        probability("a quantile", quantile)?;
        let mut points = Vec::with_capacity(a.iter().chain(b).map(Vec::len).sum());
        let mut sizes = Vec::with_capacity(a.len() + b.len());
        for (trial, bins) in a.iter().chain(b).enumerate() {
            let (side, index) = if trial < a.len() {
                (side, trial)
            } else {
                (Side::B, trial - a.len())
            };
            if bins.iter().any(|bin| !bin.value.is_finite()) {
                return Err(StatError::NotFinite { side, index });
            }
            if let Some(bin) = bins
                .iter()
                .find(|bin| ratio && bin.count > 0 && bin.value <= 0.0)
            {
                let value = bin.value;
                return Err(StatError::NotPositive { side, index, value });
            }
            let size: u64 = bins.iter().map(|bin| bin.count).sum();
            if size == 0 {
                return Err(StatError::Empty {
                    what: format!("the distribution of trial {index} of {side}"),
                });
            }
            sizes.push(size);
            points.extend(bins.iter().filter(|bin| bin.count > 0).map(|bin| Point {
                // Adding zero turns -0 into 0.
                value: bin.value + 0.0,
                working: if ratio {
                    libm::log(bin.value)
                } else {
                    bin.value
                },
                count: bin.count,
                trial,
            }));
        }
        points.sort_unstable_by(|x, y| x.value.total_cmp(&y.value));
        Ok(Self {
            quantile,
            points,
            sizes,
        })
    }

    /// Returns the quantile of the trials for which `takes` returns true; NaN if there is no such trial.
    pub fn quantile(&self, takes: impl Fn(usize) -> bool) -> f64 {
        let total = self.total(&takes);
        // This number of accesses must lie at or below the quantile. The slack keeps 0.99 of 100 at 99, although 0.99
        // times 100 may be slightly more in binary.
        let wanted = total as f64 * self.quantile * (1.0 - 1e-12);
        let mut points = self.points.iter().filter(|point| takes(point.trial));
        let found = if self.quantile < 0.5 {
            let mut seen = 0;
            points.find(|point| {
                seen += point.count;
                seen as f64 >= wanted
            })
        } else {
            let mut below = total;
            points.rev().find(|point| {
                below -= point.count;
                (below as f64) < wanted
            })
        };
        found.map_or(f64::NAN, |point| point.value)
    }

    /// Returns the smoothed quantile: the mean of the accesses whose rank is within one standard error, √(n q (1 − q)),
    /// of the quantile's rank. If the effect is a ratio, the mean is that of the logarithms.
    ///
    /// A single order statistic jumps from one access to the next. These jumps increase the spread of estimates from
    /// small subsets, and the coverage of an interval would be one percent too high.
    pub fn smooth(&self, takes: impl Fn(usize) -> bool) -> f64 {
        let from_below = self.quantile < 0.5;
        let share = if from_below {
            self.quantile
        } else {
            1.0 - self.quantile
        };
        let centre = share * self.total(&takes) as f64;
        let half = (centre * (1.0 - share)).sqrt().min(centre);
        let (first, last) = (centre - half, centre + half);
        let (mut seen, mut sum) = (0.0, 0.0);
        let mut add = |point: &Point| {
            let end = seen + point.count as f64;
            let inside = (last.min(end) - first.max(seen)).max(0.0);
            sum += inside / (last - first) * point.working;
            seen = end;
            seen < last
        };
        let mut points = self.points.iter().filter(|point| takes(point.trial));
        if from_below {
            points.all(&mut add);
        } else {
            points.rev().all(&mut add);
        }
        sum
    }

    fn total(&self, takes: impl Fn(usize) -> bool) -> u64 {
        let sizes = self.sizes.iter().enumerate();
        sizes
            .filter(|(trial, _)| takes(*trial))
            .map(|(_, size)| size)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smooth_quantile_is_the_mean_within_a_standard_error_of_its_rank() {
        let trial: Vec<Bin> = (1..=100)
            .map(|value| Bin {
                value: f64::from(value),
                count: 1,
            })
            .collect();
        // √(100 · 0.8 · 0.2) = 4: ranks 16 to 24 from the top, which are values 77 to 84; and ranks 17 to 24 from the
        // bottom.
        for (quantile, mean) in [(0.8, 80.5), (0.2, 20.5)] {
            let pool = Pool::new(Side::A, std::slice::from_ref(&trial), &[], quantile, false);
            assert!((pool.unwrap().smooth(|_| true) - mean).abs() < 1e-12);
        }
        // A count stands for repeated values. If the effect is a ratio, the mean is geometric.
        let pair = |low: u64, high: u64| {
            let bin = |value, count| Bin { value, count };
            vec![bin(1.0, low), bin(4.0, high)]
        };
        let pool = Pool::new(Side::A, &[pair(80, 20)], &[], 0.8, true).unwrap();
        assert!((pool.smooth(|_| true) - 2.0_f64.ln()).abs() < 1e-12);
    }
}
