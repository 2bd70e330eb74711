//! What a running trial reports, and how it is told to stop.

use pagetide_quantity::Nanos;
use pagetide_record::wire::Phase;

/// What a running trial reports: which phase it is in and how far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Phase of the trial.
    pub phase: Phase,
    /// Steps of the scenario done.
    pub done: u64,
    /// Steps of the scenario in all; zero where unknown.
    pub total: u64,
    /// Time on the trial's own clock (virtual in the exact arena).
    pub clock: Nanos,
}

/// To whom a running trial reports, and who tells it to stop. Called from the thread that runs the trial, as often as
/// the arena looks at it (a few times a second is enough).
pub trait Progress: Sync {
    /// Takes note of how far the trial is.
    fn step(&self, step: Step);

    /// Whether the trial should end now: the arena then kills what runs and returns [`ArenaError::Stopped`].
    fn is_stopped(&self) -> bool;
}

/// Reports to nobody and never stops: for single trials and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn step(&self, _: Step) {}

    fn is_stopped(&self) -> bool {
        false
    }
}
