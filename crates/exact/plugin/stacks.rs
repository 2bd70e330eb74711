//! Call stacks: a tree of functions for each task, from the calls and returns that the CPU executes.
//!
//! Instructions are counted by function. At each call and return, what the function in progress has counted since the
//! last one is given to its node of the tree. The address at which a call stores its return address tells the frames
//! of one stack apart from those of others, and which frames are left. Tasks are told apart by their kernel stacks,
//! which change only where the kernel switches between tasks.

use alloc::vec;
use alloc::vec::Vec;

/// Function of programs.
pub const USER: u32 = 1;
/// Function of a node that stands for a task.
pub const NO_FUNCTION: u32 = u32::MAX;
/// A kernel stack has 16 KiB and is aligned to its size. Source: Linux `arch/x86/include/asm/page_64_types.h`
/// (`THREAD_SIZE`).
const STACK_SHIFT: u32 = 14;
/// Most nodes of the tree. What comes later is given to the caller's node.
const MOST_NODES: usize = 1 << 20;
/// Most frames of a task.
const MOST_FRAMES: usize = 2000;

/// A function in its place of the call tree.
#[derive(Clone, Copy)]
pub struct Node {
    /// Index of the caller's node.
    pub parent: u32,
    /// The function; [`NO_FUNCTION`] for a task.
    pub function: u32,
    /// Instructions executed here, without those of called functions.
    pub own: u64,
    /// Number of calls.
    pub calls: u64,
}

/// A function that continues when the one in progress returns.
#[derive(Clone, Copy)]
struct Frame {
    /// Address of the return address; 0 for one that was interrupted or has called the kernel.
    at: u64,
    node: u32,
    /// True if `node` is the function's node, false if it is that of the function's caller.
    is_known: bool,
}

struct Task {
    /// The address of its kernel stack, shifted.
    stack: u64,
    root: u32,
    frames: Vec<Frame>,
    /// The node in progress, or the caller of the function in progress if that is not known.
    here: u32,
    is_known: bool,
}

/// The call tree of all tasks, and where in it the CPU is.
pub struct Stacks {
    pub nodes: Vec<Node>,
    /// Open hash table from node and function to the index of the child plus one.
    index: Vec<u32>,
    tasks: Vec<Task>,
    now: usize,
    switches: bool,
    /// Count of each function when it was last given to a node.
    given: Vec<u64>,
}

fn same_stack(a: u64, b: u64) -> bool {
    let is_kernel = |at: u64| at >> 63 != 0;
    is_kernel(a) == is_kernel(b) && (!is_kernel(a) || a >> STACK_SHIFT == b >> STACK_SHIFT)
}

impl Stacks {
    /// An empty tree over so many functions.
    pub fn new(functions: usize) -> Self {
        let mut stacks = Self {
            nodes: Vec::new(),
            index: vec![0; 1 << 16],
            tasks: Vec::new(),
            now: 0,
            switches: false,
            given: vec![0; functions],
        };
        stacks.task(0);
        stacks
    }

    /// Adds a task with this kernel stack; returns its position.
    fn task(&mut self, stack: u64) -> usize {
        let root = self.nodes.len() as u32;
        self.nodes.push(Node {
            parent: root,
            function: NO_FUNCTION,
            own: 0,
            calls: 0,
        });
        self.tasks.push(Task {
            stack,
            root,
            frames: Vec::new(),
            here: root,
            is_known: false,
        });
        self.tasks.len() - 1
    }

    /// Root of the tree of the task in progress.
    pub fn root(&self) -> u32 {
        self.tasks[self.now].root
    }

