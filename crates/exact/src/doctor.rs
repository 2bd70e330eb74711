//! Checks whether this machine can run the exact arena: lists what it needs, and the remedy for what is missing.
//!
//! Everything is tried rather than assumed: the emulator is asked for its version, and KVM must run a guest.

use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pagetide_arena::doctor::{self, Diagnosis, Piece, State};
use pagetide_kernel::Cache;
use pagetide_quantity::command::{command, in_backticks};
use pagetide_record::ArenaKind;

use crate::emulator::Emulator;
use crate::emulators::{added, runs_several};
use crate::error::ExactError;
use crate::memory;
use crate::profiler::{Counted, Profiler, is_about_plugins};

/// Wall-clock time to wait for a test guest to exit.
const PATIENCE: Duration = Duration::from_secs(10);

/// Checks the machine and returns what the exact arena needs, each item with its state. `cache` and `store` are the
/// folders that trials would use.
pub fn examine(cache: &Path, store: &Path) -> Vec<Piece> {
    let emulator = Emulator::find();
    let found = [
        emulator_piece(emulator.as_ref()),
        several(emulator.as_ref().ok(), cache),
        plugins(emulator.as_ref().ok()),
        doctor::memory(),
        doctor::folder("cache", cache, "--cache DIR or PAGETIDE_CACHE"),
        doctor::folder("store", store, "--store DIR or PAGETIDE_STORE"),
        kernels(cache),
        doctor::program(
            "apt",
            &["apt-get", "apt-cache", "apt-config"],
            "Debian's kernels cannot be fetched; give .deb files, images or built trees",
            "on Debian or Ubuntu: apt-get install apt",
        ),
        mke2fs(),
    ];
    found.map(|found| found.of(ArenaKind::Exact)).into()
}

/// Checks the two programs that trials start, without booting a guest: the emulator, and mke2fs, which only scenarios
/// on a file system need. Returns one item for each, in this order.
pub fn programs() -> [Piece; 2] {
    let found = [emulator_piece(Emulator::find().as_ref()), mke2fs()];
    found.map(|found| found.of(ArenaKind::Exact))
}

fn mke2fs() -> Diagnosis {
    doctor::program(
        "mke2fs",
        &["mke2fs"],
        "scenarios on a file system (filecopy) cannot run",
        "apt-get install e2fsprogs",
    )
}

fn emulator_piece(found: Result<&Emulator, &ExactError>) -> Diagnosis {
    let name = "emulator";
    match found {
        Err(why) => {
            let remedy = match why {
                ExactError::NoEmulator { .. } => "apt-get install qemu-system-x86",
                _ => "install QEMU 7.2 or later, or name one with PAGETIDE_QEMU",
            };
            Diagnosis::new(name, State::Missing, why.to_string(), remedy)
        }
        Ok(emulator) => {
            Diagnosis::works(name, format!("{} ({})", emulator.version, emulator.program))
        }
    }
}

/// Checks for an emulator that can run trials with several CPUs: the installed one or one in the cache folder.
fn several(emulator: Option<&Emulator>, cache: &Path) -> Diagnosis {
    let name = "several CPUs";
    let found = emulator.cloned().filter(runs_several);
    match found.or_else(|| added(cache).filter(runs_several)) {
        Some(found) => Diagnosis::works(name, format!("{} ({})", found.version, found.program)),
        None => Diagnosis::new(
            name,
            State::Limits,
            "the emulator is older than QEMU 8.1: trials run, but not with --cpus above 1"
                .to_owned(),
            command(&["emulator", "add"]),
        ),
    }
}

/// Checks, by running the test firmware, that the emulator can load the plugin that counts instructions.
fn plugins(emulator: Option<&Emulator>) -> Diagnosis {
    let name = "profiles";
    let lacks = |found: String| {
        let remedy = "install a QEMU that was built with --enable-plugins, as Debian's is";
        Diagnosis::new(name, State::Limits, found, remedy)
    };
    let Some(emulator) = emulator else {
        return lacks("not tried, because there is no emulator".to_owned());
    };
    match runs_with_plugin(emulator) {
        Ok(()) => Diagnosis::works(name, "the emulator counts instructions by function"),
        Err(why) => lacks(format!(
            "this emulator cannot count instructions by function ({why}): trials run, but without profiles"
        )),
    }
}

/// Returns the emulator's message if it refuses plugins; `None` if it loads the plugin, or fails for another reason.
pub(crate) fn refuses_plugins(emulator: &Emulator) -> Option<String> {
    let why = runs_with_plugin(emulator).err()?;
    is_about_plugins(&why).then_some(why)
}

/// Runs the test firmware in an emulator with the plugin. Fails if the emulator cannot load the plugin, or if the
/// firmware did not run.
fn runs_with_plugin(emulator: &Emulator) -> Result<(), String> {
    let fault = |error: ExactError| error.to_string();
    let profiler = Profiler::new(Counted::default()).map_err(fault)?;
    let [option, value] = profiler.arguments();
    runs_under(emulator, "tcg", &[&option, &value], &profiler.fds())
}

fn kernels(cache: &Path) -> Diagnosis {
    let name = "kernels";
    let limits = |found: String| {
        Diagnosis::new(
            name,
            State::Limits,
            found,
            command(&["kernel", "add", "debian:bookworm"]),
        )
    };
    match Cache::open(cache).and_then(|cache| cache.list()) {
        Err(why) => limits(why.to_string()),
        Ok(list) if list.is_empty() => {
            limits("none in the cache yet; the first run fetches what it needs".to_owned())
        }
        Ok(list) => {
            let releases: Vec<&str> = list.iter().map(|k| k.release.as_str()).collect();
            Diagnosis::works(name, releases.join(", "))
        }
    }
}

