//! A program of a user's own, started in a root of its own as an unprivileged user, watched and reaped.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use pagetide_quantity::{Bytes, Nanos};

use crate::capture::Capture;
use crate::clock::{self, Clock};
use crate::error::Stop;
use crate::group::Group;
use crate::workers::{ProcessUsage, Usage};

/// User and group of the program.
const USER: u32 = 1000;
/// How long processes that the program leaves behind have to end by themselves.
const GRACE: Nanos = Nanos::from_secs(1);
/// How often they are looked at.
const LOOK: Nanos = Nanos::from_millis(1);

/// What is started.
pub(crate) struct Launch<'a> {
    /// The folder that becomes its root.
    pub root: &'a Path,
    /// Its words; the first is a path inside.
    pub command: &'a [String],
    /// Its environment, as `NAME=VALUE`.
    pub environment: &'a [String],
    /// The folder inside in which it starts.
    pub folder: &'a str,
    /// The file inside that it reads as its input.
    pub input: &'a str,
    /// The memory group that it joins.
    pub group: Option<&'a Group>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It was killed at its time limit.
    TimeLimit,
}

/// What is known of a program that ended.
pub(crate) struct Run {
    /// How it ended.
    pub ending: Ending,
    /// From its start to the end of its first process.
    pub elapsed: Nanos,
    /// What the kernel accounted to its first process and those that it waited for, then to each that it left behind.
    pub processes: Vec<ProcessUsage>,
    /// The largest resident memory of one of its processes.
    pub peak: Bytes,
    /// Processes that were still there after the first one had ended, and had to be killed.
    pub left_behind: usize,
    /// What it wrote.
    pub output: Capture,
    /// What it wrote to its standard error.
    pub errors: Capture,
}

impl Run {
    /// What all of its processes used together.
    pub(crate) fn usage(&self) -> Usage {
        let all = self.processes.iter().map(|process| Usage {
            user: process.user,
            system: process.system,
            minor_faults: process.minor_faults,
            major_faults: process.major_faults,
        });
        all.fold(Usage::default(), Usage::plus)
    }
}

/// Texts as a system call wants them.
struct Words {
    /// Keeps what the pointers point to.
    _texts: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Words {
    fn new(words: &[String]) -> Result<Self, Stop> {
        let texts = words.iter().map(|word| text(word.as_bytes()));
        let texts = texts.collect::<Result<Vec<CString>, Stop>>()?;
        let mut pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        pointers.push(ptr::null());
        Ok(Self {
            _texts: texts,
            pointers,
        })
    }
}

fn text(bytes: &[u8]) -> Result<CString, Stop> {
    CString::new(bytes).map_err(|_| {
        Stop::system("cannot start the program")(io::Error::other("a word has a zero byte"))
    })
}

/// Both ends of a pipe, the reading one first; `flags` beside closing on execution.
fn pipe(flags: libc::c_int) -> Result<[OwnedFd; 2], Stop> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), flags | libc::O_CLOEXEC) } != 0 {
        return Err(Stop::last("cannot make a pipe for the program"));
    }
    // SAFETY: both are open, and nobody else has them.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }))
}

/// What a child does before it becomes the program, prepared while nothing of it can fail.
struct Child<'a> {
    door: Option<CString>,
    root: CString,
    folder: CString,
    input: CString,
    program: &'a CStr,
    words: Words,
    environment: Words,
    output: OwnedFd,
    errors: OwnedFd,
}

