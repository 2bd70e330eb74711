//! What a campaign of a variant against harmless ones says about an arena's noise, kept with the store.

use std::path::PathBuf;

use pagetide_outside::{Place, read, readable_json, replace};
use pagetide_quantity::Nanos;
use pagetide_quantity::command::told;
use pagetide_record::ArenaKind;
use pagetide_store::Store;
use pagetide_verdict::calibrate::{Calibration, calibrate, split};
use pagetide_verdict::sample::Scale;
use pagetide_verdict::{Data, Family, MetricSample, StatError};
use serde::{Deserialize, Serialize};

use crate::comparison::{Cell, Comparison};
use crate::pairs::pairs;

/// Seed of whatever the statistics draw.
const STATISTICS_SEED: u64 = 1;

/// Most bytes of a calibration.
const MOST_CALIBRATION_BYTES: u64 = 64 << 20;

/// The last calibration of an arena.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CalibrationNote {
    /// When it was measured, nanoseconds since 1970.
    pub measured: Nanos,
    /// The arena.
    pub arena: ArenaKind,
    /// Seeds of each campaign.
    pub seeds: u32,
    /// By cell.
    pub cells: Vec<(String, Calibration)>,
}

/// The note of a calibration cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error(
    "{attempt} {path}: {source}; {} makes a new one",
    told("calibrate SCENARIO")
)]
pub struct CalibrationError {
    /// What was tried.
    attempt: &'static str,
    /// The file.
    path: PathBuf,
    /// The reason.
    source: std::io::Error,
}

impl CalibrationNote {
    /// Cuts the pairs of a variant and each harmless one into campaigns of so many seeds, and judges each.
    pub fn of(comparison: &Comparison, arena: ArenaKind, seeds: u32) -> Result<Self, StatError> {
        let cells = comparison
            .cells
            .iter()
            .map(|cell| of_cell(comparison, cell, seeds))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            measured: Nanos::wall_clock(),
            arena,
            seeds,
            cells,
        })
    }

    /// The last calibration of an arena; `None` where there was none.
    pub fn read(store: &Store, arena: ArenaKind) -> Result<Option<Self>, CalibrationError> {
        let path = path(store, arena);
        let parsed = match read(&path, Place::Own, MOST_CALIBRATION_BYTES) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.and_then(|bytes| Ok(serde_json::from_slice(&bytes)?)),
        };
        parsed.map(Some).map_err(|source| CalibrationError {
            attempt: "reading",
            path,
            source,
        })
    }

    /// Replaces the arena's last calibration.
    pub fn write(&self, store: &Store) -> Result<(), CalibrationError> {
        let path = path(store, self.arena);
        let write = || replace(&path, &readable_json(self)?);
        write().map_err(|source| CalibrationError {
            attempt: "writing",
            path,
            source,
        })
    }
}

fn path(store: &Store, arena: ArenaKind) -> PathBuf {
    store.folder().join(format!("calibration-{arena}.json"))
}

fn of_cell(
    comparison: &Comparison,
    cell: &Cell,
    seeds: u32,
) -> Result<(String, Calibration), StatError> {
    let seeds = usize::try_from(seeds).unwrap_or(usize::MAX);
    let campaigns: Vec<Family> = (1..comparison.columns.len())
        .flat_map(|column| split(&family(comparison, cell, column), seeds))
        .collect();
    Ok((cell.label.clone(), calibrate(&campaigns)?))
}

/// All pairs of a column and the first.
fn family(comparison: &Comparison, cell: &Cell, column: usize) -> Family {
    let metrics = cell
        .metrics
        .iter()
        .map(|row| MetricSample {
            name: row.name.clone(),
            unit: format!("{:?}", row.unit).to_lowercase(),
            direction: row.direction,
            primary: row.primary,
            margin: None,
            scale: Scale::Auto,
            data: Data::Paired {
                pairs: pairs(cell, row, column),
            },
        })
        // A metric that some kernel lacks has no pairs, and would leave no campaign at all.
        .filter(|sample| !matches!(&sample.data, Data::Paired { pairs } if pairs.is_empty()))
        .collect();
    let mut long = Family::new(STATISTICS_SEED, metrics);
    long.alpha = comparison.alpha;
    long
}
