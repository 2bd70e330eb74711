//! Simulates several policies with several memory sizes on all cores.

use std::io;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::policy::Choice;
use crate::policy::Ledger;
use crate::string::ReferenceString;
use crate::writes::Writes;

/// A simulation to run: one policy with one memory size.
#[derive(Debug, Clone)]
pub struct Job {
    /// Policy with its parameters.
    pub choice: Choice,
    /// Size of memory in pages, at least 1.
    pub size: u32,
}

/// Result of one job.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Number of references that found their page in memory.
    pub hits: u64,
    /// Number of references that did not find their page in memory.
    pub faults: u64,
    /// Number of faults in each window of the string, in order.
    pub windows: Vec<u64>,
    /// Number of dirty pages evicted, including those evicted while memory was first filled; `None` if not counted.
    pub write_backs: Option<u64>,
    /// Processor time used by the simulation.
    pub took: Duration,
}

/// Returns the number of threads that this machine can run in parallel.
pub fn workers() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs every job over the whole string, `workers` jobs at a time. Returns the outcomes in the order of the jobs.
///
/// References that only fill memory are not counted. The string is divided into `windows` parts (at least 1) of nearly
/// equal length, and the faults in each part are also counted. Fails if the string cannot be read.
pub fn simulate(
    string: &ReferenceString,
    jobs: &[Job],
    windows: u32,
    workers: usize,
) -> io::Result<Vec<Outcome>> {
    simulate_counting(string, jobs, windows, workers, None)
}

/// Does the same as [`simulate`], and also counts write-backs if `writes` is given.
pub(crate) fn simulate_counting(
    string: &ReferenceString,
    jobs: &[Job],
    windows: u32,
    workers: usize,
    writes: Option<&Writes>,
) -> io::Result<Vec<Outcome>> {
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<io::Result<Outcome>>>> =
        Mutex::new(jobs.iter().map(|_| None).collect());
    thread::scope(|scope| {
        for _ in 0..workers.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(place) else { return };
                    let outcome = run(string, job, windows.max(1), writes);
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes[place] = Some(outcome);
                    }
                }
            });
        }
    });
    outcomes
        .into_inner()
        .unwrap_or_default()
        .into_iter()
        .map(|outcome| outcome.unwrap_or_else(|| Err(io::Error::other("a simulation did not end"))))
        .collect()
}

fn run(
    string: &ReferenceString,
    job: &Job,
    windows: u32,
    writes: Option<&Writes>,
) -> io::Result<Outcome> {
    let start = processor_time();
    let mut policy = job.choice.start(string.pages(), job.size);
    let mut ledger = writes.map(|writes| Ledger::new(writes, string.pages()));
    let mut feed = |references: &[u32]| match &mut ledger {
        Some(ledger) => policy.feed_counting(references, ledger),
        None => policy.feed(references),
    };
    let mut hits = 0;
    let mut faults_by_window = Vec::with_capacity(windows as usize);
    let windows = u64::from(windows);
    let lead = u64::from(string.lead());
    let counted = string.references() - lead;
    string.each(0, lead, |references| {
        feed(references);
    })?;
    for window in 0..windows {
        let first = lead + counted * window / windows;
        let last = lead + counted * (window + 1) / windows;
        let mut here = 0;
        string.each(first, last, |references| here += feed(references))?;
        hits += here;
        faults_by_window.push(last - first - here);
    }
    Ok(Outcome {
        hits,
        faults: counted - hits,
        windows: faults_by_window,
        write_backs: ledger.map(|ledger| ledger.finish(&mut *policy)),
        took: processor_time().saturating_sub(start),
    })
}

/// Returns the processor time used by this thread so far. Unlike wall-clock time, it excludes other work of the
/// machine.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
