//! Tests the call tree of the emulator's plugin, which runs in the emulator, on sequences of calls and returns.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

extern crate alloc;

#[allow(dead_code, reason = "a part of another crate, which uses the rest")]
#[path = "../plugin/format.rs"]
mod format;
#[allow(dead_code, reason = "a part of another crate, which uses the rest")]
#[path = "../plugin/sleeps.rs"]
mod sleeps;
#[allow(
    clippy::cast_possible_truncation,
    dead_code,
    reason = "a part of another crate, which uses the rest"
)]
#[path = "../plugin/stacks.rs"]
mod stacks;

use format::{IDLE, NO_FUNCTION, NO_NODE, USER};
use stacks::Stacks;

/// Start of the kernel stack of the first task.
const ONE: u64 = 0xffff_c900_0000_8000;
/// Start of the kernel stack of the second task.
const TWO: u64 = 0xffff_c900_0000_c000;
/// Start of the kernel stack of a third task.
const THREE: u64 = 0xffff_c900_0001_4000;
/// Start of the stack of interrupts.
const IRQ: u64 = 0xffff_c900_0001_0000;

/// Numbers of the functions that the guest executes.
const F: u32 = 10;
const G: u32 = 11;
const H: u32 = 12;
const ENTRY: u32 = 13;
const SWITCH: u32 = 14;

/// A simulated guest. Each of its steps counts one instruction of the current function.
struct Guest {
    stacks: Stacks,
    counts: Vec<u64>,
}

impl Guest {
    fn new() -> Self {
        Self {
            stacks: Stacks::new(20, 18),
            counts: vec![0; 40],
        }
    }

    fn count(&mut self, function: u32) {
        self.counts[2 * function as usize] += 1;
    }

    fn call(&mut self, site: u32, target: Option<u32>, at: u64) {
        self.count(site);
        self.stacks.call(site, target, at, &self.counts);
    }

    fn leave(&mut self, site: u32, at: u64) {
        self.count(site);
        self.stacks.leave(site, at, &self.counts);
    }

    /// Switches tasks: `site` calls the function that switches, with its return address at `at`, and the function returns
    /// for the next task, whose return address is at `next`.
    fn switch(&mut self, site: u32, at: u64, next: u64) {
        self.call(site, Some(SWITCH), at);
        self.stacks.switch(&self.counts);
        self.leave(SWITCH, next);
    }

    fn enter(&mut self, site: Option<u32>) {
        self.stacks.enter(site, &self.counts);
    }

    fn resume(&mut self, site: u32) {
        self.count(site);
        self.stacks.resume(site, &self.counts);
    }

    /// Call stacks with their numbers of instructions, in the order in which they were first seen. A stack begins with
    /// the index of the root of its task.
    fn paths(&self) -> Vec<(Vec<u32>, u64)> {
        let nodes = &self.stacks.nodes;
        let path = |mut at: usize| {
            let mut path = Vec::new();
            loop {
                if nodes[at].function == NO_FUNCTION {
                    path.push(u32::try_from(at).unwrap());
                    break;
                }
                path.push(nodes[at].function);
                at = nodes[at].parent as usize;
            }
            path.reverse();
            path
        };
        (0..nodes.len())
            .filter(|at| nodes[*at].own > 0)
            .map(|at| (path(at), nodes[at].own))
            .collect()
    }
}

#[test]
fn calls_by_address_by_pointer_and_by_jump_have_the_right_caller() {
    let mut guest = Guest::new();
    guest.call(F, Some(G), ONE + 800);
    guest.call(G, None, ONE + 700);
    guest.leave(H, ONE + 700);
    // G jumps to H, which then returns to F.
    guest.leave(H, ONE + 800);
    guest.call(F, Some(H), ONE + 800);
    guest.leave(H, ONE + 800);
    guest.leave(F, ONE + 900);
    let expected = [
        (vec![0, F], 3),
        (vec![0, F, G], 1),
        (vec![0, F, G, H], 1),
        (vec![0, F, H], 2),
    ];
    assert_eq!(guest.paths(), expected);
}

