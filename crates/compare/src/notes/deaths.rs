//! Counts the trials of each side that ran out of memory, and tests whether one side does so more often.

use pagetide_quantity::{Bytes, PAGE_SIZE};
use pagetide_record::{Counters, Invalid, OomReport, Record};
use pagetide_verdict::Verdict;
use pagetide_verdict::proportion::fisher;
use pagetide_verdict::sample::Count;
use serde::Serialize;

use super::ColumnNotes;
use crate::comparison::Side;
use crate::error::CompareError;

/// Number of trials of two sides that died for lack of memory, and the result of a test of the difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Deaths {
    /// Number of trials that died for lack of memory: of the baseline, then of the compared side.
    pub died: [u64; 2],
    /// Number of trials that are valid or died for lack of memory: of the baseline, then of the compared side.
    pub trials: [u64; 2],
    /// Number of trials that the kernel killed although there was memory to reclaim: of the baseline, then of the
    /// compared side.
    pub early: [u64; 2],
    /// Two-sided p-value of Fisher's exact test. It is conservative if both sides ran the same seeds.
    pub p: f64,
    /// P-value after Holm's adjustment for all cells and columns in which a trial died.
    pub p_adjusted: f64,
    /// Verdict on the difference in the number of deaths. It does not depend on metrics.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// What filled memory at the first death of each side whose kernel log has an out-of-memory report; `None` if no
    /// log has one.
    pub made_of: [Option<String>; 2],
    /// Reclaim activity in the trial that `made_of` describes, or in the last death if it is `None`; one text per side.
    /// `None` if the record has no such counters.
    pub reclaim: [Option<String>; 2],
}

impl Default for Deaths {
    /// Returns the value for no trials, with an inconclusive verdict.
    fn default() -> Self {
        Self {
            died: [0; 2],
            trials: [0; 2],
            early: [0; 2],
            p: 1.0,
            p_adjusted: 1.0,
            verdict: Verdict::Inconclusive { n_needed: None },
            made_of: [None, None],
            reclaim: [None, None],
        }
    }
}

impl Deaths {
    /// Returns the number of deaths of a side as text, such as "6 of 8". Side 0 is the baseline, side 1 is the compared
    /// side.
    pub fn share(&self, side: usize) -> String {
        format!("{} of {}", self.died[side], self.trials[side])
    }
}

/// Sets `died` in those invalid trials of a side that died for lack of memory.
pub(super) fn mark(
    side: &mut Side,
    load: &mut dyn FnMut(&str) -> Result<Record, CompareError>,
) -> Result<(), CompareError> {
    // Only invalid trials whose reason contains the word "memory" can be deaths. The record states the kind of failure.
    let asked = |why: &str| why.contains("memory");
    for trial in side.invalid.iter_mut().filter(|trial| asked(&trial.why)) {
        let record = load(&trial.record)?;
        trial.died = record.results.invalid.iter().any(Invalid::is_death);
    }
    Ok(())
}

/// True if the kernel killed although there was memory to reclaim. Older records do not state this; for them, the
/// out-of-memory report in the kernel log decides.
fn is_early(record: &Record) -> bool {
    record.results.invalid.iter().any(|why| match why {
        Invalid::GaveUp { .. } => true,
        Invalid::OutOfMemory { .. } | Invalid::OutOfLimit { .. } => {
            let report = OomReport::last(&record.results.kernel_log);
            let memory = report.and_then(|report| report.memory());
            memory.is_some_and(|memory| memory.is_to_spare())
        }
        _ => false,
    })
}

