//! Prepares trials in an arena, and checks a campaign before its first trial.

use std::collections::{HashMap, HashSet};

use pagetide_arena::{Arena, ArenaError, PreparedTrial, Trial};
use pagetide_record::Pass;

use super::error::RunError;
use crate::campaign::{Campaign, Until};
use crate::plan::{Cell, PASSES, PlannedTrial, shortened};

/// Maximum number of trials of the first block that stay prepared. The other trials of a larger matrix are prepared
/// again when needed.
const MAX_PREPARED: usize = 4096;

/// A planned trial, prepared by the arena.
#[derive(Debug)]
pub(crate) struct Job {
    pub planned: PlannedTrial,
    pub prepared: PreparedTrial,
    pub cell: String,
}

/// Trials prepared by the checks before a run, by cell, variant and pass. All belong to the first repetition of the
/// first block.
pub(crate) type FirstTrials = HashMap<TrialKind, PreparedTrial>;
/// Index of the cell, index of the variant, and pass.
pub(crate) type TrialKind = (usize, usize, Pass);

/// Returns the planned trial, prepared: from `tried`, the trials prepared by the checks before the run, or else
/// prepared now.
pub(crate) fn ready(
    arena: &dyn Arena,
    planned: PlannedTrial,
    tried: &mut FirstTrials,
) -> Result<Job, RunError> {
    let kind = (planned.cell, planned.variant, planned.trial.pass);
    let is_first = planned.block == 0 && planned.trial.repetition == 0;
    let prepared = match is_first.then(|| tried.remove(&kind)).flatten() {
        Some(prepared) => prepared,
        None => prepared(arena, &planned.trial)?,
    };
    Ok(Job {
        cell: prepared.subject().cell(),
        planned,
        prepared,
    })
}

/// Prepares one trial; fails if the arena refuses it.
pub(crate) fn prepared(arena: &dyn Arena, trial: &Trial) -> Result<PreparedTrial, RunError> {
    arena.prepare(trial).map_err(|source| match source {
        ArenaError::Refused(_) | ArenaError::OtherKernel { .. } | ArenaError::Wrong(_) => {
            RunError::Refused {
                scenario: trial.scenario.clone(),
                variant: trial.variant.name.clone(),
                source,
            }
        }
        other => RunError::Arena(other),
    })
}

/// Prepares the first trial of a cell under every variant; fails if the arena refuses one.
pub(crate) fn prepare(
    campaign: &Campaign,
    arena: &dyn Arena,
    cell: &Cell,
    pass: Pass,
) -> Result<Vec<PreparedTrial>, RunError> {
    (0..campaign.variants.len())
        .map(|variant| prepared(arena, &campaign.trial(cell, variant, (0, 0), pass)))
        .collect()
}

/// Prepares the first trial of every cell, variant and pass. Fails if the arena refuses one, or if a cell occurs twice.
/// Later blocks differ only in their seeds.
pub(crate) fn try_all(campaign: &Campaign, arena: &dyn Arena) -> Result<FirstTrials, RunError> {
    let mut tried = FirstTrials::new();
    let mut seen = HashSet::new();
    for (place, cell) in campaign.cells().enumerate() {
        for pass in PASSES {
            if campaign.trials_of_cell(pass) == 0 {
                continue;
            }
            let all = prepare(campaign, arena, &cell, pass)?;
            if !seen.insert(shortened(&all[0].subject().cell())) {
                return Err(RunError::SameCell {
                    name: campaign.name.clone(),
                    cell: cell.label(),
                });
            }
            if tried.len() < MAX_PREPARED {
                let places = (0..all.len()).map(|variant| (place, variant, pass));
                tried.extend(places.zip(all));
            }
        }
    }
    Ok(tried)
}

/// Fails if a campaign requests another arena than `arena`, exceeds a limit of its plan, or has nothing to run or to
/// judge.
pub(crate) fn check(campaign: &Campaign, arena: &dyn Arena) -> Result<(), RunError> {
    if campaign.arena != arena.kind() {
        return Err(RunError::OtherArena {
            name: campaign.name.clone(),
            asked: campaign.arena,
            here: arena.kind(),
        });
    }
    if let Some((what, count, most)) = campaign.excess() {
        return Err(RunError::TooMany {
            name: campaign.name.clone(),
            count,
            what,
            most,
        });
    }
    let missing = if campaign.variants.is_empty() {
        "variant"
    } else if campaign.scenarios.is_empty() {
        "scenario"
    } else if campaign.sampling.until.cap() == 0 {
        "seed"
    } else if campaign.variants.len() < 2 && matches!(campaign.sampling.until, Until::Sure { .. }) {
        // With one variant, there is nothing to judge.
        "second variant"
    } else {
        return Ok(());
    };
    Err(RunError::Empty {
        name: campaign.name.clone(),
        what: missing,
    })
}

/// Fails if the number of the campaign's trials depends on results, so that its trials cannot be divided into shards.
pub(crate) fn check_shards(campaign: &Campaign) -> Result<(), RunError> {
    match campaign.sampling.until {
        Until::Sure { .. } => Err(RunError::Sharded {
            name: campaign.name.clone(),
        }),
        Until::Blocks(_) | Until::Enough(_) => Ok(()),
    }
}
