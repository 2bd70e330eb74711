//! Creates a snapshot: boots a guest up to its ready point and saves it.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pagetide_arena::Progress;
use pagetide_guest::kernel_memory;
use pagetide_guest::spec::{BOOT_SPEC, BootSpec, MAKER_FOLDER, MAKER_LOADER};
use pagetide_kernel::Kernel;
use pagetide_quantity::Bytes;
use pagetide_record::wire::Phase;
use serde_json::json;

use crate::emulator::{Emulator, Running, Wiring};
use crate::error::{ExactError, io};
use crate::guard::{End, Guard, is_dead};
use crate::initrd::Archive;
use crate::machine::{BOOT_SHIFT, MachineSpec};
use crate::memory::{self, Output};
use crate::monitor::Monitor;
use crate::nodes;
use crate::place::EmulatorSlots;
use crate::recipe::{Contents, Recipe};
use crate::turns::Turns;

/// Maximum number of console lines that an error message quotes: from the first line that reports a fatal error on, or
/// the last lines if there is no such line.
const QUOTED_LINES: usize = 3;
/// Wall-clock time to wait for an emulator to exit after it closed its monitor connection.
const ENDING: Duration = Duration::from_secs(1);

/// What is needed to boot a guest for a snapshot.
pub struct Boot<'a> {
    /// Inputs that determine the snapshot.
    pub recipe: &'a Recipe,
    /// Kernel to boot.
    pub kernel: &'a Kernel,
    /// Machine to emulate.
    pub machine: &'a MachineSpec,
    /// Emulator to run.
    pub emulator: &'a Emulator,
    /// Limits the number of emulators that run at once.
    pub places: &'a EmulatorSlots,
    /// Wall-clock time without progress of the guest after which the boot fails.
    pub patience: Duration,
    /// Reports whether the user has asked to stop.
    pub progress: &'a dyn Progress,
}

impl Boot<'_> {
    /// Boots the guest up to its ready point and saves it as files in `folder`. `contents` is the guest's initial file
    /// system. Fails if the guest does not become ready.
    pub fn save(&self, folder: &Path, contents: &Contents) -> Result<(), ExactError> {
        // Verified now, because this kernel image becomes part of every trial that starts from the snapshot.
        self.kernel.verify()?;
        let (recipe, machine) = (self.recipe, self.machine);
        let initrd = folder.join("initrd");
        write_initrd(&initrd, &recipe.boot, contents)
            .map_err(io("writing", initrd.display().to_string()))?;
        // During the boot, the guest's memory is an anonymous file for each node, not on a disk. A disk would have to
        // allocate a block at each first touch of a page.
        let sizes = machine.memories();
        let mut memory_files = Vec::new();
        for size in &sizes {
            let file = memory::anonymous("memory")?;
            file.set_len(size.0)
                .map_err(io("sizing", "the guest's memory"))?;
            memory_files.push(file);
        }
        let fds = memory_files.iter().map(AsRawFd::as_raw_fd);
        let memory_paths: Vec<PathBuf> = fds.clone().map(memory::path).map(PathBuf::from).collect();
        let output = Output::new(
            Bytes(recipe.boot.region_size),
            Bytes(recipe.boot.trace_size),
        )?;
        if let Some(root) = &contents.root {
            root.write(output.file(), recipe.boot.region_size)
                .map_err(io("handing over", "the program's files"))?;
        }
        let (console, errors) = (memory::anonymous("console")?, memory::anonymous("errors")?);
        // The configuration item must exist so that the guest finds it. At restore, it gets the order of the trial.
        // Before that, the guest uses its bytes to set its kernel's counts of memory.
        let trial = memory::holding("trial", &kernel_memory::bytes())?;
        let wiring = Wiring::new(
            (&memory_paths, true),
            &sizes,
            output.file(),
            output.whole(),
            &console,
            &trial,
        );
        let (mut monitor, theirs) = Monitor::pair()?;
        let mut arguments = recipe.arguments.clone();
        // If this option is given twice, the emulator uses the last value.
        if !machine.timing.is_real() {
            arguments.extend(["-icount".to_owned(), format!("shift={BOOT_SHIFT}")]);
        }
        arguments.extend(wiring.arguments);
        arguments.extend(Monitor::arguments(theirs.as_raw_fd()));
        arguments.extend(boot_files(&self.kernel.image(), Some(&initrd)));
        let mut inherited = wiring.inherited;
        inherited.push(theirs.as_raw_fd());
        inherited.extend(fds);
        let _place = self.places.take(self.progress)?;
        let turns = Turns::Boot.of(machine.cpus);
        let mut running =
            self.emulator
                .start_in(machine.timing, turns, &arguments, &inherited, &errors)?;
        drop(theirs);

        let mut guard = Guard::new(
            self.progress,
            self.patience,
            &console,
            &output,
            memory_files.first(),
            running.id(),
        );
        if !is_ready(&mut monitor, &mut guard, &output) {
            return Err(self.fault(&guard, &mut running, &console, &errors));
        }
        let state = folder.join("state");
        let quoted = state.display().to_string().replace('\'', "'\\''");
        let uri = json!({ "uri": format!("exec:cat >'{quoted}'") });
        let mut should_wait = || guard.should_wait();
        let saved = match monitor.command("migrate", &uri, &mut should_wait) {
            Ok(_) => monitor.migrated(&mut should_wait),
            Err(why) => return Err(self.error(why)),
        };
        let Some(saved) = saved else {
            return Err(match guard.end() {
                Some(End::Stopped) => ExactError::Stopped,
                _ => self.error("saving it went wrong: is the disk full?".to_owned()),
            });
        };
        if !machine.timing.is_real() {
            self.emulator.proven(&saved)?;
        }
        let _ = monitor.command("quit", &json!({}), &mut should_wait);
        let _ = running.wait();
        let stub = folder.join("stub");
        write_stub(&self.kernel.image(), &stub)
            .map_err(io("writing", stub.display().to_string()))?;
        let paths = nodes::memory_paths(folder, memory_files.len());
        for (file, ram) in memory_files.iter().zip(paths) {
            memory::keep(file, &ram).map_err(|why| match why.kind() {
                io::ErrorKind::StorageFull => ExactError::NoRoom {
                    path: folder.to_owned(),
                },
                _ => io("writing", ram.display().to_string())(why),
            })?;
        }
        // The initial file system is not needed after the boot.
        fs::remove_file(&initrd).map_err(io("removing", initrd.display().to_string()))
    }

    fn error(&self, why: String) -> ExactError {
        ExactError::Boot {
            kernel: self.kernel.release.clone(),
            memory: self.machine.memory,
            why,
        }
    }

    /// Creates the error for a guest that did not reach its ready point.
    fn fault(
        &self,
        guard: &Guard<'_>,
        running: &mut Running,
        console: &File,
        errors: &File,
    ) -> ExactError {
        let began = Instant::now();
        let mut status = running.ended();
        while guard.end().is_none() && status.is_none() && began.elapsed() < ENDING {
            std::thread::sleep(Duration::from_millis(5));
            status = running.ended();
        }
        running.kill();
        if guard.end() == Some(End::Stopped) {
            return ExactError::Stopped;
        }
        let said = BootFailure {
            console: &memory::text(console),
            errors: &memory::text(errors),
            hung: match guard.end() {
                Some(End::Hung(span)) => Some(span),
                _ => None,
            },
            cmdline: &self.machine.cmdline,
        };
        self.error(said.why())
    }
}

