//! What happens while a campaign runs, as data. The command line draws it, tests read it.

use pagetide_quantity::Nanos;

use crate::plan::PlannedTrial;
use pagetide_arena::Step;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// It is known how much there is to do; again whenever sampling adds trials.
    Planned(Tally),
    /// A trial starts.
    Started {
        /// Number of the trial in this run; the same in all its events.
        number: usize,
        /// The trial.
        trial: &'a PlannedTrial,
        /// Trials running now, this one included.
        side_by_side: usize,
    },
    /// A trial goes on.
    Step {
        /// Number of the trial.
        number: usize,
        /// How far it is.
        step: Step,
    },
    /// A trial has its record.
    Stored {
        /// Number of the trial.
        number: usize,
        /// The trial.
        trial: &'a PlannedTrial,
        /// Identity of its record.
        id: &'a str,
        /// Why its numbers must not be used, in one line; `None` where they may.
        invalid: Option<&'a str>,
        /// How the campaign stands now.
        tally: Tally,
    },
    /// More seeds are observed, for the first few do not tell why a time differs.
    Deepened {
        /// Cells and variants that are observed again.
        cells: usize,
        /// Seeds that were observed.
        from: u32,
        /// Seeds that will be.
        to: u32,
    },
    /// The results were looked at, to see whether more trials are needed.
    Looked {
        /// Blocks that were looked at.
        blocks: u32,
        /// Primary metrics that are decided.
        decided: usize,
        /// Primary metrics in all.
        primaries: usize,
        /// Blocks at the next look; `None` where this was the last.
        next: Option<u32>,
    },
}

/// How a campaign stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Trials of the campaign as far as planned.
    pub total: usize,
    /// Trials whose records were in the store before this run.
    pub found: usize,
    /// Trials this run has stored.
    pub ran: usize,
    /// Of those, how many are invalid.
    pub invalid: usize,
    /// Estimated wall-clock time until all planned trials are stored.
    pub left: Nanos,
}

impl Tally {
    /// Trials that have a record.
    pub fn done(&self) -> usize {
        self.found + self.ran
    }
}

/// Who looks on, and who says stop. Called from the threads that run trials.
pub trait Watch: Sync {
    /// Takes note of an event.
    fn event(&self, event: &Event<'_>);

    /// Whether the campaign shall end now (Ctrl-C): running trials are killed, what is stored stays.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Looks on at nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Watch for Nobody {
    fn event(&self, _: &Event<'_>) {}
}