/// Returns the bytes of a firmware that only writes 0x20 to the debug-exit port at the reset vector.
fn firmware() -> Vec<u8> {
    // mov al, 0x20; mov dx, 0x501; out dx, al; hlt. The vector is 16 bytes below the firmware's end.
    const CODE: [u8; 7] = [0xB0, 0x20, 0xBA, 0x01, 0x05, 0xEE, 0xF4];
    let mut image = vec![0xF4; 64 << 10];
    let vector = image.len() - 16;
    image[vector..vector + CODE.len()].copy_from_slice(&CODE);
    image
}

/// Exit code of the emulator after the firmware has run: twice the value written, plus one.
const RAN: i32 = 0x20 * 2 + 1;

/// Folder of a module that replaces KVM on hosts that are themselves guests. The module executes only kernels that
/// were built for it.
const PARAVIRTUAL: &str = "/sys/module/kvm_pvm";

/// Checks that a guest runs under KVM, and returns a sentence that says so. A host that is itself a guest may run three
/// instructions but fail on a kernel. So a kernel from the cache is booted, if there is one. It panics for lack of a
/// root file system, and the emulator exits.
///
/// # Errors
///
/// A sentence that says why no guest runs under KVM.
pub fn kvm(cache: &Path) -> Result<String, String> {
    let Ok(emulator) = Emulator::find() else {
        return Err("KVM was not tried, because there is no emulator".to_owned());
    };
    if !Path::new("/dev/kvm").exists() {
        return Err("KVM does not work: there is no /dev/kvm".to_owned());
    }
    let kernel = Cache::open(cache)
        .and_then(|cache| cache.list())
        .ok()
        .and_then(|mut list| list.pop());
    let tried = match &kernel {
        None => runs_under(&emulator, "kvm", &[], &[]),
        Some(kernel) => boots_under(&emulator, "kvm", &kernel.image()),
    };
    match (tried, kernel) {
        (Err(why), _) if Path::new(PARAVIRTUAL).exists() => Err(format!(
            "KVM does not work: {why}; its module here is kvm_pvm, which runs only kernels that were built for it"
        )),
        (Err(why), _) => Err(format!("KVM does not work: {why}")),
        (Ok(()), Some(kernel)) => Ok(format!("KVM works ({} booted)", kernel.release)),
        (Ok(()), None) => Ok(format!(
            "KVM runs three instructions; {}, then ask again",
            in_backticks("kernel add debian:bookworm")
        )),
    }
}

/// Boots a kernel under this accelerator. Succeeds if the emulator exits with status 0, which it does when the kernel
/// panics for lack of a root file system; otherwise the error says what happened.
fn boots_under(emulator: &Emulator, accelerator: &str, image: &Path) -> Result<(), String> {
    let cpu = if accelerator == "kvm" { "host" } else { "max" };
    let image = image.display().to_string();
    let own = ["-machine", "q35", "-cpu", cpu, "-m", "256"];
    let kernel = ["-kernel", &image, "-append", "quiet panic=-1"];
    ends_with(emulator, accelerator, &[&own[..], &kernel].concat(), &[], 0)
}

/// Runs the test firmware under this accelerator. `more` are further arguments, and `fds` are file descriptors that the
/// emulator inherits. Fails if the firmware did not run.
fn runs_under(
    emulator: &Emulator,
    accelerator: &str,
    more: &[&str],
    fds: &[RawFd],
) -> Result<(), String> {
    let fault = |error: ExactError| error.to_string();
    let bios = memory::holding("pagetide-firmware", &firmware()).map_err(fault)?;
    let path = memory::path(bios.as_raw_fd());
    let own = ["-machine", "pc", "-m", "16", "-bios", &path];
    let exit = ["-device", "isa-debug-exit,iobase=0x501,iosize=1"];
    let inherited = [&[bios.as_raw_fd()], fds].concat();
    ends_with(
        emulator,
        accelerator,
        &[&own[..], &exit, more].concat(),
        &inherited,
        RAN,
    )
}

/// Runs an emulator. Fails unless it exits with `code` within [`PATIENCE`].
fn ends_with(
    emulator: &Emulator,
    accelerator: &str,
    own: &[&str],
    inherited: &[RawFd],
    code: i32,
) -> Result<(), String> {
    let fault = |error: ExactError| error.to_string();
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
        // If KVM fails on an instruction, the emulator does not exit but pauses.
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
    fn an_emulator_that_runs_refuse_is_missing_and_named_with_what_mends_it() {
        let piece = |why: &ExactError| emulator_piece(Err(why));
        let program = "qemu".to_owned();
        let none = piece(&ExactError::NoEmulator {
            program: program.clone(),
        });
        assert_eq!(none.state, State::Missing);
        assert!(none.remedy.starts_with("apt-get install"));
        let version = "QEMU 2.0.0".to_owned();
        let old = piece(&ExactError::EmulatorTooOld { program, version });
        assert_eq!(old.state, State::Missing);
        assert!(old.found.contains("QEMU 2.0.0") && old.remedy.contains("7.2"));
    }

    #[test]
    fn the_guest_that_tries_kvm_ends_as_expected_under_emulation() {
        let Ok(emulator) = Emulator::find() else {
            return pagetide_testing::skip(
                pagetide_testing::Need::Emulator,
                "QEMU is not installed",
            );
        };
        runs_under(&emulator, "tcg", &[], &[]).unwrap();
        let why = runs_under(&emulator, "nonsense", &[], &[]).unwrap_err();
        assert!(why.contains("nonsense"), "{why}");
    }
}
