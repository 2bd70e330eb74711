//! Runs the emulator as a child process that does not outlive its parent.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use pagetide_quantity::Bytes;
use pagetide_system::child::{self, Failure, Limits};
use serde_json::Value;

use crate::clock::{self, Clock};
use crate::error::{ExactError, io};
use crate::memory;
use crate::nodes::memory_name;
use crate::processor::Processor;
use crate::timing::Timing;
use crate::turns::Turns;

/// Name of the emulator's program.
pub const PROGRAM: &str = "qemu-system-x86_64";

/// Major and minor number of the oldest supported QEMU. Older versions do not count instructions exactly enough for
/// trials.
const OLDEST: (u32, u32) = (7, 2);

/// Returns the major and minor version number in a text such as `QEMU 7.2.22 (Debian …)`; `None` if there is none.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .find(|word| word.contains('.'))?
        .split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Returns the first non-empty line of a program's output.
fn first_line(printed: &[u8]) -> String {
    let text = String::from_utf8_lossy(printed);
    let first = text.lines().map(str::trim).find(|line| !line.is_empty());
    first.unwrap_or_default().to_owned()
}

/// An emulator with its own loader and libraries, as unpacked from packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Path of the dynamic loader.
    loader: PathBuf,
    /// Arguments of the loader: the folders of libraries, the program, and the folders of firmware.
    arguments: Vec<String>,
    /// Path of the emulator's program.
    program: String,
}

impl Launch {
    /// Returns the emulator in a folder with unpacked packages; `None` if a part is missing.
    pub fn of(folder: &Path) -> Option<Self> {
        const LIBRARIES: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
        const LOADER: &str = "ld-linux-x86-64.so.2";
        const FIRMWARE: [&str; 2] = ["usr/share/qemu", "usr/share/seabios"];
        let loaders = LIBRARIES.map(|inner| folder.join(inner).join(LOADER));
        let loader = loaders.into_iter().find(|path| path.is_file())?;
        let program = folder.join("usr/bin").join(PROGRAM);
        let text = |path: &Path| path.to_str().map(str::to_owned);
        let program = program.is_file().then(|| text(&program))??;
        let libraries = LIBRARIES.map(|inner| text(&folder.join(inner)));
        let [Some(first), Some(second)] = libraries else {
            return None;
        };
        let mut arguments = vec!["--library-path".to_owned(), format!("{first}:{second}")];
        arguments.push(program.clone());
        for inner in FIRMWARE {
            arguments.extend(["-L".to_owned(), text(&folder.join(inner))?]);
        }
        Some(Self {
            loader,
            arguments,
            program,
        })
    }
}

/// An emulator on this machine: the installed one, or one from the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulator {
    /// Path or name of the emulator's program.
    pub program: String,
    /// Version line of the emulator. Only trials with the same build of the emulator have identical results.
    pub version: String,
    /// How to start an emulator unpacked from packages; `None` for an installed one.
    launch: Option<Launch>,
}

impl Emulator {
    /// Finds the installed emulator and its version. `PAGETIDE_QEMU` may name another program. Fails if the program
    /// cannot be run, does not state a version of QEMU, or is older than [`OLDEST`].
    pub fn find() -> Result<Self, ExactError> {
        let program = Self::named().unwrap_or_else(|| PROGRAM.to_owned());
        Self::ask(program, None, &Limits::QUICK)
    }

    /// Returns the program that `PAGETIDE_QEMU` names. No emulator from the cache may take its place.
    pub(crate) fn named() -> Option<String> {
        std::env::var("PAGETIDE_QEMU").ok()
    }

    /// Returns the unpacked emulator and its version. Fails as [`Self::find`].
    pub fn unpacked(launch: Launch) -> Result<Self, ExactError> {
        Self::ask(launch.program.clone(), Some(launch), &Limits::QUICK)
    }

    /// Returns true if the emulator has this major and minor version, or a later one.
    pub fn is_at_least(&self, version: (u32, u32)) -> bool {
        self.numbers().is_some_and(|own| own >= version)
    }

    /// Returns the major and minor number of the version; `None` if it has none.
    pub fn numbers(&self) -> Option<(u32, u32)> {
        numbers(&self.version)
    }

