//! The trait every arena implements.
//!
//! Each trial takes two calls. [`Arena::prepare`] determines everything that the result depends on, or refuses the
//! trial before anything runs. [`Arena::run`] then runs the prepared trial.

use std::collections::BTreeMap;
use std::time::Instant;

use pagetide_quantity::Nanos;
use pagetide_record::{ArenaKind, RecordWriter, Results, Subject, Wall};

use crate::error::ArenaError;
use crate::prepared::PreparedTrial;
use crate::progress::Progress;
use crate::trial::Trial;

/// What one trial produced, except its bulk sections, which are already written to the record file.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Metrics and counters that the guest (or the host arena) reports; present for an invalid trial too.
    pub results: Results,
    /// Memory-related build options of the kernel; empty if they are not known.
    pub kernel_config: BTreeMap<String, String>,
    /// Wall-clock times and the machine. The run loop fills in campaign, unit, repetition, number of concurrent trials,
    /// and the time until the record is stored.
    pub wall: Wall,
    /// When the scenario ended, or the trial if the scenario never did. The time until the record is stored counts from
    /// here.
    pub ended: Instant,
}

/// The booted guest that trials start from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Identity of the guest: trials with the same key share one boot.
    pub key: String,
    /// Wall-clock time that booting it will take; zero if it is already booted.
    pub boot: Nanos,
}

/// A bounded place where trials run. Worker threads that run trials concurrently share it.
pub trait Arena: Sync {
    /// Kind of this arena.
    fn kind(&self) -> ArenaKind;

    /// True if two runs of the same subject may give different results.
    fn has_noise(&self) -> bool {
        self.kind() != ArenaKind::Exact
    }

    /// Determines everything that the trial's result depends on. Refuses a trial that cannot run, with an error that
    /// names the remedy. Starts no trial. Later calls for the same kernel are cheap.
    fn prepare(&self, trial: &Trial) -> Result<PreparedTrial, ArenaError>;

    /// Number of trials like this one that the machine can run concurrently, given its cores and free memory; at least
    /// 1. The caller passes the trial of the plan that needs most memory.
    fn side_by_side(&self, _largest: &PreparedTrial) -> usize {
        1
    }

    /// Expected wall-clock time of this trial on this machine, computed from its sizes; `None` if unknown. A caller
    /// that has records of similar trials should prefer their times.
    fn estimate(&self, _subject: &Subject) -> Option<Nanos> {
        None
    }

    /// Converts a wall-clock time measured on the machine that campaign files refer to into the expected time on this
    /// machine. That machine is an AMD EPYC of 2017 (Zen 1, two processors of one core) that runs two trials
    /// concurrently and nothing else.
    fn here(&self, there: Nanos) -> Nanos {
        there
    }

    /// The guest that this trial starts from. `None` if the arena does not boot one guest for many trials.
    fn guest(&self, _prepared: &PreparedTrial) -> Option<Guest> {
        None
    }

    /// Runs a trial that [`Arena::prepare`] of the same arena returned. Bulk sections are written to `sink` as they
    /// arrive; the caller completes and stores the record. A panic, an out-of-memory kill or a hang is returned as a
    /// [`Finding`] with `results.invalid`, not as an error.
    fn run(
        &self,
        prepared: &PreparedTrial,
        sink: &mut RecordWriter,
        progress: &dyn Progress,
    ) -> Result<Finding, ArenaError>;
}
