//! The emulators of this machine, and which trials run in each of them.

use std::path::Path;

use pagetide_exact::emulator::Emulator;
use pagetide_exact::emulators::{added, runs_several};

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
    let installed = Emulator::find().ok();
    let added = added(cache);
    let is_enough = installed.as_ref().is_some_and(runs_several);
    let uses = [
        match (&installed, is_enough) {
            (Some(_), false) => "1 CPU",
            _ => "1 to 8 CPUs",
        },
        match (&installed, is_enough) {
            (_, true) => "",
            (Some(_), false) => "2 to 8 CPUs",
            (None, false) if Emulator::is_named() => "",
            (None, false) => "1 to 8 CPUs",
        },
    ];
    let found = [installed, added].into_iter().zip(uses);
    found
        .filter_map(|(emulator, used_for)| {
            let emulator = emulator?;
            Some(EmulatorUse {
                version: emulator.version,
                used_for: used_for.to_owned(),
                program: emulator.program,
            })
        })
        .collect()
}
