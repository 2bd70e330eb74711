//! A running program of the user: its output, its end, and its descendants.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use pagetide_quantity::{Bytes, Nanos};

use crate::capture::Capture;
use crate::error::Stop;
use crate::launch::STEPS;
use crate::workers::{ProcessUsage, Usage};

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It exited with this status.
    Exit(i32),
    /// It was killed by this signal.
    Signal(i32),
    /// It was killed at the time limit.
    TimeLimit,
}

impl Ending {
    /// Decodes a wait status.
    fn of(status: libc::c_int) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signal(libc::WTERMSIG(status))
        } else {
            Self::Exit(libc::WEXITSTATUS(status))
        }
    }
}

/// A running program.
pub(crate) struct RunningProgram {
    /// Its first argument.
    name: String,
    /// Process ID of its first process, which is a session leader.
    pid: libc::pid_t,
    handle: OwnedFd,
    /// When it was started.
    pub began: Nanos,
    /// Its standard output.
    pub output: Capture,
    /// Its standard error.
    pub errors: Capture,
    /// Pipe on which the child reports why the program could not be started.
    fault: OwnedFd,
}

impl RunningProgram {
    /// A program whose first process has this ID. Fails if the process cannot be watched.
    pub(crate) fn new(
        name: String,
        pid: libc::pid_t,
        began: Nanos,
        [output, errors]: [Capture; 2],
        fault: OwnedFd,
    ) -> Result<Self, Stop> {
        Ok(Self {
            name,
            pid,
            handle: handle(pid)?,
            began,
            output,
            errors,
            fault,
        })
    }

    /// Events to poll for: output, errors, and the end of its first process.
    pub(crate) fn waits_for(&self) -> [libc::pollfd; 3] {
        [
            self.output.waits_for(),
            self.errors.waits_for(),
            libc::pollfd {
                fd: self.handle.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            },
        ]
    }

    /// Reads available output. Returns true if its first process has ended.
    pub(crate) fn take(&mut self, events: &[libc::pollfd]) -> bool {
        let is_there = |at: usize| events.get(at).is_some_and(|event| event.revents != 0);
        if is_there(0) {
            self.output.take();
        }
        if is_there(1) {
            self.errors.take();
        }
        is_there(2)
    }

    /// True if its first process has ended or is exiting. The kernel closes the open files of a process before it
    /// reports the exit, so a client of the process may notice the end earlier than we do.
    pub(crate) fn is_ending(&self) -> bool {
        // Source: kernel `include/linux/sched.h`.
        const PF_EXITING: u32 = 4;
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        // Flags are the seventh field after the name, which is in parentheses and may contain any character.
        let flags = stat.rsplit_once(')');
        let flags = flags.and_then(|(_, rest)| rest.split_whitespace().nth(6));
        flags
            .and_then(|flags| flags.parse::<u32>().ok())
            .is_some_and(|flags| flags & PF_EXITING != 0)
    }

    /// Reads all available output.
    pub(crate) fn take_all(&mut self) {
        self.output.take();
        self.errors.take();
    }

    /// How its first process ended; it must have ended.
    pub(crate) fn ending(&self, reaped: &mut Reaped) -> Ending {
        let known = reaped.statuses.iter().find(|(pid, _)| *pid == self.pid);
        let status = match known {
            Some((_, status)) => Some(*status),
            None => reaped.reap(self.pid, 0),
        };
        Ending::of(status.unwrap_or_default())
    }

    /// Fails if the child could not execute the program. Must be called after its end; before, it blocks.
    pub(crate) fn could_start(&self) -> Result<(), Stop> {
        let mut said = [0_u8; 5];
        // SAFETY: the buffer lives through the call and has as many bytes. The write end is closed by now.
        let read =
            unsafe { libc::read(self.fault.as_raw_fd(), said.as_mut_ptr().cast(), said.len()) };
        if read != 5 {
            return Ok(());
        }
        let [step, why @ ..] = said;
        let what = STEPS.get(usize::from(step)).copied().unwrap_or_default();
        let why = io::Error::from_raw_os_error(i32::from_ne_bytes(why));
        Err(Stop::system(format!("cannot start {}, {what}", self.name))(
            why,
        ))
    }

