//! Submits the trials of a run to a cluster and waits for their records.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use pagetide_quantity::Nanos;
use pagetide_record::RecordReader;
use pagetide_store::StoreError;

use super::folder::{BatchFolder, Task, TaskTrial};
use super::{ClusterError, Elsewhere};
use crate::event::Event;
use crate::plan::PASSES;
use crate::run::{Job, Run, RunError};

/// Target for the wall-clock time of most tasks of a large batch. Starting a task takes one to two seconds, which is
/// less than 5 % of this.
const TASK: Nanos = Nanos::from_secs(40);
/// Target for the wall-clock time of the shortest tasks.
const SHORTEST: Nanos = Nanos::from_secs(10);
/// Divisor: a task takes at most 1/4 of the total time of itself and all later tasks, or [`SHORTEST`] if that is more.
const SHARE: u64 = 4;
/// Polling interval for the state of a job at the cluster.
const PAUSE: Duration = Duration::from_secs(2);
/// Polling interval for new records.
const GLANCE: Duration = Duration::from_millis(200);
/// Number of times that trials are submitted again if their tasks ended without a record and without a message.
const RETRIES: u32 = 2;

/// Waits for a job that an earlier process submitted for this campaign, and stores its records. Returns at once if
/// there is no such job. Returns false if the user stops the run.
pub(crate) fn settle(run: &mut Run<'_>, elsewhere: Elsewhere<'_>) -> Result<bool, RunError> {
    let folder = BatchFolder::of(run.store.folder(), &run.campaign.name);
    let Some(job) = folder.job()? else {
        folder.remove()?;
        return Ok(true);
    };
    if is_active(run, elsewhere, &job)? {
        let text = format!("job {job} of this campaign has not ended yet: waiting for it");
        run.watch.event(&Event::Told(&text));
    }
    let is_whole = follow(run, elsewhere, &job, |_| Ok(true))?;
    for name in folder.done()? {
        folder.record(&name)?;
    }
    run.store.refresh()?;
    if is_whole {
        folder.remove()?;
    }
    Ok(is_whole)
}

/// Runs the trials `todo` on the cluster. Returns false if the user stops the run, or if this process does not wait for
/// the job.
pub(crate) fn execute(
    run: &mut Run<'_>,
    elsewhere: Elsewhere<'_>,
    todo: &[Job],
    is_news: bool,
) -> Result<bool, RunError> {
    let folder = BatchFolder::of(run.store.folder(), &run.campaign.name);
    let most = elsewhere.cluster.most_tasks();
    let most = most.map_err(|source| failed(run, source))?;
    let names = names(todo);
    let places: HashMap<&str, usize> = names.iter().map(String::as_str).zip(0..).collect();
    let mut open = vec![true; todo.len()];
    let (mut job, mut is_first) = (String::new(), is_news);
    for _ in 0..=RETRIES {
        let tasks = tasks(run, todo, &names, &open, most);
        let count = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        run.ledger.tally.left = run.ledger.left(tasks.len());
        if std::mem::take(&mut is_first) {
            run.watch.event(&Event::Planned(run.ledger.tally));
        }
        folder.remove()?;
        folder.create(&tasks)?;
        let submitted = elsewhere.cluster.submit(folder.path(), count);
        job = submitted.map_err(|source| failed(run, source))?;
        folder.set_job(&job)?;
        let trials = open.iter().filter(|is_open| **is_open).count();
        let text = format!("job {job}: {trials} trials in {count} tasks");
        run.watch.event(&Event::Told(&text));
        if elsewhere.detach {
            return Ok(false);
        }
        let look = |run: &mut Run<'_>| {
            take_in(run, &folder, todo, &places, &mut open, tasks.len())?;
            Ok(run.ledger.futility.verdict().is_none())
        };
        let is_whole = follow(run, elsewhere, &job, look)?;
        run.store.refresh()?;
        if !is_whole {
            return Ok(false);
        }
        if !open.contains(&true) {
            folder.remove()?;
            return Ok(true);
        }
        let failures = folder.failures()?;
        if let Some((why, _)) = failures.iter().max_by_key(|(_, count)| **count) {
            return Err(early(&folder, &job, failures.values().sum(), why));
        }
    }
    let why = "the cluster ended them, and they left no message";
    Err(early(&folder, &job, 1, why))
}

fn early(folder: &BatchFolder, job: &str, tasks: u32, why: &str) -> RunError {
    RunError::Tasks {
        job: job.to_owned(),
        tasks,
        why: why.to_owned(),
        logs: folder.logs().display().to_string(),
    }
}

fn failed(run: &Run<'_>, source: ClusterError) -> RunError {
    RunError::Cluster {
        name: run.campaign.name.clone(),
        source,
    }
}

fn is_active(run: &Run<'_>, elsewhere: Elsewhere<'_>, job: &str) -> Result<bool, RunError> {
    let active = elsewhere.cluster.is_active(job);
    active.map_err(|source| failed(run, source))
}

