//! Raw counts by symbol, and their conversion to a profile: symbols of one function are merged, tasks are named, and
//! small call stacks are combined.

use std::collections::{BTreeMap, HashMap};

use crate::profile::{Function, LockWait, Node, Profile, QueueWait, SMALL, USER, Wait};

/// Number of nodes to which a stored profile is reduced, so that it takes a few hundred KB at most.
const MAX_NODES: usize = 12_000;
/// Maximum number of waits that a profile stores one by one.
const MAX_WAITS: usize = 200;
/// Suffixes that compilers add to the names of copies and parts of a function. Both are counted as the function itself:
/// a part (`.cold`) belongs to it, and a copy (`.isra`, `.constprop`) replaces it.
const SUFFIXES: [&str; 3] = [".cold", ".isra.", ".constprop."];
/// Functions by which a kernel thread is recognised, each with the name of the thread. If the tree of a thread contains
/// several of them, the first one in this list decides.
const THREADS: [(&str, &str); 16] = [
    ("kswapd", "kswapd"),
    ("kcompactd", "kcompactd"),
    ("khugepaged", "khugepaged"),
    ("ksm_scan_thread", "ksmd"),
    ("oom_reaper", "oom_reaper"),
    ("rcu_gp_kthread", "rcu"),
    ("rcu_gp_fqs_loop", "rcu"),
    ("rcu_tasks_kthread", "rcu"),
    ("worker_thread", "kworker"),
    ("process_one_work", "kworker"),
    ("run_ksoftirqd", "ksoftirqd"),
    ("smpboot_thread_fn", "smpboot threads"),
    ("kjournald2", "jbd2"),
    ("damon_fn", "kdamond"),
    ("kthread_worker_fn", "kthread worker"),
    ("kthread", "other kernel threads"),
];
/// Name of the task that ran the scenario.
const WORKLOAD: &str = "workload";
/// Name of the tasks that ran programs, other than the scenario's.
const PROCESSES: &str = "other processes";
/// Name of the task that runs the idle loop. Its instructions are those of interrupts while every other task waits.
const IDLE: &str = "idle task";
/// Name of tasks about which nothing is known, and of instructions outside of any known call stack.
const UNKNOWN: &str = "(unknown)";

/// A symbol, which names a range of addresses, and its counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbol {
    /// Name of the symbol.
    pub name: String,
    /// Name of the module that contains the symbol, if it is in one.
    pub module: Option<String>,
    /// True if the symbol belongs to a program.
    pub is_program: bool,
    /// Number of executed instructions.
    pub instructions: u64,
    /// Number of calls: how often the first instruction was executed.
    pub calls: u64,
}

/// A symbol at one position in the call tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TallyNode {
    /// Index of the caller's node; its own index for the root of a task.
    pub parent: u32,
    /// Index of the symbol; `None` for the root of a task.
    pub symbol: Option<u32>,
    /// Number of instructions executed at this position.
    pub own: u64,
    /// Number of calls of the symbol at this position.
    pub calls: u64,
    /// Instructions of the idle loop while a task of the workload waited at this position, and no other task of the
    /// workload could run.
    pub waited: u64,
    /// Number of these waits.
    pub waits: u64,
}

/// Sleeps of tasks of the workload that another task ended. The nodes are indices in [`Tally::nodes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TallySleep {
    /// Where the task left the CPU.
    pub slept: Option<u32>,
    /// Where the task that woke it stood at that time; `None` if it did not exist yet.
    pub before: Option<u32>,
    /// Where that task was when it woke the sleeping one.
    pub woken: Option<u32>,
    /// Number of sleeps.
    pub count: u64,
    /// Time from leaving the CPU to being woken, in nanoseconds.
    pub time: u64,
    /// Time of the idle loop in these waits, in nanoseconds.
    pub idle: u64,
}

/// Time that tasks of the workload spent in the run queue behind one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TallyQueue {
    /// Root of the task that ran, an index in [`Tally::nodes`]; `None` if it is not known.
    pub root: Option<u32>,
    /// Number of its time slices that a task waited for.
    pub count: u64,
    /// Sum of these waits, in nanoseconds.
    pub time: u64,
}