    /// True if its session has other live processes.
    pub(crate) fn has_others(&self) -> bool {
        processes().any(|process| process.session == self.pid && process.pid != self.pid)
    }

    /// Kills the processes of its session. Returns their number.
    pub(crate) fn kill(&self) -> usize {
        let own = processes().filter(|process| process.session == self.pid);
        kill_each(own.map(|process| process.pid))
    }
}

/// Kills every descendant of this process. Returns their number.
pub(crate) fn kill_all() -> usize {
    kill_each(descendants().into_iter())
}

/// Number of descendants of this process, without those in the session of `load`.
pub(crate) fn descendants_beside(load: Option<&RunningProgram>) -> usize {
    let all = descendants();
    let is_of_load = |process: &Process| load.is_some_and(|load| process.session == load.pid);
    processes()
        .filter(|process| all.contains(&process.pid) && !is_of_load(process))
        .count()
}

fn kill_each(pids: impl Iterator<Item = libc::pid_t>) -> usize {
    let mut killed = 0;
    for pid in pids {
        // SAFETY: sends a signal to a process that descends from this one.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        killed += 1;
    }
    killed
}

/// Processes that have been reaped, with their resource usage.
#[derive(Default)]
pub(crate) struct Reaped {
    statuses: Vec<(libc::pid_t, libc::c_int)>,
    /// Resource usage of each.
    pub processes: Vec<ProcessUsage>,
    /// Largest resident memory of any of them.
    pub peak: Bytes,
}

impl Reaped {
    /// Reaps a child, or any child for -1. Returns its wait status, -1 if it still runs, and `None` if there is no such
    /// child.
    pub(crate) fn reap(&mut self, pid: libc::pid_t, flags: libc::c_int) -> Option<libc::c_int> {
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
                    self.statuses.push((ended, status));
                    let number = u32::try_from(ended).unwrap_or(0);
                    let usage_of = ProcessUsage::of(number, Usage::from_kernel(&usage));
                    self.processes.push(usage_of);
                    // The kernel reports KiB.
                    let resident = Bytes(u64::try_from(usage.ru_maxrss).unwrap_or(0) << 10);
                    self.peak = self.peak.max(resident);
                    return Some(status);
                }
            }
        }
    }

    /// Reaps all children that have ended. Returns false if there are no more children.
    pub(crate) fn reap_ended(&mut self) -> bool {
        loop {
            match self.reap(-1, libc::WNOHANG) {
                None => return false,
                Some(-1) => return true,
                Some(_) => {}
            }
        }
    }
}

/// A descriptor that becomes readable when the process ends.
fn handle(pid: libc::pid_t) -> Result<OwnedFd, Stop> {
    // SAFETY: takes two numbers; on success a descriptor comes back that nobody else has.
    let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match i32::try_from(handle) {
        // SAFETY: as above.
        Ok(handle) if handle >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(handle) }),
        _ => Err(Stop::last("cannot watch the program")),
    }
}

/// A process, from `/proc/PID/stat`.
struct Process {
    pid: libc::pid_t,
    parent: libc::pid_t,
    session: libc::pid_t,
    is_zombie: bool,
}

/// All processes.
fn all_processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // State, parent, group and session follow the name, which is in parentheses and may contain any character.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut words = rest.split_whitespace();
        let is_zombie = words.next()? == "Z";
        let parent = words.next()?.parse().ok()?;
        Some(Process {
            pid,
            parent,
            session: words.nth(1)?.parse().ok()?,
            is_zombie,
        })
    })
}

/// All processes that are not zombies.
fn processes() -> impl Iterator<Item = Process> {
    all_processes().filter(|process| !process.is_zombie)
}

/// IDs of the live descendants of this process.
fn descendants() -> Vec<libc::pid_t> {
    let parents: Vec<Process> = all_processes().collect();
    let mut found = vec![libc::pid_t::try_from(std::process::id()).unwrap_or(0)];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        let children = parents.iter().filter(|process| process.parent == parent);
        found.extend(children.map(|process| process.pid));
        next += 1;
    }
    let own = found.split_off(1);
    let has_ended = |pid: &libc::pid_t| parents.iter().any(|p| p.pid == *pid && p.is_zombie);
    own.into_iter().filter(|pid| !has_ended(pid)).collect()
}
