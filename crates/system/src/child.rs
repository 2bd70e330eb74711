//! Child processes with limits on run time and output. A child never outlives this process.
//!
//! [`run`] waits for a program that does one thing and ends. [`start`] returns at once, and the caller watches the
//! child. In both cases the child leads a new process group, so that a signal typed at the terminal does not reach it.
//! The whole group is killed when its [`Running`] is dropped. The kernel kills the child when the thread that started
//! the child ends for any reason.

use std::fmt::{self, Display};
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// Maximum time between two checks of the limits and of the stop request.
const GLANCE: Duration = Duration::from_millis(50);
/// First pause between two checks of a child that has closed its output, and every pause in [`Running::end`].
const SHORT: Duration = Duration::from_millis(1);

/// Limits of a child; if it exceeds one, it is killed.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Maximum run time of the child.
    pub time: Duration,
    /// Maximum number of bytes on standard output; the same limit applies to standard error.
    pub output: usize,
    /// Stop request, polled several times a second. If it returns true, the child is killed.
    pub stop: &'a dyn Fn() -> bool,
}

impl Limits<'static> {
    /// Limits for a program that prints a few lines at once, such as with `--version`: 10 s and 64 KiB.
    pub const QUICK: Self = Self {
        time: Duration::from_secs(10),
        output: 64 << 10,
        stop: &|| false,
    };
}

impl fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits")
            .field("time", &self.time)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

/// Reasons why a child has no output. The text is the second half of a sentence that begins with the program's name:
/// "NAME printed more than 64 KiB".
#[derive(Debug)]
pub enum Failure {
    /// The child could not be started, or an operation on it failed.
    Start(io::Error),
    /// The child ran longer than this time and was killed.
    TooLong(Duration),
    /// The child printed more than this number of bytes on one of its streams and was killed.
    TooMuch(usize),
    /// The child was killed because of a stop request.
    Stopped,
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(cause) => write!(f, "could not be started ({cause})"),
            Self::TooLong(limit) => match limit.as_secs() {
                0..120 => write!(f, "had not ended after {} s", limit.as_secs_f64()),
                120..7200 => write!(f, "had not ended after {} min", limit.as_secs() / 60),
                _ => write!(f, "had not ended after {} h", limit.as_secs() / 3600),
            },
            Self::TooMuch(limit) => {
                write!(f, "printed more than {} KiB", limit.div_ceil(1 << 10))
            }
            Self::Stopped => write!(f, "was told to stop"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        let kind = match failure {
            Failure::Start(cause) => return cause,
            Failure::TooLong(_) => ErrorKind::TimedOut,
            Failure::TooMuch(_) => ErrorKind::FileTooLarge,
            Failure::Stopped => ErrorKind::Interrupted,
        };
        Self::new(kind, format!("it {failure}"))
    }
}

/// Returns a command without standard input, so that the program neither waits for the terminal nor reads from it.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Runs a program to its end and returns its output. If the program exceeds a limit, the program and its process group
/// are killed. Processes that the program leaves running in the group are killed as well.
pub fn run(command: &mut Command, limits: &Limits<'_>) -> Result<Output, Failure> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = start(command).map_err(Failure::Start)?;
    let mut stdout = Stream::new(running.child.stdout.take().map(OwnedFd::from));
    let mut stderr = Stream::new(running.child.stderr.take().map(OwnedFd::from));
    let began = Instant::now();
    let mut pause = SHORT;
    let status = loop {
        if stdout.is_open() || stderr.is_open() {
            wait_for_output(&[&stdout, &stderr]).map_err(Failure::Start)?;
        } else {
            sleep(pause);
            pause = (pause * 2).min(GLANCE);
        }
        // The status is read first, so that all output of an ended child is in the pipes. A pipe that another process keeps
        // open does not delay the end.
        let ended = running.ended().map_err(Failure::Start)?;
        stdout.read(limits.output)?;
        stderr.read(limits.output)?;
        if let Some(status) = ended {
            break status;
        }
        if (limits.stop)() {
            return Err(Failure::Stopped);
        }
        if began.elapsed() >= limits.time {
            return Err(Failure::TooLong(limits.time));
        }
    };
    Ok(Output {
        status,
        stdout: stdout.bytes,
        stderr: stderr.bytes,
    })
}

