//! The emulator as a child process that never outlives its parent.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use serde_json::Value;

use crate::clock::{self, Clock};
use crate::error::{ExactError, io};
use crate::memory;
use crate::processor::Processor;

/// The emulator's program.
pub const PROGRAM: &str = "qemu-system-x86_64";

/// The emulator on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulator {
    /// Path or name of the program.
    pub program: String,
    /// Its version line, as promised exactness holds for one build.
    pub version: String,
}

impl Emulator {
    /// Asks the installed emulator for its version. `PAGETIDE_QEMU` names another program.
    pub fn find() -> Result<Self, ExactError> {
        let program = std::env::var("PAGETIDE_QEMU").unwrap_or_else(|_| PROGRAM.to_owned());
        let output = Command::new(&program)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|_| ExactError::NoEmulator {
                program: program.clone(),
            })?;
        let text = String::from_utf8_lossy(&output.stdout);
        let version = text.lines().next().unwrap_or_default().trim().to_owned();
        if !version.starts_with("QEMU emulator version") {
            return Err(ExactError::EmulatorVersion {
                program,
                said: version,
            });
        }
        Ok(Self {
            program,
            version: version.replace("QEMU emulator version ", "QEMU "),
        })
    }

    /// Whether the emulator that sent this event goes by the clock it was given.
    pub fn proven(&self, event: &Value) -> Result<(), ExactError> {
        if clock::dated(event) {
            Ok(())
        } else {
            Err(ExactError::OwnClock {
                program: self.program.clone(),
            })
        }
    }

    /// Starts the emulator with these arguments and a [clock of ours](Clock). `inherited` stay open in the child under the
    /// same numbers. Standard error goes to `errors`.
    pub fn start(
        &self,
        arguments: &[String],
        inherited: &[RawFd],
        errors: &File,
    ) -> Result<Running, ExactError> {
        let fault = || io("starting", &self.program);
        let stderr = errors.try_clone().map_err(fault())?;
        let clock = Clock::new()?;
        let mut fds = inherited.to_vec();
        fds.push(clock.fd());
        // SAFETY: takes no arguments and writes no memory.
        let parent = unsafe { libc::getpid() };
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .envs([clock.variable()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr);
        // A signal typed at the terminal is ours to handle: the trial is ended by us, in order.
        command.process_group(0);
        // SAFETY: between fork and exec only async-signal-safe calls are made, on descriptors that stay open until then,
        // and nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                // However this process ends, the emulator ends with it.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // A trial is short: huge pages cost more to clear than they save.
                libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
                if libc::getppid() != parent {
                    return Err(io::Error::from_raw_os_error(libc::ECANCELED));
                }
                for fd in &fds {
                    libc::fcntl(*fd, libc::F_SETFD, 0);
                }
                Ok(())
            });
        }
        let processor = Processor::take();
        let spawned = match &processor {
            Some(processor) => processor.on(|| command.spawn()),
            None => command.spawn(),
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

/// A running emulator; killed and reaped when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Left when the child is reaped: it is dropped after.
    _processor: Option<Processor>,
}

impl Running {
    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it ended, and how.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Kills it and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Kills it, and lets its memory be taken down while the caller goes on.
    pub fn end_beside(self) {
        // Where no thread can be had, it is waited for here: the value is dropped either way.
        let _ = std::thread::Builder::new().spawn(move || drop(self));
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The descriptors and arguments by which an emulator gets its shared files.
#[derive(Debug)]
pub struct Wiring {
    /// Arguments.
    pub arguments: Vec<String>,
    /// Descriptors to inherit.
    pub inherited: Vec<RawFd>,
}

impl Wiring {
    /// Main memory from `ram` (private when a snapshot is restored), the output region from `region`, the debug console
    /// to `console`, the trial's specification from `trial`.
    pub fn new(
        ram: (&Path, bool),
        memory: u64,
        region: &File,
        region_size: u64,
        console: &File,
        trial: &File,
    ) -> Self {
        let (path, share) = ram;
        let share = if share { "on" } else { "off" };
        let (region, console, trial) = (region.as_raw_fd(), console.as_raw_fd(), trial.as_raw_fd());
        let quoted = path.display().to_string().replace(',', ",,");
        let mut arguments = vec![
            "-object".to_owned(),
            format!("memory-backend-file,id=ram,size={memory},mem-path={quoted},share={share}"),
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
        ];
        arguments.extend(super::machine::MachineSpec::trial_item(&memory::path(
            trial,
        )));
        Self {
            arguments,
            inherited: vec![region, console, trial],
        }
    }
}
