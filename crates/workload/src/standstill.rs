//! Finds deadlocks, in which processes wait for each other for ever, by simulating all processes without time.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::WorkloadError;
use crate::phase::Phase;
use crate::workload::Workload;

/// State of a simulated process, as far as waiting depends on it: remaining phases, and number of running children.
struct Thread<'a> {
    /// Index of the kind of process in the workload.
    process: usize,
    /// Number of the process among those of its kind.
    number: u32,
    /// Index of the simulated process that forked this one; `None` for processes of the workload.
    parent: Option<usize>,
    /// Phases that are left to do; the next one is the last element.
    left: Vec<&'a Phase>,
    children: usize,
    started: bool,
    ended: bool,
}

/// Fails if a process waits for a mark that is never passed, or for the end of a process that never ends.
pub(crate) fn check(workload: &Workload) -> Result<(), WorkloadError> {
    let mut threads: Vec<Thread<'_>> = Vec::new();
    // For each mark or process: number of processes that have not yet passed the mark, or not yet ended.
    let mut open: BTreeMap<&str, u32> = BTreeMap::new();
    for (process, definition) in workload.processes.iter().enumerate() {
        *open.entry(&definition.name).or_default() += definition.count;
        for mark in definition.marks() {
            *open.entry(mark).or_default() += definition.count;
        }
        threads.extend((0..definition.count).map(|number| Thread {
            process,
            number,
            parent: None,
            left: definition.phases.iter().rev().collect(),
            children: 0,
            started: definition.turn.is_none() || number == 0,
            ended: false,
        }));
    }
    let mut passed: BTreeSet<(usize, u32, &str)> = BTreeSet::new();
    loop {
        let mut moved = false;
        for index in 0..threads.len() {
            while step(workload, &mut threads, index, &mut open, &mut passed) {
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    let Some(waits) = threads.iter().find(|thread| !thread.ended) else {
        return Ok(());
    };
    let definition = &workload.processes[waits.process];
    let mark = match waits.left.last() {
        Some(Phase::Wait { r#for }) => r#for.clone(),
        _ => definition
            .turn
            .clone()
            .unwrap_or_else(|| definition.name.clone()),
    };
    Err(WorkloadError::Standstill {
        process: format!("process {}", definition.name),
        mark,
    })
}

/// Does one step of a process: its start, next phase or end. Returns false if it has ended or must wait.
fn step<'a>(
    workload: &'a Workload,
    threads: &mut Vec<Thread<'a>>,
    index: usize,
    open: &mut BTreeMap<&'a str, u32>,
    passed: &mut BTreeSet<(usize, u32, &'a str)>,
) -> bool {
    let thread = &threads[index];
    if thread.ended {
        return false;
    }
    let (process, number) = (thread.process, thread.number);
    let definition = &workload.processes[process];
    if !thread.started {
        let turn = definition.turn.as_deref().unwrap_or_default();
        if !passed.contains(&(process, number - 1, turn)) {
            return false;
        }
        threads[index].started = true;
        return true;
    }
    let Some(&next) = thread.left.last() else {
        threads[index].ended = true;
        if let Some(parent) = threads[index].parent {
            threads[parent].children -= 1;
        } else {
            pass(open, &definition.name);
            for mark in definition.marks() {
                if passed.insert((process, number, mark)) {
                    pass(open, mark);
                }
            }
        }
        return true;
    };
    match next {
        Phase::Wait { r#for } if open.get(r#for.as_str()).is_some_and(|left| *left > 0) => {
            return false;
        }
        Phase::Join {} if thread.children > 0 => return false,
        _ => {}
    }
    threads[index].left.pop();
    match next {
        Phase::Mark { name } if passed.insert((process, number, name)) => pass(open, name),
        // Only the first passing of a mark counts, so one round has the same effect as all rounds.
        Phase::Repeat { phases, .. } => threads[index].left.extend(phases.iter().rev()),
        Phase::Fork { phases, .. } => {
            // All children of a fork run the same phases, so one child has the same effect as all.
            threads[index].children += 1;
            threads.push(Thread {
                process,
                number,
                parent: Some(index),
                left: phases.iter().rev().collect(),
                children: 0,
                started: true,
                ended: false,
            });
        }
        _ => {}
    }
    true
}

fn pass(open: &mut BTreeMap<&str, u32>, name: &str) {
    if let Some(left) = open.get_mut(name) {
        *left = left.saturating_sub(1);
    }
}
