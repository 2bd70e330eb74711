//! The trait every arena implements.
//!
//! An arena is asked twice: [`Arena::prepare`] works out all that determines a trial, or refuses it, before anything runs;
//! [`Arena::run`] runs what was prepared.

use std::collections::BTreeMap;
use std::time::Instant;

use pagetide_quantity::Nanos;
use pagetide_record::{ArenaKind, RecordWriter, Results, Subject, Wall};

use crate::error::ArenaError;
use crate::prepared::PreparedTrial;
use crate::progress::Progress;
use crate::trial::Trial;

/// What one trial produced, apart from its bulk sections, which went into the sink as they came.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What the guest (or the host arena) reports, also for an invalid trial.
    pub results: Results,
    /// Options that the kernel was built with and that bear on memory; empty where they are not known.
    pub kernel_config: BTreeMap<String, String>,
    /// Times and machine. The loop fills in campaign, unit, repetition, trials side by side and the time until stored.
    pub wall: Wall,
    /// When the scenario ended (or the trial, where it never got so far): the time until the record is stored counts
    /// from here.
    pub ended: Instant,
}

/// What trials start from, once it is booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Its identity: trials with the same one share a boot.
    pub key: String,
    /// Wall-clock time until it is ready; zero where it is.
    pub boot: Nanos,
}

/// A bounded place where trials run. Shared by the threads that run trials side by side.
pub trait Arena: Sync {
    /// Which kind it is.
    fn kind(&self) -> ArenaKind;

    /// Whether the same subject may give another result when it runs again.
    fn has_noise(&self) -> bool {
        self.kind() != ArenaKind::Exact
    }

    /// Works out all that determines a trial, once, and refuses what cannot run, naming the remedy. Cheap when called
    /// again for the same kernel; starts no trial.
    fn prepare(&self, trial: &Trial) -> Result<PreparedTrial, ArenaError>;

    /// How many trials like this the machine bears side by side, by cores and free memory; at least 1. Asked with the
    /// trial of the plan that has most memory.
    fn side_by_side(&self, _largest: &PreparedTrial) -> usize {
        1
    }

    /// Wall-clock time that this trial will take here, reckoned from its sizes at the speed of this machine; `None`
    /// where nothing is known. Records are better: they correct it.
    fn estimate(&self, _subject: &Subject) -> Option<Nanos> {
        None
    }

    /// Wall-clock time here of a trial that takes `there` on the machine that campaign files speak of: one of two trials
    /// side by side on an AMD EPYC of 2017 (Zen 1, two processors of one core), with nothing else to do.
    fn here(&self, there: Nanos) -> Nanos {
        there
    }

    /// The guest that this trial starts from, where it is booted once for many trials; `None` where nothing is.
    fn guest(&self, _prepared: &PreparedTrial) -> Option<Guest> {
        None
    }

    /// Runs one trial that [`Arena::prepare`] of this arena made ready. Bulk sections go into `sink` as they come; the
    /// caller completes and stores the record. A panic, an out-of-memory kill or a hang is a [`Finding`] with
    /// `results.invalid`, not an error.
    fn run(
        &self,
        prepared: &PreparedTrial,
        sink: &mut RecordWriter,
        progress: &dyn Progress,
    ) -> Result<Finding, ArenaError>;
}
