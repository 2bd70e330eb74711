//! Runs make without access to the network. If the user stops the build or this process dies, make and all its children
//! are terminated.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use pagetide_kernel::{Lock, Stop};
use pagetide_system::child::{self, Failure, Limits};

use crate::error::SourceError;

/// Polling interval for requests to stop.
const GLANCE: Duration = Duration::from_millis(50);
/// Time for make to exit after it was asked to; it removes incomplete files in this time.
const ORDERLY: Duration = Duration::from_millis(900);
/// Time limit for a make run.
const LONGEST: Duration = Duration::from_hours(24);
/// Maximum size of make's output in bytes; a build of all modules with warnings prints a few megabytes.
const MAX_PRINTED: usize = 256 << 20;
/// Maximum length of a line in bytes; the rest of a longer line becomes the next line.
const LONGEST_LINE: u64 = 64 << 10;
/// Maximum number of lines that are buffered before they are processed.
const LINES_AHEAD: usize = 1024;

/// How make is kept off the network, and terminated if this process dies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Isolation {
    /// Command that starts make in isolation, to be put before it; empty if no isolation works on this machine.
    wrapper: Vec<&'static str>,
    /// Message for the user if no isolation works on this machine; `None` if one works.
    pub lacks: Option<&'static str>,
}

impl Isolation {
    /// Tries the available kinds of isolation and returns the best one that works on this machine.
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
    let mut command = child::command(program);
    command.args(arguments).arg("true");
    child::run(&mut command, &Limits::QUICK).is_ok_and(|output| output.status.success())
}

/// Parameters of a make run.
#[derive(Debug)]
pub struct Make<'a> {
    /// Path of the top of the source.
    pub source: &'a Path,
    /// Path of the build folder.
    pub out: &'a Path,
    /// Path of a folder for temporary files.
    pub scratch: &'a Path,
    /// Path of the folder of ccache.
    pub ccache: &'a Path,
    /// Command of the compiler, as passed to make.
    pub compiler: &'a str,
    /// Number of objects compiled in parallel.
    pub jobs: usize,
    /// Path of the log file, to which all output of make is appended.
    pub log: PathBuf,
    /// Isolation in which make runs.
    pub isolation: &'a Isolation,
    /// Lock on the folder of the source. make inherits it, so that the source stays locked if make outlives this
    /// process.
    pub lock: &'a Lock,
    /// Flag that is set when the user asks to stop.
    pub stop: &'a Stop,
}

impl Make<'_> {
    /// Runs make for `targets`. `variables` are set on its command line, and `line` receives each line of output.
    /// Returns false if make failed.
    pub fn run(
        &self,
        targets: &[&str],
        variables: &[(&str, String)],
        line: &mut dyn FnMut(&str),
    ) -> Result<bool, SourceError> {
        let fault = |error| SourceError::cache("running make in", self.out)(error);
        let (reader, writer) = io::pipe().map_err(fault)?;
        let mut running = self.spawn(targets, variables, writer).map_err(fault)?;
        let mut log = BufWriter::new(
            File::options()
                .create(true)
                .append(true)
                .open(&self.log)
                .map_err(SourceError::cache("writing", &self.log))?,
        );
        let (told, lines) = mpsc::sync_channel::<String>(LINES_AHEAD);
        std::thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut bytes = Vec::new();
            while (&mut reader)
                .take(LONGEST_LINE)
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
        let (began, mut printed) = (Instant::now(), 0);
        let mut ended: Option<(ExitStatus, Instant)> = None;
        loop {
            match lines.recv_timeout(GLANCE) {
                Ok(text) => {
                    printed += text.len();
                    writeln!(log, "{text}").map_err(SourceError::cache("writing", &self.log))?;
                    line(&text);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let status = running.wait().map_err(fault)?;
                    return self.outcome(status);
                }
            }
            if self.stop.is_set() {
                running.end(ORDERLY);
                return Err(SourceError::Stopped);
            }
            if printed > MAX_PRINTED {
                return Err(fault(Failure::TooMuch(MAX_PRINTED).into()));
            }
            if began.elapsed() > LONGEST {
                return Err(fault(Failure::TooLong(LONGEST).into()));
            }
            // A child of make that is still running may hold the pipe open; it is not waited for.
            match ended {
                Some((status, at)) if at.elapsed() > ORDERLY => return self.outcome(status),
                Some(_) => {}
                None => {
                    let status = running.ended().map_err(fault)?;
                    ended = status.map(|status| (status, Instant::now()));
                }
            }
        }
    }

    fn outcome(&self, status: ExitStatus) -> Result<bool, SourceError> {
        // If make was killed by a signal after a stop, this is not an error of the compiler.
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
    ) -> io::Result<child::Running> {
        let mut words = self.isolation.wrapper.iter().copied().chain(["make"]);
        let mut command = child::command(words.next().unwrap_or("make"));
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
        child::start(&mut command)
    }
}

/// Builder information that is compiled into a kernel. It is the same for all builds, so that equal code gives equal
/// images.
const IDENTITY: [(&str, &str); 4] = [
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970"),
    ("KBUILD_BUILD_USER", "pagetide"),
    ("KBUILD_BUILD_HOST", "pagetide"),
    ("KBUILD_BUILD_VERSION", "1"),
];
