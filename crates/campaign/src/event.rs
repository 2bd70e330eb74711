//! Events of a running campaign, as data. The command line displays them, and tests read them.

use pagetide_quantity::Nanos;
use pagetide_record::Pass;

use crate::futility::Futile;
use crate::plan::PlannedTrial;
use pagetide_arena::Step;

/// An event of a campaign.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The number of trials is known; repeated whenever sampling adds trials.
    Planned(Tally),
    /// A trial starts.
    Started {
        /// Number of the trial in this run; the same in all its events.
        number: usize,
        /// The trial.
        trial: &'a PlannedTrial,
        /// Number of trials running now, including this one.
        side_by_side: usize,
    },
    /// A trial makes progress.
    Step {
        /// Number of the trial.
        number: usize,
        /// The progress.
        step: Step,
    },
    /// A trial's record was stored.
    Stored {
        /// Number of the trial.
        number: usize,
        /// The trial.
        trial: &'a PlannedTrial,
        /// Identity of its record.
        id: &'a str,
        /// Why its numbers must not be used, in one line; `None` if they may be used.
        invalid: Option<&'a str>,
        /// State of the campaign after it.
        tally: Tally,
    },
    /// More seeds are observed, because the first few do not explain why a time differs.
    Deepened {
        /// Number of comparisons observed again, each a variant in a cell.
        cells: usize,
        /// Number of seeds observed so far.
        from: u32,
        /// Number of seeds to be observed.
        to: u32,
    },
    /// The campaign ends early, because all trials of its first seeds are invalid for the same reason.
    Futile(&'a Futile),
    /// The results were judged, to decide whether more trials are needed.
    Looked {
        /// Number of blocks judged.
        blocks: u32,
        /// Number of primary metrics decided.
        decided: usize,
        /// Total number of primary metrics.
        primaries: usize,
        /// Number of blocks at the next look; `None` if this was the last.
        next: Option<u32>,
    },
}

impl Event<'_> {
    /// A sentence for the user; `None` for an event that only updates a progress display.
    pub fn sentence(&self) -> Option<String> {
        match self {
            Self::Stored {
                trial,
                invalid: Some(why),
                ..
            } => {
                let trial = &trial.trial;
                // Invalid timed trials are listed with the results; observed ones are not, so they are reported here.
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

/// State of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Trials planned so far.
    pub total: usize,
    /// Trials whose records were in the store before this run.
    pub found: usize,
    /// Trials stored by this run.
    pub ran: usize,
    /// The invalid ones among those.
    pub invalid: usize,
    /// Estimated wall-clock time until all planned trials are stored.
    pub left: Nanos,
}

impl Tally {
    /// Number of trials that have a record.
    pub fn done(&self) -> usize {
        self.found + self.ran
    }

    /// A sentence on what remains to be run; `None` if everything has its record.
    pub fn todo(&self) -> Option<String> {
        let todo = self.total - self.done();
        let found = match self.found {
            0 => String::new(),
            found => format!(" ({found} more have records)"),
        };
        let left = self.left.about();
        (todo > 0).then(|| format!("{todo} trials to run{found}, about {left}"))
    }

    /// Remaining time, and number of invalid trials so far.
    pub fn outlook(&self) -> String {
        let left = self.left.about();
        match self.invalid {
            0 => format!("{left} left"),
            n => format!("{left} left, {n} invalid"),
        }
    }
}

/// Receives events and answers whether to stop. Called from worker threads.
pub trait Watch: Sync {
    /// Receives an event.
    fn event(&self, event: &Event<'_>);

    /// True if the campaign should end now (Ctrl-C). Running trials are then killed; stored records are kept.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Ignores all events and never stops.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Watch for Nobody {
    fn event(&self, _: &Event<'_>) {}
}
