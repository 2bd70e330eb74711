//! Starts processes of a workload, holds them at gates, watches them, and always reaps them.
//!
//! A gate opens for all processes at once, and only when all have arrived, so no wakeup can come too early. Processes
//! wait only for the parent, never for each other. So a process that dies cannot block the others, and the parent
//! checks for dead processes while it waits. A child dies with its parent. Dropping a team kills and reaps its
//! remaining processes.

// Pages have a larger alignment than any word.
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
use crate::mapping::Mapping;
use crate::number;
use crate::page::PAGE;

/// Number of gates of a team. Members pass them in order.
const GATES: usize = 16;
/// Number of values that a member of a team can report to the parent.
pub(crate) const VALUES: usize = 12;
/// Maximum length in bytes of the reason that a member reports for its failure.
const REASON_BYTES: usize = 240;
/// Interval at which a waiting parent checks whether members have died.
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
    /// Stores the reason why the member cannot continue. Long reasons are cut.
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

/// CPU times and page faults of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub user: Nanos,
    pub system: Nanos,
    pub minor_faults: u64,
    pub major_faults: u64,
}

impl Usage {
    /// Returns the resource usage of this process so far.
    pub(crate) fn own() -> Self {
        // SAFETY: a rusage of zeros is a valid value to write to.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is valid to write to.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
        Self::from_kernel(&usage)
    }

    /// Converts the kernel's structure for resource usage.
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

    /// Returns the usage since `before`, an earlier usage of the same process.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            user: self.user.since(before.user),
            system: self.system.since(before.system),
            minor_faults: self.minor_faults - before.minor_faults,
            major_faults: self.major_faults - before.major_faults,
        }
    }

    /// Returns the sum of two usages.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            user: Nanos(self.user.0 + other.user.0),
            system: Nanos(self.system.0 + other.system.0),
            minor_faults: self.minor_faults + other.minor_faults,
            major_faults: self.major_faults + other.major_faults,
        }
    }
}

/// Resource usage of one process of the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUsage {
    /// ID of the process.
    pub pid: u32,
    /// User CPU time of the process.
    pub user: Nanos,
    /// System CPU time of the process.
    pub system: Nanos,
    /// Number of page faults that needed no I/O.
    pub minor_faults: u64,
    /// Number of page faults that had to wait for I/O.
    pub major_faults: u64,
}

impl ProcessUsage {
    /// Returns `usage` as that of this process.
    pub(crate) fn own(usage: Usage) -> Self {
        Self::of(std::process::id(), usage)
    }

    /// Returns `usage` as that of the process with ID `pid`.
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

/// List in which all teams of a trial record the processes that ended.
pub(crate) type Ledger = Rc<RefCell<Notes>>;

/// Data about the processes that have ended.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Resource usage of each ended process, in the order of their end.
    pub processes: Vec<ProcessUsage>,
    /// Total size of the harness's buffers in the members of a team; the maximum over all teams.
    pub buffers: Bytes,
}

/// Result of a member that ended normally.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerEnd {
    /// Values that the member reported.
    pub values: [u64; VALUES],
    /// Resource usage of the member.
    pub usage: Usage,
}

/// A process of a team, as its own code sees it.
pub(crate) struct Member<'a> {
    /// Number of this member in its team, from 0.
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

    /// Reports a value to the parent. `index` must be below [`VALUES`].
    pub(crate) fn put(&self, index: usize, value: u64) {
        self.shared.slot(self.number).values[index].store(value, Ordering::Release);
    }

    /// Returns the value at `index` that this member reported last; 0 if none.
    pub(crate) fn own(&self, index: usize) -> u64 {
        self.shared.slot(self.number).values[index].load(Ordering::Acquire)
    }

    /// Runs `work` in a child process and waits until it exits. The kernel adds the child's resource usage to this
    /// member's, as for every reaped child. The child is killed if this member exits. Fails if `work` fails.
    pub(crate) fn process(
        &mut self,
        what: &str,
        work: impl FnOnce(&Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        // SAFETY: no arguments.
        let parent = unsafe { libc::getpid() };
        // SAFETY: scenarios run in processes of one thread, so no lock can be held in the child.
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
            // Only the kernel sends this signal to the child, for lack of memory. The member ends in the same way, so
            // that the trial reports the true cause.
            // SAFETY: sends a signal to this process itself.
            unsafe { libc::raise(libc::SIGKILL) };
        }
        Err(Stop::Invalid(Invalid::Scenario {
            why: format!("{what}: {}", self.shared.slot(self.number).reason()),
        }))
    }

    /// Returns true if the parent has asked this member to stop.
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
        // Locked if the process has the privilege: it is tiny, and a fault on it would be charged to a member.
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
        // SAFETY: the mapping is large enough, `at` is a multiple of 8 and checked to lie within, and a slot is all
        // atomics.
        unsafe { &*self.memory.start().add(at).cast::<Slot>() }
    }
}