    fn ask(
        program: String,
        launch: Option<Launch>,
        limits: &Limits<'_>,
    ) -> Result<Self, ExactError> {
        let mut command = command(&program, launch.as_ref());
        let output = match child::run(command.arg("--version"), limits) {
            Ok(output) => output,
            Err(Failure::Start(cause)) if cause.kind() == io::ErrorKind::NotFound => {
                return Err(ExactError::NoEmulator { program });
            }
            Err(failure) => {
                let why = failure.to_string();
                return Err(ExactError::EmulatorSilent { program, why });
            }
        };
        let said = first_line(&output.stdout);
        let Some(version) = said.strip_prefix("QEMU emulator version ") else {
            if !said.is_empty() {
                return Err(ExactError::EmulatorVersion { program, said });
            }
            let why = match first_line(&output.stderr).as_str() {
                "" => format!("said nothing ({})", output.status),
                errors => format!("said `{errors}` ({})", output.status),
            };
            return Err(ExactError::EmulatorSilent { program, why });
        };
        let version = format!("QEMU {version}");
        match numbers(&version) {
            Some(numbers) if numbers >= OLDEST => Ok(Self {
                program,
                version,
                launch,
            }),
            Some(_) => Err(ExactError::EmulatorTooOld { program, version }),
            None => Err(ExactError::EmulatorVersion { program, said }),
        }
    }

    /// Fails if the event shows that the emulator does not use the preloaded clock.
    pub fn proven(&self, event: &Value) -> Result<(), ExactError> {
        if clock::dated(event) {
            Ok(())
        } else {
            Err(ExactError::OwnClock {
                program: self.program.clone(),
            })
        }
    }

    /// Starts the emulator with these arguments and the preloaded [`Clock`], for a guest with one CPU. File descriptors
    /// in `inherited` stay open in the child under the same numbers. Standard error goes to `errors`.
    pub fn start(
        &self,
        arguments: &[String],
        inherited: &[RawFd],
        errors: &File,
    ) -> Result<Running, ExactError> {
        self.start_in(Timing::Counted, None, arguments, inherited, errors)
    }

    /// Starts the emulator like [`Self::start`]. `timing` selects the guest's clock: counted instructions or real time.
    /// In real time, the guest uses the host's clock and the emulator may run on all CPUs. `turns` is `None` for a
    /// guest with one CPU.
    pub fn start_in(
        &self,
        timing: Timing,
        turns: Option<Turns>,
        arguments: &[String],
        inherited: &[RawFd],
        errors: &File,
    ) -> Result<Running, ExactError> {
        let fault = || io("starting", &self.program);
        let stderr = errors.try_clone().map_err(fault())?;
        let clock = Clock::new()?;
        let mut fds = inherited.to_vec();
        fds.push(clock.fd());
        let mut command = command(&self.program, self.launch.as_ref());
        command
            .args(arguments)
            .envs((!timing.is_real()).then(|| clock.variable()))
            .envs(turns.filter(|_| !timing.is_real()).map(Turns::variable))
            .stdout(Stdio::null())
            .stderr(stderr);
        // SAFETY: between fork and exec, only async-signal-safe calls are made, on descriptors that stay open until
        // then. No memory is allocated.
        unsafe {
            command.pre_exec(move || {
                // A trial is short, so clearing huge pages costs more than huge pages save.
                libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
                for fd in &fds {
                    libc::fcntl(*fd, libc::F_SETFD, 0);
                }
                Ok(())
            });
        }
        let processor = (!timing.is_real()).then(Processor::take).flatten();
        let spawned = match &processor {
            Some(processor) => processor.on(|| child::start(&mut command)),
            None => child::start(&mut command),
        };
        spawned
            .map(|child| Running {
                child,
                _processor: processor,
            })
            .map_err(|source| {
                if source.kind() == io::ErrorKind::NotFound {
                    ExactError::NoEmulator {
                        program: self.program.clone(),
                    }
                } else {
                    fault()(source)
                }
            })
    }
}

/// Returns the command that starts an emulator, without the options that describe a machine.
fn command(program: &str, launch: Option<&Launch>) -> Command {
    match launch {
        None => child::command(program),
        Some(launch) => {
            let mut command = child::command(&launch.loader);
            command.args(&launch.arguments);
            command
        }
    }
}

/// A running emulator; killed and reaped when dropped.
#[derive(Debug)]
pub struct Running {
    child: child::Running,
    /// The reserved CPU of the host. Dropped after the child, so it is released only when the child has been reaped.
    _processor: Option<Processor>,
}

impl Running {
    /// Returns the process ID of the emulator.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the exit status of the emulator; `None` if it is still running or its status cannot be read.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.ended().ok().flatten()
    }

    /// Kills the emulator and waits until it has exited.
    pub fn kill(&mut self) {
        self.child.kill();
    }

    /// Kills the emulator in a background thread, which waits until its memory is freed.
    pub fn end_beside(self) {
        // If no thread can be started, the value is dropped here, and this thread waits for the end.
        let _ = std::thread::Builder::new().spawn(move || drop(self));
    }

    /// Waits until the emulator exits. Returns its exit status.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

