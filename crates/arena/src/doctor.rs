//! What this machine can do per arena: each piece that is there, and each missing one with the command that mends it.
//!
//! Here is what a piece is, and those that several arenas need; each arena examines its own. Nothing is believed that can
//! be tried: a folder must take a file.

use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};

use pagetide_quantity::Bytes;
use pagetide_record::ArenaKind;
use serde::Serialize;

use crate::host;

/// Memory with which a trial of the default size runs.
const ENOUGH: Bytes = Bytes(512 << 20);
/// Room on disk for three kernels and some snapshots.
const ROOM: Bytes = Bytes(2 << 30);
/// How one piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// It is there and works.
    Works,
    /// It is not there or does not work; some things can be done without it.
    Limits,
    /// Without it the arena does not work.
    Missing,
    /// It is of an arena that this version has not.
    NotYet,
}

impl Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Works => "works",
            Self::Limits => "limits",
            Self::Missing => "missing",
            Self::NotYet => "not yet",
        })
    }
}

/// One piece of an arena.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// The arena.
    pub arena: ArenaKind,
    /// What it is.
    pub name: &'static str,
    /// How it is.
    pub state: State,
    /// What was found.
    pub found: String,
    /// The command or step that mends it; empty where nothing is to be mended.
    pub remedy: String,
}

/// What was found of one piece, before it is said of which arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// What it is.
    pub name: &'static str,
    /// How it is.
    pub state: State,
    /// What was found.
    pub found: String,
    /// The command or step that mends it; empty where nothing is to be mended.
    pub remedy: String,
}

impl Diagnosis {
    /// A piece that works.
    pub fn works(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, State::Works, found, "")
    }

    /// A piece and how it is.
    pub fn new(
        name: &'static str,
        state: State,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            name,
            state,
            found: found.into(),
            remedy: remedy.into(),
        }
    }

    /// As a piece of this arena.
    pub fn of(self, arena: ArenaKind) -> Piece {
        Piece {
            arena,
            name: self.name,
            state: self.state,
            found: self.found,
            remedy: self.remedy,
        }
    }
}

/// Memory and processors that trials may use.
pub fn memory() -> Diagnosis {
    memory_piece(host::available())
}

fn memory_piece(available: Bytes) -> Diagnosis {
    let free = Bytes(available.0.saturating_sub(host::KEPT.0));
    let found = format!(
        "{} processors; {available} available, of which {} are left alone",
        host::cpus(),
        host::KEPT
    );
    if free < ENOUGH {
        let remedy = format!(
            "have {} available, or use a smaller --memory",
            Bytes(host::KEPT.0 + ENOUGH.0)
        );
        Diagnosis::new("memory", State::Missing, found, remedy)
    } else {
        Diagnosis::works("memory", found)
    }
}

/// A folder is tried by writing a file; it is made where it is not there, as a run would make it. `option` is how a user
/// chooses another.
pub fn folder(name: &'static str, path: &Path, option: &str) -> Diagnosis {
    let tried = || -> std::io::Result<()> {
        fs::create_dir_all(path)?;
        let file = path.join(format!(".doctor-{}", std::process::id()));
        fs::write(&file, b"can this be written?")?;
        fs::remove_file(&file)
    };
    if let Err(why) = tried() {
        return Diagnosis::new(
            name,
            State::Missing,
            format!("{} cannot be written: {why}", path.display()),
            format!("make it writable, or choose another with {option}"),
        );
    }
    let room = rustix::fs::statvfs(path).map_or(Bytes(0), |v| Bytes(v.f_bavail * v.f_frsize));
    let found = format!("{} with {room} free", path.display());
    if room < ROOM {
        let remedy = format!("free some space ({ROOM} is enough), or choose another with {option}");
        Diagnosis::new(name, State::Limits, found, remedy)
    } else {
        Diagnosis::works(name, found)
    }
}

/// Where a program lies in `PATH`.
fn lies(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Programs that are looked for in `PATH`; `without` says what cannot be done without them.
pub fn program(name: &'static str, programs: &[&str], without: &str, remedy: &str) -> Diagnosis {
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|program| lies(program).is_none())
        .collect();
    if missing.is_empty() {
        let found = lies(programs[0]).map_or_else(String::new, |path| path.display().to_string());
        return Diagnosis::works(name, found);
    }
    Diagnosis::new(
        name,
        State::Limits,
        format!("{} is not in PATH: {without}", missing.join(", ")),
        remedy,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_missing_and_enough_works() {
        assert_eq!(memory_piece(host::KEPT).state, State::Missing);
        assert_eq!(memory_piece(Bytes(host::KEPT.0 * 2)).state, State::Works);
    }

    #[test]
    fn a_file_in_place_of_a_folder_is_found_by_trying() {
        let folder_ = tempfile::tempdir().unwrap();
        let file = folder_.path().join("file");
        fs::write(&file, "x").unwrap();
        let Diagnosis {
            state,
            found,
            remedy,
            ..
        } = folder("store", &file, "--store DIR");
        assert_eq!(state, State::Missing);
        assert!(found.contains("file") && remedy.contains("--store DIR"));
        assert_eq!(
            folder("store", folder_.path(), "--store DIR").state,
            State::Works
        );
        assert_eq!(
            fs::read_dir(folder_.path()).unwrap().count(),
            1,
            "nothing is left behind"
        );
    }
}
