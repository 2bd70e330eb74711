//! Running make: cut off from the network, ended with all its children when it should stop or when we die.

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

/// How often it is asked whether to stop.
const GLANCE: Duration = Duration::from_millis(50);
/// How long make has to end in order: it removes what is half made.
const ORDERLY: Duration = Duration::from_millis(900);
/// Longest run time of make.
const LONGEST: Duration = Duration::from_hours(24);
/// Most bytes that make prints: a build of all modules with warnings prints a few megabytes.
const MOST_PRINTED: usize = 256 << 20;
/// Longest line of it in bytes; the rest of a longer one is the next line.
const LONGEST_LINE: u64 = 64 << 10;
/// Lines that are read before the first of them is looked at.
const LINES_AHEAD: usize = 1024;

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
    let mut command = child::command(program);
    command.args(arguments).arg("true");
    child::run(&mut command, &Limits::QUICK).is_ok_and(|output| output.status.success())
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
            if printed > MOST_PRINTED {
                return Err(fault(Failure::TooMuch(MOST_PRINTED).into()));
            }
            if began.elapsed() > LONGEST {
                return Err(fault(Failure::TooLong(LONGEST).into()));
            }
            // A child that was left behind may hold the pipe: it is not waited for.
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

/// What a kernel says of its builder: the same for all, so that equal code gives equal images.
const IDENTITY: [(&str, &str); 4] = [
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970"),
    ("KBUILD_BUILD_USER", "pagetide"),
    ("KBUILD_BUILD_HOST", "pagetide"),
    ("KBUILD_BUILD_VERSION", "1"),
];
