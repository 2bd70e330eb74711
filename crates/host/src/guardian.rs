//! The guardian: a process that undoes the changes of a tool (a pagetide process) that has ended without doing so.
//!
//! The tool starts its own program again as the guardian. The guardian has a session of its own, is never in a
//! workload's cgroup, and ignores signals that can be ignored. It holds the reading end of a pipe whose writing end
//! only the tool has, and a descriptor of the tool's process. When the pipe ends, or the process has exited, the
//! guardian undoes what the journal contains, and exits.

use std::fs;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::error::HostError;
use crate::journal::{Content, Journal};
use crate::process::Process;

/// Bytes that the tool writes to the pipe before it exits normally.
const END: &[u8] = b"e";
/// First argument of the guardian's command line.
const ARGUMENT: &str = "--guardian-of-journal";
/// Maximum number of times that the guardian tries to undo a change.
const TRIES: u32 = 3;
/// Signals that the guardian ignores.
const IGNORED: [libc::c_int; 10] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTSTP,
    libc::SIGXCPU,
];

/// The running guardian of this process.
#[derive(Debug)]
pub struct Guardian {
    child: Child,
    pipe: Option<PipeWriter>,
}

impl Guardian {
    /// Starts the guardian of a journal. `program` is the tool's own program, whose `main` must call
    /// [`serve_if_asked`].
    pub fn start(program: &Path, journal: &Journal) -> Result<Self, HostError> {
        let fault = |why: io::Error| HostError::NoGuardian {
            why: format!("{}: {why}", program.display()),
        };
        let (reader, writer) = io::pipe().map_err(fault)?;
        let mut command = Command::new(program);
        command
            .arg0("pagetide-guardian")
            .arg(ARGUMENT)
            .arg(journal.path())
            .arg(std::process::id().to_string())
            .current_dir("/")
            .stdin(reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: between fork and exec, only async-signal-safe calls are made, and no memory is allocated.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                for signal in IGNORED {
                    libc::signal(signal, libc::SIG_IGN);
                }
                Ok(())
            });
        }
        let child = command.spawn().map_err(fault)?;
        let guardian =
            Process::of(child.id()).ok_or_else(|| fault(io::Error::other("it ended at once")))?;
        journal.record_guardian(guardian)?;
        Ok(Self {
            child,
            pipe: Some(writer),
        })
    }

    /// Returns the PID of the guardian.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if the guardian is still running.
    pub fn is_alive(&mut self) -> bool {
        // An error means that the guardian was already waited for elsewhere.
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Tells the guardian that the tool has undone its changes, and waits until the guardian exits.
    pub fn end(mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let _ = pipe.write_all(END);
        }
        let _ = self.child.wait();
    }
}

/// If the command line asks for it, runs as the guardian and then returns true; otherwise does nothing and returns
/// false. Must be called at the start of `main`, before any thread is started, by each program that starts a
/// [`crate::Session`].
pub fn serve_if_asked() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != ARGUMENT) {
        return false;
    }
    let journal = arguments.next().map(PathBuf::from);
    let tool = arguments
        .next()
        .and_then(|tool| tool.to_str()?.parse().ok());
    if let (Some(journal), Some(tool)) = (journal, tool) {
        serve(&journal, tool);
    }
    true
}

/// Waits until the tool is gone, then undoes what the journal contains, unless the tool ended normally.
fn serve(path: &Path, tool: u32) {
    // Makes the OOM killer less likely to choose the guardian. Only root may do this.
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
    let Ok(content) = Content::read(path) else {
        return;
    };
    let process = content.header.tool;
    // The tool may have children that were forked and keep the pipe open, so its process is watched as well.
    let tool = Pid::from_raw(tool.cast_signed());
    let watched = tool.and_then(|tool| pidfd_open(tool, PidfdFlags::empty()).ok());
    wait(watched.as_ref(), process);
    if process.is_alive() && io::stdin().read(&mut [0]).is_ok_and(|read| read > 0) {
        return;
    }
    for attempt in 0..TRIES {
        sleep(Duration::from_secs(u64::from(attempt)));
        // The journal is read again, because the tool has written to it in the meantime.
        let Ok(content) = Content::read(path) else {
            return;
        };
        let Ok(journal) = Journal::take_over(path, content) else {
            return;
        };
        if journal.undo_all().is_empty() {
            return;
        }
    }
}

/// Waits until there is input on standard input or the pipe there ends, or until the tool's process has exited.
fn wait(tool: Option<&OwnedFd>, process: Process) {
    let stdin = io::stdin();
    while process.is_alive() {
        let mut polled = vec![PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
        polled.extend(tool.map(|tool| PollFd::from_borrowed_fd(tool.as_fd(), PollFlags::IN)));
        // Any event means that the tool has ended. A signal is not an event.
        if poll(&mut polled, None) != Err(rustix::io::Errno::INTR) {
            return;
        }
    }
}