#[test]
fn an_interrupt_returns_to_what_it_interrupted_also_if_its_entry_moved_a_return_address() {
    let mut guest = Guest::new();
    guest.call(F, Some(G), ONE + 800);
    guest.enter(None);
    // The first function called by the entry moves its return address down, as the kernel's `error_entry` does.
    guest.call(ENTRY, Some(H), ONE + 600);
    guest.leave(H, ONE + 500);
    guest.call(ENTRY, Some(H), ONE + 480);
    guest.call(H, Some(G), IRQ + 900);
    guest.leave(G, IRQ + 900);
    guest.leave(H, ONE + 480);
    guest.resume(ENTRY);
    guest.leave(G, ONE + 800);
    guest.leave(F, ONE + 900);
    let expected = [
        (vec![0, F], 2),
        (vec![0, F, G], 1),
        (vec![0, F, G, ENTRY], 3),
        (vec![0, F, G, ENTRY, H], 3),
        (vec![0, F, G, ENTRY, H, G], 1),
    ];
    assert_eq!(guest.paths(), expected);
}

#[test]
fn tasks_keep_their_stacks_while_others_run_and_a_new_one_begins_empty() {
    let mut guest = Guest::new();
    guest.enter(Some(USER));
    guest.switch(F, ONE + 800, TWO + 800);
    guest.stacks.fork();
    guest.switch(G, TWO + 900, ONE + 800);
    guest.resume(F);
    guest.count(USER);
    guest.enter(None);
    let paths = guest.paths();
    assert!(paths.contains(&(vec![0, USER, F], 2)), "{paths:?}");
    assert!(paths.contains(&(vec![0, USER], 1)), "{paths:?}");
    let of_new = |path: &[u32]| path[0] > 0 && path[1] == G;
    assert!(
        paths.iter().any(|(path, own)| of_new(path) && *own == 1),
        "{paths:?}"
    );
    // The second task returns to code whose call was not recorded.
    assert!(paths.contains(&(vec![0, USER, F, SWITCH], 1)), "{paths:?}");
}

#[test]
fn time_in_which_no_task_of_the_workload_runs_belongs_to_the_place_of_the_one_that_continues() {
    let mut guest = Guest::new();
    let idle = |guest: &mut Guest, time: u64| guest.counts[2 * IDLE as usize] += time;
    // The workload goes to sleep in F, and the idle loop runs.
    guest.enter(Some(USER));
    guest.stacks.reset(&guest.counts);
    guest.switch(F, ONE + 800, TWO + 800);
    guest.resume(G);
    idle(&mut guest, 100);
    // A thread of the kernel runs, and the idle loop again.
    guest.enter(None);
    guest.switch(G, TWO + 700, THREE + 800);
    guest.switch(H, THREE + 700, TWO + 700);
    guest.resume(G);
    idle(&mut guest, 20);
    guest.enter(None);
    guest.switch(G, TWO + 700, ONE + 800);
    let nodes = &guest.stacks.nodes;
    let waits: Vec<_> = nodes.iter().filter(|node| node.waits > 0).collect();
    let [wait] = waits[..] else {
        panic!("{}", waits.len())
    };
    assert_eq!((wait.waited, wait.waits), (120, 1));
    let above = |at: u32| nodes[at as usize].function;
    assert_eq!((wait.function, above(wait.parent)), (SWITCH, F));
}

#[test]
fn a_sleep_has_the_places_of_the_task_that_slept_and_of_the_one_that_woke_it() {
    let mut guest = Guest::new();
    let idle = |guest: &mut Guest, time: u64| guest.counts[2 * IDLE as usize] += time;
    // Addresses at which the stack pointers of the workload's and of the other task are saved.
    let [own, other] = [0x1500, 0x2500];
    guest.enter(Some(USER));
    guest.stacks.reset(&guest.counts);
    // The other task runs first and leaves the CPU in H, which holds the lock.
    guest.switch(F, ONE + 900, TWO + 900);
    guest.call(H, Some(SWITCH), TWO + 800);
    guest.stacks.switch(&guest.counts);
    let holder = guest.stacks.now();
    guest.stacks.sleeps.learn(other, holder);
    guest.leave(SWITCH, ONE + 900);
    // The workload waits for the lock in F.
    guest.call(F, Some(SWITCH), ONE + 800);
    guest.stacks.switch(&guest.counts);
    guest.stacks.sleeps.learn(own, guest.stacks.now());
    idle(&mut guest, 100);
    guest.leave(SWITCH, TWO + 800);
    // The other task continues and wakes in G. Only the first wake counts, and a task that is not known is passed over.
    guest.call(H, Some(G), TWO + 800);
    let (stacks, counts) = (&mut guest.stacks, &guest.counts);
    let (here, time) = (stacks.here(), stacks.time(counts));
    stacks.sleeps.wake(0x3500, holder, here, time);
    stacks.sleeps.wake(own, holder, here, time);
    stacks.sleeps.wake(own, holder, 0, time + 50);
    guest.leave(G, TWO + 800);
    guest.stacks.switch(&guest.counts);
    guest.leave(SWITCH, ONE + 800);
    let stacks = &guest.stacks;
    let sums: Vec<_> = stacks.sleeps.sums.iter().collect();
    let [(nodes, sum)] = sums[..] else {
        panic!("{}", sums.len())
    };
    assert_eq!((sum.count, sum.idle), (1, 100));
    assert!((100..110).contains(&sum.time), "{}", sum.time);
    let names = nodes.map(|node| {
        let node = &stacks.nodes[node as usize];
        (node.function, stacks.nodes[node.parent as usize].function)
    });
    assert_eq!(names, [(SWITCH, F), (SWITCH, H), (G, H)]);
    assert!(!nodes.contains(&NO_NODE));
}