impl Child<'_> {
    /// Becomes the program. Returns which of [`STEPS`] could not be done, with the system's reason.
    fn go(&self) -> (u8, i32) {
        let failed = |step| {
            let why = io::Error::last_os_error().raw_os_error().unwrap_or(0);
            (step, why)
        };
        // SAFETY: all pointers are C strings, or arrays of them with a null at their end, that live through the calls. The
        // child has a single thread, and what it changes is its own.
        unsafe {
            if libc::setsid() < 0 {
                return failed(0);
            }
            if let Some(door) = &self.door {
                let door = libc::open(door.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                // 0 stands for the process that writes it.
                if door < 0 || libc::write(door, c"0".as_ptr().cast(), 1) != 1 {
                    return failed(7);
                }
            }
            if libc::chroot(self.root.as_ptr()) != 0 || libc::chdir(c"/".as_ptr()) != 0 {
                return failed(1);
            }
            if libc::setgroups(0, ptr::null()) != 0
                || libc::setresgid(USER, USER, USER) != 0
                || libc::setresuid(USER, USER, USER) != 0
                || libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            {
                return failed(2);
            }
            libc::umask(0o022);
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            if libc::chdir(self.folder.as_ptr()) != 0 {
                return failed(3);
            }
            let input = libc::open(self.input.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            if input < 0 {
                return failed(4);
            }
            if libc::dup2(input, 0) < 0
                || libc::dup2(self.output.as_raw_fd(), 1) < 0
                || libc::dup2(self.errors.as_raw_fd(), 2) < 0
            {
                return failed(5);
            }
            libc::execve(
                self.program.as_ptr(),
                self.words.pointers.as_ptr(),
                self.environment.pointers.as_ptr(),
            );
            failed(6)
        }
    }
}

/// Steps of [`Child::go`]: a child says the number of one, so that it need not allocate.
const STEPS: [&str; 8] = [
    "starting a session",
    "entering the root",
    "becoming an unprivileged user",
    "entering the working folder",
    "opening the input",
    "connecting input and output",
    "executing it",
    "joining its memory group",
];

/// A program that was started.
struct RunningProgram<'a> {
    pid: libc::pid_t,
    handle: OwnedFd,
    clock: Clock,
    began: Nanos,
    output: Capture,
    errors: Capture,
    tick: &'a dyn Fn(),
}

impl Launch<'_> {
    /// Runs the program to its end or to its time limit. `tick` is called every second at least.
    pub(crate) fn run(&self, clock: Clock, limit: Nanos, tick: &dyn Fn()) -> Result<Run, Stop> {
        let [output, output_end] = pipe(0)?;
        let [errors, errors_end] = pipe(0)?;
        let [fault, fault_end] = pipe(0)?;
        for end in [&output, &errors] {
            // SAFETY: changes a flag of a descriptor that we hold.
            unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        }
        let (output, errors) = (Capture::new(output)?, Capture::new(errors)?);
        let program = text(self.command.first().map_or(&[][..], |word| word.as_bytes()))?;
        let door = self
            .group
            .map(|group| text(group.door().as_os_str().as_bytes()));
        let child = Child {
            door: door.transpose()?,
            root: text(self.root.as_os_str().as_bytes())?,
            folder: text(self.folder.as_bytes())?,
            input: text(self.input.as_bytes())?,
            program: &program,
            words: Words::new(self.command)?,
            environment: Words::new(self.environment)?,
            output: output_end,
            errors: errors_end,
        };
        // Orphans of the program become our children, and do not get lost.
        // SAFETY: changes an attribute of this process.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
        let began = clock.now();
        // SAFETY: this process has a single thread, so the child may go on with ordinary code.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            let (step, why) = child.go();
            let mut said = [step; 5];
            said[1..].copy_from_slice(&why.to_ne_bytes());
            // SAFETY: the buffer lives through the call; the child ends without running the parent's exit handlers.
            unsafe {
                libc::write(fault_end.as_raw_fd(), said.as_ptr().cast(), said.len());
                libc::_exit(127)
            }
        }
        if pid < 0 {
            return Err(Stop::last("cannot start the program"));
        }
        drop((child, fault_end));
        let handle = handle(pid)?;
        let started = RunningProgram {
            pid,
            handle,
            clock,
            began,
            output,
            errors,
            tick,
        };
        let run = started.watch(limit);
        match fault_of(&fault) {
            Some((what, why)) => Err(Stop::system(format!(
                "cannot start {}, {what}",
                self.command.first().map_or("", String::as_str)
            ))(why)),
            None => Ok(run),
        }
    }
}

/// What a child says that did not become the program.
fn fault_of(pipe: &OwnedFd) -> Option<(&'static str, io::Error)> {
    let mut said = [0_u8; 5];
    // SAFETY: the buffer lives through the call and has as many bytes. The writing end is closed by now.
    let read = unsafe { libc::read(pipe.as_raw_fd(), said.as_mut_ptr().cast(), said.len()) };
    let [step, why @ ..] = said;
    let what = STEPS.get(usize::from(step)).copied().unwrap_or_default();
    let why = io::Error::from_raw_os_error(i32::from_ne_bytes(why));
    (read == 5).then_some((what, why))
}

/// A descriptor that can be read from when the process ends.
fn handle(pid: libc::pid_t) -> Result<OwnedFd, Stop> {
    // SAFETY: takes two numbers; on success a descriptor comes back that nobody else has.
    let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match i32::try_from(handle) {
        // SAFETY: as above.
        Ok(handle) if handle >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(handle) }),
        _ => Err(Stop::last("cannot watch the program")),
    }
}

/// The number of milliseconds in a time, rounded up.
fn millis(time: Nanos) -> libc::c_int {
    libc::c_int::try_from(time.0.div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX)
}

