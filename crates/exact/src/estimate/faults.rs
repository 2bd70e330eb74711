//! Estimates how many references of a trial fault, by simulating LRU on the trial's own references.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pagetide_oracle::{Choice, Job, known, simulate};
use pagetide_record::Subject;

/// Maximum number of references of a string that are simulated, so that a plan is computed without a noticeable delay.
const MAX_REFERENCES: u64 = 2_000_000;
/// Maximum number of strings that are simulated, so that a plan of a million cells does not take long.
const MAX_STRINGS: usize = 64;

static ASKED: Mutex<BTreeMap<String, Option<f64>>> = Mutex::new(BTreeMap::new());

/// Returns the number of faults under LRU with memory for `room` pages, extrapolated to `refs` references if there are
/// more than [`MAX_REFERENCES`]. `None` if the references are not known, or if [`MAX_STRINGS`] other combinations of
/// string and memory were already requested.
pub(super) fn faults(subject: &Subject, refs: f64, room: f64) -> Option<f64> {
    let (scenario, is_written) = (&subject.scenario, subject.as_written);
    let key = format!("{scenario} {is_written} {room} {:?}", subject.params);
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = asked.get(&key) {
        return *found;
    }
    if asked.len() >= MAX_STRINGS {
        return None;
    }
    let found = lru(subject, refs, room);
    asked.insert(key, found);
    found
}

fn lru(subject: &Subject, refs: f64, room: f64) -> Option<f64> {
    let mut params = subject.params.clone();
    let asked = refs.min(MAX_REFERENCES as f64);
    params.insert("refs".to_owned(), format!("{asked:.0}"));
    let seed = subject.seed;
    let string = known(&subject.scenario, subject.as_written, &params, seed).ok()?;
    let job = Job {
        choice: Choice::parse("lru").ok()?,
        size: format!("{room:.0}").parse().ok()?,
    };
    let outcomes = simulate(&string, &[job], 1, 1).ok()?;
    Some(outcomes.first()?.faults as f64 * refs / asked.max(1.0))
}
