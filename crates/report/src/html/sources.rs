//! What a page shows beside a comparison: reclaim tables and series of observed trials.

use std::collections::BTreeMap;

use pagetide_compare::pressure::ComparedSqueezes;
use pagetide_compare::{Comparison, Observation, ObservationError, observation};
use pagetide_store::Store;

/// What stands beside the judged metrics.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// What the observed trials say, by place of cell and column; their series over time are drawn.
    pub observed: BTreeMap<(usize, usize), Observation>,
    /// The searches for the smallest memory that the campaign belongs to.
    pub squeezes: Option<ComparedSqueezes>,
    /// What could not be read, a line each.
    pub omitted: Vec<String>,
}

impl Sources {
    /// What the store holds beside the timed trials of a comparison.
    pub fn of(store: &Store, comparison: &Comparison) -> Self {
        let campaign = comparison.campaign.as_deref();
        let mut sources = Self {
            squeezes: campaign.and_then(|campaign| ComparedSqueezes::kept(store, campaign)),
            ..Self::default()
        };
        for (cell, group) in comparison.cells.iter().enumerate() {
            for (column, side) in group.sides.iter().enumerate() {
                let found = side
                    .trials
                    .iter()
                    .find_map(|trial| sources.look(store, &trial.record));
                if let Some(observation) = found {
                    sources.observed.insert((cell, column), observation);
                }
            }
        }
        sources
    }

    /// What was observed of a timed trial, or of the observed trial that it is.
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