/// Waits until the guest reaches its ready point or the wait ends. Returns true if the guest is ready.
fn is_ready(monitor: &mut Monitor, guard: &mut Guard<'_>, output: &Output) -> bool {
    let (ignore, what) = Monitor::ignore_shared();
    let mut should_wait = || guard.should_wait();
    monitor
        .command("qmp_capabilities", &json!({}), &mut should_wait)
        .and_then(|_| monitor.command(ignore, &what, &mut should_wait))
        .is_ok()
        && monitor.event(&["GUEST_PANICKED"], &mut should_wait).is_some()
        // If a kernel has a driver for this device, its panic is reported as the same event.
        && output.region().phase() >= Phase::Ready
}

/// What was observed of a guest that did not reach its ready point.
struct BootFailure<'a> {
    console: &'a str,
    errors: &'a str,
    hung: Option<Duration>,
    cmdline: &'a str,
}

impl BootFailure<'_> {
    /// Describes the failure. If the guest's program has printed an error, returns only this error. Otherwise returns
    /// the last error of the emulator, or lines of the console output and the likely cause.
    fn why(&self) -> String {
        let lines: Vec<String> = self
            .console
            .lines()
            .map(legible)
            // Lines that only move the cursor are skipped.
            .filter(|line| line.chars().filter(|c| c.is_alphanumeric()).count() > 3)
            .collect();
        let own = lines
            .iter()
            .rev()
            .find_map(|line| Some(line.split_once("pagetide:")?.1.trim().to_owned()));
        if let Some(own) = own {
            return own;
        }
        let dying = lines.iter().position(|line| {
            is_dead(line) || line.contains("System is deadlocked") || line.contains("corrupt")
        });
        let complaint = self
            .errors
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty() && !line.contains("warning:"));
        let tail = match dying {
            Some(at) => &lines[at..lines.len().min(at + QUOTED_LINES)],
            None => &lines[lines.len().saturating_sub(QUOTED_LINES)..],
        }
        .join(" / ");
        let hung = self
            .hung
            .map(|span| format!("nothing moved in it for {} s; ", span.as_secs()))
            .unwrap_or_default();
        match (tail.is_empty(), complaint) {
            (_, Some(line)) if dying.is_none() => {
                format!("{hung}the emulator said `{}`", legible(line))
            }
            (true, _) => format!(
                "{hung}nothing was heard of it; is this an x86-64 kernel? {}",
                self.cause()
            ),
            (false, _) => format!("{hung}it was last heard saying `{tail}`; {}", self.cause()),
        }
    }

    /// Describes the likely cause of the failure and a remedy.
    fn cause(&self) -> String {
        let cut = self
            .cmdline
            .split_whitespace()
            .find(|word| word.starts_with("mem=") || word.starts_with("memmap="));
        if let Some(argument) = cut {
            return format!(
                "the boot argument {argument} leaves it less memory than it was made with: leave it out"
            );
        }
        if self.console.contains("-- System halted") {
            return "its image is damaged: build or fetch it again".to_owned();
        }
        if self.console.to_lowercase().contains("out of memory") {
            return "raise --memory".to_owned();
        }
        if self.hung.is_some() {
            return "if it boots elsewhere, raise --memory, or --timeout where this machine is slow".to_owned();
        }
        "if it boots with more, raise --memory".to_owned()
    }
}

