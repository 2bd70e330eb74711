//! Processes of a workload: forked, held at gates, watched, and always reaped.
//!
//! A gate opens for all at once, and only when all have arrived, so no signal can come too early. Processes wait for
//! the parent only, never for each other: one that dies cannot hold up the rest, and the parent looks for the dead
//! while it waits. A child dies with its parent, and a team that is dropped kills and reaps what is left of it.

// Pages are aligned far beyond any word.
#![allow(clippy::cast_ptr_alignment)]

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pagetide_quantity::{Bytes, Nanos, Pages};
use pagetide_record::Invalid;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::error::Stop;
use crate::harness;
use crate::mapping::{Mapping, PAGE};
use crate::number;

/// Gates that a team can pass.
const GATES: usize = 16;
/// Numbers that a member can report.
pub(crate) const VALUES: usize = 12;
/// Longest reason that a member can report, in bytes.
const REASON_BYTES: usize = 240;
/// How long the parent waits before it looks for dead members.
const WATCH: Nanos = Nanos::from_millis(200);

#[repr(C)]
struct Gate {
    arrived: AtomicU32,
    open: AtomicU32,
}

#[repr(C)]
struct Board {
    gates: [Gate; GATES],
    stop: AtomicU32,
}

#[repr(C)]
struct Slot {
    values: [AtomicU64; VALUES],
    buffers: AtomicU64,
    reason: [AtomicU64; REASON_BYTES / 8],
    reason_length: AtomicU32,
}

impl Slot {
    /// Keeps the reason why the member cannot go on.
    fn say(&self, reason: &str) {
        let bytes = &reason.as_bytes()[..reason.len().min(REASON_BYTES)];
        for (word, chunk) in self.reason.iter().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            word.store(u64::from_le_bytes(padded), Ordering::Release);
        }
        self.reason_length
            .store(number::narrow(bytes.len() as u64), Ordering::Release);
    }

    fn reason(&self) -> String {
        let bytes: Vec<u8> = self
            .reason
            .iter()
            .flat_map(|word| word.load(Ordering::Acquire).to_le_bytes())
            .take(self.reason_length.load(Ordering::Acquire) as usize)
            .collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// What the kernel accounted to a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub user: Nanos,
    pub system: Nanos,
    pub minor_faults: u64,
    pub major_faults: u64,
}

impl Usage {
    /// Of this process so far.
    pub(crate) fn own() -> Self {
        // SAFETY: a rusage of zeros is a valid value to write to.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is valid to write to.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
        Self::from_kernel(&usage)
    }

    /// As the kernel tells it.
    pub(crate) fn from_kernel(usage: &libc::rusage) -> Self {
        let nanos = |time: libc::timeval| {
            Nanos(
                u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
                    + u64::try_from(time.tv_usec).unwrap_or(0) * 1_000,
            )
        };
        Self {
            user: nanos(usage.ru_utime),
            system: nanos(usage.ru_stime),
            minor_faults: u64::try_from(usage.ru_minflt).unwrap_or(0),
            major_faults: u64::try_from(usage.ru_majflt).unwrap_or(0),
        }
    }

    /// What came after `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            user: self.user.since(before.user),
            system: self.system.since(before.system),
            minor_faults: self.minor_faults - before.minor_faults,
            major_faults: self.major_faults - before.major_faults,
        }
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            user: Nanos(self.user.0 + other.user.0),
            system: Nanos(self.system.0 + other.system.0),
            minor_faults: self.minor_faults + other.minor_faults,
            major_faults: self.major_faults + other.major_faults,
        }
    }
}

/// What the kernel accounted to one process of the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// Its number.
    pub pid: u32,
    /// Processor time in user mode.
    pub user: Nanos,
    /// Processor time in the kernel.
    pub system: Nanos,
    /// Faults that needed no I/O.
    pub minor_faults: u64,
    /// Faults that waited for I/O.
    pub major_faults: u64,
}

impl ProcessUsage {
    /// This process, with what it used since something.
    pub(crate) fn own(usage: Usage) -> Self {
        Self::of(std::process::id(), usage)
    }

    /// The process of this number.
    pub(crate) fn of(pid: u32, usage: Usage) -> Self {
        Self {
            pid,
            user: usage.user,
            system: usage.system,
            minor_faults: usage.minor_faults,
            major_faults: usage.major_faults,
        }
    }
}

