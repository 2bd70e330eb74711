//! Call stacks: a call tree for each task, built from the calls and returns that the CPU executes.
//!
//! Instructions are counted for each function. At each call and return, the instructions that the current function has
//! executed since the previous call or return are added to its node in the tree. A frame is identified by the address
//! at which its return address is stored. So a return shows which frames have ended. Tasks are identified by their
//! kernel stacks, which change only when the kernel switches tasks.

use alloc::vec;
use alloc::vec::Vec;

use crate::format::{IDLE, NO_FUNCTION, NO_NODE, USER};
use crate::sleeps::Sleeps;

/// Base-2 logarithm of the size of a kernel stack, 16 KiB. A stack is aligned to its size. Source: Linux
/// `arch/x86/include/asm/page_64_types.h` (`THREAD_SIZE`).
const STACK_SHIFT: u32 = 14;
/// Maximum number of nodes. After that, instructions of a new node are added to the node of the caller.
const MAX_NODES: usize = 1 << 20;
/// Number of nodes below a node that are found without a search. A node takes 64 bytes with them, as a line of a cache.
const RECENT: usize = 3;
/// Maximum number of frames of a task.
const MAX_FRAMES: usize = 2000;

/// A function at one position in a call tree, or the root of the tree of a task.
#[derive(Clone, Copy)]
pub struct Node {
    /// Index of the caller's node; a root has its own index.
    pub parent: u32,
    /// Number of the function; [`NO_FUNCTION`] for the root of the tree of a task.
    pub function: u32,
    /// Instructions executed at this position, without those of called functions.
    pub own: u64,
    /// Number of calls of the function at this position.
    pub calls: u64,
    /// Functions and nodes that were entered below this node most recently, the latest first; a node of 0 is an empty place.
    /// They are here because the memory of this node is needed anyway when it calls a function.
    recent: [[u32; 2]; RECENT],
    /// Instructions that the idle loop executed while a task of the workload waited at this position, and no other task
    /// of the workload was runnable.
    pub waited: u64,
    /// Number of these waits.
    pub waits: u64,
}

impl Node {
    /// A node without counts.
    const fn new(parent: u32, function: u32) -> Self {
        Self {
            parent,
            function,
            own: 0,
            calls: 0,
            recent: [[0; 2]; RECENT],
            waited: 0,
            waits: 0,
        }
    }
}

/// A function that has called another function, or was interrupted, and will continue.
#[derive(Clone, Copy)]
struct Frame {
    /// Address at which the return address is stored; 0 if the function was interrupted or has entered the kernel.
    at: u64,
    node: u32,
    /// True if `node` is the function's own node. False if the function is not known; `node` is then the node of its
    /// caller.
    is_known: bool,
}

struct Task {
    /// Address of the kernel stack of this task, shifted right by [`STACK_SHIFT`].
    stack: u64,
    root: u32,
    frames: Vec<Frame>,
    /// Node of the current function. If the current function is not known, the node of its caller.
    here: u32,
    is_known: bool,
    /// True if the task is new since recording began.
    is_new: bool,
    /// True if the task has executed code of a program, and not only of the kernel.
    is_program: bool,
}

/// The call trees of all tasks, and the current position of the CPU in them.
pub struct Stacks {
    pub nodes: Vec<Node>,
    /// Hash table with open addressing. The key is a node and a called function; the value is the index of the child
    /// node plus one. 0 is an empty slot.
    index: Vec<u32>,
    tasks: Vec<Task>,
    now: usize,
    switches: bool,
    /// Count of each function when its instructions were last added to a node.
    given: Vec<u64>,
    /// Lowest number of a function of a program.
    programs: u32,
    /// Index of the task that runs the scenario.
    main: usize,
    /// Instructions of the idle loop at the latest switch of tasks.
    idle: u64,
    /// Root of the task that runs the idle loop; [`NO_NODE`] if it is not known.
    pub idle_task: u32,
    /// Instructions of the idle loop since a task of the workload last ran.
    waiting: u64,
    /// Instructions that were added to nodes, without those of the idle loop.
    added: u64,
    pub sleeps: Sleeps,
}

fn same_stack(a: u64, b: u64) -> bool {
    let is_kernel = |at: u64| at >> 63 != 0;
    is_kernel(a) == is_kernel(b) && (!is_kernel(a) || a >> STACK_SHIFT == b >> STACK_SHIFT)
}