/// Counts the trials of two sides that died for lack of memory; `None` if there are no such trials.
pub(super) fn of_sides(
    sides: [&Side; 2],
    load: &mut dyn FnMut(&str) -> Result<Record, CompareError>,
) -> Result<Option<Deaths>, CompareError> {
    let mut deaths = Deaths::default();
    for (place, side) in sides.iter().enumerate() {
        for trial in side.invalid.iter().filter(|trial| trial.died) {
            let record = load(&trial.record)?;
            deaths.died[place] += 1;
            deaths.early[place] += u64::from(is_early(&record));
            if deaths.made_of[place].is_none() {
                deaths.made_of[place] = composition(&record);
                deaths.reclaim[place] = reclaim(&record);
            }
        }
        // Trials that are invalid for another reason than a death are not counted.
        deaths.trials[place] = deaths.died[place] + side.trials.len() as u64;
    }
    if deaths.died == [0, 0] {
        return Ok(None);
    }
    deaths.p = p_of(deaths.died, deaths.trials)?;
    deaths.p_adjusted = deaths.p;
    Ok(Some(deaths))
}

/// Returns the p-value of Fisher's test for the hypothesis that both sides die equally often; 1 if a side has no trial.
fn p_of(died: [u64; 2], trials: [u64; 2]) -> Result<f64, CompareError> {
    if trials.contains(&0) {
        return Ok(1.0);
    }
    let [a, b] = [0, 1].map(|place| Count {
        successes: died[place],
        attempts: trials[place],
    });
    Ok(fisher(a, b)?.p)
}

/// Sets the adjusted p-value and the verdict of all counts of deaths, which share the error rate `alpha`.
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

