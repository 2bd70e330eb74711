//! What happens while a campaign runs, as data. The command line draws it, tests read it.

use pagetide_quantity::Nanos;
use pagetide_record::Pass;

use crate::futility::Futile;
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
    /// The campaign ends early: all trials of its first seeds are invalid for one cause.
    Futile(&'a Futile),
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

impl Event<'_> {
    /// What a user should know of it, in a sentence; `None` for what only moves a bar.
    pub fn sentence(&self) -> Option<String> {
        match self {
            Self::Stored {
                trial,
                invalid: Some(why),
                ..
            } => {
                let trial = &trial.trial;
                // Timed ones stand with their reason under the results; observed ones do not.
                (trial.pass == Pass::Observed).then(|| {
                    format!(
                        "invalid: {} under {} with seed {}, observed: {why}",
                        trial.scenario, trial.variant.name, trial.seed
                    )
                })
            }
            Self::Looked {
                blocks,
                decided,
                primaries,
                next,
            } => {
                let then = match next {
                    Some(next) => format!("going on to {next} seeds"),
                    None => "that was the last look".to_owned(),
                };
                Some(format!(
                    "after {blocks} seeds {decided} of {primaries} primary metrics are decided: {then}"
                ))
            }
            Self::Futile(futile) => Some(futile.sentence()),
            Self::Deepened { cells, from, to } => Some(format!(
                "{cells} comparisons differ in a time that {from} observed seeds do not explain: observing {} to {to} as well",
                from + 1
            )),
            _ => None,
        }
    }
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

    /// What there is to run, in a sentence; `None` where everything has its record.
    pub fn todo(&self) -> Option<String> {
        let todo = self.total - self.done();
        let found = match self.found {
            0 => String::new(),
            found => format!(" ({found} more have records)"),
        };
        let left = self.left.about();
        (todo > 0).then(|| format!("{todo} trials to run{found}, about {left}"))
    }

    /// How long it will take, and what went wrong so far.
    pub fn outlook(&self) -> String {
        let left = self.left.about();
        match self.invalid {
            0 => format!("{left} left"),
            n => format!("{left} left, {n} invalid"),
        }
    }
}

/// Who looks on, and who says stop. Called from the threads that run trials.
pub trait Watch: Sync {
    /// Takes note of an event.
    fn event(&self, event: &Event<'_>);

    /// Whether the campaign should end now (Ctrl-C): running trials are killed, what is stored stays.
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