/// Processes that run the same code concurrently, as their parent sees them.
pub(crate) struct Team {
    what: &'static str,
    shared: SharedBoard,
    /// Process ID of each member; 0 once the member is reaped.
    members: Vec<libc::pid_t>,
    opened: usize,
    clock: Clock,
    started: Nanos,
    ledger: Ledger,
    /// Total size of the harness's buffers in the members that ended.
    buffers: Bytes,
}

impl Team {
    /// Starts `members` processes that do `work` and exit; `what` names them in messages. Each stays on the CPU that
    /// `cpu` returns for its number, or runs on any CPU if that is `None`. Fails if a process cannot be created.
    pub(crate) fn start(
        clock: Clock,
        ledger: &Ledger,
        what: &'static str,
        members: u32,
        cpu: impl Fn(u32) -> Option<u32>,
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
            // SAFETY: scenarios run in processes of one thread, so no lock can be held in the child.
            match unsafe { libc::fork() } {
                0 => child(&team.shared, number, parent, cpu(number), &mut work),
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

    /// Waits until every member has arrived at the next gate. Fails if one has died.
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

    /// Returns true if every member has arrived at the next gate, without waiting. Fails if a member has died.
    pub(crate) fn has_gathered(&mut self) -> Result<bool, Stop> {
        let Some(gate) = self.shared.board().gates.get(self.opened) else {
            return Ok(true);
        };
        if gate.arrived.load(Ordering::Acquire) as usize >= self.members.len() {
            return Ok(true);
        }
        self.look_for_the_dead()?;
        Ok(false)
    }

    /// Asks the members to stop. They must check for it.
    pub(crate) fn ask_to_stop(&self) {
        self.shared.board().stop.store(1, Ordering::Release);
    }

    /// Returns the value at `index` that member `number` reported last; 0 if none.
    pub(crate) fn value(&self, number: u32, index: usize) -> u64 {
        self.shared.slot(number).values[index].load(Ordering::Acquire)
    }

    /// Waits until all members have exited. Returns their results in order of their numbers. Fails if a member failed.
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

    /// Fails if a member has ended, because it cannot arrive at a gate any more.
    pub(crate) fn look_for_the_dead(&mut self) -> Result<(), Stop> {
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

    /// Reaps a member and returns its resource usage; `None` if it still runs or was reaped before. Fails if it failed.
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
            // Only the kernel sends this signal to a member of a live team.
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

/// Runs `work` as a member, then exits. Called in the child after fork.
fn child(
    shared: &SharedBoard,
    number: u32,
    parent: libc::pid_t,
    cpu: Option<u32>,
    work: &mut impl FnMut(&mut Member<'_>) -> Result<(), Stop>,
) -> ! {
    die_with(parent);
    if let Some(cpu) = cpu
        && let Err(stop) = stay_on(cpu)
    {
        end(shared.slot(number), Ok(Err(stop)));
    }
    let mut member = Member {
        number,
        shared,
        gate: 0,
    };
    harness::count_anew();
    // Unwinding must not run code of the parent in the child.
    let result = catch_unwind(AssertUnwindSafe(|| work(&mut member)));
    let slot = shared.slot(number);
    slot.buffers.store(harness::most().0, Ordering::Release);
    end(slot, result)
}

/// Restricts this process to one CPU. Fails if the machine has no such CPU.
fn stay_on(cpu: u32) -> Result<(), Stop> {
    // SAFETY: an empty set of CPUs is all zeros; the set lives through the call.
    let done = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    match done {
        0 => Ok(()),
        _ => Err(Stop::last(format!("cannot stay on CPU {cpu}"))),
    }
}

/// Makes this process, which was just forked, die when its parent exits.
fn die_with(parent: libc::pid_t) {
    // SAFETY: sets this process's own attributes; if the parent died before that, there is nobody to work for.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            libc::_exit(1);
        }
    }
}

/// Ends a forked process. The reason for a failure is stored in the member's slot.
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

/// Waits until the word differs from `seen` or a wakeup arrives. Returns false after `timeout`.
pub(crate) fn wait(word: &AtomicU32, seen: u32, timeout: Option<Nanos>) -> bool {
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

/// Wakes all processes that wait on the word.
pub(crate) fn wake(word: &AtomicU32) {
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
