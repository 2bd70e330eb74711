//! The data read before and after a scenario, and the checks whether the trial did what it claims.
//!
//! Reading and checking are separate. The process next to the workload only reads. All computation that needs no kernel
//! is done later; for a guest, by the controller. The reason is speed: code that runs once in a guest must first be
//! translated by the emulator, and the translation costs more than the execution.

use pagetide_quantity::{Direction, MetricDef, Unit};
use pagetide_quantity::{Metric, Nanos};
use pagetide_record::outcome::Invalid;
use pagetide_record::record::{Counters, Results};
use pagetide_scenario::Outcome;
use pagetide_system::free::Zones;
use pagetide_system::swaps;
use serde::{Deserialize, Serialize};

use crate::counters::{self, Idle, Moment};
use crate::log;
use crate::peak::ZSWAP_PEAK;

/// Name of the frame that contains a [`Report`] as JSON.
pub const REPORT: &str = "report";
/// Name of the frame that contains the whole kernel log.
pub const LOG: &str = "log";
/// Name of the fact that states how often the workload reached the limit of its memory cgroup.
pub const LIMIT_HITS: &str = "limit-hits";
/// Name of the source that contains the counters of the workload's memory cgroup.
pub const GROUP: &str = "memory.stat";
/// Name of the metric with the number of bytes written to swap areas that are disks.
pub const SWAP_WRITTEN: &str = "swap-written";
/// Name of the metric with the peak memory that zram and zswap held for compressed pages.
pub const SWAP_MEMORY: &str = "swap-memory";
/// Maximum number of bytes of the kernel log that a record stores, counted from its end.
const LOG_TAIL_BYTES: usize = 16 << 10;

/// Data that only the process next to the workload can read, sent to the controller.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Settings, facts, warnings, counters, and the reasons known so far why the trial is invalid.
    pub results: Results,
    /// Data read before and after the scenario; `None` if the scenario never ran.
    pub ran: Option<Readings>,
}

/// Data read before and after the scenario.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Readings {
    /// Start of the scenario on `CLOCK_MONOTONIC`, which is compared with time stamps of the kernel log.
    pub started: Nanos,
    /// Time when all data after the scenario had been read.
    pub ended: Nanos,
    /// Texts of files in `/proc` before the scenario.
    pub before: Moment,
    /// Texts of files in `/proc` after the scenario.
    pub after: Moment,
    /// Idle counters read before the settings of the trial were applied. `None` if idle processors are normal on this
    /// machine, because it has several processors or other users.
    pub idle_before: Option<Idle>,
    /// Idle counters after the scenario, read before the other counters.
    pub idle_after: Idle,
}

impl Report {
    /// Computes the results of the trial. `outcome` is an [`Outcome`] as JSON, `None` if the scenario returned none.
    /// Uses the counters and the kernel log to check whether the trial did what it claims. `log` must only contain lines
    /// about this trial's machine or memory cgroup. If `needs_pressure`, a trial without reclaim is invalid.
    pub fn finish(self, outcome: Option<&[u8]>, log: &str, needs_pressure: bool) -> Results {
        let mut results = self.results;
        let Some(ran) = self.ran else {
            return results;
        };
        results.elapsed = ran.ended.since(ran.started);
        results.texts = counters::texts(&ran.before, &ran.after);
        results.halts = ran
            .idle_before
            .map(|before| counters::halts(before, ran.idle_after));
        // Free memory says nothing about the workload where other processes run. Several processors count as that too.
        let is_alone = results.halts.is_some();
        let zones = ran.before.text("zoneinfo").filter(|_| is_alone);
        let zones = zones.map(Zones::parse);
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
        if is_alone {
            results.invalid.extend(unexplained_kills(&results));
        }
        results.kernel_log = log::last(log, LOG_TAIL_BYTES).to_owned();
        results
    }
}

/// Returns the reason why a trial is invalid whose kernel counted kills for lack of memory, if no other reason is a death:
/// the log, which tells what happened, then has no readable report of them.
fn unexplained_kills(results: &Results) -> Option<Invalid> {
    let kills = results.counters.get("vmstat")?.delta("oom_kill")?;
    let is_explained = results.invalid.iter().any(Invalid::is_death);
    (kills > 0 && !is_explained).then(|| Invalid::Oops {
        line: format!("oom_kill {kills}"),
    })
}

