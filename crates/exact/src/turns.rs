//! What the preloaded object is told about an emulator whose CPUs take turns.

use pagetide_record::CpusSpec;

/// What an emulator whose CPUs take turns does. `preload/turns.rs` orders its threads accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// It boots a guest.
    Boot,
    /// It runs a trial.
    Trial,
}

impl Turns {
    /// `self` if these are several CPUs; one CPU takes no turns.
    pub fn of(self, cpus: CpusSpec) -> Option<Self> {
        cpus.are_several().then_some(self)
    }

    /// Name and value of the environment variable for the preloaded object.
    pub(crate) fn variable(self) -> (&'static str, &'static str) {
        let value = match self {
            Self::Boot => "boot",
            Self::Trial => "trial",
        };
        ("PAGETIDE_TURNS", value)
    }
}
