//! Sleeps: from the time at which a task of the workload leaves the CPU until another task wakes it, with the places at
//! which both tasks were. A task that waits for a lock is woken by the task that releases the lock.
//!
//! Tasks are told apart by their kernel stacks, and the kernel wakes a task by the address of its structure. The two are
//! connected when the kernel switches tasks: `__switch_to_asm` stores the stack pointer of the task that leaves the CPU
//! in the task's structure.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::format::NO_NODE;

/// Maximum number of combinations of places. Further ones are combined as unknown.
const MAX_SUMS: usize = 1 << 14;

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
    sleeping: Vec<Option<Sleep>>,
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

    /// Records that a task of the workload leaves the CPU. `others` are the nodes of all tasks.
    pub fn sleep(&mut self, task: usize, since: u64, others: Vec<u32>) {
        if self.sleeping.len() <= task {
            self.sleeping.resize_with(task + 1, || None);
        }
        self.sleeping[task] = Some(Sleep {
            node: others.get(task).copied().unwrap_or(NO_NODE),
            since,
            others,
            wake: None,
        });
    }

    /// Records that the task `waker`, at `node`, wakes the task whose stack pointer is saved at this address.
    pub fn wake(&mut self, address: u64, waker: usize, node: u32, at: u64) {
        let Some(task) = self.tasks.get(&address) else {
            return;
        };
        if let Some(Some(sleep)) = self.sleeping.get_mut(*task) {
            let before = sleep.others.get(waker).copied().unwrap_or(NO_NODE);
            sleep.wake.get_or_insert(Wake { before, node, at });
        }
    }

    /// Records that a task runs. `idle` is the time of the idle loop that its wait took.
    pub fn run(&mut self, task: usize, idle: u64) {
        let Some(Some(sleep)) = self.sleeping.get_mut(task).map(Option::take) else {
            return;
        };
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

    /// Forgets all sleeps.
    pub fn reset(&mut self) {
        self.sums.clear();
        self.sleeping.clear();
    }
}
