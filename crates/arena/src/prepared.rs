//! Trials that are prepared and ready to run.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use pagetide_record::{Maker, Record, Results, Subject, Wall};

use crate::error::ArenaError;
use crate::trial::Trial;

/// A trial that is ready to run: the request, the subject, which determines the result, and private data of the arena
/// that prepared it.
pub struct PreparedTrial {
    trial: Trial,
    subject: Subject,
    own: Box<dyn Any + Send + Sync>,
}

impl PreparedTrial {
    /// Combines a trial with its subject and with private data of the arena, which gets them back from
    /// [`PreparedTrial::own`].
    pub fn new(trial: Trial, subject: Subject, own: impl Any + Send + Sync) -> Self {
        Self {
            trial,
            subject,
            own: Box::new(own),
        }
    }

    /// Returns the request for the trial.
    pub fn trial(&self) -> &Trial {
        &self.trial
    }

    /// Returns the subject: everything that determines the result of the trial.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Returns the private data that the arena passed to [`PreparedTrial::new`]. Fails if another arena prepared the
    /// trial.
    pub fn own<T: Any>(&self) -> Result<&T, ArenaError> {
        self.own.downcast_ref().ok_or_else(|| {
            ArenaError::broken(
                "another arena prepared this trial: prepare and run it with the same one",
            )
        })
    }

    /// Creates the record of this trial from the arena's result. Its digest and list of bulk sections are still empty.
    pub fn record(&self, maker: Maker, finding: TrialResult) -> Record {
        Record {
            subject: self.subject.clone(),
            maker,
            results: finding.results,
            kernel_config: finding.kernel_config,
            wall: finding.wall,
            ..Record::default()
        }
    }
}

impl fmt::Debug for PreparedTrial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prepared")
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

/// Results of one trial, without its bulk sections, which are already written to the record file.
#[derive(Clone, Debug)]
pub struct TrialResult {
    /// Metrics and counters that the guest or the host arena reported; for an invalid trial, those that were measured.
    pub results: Results,
    /// Memory-related build options of the kernel, by name; empty if they are not known.
    pub kernel_config: BTreeMap<String, String>,
    /// Wall-clock times of the trial and a description of the machine. The caller adds the campaign, unit, repetition,
    /// number of concurrent trials, and the time until the record is stored.
    pub wall: Wall,
    /// Time at which the scenario ended or, if it did not end, the trial. The time until the record is stored is
    /// measured from here.
    pub ended: Instant,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arena_gets_back_its_own_and_no_other_arenas() {
        let prepared = PreparedTrial::new(Trial::default(), Subject::default(), 7_u32);
        assert_eq!(prepared.own::<u32>().ok(), Some(&7));
        assert!(prepared.own::<String>().is_err());
    }
}
