//! Caches the number of faults of OPT and LRU for one reference string at one memory size. Other variants with the same
//! seed have the same references.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use pagetide_oracle::{Choice, Job, Outcome, ReferenceString, simulate};
use pagetide_record::Subject;

/// Maximum number of cached results. A small number suffices, because the variants of a seed run one after another.
const MAX_STRINGS: usize = 16;

/// Results of OPT and of LRU, in this order.
pub(super) type Best = Arc<[Outcome; 2]>;

static KNOWN: Mutex<VecDeque<(Key, Best)>> = Mutex::new(VecDeque::new());

/// Everything that determines the references, and the number of pages in memory.
#[derive(Clone, PartialEq)]
struct Key {
    scenario: String,
    as_written: bool,
    params: Vec<(String, String)>,
    seed: u64,
    pages: u32,
}

/// Returns the results of OPT and of LRU for a reference string, with memory for `pages` pages.
pub(super) fn best(string: &ReferenceString, subject: &Subject, pages: u32) -> io::Result<Best> {
    let params = subject.params.iter();
    let key = Key {
        scenario: subject.scenario.clone(),
        as_written: subject.as_written,
        params: params
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        seed: subject.seed,
        pages,
    };
    // The content of a file may change under the same name, so results of file-based references are not cached by name
    // alone.
    let is_file = subject
        .params
        .get("pattern")
        .is_some_and(|pattern| pattern.starts_with("file:"));
    let found = {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .iter()
            .find(|(other, _)| *other == key && !is_file)
            .map(|(_, best)| Arc::clone(best))
    };
    if let Some(best) = found {
        return Ok(best);
    }
    let job = |choice| Job {
        choice,
        size: pages,
    };
    let choices = [Choice::opt(), Choice::lru()];
    let outcomes = simulate(string, &choices.map(job), WINDOWS, 1)?;
    let outcomes: [Outcome; 2] = outcomes
        .try_into()
        .map_err(|_| io::Error::other("a simulation did not end"))?;
    let best: Best = Arc::new(outcomes);
    if !is_file {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.truncate(MAX_STRINGS - 1);
        known.push_front((key, Arc::clone(&best)));
    }
    Ok(best)
}

/// Number of windows into which the reference string is divided for the series of faults.
pub(super) const WINDOWS: u32 = 64;
