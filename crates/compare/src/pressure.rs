//! Slowdown of a program as a function of memory pressure (PSI), on one variant and compared between variants.

use std::fs;
use std::path::PathBuf;

use pagetide_outside::{Place, read, readable_json, replace};
use pagetide_store::Store;
use pagetide_store::whole_file::WriteError;
use pagetide_verdict::waiting::{Incomparable, RateRatio, WaitingRun, compare};
use serde::{Deserialize, Serialize};

use crate::squeezed::{Means, SqueezeResult, TriedSize};

/// Largest accepted file with stored searches, in bytes.
const MOST_SEARCH_BYTES: u64 = 64 << 20;
/// Pressures at which a slowdown may be reported. The first one that lies between two measured sizes is used.
const LEVELS: [f64; 4] = [0.10, 0.05, 0.02, 0.20];
/// Pressures in the table that compares several variants.
const TABLE: [f64; 6] = [0.01, 0.02, 0.05, 0.10, 0.20, 0.30];
/// Fewest sizes with both pressure and slowdown for a result.
const FEWEST_POINTS: usize = 4;
/// Largest fall of the slowdown between sizes of increasing pressure, as a share. With a larger fall, pressure does not
/// predict the slowdown.
const MOST_FALL: f64 = 0.02;

/// Slowdown at one pressure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PressureMeaning {
    /// Share of the time during which tasks waited for memory.
    pub pressure: f64,
    /// Slowdown at this pressure as a share, interpolated between the two nearest sizes.
    pub slowdown: f64,
    /// Number of sizes used.
    pub points: usize,
}

/// Slowdown for both kinds of pressure; `None` for a kind that does not predict it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PressureMeanings {
    /// Some task waited for memory.
    pub some: Option<PressureMeaning>,
    /// All tasks waited for memory.
    pub full: Option<PressureMeaning>,
}

impl PressureMeanings {
    /// Computes both from a curve.
    pub fn of(curve: &[TriedSize]) -> Self {
        Self {
            some: meaning(curve, |means| means.psi_some),
            full: meaning(curve, |means| means.psi_full),
        }
    }
}

/// Pressure and slowdown of the sizes whose runs finished, sorted by pressure. `None` if there are too few, or if a
/// higher pressure was faster.
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

/// Slowdown at the first of [`LEVELS`] that lies between two sizes. `None` if there is none, if too few sizes finished,
/// or if a higher pressure was not slower.
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

/// One run compared with the run of the same seed with plenty of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressed {
    /// Block number of the seed.
    pub seed: u32,
    /// Slowdown, as a share.
    pub slowdown: f64,
    /// Share of its time during which some task waited for memory.
    pub some: f64,
    /// Share of its time during which all tasks waited for memory.
    pub full: f64,
}

/// Kind of memory pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pressure {
    /// Some task waited.
    Some,
    /// All tasks waited.
    Full,
}

impl Pressure {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Some, Self::Full];

    /// The name in `/proc/pressure/memory`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Some => "some",
            Self::Full => "full",
        }
    }

    /// Mean share of the time over the runs of a size; `None` if not measured.
    pub fn of(self, means: &Means) -> Option<f64> {
        match self {
            Self::Some => means.psi_some,
            Self::Full => means.psi_full,
        }
    }

    /// The runs of a curve that finished.
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

/// The searches of several variants, and a comparison of the slowdowns at equal pressure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedSqueezes {
    /// One search for each variant; the first is what the others are compared with.
    pub searches: Vec<VariantSqueeze>,
    /// Slowdown of each variant at pressures that lie within the curve of at least one.
    pub meanings: Vec<MeaningRow>,
    /// Comparison of each other variant with the first: does the same pressure mean the same slowdown?
    pub differences: Vec<PressureDifference>,
}

/// The search on one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantSqueeze {
    /// Its name.
    pub variant: String,
    /// Result of the search.
    pub squeeze: SqueezeResult,
}

/// Slowdown of each variant at one pressure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeaningRow {
    /// Kind of pressure.
    pub kind: Pressure,
    /// Pressure: the share of the time during which tasks waited.
    pub pressure: f64,
    /// Slowdown of each variant at this pressure, interpolated between the two nearest sizes; `None` if the pressure is
    /// outside the variant's curve.
    pub slowdowns: Vec<Option<f64>>,
}

/// Whether the same pressure means the same slowdown on two variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PressureDifference {
    /// Kind of pressure.
    pub kind: Pressure,
    /// Index of the variant's search; it is compared with the first.
    pub variant: usize,
    /// Logarithm of the ratio between the slowdown for the same waiting on this variant and on the first; `None` if the
    /// two cannot be compared.
    pub found: Option<RateRatio>,
    /// Why the two cannot be compared; `None` if they can.
    pub why: Option<Incomparable>,
}

/// Path of the file that stores the searches to which a campaign belongs.
fn kept(store: &Store, campaign: &str) -> PathBuf {
    store.folder().join(format!("squeeze/{campaign}.json"))
}

impl ComparedSqueezes {
    /// Saves the searches in the store, so that the page of each of their campaigns can show all of them.
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

    /// Loads the saved searches to which a campaign belongs; `None` if it belongs to none, or if the file cannot be
    /// read.
    pub fn kept(store: &Store, campaign: &str) -> Option<Self> {
        let bytes = read(&kept(store, campaign), Place::Own, MOST_SEARCH_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Compares every search with the first.
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
