//! A running program of the user: its output, how it ends, and its descendants.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use pagetide_quantity::{Bytes, Nanos};

use crate::capture::Capture;
use crate::error::Stop;
use crate::workers::{ProcessUsage, Usage};

/// The way in which a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The program exited with this status.
    Exit(i32),
    /// The program was killed by this signal.
    Signal(i32),
    /// The program was killed at the time limit.
    TimeLimit,
}

impl Ending {
    /// Converts the wait status of a process that has ended.
    fn of(status: libc::c_int) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signal(libc::WTERMSIG(status))
        } else {
            Self::Exit(libc::WEXITSTATUS(status))
        }
    }
}

/// A program that has been started and is being watched.
pub(crate) struct RunningProgram {
    /// First argument of the program, for messages.
    name: String,
    /// PID of the program's first process, which is a session leader.
    pid: libc::pid_t,
    handle: OwnedFd,
    /// Time at which the program was started.
    pub began: Nanos,
    /// Standard output of the program.
    pub output: Capture,
    /// Standard error of the program.
    pub errors: Capture,
    /// Pipe on which the child reports why the program could not be started.
    fault: OwnedFd,
    /// Descriptions of the steps that the child takes before it executes the program. The child reports the index of
    /// the step that failed.
    steps: &'static [&'static str],
}

impl RunningProgram {
    /// Watches a program whose first process has the ID `pid`. Fails if the process cannot be watched.
    pub(crate) fn new(
        name: String,
        pid: libc::pid_t,
        began: Nanos,
        [output, errors]: [Capture; 2],
        (fault, steps): (OwnedFd, &'static [&'static str]),
    ) -> Result<Self, Stop> {
        Ok(Self {
            name,
            pid,
            handle: handle(pid)?,
            began,
            output,
            errors,
            fault,
            steps,
        })
    }

    /// Returns the events to poll for: output, error output, and the exit of the first process.
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

    /// Reads output that is available according to `events`. Returns true if the program's first process has exited.
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

    /// Returns true if the program's first process has exited or is exiting. The kernel closes the open files of a
    /// process before it reports the exit, so a client may notice the exit earlier than this process.
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

    /// Reads all output that is available.
    pub(crate) fn take_all(&mut self) {
        self.output.take();
        self.errors.take();
    }

    /// Returns how the program's first process ended. Must be called after that.
    pub(crate) fn ending(&self, reaped: &mut Reaped) -> Ending {
        let known = reaped.statuses.iter().find(|(pid, _)| *pid == self.pid);
        let status = match known {
            Some((_, status)) => Some(*status),
            None => reaped.reap(self.pid, 0),
        };
        Ending::of(status.unwrap_or_default())
    }

    /// Fails if the child could not execute the program. Must be called after the child has ended, because it would
    /// block before.
    pub(crate) fn could_start(&self) -> Result<(), Stop> {
        let mut said = [0_u8; 5];
        // SAFETY: the buffer lives through the call and has as many bytes. The write end is closed by now.
        let read =
            unsafe { libc::read(self.fault.as_raw_fd(), said.as_mut_ptr().cast(), said.len()) };
        if read != 5 {
            return Ok(());
        }
        let [step, why @ ..] = said;
        let what = self
            .steps
            .get(usize::from(step))
            .copied()
            .unwrap_or_default();
        let why = io::Error::from_raw_os_error(i32::from_ne_bytes(why));
        Err(Stop::system(format!("cannot start {}, {what}", self.name))(
            why,
        ))
    }

    /// Returns true if the program's session has live processes other than its first one.
    pub(crate) fn has_others(&self) -> bool {
        processes().any(|process| process.session == self.pid && process.pid != self.pid)
    }

    /// Kills all processes of the program's session. Returns how many there were.
    pub(crate) fn kill(&self) -> usize {
        let own = processes().filter(|process| process.session == self.pid);
        kill_each(own.map(|process| process.pid))
    }
}

/// Kills every descendant of this process. Returns how many there were.
pub(crate) fn kill_all() -> usize {
    kill_each(descendants().into_iter())
}

/// Returns the number of live descendants of this process, not counting those in the session of `load`.
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
    /// Resource usage of each process, in the order of their end.
    pub processes: Vec<ProcessUsage>,
    /// Maximum resident set size of any of the processes.
    pub peak: Bytes,
}

impl Reaped {
    /// Reaps the child with PID `pid`, or any child if it is -1. Returns its wait status, or -1 if the child is still
    /// running. `None` if there is no such child.
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

    /// Reaps all children that have exited. Returns true if other children are still running.
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

/// Returns a file descriptor that becomes readable when the process exits. Fails if there is no such process.
fn handle(pid: libc::pid_t) -> Result<OwnedFd, Stop> {
    // SAFETY: takes two numbers; on success a descriptor comes back that nobody else has.
    let handle = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match i32::try_from(handle) {
        // SAFETY: on success the system call returns a descriptor that no other code uses.
        Ok(handle) if handle >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(handle) }),
        _ => Err(Stop::last("cannot watch the program")),
    }
}

/// A process, as described in `/proc/PID/stat`.
struct Process {
    pid: libc::pid_t,
    parent: libc::pid_t,
    session: libc::pid_t,
    is_zombie: bool,
}

/// Returns all processes of the system.
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

/// Returns all processes of the system that are not zombies.
fn processes() -> impl Iterator<Item = Process> {
    all_processes().filter(|process| !process.is_zombie)
}

/// Returns the PIDs of all live descendants of this process.
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