/// Waits until one of the open streams can be read, for at most [`GLANCE`].
fn wait_for_output(streams: &[&Stream]) -> io::Result<()> {
    let open = streams.iter().filter_map(|stream| stream.pipe.as_ref());
    let mut polled: Vec<PollFd<'_>> = open
        .map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN))
        .collect();
    let timeout = Timespec {
        tv_sec: 0,
        tv_nsec: GLANCE.subsec_nanos().into(),
    };
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Standard output or standard error of a child, with the bytes read so far.
struct Stream {
    /// Read end of the pipe; `None` after end of file.
    pipe: Option<std::fs::File>,
    bytes: Vec<u8>,
}

impl Stream {
    fn new(pipe: Option<OwnedFd>) -> Self {
        Self {
            pipe: pipe.map(std::fs::File::from),
            bytes: Vec::new(),
        }
    }

    fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Reads all available output without waiting. Fails if the stream has more than `limit` bytes in total.
    fn read(&mut self, limit: usize) -> Result<(), Failure> {
        let Some(pipe) = &mut self.pipe else {
            return Ok(());
        };
        rustix::io::ioctl_fionbio(&*pipe, true).map_err(|errno| Failure::Start(errno.into()))?;
        let mut buffer = [0; 16 << 10];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) if self.bytes.len() + count > limit => {
                    return Err(Failure::TooMuch(limit));
                }
                Ok(count) => self.bytes.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(Failure::Start(error)),
            }
        }
        self.pipe = None;
        Ok(())
    }
}

/// IDs of the process groups of all running children, used by [`kill_all`].
static GROUPS: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

fn groups() -> MutexGuard<'static, Vec<Pid>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills all children of this process with their process groups, without waiting for them. To be called by a process
/// that is about to exit without running destructors.
pub fn kill_all() {
    for group in groups().iter() {
        let _ = rustix::process::kill_process_group(*group, Signal::KILL);
    }
}

/// Starts a program as the leader of a new process group. The kernel kills the child when the calling thread ends.
pub fn start(command: &mut Command) -> io::Result<Running> {
    command.process_group(0);
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec only two system calls are made, and nothing is allocated.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            if rustix::process::getppid() == Some(parent) {
                Ok(())
            } else {
                Err(Errno::CANCELED.into())
            }
        });
    }
    let child = command.spawn()?;
    let group = Pid::from_child(&child);
    groups().push(group);
    Ok(Running {
        child,
        group,
        status: None,
    })
}

/// A running child. When dropped, the child is killed with its process group and reaped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    group: Pid,
    status: Option<ExitStatus>,
}