/// Describes what filled memory, from the report that the kernel prints before it kills a process (`mm/show_mem.c`),
/// and the peak size of zram; if a memory cgroup ran out, only the memory of the cgroup. Memory of the machine that was
/// locked or in slabs before the trial began is not included, because it was never promised to the trial.
fn composition(record: &Record) -> Option<String> {
    let report = OomReport::find(&record.results.kernel_log)?;
    if let Some(memory) = report.memory().filter(|memory| memory.is_group) {
        return Some(format!("{} anonymous, {memory}", memory.anon));
    }
    let pages = |names: &[&str]| report.pages(names);
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
    part(pages(&["dirty"]), "of them dirty");
    part(pages(&["writeback"]), "of them under writeback");
    part(grown(&["unevictable"], "Unevictable"), "locked");
    let slab = match before("Slab") {
        Some(_) => "more slab",
        None => "slab",
    };
    part(
        grown(&["slab_reclaimable", "slab_unreclaimable"], "Slab"),
        slab,
    );
    part(
        record.results.zram_peak().map(Bytes),
        "held by zram at most",
    );
    part(pages(&["free"]), "free");
    if let Some([free, total]) = report.swap().filter(|[_, total]| total.0 > 0) {
        parts.push(format!(
            "swap {} of {total} used",
            total.saturating_sub(free)
        ));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Describes reclaim activity in a trial that died: number of pages scanned and reclaimed, number of direct reclaims,
/// and whether reclaim waited for writeback. The counters are those of the workload's memory cgroup, or of the machine
/// if there is none.
fn reclaim(record: &Record) -> Option<String> {
    let counters = &record.results.counters;
    let group = counters.get("memory.stat");
    let counters: &Counters = group.or_else(|| counters.get("vmstat"))?;
    // The counters for each type of page count the same pages again, so they are not added.
    let sum = |prefix: &str| -> u64 {
        let all = counters.values.iter().filter(|(name, _)| {
            name.starts_with(prefix)
                && !["_anon", "_file", "_throttle"]
                    .iter()
                    .any(|end| name.ends_with(end))
        });
        all.map(|(_, [before, after])| after.saturating_sub(*before))
            .sum()
    };
    let mut parts = vec![format!(
        "{} pages scanned, {} reclaimed",
        sum("pgscan_"),
        sum("pgsteal_")
    )];
    let count = |name: &str| counters.delta(name);
    if let Some(found) = count("nr_vmscan_immediate_reclaim") {
        parts.push(format!(
            "{found} times met a page that had to be written first"
        ));
    }
    let stalls = sum("allocstall_");
    if stalls > 0 {
        parts.push(format!("{stalls} allocations reclaimed for themselves"));
    }
    if let Some(waited) = count("pgscan_direct_throttle") {
        parts.push(format!("{waited} of them waited for kswapd"));
    }
    match count("nr_throttled_written") {
        Some(0) => parts.push("reclaim never waited for writeback".to_owned()),
        Some(pages) => parts.push(format!("{pages} pages were written while reclaim waited")),
        None => {}
    }
    Some(parts.join(", "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use pagetide_quantity::Pages;

    use super::*;

    fn deaths(died: [u64; 2], trials: [u64; 2]) -> ColumnNotes {
        let p = p_of(died, trials).unwrap();
        ColumnNotes {
            deaths: Some(Deaths {
                died,
                trials,
                p,
                p_adjusted: p,
                verdict: Verdict::Inconclusive { n_needed: None },
                ..Deaths::default()
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
    fn nothing_is_decided_by_ties_missing_trials_or_one_pair() {
        for (died, trials) in [
            ([3, 3], [8, 8]),
            ([8, 0], [8, 0]),
            ([0, 8], [0, 8]),
            ([1, 0], [1, 1]),
            ([3, 0], [3, 3]),
        ] {
            let all = verdicts(vec![deaths(died, trials)]);
            assert_eq!(all, ["inconclusive"], "{died:?} of {trials:?}");
        }
        // With eight seeds on each side, five deaths against none is the smallest significant difference.
        assert_eq!(verdicts(vec![deaths([0, 4], [8, 8])]), ["inconclusive"]);
        assert_eq!(verdicts(vec![deaths([0, 5], [8, 8])]), ["regressed"]);
    }

    #[test]
    fn what_reclaim_did_is_told_from_the_counters_of_the_trial() {
        let mut record = Record::default();
        assert_eq!(reclaim(&record), None);
        let vmstat = record.results.counters.entry("vmstat".to_owned());
        let values = &mut vmstat.or_default().values;
        for (name, after) in [
            ("pgscan_direct", 279_406),
            ("pgscan_kswapd", 127_752),
            ("pgscan_file", 407_146),
            ("pgscan_direct_throttle", 9),
            ("pgsteal_direct", 525),
            ("pgsteal_kswapd", 1_577),
            ("pgsteal_file", 2_091),
            ("allocstall_movable", 139),
            ("allocstall_normal", 4),
            ("nr_vmscan_immediate_reclaim", 134_546),
            ("nr_throttled_written", 0),
        ] {
            values.insert(name.to_owned(), [0, after]);
        }
        assert_eq!(
            reclaim(&record).unwrap(),
            "407158 pages scanned, 2102 reclaimed, 134546 times met a page that had to be written first, 143 allocations \
             reclaimed for themselves, 9 of them waited for kswapd, reclaim never waited for writeback"
        );
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
            <4>[ 5.9]  active_file:700 inactive_file:1090 isolated_file:0\n\
            <4>[ 5.9]  unevictable:20040 dirty:500 writeback:1275\n\
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
            "{} anonymous, 6.99 MiB of files, 1.95 MiB of them dirty, 4.98 MiB of them under writeback, {} locked, {} free, swap ",
            sizes[0], sizes[1], sizes[2]
        );
        assert!(text.starts_with(&expected), "{text}");
        // Some memory was locked before the trial; only the 40 pages locked since then belong to the trial.
        let meminfo = record.results.counters.entry("meminfo".to_owned());
        let values = &mut meminfo.or_default().values;
        values.insert("Unevictable".to_owned(), [20_000 * PAGE_SIZE, 0]);
        let text = composition(&record).unwrap();
        let own = format!(" under writeback, {} locked, ", Pages(40).bytes());
        assert!(text.contains(&own), "{text}");
        // If less is locked than before the trial, the result is zero and does not wrap to a huge number.
        let meminfo = record.results.counters.get_mut("meminfo").unwrap();
        let unevictable = meminfo.values.get_mut("Unevictable").unwrap();
        *unevictable = [30_000 * PAGE_SIZE, 0];
        let text = composition(&record).unwrap();
        assert!(!text.contains("locked"), "{text}");
        assert_eq!(composition(&Record::default()), None);
    }
}