/// Arguments and file descriptors that connect an emulator to the files shared with this process.
#[derive(Debug)]
pub struct Wiring {
    /// Arguments for the emulator's command line.
    pub arguments: Vec<String>,
    /// File descriptors that the emulator must inherit.
    pub inherited: Vec<RawFd>,
}

impl Wiring {
    /// Connects the guest's output region to `region`, its debug console to `console` and the trial's specification to
    /// `trial`. `ram` contains one file for the memory of each node, in the order of `sizes`, and true if the guest
    /// writes to these files. If false, memory is mapped privately, as for a restored snapshot.
    pub fn new(
        ram: (&[PathBuf], bool),
        sizes: &[Bytes],
        region: &File,
        region_size: u64,
        console: &File,
        trial: &File,
    ) -> Self {
        let (paths, share) = ram;
        let share = if share { "on" } else { "off" };
        let (region, console, trial) = (region.as_raw_fd(), console.as_raw_fd(), trial.as_raw_fd());
        let mut arguments = Vec::new();
        for (at, (path, size)) in paths.iter().zip(sizes).enumerate() {
            let (name, size) = (memory_name(at), size.0);
            let quoted = path.display().to_string().replace(',', ",,");
            arguments.extend([
                "-object".to_owned(),
                format!(
                    "memory-backend-file,id={name},size={size},mem-path={quoted},share={share}"
                ),
            ]);
        }
        arguments.extend([
            "-object".to_owned(),
            format!(
                "memory-backend-file,id=region,size={region_size},mem-path={},share=on",
                memory::path(region)
            ),
            "-chardev".to_owned(),
            format!("file,id=console,path={}", memory::path(console)),
            "-device".to_owned(),
            format!(
                "isa-debugcon,iobase={:#x},chardev=console",
                pagetide_guest::port::CONSOLE
            ),
        ]);
        arguments.extend(super::machine::MachineSpec::trial_item(&memory::path(
            trial,
        )));
        Self {
            arguments,
            inherited: vec![region, console, trial],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use pagetide_testing::program::write_program;

    #[test]
    fn versions_are_read_as_the_emulator_writes_them() {
        assert_eq!(numbers("QEMU 7.2.22 (Debian 1:7.2+dfsg-7)"), Some((7, 2)));
        assert_eq!(numbers("QEMU 10.0.2"), Some((10, 0)));
        assert_eq!(numbers("QEMU"), None);
    }

    /// Returns the version or error that results from using this shell script as the emulator.
    fn asked(script: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("qemu");
        write_program(&path, &format!("#!/bin/sh\n{script}\n"));
        let mut limits = Limits::QUICK;
        if script.contains("sleep") {
            limits.time = Duration::from_millis(200);
        }
        let asked = Emulator::ask(path.display().to_string(), None, &limits);
        asked
            .map(|emulator| emulator.version)
            .map_err(|why| why.to_string())
    }

    #[test]
    fn an_emulator_that_is_too_old_or_none_is_refused() {
        let version = |version: &str| asked(&format!("echo 'QEMU emulator version {version}'"));
        assert_eq!(version("7.2.22 (Debian)").unwrap(), "QEMU 7.2.22 (Debian)");
        assert_eq!(version("10.0.2").unwrap(), "QEMU 10.0.2");
        for old in ["2.0.0", "7.1.9", "0.15.1"] {
            let why = version(old).unwrap_err();
            assert!(
                why.contains(&format!("QEMU {old}")) && why.contains("7.2 or later"),
                "{why}"
            );
        }
        for odd in ["git", "x.y"] {
            let why = version(odd).unwrap_err();
            assert!(why.contains("not a version"), "{why}");
        }
        let why = asked("echo 'GNU bash, version 5.2'").unwrap_err();
        assert!(why.contains("`GNU bash, version 5.2`"), "{why}");
    }

    #[test]
    fn an_emulator_that_floods_hangs_or_breaks_is_named_with_what_it_did() {
        for (script, words) in [
            ("exec cat /dev/zero", "printed more than 64 KiB"),
            ("exec cat /dev/zero >&2", "printed more than 64 KiB"),
            ("exec sleep 1000", "had not ended after 0.2 s"),
            (
                "echo 'cannot map segment' >&2; exit 127",
                "`cannot map segment`",
            ),
            ("kill -9 $$", "signal: 9"),
        ] {
            let why = asked(script).unwrap_err();
            assert!(
                why.contains(words) && why.contains("/qemu") && !why.contains("``"),
                "{script}: {why}"
            );
        }
    }
}
