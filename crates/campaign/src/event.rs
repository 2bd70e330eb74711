//! Events of a running campaign, as data. The command line displays them, and tests read them.

use std::fmt::Write;

use pagetide_quantity::Nanos;
use pagetide_record::Pass;

use crate::futility::Futile;
use crate::plan::PlannedTrial;
use pagetide_arena::Step;

/// Something that happened in a running campaign, such as the start of a trial.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The number of planned trials is known. Sent again whenever sampling adds trials.
    Planned(Tally),
    /// A trial starts.
    Started {
        /// Number of the trial in this run; the same in all events about this trial.
        number: usize,
        /// The trial that starts.
        trial: &'a PlannedTrial,
        /// Number of trials running now, including this one.
        side_by_side: usize,
    },
    /// A running trial made progress.
    Step {
        /// Number of the trial.
        number: usize,
        /// Progress that the trial reported.
        step: Step,
    },
    /// A trial's record was stored.
    Stored {
        /// Number of the trial.
        number: usize,
        /// The trial whose record was stored.
        trial: &'a PlannedTrial,
        /// ID of the stored record.
        id: &'a str,
        /// Reason why the record's numbers must not be used, in one line; `None` if they may be used.
        invalid: Option<&'a str>,
        /// State of the campaign after this trial.
        tally: Tally,
    },
    /// More seeds will be observed, because the observed seeds do not explain why a time differs.
    Deepened {
        /// Number of comparisons to observe again; a comparison is a variant in a cell.
        cells: usize,
        /// Number of seeds observed so far.
        from: u32,
        /// Number of seeds to be observed in all.
        to: u32,
    },
    /// A message about how trials run, such as about the cluster that runs them, as a sentence for the user.
    Told(&'a str),
    /// The campaign ends early, because all trials of its first seeds are invalid for the same reason.
    Futile(&'a Futile),
    /// All trials of a cell have their records while other cells are still running, so the results of this cell are
    /// reported early.
    Settled {
        /// Label of the cell.
        label: &'a str,
        /// The results on the cell's primary metrics, as a sentence.
        verdicts: &'a str,
    },
    /// An interim analysis was made, to decide whether more trials are needed.
    Looked {
        /// Number of blocks that the analysis includes.
        blocks: u32,
        /// Number of primary metrics decided.
        decided: usize,
        /// Total number of primary metrics.
        primaries: usize,
        /// Number of blocks at the next interim analysis; `None` if this was the last one.
        next: Option<u32>,
    },
}

impl Event<'_> {
    /// Returns a sentence for the user; `None` for an event that only updates a progress display.
    pub fn sentence(&self) -> Option<String> {
        match self {
            Self::Stored {
                trial,
                invalid: Some(why),
                ..
            } => {
                let trial = &trial.trial;
                // Invalid timed trials are listed with the results. Invalid trials of other passes are not, so they are
                // reported here.
                (trial.pass != Pass::Timed).then(|| {
                    format!(
                        "invalid: {} under {} with seed {}, {}: {why}",
                        trial.scenario, trial.variant.name, trial.seed, trial.pass
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
            Self::Told(text) => Some((*text).to_owned()),
            Self::Settled { label, verdicts } => Some(format!(
                "{label} has all its trials: {verdicts} (the table at the end decides)"
            )),
            Self::Futile(futile) => Some(futile.sentence()),
            Self::Deepened { cells, from, to } => Some(format!(
                "{cells} comparisons differ in a time that {from} observed seeds do not explain: observing {} to {to} as well",
                from + 1
            )),
            _ => None,
        }
    }
}

/// Counts of a campaign's trials, and the remaining time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of trials planned so far.
    pub total: usize,
    /// Number of trials that already had a record when this run began.
    pub found: usize,
    /// Number of trials run and stored by this run.
    pub ran: usize,
    /// Number of invalid trials among those stored by this run.
    pub invalid: usize,
    /// Number of invalid trials stored by this run that died for lack of memory. Such a death is a result.
    pub died: usize,
    /// Estimated wall-clock time until all planned trials are stored.
    pub left: Nanos,
}

impl Tally {
    /// Returns the number of trials that have a record.
    pub fn done(&self) -> usize {
        self.found + self.ran
    }

    /// Returns a sentence that states how many trials remain; `None` if every trial has its record.
    pub fn todo(&self) -> Option<String> {
        let todo = self.total - self.done();
        let found = match self.found {
            0 => String::new(),
            found => format!(" ({found} more have records)"),
        };
        let left = self.left.about();
        (todo > 0).then(|| format!("{todo} trials to run{found}, about {left}"))
    }

    /// Returns text with the remaining time and, if not zero, the number of trials that died and of other invalid
    /// trials.
    pub fn outlook(&self) -> String {
        let left = self.left.about();
        let mut text = format!("{left} left");
        if self.died > 0 {
            let _ = write!(text, ", {} died", self.died);
        }
        if self.invalid > self.died {
            let _ = write!(text, ", {} invalid", self.invalid - self.died);
        }
        text
    }
}

/// Receives progress events and can stop the campaign. Called from the thread of the run and from its worker threads.
pub trait EventListener: Sync {
    /// Called for each event of the campaign.
    fn event(&self, event: &Event<'_>);

    /// True if the campaign should end now, for example after Ctrl-C. Running trials are then killed; stored records
    /// are kept.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// An [`EventListener`] that ignores all events and never stops the campaign.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl EventListener for Nobody {
    fn event(&self, _: &Event<'_>) {}
}
