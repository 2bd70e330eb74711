//! Sleeps: from the time at which a task of the workload leaves the CPU until another task wakes it, with the places at
//! which both tasks were. A task that waits for a lock is woken by the task that releases the lock.
//!
//! Tasks are told apart by their kernel stacks, and the kernel wakes a task by the address of its structure. The two are
//! connected when the kernel switches tasks: `__switch_to_asm` stores the stack pointer of the task that leaves the CPU
//! in the task's structure.
//!
//! A task that was woken, or left the CPU without going to sleep, is in the run queue until it runs. The time slices of
//! other tasks in between tell behind whom it waited.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::format::NO_NODE;

/// Maximum number of combinations of places. Further ones are combined as unknown.
const MAX_SUMS: usize = 1 << 14;
/// Maximum number of time slices that are kept. Time in the run queue before them is behind an unknown task.
const MAX_SLICES: usize = 1 << 16;

/// A task that left the CPU.
struct Sleep {
    /// Node at which it left the CPU.
    node: u32,
    /// Time at which it left the CPU.
    since: u64,
    /// Nodes of all tasks at this time.
    others: Vec<u32>,
    /// How it was woken; `None` if it sleeps, or could run all the time.
    wake: Option<Wake>,
    /// Number of the first time slice after it left the CPU or, if it was woken, of the one in which it was woken.
    slice: usize,
}

/// Time in which one task ran.
struct Slice {
    /// Root of the task's tree.
    root: u32,
    start: u64,
    end: u64,
}

/// Time in the run queue behind one task.
#[derive(Clone, Copy, Default)]
pub struct QueueSum {
    /// Number of the task's time slices that a task of the workload waited for.
    pub count: u64,
    /// Sum of these waits.
    pub time: u64,
}

#[derive(Clone, Copy)]
struct Wake {
    /// Node at which the task that wakes stood when the sleep began; [`NO_NODE`] if it did not exist.
    before: u32,
    /// Node at which it wakes.
    node: u32,
    at: u64,
}

/// Sums over all sleeps with the same places.
#[derive(Clone, Copy, Default)]
pub struct Sum {
    /// Number of sleeps.
    pub count: u64,
    /// Time from leaving the CPU to being woken.
    pub time: u64,
    /// Time of the idle loop until a task of the workload ran again, as in [`crate::stacks::Node::waited`].
    pub idle: u64,
}

/// The sleeps of all tasks of the workload.
#[derive(Default)]
pub struct Sleeps {
    /// Number of each task, by the address of its saved stack pointer.
    tasks: BTreeMap<u64, usize>,
    /// Tasks that have ended, although they may leave the CPU once more.
    ended: BTreeSet<usize>,
    /// Tasks that have left the CPU for the last time, or are about to.
    dead: BTreeSet<usize>,
    sleeping: Vec<Option<Sleep>>,
    /// The latest time slices of all tasks, and the number of the first of them.
    slices: VecDeque<Slice>,
    first: usize,
    /// End of the last time slice.
    last: u64,
    /// True if wakes are recorded. Otherwise a task that sleeps cannot be told from one in the run queue.
    pub has_wakes: bool,
    /// Time that tasks of the workload spent in the run queue, by the root of the task that ran; [`NO_NODE`] if it is not
    /// known.
    pub queue: BTreeMap<u32, QueueSum>,
    /// Sums by three nodes: where the task slept, where the task that woke it stood when the sleep began, and where it
    /// woke it.
    pub sums: BTreeMap<[u32; 3], Sum>,
}

impl Sleeps {
    /// Records that the stack pointer of a task is saved at this address.
    pub fn learn(&mut self, address: u64, task: usize) {
        if !self.ended.contains(&task) {
            self.tasks.insert(address, task);
        }
    }

    /// All known tasks, with the addresses at which their stack pointers are saved.
    pub fn known(&self) -> impl Iterator<Item = (u64, usize)> {
        self.tasks.iter().map(|(address, task)| (*address, *task))
    }

    /// Records that a task ends, so that its structure will be used for another one.
    pub fn end(&mut self, task: usize) {
        self.tasks.retain(|_, known| *known != task);
        self.ended.insert(task);
    }

    /// Records that a task leaves the CPU for the last time.
    pub fn die(&mut self, task: usize) {
        self.dead.insert(task);
    }

    /// Records that a task leaves the CPU. `root` is the root of its tree.
    pub fn slice(&mut self, root: u32, end: u64) {
        if self.slices.len() >= MAX_SLICES {
            self.slices.pop_front();
            self.first += 1;
        }
        let start = core::mem::replace(&mut self.last, end);
        self.slices.push_back(Slice { root, start, end });
    }

    /// Number of the time slice that runs.
    fn next_slice(&self) -> usize {
        self.first + self.slices.len()
    }

    /// Records that a task of the workload leaves the CPU. `others` are the nodes of all tasks.
    pub fn sleep(&mut self, task: usize, since: u64, others: Vec<u32>) {
        if self.dead.contains(&task) {
            return;
        }
        if self.sleeping.len() <= task {
            self.sleeping.resize_with(task + 1, || None);
        }
        self.sleeping[task] = Some(Sleep {
            node: others.get(task).copied().unwrap_or(NO_NODE),
            since,
            others,
            wake: None,
            slice: self.next_slice(),
        });
    }

    /// Records that the task `waker`, at `node`, wakes the task whose stack pointer is saved at this address.
    pub fn wake(&mut self, address: u64, waker: usize, node: u32, at: u64) {
        let Some(task) = self.tasks.get(&address) else {
            return;
        };
        let slice = self.next_slice();
        if let Some(Some(sleep)) = self.sleeping.get_mut(*task)
            && sleep.wake.is_none()
        {
            let before = sleep.others.get(waker).copied().unwrap_or(NO_NODE);
            sleep.wake = Some(Wake { before, node, at });
            sleep.slice = slice;
        }
    }

    /// Adds the time that a task spent in the run queue.
    fn queued(&mut self, sleep: &Sleep) {
        let since = sleep.wake.map_or(sleep.since, |wake| wake.at);
        let mut add = |root: u32, time: u64| {
            if time > 0 {
                let sum = self.queue.entry(root).or_default();
                sum.count += 1;
                sum.time += time;
            }
        };
        let skipped = sleep.slice.saturating_sub(self.first);
        if sleep.slice < self.first
            && let Some(oldest) = self.slices.front()
        {
            add(NO_NODE, oldest.start.saturating_sub(since));
        }
        for slice in self.slices.iter().skip(skipped) {
            add(slice.root, slice.end.saturating_sub(slice.start.max(since)));
        }
    }

    /// Records that a task runs. `idle` is the time of the idle loop that its wait took.
    pub fn run(&mut self, task: usize, idle: u64) {
        let Some(Some(sleep)) = self.sleeping.get_mut(task).map(Option::take) else {
            return;
        };
        if self.has_wakes {
            self.queued(&sleep);
        }
        let Some(Wake { before, node, at }) = sleep.wake else {
            return;
        };
        let mut key = [sleep.node, before, node];
        if self.sums.len() >= MAX_SUMS && !self.sums.contains_key(&key) {
            key = [NO_NODE; 3];
        }
        let sum = self.sums.entry(key).or_default();
        sum.count += 1;
        sum.time += at.saturating_sub(sleep.since);
        sum.idle += idle;
    }

    /// Forgets all sleeps and time slices. `now` is the start of the next time slice.
    pub fn reset(&mut self, now: u64) {
        self.sums.clear();
        self.sleeping.clear();
        self.queue.clear();
        self.slices.clear();
        self.last = now;
    }
}
