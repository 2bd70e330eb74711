//! Compares sums over tracepoints with the counters of vmstat, and gives the reason for a difference if known.

use serde::{Deserialize, Serialize};

use super::observer::ReclaimObserver;
use super::rows::RowId;
use pagetide_system::Delta;

/// Maximum difference between trace and counter that is not marked, in percent of the counter.
pub const TOLERANCE_PERCENT: f64 = 1.0;

/// Maximum number of pages per CPU not yet added to vmstat (mm/vmstat.c, `calculate_normal_threshold`).
const LAG_PAGES: u64 = 125;

/// Comparison of one row of the reclaim table with vmstat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CrossCheck {
    /// Names of the vmstat counters whose sum is compared.
    pub counters: Vec<String>,
    /// Increase of the counters' sum.
    pub counter: u64,
    /// Value of the row according to the trace.
    pub traced: u64,
    /// Trace minus counter, in percent of the counter; `None` if the counter did not grow but the trace has a value
    /// above 0.
    pub difference: Option<f64>,
    /// True if trace and counter differ by more than [`TOLERANCE_PERCENT`].
    pub disagrees: bool,
    /// Reason for the difference, or a caveat about the comparison; `None` if none is known.
    pub reason: Option<String>,
}

/// Counters and sums with which the rows are compared.
pub(super) struct Counterparts<'a> {
    pub(super) vmstat: &'a Delta,
    pub(super) observer: &'a ReclaimObserver,
    /// Number of CPUs of the machine.
    pub(super) cpus: u64,
    /// True if the kernel's counters per reclaimer include memory cgroup reclaim.
    pub(super) memcg_in_direct: bool,
    /// True if the kernel has an event for the fast path of the free scanner.
    pub(super) fast_path_traced: bool,
}

impl Counterparts<'_> {
    /// Returns the number of folios that reclaim wrote and whose size is unknown, because no event contains it.
    fn unsized_folios(&self) -> u64 {
        let sums = self.observer.sums.iter();
        sums.map(|sums| sums.folios_unsized).sum()
    }

    /// Returns the number of pages that reclaim wrote according to vmstat. `None` unless the trace has folios of
    /// unknown size and vmstat counts more pages than the trace, by more than [`TOLERANCE_PERCENT`].
    pub(super) fn written(&self, traced: u64) -> Option<u64> {
        let counter = self.vmstat.growth_of(&["nr_vmscan_write"])?;
        (self.unsized_folios() > 0 && counter > traced && differs(traced, counter))
            .then_some(counter)
    }

    /// Compares the traced sum of a row with the increase of its counters; `None` if the kernel has none of the
    /// counters.
    pub(super) fn check(&self, row: RowId, counters: &[&str], traced: u64) -> Option<CrossCheck> {
        let counter = self.vmstat.growth_of(counters)?;
        let disagrees = differs(traced, counter);
        let reason = self.reason(row, traced, counter, disagrees);
        Some(CrossCheck {
            counters: counters
                .iter()
                .filter(|key| self.vmstat.get(key).is_some())
                .map(|&key| key.to_owned())
                .collect(),
            counter,
            traced,
            difference: percent(traced, counter),
            disagrees,
            reason,
        })
    }

    fn reason(&self, row: RowId, traced: u64, counter: u64, disagrees: bool) -> Option<String> {
        let memcg = matches!(
            row,
            RowId::DirectScanned
                | RowId::DirectReclaimed
                | RowId::TotalScanned
                | RowId::TotalReclaimed
        );
        if memcg && self.memcg_in_direct {
            return Some(
                "this kernel's counter includes reclaim by memory cgroups, which was added to the traced sum".into(),
            );
        }
        if !disagrees {
            return None;
        }
        let more = counter > traced;
        let unknown = self.observer.by(super::event::Reclaimer::Unknown);
        let why = match row {
            RowId::DirectReclaims if more => {
                "vmstat counts a reclaim again whenever it starts over (protected groups, skipped cache)"
            }
            RowId::AllWritten if more && self.unsized_folios() > 0 => {
                "large folios were written whose I/O is not traced: each counts as a page in the trace"
            }
            RowId::CompactionSuccess | RowId::CompactionFailures => {
                "vmstat counts whether the allocation got its page afterwards, the events whether compaction made a block"
            }
            RowId::CompactionStalls => {
                "an allocation whose zones all met their watermark, or were never tried, leaves no event that tells which"
            }
            RowId::FreeScanned | RowId::Isolated if more && !self.fast_path_traced => {
                "this kernel has no event for the free scanner's fast search of the free lists"
            }
            RowId::FreeScanned | RowId::MigrateScanned | RowId::Isolated if more => {
                "the scanners' fast search of the free lists counts in vmstat but has no event of its own"
            }
            RowId::DirectScanned | RowId::KswapdScanned | RowId::TotalScanned
                if more && unknown.scanned > 0 =>
            {
                "some reclaim had begun before the trace did and is counted as unknown"
            }
            _ if traced.abs_diff(counter) <= LAG_PAGES.saturating_mul(self.cpus) => {
                "the difference is within what vmstat's per-CPU counters may lag behind"
            }
            _ => return None,
        };
        Some(why.into())
    }
}

/// Returns true if the two counts differ by more than [`TOLERANCE_PERCENT`].
fn differs(traced: u64, counter: u64) -> bool {
    percent(traced, counter).is_none_or(|percent| percent.abs() > TOLERANCE_PERCENT)
}

/// Returns traced minus counter, in percent of the counter; `None` if only the counter is 0.
fn percent(traced: u64, counter: u64) -> Option<f64> {
    match (traced, counter) {
        (0, 0) => Some(0.0),
        (_, 0) => None,
        _ => Some(100.0 * (traced as f64 - counter as f64) / counter as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_percent_agrees_and_a_little_more_does_not() {
        assert!(!differs(101, 100));
        assert!(differs(102, 100));
        assert!(!differs(0, 0));
        assert!(differs(1, 0));
        assert!(differs(0, 1));
    }
}