/// Adds the scenario's outcome, as JSON, to the results. Without a readable outcome the trial is invalid.
fn take(outcome: Option<&[u8]>, results: &mut Results) {
    match outcome.and_then(|json| serde_json::from_slice::<Outcome>(json).ok()) {
        Some(outcome) => {
            results.elapsed = outcome.elapsed;
            results.metrics = outcome.metrics;
            results.histograms = outcome.histograms;
            results.invalid.extend(outcome.invalid);
            results.warnings.extend(outcome.warnings);
            results.texts.extend(outcome.texts);
            let counters = outcome.counters.into_iter();
            let counters = counters.map(|(source, values)| (source, Counters { values }));
            results.counters.extend(counters);
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
    // If the workload has its own memory cgroup, reclaim elsewhere on the machine does not count.
    let group = results.counters.get(GROUP);
    let machine = results.counters.get("vmstat");
    let Some(vmstat) = group.or(machine) else {
        return;
    };
    let reclaimed = reclaimed(vmstat);
    // Groups of version 1 do not count reclaim. They count how often the workload reached its limit.
    let met_limit = || {
        let hits = results.facts.get(LIMIT_HITS)?;
        hits.parse::<u64>().ok()
    };
    let pressure = reclaimed.or_else(met_limit).unwrap_or(0);
    if needs_pressure && pressure == 0 && results.invalid.is_empty() {
        results.invalid.push(Invalid::NoReclaim);
    }
    // Groups of version 1 do not count swap. There the machine's counts are used for the workload; the arena checks that
    // no other process uses the same swap.
    let count = |name: &str| {
        let of_group = vmstat.delta(name);
        of_group.or_else(|| machine.and_then(|machine| machine.delta(name)))
    };
    let mut add = vec![
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
            reclaimed,
        ),
    ];
    if let Some(use_of) = SwapUse::of(results) {
        add.extend([
            (
                MetricDef::of(SWAP_WRITTEN, Unit::Bytes, Direction::Lower, ""),
                use_of.written,
            ),
            (
                MetricDef::of(SWAP_MEMORY, Unit::Bytes, Direction::Lower, ""),
                use_of.memory,
            ),
        ]);
    }
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

/// Returns the number of reclaimed pages; `None` if `counters` has no counters of reclaim.
fn reclaimed(counters: &Counters) -> Option<u64> {
    let mut of_reclaim = counters
        .values
        .iter()
        .filter(|(name, _)| {
            name.starts_with("pgsteal_") && !name.ends_with("_anon") && !name.ends_with("_file")
        })
        .peekable();
    of_reclaim.peek()?;
    let grown = of_reclaim.map(|(_, [before, after])| after.saturating_sub(*before));
    Some(grown.sum())
}

/// Costs of swap in a trial, other than time.
struct SwapUse {
    /// Bytes written to swap areas that are disks, as counted by the block layer; `None` if not counted.
    written: Option<u64>,
    /// Peak memory held by zram and zswap for compressed pages, in bytes; `None` if not measured.
    memory: Option<u64>,
}

impl SwapUse {
    /// Computes the costs of swap from the results of a trial. `None` if the machine had no swap, or if the results do
    /// not list the swap areas.
    fn of(results: &Results) -> Option<Self> {
        let areas = swaps::parse(results.texts.get("swaps-before")?.as_bytes());
        let names: Vec<&str> = areas
            .iter()
            .map(|area| area.rsplit('/').next().unwrap_or(area))
            .collect();
        if names.is_empty() {
            return None;
        }
        let (in_memory, disks): (Vec<&str>, Vec<&str>) =
            names.into_iter().partition(|name| name.starts_with("zram"));
        let diskstats = results.counters.get("diskstats");
        let written = |name: &&str| diskstats?.delta(&format!("{name} written"));
        let has_zswap = results.settings.get("zswap/enabled");
        let of_zswap = || results.facts.get(ZSWAP_PEAK)?.parse().ok();
        let parts = [
            (!in_memory.is_empty()).then(|| results.zram_peak()),
            has_zswap
                .is_some_and(|state| state.trim() == "Y")
                .then(of_zswap),
        ];
        Some(Self {
            written: disks.iter().map(written).sum(),
            memory: parts.into_iter().flatten().sum(),
        })
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
        report.ran.as_mut().unwrap().idle_before = Some(Idle::default());
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
    fn kills_that_the_log_does_not_tell_make_a_trial_invalid_once() {
        let outcome = serde_json::to_vec(&Outcome::default()).unwrap();
        let mut report = ran(7);
        let vmstat = report.results.counters.get_mut("vmstat").unwrap();
        vmstat.values.insert("oom_kill".into(), [3, 4]);
        let untimed = "<3>Out of memory: Killed process 9 (sort) total-vm:1kB\n";
        let found = report.clone().finish(Some(&outcome), untimed, true).invalid;
        assert!(
            matches!(&found[..], [Invalid::Oops { line }] if line == "oom_kill 1"),
            "{found:?}"
        );
        let timed = "<3>[    2.000000] Out of memory: Killed process 9 (sort) total-vm:1kB\n";
        let found = report.clone().finish(Some(&outcome), timed, true).invalid;
        assert!(
            matches!(&found[..], [Invalid::OutOfMemory { .. }]),
            "{found:?}"
        );
        // On a shared machine the kill may be another's.
        report.ran.as_mut().unwrap().idle_before = None;
        assert_eq!(report.finish(Some(&outcome), untimed, true).invalid, []);
    }

    #[test]
    fn on_a_shared_machine_idle_processors_are_normal_and_the_group_is_judged() {
        let mut report = ran(0);
        let readings = report.ran.as_mut().unwrap();
        readings.idle_before = None;
        readings.idle_after.ticks = 900;
        readings.before = Moment::of("zoneinfo", "Node 0, zone Normal\n".to_owned());
        let machine = report.results.counters.get_mut("vmstat").unwrap();
        machine.values.insert("pswpin".into(), [10, 17]);
        machine.values.insert("pgmajfault".into(), [10, 99]);
        // A group of version 1 counts faults, but neither swap nor reclaim.
        let values = [("pgmajfault".to_owned(), [1, 5])].into();
        report
            .results
            .counters
            .insert(GROUP.into(), Counters { values });
        let hits = (LIMIT_HITS.to_owned(), "3".to_owned());
        report.results.facts.extend([hits]);
        let outcome = serde_json::to_vec(&Outcome::default()).unwrap();
        let results = report.clone().finish(Some(&outcome), "", true);
        assert_eq!(results.invalid, []);
        assert!(results.halts.is_none());
        assert!(!results.facts.contains_key("free-at-start"));
        let number = |name: &str| {
            let metric = results.metrics.iter().find(|metric| metric.name == name);
            metric.unwrap().value.number()
        };
        assert_eq!(number("major-faults"), Some(4.0));
        assert_eq!(number("swapped-in"), Some(7.0));
        assert_eq!(number("reclaimed"), None);
        report.results.facts.clear();
        let results = report.finish(Some(&outcome), "", true);
        assert_eq!(results.invalid, [Invalid::NoReclaim]);
    }

    /// Returns the metrics `swap-written` and `swap-memory` of a trial with this content of `/proc/swaps`. The outer
    /// `None` means that the metric is missing, the inner `None` that the metric has no value.
    fn swap_use(swaps: &str, zswap: Option<&str>) -> [Option<Option<f64>>; 2] {
        let mut report = ran(7);
        let text = format!("Filename Type Size Used Priority\n{swaps}");
        let before = Moment::of("swaps", text);
        report.ran.as_mut().unwrap().before = before;
        let counters = |pairs: &[(&str, u64)]| pagetide_record::record::Counters {
            values: pairs
                .iter()
                .map(|(name, grown)| ((*name).to_owned(), [100, 100 + grown]))
                .collect(),
        };
        let all = &mut report.results.counters;
        let disks = [("nullb0 written", 8192), ("zram0 written", 4096)];
        all.insert("diskstats".to_owned(), counters(&disks));
        all.insert("zram".to_owned(), counters(&[("mem_used_max", 50)]));
        if let Some(peak) = zswap {
            let state = ("zswap/enabled".to_owned(), "Y".to_owned());
            report.results.settings.extend([state]);
            let fact = (ZSWAP_PEAK.to_owned(), peak.to_owned());
            report.results.facts.extend([fact]);
        }
        let outcome = serde_json::to_vec(&Outcome::default()).unwrap();
        let results = report.finish(Some(&outcome), "", true);
        [SWAP_WRITTEN, SWAP_MEMORY].map(|name| {
            let mut metrics = results.metrics.iter();
            let metric = metrics.find(|metric| metric.name == name);
            metric.map(|metric| metric.value.number())
        })
    }

    #[test]
    fn what_swap_wrote_and_held_is_counted_for_each_kind() {
        const ZRAM: &str = "/dev/zram0 partition 1000 0 -2\n";
        const SSD: &str = "/dev/nullb0 partition 1000 0 -3\n";
        let some = |value: f64| Some(Some(value));
        assert_eq!(swap_use("", None), [None, None], "no swap");
        assert_eq!(swap_use(ZRAM, None), [some(0.0), some(150.0)]);
        assert_eq!(swap_use(SSD, None), [some(8192.0), some(0.0)]);
        assert_eq!(swap_use(SSD, Some("77")), [some(8192.0), some(77.0)]);
        let both = format!("{ZRAM}{SSD}");
        assert_eq!(swap_use(&both, None), [some(8192.0), some(150.0)]);
        let other = "/dev/nbd0 partition 1000 0 -2\n";
        assert_eq!(swap_use(other, None)[0], Some(None), "not counted");
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
