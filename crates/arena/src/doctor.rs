//! What this machine can do per arena: each piece that is there, and each missing one with the command that mends it.
//!
//! Nothing is believed that can be tried: the emulator is asked for its version, KVM must run a guest, a folder must
//! take a file.

use std::fmt::{self, Display};
use std::fs;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use pagetide_kernel::Cache;
use pagetide_record::{ArenaKind, Bytes};
use serde::Serialize;

use crate::exact::emulator::Emulator;
use crate::exact::memory;
use crate::host;

/// Memory with which a trial of the default size runs.
const ENOUGH: Bytes = Bytes(512 << 20);
/// Room on disk for three kernels and some snapshots.
const ROOM: Bytes = Bytes(2 << 30);
/// A guest that has not come up after this long does not come up.
const PATIENCE: Duration = Duration::from_secs(10);

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

/// Looks at the machine. `cache` and `store` are the folders that would be used.
pub fn examine(cache: &Path, store: &Path) -> Vec<Piece> {
    let exact = |(name, state, found, remedy): Found| Piece {
        arena: ArenaKind::Exact,
        name,
        state,
        found,
        remedy,
    };
    let emulator = Emulator::find();
    let mut pieces = vec![
        exact(emulator_piece(
            emulator.as_ref().map_err(ToString::to_string),
        )),
        exact(memory_piece(host::available())),
        exact(folder("cache", cache, "--cache DIR or PAGETIDE_CACHE")),
        exact(folder("store", store, "--store DIR or PAGETIDE_STORE")),
        exact(kernels(cache)),
        exact(program(
            "apt",
            &["apt-get", "apt-cache", "apt-config"],
            "Debian's kernels cannot be fetched; give .deb files, images or built trees",
            "on Debian or Ubuntu: apt-get install apt",
        )),
        exact(program(
            "mke2fs",
            &["mke2fs"],
            "scenarios on a file system (filecopy) cannot run",
            "apt-get install e2fsprogs",
        )),
    ];
    let not_yet = |arena, found: String| Piece {
        arena,
        name: "arena",
        state: State::NotYet,
        found,
        remedy: String::new(),
    };
    let kvm = emulator.map_or_else(
        |_| "KVM was not tried for want of an emulator".to_owned(),
        |emulator| kvm(&emulator, cache),
    );
    pieces.push(not_yet(
        ArenaKind::Vm,
        format!("not in this version yet; {kvm}"),
    ));
    pieces.push(not_yet(
        ArenaKind::Host,
        "not in this version yet".to_owned(),
    ));
    pieces
}

/// Name, state, what was found, remedy.
type Found = (&'static str, State, String, String);

fn emulator_piece(found: Result<&Emulator, String>) -> Found {
    let name = "emulator";
    match found {
        // Messages name their remedy themselves.
        Err(why) => (
            name,
            State::Missing,
            why,
            "apt-get install qemu-system-x86".to_owned(),
        ),
        Ok(emulator) => match version(&emulator.version) {
            Some(version) if version < (7, 2) => (
                name,
                State::Missing,
                format!("{} is older than 7.2", emulator.version),
                "install QEMU 7.2 or later, or name one with PAGETIDE_QEMU".to_owned(),
            ),
            _ => (
                name,
                State::Works,
                format!("{} ({})", emulator.version, emulator.program),
                String::new(),
            ),
        },
    }
}

/// Major and minor version in a text such as `QEMU 7.2.22 (Debian …)`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .find(|word| word.contains('.'))?
        .split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn memory_piece(available: Bytes) -> Found {
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
        ("memory", State::Missing, found, remedy)
    } else {
        ("memory", State::Works, found, String::new())
    }
}