/// Where teams note every process that ended.
pub(crate) type Ledger = Rc<RefCell<Notes>>;

/// Accounting of the processes that ended.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// What the kernel accounted to each.
    pub processes: Vec<ProcessUsage>,
    /// The harness's buffers in all members of the team that had most.
    pub buffers: Bytes,
}

/// A member that ended well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerEnd {
    /// What it reported.
    pub values: [u64; VALUES],
    /// What the kernel accounted to it.
    pub usage: Usage,
}

/// One process of a team, as it sees itself.
pub(crate) struct Member<'a> {
    /// Its number, from 0.
    pub number: u32,
    shared: &'a SharedBoard,
    gate: usize,
}

impl Member<'_> {
    /// Arrives at the next gate and waits until the parent opens it.
    pub(crate) fn gate(&mut self) {
        let Some(gate) = self.shared.board().gates.get(self.gate) else {
            return;
        };
        self.gate += 1;
        gate.arrived.fetch_add(1, Ordering::AcqRel);
        wake(&gate.arrived);
        while gate.open.load(Ordering::Acquire) == 0 {
            wait(&gate.open, 0, None);
        }
    }

    /// Reports a number to the parent.
    pub(crate) fn put(&self, index: usize, value: u64) {
        self.shared.slot(self.number).values[index].store(value, Ordering::Release);
    }

    /// What this member reported so far.
    pub(crate) fn own(&self, index: usize) -> u64 {
        self.shared.slot(self.number).values[index].load(Ordering::Acquire)
    }

    /// Runs `work` in a process of its own and waits for its end; what the process used is added to this member's usage, as
    /// the kernel does for every child that was waited for. The process dies with this member.
    pub(crate) fn process(
        &mut self,
        what: &str,
        work: impl FnOnce(&Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        // SAFETY: no arguments.
        let parent = unsafe { libc::getpid() };
        // SAFETY: scenarios run in processes of one thread, so the child finds no lock held by anybody.
        let pid = match unsafe { libc::fork() } {
            0 => {
                die_with(parent);
                let result = catch_unwind(AssertUnwindSafe(|| work(self)));
                end(self.shared.slot(self.number), result);
            }
            -1 => {
                return Err(Stop::last(format!(
                    "cannot start a {what} in {}",
                    self.number
                )));
            }
            pid => pid,
        };
        let mut status = 0;
        loop {
            // SAFETY: `status` is valid to write to, and the process is this one's child, not yet reaped.
            match unsafe { libc::waitpid(pid, &raw mut status, 0) } {
                -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {
                }
                -1 => return Err(Stop::last(format!("cannot wait for a {what}"))),
                _ => break,
            }
        }
        if status == 0 {
            return Ok(());
        }
        if libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL {
            // Only the kernel sends this signal to it, for lack of memory. The member ends in the same way, so that the
            // trial is told the true cause.
            // SAFETY: sends a signal to this process itself.
            unsafe { libc::raise(libc::SIGKILL) };
        }
        Err(Stop::Invalid(Invalid::Scenario {
            why: format!("{what}: {}", self.shared.slot(self.number).reason()),
        }))
    }

    /// Whether the parent has asked to end.
    pub(crate) fn asked_to_stop(&self) -> bool {
        self.shared.board().stop.load(Ordering::Acquire) != 0
    }
}

struct SharedBoard {
    memory: Mapping,
}

impl SharedBoard {
    fn new(members: u32) -> Result<Self, Stop> {
        let size = size_of::<Board>() + members as usize * size_of::<Slot>();
        let memory = Mapping::shared(Pages(size.div_ceil(PAGE) as u64))?;
        // LockedBuffer as far as allowed: it is tiny, and a fault on it would be charged to a member.
        let _ = memory.lock();
        Ok(Self { memory })
    }

    fn board(&self) -> &Board {
        // SAFETY: the mapping is large enough and page aligned, and a board is all atomics, for which every bit pattern
        // is valid.
        unsafe { &*self.memory.start().cast::<Board>() }
    }

