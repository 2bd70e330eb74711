//! Slowdown of a program as a function of memory pressure (PSI).

use pagetide_verdict::waiting::WaitingRun;
use serde::{Deserialize, Serialize};

use crate::tried::{Pressed, RunMeans, TriedSize};

/// Pressures at which a slowdown may be reported, as shares of time. The first one that lies between two measured sizes
/// is used.
const LEVELS: [f64; 4] = [0.10, 0.05, 0.02, 0.20];
/// Minimum number of memory sizes with different pressures that a result needs.
const MIN_POINTS: usize = 4;
/// Maximum decrease of the slowdown, as a fraction, from one size to the size with the next higher pressure. If it
/// decreases more, pressure does not predict the slowdown.
const MAX_FALL: f64 = 0.02;

/// Slowdown at one memory pressure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PressureMeaning {
    /// Share of the time during which tasks waited for memory, from 0 to 1.
    pub pressure: f64,
    /// Slowdown at this pressure as a share, interpolated between the two nearest sizes.
    pub slowdown: f64,
    /// Number of memory sizes at which no run died and the pressure was measured.
    pub points: usize,
}

/// Slowdown as a function of both kinds of memory pressure; `None` for a kind that does not predict the slowdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PressureMeanings {
    /// Slowdown at a pressure of kind `some`: at least one task waited for memory.
    pub some: Option<PressureMeaning>,
    /// Slowdown at a pressure of kind `full`: all non-idle tasks waited for memory.
    pub full: Option<PressureMeaning>,
}

impl PressureMeanings {
    /// Computes the slowdown for both kinds of pressure from a curve.
    pub fn of(curve: &[TriedSize]) -> Self {
        Self {
            some: meaning(curve, |means| means.psi_some),
            full: meaning(curve, |means| means.psi_full),
        }
    }
}

/// Returns the pressure and slowdown of each size whose runs finished, sorted by pressure. `None` if there are too few
/// sizes, or if the slowdown decreases with higher pressure.
pub(crate) fn points(
    curve: &[TriedSize],
    pressure: impl Fn(&RunMeans) -> Option<f64>,
) -> Option<Vec<(f64, f64)>> {
    let point = |tried: &TriedSize| match tried.point.died {
        Some(_) => None,
        None => Some((pressure(&tried.means)?, tried.point.slowdown?)),
    };
    let mut points: Vec<(f64, f64)> = curve.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rises = points.windows(2).filter(|pair| pair[1].0 > pair[0].0);
    let distinct = rises.count() + 1;
    let falls = points
        .windows(2)
        .any(|pair| pair[1].1 < pair[0].1 - MAX_FALL);
    (distinct >= MIN_POINTS && !falls).then_some(points)
}

/// Returns the slowdown at a pressure, interpolated between two sizes; `None` if the pressure is outside the curve.
pub(crate) fn slowdown_at(points: &[(f64, f64)], level: f64) -> Option<f64> {
    let pair = points
        .windows(2)
        .find(|p| p[0].0 <= level && level <= p[1].0 && p[0].0 < p[1].0)?;
    let [(low, slow), (high, slower)] = [pair[0], pair[1]];
    Some(slow + (slower - slow) * (level - low) / (high - low))
}

/// Returns the slowdown at the first of [`LEVELS`] that lies between two sizes. `None` if no level does, if too few
/// sizes finished, or if the slowdown decreases with higher pressure.
fn meaning(
    curve: &[TriedSize],
    pressure: impl Fn(&RunMeans) -> Option<f64>,
) -> Option<PressureMeaning> {
    let points = points(curve, pressure)?;
    LEVELS.into_iter().find_map(|level| {
        Some(PressureMeaning {
            pressure: level,
            slowdown: slowdown_at(&points, level)?,
            points: points.len(),
        })
    })
}

/// Kind of memory pressure, as in the kernel's PSI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pressure {
    /// At least one task waited for memory.
    Some,
    /// All non-idle tasks waited for memory.
    Full,
}

impl Pressure {
    /// Both kinds of pressure.
    pub const ALL: [Self; 2] = [Self::Some, Self::Full];

    /// Returns the name of this kind in `/proc/pressure/memory`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Some => "some",
            Self::Full => "full",
        }
    }

    /// Returns the mean share of the time spent at this kind of pressure, over the runs of a size; `None` if not
    /// measured.
    pub fn of(self, means: &RunMeans) -> Option<f64> {
        match self {
            Self::Some => means.psi_some,
            Self::Full => means.psi_full,
        }
    }

    /// Returns the runs at the sizes at which no run died, each with its slowdown and its pressure of this kind.
    pub(crate) fn runs(self, curve: &[TriedSize]) -> Vec<WaitingRun> {
        let alive = curve.iter().filter(|tried| tried.point.died.is_none());
        let of_size = |tried: &TriedSize| {
            let size = tried.point.size;
            let run = move |run: &Pressed| WaitingRun {
                size,
                seed: run.seed,
                share: match self {
                    Self::Some => run.some,
                    Self::Full => run.full,
                },
                slowdown: run.slowdown,
            };
            tried.pressed.iter().map(run).collect::<Vec<_>>()
        };
        alive.flat_map(of_size).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_verdict::squeeze::Point;

    fn tried(points: &[(f64, f64)]) -> Vec<TriedSize> {
        let of = |(pressure, slowdown): &(f64, f64)| TriedSize {
            point: Point {
                size: 1,
                seeds: 3,
                slowdown: Some(*slowdown),
                interval: None,
                fit: pagetide_verdict::squeeze::Fit::Within,
                is_full: true,
                died: None,
            },
            means: RunMeans {
                psi_some: Some(*pressure),
                ..RunMeans::default()
            },
            pressed: Vec::new(),
        };
        points.iter().map(of).collect()
    }

    #[test]
    fn pressure_means_the_slowdown_between_the_sizes_around_it_or_nothing_is_said() {
        let of = |points: &[(f64, f64)]| meaning(&tried(points), |means| means.psi_some);
        let told = of(&[(0.30, 0.60), (0.15, 0.30), (0.05, 0.10), (0.0, 0.0)]).unwrap();
        assert!((told.slowdown - 0.20).abs() < 1e-9, "{told:?}");
        assert_eq!((told.pressure, told.points), (0.10, 4));
        let low = of(&[(0.06, 0.3), (0.04, 0.2), (0.01, 0.1), (0.0, 0.0)]).unwrap();
        assert!((low.pressure - 0.05).abs() < 1e-9, "0.10 was not met");
        assert_eq!(of(&[(0.2, 0.3), (0.1, 0.2), (0.0, 0.0)]), None, "too few");
        assert_eq!(of(&[(0.0, 0.0), (0.0, 0.0), (0.0, 0.1), (0.0, 0.2)]), None);
        let falling = [(0.0, 0.0), (0.05, 0.4), (0.15, 0.1), (0.3, 0.6)];
        assert_eq!(of(&falling), None, "more pressure was faster");
        assert_eq!(of(&[]), None);
    }
}
