//! What waiting for memory meant for a program, on one variant, and whether it means the same on another.

use std::fs;
use std::path::PathBuf;

use pagetide_outside::{Place, read, readable_json, replace};
use pagetide_store::Store;
use pagetide_store::whole_file::WriteError;
use pagetide_verdict::waiting::{Incomparable, RateRatio, WaitingRun, compare};
use serde::{Deserialize, Serialize};

use crate::squeezed::{Means, SqueezeResult, TriedSize};

/// Most bytes of what is kept of a search.
const MOST_SEARCH_BYTES: u64 = 64 << 20;
/// Pressure at which a slowdown is told, the first that was met between two sizes.
const LEVELS: [f64; 4] = [0.10, 0.05, 0.02, 0.20];
/// Pressures at which several variants are put side by side.
const TABLE: [f64; 6] = [0.01, 0.02, 0.05, 0.10, 0.20, 0.30];
/// Fewest sizes with a pressure and a slowdown of their own from which something is told.
const FEWEST_POINTS: usize = 4;
/// Most that a slowdown may fall, as a share, where the pressure rises: beyond it pressure does not tell the slowdown.
const MOST_FALL: f64 = 0.02;

/// How much slower a pressure meant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PressureMeaning {
    /// Share of the time for which tasks waited for memory.
    pub pressure: f64,
    /// Slowdown there, between the two sizes around it.
    pub slowdown: f64,
    /// Sizes that it rests on.
    pub points: usize,
}

/// What both kinds of pressure meant; `None` for one that does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PressureMeanings {
    /// Some task waited for memory.
    pub some: Option<PressureMeaning>,
    /// All tasks waited for memory.
    pub full: Option<PressureMeaning>,
}

impl PressureMeanings {
    /// Of a curve.
    pub fn of(curve: &[TriedSize]) -> Self {
        Self {
            some: meaning(curve, |means| means.psi_some),
            full: meaning(curve, |means| means.psi_full),
        }
    }
}

/// Slowdown and pressure of the sizes that came to an end, by pressure; nothing where too few did, or where more pressure was faster.
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

/// The slowdown at a pressure that lies between two sizes.
fn slowdown_at(points: &[(f64, f64)], level: f64) -> Option<f64> {
    let pair = points
        .windows(2)
        .find(|p| p[0].0 <= level && level <= p[1].0 && p[0].0 < p[1].0)?;
    let [(low, slow), (high, slower)] = [pair[0], pair[1]];
    Some(slow + (slower - slow) * (level - low) / (high - low))
}

/// What a pressure meant among the sizes that were tried; `None` where they do not tell: too few came to an end, none of the levels
/// lies between two of them, or more pressure was not slower.
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

/// A run beside that of the same seed with plenty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pressed {
    /// Number of the seed's block.
    pub seed: u32,
    /// How much slower it was, as a share.
    pub slowdown: f64,
    /// Share of its time for which some task waited for memory.
    pub some: f64,
    /// Share of its time for which all tasks waited for memory.
    pub full: f64,
}

/// Whose waiting it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pressure {
    /// Some task waited.
    Some,
    /// All tasks waited.
    Full,
}

impl Pressure {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Some, Self::Full];

    /// Its name in `/proc/pressure/memory`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Some => "some",
            Self::Full => "full",
        }
    }

    /// The share of the time, as a mean over the runs of a size.
    pub fn of(self, means: &Means) -> Option<f64> {
        match self {
            Self::Some => means.psi_some,
            Self::Full => means.psi_full,
        }
    }

    /// The runs of a curve that came to an end.
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

/// The searches of several variants, and what pressure means on each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedSqueezes {
    /// One search for each variant; the first is what the others are compared with.
    pub searches: Vec<VariantSqueeze>,
    /// What pressure meant on each, at levels that lie within the curve of at least one.
    pub meanings: Vec<MeaningRow>,
    /// Whether it means the same on the others as on the first.
    pub differences: Vec<PressureDifference>,
}

/// The search of one variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantSqueeze {
    /// Its name.
    pub variant: String,
    /// What came of it.
    pub squeeze: SqueezeResult,
}

/// How much slower a pressure meant on each variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeaningRow {
    /// Whose waiting.
    pub kind: Pressure,
    /// Share of the time.
    pub pressure: f64,
    /// Slowdown there on each variant, between the two sizes around it; nothing where it lies outside of what was met.
    pub slowdowns: Vec<Option<f64>>,
}

/// Whether pressure means the same on two variants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PressureDifference {
    /// Whose waiting.
    pub kind: Pressure,
    /// Place of the variant among the searches; it is compared with the first.
    pub variant: usize,
    /// How much slower the same waiting means on it, for what it means on the first, in logarithms; nothing where they cannot be
    /// compared.
    pub found: Option<RateRatio>,
    /// Why they cannot be.
    pub why: Option<Incomparable>,
}

/// Where the searches that a campaign belongs to are kept.
fn kept(store: &Store, campaign: &str) -> PathBuf {
    store.folder().join(format!("squeeze/{campaign}.json"))
}

impl ComparedSqueezes {
    /// Keeps them in the store, for the page of each of their campaigns.
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

    /// What was kept of the searches that a campaign belongs to; nothing where it belongs to none, or what is there cannot be read.
    pub fn kept(store: &Store, campaign: &str) -> Option<Self> {
        let bytes = read(&kept(store, campaign), Place::Own, MOST_SEARCH_BYTES).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Compares searches.
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
