//! The trait every arena implements.
//!
//! An arena is asked twice: [`Arena::prepare`] turns a trial as it was written down into the full subject that determines
//! it, or refuses it, before anything runs; [`Arena::run`] executes one subject.

use std::time::Instant;

use pagetide_quantity::Nanos;
use pagetide_record::{ArenaKind, RecordWriter, Results, Subject, Wall};

use crate::error::ArenaError;
use crate::progress::Progress;
use crate::trial::Trial;

/// What one trial produced, apart from its bulk sections, which went into the sink as they came.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What the guest (or the host arena) reports, also for an invalid trial.
    pub results: Results,
    /// Times and machine. The loop fills in campaign, unit, repetition, trials side by side and the time until stored.
    pub wall: Wall,
    /// When the scenario ended (or the trial, where it never got so far): the time until the record is stored counts
    /// from here.
    pub ended: Instant,
}

/// A bounded place where trials run. Shared by the threads that run trials side by side.
pub trait Arena: Sync {
    /// Which kind it is.
    fn kind(&self) -> ArenaKind;

    /// Whether the same subject may give another result when it runs again.
    fn has_noise(&self) -> bool {
        self.kind() != ArenaKind::Exact
    }

    /// Resolves a trial into the full subject that determines it, and refuses what cannot run, naming the remedy.
    /// Cheap when called again for the same kernel; starts no trial.
    fn prepare(&self, trial: &Trial) -> Result<Subject, ArenaError>;

    /// How many trials like this the machine bears side by side, by cores and free memory; at least 1. Asked with the
    /// largest subject of the plan.
    fn side_by_side(&self, _largest: &Subject) -> usize {
        1
    }

    /// Wall-clock time that this trial will take here, reckoned from its sizes at the speed of this machine; `None`
    /// where nothing is known. Records are better: they correct it.
    fn estimate(&self, _subject: &Subject) -> Option<Nanos> {
        None
    }

    /// Runs one trial. `subject` is what [`Arena::prepare`] made of `trial`. Bulk sections go into `sink` as they come;
    /// the caller completes and stores the record. A panic, an out-of-memory kill or a hang is a [`Finding`] with
    /// `results.invalid`, not an error.
    fn run(
        &self,
        trial: &Trial,
        subject: &Subject,
        sink: &mut RecordWriter,
        progress: &dyn Progress,
    ) -> Result<Finding, ArenaError>;
}
