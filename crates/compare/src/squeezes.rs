//! The searches of several variants for the smallest memory, compared at equal pressure.

use std::fs;
use std::path::PathBuf;

use pagetide_outside::{FileOrigin, read, readable_json, replace};
use pagetide_store::Store;
use pagetide_store::whole_file::WriteError;
use pagetide_verdict::waiting::{Incomparable, RateRatio, compare};
use serde::{Deserialize, Serialize};

use crate::pressure::{Pressure, points, slowdown_at};
use crate::squeezed::SqueezeResult;

/// Maximum size of a file with saved searches, in bytes.
const MAX_SEARCH_BYTES: u64 = 64 << 20;

/// Pressures of the rows in the table that compares variants, as shares of time.
const TABLE: [f64; 6] = [0.01, 0.02, 0.05, 0.10, 0.20, 0.30];

/// Searches for the smallest memory, one for each variant, with slowdowns compared at equal pressure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedSqueezes {
    /// One search for each variant. The first is the baseline of the comparison.
    pub searches: Vec<VariantSqueeze>,
    /// Slowdown of each variant at several pressures. Each pressure lies within the curve of at least one variant.
    pub meanings: Vec<MeaningRow>,
    /// For each variant after the first and each kind of pressure: whether the same pressure means the same slowdown as
    /// on the first variant.
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
    /// Kind of pressure: at least one task waited (`some`), or all non-idle tasks (`full`).
    pub kind: Pressure,
    /// Pressure: the share of the time during which tasks waited, from 0 to 1.
    pub pressure: f64,
    /// Slowdown of each variant at this pressure as a share, interpolated between the two nearest sizes. `None` if the
    /// pressure is outside the variant's curve, or if pressure does not predict the variant's slowdown.
    pub slowdowns: Vec<Option<f64>>,
}

/// Comparison of the slowdown on a variant and on the first variant at the same pressure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PressureDifference {
    /// Kind of pressure: at least one task waited (`some`), or all non-idle tasks (`full`).
    pub kind: Pressure,
    /// Index of the variant's search in [`ComparedSqueezes::searches`].
    pub variant: usize,
    /// Slowdown on this variant divided by the slowdown on the first variant for the same waiting time, with a
    /// confidence interval. `None` if the variants cannot be compared.
    pub found: Option<RateRatio>,
    /// Why the variants cannot be compared; `None` if they can.
    pub why: Option<Incomparable>,
}

/// Returns the path of the file in which the searches of a campaign are saved.
fn kept(store: &Store, campaign: &str) -> PathBuf {
    store.folder().join(format!("squeeze/{campaign}.json"))
}

impl ComparedSqueezes {
    /// Saves these searches in the store, once for the campaign of each search, so that the HTML page of any of these
    /// campaigns can show all of them.
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
        let bytes = read(&kept(store, campaign), FileOrigin::Own, MAX_SEARCH_BYTES).ok()?;
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
