//! Slowdown of a program as a function of memory pressure (PSI): on one variant, and compared between variants.

use std::fs;
use std::path::PathBuf;

use pagetide_outside::{Place, read, readable_json, replace};
use pagetide_store::Store;
use pagetide_store::whole_file::WriteError;
use pagetide_verdict::waiting::{Incomparable, RateRatio, WaitingRun, compare};
use serde::{Deserialize, Serialize};

use crate::squeezed::{Means, SqueezeResult, TriedSize};

/// Largest accepted size of a file with saved searches, in bytes.
const MOST_SEARCH_BYTES: u64 = 64 << 20;
/// Pressures at which a slowdown may be reported, as shares of time. The first one that lies between two measured sizes
/// is used.
const LEVELS: [f64; 4] = [0.10, 0.05, 0.02, 0.20];
/// Pressures in the table that compares several variants, as shares of time.
const TABLE: [f64; 6] = [0.01, 0.02, 0.05, 0.10, 0.20, 0.30];
/// Fewest memory sizes with different pressures that a result needs.
const FEWEST_POINTS: usize = 4;
/// Largest accepted decrease of the slowdown from one size to the size with the next higher pressure, as a share. If it
/// decreases more, pressure does not predict the slowdown.
const MOST_FALL: f64 = 0.02;

/// Slowdown at one pressure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PressureMeaning {
    /// Share of the time during which tasks waited for memory, from 0 to 1.
    pub pressure: f64,
    /// Slowdown at this pressure as a share, interpolated between the two nearest sizes.
    pub slowdown: f64,
    /// Number of memory sizes that were measured.
    pub points: usize,
}

/// Slowdown for both kinds of memory pressure; `None` for a kind that does not predict the slowdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PressureMeanings {
    /// Slowdown by the time during which at least one task waited for memory.
    pub some: Option<PressureMeaning>,
    /// Slowdown by the time during which all tasks waited for memory.
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

/// Pressure and slowdown of each size whose runs finished, sorted by pressure. `None` if there are too few sizes, or if
/// the slowdown decreases with higher pressure.
fn points(
    curve: &[TriedSize],
    pressure: impl Fn(&Means) -> Option<f64>,
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
        .any(|pair| pair[1].1 < pair[0].1 - MOST_FALL);
    (distinct >= FEWEST_POINTS && !falls).then_some(points)
}

/// The slowdown at a pressure, interpolated between two sizes; `None` if the pressure is outside the curve.
fn slowdown_at(points: &[(f64, f64)], level: f64) -> Option<f64> {
    let pair = points
        .windows(2)
        .find(|p| p[0].0 <= level && level <= p[1].0 && p[0].0 < p[1].0)?;
    let [(low, slow), (high, slower)] = [pair[0], pair[1]];
    Some(slow + (slower - slow) * (level - low) / (high - low))
}

/// Slowdown at the first of [`LEVELS`] that lies between two sizes. `None` if no level does, if too few sizes finished,
/// or if the slowdown decreases with higher pressure.
fn meaning(
    curve: &[TriedSize],
    pressure: impl Fn(&Means) -> Option<f64>,
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

/// Slowdown and waiting of one run. The slowdown is relative to the run of the same seed with the largest memory
/// (`plenty`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressed {
    /// Block number of the seed.
    pub seed: u32,
    /// Slowdown of the run, as a share.
    pub slowdown: f64,
    /// Share of the run's time during which at least one task waited for memory.
    pub some: f64,
    /// Share of the run's time during which all tasks waited for memory.
    pub full: f64,
}

/// Kind of memory pressure, as in the kernel's PSI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pressure {
    /// At least one task waited for memory.
    Some,
    /// All tasks waited for memory.
    Full,
}

impl Pressure {
    /// Both kinds of pressure.
    pub const ALL: [Self; 2] = [Self::Some, Self::Full];