/// Raw counts of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All symbols, whether executed or not.
    pub symbols: Vec<Symbol>,
    /// Call trees of all tasks; a caller comes before its callees.
    pub nodes: Vec<TallyNode>,
    /// Sleeps of tasks of the workload.
    pub sleeps: Vec<TallySleep>,
    /// Time that tasks of the workload spent in the run queue.
    pub queue: Vec<TallyQueue>,
    /// Index of the root of the task that ran the scenario.
    pub workload: u32,
    /// Index of the root of the task that runs the idle loop; `None` if it is not known.
    pub idle_task: Option<u32>,
    /// Instructions of the idle loop.
    pub idle: u64,
    /// Time of the scenario by the guest's clock, in nanoseconds.
    pub elapsed: u64,
}

/// Returns the name of the function to which a symbol belongs: the symbol's name without the suffixes that compilers
/// add to copies and parts.
pub fn function_name(symbol: &str) -> &str {
    // Most names have no dot, and all suffixes begin with one.
    if !symbol.contains('.') {
        return symbol;
    }
    let ends = SUFFIXES.iter().filter_map(|suffix| symbol.find(suffix));
    match ends.min() {
        Some(end) if end > 0 => &symbol[..end],
        _ => symbol,
    }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A node of the merged call tree: its counts, and its children by function.
#[derive(Default)]
struct Branch {
    own: u64,
    calls: u64,
    below: BTreeMap<u32, usize>,
}

impl Tally {
    /// Converts the raw counts to a profile.
    pub fn profile(&self) -> Profile {
        let (functions, function_of) = self.functions();
        let names: Vec<String> = self.names();
        let mut tasks: Vec<String> = Vec::new();
        let mut branches: Vec<Branch> = Vec::new();
        let mut roots: BTreeMap<usize, usize> = BTreeMap::new();
        let mut root_of = |name: &str, branches: &mut Vec<Branch>| {
            let task = tasks.iter().position(|task| task == name);
            let task = task.unwrap_or_else(|| {
                tasks.push(name.to_owned());
                tasks.len() - 1
            });
            *roots.entry(task).or_insert_with(|| {
                branches.push(Branch::default());
                branches.len() - 1
            })
        };
        let mut given = vec![0_u64; functions.len()];
        let mut place = vec![0; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            let branch = match node.symbol.and_then(|symbol| function_of[symbol as usize]) {
                None if node.parent as usize == at => root_of(&names[at], &mut branches),
                // A function without executed instructions is left out: its node becomes that of its caller.
                None => place[node.parent as usize],
                Some(function) => {
                    given[function as usize] += node.own;
                    below(&mut branches, place[node.parent as usize], function)
                }
            };
            branches[branch].own += node.own;
            branches[branch].calls += node.calls;
            place[at] = branch;
        }
        // The remaining instructions of each function belong to no known call stack.
        for (at, function) in functions.iter().enumerate() {
            let rest = function.instructions.saturating_sub(given[at]);
            if rest > 0 {
                let root = root_of(UNKNOWN, &mut branches);
                let branch = below(&mut branches, root, small(at));
                branches[branch].own += rest;
            }
        }
        let mut profile = Profile {
            elapsed: self.elapsed,
            idle: self.idle,
            functions,
            ..Profile::new()
        };
        let roots: Vec<(usize, usize)> = roots.into_iter().collect();
        profile.nodes = pruned(&branches, &roots, &mut profile.functions);
        profile.tasks = tasks;
        profile.waits = self.waits(&names);
        profile.locks = self.locks(&names);
        profile.queue = self.queue(&names);
        profile
    }

    /// Call stack of a node, from its task to its function. `names` are the names of the tasks of all roots.
    fn stack<'a>(&'a self, names: &'a [String], node: usize) -> Vec<&'a str> {
        let up = std::iter::successors(Some(node), |at| {
            let node = &self.nodes[*at];
            node.symbol.map(|_| node.parent as usize)
        });
        let name = |at: usize| match self.nodes[at].symbol {
            Some(symbol) => function_name(&self.symbols[symbol as usize].name),
            None => names[at].as_str(),
        };
        let mut stack: Vec<&str> = up.map(name).collect();
        stack.reverse();
        stack
    }

    /// Returns the waits for locks, longest first.
    fn locks(&self, names: &[String]) -> Vec<LockWait> {
        let stack = |node: Option<u32>| {
            let stack = node.map(|node| self.stack(names, node as usize));
            let stack = stack.unwrap_or_default().into_iter();
            stack.map(str::to_owned).collect::<Vec<String>>()
        };
        let mut sums: BTreeMap<_, LockWait> = BTreeMap::new();
        for sleep in &self.sleeps {
            let [slept, before, woken] = [sleep.slept, sleep.before, sleep.woken].map(stack);
            let Some(found) = LockWait::of(slept, &before, &woken) else {
                continue;
            };
            let key = (found.stack.clone(), found.holder.clone());
            let sum = sums.entry(key).or_insert(found);
            sum.count += sleep.count;
            sum.time += sleep.time;
            sum.idle += sleep.idle;
        }
        let mut all: Vec<LockWait> = sums.into_values().collect();
        all.sort_by_key(|wait| std::cmp::Reverse(wait.time));
        all.truncate(MAX_WAITS);
        all
    }

    /// Returns the waits in the run queue by the task that ran, longest first.
    fn queue(&self, names: &[String]) -> Vec<QueueWait> {
        let mut sums: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
        for one in &self.queue {
            let name = one
                .root
                .map_or(UNKNOWN, |root| names[root as usize].as_str());
            let sum = sums.entry(name).or_default();
            sum[0] += one.time;
            sum[1] += one.count;
        }
        let row = |(behind, [time, count]): (&str, [u64; 2])| QueueWait {
            behind: behind.to_owned(),
            time,
            count,
        };
        let mut all: Vec<QueueWait> = sums.into_iter().map(row).collect();
        all.sort_by_key(|wait| std::cmp::Reverse(wait.time));
        all
    }

    /// Returns the waits by call stack, longest first. `names` are the names of the tasks of all roots. The times add
    /// up to the time of the idle loop.
    fn waits(&self, names: &[String]) -> Vec<Wait> {
        let mut sums: BTreeMap<Vec<&str>, [u64; 2]> = BTreeMap::new();
        for (at, node) in self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.waits > 0)
        {
            let sum = sums.entry(self.stack(names, at)).or_default();
            sum[0] += node.waited;
            sum[1] += node.waits;
        }
        let mut waits: Vec<Wait> = sums
            .into_iter()
            .map(|(stack, [time, count])| Wait {
                stack: stack.into_iter().map(str::to_owned).collect(),
                time,
                count,
            })
            .collect();
        waits.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.stack.cmp(&b.stack)));
        let mut small = Wait::default();
        for wait in waits.drain(waits.len().min(MAX_WAITS)..) {
            small.time += wait.time;
            small.count += wait.count;
        }
        let known: u64 = waits.iter().map(|wait| wait.time).sum();
        small.time += self.idle.saturating_sub(known + small.time);
        if small.time > 0 {
            waits.push(small);
        }
        waits
    }

    /// Returns the functions that executed an instruction, most instructions first. Also returns for each symbol the
    /// index of its function; `None` if the function executed nothing, or no node has the symbol and it was not executed.
    fn functions(&self) -> (Vec<Function>, Vec<Option<u32>>) {
        /// Name and module, which identify a function.
        type Key<'a> = (&'a str, Option<&'a str>);
        // Most symbols of a kernel are not executed.
        let mut is_used: Vec<bool> = self
            .symbols
            .iter()
            .map(|symbol| symbol.instructions != 0 || symbol.calls != 0)
            .collect();
        for symbol in self.nodes.iter().filter_map(|node| node.symbol) {
            is_used[symbol as usize] = true;
        }
        let mut merged: HashMap<Key<'_>, (bool, [u64; 2])> = HashMap::new();
        for (symbol, _) in self.symbols.iter().zip(&is_used).filter(|(_, used)| **used) {
            let (is_program, sums) = merged
                .entry((function_name(&symbol.name), symbol.module.as_deref()))
                .or_default();
            *is_program = symbol.is_program;
            sums[0] += symbol.instructions;
            sums[1] += symbol.calls;
        }
        let mut functions: Vec<Function> = merged
            .iter()
            .filter(|(_, (_, [instructions, _]))| *instructions > 0)
            .map(
                |((name, module), (is_program, [instructions, calls]))| Function {
                    name: (*name).to_owned(),
                    module: module.map(str::to_owned),
                    is_program: *is_program,
                    instructions: *instructions,
                    calls: *calls,
                },
            )
            .collect();
        functions.sort_by(|a, b| {
            let order = b.instructions.cmp(&a.instructions);
            order.then_with(|| (&a.name, &a.module).cmp(&(&b.name, &b.module)))
        });
        let places: HashMap<(&str, Option<&str>), u32> = functions
            .iter()
            .enumerate()
            .map(|(at, function)| {
                (
                    (function.name.as_str(), function.module.as_deref()),
                    small(at),
                )
            })
            .collect();
        let of_symbols = self
            .symbols
            .iter()
            .zip(is_used)
            .map(|(symbol, is_used)| {
                is_used.then_some(())?;
                let key = (function_name(&symbol.name), symbol.module.as_deref());
                places.get(&key).copied()
            })
            .collect();
        (functions, of_symbols)
    }

    /// Returns for each node the name of its task if the node is a root, otherwise an empty text.
    fn names(&self) -> Vec<String> {
        let mut root = vec![0_usize; self.nodes.len()];
        // Found for each root: the best known thread, and whether a program ran.
        let mut found: BTreeMap<usize, (usize, bool)> = BTreeMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let Some(symbol) = node.symbol else {
                root[at] = at;
                found.insert(at, (THREADS.len(), false));
                continue;
            };
            root[at] = root[node.parent as usize];
            let name = function_name(&self.symbols[symbol as usize].name);
            if let Some((thread, is_program)) = found.get_mut(&root[at]) {
                // Only the outermost functions of a tree identify a thread.
                let outer = self.nodes[node.parent as usize];
                let is_outer = outer.symbol.is_none_or(|outer| {
                    ["kthread", "ret_from_fork", "ret_from_fork_asm"]
                        .contains(&self.symbols[outer as usize].name.as_str())
                });
                if is_outer {
                    let known = THREADS.iter().position(|(known, _)| *known == name);
                    *thread = known.map_or(*thread, |known| known.min(*thread));
                }
                *is_program |= name == USER || self.symbols[symbol as usize].is_program;
            }
        }
        let mut names = vec![String::new(); self.nodes.len()];
        for (at, (thread, is_program)) in found {
            let name = match THREADS.get(thread) {
                _ if at == self.workload as usize => WORKLOAD,
                _ if self.idle_task.is_some_and(|idle| at == idle as usize) => IDLE,
                Some((_, name)) => name,
                None if is_program => PROCESSES,
                None => UNKNOWN,
            };
            names[at] = name.to_owned();
        }
        names
    }
}

