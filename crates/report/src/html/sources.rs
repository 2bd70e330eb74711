//! Data shown on a page in addition to the comparison: observations, profiles, recorded references, and searches for
//! the smallest memory.

use std::collections::BTreeMap;

use pagetide_compare::profiled::{ProfiledPass, REFERENCES, profiled, with_references};
use pagetide_compare::squeezes::ComparedSqueezes;
use pagetide_compare::{Comparison, Observation, ObservationError, Side, observation};
use pagetide_profile::{Recorded, Summary};
use pagetide_store::Store;

/// Number of windows of time in a map of recorded references.
const WINDOWS: u32 = 240;

/// Recorded references of a trial.
#[derive(Clone, Debug)]
pub struct ReferencedPass {
    /// ID of the profiled record.
    pub record: String,
    /// Random seed of the trial.
    pub seed: u64,
    /// Summary of all references.
    pub summary: Summary,
}

/// Data shown in addition to the judged metrics.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The observations by indices of cell and column. The page also draws the series over time of these trials.
    pub observed: BTreeMap<(usize, usize), Observation>,
    /// Profiled passes by indices of cell and column.
    pub profiled: BTreeMap<(usize, usize), ProfiledPass>,
    /// Recorded references by indices of cell and column.
    pub referenced: BTreeMap<(usize, usize), ReferencedPass>,
    /// Results of the searches for the smallest memory, if the campaign is part of such a search; otherwise `None`.
    pub squeezes: Option<ComparedSqueezes>,
    /// Data that could not be read, one line each.
    pub omitted: Vec<String>,
}

/// Returns the IDs of the records of a column's trials that are a result: the valid ones, then those that died.
fn records(side: &Side) -> impl Iterator<Item = &str> {
    let died = side.invalid.iter().filter(|trial| trial.died);
    let valid = side.trials.iter().map(|trial| &*trial.record);
    valid.chain(died.map(|trial| &*trial.record))
}

impl Sources {
    /// Reads the additional data for a comparison from the store. For each cell and column, each kind of data is that
    /// of the first trial that has it.
    pub fn of(store: &Store, comparison: &Comparison) -> Self {
        let campaign = comparison.campaign.as_deref();
        let mut sources = Self {
            squeezes: campaign.and_then(|campaign| ComparedSqueezes::kept(store, campaign)),
            ..Self::default()
        };
        for (cell, group) in comparison.cells.iter().enumerate() {
            for (column, side) in group.sides.iter().enumerate() {
                let found = records(side).find_map(|record| sources.look(store, record));
                if let Some(observation) = found {
                    sources.observed.insert((cell, column), observation);
                }
                let found = records(side).find_map(|record| sources.pass(store, record));
                if let Some(pass) = found {
                    sources.profiled.insert((cell, column), pass);
                }
                let found = records(side).find_map(|record| sources.references(store, record));
                if let Some(pass) = found {
                    sources.referenced.insert((cell, column), pass);
                }
            }
        }
        sources
    }

    /// Returns the profiled pass that belongs to a record; `None` if the record is not found or has no profiled pass.
    /// If the pass cannot be read, adds a line to `omitted` and returns `None`.
    fn pass(&mut self, store: &Store, record: &str) -> Option<ProfiledPass> {
        let row = store.find(record).ok()?;
        profiled(store, &row).unwrap_or_else(|error| {
            self.omitted
                .push(format!("the profile of record {record}: {error}"));
            None
        })
    }

    /// Returns the recorded references of a record's trial; `None` if the record is not found or has no references. If
    /// they cannot be read, adds a line to `omitted` and returns `None`.
    fn references(&mut self, store: &Store, record: &str) -> Option<ReferencedPass> {
        let row = store.find(record).ok()?;
        let mut omit = |error: &dyn std::fmt::Display| {
            self.omitted
                .push(format!("recorded references of record {record}: {error}"));
        };
        let found = with_references(store, &row).inspect_err(|error| omit(error));
        let reader = found.ok()??;
        let blob = reader.blob(REFERENCES).inspect_err(|error| omit(error));
        let summary = Recorded::new(blob.ok()?).and_then(|all| Summary::of(all, WINDOWS));
        Some(ReferencedPass {
            record: reader.record().id(),
            seed: reader.record().subject.seed,
            summary: summary.inspect_err(|error| omit(error)).ok()?,
        })
    }

    /// Returns the observation that belongs to a record; `None` if the record is not found or was not observed. If the
    /// observation cannot be read, adds a line to `omitted` and returns `None`.
    fn look(&mut self, store: &Store, record: &str) -> Option<Observation> {
        let row = store.find(record).ok()?;
        match observation(store, &row) {
            Ok(observation) => Some(observation),
            Err(ObservationError::NotObserved { .. }) => None,
            Err(error) => {
                self.omitted
                    .push(format!("what was observed of record {record}: {error}"));
                None
            }
        }
    }
}
