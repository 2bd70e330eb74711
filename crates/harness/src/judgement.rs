//! The data read before and after a scenario, and the checks whether the trial did what it claims.
//!
//! Reading and checking are separate. The process next to the workload only reads. All computation that needs no kernel
//! is done later; for a guest, by the controller. The reason is speed: code that runs once in a guest must first be
//! translated by the emulator, and the translation costs more than the execution.

use pagetide_quantity::{Direction, MetricDef, Unit};
use pagetide_quantity::{Metric, Nanos};
use pagetide_record::outcome::Invalid;
use pagetide_record::record::Results;
use pagetide_scenario::Outcome;
use pagetide_system::free::Zones;
use serde::{Deserialize, Serialize};

use crate::counters::{self, Idle, Moment};
use crate::log;

/// Name of the frame that contains a [`Report`] as JSON.
pub const REPORT: &str = "report";
/// Name of the frame that contains the whole kernel log.
pub const LOG: &str = "log";
/// Maximum number of bytes of the kernel log that a record stores, counted from its end.
const LOG_TAIL_BYTES: usize = 16 << 10;

/// Data that only the process next to the workload can read, sent to the controller.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Settings, facts, warnings, and the reasons why the scenario did not run or did not end.
    pub results: Results,
    /// Data read before and after the scenario; `None` if the scenario never ran.
    pub ran: Option<Readings>,
}

/// Data read before and after the scenario.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Readings {
    /// Start of the scenario, on the clock of the kernel log.
    pub started: Nanos,
    /// Time when all data after the scenario had been read.
    pub ended: Nanos,
    /// Texts of files in `/proc` before the scenario.
    pub before: Moment,
    /// Texts of files in `/proc` after the scenario.
    pub after: Moment,
    /// Idle counters before the scenario, read after all other data.
    pub idle_before: Idle,
    /// Idle counters after the scenario, read before all other data.
    pub idle_after: Idle,
}

impl Report {
    /// Computes the results of the trial. `outcome` is an [`Outcome`] as JSON, `None` if the scenario returned none.
    /// Uses the counters and the kernel log to check whether the trial did what it claims. If `needs_pressure`, a trial
    /// without reclaim is invalid.
    pub fn finish(self, outcome: Option<&[u8]>, log: &str, needs_pressure: bool) -> Results {
        let mut results = self.results;
        let Some(ran) = self.ran else {
            return results;
        };
        results.elapsed = ran.ended.since(ran.started);
        results.texts = counters::texts(&ran.before, &ran.after);
        results.halts = Some(counters::halts(ran.idle_before, ran.idle_after));
        let zones = ran.before.text("zoneinfo").map(Zones::parse);
        if let Some(pages) = zones.and_then(|zones| zones.all_free()) {
            results
                .facts
                .insert("free-at-start".to_owned(), pages.bytes().0.to_string());
        }
        take(outcome, &mut results);
        judge(needs_pressure, &mut results);
        let found = log::judge(log, ran.started);
        if !found.is_empty() {
            // The kernel's message is more informative than the number of the signal. A scenario only guesses why one
            // of its processes was killed.
            let is_killed = found.iter().any(Invalid::is_death);
            results.invalid.retain(|known| match known {
                Invalid::ProcessDied { .. } | Invalid::Program { .. } => false,
                Invalid::OutOfMemory { .. } => !is_killed,
                _ => true,
            });
        }
        results.invalid.extend(found);
        results.kernel_log = log::last(log, LOG_TAIL_BYTES).to_owned();
        results
    }
}

/// Adds the scenario's outcome to the results. Without a readable outcome the trial is invalid.
fn take(outcome: Option<&[u8]>, results: &mut Results) {
    match outcome.and_then(|json| serde_json::from_slice::<Outcome>(json).ok()) {
        Some(outcome) => {
            results.elapsed = outcome.elapsed;
            results.metrics = outcome.metrics;
            results.histograms = outcome.histograms;
            results.invalid.extend(outcome.invalid);
            results.warnings.extend(outcome.warnings);
            results.texts.extend(outcome.texts);
        }
        None if results.invalid.is_empty() => {
            results.invalid.push(Invalid::Scenario {
                why: "it left no outcome".to_owned(),
            });
        }
        None => {}
    }
}

