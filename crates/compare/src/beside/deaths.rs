//! Counts the trials of each side that ran out of memory, and tests whether one side does so more often.

use pagetide_quantity::{Bytes, PAGE_SIZE, Pages};
use pagetide_record::{Invalid, Record};
use pagetide_verdict::Verdict;
use pagetide_verdict::proportion::fisher;
use pagetide_verdict::sample::Count;
use serde::Serialize;

use super::ColumnNotes;
use crate::comparison::Side;
use crate::error::CompareError;

/// Number of trials on two sides that ran out of memory, with the result of a test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deaths {
    /// Number of trials that ran out of memory: on the baseline's side and on the other side.
    pub died: [u64; 2],
    /// Number of trials that ran out of memory or are valid: on the baseline's side and on the other side.
    pub trials: [u64; 2],
    /// Two-sided p-value of Fisher's exact test. It is conservative if both sides ran the same seeds.
    pub p: f64,
    /// The p-value after Holm's adjustment for all cells and columns in which a trial ran out of memory.
    pub p_adjusted: f64,
    /// Whether one side runs out of memory more often. The metrics do not affect this verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Content of memory when the first trial of each side ran out of memory, from its kernel log. `None` if the log
    /// has no report.
    pub made_of: [Option<String>; 2],
}

/// True if the trial of a record ran out of memory.
fn died(record: &Record) -> bool {
    record.results.invalid.iter().any(|why| match why {
        Invalid::OutOfMemory { .. } | Invalid::OutOfLimit { .. } => true,
        // The kernel panics if it runs out of memory and finds no process to kill.
        Invalid::Panic { reason } => {
            reason.to_lowercase().contains("out of memory")
                || reason.contains("deadlocked on memory")
        }
        _ => false,
    })
}

/// Counts the trials of two sides that ran out of memory; `None` if there are no such trials.
pub(super) fn of_sides(
    sides: [&Side; 2],
    load: &mut dyn FnMut(&str) -> Result<Record, CompareError>,
) -> Result<Option<Deaths>, CompareError> {
    let mut dead = [0; 2];
    let mut made_of = [None, None];
    for (place, side) in sides.iter().enumerate() {
        // The reason of such a trial contains this word, but only the record states which kind of failure it was.
        for trial in side
            .invalid
            .iter()
            .filter(|trial| trial.why.contains("memory"))
        {
            let record = load(&trial.record)?;
            if died(&record) {
                dead[place] += 1;
                if made_of[place].is_none() {
                    made_of[place] = composition(&record);
                }
            }
        }
    }
    if dead == [0, 0] {
        return Ok(None);
    }
    // Trials that are invalid for other reasons are not counted.
    let trials = [0, 1].map(|place| dead[place] + sides[place].trials.len() as u64);
    let count = |place: usize| Count {
        successes: dead[place],
        attempts: trials[place],
    };
    let p = if trials.contains(&0) {
        1.0
    } else {
        fisher(count(0), count(1))?.p
    };
    Ok(Some(Deaths {
        died: dead,
        trials,
        p,
        p_adjusted: p,
        verdict: Verdict::Inconclusive { n_needed: None },
        made_of,
    }))
}

/// Adds the adjusted p-value and the verdict to all counts. They share one error rate.
pub(super) fn decide(all: &mut [ColumnNotes], alpha: f64) {
    let mut deaths: Vec<&mut Deaths> = all.iter_mut().filter_map(|b| b.deaths.as_mut()).collect();
    deaths.sort_by(|a, b| a.p.total_cmp(&b.p));
    let count = deaths.len();
    let mut largest: f64 = 0.0;
    for (place, deaths) in deaths.into_iter().enumerate() {
        largest = largest.max(deaths.p * (count - place) as f64).min(1.0);
        deaths.p_adjusted = largest;
        let share = |side: usize| deaths.died[side] as f64 / deaths.trials[side].max(1) as f64;
        deaths.verdict = if largest > alpha {
            Verdict::Inconclusive { n_needed: None }
        } else if share(1) > share(0) {
            Verdict::Regressed
        } else {
            Verdict::Improved
        };
    }
}

