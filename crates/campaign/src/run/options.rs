//! Options for running a campaign.

use pagetide_arena::Trial;
use pagetide_record::Maker;

use crate::batch::Elsewhere;
use crate::shard::Shard;

/// Options for running a campaign.
pub struct Options<'a> {
    /// Number of parallel trials; `None` for the number that the arena suggests.
    pub jobs: Option<usize>,
    /// True if all trials are run again, even if they have records.
    pub fresh: bool,
    /// True if the campaign continues even if all trials of the first seeds are invalid for the same reason.
    pub keep_going: bool,
    /// The shard to run, which is a part of the campaign's trials; `None` for all trials.
    pub shard: Option<Shard>,
    /// Cluster that runs the trials; `None` if this process runs them.
    pub elsewhere: Option<Elsewhere<'a>>,
    /// The user's command line, quoted for a shell; stored with the campaign.
    pub command: String,
    /// Function that returns the [`Maker`] of a trial's record: pagetide's version, and the command that repeats the
    /// trial.
    pub maker: &'a (dyn Fn(&Trial) -> Maker + Sync),
}
