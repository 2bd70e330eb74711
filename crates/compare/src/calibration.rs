//! Noise of an arena, measured by comparing a variant with variants that have no effect. The result is saved in the
//! store.

use std::path::PathBuf;

use pagetide_outside::{FileOrigin, read, readable_json, replace};
use pagetide_quantity::Nanos;
use pagetide_quantity::command::in_backticks;
use pagetide_record::ArenaKind;
use pagetide_store::Store;
use pagetide_verdict::calibrate::{Calibration, calibrate, split};
use pagetide_verdict::sample::Scale;
use pagetide_verdict::{Data, Family, MetricSample, StatError};
use serde::{Deserialize, Serialize};

use crate::comparison::{Cell, Comparison};
use crate::pairs::pairs;

/// Seed of the random numbers in the statistics.
const STATISTICS_SEED: u64 = 1;

/// Maximum size of a calibration file, in bytes.
const MAX_CALIBRATION_BYTES: u64 = 64 << 20;

/// Result of the last calibration of an arena.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CalibrationNote {
    /// Time of the measurement in nanoseconds since 1970.
    pub measured: Nanos,
    /// Kind of the calibrated arena.
    pub arena: ArenaKind,
    /// Number of seeds in each campaign into which the pairs were divided.
    pub seeds: u32,
    /// Label of each cell with its calibration.
    pub cells: Vec<(String, Calibration)>,
}

/// The calibration file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error(
    "{attempt} {path}: {source}; {} makes a new one",
    in_backticks("calibrate SCENARIO")
)]
pub struct CalibrationError {
    /// The attempted operation, such as "reading".
    attempt: &'static str,
    /// Path of the calibration file.
    path: PathBuf,
    /// The operating system's error.
    source: std::io::Error,
}

impl CalibrationNote {
    /// Calibrates each cell: splits the pairs of the baseline with variants that have no effect into campaigns of
    /// `seeds` seeds, and judges each of these campaigns. Fails if the statistics cannot use the values.
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

    /// Reads the last calibration of an arena from the store; `None` if there is none.
    pub fn read(store: &Store, arena: ArenaKind) -> Result<Option<Self>, CalibrationError> {
        let path = path(store, arena);
        let parsed = match read(&path, FileOrigin::Own, MAX_CALIBRATION_BYTES) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            read => read.and_then(|bytes| Ok(serde_json::from_slice(&bytes)?)),
        };
        parsed.map(Some).map_err(|source| CalibrationError {
            attempt: "reading",
            path,
            source,
        })
    }

    /// Writes this calibration to the store, in place of the arena's last one.
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

/// Returns the pairs of a column and the baseline, for every metric of a cell.
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
        // If a kernel lacks a metric, the metric has no pairs. If it were included, no campaign would be complete.
        .filter(|sample| !matches!(&sample.data, Data::Paired { pairs } if pairs.is_empty()))
        .collect();
    let mut long = Family::new(STATISTICS_SEED, metrics);
    long.alpha = comparison.alpha;
    long
}
