//! The run loop: runs a campaign's trials in an arena, stores the records, and resumes after an interruption.
//!
//! Progress is derived from the store alone: a trial is identified by its key, and a trial with a record is not run
//! again. There is no other state to lose, so a run that was killed is simply started again. A trial that occurs twice
//! in a plan (a kernel compared with itself) needs two records.

mod error;
mod found;
mod ledger;
mod note;
mod options;
mod pool;
mod prepared;
mod state;
mod trials;

pub use error::RunError;
pub(crate) use note::note_for;
pub use options::Options;
pub(crate) use prepared::{Job, check, check_shards, prepare, prepared};
pub(crate) use state::Run;
pub(crate) use trials::{blocks, trials};

use pagetide_arena::Arena;
use pagetide_store::{CampaignNote, Store};

use crate::campaign::{Campaign, Observe, Until};
use crate::deepen::deepen;
use crate::event::{Event, EventListener, Tally};
use crate::futility::{Futile, Futility};
use crate::sampling::until_sure;

/// Result of running a campaign.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Content of the campaign's file in the store: trials, cells and variants, and how they are evaluated.
    pub note: CampaignNote,
    /// Final counts of the campaign's trials.
    pub tally: Tally,
    /// True if the run ended before all trials had a record: the user stopped it, it was futile, or it continues on a
    /// cluster without this process.
    pub stopped: bool,
    /// Reason why the run ended early although nobody stopped it; `None` if it did not.
    pub futile: Option<Futile>,
}

/// Returns the campaign without profiled passes, and tells why, if it has some and the arena cannot run them; otherwise
/// `None`.
fn without_profiles(
    campaign: &Campaign,
    arena: &dyn Arena,
    watch: &dyn EventListener,
) -> Option<Campaign> {
    if campaign.profile == Observe::None {
        return None;
    }
    watch.event(&Event::Told(&arena.lacks_profiles()?));
    Some(Campaign {
        profile: Observe::None,
        references: false,
        ..campaign.clone()
    })
}

/// Runs a campaign until it ends or is stopped.
pub fn run(
    campaign: &Campaign,
    arena: &dyn Arena,
    store: &mut Store,
    options: &Options<'_>,
    watch: &dyn EventListener,
) -> Result<Outcome, RunError> {
    let _lock = store.lock_campaign(&campaign.name)?;
    let unprofiled = without_profiles(campaign, arena, watch);
    let campaign = unprofiled.as_ref().unwrap_or(campaign);
    if options.shard.is_some() {
        check_shards(campaign)?;
    }
    let mut run = Run::begin(campaign, arena, store, options, watch)?;
    let sampling = &campaign.sampling;
    let of_cell = campaign.variants.len() * sampling.repetitions.max(1) as usize;
    if options.shard.is_none() {
        run.ledger.futility = Futility::new(
            run.cells.len() * of_cell,
            sampling.until.cap(),
            options.keep_going,
        );
    }
    let finished = match &campaign.sampling.until {
        Until::Blocks(count) | Until::Enough(count) => blocks(&mut run, 0..*count)?,
        Until::Sure { cap, looks } => until_sure(&mut run, *cap, looks)?,
    };
    // Whether differences are still unexplained is known only when all shards have run.
    let finished = finished && (options.shard.is_some() || deepen(&mut run)?);
    Ok(Outcome {
        tally: run.ledger.tally,
        note: run.note,
        stopped: !finished,
        futile: run.ledger.futility.verdict().filter(|_| !finished),
    })
}
