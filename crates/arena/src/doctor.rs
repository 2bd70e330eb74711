//! Checks whether this machine has what each arena needs. For each missing item, names the command that provides it.
//!
//! This file defines an item and the checks that several arenas share; each arena adds its own. Checks try the real
//! operation where possible: a folder is checked by writing a file.

use std::fmt::{self, Display};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pagetide_quantity::Bytes;
use pagetide_record::ArenaKind;
use serde::Serialize;

use crate::host;

/// Amount of memory, beyond the host's reserve, that is enough for a trial of the default size.
const ENOUGH: Bytes = Bytes(512 << 20);
/// Amount of free disk space that is enough for three kernels and some snapshots.
const ROOM: Bytes = Bytes(2 << 30);
/// Result of a check: whether the item works and, if not, whether the arena works without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The item is present and works.
    Works,
    /// The item is missing or does not work, but the arena works with some limitations.
    Limits,
    /// The item is missing or does not work, and the arena does not work without it.
    Missing,
}

impl Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Works => "works",
            Self::Limits => "limits",
            Self::Missing => "missing",
        })
    }
}

/// Result of the check of one item that an arena needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Piece {
    /// Arena that needs the item.
    pub arena: ArenaKind,
    /// Name of the checked item.
    pub name: &'static str,
    /// Result of the check.
    pub state: State,
    /// What the check found, as text.
    pub found: String,
    /// Command or step that makes the item work; empty if it works.
    pub remedy: String,
}

/// Result of the check of one item, not yet assigned to an arena.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Name of the checked item.
    pub name: &'static str,
    /// Result of the check.
    pub state: State,
    /// What the check found, as text.
    pub found: String,
    /// Command or step that makes the item work; empty if it works.
    pub remedy: String,
}

impl Diagnosis {
    /// Creates the result for an item that works.
    pub fn works(name: &'static str, found: impl Into<String>) -> Self {
        Self::new(name, State::Works, found, "")
    }

    /// Creates the result for an item in any state.
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

    /// Assigns this result to an arena that needs the item.
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

/// Checks that enough memory is available for a trial of the default size. The text also has the number of CPUs.
pub fn memory() -> Diagnosis {
    memory_piece(host::available())
}

fn memory_piece(available: Bytes) -> Diagnosis {
    let free = Bytes(available.0.saturating_sub(host::RESERVED_MEMORY.0));
    let found = format!(
        "{} processors; {available} available, of which {} are left alone",
        host::cpus(),
        host::RESERVED_MEMORY
    );
    if free < ENOUGH {
        let remedy = format!(
            "have {} available, or use a smaller --memory",
            Bytes(host::RESERVED_MEMORY.0 + ENOUGH.0)
        );
        Diagnosis::new("memory", State::Missing, found, remedy)
    } else {
        Diagnosis::works("memory", found)
    }
}

/// Checks that a folder can be written (creates it, if needed, and writes a file in it), and that 2 GiB are free there.
/// `option` is the command line option that selects another folder.
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

/// Returns the path of the first executable file of this name in the folders of `PATH`; `None` if there is none.
fn find_in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| {
            let found = file.metadata();
            found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        })
}

/// Checks that all of `programs` are in the folders of `PATH`. `without` says what cannot be done without them.
pub fn program(name: &'static str, programs: &[&str], without: &str, remedy: &str) -> Diagnosis {
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|program| find_in_path(program).is_none())
        .collect();
    if missing.is_empty() {
        let first = programs.first().and_then(|program| find_in_path(program));
        let found = first.map_or_else(String::new, |path| path.display().to_string());
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
        assert_eq!(memory_piece(host::RESERVED_MEMORY).state, State::Missing);
        assert_eq!(
            memory_piece(Bytes(host::RESERVED_MEMORY.0 * 2)).state,
            State::Works
        );
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