/// Returns the content of memory, as in the report that the kernel prints before it kills a process (`mm/show_mem.c`),
/// and the peak size of zram. Memory that was locked or in slabs before the trial began is not included: it belongs to
/// the arena or the kernel, and is not part of the memory promised to the trial.
fn composition(record: &Record) -> Option<String> {
    let log = &record.results.kernel_log;
    let report = &log[log.find("Mem-Info:")?..];
    let pages = |names: &[&str]| -> Option<Bytes> {
        let all = names
            .iter()
            .map(|name| number(report, name, ':'))
            .sum::<Option<u64>>()?;
        Some(Pages(all).bytes())
    };
    let meminfo = record.results.counters.get("meminfo");
    let before = |name: &str| Some(meminfo?.values.get(name)?[0]);
    // If the size before the trial is known, only the growth counts; otherwise the whole size counts.
    let grown = |names: &[&str], name: &str| {
        let all = pages(names)?;
        Some(Bytes(all.0.saturating_sub(before(name).unwrap_or(0))))
    };
    let mut parts = Vec::new();
    let mut part = |size: Option<Bytes>, what: &str| {
        if let Some(size) = size.filter(|size| size.0 >= PAGE_SIZE) {
            parts.push(format!("{size} {what}"));
        }
    };
    part(pages(&["active_anon", "inactive_anon"]), "anonymous");
    part(pages(&["active_file", "inactive_file"]), "of files");
    part(grown(&["unevictable"], "Unevictable"), "locked");
    let slab = match before("Slab") {
        Some(_) => "more slab",
        None => "slab",
    };
    part(
        grown(&["slab_reclaimable", "slab_unreclaimable"], "Slab"),
        slab,
    );
    let zram = record.results.counters.get("zram");
    let most = zram.and_then(|zram| zram.values.get("mem_used_max"));
    part(most.map(|[_, most]| Bytes(*most)), "held by zram at most");
    part(pages(&["free"]), "free");
    let [free, total] = ["Free swap", "Total swap"].map(|name| number(report, name, '='));
    if let (Some(free), Some(total)) = (free, total)
        && total > 0
    {
        let used = Bytes::from_kib(total.saturating_sub(free));
        parts.push(format!("swap {used} of {} used", Bytes::from_kib(total)));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The number after a name, a separator and spaces in a report of the kernel; `None` if the name does not occur.
fn number(report: &str, name: &str, sign: char) -> Option<u64> {
    let mut from = 0;
    while let Some(found) = report[from..].find(name) {
        let start = from + found;
        from = start + name.len();
        let before = report[..start].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = report[from..].trim_start().strip_prefix(sign)?.trim_start();
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        return digits.parse().ok();
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn deaths(died: [u64; 2], trials: [u64; 2]) -> ColumnNotes {
        let count = |place: usize| Count {
            successes: died[place],
            attempts: trials[place],
        };
        let p = fisher(count(0), count(1)).unwrap().p;
        ColumnNotes {
            deaths: Some(Deaths {
                died,
                trials,
                p,
                p_adjusted: p,
                verdict: Verdict::Inconclusive { n_needed: None },
                made_of: [None, None],
            }),
            ..ColumnNotes::default()
        }
    }

    fn verdicts(mut all: Vec<ColumnNotes>) -> Vec<String> {
        decide(&mut all, 0.05);
        let deaths = all.iter().filter_map(|beside| beside.deaths.as_ref());
        deaths.map(|deaths| deaths.verdict.to_string()).collect()
    }

    #[test]
    fn four_of_four_against_none_is_decided_and_one_of_four_is_not() {
        assert_eq!(verdicts(vec![deaths([4, 0], [4, 4])]), ["improved"]);
        assert_eq!(verdicts(vec![deaths([0, 4], [4, 4])]), ["regressed"]);
        assert_eq!(verdicts(vec![deaths([1, 0], [4, 4])]), ["inconclusive"]);
        assert_eq!(verdicts(vec![deaths([8, 8], [8, 8])]), ["inconclusive"]);
    }

    #[test]
    fn several_cells_share_one_error_rate() {
        // Each p-value is 0.029. With two tests, neither is significant.
        let both = vec![deaths([4, 0], [4, 4]), deaths([0, 4], [4, 4])];
        assert_eq!(verdicts(both), ["inconclusive", "inconclusive"]);
    }

    #[test]
    fn the_report_of_the_kernel_tells_what_memory_was_made_of() {
        let mut record = Record::default();
        record.results.kernel_log = "<4>[ 5.9] Mem-Info:\n\
            <4>[ 5.9] active_anon:6084 inactive_anon:16 isolated_anon:1\n\
            <4>[ 5.9]  unevictable:20040 dirty:0\n\
            <4>[ 5.9]  free:395 free_pcp:25 free_cma:0\n\
            <4>[ 5.9] Free swap  = 89596kB\n<4>[ 5.9] Total swap = 196604kB\n"
            .to_owned();
        let text = composition(&record).unwrap();
        let sizes = [
            Pages(6100).bytes(),
            Pages(20040).bytes(),
            Pages(395).bytes(),
        ];
        let expected = format!(
            "{} anonymous, {} locked, {} free, swap ",
            sizes[0], sizes[1], sizes[2]
        );
        assert!(text.starts_with(&expected), "{text}");
        // Some memory was locked before the trial; only the 40 pages locked since then belong to the trial.
        let meminfo = record.results.counters.entry("meminfo".to_owned());
        let values = &mut meminfo.or_default().values;
        values.insert("Unevictable".to_owned(), [20_000 * PAGE_SIZE, 0]);
        let text = composition(&record).unwrap();
        let own = format!("{} anonymous, {} locked, ", sizes[0], Pages(40).bytes());
        assert!(text.starts_with(&own), "{text}");
        // If less is locked than before the trial, the result is zero and does not wrap to a huge number.
        let meminfo = record.results.counters.get_mut("meminfo").unwrap();
        let unevictable = meminfo.values.get_mut("Unevictable").unwrap();
        *unevictable = [30_000 * PAGE_SIZE, 0];
        let text = composition(&record).unwrap();
        assert!(!text.contains("locked"), "{text}");
        assert_eq!(composition(&Record::default()), None);
    }
}