/// Marks the trial as invalid if the CPU halted, or if the kernel reclaimed nothing although `needs_pressure` is true.
/// Adds the metrics that are kernel counters.
fn judge(needs_pressure: bool, results: &mut Results) {
    let halted = results
        .halts
        .as_ref()
        .map_or(0, pagetide_record::Halts::times);
    if halted > 0 {
        results.invalid.push(Invalid::Halted { times: halted });
    }
    // If the workload has its own control group, reclaim elsewhere on the machine does not count.
    let group = results.counters.get("memory.stat");
    let Some(vmstat) = group.or_else(|| results.counters.get("vmstat")) else {
        return;
    };
    let reclaimed: u64 = vmstat
        .values
        .iter()
        .filter(|(name, _)| {
            name.starts_with("pgsteal_") && !name.ends_with("_anon") && !name.ends_with("_file")
        })
        .map(|(_, [before, after])| after.saturating_sub(*before))
        .sum();
    if needs_pressure && reclaimed == 0 && results.invalid.is_empty() {
        results.invalid.push(Invalid::NoReclaim);
    }
    let count = |name: &str| vmstat.delta(name);
    let add = [
        (
            MetricDef::count("major-faults", Direction::Lower, ""),
            count("pgmajfault"),
        ),
        (
            MetricDef::of("swapped-in", Unit::Pages, Direction::Lower, ""),
            count("pswpin"),
        ),
        (
            MetricDef::of("swapped-out", Unit::Pages, Direction::Lower, ""),
            count("pswpout"),
        ),
        (
            MetricDef::of("reclaimed", Unit::Pages, Direction::Neutral, ""),
            Some(reclaimed),
        ),
    ];
    for (def, value) in add {
        if results.metrics.iter().all(|metric| metric.name != def.name) {
            match value {
                Some(value) => results.metrics.push(Metric::new(&def, value as f64)),
                None => results
                    .metrics
                    .push(Metric::absent(&def, "not on this kernel")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(reclaimed: u64) -> Report {
        let mut report = Report {
            ran: Some(Readings {
                started: Nanos::from_secs(1),
                ended: Nanos::from_secs(3),
                ..Readings::default()
            }),
            ..Report::default()
        };
        let values = [("pgsteal_kswapd".to_owned(), [5, 5 + reclaimed])].into();
        let vmstat = pagetide_record::record::Counters { values };
        report.results.counters.insert("vmstat".to_owned(), vmstat);
        report
    }

    #[test]
    fn without_reclaim_a_scenario_that_needs_it_is_invalid() {
        let outcome = serde_json::to_vec(&Outcome::default()).unwrap();
        let results = ran(0).finish(Some(&outcome), "", true);
        assert_eq!(results.invalid, [Invalid::NoReclaim]);
        let results = ran(7).finish(Some(&outcome), "", true);
        assert_eq!(results.invalid, []);
        let metric = |name: &str| results.metrics.iter().find(|m| m.name == name).unwrap();
        assert_eq!(metric("reclaimed").value.number(), Some(7.0));
        assert_eq!(metric("swapped-in").value.number(), None, "no such counter");
    }

    #[test]
    fn a_kill_in_the_log_replaces_the_signals_number() {
        let mut report = ran(7);
        report.results.invalid.push(Invalid::ProcessDied {
            process: "the main process".to_owned(),
            how: "signal 9".to_owned(),
        });
        let log = "<3>[    2.250000] Out of memory: Killed process 77 (swapbench) total-vm:1kB\n";
        let results = report.finish(None, log, true);
        assert!(matches!(results.invalid[..], [Invalid::OutOfMemory { .. }]));
        assert!(results.kernel_log.contains("Killed process 77"));
    }

    #[test]
    fn what_never_ran_is_left_as_it_is() {
        let mut report = Report::default();
        report.results.invalid.push(Invalid::Scenario {
            why: "there is none".to_owned(),
        });
        let results = report.finish(None, "", true);
        assert_eq!(results.invalid.len(), 1);
        assert!(results.halts.is_none() && results.metrics.is_empty());
    }
}
