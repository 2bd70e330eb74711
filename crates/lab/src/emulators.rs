//! The emulators of this machine, and which trials run in each of them.

use std::path::Path;

use pagetide_exact::emulator::Emulator;
use pagetide_exact::emulators::{Emulators, added};
use pagetide_record::CpusSpec;

/// An emulator and its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmulatorUse {
    /// Name and version of the emulator.
    pub version: String,
    /// Trials that the emulator runs, described by their numbers of CPUs; empty for none.
    pub used_for: String,
    /// Path or name of the emulator's program.
    pub program: String,
}

/// Returns the installed emulator and the newest one of the cache folder, each with its use; empty if there is none.
pub fn emulators(cache: &Path) -> Vec<EmulatorUse> {
    let chosen = Emulators::open(cache).ok();
    let one = chosen.as_ref().map(Emulators::first);
    let several = chosen.as_ref().and_then(|all| all.of(CpusSpec::of(2)).ok());
    let use_of =
        |emulator: &Emulator| match (one == Some(emulator), several.as_deref() == Some(emulator)) {
            (true, true) => "1 to 8 CPUs",
            (true, false) => "1 CPU",
            (false, true) => "2 to 8 CPUs",
            (false, false) => "",
        };
    let found = [Emulator::find().ok(), added(cache)];
    found
        .into_iter()
        .flatten()
        .map(|emulator| EmulatorUse {
            used_for: use_of(&emulator).to_owned(),
            version: emulator.version,
            program: emulator.program,
        })
        .collect()
}
