//! Progress of a running trial, and the request to stop it.

use pagetide_quantity::Nanos;
use pagetide_record::wire::Phase;

/// Progress of a running trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Phase of the trial.
    pub phase: Phase,
    /// Completed steps of the scenario.
    pub done: u64,
    /// Total steps of the scenario; zero if unknown.
    pub total: u64,
    /// Time on the trial's clock (virtual in the exact arena).
    pub clock: Nanos,
}

/// Receives progress and answers whether to stop. Called from the thread that runs the trial, whenever the arena polls
/// the trial (a few times per second).
pub trait Progress: Sync {
    /// Receives how far the trial is.
    fn step(&self, step: Step);

    /// True if the trial must end now. The arena then kills its processes and returns [`ArenaError::Stopped`].
    fn is_stopped(&self) -> bool;
}

/// Discards progress and never stops the trial; for single trials and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn step(&self, _: Step) {}

    fn is_stopped(&self) -> bool {
        false
    }
}