/// Tasks of the simulated guest, each with its root, and the time in the run queue behind each root.
fn behind(guest: &Guest) -> Vec<(u32, u64, u64)> {
    let queue = guest.stacks.sleeps.queue.iter();
    queue
        .map(|(root, sum)| (*root, sum.count, sum.time))
        .collect()
}

#[test]
fn a_task_that_could_run_waits_behind_those_that_run() {
    for (has_wakes, is_woken) in [(true, true), (true, false), (false, true)] {
        let mut guest = Guest::new();
        guest.stacks.sleeps.has_wakes = has_wakes;
        let own = 0x1500;
        guest.enter(Some(USER));
        guest.stacks.reset(&guest.counts);
        let main = guest.stacks.now();
        // The workload leaves the CPU, and two other tasks run. The second wakes it in the middle of its time.
        guest.call(F, Some(SWITCH), ONE + 800);
        guest.stacks.switch(&guest.counts);
        guest.stacks.sleeps.learn(own, main);
        guest.leave(SWITCH, TWO + 800);
        let second = guest.stacks.root();
        for _ in 0..30 {
            guest.call(H, Some(G), TWO + 800);
            guest.leave(G, TWO + 800);
        }
        guest.call(H, Some(SWITCH), TWO + 700);
        guest.stacks.switch(&guest.counts);
        guest.leave(SWITCH, THREE + 800);
        let third = guest.stacks.root();
        let mut woken = 0;
        for step in 0..20 {
            guest.call(H, Some(G), THREE + 800);
            guest.leave(G, THREE + 800);
            if step == 9 && is_woken {
                woken = guest.stacks.time(&guest.counts);
                let here = guest.stacks.here();
                let now = guest.stacks.now();
                guest.stacks.sleeps.wake(own, now, here, woken);
            }
        }
        guest.call(H, Some(SWITCH), THREE + 700);
        guest.stacks.switch(&guest.counts);
        let end = guest.stacks.time(&guest.counts);
        guest.leave(SWITCH, ONE + 800);
        assert_eq!(guest.stacks.now(), main);
        match (has_wakes, is_woken) {
            (false, _) => assert_eq!(behind(&guest), []),
            (true, true) => assert_eq!(behind(&guest), [(third, 1, end - woken)]),
            // A task that nobody woke could run all the time.
            (true, false) => {
                let [(a, 1, x), (b, 1, y)] = behind(&guest)[..] else {
                    panic!("{:?}", behind(&guest));
                };
                assert_eq!((a, b), (second, third));
                assert!((60..65).contains(&x) && (40..45).contains(&y), "{x} {y}");
            }
        }
    }
}

#[test]
fn a_task_that_has_ended_is_not_in_the_run_queue_when_its_kernel_stack_is_used_again() {
    let mut guest = Guest::new();
    guest.stacks.sleeps.has_wakes = true;
    guest.enter(Some(USER));
    guest.stacks.reset(&guest.counts);
    guest.stacks.sleeps.die(guest.stacks.now());
    guest.switch(F, ONE + 800, TWO + 800);
    guest.switch(H, TWO + 700, ONE + 800);
    assert_eq!(behind(&guest), []);
}