/// A folder is tried by writing a file; it is made where it is not there, as a run would make it.
fn folder(name: &'static str, path: &Path, option: &str) -> Found {
    let tried = || -> std::io::Result<()> {
        fs::create_dir_all(path)?;
        let file = path.join(format!(".doctor-{}", std::process::id()));
        fs::write(&file, b"can this be written?")?;
        fs::remove_file(&file)
    };
    if let Err(why) = tried() {
        return (
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
        (name, State::Limits, found, remedy)
    } else {
        (name, State::Works, found, String::new())
    }
}

fn kernels(cache: &Path) -> Found {
    let remedy = "pagetide kernel add".to_owned();
    let list = Cache::open(cache).and_then(|cache| cache.list());
    match list {
        Err(why) => ("kernels", State::Limits, why.to_string(), remedy),
        Ok(list) if list.is_empty() => (
            "kernels",
            State::Limits,
            "none in the cache yet; the first run fetches what it needs".to_owned(),
            remedy,
        ),
        Ok(list) => {
            let releases: Vec<&str> = list.iter().map(|k| k.release.as_str()).collect();
            ("kernels", State::Works, releases.join(", "), String::new())
        }
    }
}

/// Where a program lies in `PATH`.
fn lies(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

fn program(name: &'static str, programs: &[&str], without: &str, remedy: &str) -> Found {
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|program| lies(program).is_none())
        .collect();
    if missing.is_empty() {
        let found = lies(programs[0]).map_or_else(String::new, |path| path.display().to_string());
        return (name, State::Works, found, String::new());
    }
    (
        name,
        State::Limits,
        format!("{} is not in PATH: {without}", missing.join(", ")),
        remedy.to_owned(),
    )
}

/// A firmware that does one thing: at the reset vector it writes 0x20 to the debug-exit port.
fn firmware() -> Vec<u8> {
    // mov al, 0x20; mov dx, 0x501; out dx, al; hlt. The vector is 16 bytes below the firmware's end.
    const CODE: [u8; 7] = [0xB0, 0x20, 0xBA, 0x01, 0x05, 0xEE, 0xF4];
    let mut image = vec![0xF4; 64 << 10];
    let vector = image.len() - 16;
    image[vector..vector + CODE.len()].copy_from_slice(&CODE);
    image
}

/// What the emulator exits with when the firmware has run: twice the value written, plus one.
const RAN: i32 = 0x20 * 2 + 1;

/// Whether KVM works. A host that is itself a guest may run three instructions and break on a kernel, so a kernel of the
/// cache is booted where there is one: without a file system it panics, and the machine ends.
fn kvm(emulator: &Emulator, cache: &Path) -> String {
    let kernel = Cache::open(cache)
        .and_then(|cache| cache.list())
        .ok()
        .and_then(|mut list| list.pop());
    let tried = match &kernel {
        None => runs_under(emulator, "kvm"),
        Some(kernel) => boots_under(emulator, "kvm", &kernel.image()),
    };
    match (tried, kernel) {
        (Err(why), _) => format!("KVM does not work: {why}"),
        (Ok(()), Some(kernel)) => format!("KVM works ({} booted)", kernel.release),
        (Ok(()), None) => {
            "KVM runs three instructions; `pagetide kernel add`, then ask again".to_owned()
        }
    }
}

/// Boots a kernel under this accelerator until it finds no file system.
fn boots_under(emulator: &Emulator, accelerator: &str, image: &Path) -> Result<(), String> {
    let cpu = if accelerator == "kvm" { "host" } else { "max" };
    let image = image.display().to_string();
    let own = ["-machine", "q35", "-cpu", cpu, "-m", "256"];
    let kernel = ["-kernel", &image, "-append", "quiet panic=-1"];
    ends_with(emulator, accelerator, &[&own[..], &kernel].concat(), &[], 0)
}

/// Runs the firmware under this accelerator.
fn runs_under(emulator: &Emulator, accelerator: &str) -> Result<(), String> {
    let fault = |error: crate::ExactError| error.to_string();
    let bios = memory::holding("pagetide-firmware", &firmware()).map_err(fault)?;
    let path = memory::path(bios.as_raw_fd());
    let own = ["-machine", "pc", "-m", "16", "-bios", &path];
    let exit = ["-device", "isa-debug-exit,iobase=0x501,iosize=1"];
    let inherited = [bios.as_raw_fd()];
    ends_with(
        emulator,
        accelerator,
        &[&own[..], &exit].concat(),
        &inherited,
        RAN,
    )
}

/// Runs a guest and expects the emulator to end with this code.
fn ends_with(
    emulator: &Emulator,
    accelerator: &str,
    own: &[&str],
    inherited: &[RawFd],
    code: i32,
) -> Result<(), String> {
    let fault = |error: crate::ExactError| error.to_string();
    let errors = memory::anonymous("pagetide-errors").map_err(fault)?;
    let common = [
        "-accel",
        accelerator,
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-serial",
        "none",
        "-no-reboot",
    ];
    let arguments: Vec<String> = common.iter().chain(own).map(ToString::to_string).collect();
    let mut guest = emulator
        .start(&arguments, inherited, &errors)
        .map_err(fault)?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(status) = guest.ended() {
            if status.code() == Some(code) {
                return Ok(());
            }
            let said = memory::text(&errors);
            let last = said.lines().find(|line| !line.trim().is_empty());
            return Err(last
                .unwrap_or("the emulator said nothing")
                .trim()
                .to_owned());
        }
        // The emulator stays, paused, when KVM gives up on an instruction.
        let said = memory::text(&errors);
        if let Some(line) = said.lines().find(|line| line.contains("internal error")) {
            return Err(line.trim().to_owned());
        }
        sleep(Duration::from_millis(20));
    }
    Err(format!(
        "a guest did not end within {} s",
        PATIENCE.as_secs()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_emulator_writes_them() {
        assert_eq!(version("QEMU 7.2.22 (Debian 1:7.2+dfsg-7)"), Some((7, 2)));
        assert_eq!(version("QEMU 10.0.2"), Some((10, 0)));
        assert_eq!(version("QEMU"), None);
    }

    #[test]
    fn a_missing_emulator_is_named_with_the_command_that_mends_it() {
        let (_, state, _, remedy) = emulator_piece(Err("no".into()));
        assert_eq!(state, State::Missing);
        assert!(remedy.starts_with("apt-get install"));
    }

    #[test]
    fn too_little_memory_is_missing_and_enough_works() {
        assert_eq!(memory_piece(host::KEPT).1, State::Missing);
        assert_eq!(memory_piece(Bytes(host::KEPT.0 * 2)).1, State::Works);
    }

    #[test]
    fn a_file_in_place_of_a_folder_is_found_by_trying() {
        let folder_ = tempfile::tempdir().unwrap();
        let file = folder_.path().join("file");
        fs::write(&file, "x").unwrap();
        let (_, state, found, remedy) = folder("store", &file, "--store DIR");
        assert_eq!(state, State::Missing);
        assert!(found.contains("file") && remedy.contains("--store DIR"));
        assert_eq!(
            folder("store", folder_.path(), "--store DIR").1,
            State::Works
        );
        assert_eq!(
            fs::read_dir(folder_.path()).unwrap().count(),
            1,
            "nothing is left behind"
        );
    }

    #[test]
    fn the_guest_that_tries_kvm_ends_as_expected_under_emulation() {
        let Ok(emulator) = Emulator::find() else {
            println!("skipped: QEMU is not installed");
            return;
        };
        runs_under(&emulator, "tcg").unwrap();
        let why = runs_under(&emulator, "nonsense").unwrap_err();
        assert!(why.contains("nonsense"), "{why}");
    }
}
