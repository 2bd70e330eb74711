//! Where and how the trials of a search run.

use pagetide_arena::Arena;
use pagetide_store::{CampaignNote, Store};

use crate::campaign::Campaign;
use crate::event::Watch;
use crate::plan::PlannedTrial;
use crate::run::{Options, Run, RunError};

/// Arena, store and options of a search, and the receiver of its events.
pub struct Site<'a> {
    /// The arena.
    pub arena: &'a dyn Arena,
    /// The store of existing and new records.
    pub store: &'a mut Store,
    /// Options of each run.
    pub options: &'a Options<'a>,
    /// Receives events and answers whether to stop.
    pub watch: &'a dyn Watch,
}

impl Site<'_> {
    /// The same, with another receiver of events.
    pub(crate) fn watched<'b>(&'b mut self, watch: &'b dyn Watch) -> Site<'b> {
        Site {
            arena: self.arena,
            store: self.store,
            options: self.options,
            watch,
        }
    }

    /// Runs a campaign's trials that have no record, in this order. `note` is replaced by the campaign's, even if the
    /// arena fails during the run. Returns false if stopped.
    pub(crate) fn run(
        &mut self,
        campaign: &Campaign,
        trials: &[PlannedTrial],
        note: &mut CampaignNote,
    ) -> Result<bool, RunError> {
        let mut run = Run::begin(campaign, self.arena, self.store, self.options, self.watch)?;
        let ran = run.trials(|| trials.iter().cloned());
        *note = run.note;
        ran
    }
}