impl RunningProgram<'_> {
    /// Waits for the end of the first process, then of those it leaves behind.
    fn watch(mut self, limit: Nanos) -> Run {
        let second = Nanos::from_secs(1);
        let mut expired = false;
        loop {
            let gone = self.clock.now().since(self.began);
            if gone >= limit && !expired {
                expired = true;
                self.kill_all();
            }
            let left = limit.since(gone);
            let wait = if expired || left > second {
                second
            } else {
                left
            };
            if self.wait(wait) {
                break;
            }
            (self.tick)();
        }
        let elapsed = self.clock.now().since(self.began);
        let mut processes = Vec::with_capacity(8);
        let mut peak = Bytes(0);
        let status = reap(self.pid, 0, &mut processes, &mut peak);
        let left_behind = self.end_of_others(&mut processes, &mut peak);
        self.output.take();
        self.errors.take();
        let status = status.unwrap_or_default();
        let ending = if expired {
            Ending::TimeLimit
        } else if libc::WIFSIGNALED(status) {
            Ending::Signal(libc::WTERMSIG(status))
        } else {
            Ending::Exit(libc::WEXITSTATUS(status))
        };
        Run {
            ending,
            elapsed,
            processes,
            peak,
            left_behind,
            output: self.output,
            errors: self.errors,
        }
    }

    /// Waits for output or the end of the first process; true when it has ended.
    fn wait(&mut self, time: Nanos) -> bool {
        let mut events = [
            self.output.waits_for(),
            self.errors.waits_for(),
            libc::pollfd {
                fd: self.handle.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            },
        ];
        // SAFETY: the array has three elements and lives through the call.
        unsafe { libc::poll(events.as_mut_ptr(), 3, millis(time)) };
        if events[0].revents != 0 {
            self.output.take();
        }
        if events[1].revents != 0 {
            self.errors.take();
        }
        events[2].revents != 0
    }

    /// Waits until the processes that the program left behind have ended; those that do not are killed. Returns how many those
    /// were.
    fn end_of_others(&mut self, processes: &mut Vec<ProcessUsage>, peak: &mut Bytes) -> usize {
        let since = self.clock.now();
        let mut killed = 0;
        loop {
            match reap(-1, libc::WNOHANG, processes, peak) {
                // There is none.
                None => return killed,
                // They run.
                Some(-1) => {}
                Some(_) => continue,
            }
            if self.clock.now().since(since) >= GRACE && killed == 0 {
                killed = self.kill_all().max(1);
            }
            self.output.take();
            self.errors.take();
            (self.tick)();
            clock::sleep(LOOK);
        }
    }

    /// Kills every process of the program. Returns how many there were.
    fn kill_all(&self) -> usize {
        // SAFETY: sends a signal to the session's own group of processes, which the program leads or led.
        unsafe { libc::kill(-self.pid, libc::SIGKILL) };
        let mut killed = 0;
        for pid in descendants() {
            // SAFETY: sends a signal to a process that descends from this one.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            killed += 1;
        }
        killed
    }
}

/// Reaps a child. Returns its status, -1 where it still runs, and nothing where there is none.
fn reap(
    pid: libc::pid_t,
    flags: libc::c_int,
    processes: &mut Vec<ProcessUsage>,
    peak: &mut Bytes,
) -> Option<libc::c_int> {
    // SAFETY: a rusage of zeros is a valid value to write to.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    loop {
        // SAFETY: `status` and `usage` are valid to write to.
        let ended = unsafe { libc::wait4(pid, &raw mut status, flags, &raw mut usage) };
        match ended {
            0 => return Some(-1),
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return None,
            ended => {
                let ended = u32::try_from(ended).unwrap_or(0);
                processes.push(ProcessUsage::of(ended, Usage::from_kernel(&usage)));
                // The kernel counts in KiB.
                let resident = Bytes(u64::try_from(usage.ru_maxrss).unwrap_or(0) << 10);
                *peak = (*peak).max(resident);
                return Some(status);
            }
        }
    }
}

/// Processes that descend from this one.
fn descendants() -> Vec<libc::pid_t> {
    let parents: Vec<(libc::pid_t, libc::pid_t)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // State and parent come after the name in parentheses, which may have any characters.
            let (_, rest) = stat.rsplit_once(')')?;
            Some((pid, rest.split_whitespace().nth(1)?.parse().ok()?))
        })
        .collect();
    let mut found = vec![libc::pid_t::try_from(std::process::id()).unwrap_or(0)];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let children = parents.iter().filter(|(_, of)| *of == parent);
        found.extend(children.map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}
