//! Follows the state of one task from event to event.

use std::collections::{BTreeMap, HashMap};

use super::super::event::Event;
use super::super::sleep::{SiteNumber, SleepSites};
use super::parts::{Part, Parts};
use super::task_time::{QueueWait, SiteSleeps, TaskAccounting, TaskTime, Waits};
use pagetide_quantity::Nanos;

/// `TASK_UNINTERRUPTIBLE` in a reported task state (include/linux/sched.h).
pub(super) const UNINTERRUPTIBLE: u64 = 2;
/// Bits of a reported task state that mean that the task is not runnable: all bits below `TASK_REPORT_MAX`.
const NOT_RUNNABLE: u64 = 0xff;

/// Scheduling state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No event of the task has been seen yet.
    Unknown,
    OnCpu,
    Blocked,
    Sleeping,
    Ready,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Reclaim,
    Compaction,
}

/// A task's state, and the attribution of its time so far.
#[derive(Debug, Clone)]
pub(super) struct Track {
    accounting: TaskAccounting,
    begin: Option<u64>,
    end: Option<u64>,
    state: State,
    within: Vec<Within>,
    /// True if the task sleeps, or is about to sleep, because it exceeded the dirty limits.
    at_limit: bool,
    last: u64,
    parts: Parts,
    /// Time windows that count, in order; `None` if all time counts.
    windows: Option<Vec<[u64; 2]>>,
    faults: u64,
    scanned: u64,
    reclaimed: u64,
    switches: u64,
    /// The CPU on which the task would run next: that on which it last ran or was woken; `None` if unknown.
    cpu: Option<u32>,
    behind: HashMap<u32, u64>,
    /// Part of the current wait, and its measured time so far in nanoseconds; `None` if the task is not in a wait.
    asleep: Option<(Part, u64)>,
    /// Location in the kernel code of the current sleep, from the stack at the last task switch.
    site: Option<SiteNumber>,
    waits: BTreeMap<Part, Waits>,
    /// Waits in each part at each location: number and longest, and total time.
    slept: BTreeMap<(Part, Option<SiteNumber>), (Waits, Nanos)>,
}

impl Track {
    pub(super) fn new(accounting: &TaskAccounting) -> Self {
        let begin = accounting.begin.map(|time| time.0);
        Self {
            accounting: accounting.clone(),
            begin,
            end: accounting.end.map(|time| time.0),
            state: State::Unknown,
            within: Vec::with_capacity(8),
            at_limit: false,
            last: begin.unwrap_or(0),
            parts: Parts::default(),
            windows: None,
            faults: 0,
            scanned: 0,
            reclaimed: 0,
            switches: 0,
            cpu: None,
            behind: HashMap::new(),
            asleep: None,
            site: None,
            waits: BTreeMap::new(),
            slept: BTreeMap::new(),
        }
    }

    /// Counts only time within these windows, which must be in order and not overlap.
    pub(super) fn only_within(&mut self, windows: Vec<[u64; 2]>) {
        self.windows = Some(windows);
    }

    /// Records that the task was forked. Its measured time begins now, unless another begin was given.
    pub(super) fn made(&mut self, time: u64) {
        if self.begin.is_none() {
            (self.begin, self.last) = (Some(time), time);
            // Earlier events belong to a previous task with the same ID.
            self.within.clear();
            self.state = State::Sleeping;
        }
    }

    /// Records that the task is switched out in this state.
    pub(super) fn leaves(&mut self, time: u64, cpu: u32, state: u64) {
        self.runs(time);
        self.wakes();
        self.site = None;
        self.cpu = Some(cpu);
        self.switches += 1;
        self.state = match state & NOT_RUNNABLE {
            0 => State::Ready,
            state if state & UNINTERRUPTIBLE != 0 => State::Blocked,
            _ => State::Sleeping,
        };
    }

    /// Sets the location in the kernel code where the task sleeps, from the stack event directly after the switch.
    pub(super) fn sleeps_in(&mut self, site: Option<SiteNumber>) {
        if matches!(self.state, State::Blocked | State::Sleeping) {
            self.site = site;
        }
    }

    /// Records that the task is switched in.
    pub(super) fn switched_to(&mut self, time: u64) {
        self.advance(time, State::Unknown);
        self.wakes();
        self.at_limit = false;
        self.state = State::OnCpu;
    }