impl Stacks {
    /// Creates empty call trees for this number of functions. The functions from number `programs` on belong to programs.
    pub fn new(functions: usize, programs: u32) -> Self {
        let mut stacks = Self {
            nodes: Vec::new(),
            index: vec![0; 1 << 16],
            tasks: Vec::new(),
            now: 0,
            switches: false,
            given: vec![0; functions],
            programs,
            main: 0,
            idle: 0,
            idle_task: NO_NODE,
            waiting: 0,
            added: 0,
            sleeps: Sleeps::default(),
        };
        stacks.task(0);
        stacks
    }

    /// Adds a task with this kernel stack. Returns the index of the task.
    fn task(&mut self, stack: u64) -> usize {
        let root = self.nodes.len() as u32;
        self.nodes.push(Node::new(root, NO_FUNCTION));
        self.tasks.push(Task {
            stack,
            root,
            frames: Vec::new(),
            here: root,
            is_known: false,
            is_new: false,
            is_program: false,
        });
        self.tasks.len() - 1
    }

    /// Index of the root of the tree of the current task.
    pub fn root(&self) -> u32 {
        self.tasks[self.now].root
    }

    /// Number of the current function and of its caller, as far as they are known.
    pub fn innermost(&self) -> [u32; 2] {
        let node = &self.nodes[self.tasks[self.now].here as usize];
        [node.function, self.nodes[node.parent as usize].function]
    }

    /// True if an address is on the kernel stack of the current task.
    pub fn is_stack(&self, at: u64) -> bool {
        let task = &self.tasks[self.now];
        let top = task.frames.last().map_or(0, |frame| frame.at);
        at >> STACK_SHIFT == task.stack || at >> STACK_SHIFT == top >> STACK_SHIFT
    }

    /// Number of the current task.
    pub fn now(&self) -> usize {
        self.now
    }

    /// Number of the task that runs the scenario.
    pub fn main(&self) -> usize {
        self.main
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

    /// Index of the node of `function` below the node `parent`. Creates the node if needed; returns `parent` if there
    /// are too many nodes.
    #[inline]
    fn child(&mut self, parent: u32, function: u32) -> u32 {
        let recent = &self.nodes[parent as usize].recent;
        for [known, child] in recent {
            if *known == function && *child != 0 {
                return *child;
            }
        }
        let child = self.find_child(parent, function);
        if child != parent {
            let recent = &mut self.nodes[parent as usize].recent;
            recent.rotate_right(1);
            recent[0] = [function, child];
        }
        child
    }

    /// Same as [`Self::child`], for any node.
    fn find_child(&mut self, parent: u32, function: u32) -> u32 {
        let slot = self.slot(parent, function);
        if self.index[slot] != 0 {
            return self.index[slot] - 1;
        }
        if self.nodes.len() >= MAX_NODES {
            return parent;
        }
        self.nodes.push(Node::new(parent, function));
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

    /// Adds to the current function's node the instructions that the function has executed since the last such
    /// addition. Does nothing if the current function is not known. `counts` are the current counts of all functions.
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
            if node.function != IDLE {
                self.added += count.wrapping_sub(*given);
            }
            *given = *count;
        }
    }