impl Running {
    /// Returns the process ID of the child, which is also the ID of its process group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the exit status of the child; `None` while it runs. After the child has ended, kills the rest of its
    /// process group.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.reap(WaitIdOptions::NOHANG)
    }

    /// Waits for the end of the child, without limit, and then kills the rest of its process group.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.reap(WaitIdOptions::empty())? {
                return Ok(status);
            }
        }
    }

    /// Kills the child with its process group and waits for the child's end.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.wait();
    }

    /// Sends SIGTERM to the child's process group. Kills the rest of it when the child has ended, or after `grace`.
    pub fn end(&mut self, grace: Duration) {
        self.signal(Signal::TERM);
        let began = Instant::now();
        while began.elapsed() < grace && matches!(self.ended(), Ok(None)) {
            sleep(SHORT);
        }
        self.kill();
    }

    /// Sends a signal to the process group, unless the child has been reaped: until then, the kernel gives the child's
    /// ID to no other process.
    fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            let _ = rustix::process::kill_process_group(self.group, signal);
        }
    }

    fn reap(&mut self, how: WaitIdOptions) -> io::Result<Option<ExitStatus>> {
        if self.status.is_some() {
            return Ok(self.status);
        }
        // The child is not reaped here: its process ID must not be reused before the rest of its group is killed.
        let how = how | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::Pid(self.group), how) {
            Ok(Some(_)) => {}
            Ok(None) | Err(Errno::INTR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
        self.signal(Signal::KILL);
        groups().retain(|group| *group != self.group);
        self.status = Some(self.child.wait()?);
        Ok(self.status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut sh = command("sh");
        sh.args(["-c", script]);
        sh
    }

    fn number(output: &[u8]) -> Pid {
        let text = String::from_utf8_lossy(output);
        let number = text.trim().parse().unwrap();
        Pid::from_raw(number).unwrap()
    }

    /// Waits until a process no longer exists or is a zombie.
    fn wait_until_gone(process: Pid) {
        let path = format!("/proc/{}/stat", process.as_raw_nonzero());
        while std::fs::read_to_string(&path).is_ok_and(|stat| !stat.contains(") Z ")) {
            sleep(SHORT);
        }
    }

    const NO_LIMIT: Limits<'static> = Limits {
        time: Duration::MAX,
        output: usize::MAX,
        stop: &|| false,
    };

    #[test]
    fn output_errors_and_exit_code_are_those_of_the_program() {
        let output = run(&mut sh("echo out; echo err >&2; exit 3"), &Limits::QUICK).unwrap();
        assert_eq!(output.stdout, b"out\n");
        assert_eq!(output.stderr, b"err\n");
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn much_output_within_the_limit_is_read_whole() {
        let script = "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2";
        let output = run(&mut sh(script), &NO_LIMIT).unwrap();
        assert_eq!(
            (output.stdout.len(), output.stderr.len()),
            (3_000_000, 3_000_000)
        );
    }

    #[test]
    fn a_child_that_floods_is_killed_at_the_limit_on_either_stream() {
        for script in ["exec cat /dev/zero", "exec cat /dev/zero >&2"] {
            let limits = Limits {
                output: 64 << 10,
                ..NO_LIMIT
            };
            let failure = run(&mut sh(script), &limits).unwrap_err();
            assert!(matches!(failure, Failure::TooMuch(65536)), "{failure}");
            assert_eq!(failure.to_string(), "printed more than 64 KiB");
        }
    }

    #[test]
    fn a_child_that_hangs_is_killed_with_its_own_children() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("note");
        let script = format!("sleep 1000 & echo $! > {}; wait", note.display());
        let stop = || std::fs::read(&note).is_ok_and(|text| text.ends_with(b"\n"));
        let limits = Limits {
            stop: &stop,
            ..NO_LIMIT
        };
        assert!(matches!(
            run(&mut sh(&script), &limits),
            Err(Failure::Stopped)
        ));
        wait_until_gone(number(&std::fs::read(&note).unwrap()));

        let limits = Limits {
            time: Duration::from_millis(30),
            ..NO_LIMIT
        };
        let failure = run(&mut sh("exec >&- 2>&-; sleep 1000"), &limits).unwrap_err();
        assert!(matches!(failure, Failure::TooLong(_)), "{failure}");
    }

    #[test]
    fn what_a_child_leaves_behind_with_its_output_open_is_neither_waited_for_nor_left_running() {
        let output = run(&mut sh("sleep 1000 & echo $!"), &NO_LIMIT).unwrap();
        assert!(output.status.success());
        wait_until_gone(number(&output.stdout));
    }

    #[test]
    fn a_child_ends_with_the_thread_that_started_it_even_if_nothing_is_dropped() {
        let thread = std::thread::spawn(|| {
            let running = start(command("sleep").arg("1000")).unwrap();
            let group = running.group;
            std::mem::forget(running);
            group
        });
        let group = thread.join().unwrap();
        wait_until_gone(group);
        let _ = rustix::process::waitpid(Some(group), rustix::process::WaitOptions::empty());
        groups().retain(|other| *other != group);
    }

    #[test]
    fn a_child_that_takes_time_to_end_in_order_is_given_it() {
        let mut orderly = sh("trap 'exit 7' TERM; echo; while :; do sleep 0.01; done");
        orderly.stdout(Stdio::piped());
        let mut running = start(&mut orderly).unwrap();
        // The child prints after it has set its trap.
        running
            .child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut [0])
            .unwrap();
        running.end(Duration::MAX);
        assert_eq!(running.wait().unwrap().code(), Some(7));
    }

    #[test]
    fn a_program_that_is_not_there_is_told_from_one_that_fails() {
        let failure = run(&mut command("/no/such/program"), &Limits::QUICK).unwrap_err();
        assert!(matches!(&failure, Failure::Start(cause) if cause.kind() == ErrorKind::NotFound));
        assert_eq!(io::Error::from(failure).kind(), ErrorKind::NotFound);
    }
}