    fn slot(&self, number: u32) -> &Slot {
        let at = size_of::<Board>().next_multiple_of(8) + number as usize * size_of::<Slot>();
        assert!(
            at + size_of::<Slot>() <= self.memory.bytes(),
            "no member {number}"
        );
        // SAFETY: as for the board; `at` is a multiple of 8 and checked to lie within.
        unsafe { &*self.memory.start().add(at).cast::<Slot>() }
    }
}

/// Processes that do the same work side by side.
pub(crate) struct Team {
    what: &'static str,
    shared: SharedBoard,
    /// Process ids; 0 once reaped.
    members: Vec<libc::pid_t>,
    opened: usize,
    clock: Clock,
    started: Nanos,
    ledger: Ledger,
    /// The harness's buffers in members that ended.
    buffers: Bytes,
}

impl Team {
    /// Starts `members` processes, each called `what` in messages, that do `work` and end.
    pub(crate) fn start(
        clock: Clock,
        ledger: &Ledger,
        what: &'static str,
        members: u32,
        mut work: impl FnMut(&mut Member<'_>) -> Result<(), Stop>,
    ) -> Result<Self, Stop> {
        let mut team = Self {
            what,
            shared: SharedBoard::new(members)?,
            members: Vec::with_capacity(members as usize),
            opened: 0,
            clock,
            started: clock.now(),
            ledger: Rc::clone(ledger),
            buffers: Bytes(0),
        };
        // SAFETY: no arguments.
        let parent = unsafe { libc::getpid() };
        for number in 0..members {
            // SAFETY: scenarios run in processes of one thread, so the child finds no lock held by anybody.
            match unsafe { libc::fork() } {
                0 => child(&team.shared, number, parent, &mut work),
                -1 => {
                    return Err(Stop::last(format!(
                        "cannot start {what} {number} of {members}"
                    )));
                }
                pid => team.members.push(pid),
            }
        }
        Ok(team)
    }

    /// Waits until every member has arrived at the next gate.
    pub(crate) fn gathered(&mut self) -> Result<(), Stop> {
        let members = number::narrow(self.members.len() as u64);
        loop {
            let Some(gate) = self.shared.board().gates.get(self.opened) else {
                return Ok(());
            };
            let arrived = gate.arrived.load(Ordering::Acquire);
            if arrived >= members {
                return Ok(());
            }
            if !wait(&gate.arrived, arrived, Some(WATCH)) {
                self.look_for_the_dead()?;
            }
        }
    }

    /// Waits until every member has arrived at the next gate, then opens it for all at once.
    pub(crate) fn open(&mut self) -> Result<(), Stop> {
        self.gathered()?;
        if let Some(gate) = self.shared.board().gates.get(self.opened) {
            gate.open.store(1, Ordering::Release);
            wake(&gate.open);
        }
        self.opened += 1;
        Ok(())
    }

    /// Asks members that look for it to end.
    pub(crate) fn ask_to_stop(&self) {
        self.shared.board().stop.store(1, Ordering::Release);
    }

    /// A number that a member reported so far.
    pub(crate) fn value(&self, number: u32, index: usize) -> u64 {
        self.shared.slot(number).values[index].load(Ordering::Acquire)
    }

    /// Waits for all members to end, in their order.
    pub(crate) fn join(mut self) -> Result<Vec<WorkerEnd>, Stop> {
        let mut ended = Vec::with_capacity(self.members.len());
        for number in 0..number::narrow(self.members.len() as u64) {
            let usage = self.reap(number, 0)?.unwrap_or_default();
            let slot = self.shared.slot(number);
            let values = std::array::from_fn(|index| slot.values[index].load(Ordering::Acquire));
            ended.push(WorkerEnd { values, usage });
        }
        Ok(ended)
    }

    /// A member that has ended cannot arrive at a gate any more.
    fn look_for_the_dead(&mut self) -> Result<(), Stop> {
        for number in 0..number::narrow(self.members.len() as u64) {
            if self.reap(number, libc::WNOHANG)?.is_some() {
                return Err(Stop::Invalid(Invalid::ProcessDied {
                    process: format!("{} {number}", self.what),
                    how: "an early end".to_owned(),
                }));
            }
        }
        Ok(())
    }

    /// Reaps a member; nothing if it still runs.
    fn reap(&mut self, number: u32, flags: libc::c_int) -> Result<Option<Usage>, Stop> {
        let pid = self.members[number as usize];
        if pid == 0 {
            return Ok(None);
        }
        // SAFETY: a rusage of zeros is a valid value to write to.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let mut status = 0;
        loop {
            // SAFETY: `status` and `usage` are valid to write to.
            match unsafe { libc::wait4(pid, &raw mut status, flags, &raw mut usage) } {
                0 => return Ok(None),
                -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {
                }
                -1 => {
                    return Err(Stop::last(format!(
                        "cannot wait for {} {number}",
                        self.what
                    )));
                }
                _ => break,
            }
        }
        self.members[number as usize] = 0;
        let used = Usage::from_kernel(&usage);
        if let (Ok(mut ledger), Ok(pid)) = (self.ledger.try_borrow_mut(), u32::try_from(pid)) {
            ledger.processes.push(ProcessUsage::of(pid, used));
            let buffers = &self.shared.slot(number).buffers;
            self.buffers.0 += buffers.load(Ordering::Acquire);
            ledger.buffers = ledger.buffers.max(self.buffers);
        }
        if status == 0 {
            return Ok(Some(used));
        }
        Err(self.died(number, status))
    }

    fn died(&self, number: u32, status: libc::c_int) -> Stop {
        let process = format!("{} {number}", self.what);
        if libc::WIFSIGNALED(status) {
            let signal = libc::WTERMSIG(status);
            // Only the kernel sends this signal to a member that was not given up.
            if signal == libc::SIGKILL {
                return Stop::killed(&process, self.clock.now().since(self.started));
            }
            return Stop::Invalid(Invalid::ProcessDied {
                process,
                how: format!("signal {signal}"),
            });
        }
        Stop::Invalid(Invalid::Scenario {
            why: format!("{process}: {}", self.shared.slot(number).reason()),
        })
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        for &pid in self.members.iter().filter(|pid| **pid != 0) {
            let mut status = 0;
            // SAFETY: the process is this team's child and not yet reaped, so the id is its own.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, &raw mut status, 0);
            }
        }
    }
}