/// Waits for the end of a job. Calls `look` at short intervals, and once more after the end. If the user stops the run,
/// or if `look` returns false, cancels the job and returns false.
fn follow<'a>(
    run: &mut Run<'a>,
    elsewhere: Elsewhere<'_>,
    job: &str,
    mut look: impl FnMut(&mut Run<'a>) -> Result<bool, RunError>,
) -> Result<bool, RunError> {
    let mut is_ended = false;
    let mut asked: Option<Instant> = None;
    loop {
        if !look(run)? || run.watch.is_stopped() {
            if let Err(error) = elsewhere.cluster.cancel(job) {
                // This error is only reported as an event, so that it does not hide the reason why the run stopped.
                let text = format!("job {job} may still run: {error}");
                run.watch.event(&Event::Told(&text));
            }
            return Ok(false);
        }
        if is_ended {
            return Ok(true);
        }
        if asked.is_none_or(|asked| asked.elapsed() >= PAUSE) {
            is_ended = !is_active(run, elsewhere, job)?;
            asked = Some(Instant::now());
        }
        if !is_ended {
            std::thread::sleep(GLANCE);
        }
    }
}

/// Returns the names of the trials in a batch. A name consists of the trial's key and the number of earlier trials with
/// this key.
fn names(todo: &[Job]) -> Vec<String> {
    let mut seen: HashMap<String, u32> = HashMap::new();
    let name = |job: &Job| {
        let key = job.prepared.subject().key();
        let number = seen.entry(key.clone()).or_default();
        *number += 1;
        format!("{key}-{number}")
    };
    todo.iter().map(name).collect()
}

/// Divides `sum` nanoseconds of trials into at most `most` tasks, and returns the time at which each task ends if they
/// run one after another. The last tasks are shorter (guided self-scheduling, Polychronopoulos and Kuck 1987): a
/// cluster starts tasks in their order, so that all its processors become idle at about the same time.
fn ends(sum: u64, most: u64) -> Vec<u64> {
    let mut ends = Vec::new();
    let mut end = 0;
    while end < sum {
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

/// Divides the trials that have no record yet into at most `most` tasks. `open` is true for each trial without a
/// record. Trials that boot the same guest are adjacent, so that few nodes boot each guest.
fn tasks(run: &Run<'_>, todo: &[Job], names: &[String], open: &[bool], most: u32) -> Vec<Task> {
    let mut places: Vec<usize> = (0..todo.len()).filter(|place| open[*place]).collect();
    places.sort_by_key(|place| {
        let planned = &todo[*place].planned;
        (
            planned.cell,
            planned.variant,
            PASSES.iter().position(|pass| *pass == planned.trial.pass),
            planned.block,
            *place,
        )
    });
    let each = |place: &usize| run.ledger.times.each(&todo[*place].cell).0.0.max(1);
    let sum: u64 = places.iter().map(each).fold(0, u64::saturating_add);
    let ends = ends(sum, u64::from(most).min(places.len() as u64));
    let mut parts: BTreeMap<usize, Vec<TaskTrial>> = BTreeMap::new();
    let mut before = 0_u64;
    for place in places {
        let each = each(&place);
        let middle = before.saturating_add(each / 2);
        let part = ends.partition_point(|end| *end <= middle);
        before = before.saturating_add(each);
        parts
            .entry(part.min(ends.len() - 1))
            .or_default()
            .push(task_trial(&todo[place], &names[place]));
    }
    let task = |trials| Task {
        campaign: run.note.id(),
        trials,
    };
    parts.into_values().map(task).collect()
}

fn task_trial(job: &Job, name: &str) -> TaskTrial {
    let subject = job.prepared.subject();
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
        planned: job.planned.clone(),
    }
}

/// Stores and reports the records that have arrived since the last call.
fn take_in(
    run: &mut Run<'_>,
    folder: &BatchFolder,
    todo: &[Job],
    places: &HashMap<&str, usize>,
    open: &mut [bool],
    jobs: usize,
) -> Result<(), RunError> {
    for name in folder.done()? {
        let Some(place) = places
            .get(name.as_str())
            .copied()
            .filter(|place| open[*place])
        else {
            continue;
        };
        let Some(id) = folder.record(&name)? else {
            continue;
        };
        let reader = RecordReader::open(&run.store.path(&id)).map_err(StoreError::writing)?;
        let (record, job) = (reader.into_record(), &todo[place]);
        open[place] = false;
        run.ledger.stored(run.arena, job, &record, jobs);
        let invalid = record.why_invalid();
        run.watch.event(&Event::Stored {
            number: run.begun,
            trial: &job.planned,
            id: &id,
            invalid: invalid.as_deref(),
            tally: run.ledger.tally,
        });
        run.begun += 1;
    }
    Ok(())
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
