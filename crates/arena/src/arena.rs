//! The trait that every arena implements.
//!
//! Each trial takes two calls. [`Arena::prepare`] determines everything that the result depends on, or refuses the
//! trial before anything runs. [`Arena::run`] then runs the prepared trial.

use pagetide_quantity::Nanos;
use pagetide_record::{ArenaKind, RecordWriter, Subject};

use crate::error::ArenaError;
use crate::prepared::{PreparedTrial, TrialResult};
use crate::progress::Progress;
use crate::trial::Trial;

/// A guest from which trials start, booted already or not, for planning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Key of the guest: trials with the same key share one boot.
    pub key: String,
    /// Estimated wall-clock time to boot the guest; zero if it is already booted.
    pub boot: Nanos,
}

/// A place where trials run: an emulated machine, a virtual machine, or a memory cgroup of this machine. Worker threads
/// share one arena and run trials in it concurrently.
pub trait Arena: Sync {
    /// Returns the kind of this arena: exact, vm or host.
    fn kind(&self) -> ArenaKind;

    /// Returns true if two runs of the same subject may give different results.
    fn has_noise(&self) -> bool {
        self.kind() != ArenaKind::Exact
    }

    /// Determines everything on which the trial's result depends, without starting the trial. Fails, with an error that
    /// names the remedy, if the trial cannot run. Later calls for the same kernel are cheap.
    fn prepare(&self, trial: &Trial) -> Result<PreparedTrial, ArenaError>;

    /// Returns the maximum number of trials like `_largest` that this machine can run concurrently, given its cores and
    /// free memory; at least 1. The caller passes the trial of the plan that needs the most memory.
    fn side_by_side(&self, _largest: &PreparedTrial) -> usize {
        1
    }

    /// Returns the expected wall-clock time of a trial on this machine, computed from the sizes in the trial's subject;
    /// `None` if unknown. A caller that has records of similar trials should prefer the times in these records.
    fn estimate(&self, _subject: &Subject) -> Option<Nanos> {
        None
    }

    /// Converts the wall-clock time `there`, measured on the reference machine, into the expected time on this machine.
    /// Campaign files state times on the reference machine: an AMD EPYC of 2017 (Zen 1, two processors of one core)
    /// that runs two trials concurrently and nothing else.
    fn here(&self, there: Nanos) -> Nanos {
        there
    }

    /// Returns the guest from which this trial starts; `None` if unknown, or if trials in this arena share no guests.
    fn guest(&self, _prepared: &PreparedTrial) -> Option<Guest> {
        None
    }

    /// Returns why no trial can have a profiled pass here, as a sentence for the user that says what is missing and what
    /// stays unknown; `None` if profiled passes run.
    fn lacks_profiles(&self) -> Option<String> {
        None
    }

    /// Returns sentences for the user about all trials that have run, such as the number of doubtful ones.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Runs a trial that the same arena prepared with [`Arena::prepare`]. Bulk sections are written to `sink`; the
    /// caller completes and stores the record. A panic, an out-of-memory kill or a hang during the trial is not an
    /// error: the returned [`TrialResult`] then has the reason in `results.invalid`.
    fn run(
        &self,
        prepared: &PreparedTrial,
        sink: &mut RecordWriter,
        progress: &dyn Progress,
    ) -> Result<TrialResult, ArenaError>;
}
