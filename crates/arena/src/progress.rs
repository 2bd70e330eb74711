//! Progress of a running trial, and the request to stop it.

use pagetide_quantity::Nanos;
use pagetide_record::wire::Phase;

/// Progress of a running trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Current phase of the trial.
    pub phase: Phase,
    /// Number of completed steps of the scenario.
    pub done: u64,
    /// Total number of steps of the scenario; zero if unknown.
    pub total: u64,
    /// Time on the trial's clock; virtual time in the exact arena.
    pub clock: Nanos,
}

/// Receives progress and answers whether to stop. Called several times per second from the thread that runs the trial.
pub trait Progress: Sync {
    /// Called with the current progress of the trial.
    fn step(&self, step: Step);

    /// Returns true if the trial must end now. The arena then kills the trial's processes and returns
    /// [`ArenaError::Stopped`](crate::ArenaError::Stopped).
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