    /// Records that the task becomes runnable. `cpu` is the CPU it is woken on, if known.
    pub(super) fn woken(&mut self, time: u64, cpu: Option<u32>) {
        self.advance(time, State::Sleeping);
        self.wakes();
        if self.state != State::OnCpu {
            self.state = State::Ready;
            self.cpu = cpu.or(self.cpu);
        }
    }

    /// Attributes the time since the last event to the task's state. If the state is unknown, `assumed` is used.
    fn advance(&mut self, time: u64, assumed: State) {
        if self.begin.is_none() {
            return;
        }
        if self.state == State::Unknown {
            self.state = assumed;
        }
        let time = self.end.map_or(time, |end| time.min(end));
        if time < self.last {
            return;
        }
        let passed = self.counting(self.last, time);
        self.last = time;
        let part = match (self.state, self.within.last()) {
            (State::OnCpu, Some(Within::Reclaim)) => Part::Reclaim,
            (State::OnCpu, Some(Within::Compaction)) => Part::Compaction,
            // At the end, this time is split into user and kernel time, from the accounting.
            (State::OnCpu, None) => Part::Fault,
            (State::Ready, _) => Part::RunQueue,
            (State::Blocked | State::Sleeping, Some(Within::Reclaim)) => Part::ReclaimWait,
            (State::Blocked | State::Sleeping, Some(Within::Compaction)) => Part::CompactionWait,
            (State::Blocked, None) if self.at_limit => Part::DirtyLimit,
            (State::Blocked, None) => Part::IoWait,
            (State::Sleeping, None) => Part::Sleep,
            (State::Unknown, _) => Part::Unexplained,
        };
        self.parts.add(part, passed);
        if matches!(
            part,
            Part::IoWait | Part::DirtyLimit | Part::ReclaimWait | Part::CompactionWait
        ) {
            self.asleep.get_or_insert((part, 0)).1 += passed;
        }
    }

    /// Ends the current wait, if any, and counts it if it took measured time.
    fn wakes(&mut self) {
        if let Some((part, slept)) = self.asleep.take().filter(|(_, slept)| *slept > 0) {
            let slept = Nanos(slept);
            let add = |waits: &mut Waits| {
                waits.count += 1;
                waits.longest = waits.longest.max(slept);
            };
            add(self.waits.entry(part).or_default());
            let (waits, time) = self.slept.entry((part, self.site)).or_default();
            add(waits);
            *time = time.saturating_add(slept);
        }
    }

    /// Records an event of the task itself, which shows that it is on a CPU. Some kernels do not trace the switch from
    /// the idle task to a woken task (6.18 in a virtual machine). A task that appears to wait for a CPU then got the
    /// CPU when it was woken, or when the previous task was switched out.
    fn runs(&mut self, time: u64) {
        if self.state == State::Ready {
            self.state = State::OnCpu;
        }
        self.advance(time, State::OnCpu);
    }

    /// Returns how much of the time from `from` to `to` lies within the windows, in nanoseconds.
    fn counting(&self, from: u64, to: u64) -> u64 {
        let Some(windows) = &self.windows else {
            return to.saturating_sub(from);
        };
        let first = windows.partition_point(|[_, end]| *end <= from);
        windows[first..]
            .iter()
            .take_while(|[begin, _]| *begin < to)
            .map(|[begin, end]| to.min(*end).saturating_sub(from.max(*begin)))
            .sum()
    }

    /// Returns true if this time lies within the windows.
    fn counts(&self, time: u64) -> bool {
        self.windows.is_none() || self.counting(time, time.saturating_add(1)) > 0
    }

    /// Records that task `ran` had the CPU until now. Time in which this task waited for the same CPU is attributed to
    /// `ran`.
    pub(super) fn queue(&mut self, time: u64, cpu: u32, ran: u32) {
        if self.state != State::Ready
            || ran == self.accounting.pid
            || self.cpu.is_some_and(|own| own != cpu)
        {
            return;
        }
        let before = self.parts.get(Part::RunQueue);
        self.advance(time, State::Ready);
        let waited = self.parts.get(Part::RunQueue).saturating_sub(before);
        *self.behind.entry(ran).or_default() += waited.0;
    }