/// Returns the line without control characters, and without white space at both ends.
fn legible(line: &str) -> String {
    line.chars()
        .filter(|c| !c.is_control())
        .collect::<String>()
        .trim()
        .to_owned()
}

/// Returns the emulator's arguments that name the kernel image and the initial file system.
pub fn boot_files(image: &Path, initrd: Option<&Path>) -> Vec<String> {
    let text = |path: &Path| path.display().to_string();
    let mut arguments = vec!["-kernel".to_owned(), text(image)];
    if let Some(initrd) = initrd {
        arguments.extend(["-initrd".to_owned(), text(initrd)]);
    }
    arguments
}

/// Writes the beginning of a kernel image to `path`, including all of its setup code. A restored guest has its kernel
/// in memory, and the emulator reads the image only to create the same devices. Reading all 20 MB would take a tenth of
/// the time from the emulator's start to the guest's first instruction.
fn write_stub(image: &Path, path: &Path) -> io::Result<()> {
    /// Number of bytes to copy: the boot sector, up to 64 sectors of setup code, and a margin.
    const HEAD_BYTES: u64 = 64 << 10;
    io::copy(
        &mut File::open(image)?.take(HEAD_BYTES),
        &mut File::create(path)?,
    )?;
    Ok(())
}

fn write_initrd(path: &Path, boot: &BootSpec, contents: &Contents) -> io::Result<()> {
    let mut out = io::BufWriter::new(File::create(path)?);
    let mut archive = Archive::new(&mut out);
    for folder in ["dev", "proc", "sys", "mnt", "modules"] {
        archive.folder(folder)?;
    }
    archive.file("init", true, contents.program)?;
    archive.file(
        BOOT_SPEC.trim_start_matches('/'),
        false,
        &serde_json::to_vec(boot)?,
    )?;
    if boot.maker.is_some() {
        archive.folder(MAKER_FOLDER.trim_start_matches('/'))?;
    }
    let loader = format!("{MAKER_FOLDER}/{MAKER_LOADER}");
    for (name, bytes) in &contents.files {
        archive.file(name.trim_start_matches('/'), *name == loader, bytes)?;
    }
    archive.finish()?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(console: &str, errors: &str, cmdline: &str, hung: Option<Duration>) -> String {
        let said = BootFailure {
            console,
            errors,
            hung,
            cmdline,
        };
        said.why()
    }

    #[test]
    fn last_words_prefer_the_guests_own_sentence() {
        assert_eq!(
            why("noise\npagetide: no device\n", "x", "", None),
            "no device"
        );
        let panic = "[ 1.0] Kernel panic - not syncing: Out of memory\n[ 1.0] Call Trace:\n";
        let said = why(panic, "", "quiet", None);
        assert!(
            said.contains("Call Trace") && said.contains("raise --memory"),
            "{said}"
        );
        assert!(why("", "qemu: bad option\n", "", None).contains("bad option"));
        let silent = why("[ 0.1] Loading\n\r\n\u{1b}[m \n", "", "", None);
        assert!(
            silent.contains("Loading") && silent.contains("raise --memory"),
            "{silent}"
        );
        assert!(!silent.contains('\u{1b}'), "{silent}");
    }

    #[test]
    fn the_likely_cause_is_told_from_the_console_and_the_command_line() {
        let halted = "ZSTD-compressed data is corrupt\n\n -- System halted";
        assert!(why(halted, "", "quiet", None).contains("its image is damaged"));
        let minute = Some(Duration::from_mins(1));
        let small = why("Poking KASLR\n", "", "quiet mem=8M", minute);
        assert!(
            small.contains("mem=8M") && small.contains("60 s"),
            "{small}"
        );
        let slow = why("", "", "quiet", minute);
        assert!(slow.contains("--timeout"), "{slow}");
    }
}