    fn slot(&self, parent: u32, function: u32) -> usize {
        let mask = self.index.len() - 1;
        let key = (u64::from(parent) << 24) ^ u64::from(function);
        let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            match self.index[slot] {
                0 => return slot,
                found => {
                    let node = &self.nodes[found as usize - 1];
                    if node.parent == parent && node.function == function {
                        return slot;
                    }
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Node of a function called from `parent`.
    fn child(&mut self, parent: u32, function: u32) -> u32 {
        let slot = self.slot(parent, function);
        if self.index[slot] != 0 {
            return self.index[slot] - 1;
        }
        if self.nodes.len() >= MOST_NODES {
            return parent;
        }
        self.nodes.push(Node {
            parent,
            function,
            own: 0,
            calls: 0,
        });
        let new = self.nodes.len() as u32;
        self.index[slot] = new;
        if self.nodes.len() * 2 > self.index.len() {
            self.index = vec![0; self.index.len() * 2];
            for at in 0..self.nodes.len() {
                let Node {
                    parent, function, ..
                } = self.nodes[at];
                if function != NO_FUNCTION {
                    let slot = self.slot(parent, function);
                    self.index[slot] = at as u32 + 1;
                }
            }
        }
        new - 1
    }

    /// Gives the node in progress what its function has counted since the last time.
    fn give(&mut self, counts: &[u64]) {
        let task = &self.tasks[self.now];
        if !task.is_known {
            return;
        }
        let node = &mut self.nodes[task.here as usize];
        let function = node.function as usize;
        if let (Some(count), Some(given)) = (counts.get(2 * function), self.given.get_mut(function))
        {
            node.own += count.wrapping_sub(*given);
            *given = *count;
        }
    }

    /// Notes that the CPU executes `function` now, and gives it what it has counted.
    fn in_function(&mut self, function: u32, counts: &[u64]) {
        let Task { here, is_known, .. } = self.tasks[self.now];
        let Node {
            parent,
            function: known,
            ..
        } = self.nodes[here as usize];
        if known == function {
            // If the function in progress was not known, its caller has called no other, but continues.
            self.tasks[self.now].is_known = true;
            return self.give(counts);
        }
        let mut caller = here;
        if is_known {
            // One function has jumped to another.
            self.give(counts);
            caller = parent;
        }
        self.go(caller, function);
        self.give(counts);
    }

    /// Notes that `function` was entered from the node `caller`.
    fn go(&mut self, caller: u32, function: u32) {
        let node = self.child(caller, function);
        self.nodes[node as usize].calls += 1;
        let task = &mut self.tasks[self.now];
        task.here = node;
        task.is_known = true;
    }

    /// Changes to the task whose kernel stack contains `at`, if the kernel is switching tasks.
    fn follow(&mut self, at: u64) {
        if !self.switches || at >> 63 == 0 {
            return;
        }
        self.switches = false;
        let stack = at >> STACK_SHIFT;
        // The newest of several tasks that have used this memory.
        let known = self.tasks.iter().rposition(|task| task.stack == stack);
        self.now = known.unwrap_or_else(|| self.task(stack));
    }

    /// A call from `site` to `target`, if that is known. The return address is stored at `at`.
    pub fn call(&mut self, site: u32, target: Option<u32>, at: u64, counts: &[u64]) {
        self.in_function(site, counts);
        self.follow(at);
        let task = &mut self.tasks[self.now];
        while let Some(top) = task.frames.last()
            && top.at != 0
            && top.at <= at
            && same_stack(top.at, at)
        {
            task.frames.pop();
        }
        if task.frames.len() < MOST_FRAMES {
            task.frames.push(Frame {
                at,
                node: task.here,
                is_known: true,
            });
        }
        task.is_known = false;
        if let Some(target) = target {
            self.go(self.tasks[self.now].here, target);
        }
    }

    /// A return from `site` by the return address stored at `at`.
    pub fn leave(&mut self, site: u32, at: u64, counts: &[u64]) {
        self.in_function(site, counts);
        self.follow(at);
        let task = &mut self.tasks[self.now];
        // Frames above the one that is left are of functions that did not return, or by an address that was moved.
        if let Some(place) = task.frames.iter().rposition(|frame| frame.at == at) {
            task.here = task.frames[place].node;
            task.is_known = true;
            task.frames.truncate(place);
            return;
        }
        while let Some(top) = task.frames.last()
            && top.at != 0
            && top.at < at
            && same_stack(top.at, at)
        {
            task.frames.pop();
        }
        // The call was before the tree began, or its return address was moved.
        let top = task.frames.last();
        task.here = top.map_or(task.root, |top| top.node);
        task.is_known = false;
    }

    /// The program in progress, in `site` if that is known, enters the kernel.
    pub fn enter(&mut self, site: Option<u32>, counts: &[u64]) {
        match site {
            Some(site) => self.in_function(site, counts),
            None => self.give(counts),
        }
        let task = &mut self.tasks[self.now];
        if task.frames.len() < MOST_FRAMES {
            task.frames.push(Frame {
                at: 0,
                node: task.here,
                is_known: task.is_known,
            });
        }
        task.is_known = false;
    }

    /// The kernel, in `site`, returns to what it interrupted or was called by.
    pub fn resume(&mut self, site: u32, counts: &[u64]) {
        self.in_function(site, counts);
        let task = &mut self.tasks[self.now];
        while let Some(top) = task.frames.pop() {
            if top.at == 0 {
                task.here = top.node;
                task.is_known = top.is_known;
                return;
            }
        }
        // The task has not run since the tree began, or is new: nearly always it continues a program.
        let root = task.root;
        self.go(root, USER);
    }

    /// The kernel switches to another task: the next call or return is on that task's stack.
    pub fn switch(&mut self) {
        self.switches = true;
        // The first task's stack is not known before: the function that switches was called on it.
        let task = &mut self.tasks[self.now];
        if task.stack == 0
            && let Some(frame) = task.frames.last()
        {
            task.stack = frame.at >> STACK_SHIFT;
        }
    }

    /// The task in progress is new.
    pub fn fork(&mut self) {
        let stack = self.tasks[self.now].stack;
        self.now = self.task(stack);
    }

    /// Forgets all counts, but not where the CPU is.
    pub fn reset(&mut self, counts: &[u64]) {
        for (function, given) in self.given.iter_mut().enumerate() {
            *given = counts.get(2 * function).copied().unwrap_or(0);
        }
        for node in &mut self.nodes {
            node.own = 0;
            node.calls = 0;
        }
    }
}