/// The life of a member.
fn child(
    shared: &SharedBoard,
    number: u32,
    parent: libc::pid_t,
    work: &mut impl FnMut(&mut Member<'_>) -> Result<(), Stop>,
) -> ! {
    die_with(parent);
    let mut member = Member {
        number,
        shared,
        gate: 0,
    };
    harness::count_anew();
    // Unwinding must not run the parent's code in the child.
    let result = catch_unwind(AssertUnwindSafe(|| work(&mut member)));
    let slot = shared.slot(number);
    slot.buffers.store(harness::most().0, Ordering::Release);
    end(slot, result)
}

/// Lets this process, which was just forked, die with its parent.
fn die_with(parent: libc::pid_t) {
    // SAFETY: sets this process's own attributes; if the parent died before that, there is nobody to work for.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(1);
        }
    }
}

/// Ends a forked process; the reason for an early end stays in the member's slot.
fn end(slot: &Slot, result: std::thread::Result<Result<(), Stop>>) -> ! {
    let reason = match result {
        // SAFETY: ends this process at once, without running what the parent registered for its exit.
        Ok(Ok(())) => unsafe { libc::_exit(0) },
        Ok(Err(stop)) => stop.to_string(),
        Err(_) => "it panicked".to_owned(),
    };
    slot.say(&reason);
    // SAFETY: ends this process at once, without running what the parent registered for its exit.
    unsafe { libc::_exit(1) }
}

/// Waits until the word is no longer `seen` or somebody wakes; false after `timeout`.
fn wait(word: &AtomicU32, seen: u32, timeout: Option<Nanos>) -> bool {
    let timeout = timeout.map(|span| libc::timespec {
        tv_sec: number::signed(span.0 / 1_000_000_000),
        tv_nsec: number::signed(span.0 % 1_000_000_000),
    });
    let pointer = timeout
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word lives in shared memory for the whole call, and the timeout is null or valid.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            seen,
            pointer,
            0,
            0,
        )
    };
    result == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ETIMEDOUT)
}

/// Wakes all processes that wait for the word.
fn wake(word: &AtomicU32) {
    // SAFETY: the word lives in shared memory for the whole call; waking writes nothing to it.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE,
            i32::MAX,
            0,
            0,
            0,
        )
    };
}
