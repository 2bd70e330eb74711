//! Results of an analysis of a reference string: faults of each policy at each memory size, compared with OPT.

use std::io;

use serde::Serialize;

use crate::fewest_writes::fewest_write_backs;
use crate::memory::memory_at_hand;
use crate::policy::Choice;
use crate::run::{Job, Outcome, simulate_counting};
use crate::string::ReferenceString;
use crate::writes::{WriteCost, Writes};

/// Result of one policy at one size of memory.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    /// Name of the policy, with the parameters that differ from their defaults.
    pub policy: String,
    /// Size of memory in pages.
    pub pages: u32,
    /// Number of references that did not find their page in memory.
    pub faults: u64,
    /// Fraction of the references that fault.
    pub share: f64,
    /// Faults divided by those of OPT at the same size; 1 if both have none.
    pub headroom: f64,
    /// Number of faults in each window of the string, in order.
    pub windows: Vec<u64>,
    /// Seconds of processor time that the simulation took.
    pub seconds: f64,
    /// Dirty pages evicted, including those evicted while memory was first filled; `None` unless write-backs are
    /// counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_backs: Option<u64>,
    /// Faults plus the cost of the write-backs, in faults; `None` unless write-backs are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// Lower bounds for one memory size that no policy can beat. No policy needs to reach all of them at the same time.
#[derive(Debug, Clone, Serialize)]
pub struct Bound {
    /// Size of memory in pages.
    pub pages: u32,
    /// Faults of OPT: the fewest possible.
    pub faults: u64,
    /// Lower bound for the number of write-backs of any policy, however many faults it has.
    pub write_backs: u64,
    /// Lower bound for the total cost (faults and write-backs), in faults.
    pub cost: f64,
}

/// Results of all policies at all memory sizes for one reference string.
#[derive(Debug, Clone, Serialize)]
pub struct Answer {
    /// Number of counted references: all except the first `lead` references.
    pub references: u64,
    /// Number of references at the beginning that fill memory and are not counted.
    pub lead: u32,
    /// Number of distinct pages.
    pub distinct: u32,
    /// One line per memory size and policy, in the order of the requested sizes, then of the requested policies. OPT is
    /// always included: first if it was not requested.
    pub lines: Vec<Line>,
    /// Cost of a write-back, in faults; `None` unless write-backs are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_cost: Option<f64>,
    /// Lower bounds, one for each size; empty unless write-backs are counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bound>,
}

/// Returns `faults` divided by `best`, the faults of OPT; 1 if both are 0.
pub fn headroom(faults: f64, best: f64) -> f64 {
    if faults <= 0.0 && best <= 0.0 {
        1.0
    } else {
        faults / best
    }
}

/// Fails if the bitmaps that OPT needs for `references` references do not fit in `memory` bytes. `at_once` bitmaps
/// exist at the same time. Each has one bit per reference, and needs three times this space while it grows.
fn fits(references: u64, at_once: u64, memory: u64) -> io::Result<()> {
    let needed = (references / 8).saturating_mul(3 * at_once);
    if needed <= memory {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "OPT needs {} for {references} references, more than the memory at hand; estimate LRU's curve with --curve --sample 0.01",
        pagetide_quantity::Bytes(needed)
    )))
}

/// Simulates each policy in `choices` and OPT with each memory size in `sizes`, and compares the policies with OPT. The
/// faults are also counted in each of `windows` parts of the string. `workers` threads run at a time. Fails if OPT's
/// tables do not fit in memory, or if the references cannot be read.
pub fn ask(
    string: &ReferenceString,
    choices: &[Choice],
    sizes: &[u32],
    windows: u32,
    workers: usize,
) -> io::Result<Answer> {
    answer(string, choices, sizes, windows, workers, None)
}

/// Does the same as [`ask`], and also counts the write-backs of each policy and computes their cost and its lower
/// bounds.
///
/// If `cost` is `None`, write-backs are not counted. If `cost` is given, fails if the string does not state which
/// references are writes.
pub fn ask_costing(
    string: &ReferenceString,
    choices: &[Choice],
    sizes: &[u32],
    windows: u32,
    workers: usize,
    cost: Option<WriteCost>,
) -> io::Result<Answer> {
    let Some(cost) = cost else {
        return ask(string, choices, sizes, windows, workers);
    };
    let Some(writes) = string.writes() else {
        return Err(io::Error::other(
            "which of these references write is not known, so that write-backs cannot be counted; leave --write-cost out",
        ));
    };
    let mut answer = answer(string, choices, sizes, windows, workers, Some(writes))?;
    for line in &mut answer.lines {
        line.cost = line.write_backs.map(|count| cost.of(line.faults, count));
    }
    for &pages in sizes {
        let opt = |line: &&Line| line.pages == pages && line.policy == "opt";
        let faults = answer.lines.iter().find(opt).map_or(0, |line| line.faults);
        let write_backs = fewest_write_backs(string, writes, pages)?;
        answer.bounds.push(Bound {
            pages,
            faults,
            write_backs,
            cost: cost.of(faults, write_backs),
        });
    }
    answer.write_cost = Some(cost.faults());
    Ok(answer)
}

fn answer(
    string: &ReferenceString,
    choices: &[Choice],
    sizes: &[u32],
    windows: u32,
    workers: usize,
    writes: Option<&Writes>,
) -> io::Result<Answer> {
    let mut choices = choices.to_vec();
    if !choices.iter().any(|choice| choice.about().name == "opt") {
        choices.insert(0, Choice::opt());
    }
    let jobs: Vec<Job> = sizes
        .iter()
        .flat_map(|&size| {
            choices.iter().map(move |choice| Job {
                choice: choice.clone(),
                size,
            })
        })
        .collect();
    let at_once = sizes.len().min(workers).max(1) as u64;
    fits(string.references(), at_once, memory_at_hand())?;
    let outcomes = simulate_counting(string, &jobs, windows, workers, writes)?;
    let best = |size: u32| {
        let opt = |job: &Job| job.size == size && job.choice.about().name == "opt";
        let place = jobs.iter().position(opt);
        place.map_or(0, |place| outcomes[place].faults)
    };
    let references = string.references() - u64::from(string.lead());
    let line = |(job, outcome): (&Job, &Outcome)| Line {
        policy: job.choice.to_string(),
        pages: job.size,
        faults: outcome.faults,
        share: outcome.faults as f64 / references.max(1) as f64,
        headroom: headroom(outcome.faults as f64, best(job.size) as f64),
        windows: outcome.windows.clone(),
        seconds: outcome.took.as_secs_f64(),
        write_backs: outcome.write_backs,
        cost: None,
    };
    Ok(Answer {
        references,
        lead: string.lead(),
        distinct: string.distinct(),
        lines: jobs.iter().zip(&outcomes).map(line).collect(),
        write_cost: None,
        bounds: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_too_long_for_opt_is_refused_in_a_sentence_before_memory_is_taken() {
        assert!(fits(6_000_000, 2, 60 << 20).is_ok());
        let refused = fits(417_000_000, 1, 100 << 20).unwrap_err().to_string();
        assert!(refused.contains("memory at hand") && refused.contains("--sample"));
    }
}
