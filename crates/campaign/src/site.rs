//! Arena, store and options with which the trials of a search run.

use pagetide_arena::Arena;
use pagetide_store::{CampaignNote, Store};

use crate::campaign::Campaign;
use crate::event::EventListener;
use crate::plan::PlannedTrial;
use crate::run::{Options, Run, RunError, trials as run_trials};

/// Arena, store and options of a search, with the listener that receives its events.
pub struct Site<'a> {
    /// The arena that runs trials.
    pub arena: &'a dyn Arena,
    /// The store that has existing records and receives new ones.
    pub store: &'a mut Store,
    /// Options for each run of trials.
    pub options: &'a Options<'a>,
    /// Receives progress events and can stop the search.
    pub watch: &'a dyn EventListener,
}

impl Site<'_> {
    /// Returns the same arena, store and options with another listener for events.
    pub(crate) fn watched<'b>(&'b mut self, watch: &'b dyn EventListener) -> Site<'b> {
        Site {
            arena: self.arena,
            store: self.store,
            options: self.options,
            watch,
        }
    }

    /// Runs the trials of a campaign that have no record, in this order. Sets `note` to the campaign's note, even
    /// if the arena fails during the run. Returns false if stopped.
    pub(crate) fn run(
        &mut self,
        campaign: &Campaign,
        trials: &[PlannedTrial],
        note: &mut CampaignNote,
    ) -> Result<bool, RunError> {
        let mut run = Run::begin(campaign, self.arena, self.store, self.options, self.watch)?;
        let ran = run_trials(&mut run, || trials.iter().cloned());
        *note = run.note;
        ran
    }
}
