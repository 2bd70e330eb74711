//! Tells the preloaded object whether an emulator with several CPUs boots a guest or runs a trial.

use pagetide_record::CpusSpec;

/// Phase of an emulator with several CPUs. `preload/turns.rs` controls the emulator's threads accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// The emulator boots a guest.
    Boot,
    /// The emulator runs a trial.
    Trial,
}

impl Turns {
    /// Returns `self` for several CPUs, and `None` for one CPU, which needs no turns.
    pub fn of(self, cpus: CpusSpec) -> Option<Self> {
        cpus.are_several().then_some(self)
    }

    /// Returns the name and value of the environment variable for the preloaded object.
    pub(crate) fn variable(self) -> (&'static str, &'static str) {
        let value = match self {
            Self::Boot => "boot",
            Self::Trial => "trial",
        };
        ("PAGETIDE_TURNS", value)
    }
}
