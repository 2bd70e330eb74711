//! Where the time of observed trials was spent: parts that add up to the whole.

use pagetide_compare::Observation;
use pagetide_probe::meaning::{Part, TaskTime};

use super::Input;
use super::data::TimeTotal;
use crate::terminal::observation::others_together;

/// Returns the name of a part of the time, as shown on the page.
const fn name(part: Part) -> &'static str {
    match part {
        Part::Compute => "user mode",
        Part::Fault => "faults and system calls",
        Part::Reclaim => "direct reclaim",
        Part::ReclaimWait => "waits in reclaim",
        Part::Compaction => "compaction",
        Part::CompactionWait => "waits in compaction",
        Part::IoWait => "blocked (I/O, locks)",
        Part::DirtyLimit => "held by dirty limits",
        Part::RunQueue => "waits for a CPU",
        Part::Sleep => "sleep",
        Part::Unexplained => "unexplained",
    }
}

/// Returns the times of a cell, in nanoseconds. Each observed variant has the time of the main process, and the sum
/// over all other processes if there are any.
pub(crate) fn wholes(input: &Input<'_>, cell: usize, columns: usize) -> Vec<TimeTotal> {
    (0..columns)
        .filter_map(|column| Some((column, input.sources.observed.get(&(cell, column))?)))
        .flat_map(|(column, seen)| of(column, seen))
        .collect()
}

fn of(column: usize, seen: &Observation) -> Vec<TimeTotal> {
    let whole = |label: String, tasks: &[TaskTime]| TimeTotal {
        column,
        label,
        record: seen.record.clone(),
        elapsed: tasks.iter().map(|task| task.elapsed.0).sum(),
        parts: Part::ALL
            .iter()
            .map(|part| {
                let time = tasks.iter().map(|task| task.parts.get(*part).0).sum();
                (name(*part), time)
            })
            .collect(),
    };
    match seen.tasks.as_slice() {
        [] => Vec::new(),
        [only] => vec![whole(String::new(), std::slice::from_ref(only))],
        [main, others @ ..] => vec![
            whole("main process".to_owned(), std::slice::from_ref(main)),
            whole(others_together(others.len()), others),
        ],
    }
}
