//! Where the trials of a search run.

use pagetide_arena::Arena;
use pagetide_store::{CampaignNote, Store};

use crate::campaign::Campaign;
use crate::event::Watch;
use crate::plan::PlannedTrial;
use crate::run::{Options, Run, RunError};

/// Where trials run, and who looks on.
pub struct Site<'a> {
    /// The arena.
    pub arena: &'a dyn Arena,
    /// Where records are, and go.
    pub store: &'a mut Store,
    /// How they run.
    pub options: &'a Options<'a>,
    /// Who looks on.
    pub watch: &'a dyn Watch,
}

impl Site<'_> {
    /// The same place, with somebody else looking on.
    pub(crate) fn watched<'b>(&'b mut self, watch: &'b dyn Watch) -> Site<'b> {
        Site {
            arena: self.arena,
            store: self.store,
            options: self.options,
            watch,
        }
    }

    /// Runs those of a campaign's trials that have no record, in this order. `note` becomes that of the campaign, also where the
    /// arena fails on the way. False where it was stopped.
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