    /// Makes `function` the current function, and adds its instructions to its node.
    fn in_function(&mut self, function: u32, counts: &[u64]) {
        self.tasks[self.now].is_program |= function == USER || function >= self.programs;
        let Task { here, is_known, .. } = self.tasks[self.now];
        let Node {
            parent,
            function: known,
            ..
        } = self.nodes[here as usize];
        if known == function {
            // If the current function was not known, then it is the caller itself, which has called no other function.
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

    /// Makes `function`, called from the node `caller`, the current function, and counts the call.
    fn go(&mut self, caller: u32, function: u32) {
        let node = self.child(caller, function);
        self.nodes[node as usize].calls += 1;
        let task = &mut self.tasks[self.now];
        task.here = node;
        task.is_known = true;
    }

    /// Changes to the task whose kernel stack contains `at`, if the kernel is switching tasks. `counts` are the current
    /// counts of all functions.
    fn follow(&mut self, at: u64, counts: &[u64]) {
        if !self.switches || at >> 63 == 0 {
            return;
        }
        self.switches = false;
        let stack = at >> STACK_SHIFT;
        // Several tasks may have used this stack one after the other. The newest one counts.
        let known = self.tasks.iter().rposition(|task| task.stack == stack);
        self.now = known.unwrap_or_else(|| self.task(stack));
        let waited = self.waited(counts);
        self.sleeps.run(self.now, waited);
    }

    /// Number of instructions up to now, as far as they were added to nodes.
    pub fn time(&self, counts: &[u64]) -> u64 {
        self.added + counts.get(2 * IDLE as usize).copied().unwrap_or(0)
    }

    /// True if the current task belongs to the workload: the task of the scenario, and all tasks that were created since
    /// and run programs.
    fn is_workload(&self) -> bool {
        let task = &self.tasks[self.now];
        self.now == self.main || task.is_new && task.is_program
    }

    /// Node of the current function.
    pub fn here(&self) -> u32 {
        self.tasks[self.now].here
    }

    /// Adds the time in which no task of the workload ran to the node at which the current task waited, if the current
    /// task belongs to the workload. Returns this time.
    fn waited(&mut self, counts: &[u64]) -> u64 {
        let idle = counts.get(2 * IDLE as usize).copied().unwrap_or(0);
        self.waiting += idle.wrapping_sub(self.idle);
        self.idle = idle;
        if self.waiting == 0 || !self.is_workload() {
            return 0;
        }
        let node = &mut self.nodes[self.tasks[self.now].here as usize];
        node.waited += self.waiting;
        node.waits += 1;
        core::mem::take(&mut self.waiting)
    }

    /// Records a call from the function `site` to `target`; `None` if the target is not known. `at` is the address at
    /// which the return address is stored.
    pub fn call(&mut self, site: u32, target: Option<u32>, at: u64, counts: &[u64]) {
        self.in_function(site, counts);
        self.follow(at, counts);
        let task = &mut self.tasks[self.now];
        while let Some(top) = task.frames.last()
            && top.at != 0
            && top.at <= at
            && same_stack(top.at, at)
        {
            task.frames.pop();
        }
        if task.frames.len() < MAX_FRAMES {
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

    /// Records a return from the function `site`. `at` is the address from which the return address was read.
    pub fn leave(&mut self, site: u32, at: u64, counts: &[u64]) {
        self.in_function(site, counts);
        self.follow(at, counts);
        let task = &mut self.tasks[self.now];
        // Frames above this frame belong to functions that did not return, or whose return address was moved.
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
        // The call happened before recording began, or its return address was moved.
        let top = task.frames.last();
        task.here = top.map_or(task.root, |top| top.node);
        task.is_known = false;
    }

    /// Records that the CPU enters the kernel by a system call, a fault or an interrupt. `site` is the current
    /// function; `None` if it is not known.
    pub fn enter(&mut self, site: Option<u32>, counts: &[u64]) {
        match site {
            Some(site) => self.in_function(site, counts),
            None => self.give(counts),
        }
        let task = &mut self.tasks[self.now];
        if task.frames.len() < MAX_FRAMES {
            task.frames.push(Frame {
                at: 0,
                node: task.here,
                is_known: task.is_known,
            });
        }
        task.is_known = false;
    }

    /// Records that the kernel, in the function `site`, returns to the code that it interrupted or that called it.
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
        // The task is new, or has not run since recording began. It nearly always continues a program.
        let root = task.root;
        self.go(root, USER);
    }

    /// Records that the kernel switches to another task. The next call or return is on the stack of that task. `counts`
    /// are the current counts of all functions.
    pub fn switch(&mut self, counts: &[u64]) {
        self.switches = true;
        let time = self.time(counts);
        if counts
            .get(2 * IDLE as usize)
            .is_some_and(|idle| *idle != self.idle)
        {
            self.idle_task = self.root();
        }
        self.sleeps.slice(self.root(), time);
        if self.is_workload() {
            let others = self.tasks.iter().map(|task| task.here).collect();
            self.sleeps.sleep(self.now, time, others);
        }
        // The stack of the first task is not known until now. The function that switches was called on this stack.
        let task = &mut self.tasks[self.now];
        if task.stack == 0
            && let Some(frame) = task.frames.last()
        {
            task.stack = frame.at >> STACK_SHIFT;
        }
    }

    /// Records that the current task was just created.
    pub fn fork(&mut self) {
        let stack = self.tasks[self.now].stack;
        self.now = self.task(stack);
        self.tasks[self.now].is_new = true;
    }

    /// Sets all counts of nodes to zero, but keeps the current position in the trees. From now on, the current task
    /// counts as the one that runs the scenario. `counts` are the current counts of all functions.
    pub fn reset(&mut self, counts: &[u64]) {
        self.main = self.now;
        self.idle = counts.get(2 * IDLE as usize).copied().unwrap_or(0);
        self.waiting = 0;
        self.sleeps.reset(self.time(counts));
        for task in &mut self.tasks {
            task.is_new = false;
        }
        for (function, given) in self.given.iter_mut().enumerate() {
            *given = counts.get(2 * function).copied().unwrap_or(0);
        }
        for node in &mut self.nodes {
            *node = Node::new(node.parent, node.function);
        }
    }
}
