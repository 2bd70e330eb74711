//! A trial that is ready to run.

use std::any::Any;
use std::fmt;

use pagetide_record::{Maker, Record, Subject};

use crate::arena::Finding;
use crate::error::ArenaError;
use crate::trial::Trial;

/// A trial that is ready to run: what was asked for, what determines it, and what its arena worked out for it, which
/// nobody else looks into.
pub struct PreparedTrial {
    trial: Trial,
    subject: Subject,
    own: Box<dyn Any + Send + Sync>,
}

impl PreparedTrial {
    /// A trial with the subject that determines it. `own` comes back to the arena with [`PreparedTrial::own`].
    pub fn new(trial: Trial, subject: Subject, own: impl Any + Send + Sync) -> Self {
        Self {
            trial,
            subject,
            own: Box::new(own),
        }
    }

    /// What was asked for.
    pub fn trial(&self) -> &Trial {
        &self.trial
    }

    /// What determines the trial.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// What the arena worked out. Refused where another arena prepared the trial.
    pub fn own<T: Any>(&self) -> Result<&T, ArenaError> {
        self.own.downcast_ref().ok_or_else(|| {
            ArenaError::broken(
                "another arena prepared this trial: prepare and run it with the same one",
            )
        })
    }

    /// The record of this trial; its bulk sections are in the file already.
    pub fn record(&self, maker: Maker, finding: Finding) -> Record {
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
