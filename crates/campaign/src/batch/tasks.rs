//! Divides the trials of a batch into tasks.

use std::collections::BTreeMap;

use pagetide_arena::PreparedTrial;
use pagetide_quantity::Nanos;

use super::folder::{Task, TaskTrial};
use crate::plan::PlannedTrial;

/// Target for the wall-clock time of most tasks of a large batch. Starting a task takes one to two seconds, which is at
/// most 5 % of this.
const TASK: Nanos = Nanos::from_secs(40);
/// Target for the wall-clock time of the shortest tasks.
const SHORTEST: Nanos = Nanos::from_secs(10);
/// Divisor: a task takes at most 1/4 of the total time of itself and all later tasks, or [`SHORTEST`] if that is more.
const SHARE: u64 = 4;

/// Divides `sum` nanoseconds of trials into at most `most` tasks, and returns the time in nanoseconds at which each
/// task ends if they run one after another. The last tasks are shorter (guided self-scheduling, Polychronopoulos and
/// Kuck 1987), so that all processors of the cluster become idle at about the same time. If this needs more than `most`
/// tasks, all tasks are equally long instead.
fn ends(sum: u64, most: u64) -> Vec<u64> {
    let mut ends = Vec::new();
    let mut end = 0;
    while end < sum && ends.len() as u64 <= most {
        let left = sum - end;
        end += (left / SHARE).clamp(SHORTEST.0, TASK.0).min(left);
        ends.push(end);
    }
    if ends.is_empty() || ends.len() as u64 > most {
        let equal = |task: u64| u128::from(sum) * u128::from(task) / u128::from(most.max(1));
        let tasks = 1..=most.max(1);
        ends = tasks
            .map(|task| u64::try_from(equal(task)).unwrap_or(sum))
            .collect();
    }
    ends
}

/// Divides trials into at most `most` tasks of the campaign with this ID, or of the search with this name. Each trial
/// comes with its estimated wall-clock time. The order of the trials is kept.
pub(super) fn divide(trials: Vec<(Nanos, TaskTrial)>, campaign: &str, most: u32) -> Vec<Task> {
    let each = |time: &Nanos| time.0.max(1);
    let times = trials.iter().map(|(time, _)| each(time));
    let sum: u64 = times.fold(0, u64::saturating_add);
    let ends = ends(sum, u64::from(most).min(trials.len() as u64));
    let mut parts: BTreeMap<usize, Vec<TaskTrial>> = BTreeMap::new();
    let mut before = 0_u64;
    for (time, trial) in trials {
        let each = each(&time);
        let middle = before.saturating_add(each / 2);
        let part = ends.partition_point(|end| *end <= middle);
        before = before.saturating_add(each);
        parts
            .entry(part.min(ends.len() - 1))
            .or_default()
            .push(trial);
    }
    let task = |trials| Task {
        campaign: campaign.to_owned(),
        trials,
    };
    parts.into_values().map(task).collect()
}

/// Returns a prepared trial as a trial of a task. `name` is its name in the batch.
pub(super) fn task_trial(name: &str, prepared: &PreparedTrial, planned: PlannedTrial) -> TaskTrial {
    let subject = prepared.subject();
    TaskTrial {
        name: name.to_owned(),
        key: subject.key(),
        kernel: subject.variant.kernel.clone(),
        root: subject
            .params
            .get("root")
            .filter(|root| !root.is_empty())
            .cloned(),
        emulator: subject.arena.emulator.clone(),
        planned,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn the_last_tasks_are_short_and_together_they_take_the_whole_time() {
        for sum in [1, 9, 10, 97, 1000, 100_000].map(|seconds| seconds * SECOND) {
            let ends = ends(sum, u64::MAX);
            assert_eq!(ends.last(), Some(&sum));
            let sizes: Vec<u64> = [0]
                .iter()
                .chain(&ends)
                .zip(&ends)
                .map(|(a, b)| b - a)
                .collect();
            assert!(sizes.is_sorted_by(|a, b| a >= b), "{sizes:?}");
            assert!(
                sizes.iter().all(|size| (1..=TASK.0).contains(size)),
                "{sizes:?}"
            );
            // Two processors that take the next task whenever they are free end at most one short task apart.
            let mut busy = [0; 2];
            for size in sizes {
                busy.sort_unstable();
                busy[0] += size;
            }
            assert!(busy[0].abs_diff(busy[1]) <= SHORTEST.0, "{sum}: {busy:?}");
        }
    }

    #[test]
    fn a_cluster_that_accepts_few_tasks_gets_equal_ones() {
        assert_eq!(
            ends(1000 * SECOND, 4),
            [250, 500, 750, 1000].map(|end| end * SECOND)
        );
        assert_eq!(ends(0, 5).last(), Some(&0));
        assert_eq!(ends(7, 0), [7]);
        assert_eq!(ends(u64::MAX, 3).last(), Some(&u64::MAX));
    }
}
