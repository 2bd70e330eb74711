//! Running make: cut off from the network, ended with all its children when it should stop or when we die.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use pagetide_kernel::{Lock, Stop};
use rustix::process::{Pid, Signal};

use crate::error::SourceError;

/// How often it is asked whether to stop.
const GLANCE: Duration = Duration::from_millis(50);
/// How long make has to end in order: it removes what is half made.
const ORDERLY: Duration = Duration::from_millis(900);

/// How a build is kept from the network and from outliving us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// The command that goes before make's; empty where nothing of it works here.
    wrapper: Vec<&'static str>,
    /// What does not work here.
    pub lacks: Option<&'static str>,
}

impl Isolation {
    /// The best that works here, by trying.
    pub fn find() -> Self {
        let pids = ["--pid", "--fork", "--kill-child", "--"];
        let as_root = [&["unshare", "--net"][..], &pids].concat();
        let as_user = [
            &["unshare", "--user", "--map-root-user", "--net"][..],
            &pids,
        ]
        .concat();
        for wrapper in [as_root, as_user] {
            if works(&wrapper) {
                return Self {
                    wrapper,
                    lacks: None,
                };
            }
        }
        let lacks = "the build is not cut off from the network, for neither root nor user namespaces are at hand";
        Self {
            wrapper: Vec::new(),
            lacks: Some(lacks),
        }
    }
}

fn works(wrapper: &[&str]) -> bool {
    let Some((program, arguments)) = wrapper.split_first() else {
        return false;
    };
    Command::new(program)
        .args(arguments)
        .arg("true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// How make is run.
#[derive(Debug)]
pub struct Make<'a> {
    /// The top of the source.
    pub source: &'a Path,
    /// The folder that is built in.
    pub out: &'a Path,
    /// A folder for files that are removed again.
    pub scratch: &'a Path,
    /// ccache's folder.
    pub ccache: &'a Path,
    /// The compiler, as make is given it.
    pub compiler: &'a str,
    /// Objects side by side.
    pub jobs: usize,
    /// Where all it says is kept.
    pub log: PathBuf,
    /// How it is cut off.
    pub isolation: &'a Isolation,
    /// Held by make as well, in case it outlives us.
    pub lock: &'a Lock,
    /// Ends it.
    pub stop: &'a Stop,
}

impl Make<'_> {
    /// Makes targets. `variables` are for make and its children; `line` is told each line it says. False where it failed.
    pub fn run(
        &self,
        targets: &[&str],
        variables: &[(&str, String)],
        line: &mut dyn FnMut(&str),
    ) -> Result<bool, SourceError> {
        let fault = |error| SourceError::cache("starting make in", self.out)(error);
        let (reader, writer) = io::pipe().map_err(fault)?;
        let child = self.spawn(targets, variables, writer).map_err(fault)?;
        let mut log = BufWriter::new(
            File::options()
                .create(true)
                .append(true)
                .open(&self.log)
                .map_err(SourceError::cache("writing", &self.log))?,
        );
        let mut running = Running { child };
        let (told, lines) = mpsc::channel::<String>();
        std::thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut bytes = Vec::new();
            while reader
                .read_until(b'\n', &mut bytes)
                .is_ok_and(|count| count > 0)
            {
                let text = String::from_utf8_lossy(&bytes);
                if told.send(text.trim_end().to_owned()).is_err() {
                    return;
                }
                bytes.clear();
            }
        });
        let mut ended: Option<(ExitStatus, Instant)> = None;
        loop {
            match lines.recv_timeout(GLANCE) {
                Ok(text) => {
                    writeln!(log, "{text}").map_err(SourceError::cache("writing", &self.log))?;
                    line(&text);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let status = running.child.wait().map_err(fault)?;
                    return self.outcome(status);
                }
            }
            if self.stop.is_set() {
                running.end();
                return Err(SourceError::Stopped);
            }
            // A child that was left behind may hold the pipe: it is not waited for.
            match ended {
                Some((status, at)) if at.elapsed() > ORDERLY => return self.outcome(status),
                Some(_) => {}
                None => {
                    let status = running.child.try_wait().map_err(fault)?;
                    ended = status.map(|status| (status, Instant::now()));
                }
            }
        }
    }

    fn outcome(&self, status: ExitStatus) -> Result<bool, SourceError> {
        // Whoever killed it, it was not the compiler's doing.
        match (status.success(), status.signal()) {
            (true, _) => Ok(true),
            (false, Some(_)) if self.stop.is_set() => Err(SourceError::Stopped),
            (false, _) => Ok(false),
        }
    }

    fn spawn(
        &self,
        targets: &[&str],
        variables: &[(&str, String)],
        output: io::PipeWriter,
    ) -> io::Result<Child> {
        let mut words = self.isolation.wrapper.iter().copied().chain(["make"]);
        let mut command = Command::new(words.next().unwrap_or("make"));
        command
            .args(words)
            .arg("-C")
            .arg(self.source)
            .arg(format!("O={}", self.out.display()))
            .arg(format!("-j{}", self.jobs.max(1)))
            .arg("ARCH=x86_64")
            .arg(format!("CC={}", self.compiler))
            .arg(format!("HOSTCC={}", self.compiler))
            .args(targets)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("HOME", self.scratch)
            .env("TMPDIR", self.scratch)
            .env("CCACHE_DIR", self.ccache)
            .env("CCACHE_MAXSIZE", "1G")
            .envs(IDENTITY)
            .envs(variables.iter().map(|(name, value)| (*name, value)))
            .stdin(Stdio::from(self.lock.share()?))
            .stdout(output.try_clone()?)
            .stderr(output);
        // A signal typed at the terminal is ours to handle: the build is ended by us, in order.
        command.process_group(0);
        let parent = rustix::process::getpid();
        // SAFETY: between fork and exec only two system calls are made, and nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                // However this process ends, the build ends with it.
                rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
                if rustix::process::getppid() == Some(parent) {
                    Ok(())
                } else {
                    Err(io::Error::from_raw_os_error(libc::ECANCELED))
                }
            });
        }
        command.spawn()
    }
}

/// What a kernel says of its builder: the same for all, so that equal code gives equal images.
const IDENTITY: [(&str, &str); 4] = [
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970"),
    ("KBUILD_BUILD_USER", "pagetide"),
    ("KBUILD_BUILD_HOST", "pagetide"),
    ("KBUILD_BUILD_VERSION", "1"),
];

/// A running make; ended with its children when dropped.
struct Running {
    child: Child,
}

impl Running {
    fn signal(&self, signal: Signal) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    /// Ends it: in order, so that make removes what is half made, else by force.
    fn end(&mut self) {
        self.signal(Signal::TERM);
        let began = Instant::now();
        while began.elapsed() < ORDERLY && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(GLANCE);
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
    }
}