    /// Processes an event of the task itself.
    pub(super) fn own(&mut self, time: u64, event: Event) {
        self.runs(time);
        self.at_limit = match event {
            Event::DirtyLimit { sleeps } => sleeps,
            // On its way to sleep a task submits its plugged requests, and others may complete meanwhile.
            Event::BlockIssue { .. } | Event::BlockOther { .. } | Event::BlockComplete { .. } => {
                self.at_limit
            }
            _ => false,
        };
        match event {
            Event::ReclaimBegin { .. } => self.within.push(Within::Reclaim),
            Event::ReclaimEnd { .. } => self.leave(Within::Reclaim),
            Event::CompactionBegin => self.within.push(Within::Compaction),
            Event::CompactionEnd { .. } => self.leave(Within::Compaction),
            Event::Exit => {
                self.end.get_or_insert(self.last);
            }
            Event::UserFault { .. } => {
                // A fault in user mode means that the task is not in reclaim or compaction; any open begin lost its
                // end.
                self.within.clear();
                self.faults += u64::from(self.counts(time));
            }
            Event::Isolate { scanned, lru, .. } if lru & 1 == 0 && self.counts(time) => {
                self.scanned = self.scanned.saturating_add(scanned);
            }
            Event::ShrinkInactive { reclaimed, .. } if self.counts(time) => {
                self.reclaimed = self.reclaimed.saturating_add(reclaimed);
            }
            _ => {}
        }
    }

    fn leave(&mut self, within: Within) {
        if let Some(at) = self.within.iter().rposition(|&open| open == within) {
            self.within.truncate(at);
        }
    }

    pub(super) fn finish(
        mut self,
        switches_seen: bool,
        latest: u64,
        sites: &SleepSites,
    ) -> TaskTime {
        let end = self.end.unwrap_or(latest);
        self.advance(end, State::Unknown);
        self.wakes();
        let elapsed = Nanos(self.begin.map_or(0, |begin| self.counting(begin, end)));
        let outside = self.parts.get(Part::Fault);
        let on_cpu = outside
            .saturating_add(self.parts.get(Part::Reclaim))
            .saturating_add(self.parts.get(Part::Compaction));
        let accounted = match (self.accounting.user, self.accounting.system) {
            (Some(user), Some(system)) => Some(user.saturating_add(system)),
            _ => None,
        };
        match self.accounting.user {
            Some(user) => {
                self.parts.shift(Part::Fault, Part::Compute, user);
                if let (false, Some(system)) = (switches_seen, self.accounting.system) {
                    // Without task switches, waiting looks like time on the CPU. Keep only the accounted time.
                    let within = self
                        .parts
                        .get(Part::Reclaim)
                        .saturating_add(self.parts.get(Part::Compaction));
                    let kernel = system.saturating_sub(within);
                    let rest = self.parts.get(Part::Fault).saturating_sub(kernel);
                    self.parts.shift(Part::Fault, Part::Unexplained, rest);
                }
            }
            None if self.windows.is_some() => {}
            // Without accounting, user time and fault time cannot be separated.
            None => {
                self.parts.shift(Part::Fault, Part::Unexplained, outside);
            }
        }
        let mut behind: Vec<QueueWait> = self
            .behind
            .into_iter()
            .map(|(pid, time)| QueueWait {
                pid,
                name: String::new(),
                time: Nanos(time),
            })
            .collect();
        behind.sort_by_key(|queued| (std::cmp::Reverse(queued.time), queued.pid));
        TaskTime {
            pid: self.accounting.pid,
            elapsed,
            parts: self.parts,
            faults: self.faults,
            scanned: self.scanned,
            reclaimed: self.reclaimed,
            switches: self.switches,
            on_cpu,
            accounted,
            waits: self.waits,
            slept: slept_in(self.slept, sites),
            behind,
        }
    }
}

/// Converts waits by part and location to a list, longest total time first.
fn slept_in(
    by_site: BTreeMap<(Part, Option<SiteNumber>), (Waits, Nanos)>,
    sites: &SleepSites,
) -> Vec<SiteSleeps> {
    let mut all: Vec<_> = by_site
        .into_iter()
        .map(|((part, site), (waits, time))| SiteSleeps {
            part,
            site: site.and_then(|site| sites.get(site)).cloned(),
            count: waits.count,
            time,
            longest: waits.longest,
        })
        .collect();
    all.sort_by_key(|slept| (std::cmp::Reverse(slept.time), slept.part));
    all
}