    /// Name of this kind in `/proc/pressure/memory`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Some => "some",
            Self::Full => "full",
        }
    }

    /// Mean share of the time spent at this kind of pressure, over the runs of a size; `None` if not measured.
    pub fn of(self, means: &Means) -> Option<f64> {
        match self {
            Self::Some => means.psi_some,
            Self::Full => means.psi_full,
        }
    }

    /// The runs of a curve's sizes at which no run died, with their slowdown and this kind of pressure.
    fn runs(self, curve: &[TriedSize]) -> Vec<WaitingRun> {
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

/// The searches of several variants, with their slowdowns compared at equal pressure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedSqueezes {
    /// One search for each variant. All others are compared with the first.
    pub searches: Vec<VariantSqueeze>,
    /// Slowdown of each variant at several pressures. Each pressure lies within the curve of at least one variant.
    pub meanings: Vec<MeaningRow>,
    /// For each other variant and kind of pressure: whether the same pressure means the same slowdown as on the first
    /// variant.
    pub differences: Vec<PressureDifference>,
}

/// The search for the smallest memory on one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantSqueeze {
    /// Name of the variant.
    pub variant: String,
    /// Result of the search.
    pub squeeze: SqueezeResult,
}

/// Slowdown of each variant at one pressure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeaningRow {
    /// Kind of pressure.
    pub kind: Pressure,
    /// Pressure: the share of the time during which tasks waited, from 0 to 1.
    pub pressure: f64,
    /// Slowdown of each variant at this pressure as a share, interpolated between the two nearest sizes. `None` if the
    /// pressure is outside the variant's curve.
    pub slowdowns: Vec<Option<f64>>,
}

/// Comparison of the slowdown on a variant and on the first variant at the same pressure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PressureDifference {
    /// Kind of pressure.
    pub kind: Pressure,
    /// Index of the variant's search in [`ComparedSqueezes::searches`].
    pub variant: usize,
    /// Slowdown for the same waiting time on this variant divided by the slowdown on the first variant, with its
    /// interval. `None` if the variants cannot be compared.
    pub found: Option<RateRatio>,
    /// Why the variants cannot be compared; `None` if they can.
    pub why: Option<Incomparable>,
}

/// Path of the file with the saved searches of a campaign.
fn kept(store: &Store, campaign: &str) -> PathBuf {
    store.folder().join(format!("squeeze/{campaign}.json"))
}

impl ComparedSqueezes {
    /// Saves these searches in the store under each of their campaigns, so that the page of any campaign can show all
    /// of them.
    pub fn keep(&self, store: &Store) -> Result<(), WriteError> {
        for one in &self.searches {
            let path = kept(store, &one.squeeze.campaign);
            let folder = path.parent().unwrap_or(&path);
            let wrong = |source| WriteError {
                path: folder.to_owned(),
                source,
            };
            fs::create_dir_all(folder).map_err(wrong)?;
            let write = || replace(&path, &readable_json(self)?);
            write().map_err(|source| WriteError {
                path: path.clone(),
                source,
            })?;
        }
        Ok(())
    }

    /// Loads the searches that were saved for a campaign; `None` if there are none, or if the file cannot be read.
    pub fn kept(store: &Store, campaign: &str) -> Option<Self> {
        let bytes = read(&kept(store, campaign), Place::Own, MOST_SEARCH_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Compares the search of every other variant with the first one.
    pub fn of(searches: Vec<VariantSqueeze>) -> Self {
        let curve = |place: usize| searches[place].squeeze.curve.as_slice();
        let comparisons = Pressure::ALL.len() * searches.len().saturating_sub(1);
        let comparisons = u32::try_from(comparisons).unwrap_or(u32::MAX);
        let mut differences = Vec::new();
        let mut meanings = Vec::new();
        for kind in Pressure::ALL {
            for variant in 1..searches.len() {
                let (a, b) = (kind.runs(curve(0)), kind.runs(curve(variant)));
                let found = compare(&a, &b, comparisons);
                differences.push(PressureDifference {
                    kind,
                    variant,
                    why: found.err(),
                    found: found.ok(),
                });
            }
            let curves: Vec<_> = (0..searches.len())
                .map(|place| points(curve(place), |means| kind.of(means)))
                .collect();
            let row = |pressure: f64| MeaningRow {
                kind,
                pressure,
                slowdowns: curves
                    .iter()
                    .map(|points| slowdown_at(points.as_deref()?, pressure))
                    .collect(),
            };
            let is_met = |row: &MeaningRow| row.slowdowns.iter().any(Option::is_some);
            meanings.extend(TABLE.into_iter().map(row).filter(is_met));
        }
        Self {
            searches,
            meanings,
            differences,
        }
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
            means: Means {
                psi_some: Some(*pressure),
                ..Means::default()
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
