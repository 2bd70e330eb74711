//! How long trials take: by what the store knows of their cell, and by what this run has seen.

use std::collections::{BTreeMap, HashMap};

use pagetide_quantity::Nanos;
use pagetide_record::{ArenaKind, Subject};
use pagetide_store::{Store, StoreError};
use serde::Serialize;

use crate::campaign::{Campaign, Until};
use crate::run::{RunError, found, not_empty, note_for, resolve, side_by_side, waiting};
use pagetide_arena::Arena;

/// Wall-clock time assumed for a trial of a scenario that has never run here.
pub const UNKNOWN_TRIAL: Nanos = Nanos::from_secs(20);

/// Where an estimate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Earlier trials of the same cell, or of its scenario.
    Measured,
    /// No such trial is in the store: [`UNKNOWN_TRIAL`].
    Assumed,
}

/// What a campaign would run, and how long that would take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Name of the campaign.
    pub name: String,
    /// Where its trials run.
    pub arena: ArenaKind,
    /// Names of the variants; the first is the baseline.
    pub variants: Vec<String>,
    /// Its cells.
    pub cells: Vec<CellForecast>,
    /// Trials in all.
    pub trials: usize,
    /// Trials that have a record already.
    pub found: usize,
    /// Whether fewer may do, because sampling ends as soon as it is sure.
    pub at_most: bool,
    /// Trials side by side.
    pub side_by_side: usize,
    /// Wall-clock time until the end.
    pub left: Nanos,
}

/// A cell of a forecast.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellForecast {
    /// A short human label.
    pub label: String,
    /// Trials in all.
    pub trials: usize,
    /// Trials that have a record already.
    pub found: usize,
    /// Wall-clock time of one trial.
    pub each: Nanos,
    /// How that is known.
    pub basis: Basis,
}

/// Says what a campaign would run, and how long that would take. Runs nothing, but has the arena look at every trial, so
/// that what cannot run is refused here as it would be there.
pub fn forecast(
    campaign: &Campaign,
    arena: &dyn Arena,
    store: &Store,
    jobs: Option<usize>,
    fresh: bool,
) -> Result<Forecast, RunError> {
    not_empty(campaign)?;
    let plan = campaign.plan();
    let note = note_for(campaign, &plan.cells, store, fresh)?;
    let all = resolve(arena, plan.trials)?;
    let found = found(store, &note, arena.has_noise(), &all)?;
    let mut times = Times::default();
    let mut cells: Vec<CellForecast> = plan
        .cells
        .iter()
        .map(|cell| CellForecast {
            label: cell.label(),
            trials: 0,
            found: 0,
            each: UNKNOWN_TRIAL,
            basis: Basis::Assumed,
        })
        .collect();
    for (job, found) in all.iter().zip(&found) {
        times.learn(store, &job.subject)?;
        let cell = &mut cells[job.planned.cell];
        cell.trials += 1;
        cell.found += usize::from(*found);
        (cell.each, cell.basis) = times.each(&job.cell);
    }
    let todo = || {
        all.iter()
            .zip(&found)
            .filter(|(_, found)| !**found)
            .map(|(job, _)| job)
    };
    let jobs = side_by_side(arena, jobs, todo(), todo().count());
    Ok(Forecast {
        name: campaign.name.clone(),
        arena: campaign.arena,
        variants: plan.variants,
        trials: all.len(),
        found: found.iter().filter(|found| **found).count(),
        at_most: matches!(campaign.sampling.until, Until::Sure { .. }),
        side_by_side: jobs,
        left: times.all(&waiting(todo()), jobs),
        cells,
    })
}

/// Estimates by cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    by_cell: HashMap<String, Estimate>,
}

#[derive(Clone, Copy, Debug)]
struct Estimate {
    each: Nanos,
    basis: Basis,
    /// Trials of this run that it rests on.
    seen: u64,
}

impl Times {
    /// Learns what the store knows of a cell.
    pub fn learn(&mut self, store: &Store, subject: &Subject) -> Result<(), StoreError> {
        let cell = subject.cell();
        if self.by_cell.contains_key(&cell) {
            return Ok(());
        }
        let known = store.typical_wall(Some(&cell), &subject.scenario)?;
        let estimate = Estimate {
            each: known.unwrap_or(UNKNOWN_TRIAL),
            basis: if known.is_some() {
                Basis::Measured
            } else {
                Basis::Assumed
            },
            seen: 0,
        };
        self.by_cell.insert(cell, estimate);
        Ok(())
    }

    /// Takes note of a trial that took `wall`. What is seen now counts more than what was known before.
    pub fn saw(&mut self, cell: &str, wall: Nanos) {
        if let Some(estimate) = self.by_cell.get_mut(cell) {
            let sum = estimate
                .each
                .0
                .saturating_mul(estimate.seen)
                .saturating_add(wall.0);
            estimate.seen += 1;
            estimate.each = Nanos(sum / estimate.seen);
            estimate.basis = Basis::Measured;
        }
    }

    /// Time for one trial of a cell, and how that is known.
    pub fn each(&self, cell: &str) -> (Nanos, Basis) {
        self.by_cell
            .get(cell)
            .map_or((UNKNOWN_TRIAL, Basis::Assumed), |e| (e.each, e.basis))
    }

    /// Time for so many trials of each cell, `jobs` side by side.
    pub fn all(&self, cells: &BTreeMap<String, u64>, jobs: usize) -> Nanos {
        let sum = cells.iter().fold(0_u64, |sum, (cell, count)| {
            sum.saturating_add(self.each(cell).0.0.saturating_mul(*count))
        });
        Nanos(sum / u64::try_from(jobs.max(1)).unwrap_or(1))
    }
}
