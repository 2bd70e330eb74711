//! Why a campaign cannot continue.

use pagetide_arena::ArenaError;
use pagetide_compare::CompareError;
use pagetide_record::ArenaKind;
use pagetide_store::StoreError;

use crate::batch::ClusterError;

/// Why a campaign cannot continue. Records already stored are kept.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The arena refuses to prepare a trial.
    #[error("{scenario} under variant {variant} cannot run: {source}")]
    Refused {
        /// Scenario of the refused trial.
        scenario: String,
        /// Variant of the refused trial.
        variant: String,
        /// The arena's reason.
        source: ArenaError,
    },
    /// The arena could not prepare or run a trial.
    #[error(transparent)]
    Arena(ArenaError),
    /// Reading or writing the store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored records cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// The campaign requests an arena other than the available one.
    #[error(
        "campaign {name} asks for the {asked} arena, and this version has only {here}: name that one"
    )]
    OtherArena {
        /// Name of the campaign.
        name: String,
        /// Kind of arena that the campaign requests.
        asked: ArenaKind,
        /// Kind of arena that is available.
        here: ArenaKind,
    },
    /// A cell occurs twice in the campaign.
    #[error(
        "campaign {name} has the cell {cell} twice: remove one, or the same trials would run again"
    )]
    SameCell {
        /// Name of the campaign.
        name: String,
        /// Label of the cell.
        cell: String,
    },
    /// The campaign exceeds a limit of its plan, such as the number of cells.
    #[error(
        "campaign {name} has {count} {what}, and more than {most} are not planned: leave some out, or split it"
    )]
    TooMany {
        /// Name of the campaign.
        name: String,
        /// Number of items in the campaign.
        count: usize,
        /// Kind of item that is counted, such as "cells".
        what: &'static str,
        /// Maximum number of items of this kind.
        most: usize,
    },
    /// A shard was requested of a campaign whose number of trials depends on results.
    #[error(
        "campaign {name} samples until it is sure, so its trials depend on results of all shards: give a number of seeds, or run it whole"
    )]
    Sharded {
        /// Name of the campaign.
        name: String,
    },
    /// A request to a cluster failed.
    #[error("the trials of campaign {name} cannot run on the cluster: {source}")]
    Cluster {
        /// Name of the campaign.
        name: String,
        /// Error of the cluster.
        source: ClusterError,
    },
    /// Tasks on the cluster ended before all their trials had a record.
    #[error(
        "{tasks} tasks of job {job} ended early, most because: {why}; their output is in {logs}, and the same command goes on from here"
    )]
    Tasks {
        /// ID of the job.
        job: String,
        /// Number of tasks that ended early.
        tasks: u32,
        /// The most frequent reason why tasks ended early.
        why: String,
        /// Path of the folder with the tasks' output.
        logs: String,
    },
    /// The campaign has nothing to run.
    #[error("campaign {name} has no {what}: give at least one")]
    Empty {
        /// Name of the campaign.
        name: String,
        /// What the campaign lacks, such as "variant".
        what: &'static str,
    },
}

impl RunError {
    /// True if the user's input was wrong, as opposed to a failure of the machine.
    pub fn is_user_error(&self) -> bool {
        match self {
            Self::TooMany { .. }
            | Self::Empty { .. }
            | Self::OtherArena { .. }
            | Self::Sharded { .. }
            | Self::SameCell { .. } => true,
            Self::Refused { source, .. } => source.is_user_error(),
            Self::Arena(_)
            | Self::Store(_)
            | Self::Compare(_)
            | Self::Cluster { .. }
            | Self::Tasks { .. } => false,
        }
    }
}