/// Returns the index of the branch of `function` below the branch `at`. Creates the branch if needed.
fn below(branches: &mut Vec<Branch>, at: usize, function: u32) -> usize {
    let new = branches.len();
    let found = *branches[at].below.entry(function).or_insert(new);
    if found == new {
        branches.push(Branch::default());
    }
    found
}

/// Converts branches to the nodes of a stored profile. Combines the smallest branches below each function, so that the
/// number of nodes stays near [`MAX_NODES`].
fn pruned(
    branches: &[Branch],
    roots: &[(usize, usize)],
    functions: &mut Vec<Function>,
) -> Vec<Node> {
    let mut totals: Vec<u64> = branches.iter().map(|branch| branch.own).collect();
    // A branch may come before its caller if several tasks have the same name.
    let mut order: Vec<usize> = roots.iter().map(|(_, root)| *root).collect();
    let mut next = 0;
    while next < order.len() {
        order.extend(branches[order[next]].below.values());
        next += 1;
    }
    for at in order.iter().rev() {
        let sum: u64 = branches[*at]
            .below
            .values()
            .map(|child| totals[*child])
            .sum();
        totals[*at] += sum;
    }
    let mut sizes: Vec<u64> = order.iter().map(|at| totals[*at]).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let least = sizes.get(MAX_NODES).map_or(1, |size| size + 1);
    let rest = small(functions.len());
    let mut is_used = false;
    let mut nodes: Vec<Node> = Vec::new();
    let mut todo: Vec<(usize, u32, u32)> = Vec::new();
    for (task, root) in roots.iter().rev() {
        todo.push((*root, u32::MAX, small(*task)));
    }
    while let Some((at, parent, what)) = todo.pop() {
        let here = small(nodes.len());
        let branch = &branches[at];
        nodes.push(Node {
            parent: if parent == u32::MAX { here } else { parent },
            what,
            own: branch.own,
            calls: branch.calls,
        });
        let (large, tiny): (Vec<_>, Vec<_>) = branch
            .below
            .iter()
            .partition(|(_, child)| totals[**child] >= least);
        let tiny: u64 = tiny.iter().map(|(_, child)| totals[**child]).sum();
        if tiny > 0 {
            is_used = true;
            nodes.push(Node {
                parent: here,
                what: rest,
                own: tiny,
                calls: 0,
            });
        }
        for (function, child) in large.into_iter().rev() {
            todo.push((*child, here, *function));
        }
    }
    if is_used {
        functions.push(Function {
            name: SMALL.to_owned(),
            ..Function::default()
        });
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str, instructions: u64, calls: u64) -> Symbol {
        Symbol {
            name: name.to_owned(),
            module: None,
            is_program: false,
            instructions,
            calls,
        }
    }

    const fn node(parent: u32, symbol: Option<u32>, own: u64) -> TallyNode {
        TallyNode {
            parent,
            symbol,
            own,
            calls: 1,
            waited: 0,
            waits: 0,
        }
    }

    #[test]
    fn parts_of_a_function_are_merged_tasks_are_named_and_what_has_no_stack_is_not_lost() {
        let tally = Tally {
            symbols: vec![
                symbol(USER, 100, 0),
                symbol("shrink_folio_list.constprop.0", 50, 5),
                symbol("shrink_folio_list.cold", 3, 1),
                symbol("kswapd", 7, 0),
                symbol("never", 0, 0),
            ],
            nodes: vec![
                node(0, None, 0),
                node(0, Some(0), 90),
                node(1, Some(1), 20),
                node(3, None, 0),
                node(3, Some(3), 7),
                node(4, Some(1), 30),
                node(5, Some(2), 3),
            ],
            idle: 40,
            elapsed: 200,
            ..Tally::default()
        };
        let profile = tally.profile();
        let names: Vec<&str> = profile.functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, [USER, "shrink_folio_list", "kswapd"]);
        assert_eq!((profile.instructions(), profile.gap()), (160, 0));
        assert_eq!(profile.tasks, [WORKLOAD, "kswapd", UNKNOWN]);
        assert_eq!(profile.of_tasks(), [110, 40, 10]);
        let read = Profile::read(&*profile.to_json().unwrap()).unwrap();
        assert_eq!(read, profile);
    }

    #[test]
    fn waits_in_the_run_queue_are_summed_by_the_name_of_the_task_that_ran() {
        let queue = |root, time| TallyQueue {
            root,
            count: 1,
            time,
        };
        let tally = Tally {
            symbols: vec![symbol(USER, 0, 0), symbol("kswapd", 7, 0)],
            idle_task: Some(1),
            nodes: vec![
                node(0, None, 0),
                node(1, None, 0),
                node(1, Some(0), 0),
                node(3, None, 0),
                node(3, Some(1), 7),
                node(5, None, 0),
                node(5, Some(1), 7),
            ],
            queue: vec![
                queue(Some(1), 2),
                queue(Some(3), 5),
                queue(Some(5), 6),
                queue(None, 1),
            ],
            ..Tally::default()
        };
        let rows: Vec<_> = tally
            .profile()
            .queue
            .into_iter()
            .map(|row| (row.behind, row.time, row.count))
            .collect();
        let row = |name: &str, time, count| (name.to_owned(), time, count);
        assert_eq!(
            rows,
            [row("kswapd", 11, 2), row(IDLE, 2, 1), row(UNKNOWN, 1, 1)]
        );
    }

    #[test]
    fn small_stacks_are_combined_without_loss() {
        let many = small(2 * MAX_NODES);
        let tally = Tally {
            symbols: (0..many)
                .map(|at| symbol(&format!("f{at}"), u64::from(at) + 1, 1))
                .collect(),
            nodes: std::iter::once(node(0, None, 0))
                .chain((0..many).map(|at| node(0, Some(at), u64::from(at) + 1)))
                .collect(),
            ..Tally::default()
        };
        let profile = tally.profile();
        assert!(
            profile.nodes.len() <= MAX_NODES + 2,
            "{}",
            profile.nodes.len()
        );
        let sum: u64 = profile.nodes.iter().map(|node| node.own).sum();
        assert_eq!(sum, profile.instructions());
    }
}
