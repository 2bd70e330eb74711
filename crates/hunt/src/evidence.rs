//! The data of one trial that goals and the search use: time, counters, metrics, and whether the kernel killed a
//! process.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Nanos, Pages};
use pagetide_record::{Invalid, OomReport, Record};
use pagetide_workload::Workload;
use serde::Serialize;

use crate::death::Death;
use crate::executed::Executed;
use crate::opt;

/// Values of `/proc/vmstat` that only grow although their names begin like those of gauges.
const COUNTERS: [&str; 5] = [
    "nr_dirtied",
    "nr_written",
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_throttled_written",
];

/// Data of one trial that goals and the search use.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// Why the trial must not be used, as a sentence; `None` if it can be used. A trial that ended by a death or a
    /// standstill in virtual time can be used.
    pub unusable: Option<String>,
    /// Virtual time of the workload, from its start to the end of its last process. If the trial has no metric `time`:
    /// virtual time of the whole scenario.
    pub time: Nanos,
    /// Memory of the trial as requested: free memory at the start of the workload, or the machine's total.
    pub memory: Bytes,
    /// Increase of each counter of `/proc/vmstat`, by the kernel's name. Gauges (most of `nr_…`) are left out.
    pub counters: BTreeMap<String, u64>,
    /// Metrics of the scenario that have a number, by name, and the metrics `read-back`, `opt-read-back` and
    /// `lost-protection` that are computed from the workload.
    pub metrics: BTreeMap<String, f64>,
    /// The kill for lack of memory with the most memory to spare; `None` if there was no kill.
    pub death: Option<Death>,
    /// Virtual time without any progress after which the trial was ended; `None` if the trial was not ended for lack of
    /// progress.
    pub standstill: Option<Nanos>,
    /// What the kernel executed; `None` if this is not known.
    #[serde(skip)]
    pub executed: Option<Executed>,
}

impl Evidence {
    /// Reads the evidence of a record.
    pub fn of(record: &Record) -> Self {
        let (results, subject) = (&record.results, &record.subject);
        let mut evidence = Self {
            time: results.elapsed,
            memory: subject.memory.bytes(),
            metrics: results
                .metrics
                .iter()
                .filter_map(|metric| Some((metric.name.clone(), metric.value.number()?)))
                .collect(),
            ..Self::default()
        };
        if let Some(time) = evidence.metrics.get("time") {
            evidence.time = Nanos(pagetide_quantity::floor(*time));
        }
        if let Some(vmstat) = results.counters.get("vmstat") {
            let rising = vmstat
                .values
                .iter()
                .filter(|(name, [before, after])| !is_gauge(name) && after > before);
            evidence.counters = rising
                .map(|(name, [before, after])| (name.clone(), after - before))
                .collect();
        }
        let text = subject.params.get("workload").map(String::as_str);
        let workload = text.and_then(|text| Workload::from_canonical(text).ok());
        if let Some(workload) = &workload {
            evidence.add_workload(record, workload);
        }
        for why in &results.invalid {
            evidence.add(why, record, workload.as_ref());
        }
        evidence
    }

    /// Adds the metrics that need the workload's description: pages read back, pages that OPT reads back, and pages
    /// that a protected memory cgroup read back for each page of its protection. Metrics that do not apply are left
    /// out.
    fn add_workload(&mut self, record: &Record, workload: &Workload) {
        let subject = &record.subject;
        let counters = &record.results.counters;
        if let Some(lost) = opt::lost_protection(workload, self.memory, counters) {
            self.metrics.insert("lost-protection".to_owned(), lost);
        }
        let best = opt::read_back(workload, self.memory, subject.swap, subject.seed);
        if let Some(best) = best {
            let names = ["workingset_refault_anon", "workingset_refault_file"];
            let back = self.sum(&names);
            self.metrics.insert("read-back".to_owned(), back as f64);
            self.metrics.insert("opt-read-back".to_owned(), best as f64);
        }
    }

    /// Returns the sum of the times of all accesses of all processes, in nanoseconds; 0 if the workload has none.
    pub fn access_time(&self) -> f64 {
        let metric = |name| self.metrics.get(name).copied().unwrap_or(0.0);
        metric("access-mean") * metric("accesses")
    }

    /// Creates the evidence of a trial that the arena refused for the reason `why`.
    pub fn refused(why: &str) -> Self {
        Self {
            unusable: Some(why.to_owned()),
            ..Self::default()
        }
    }

    /// Adds one reason for which the record is invalid: a kill, or a standstill in virtual time, becomes part of the
    /// evidence. Lack of reclaim is ignored, and so is the end of a process by a signal after a kill. Any other reason
    /// makes the trial unusable.
    fn add(&mut self, why: &Invalid, record: &Record, workload: Option<&Workload>) {
        let log = &record.results.kernel_log;
        let reported = || OomReport::last(log).and_then(|report| report.memory());
        let (size, swap) = (self.memory, record.subject.swap);
        let death = |of: (&str, Nanos), memory| Death::new(of, memory, (workload, size), swap);
        let death = match why {
            Invalid::GaveUp {
                process,
                after,
                memory,
            } => death((process, *after), Some(memory.clone())),
            Invalid::OutOfMemory { process, after } | Invalid::OutOfLimit { process, after } => {
                // The harness has already judged the kernel's report of this kill, and found no memory to spare. The
                // log may end with the report of another kill.
                Death {
                    spare: 0.0,
                    ..death((process, *after), reported())
                }
            }
            Invalid::Panic { .. } if why.is_death() => death(("", Nanos(0)), reported()),
            Invalid::Hang { span, clock } if clock == "virtual" => {
                self.standstill = Some(*span);
                return;
            }
            // A workload need not be under pressure, so a lack of reclaim is ignored. A killed process is also reported
            // as one that ended by a signal; that report is ignored too.
            Invalid::NoReclaim => return,
            Invalid::ProcessDied { .. } if self.death.is_some() => return,
            other => {
                self.unusable.get_or_insert_with(|| other.to_string());
                return;
            }
        };
        // Of several kills, the one with the most memory to spare is kept; of equal ones, the first.
        if self
            .death
            .as_ref()
            .is_none_or(|own| death.spare > own.spare)
        {
            self.death = Some(death);
        }
    }

    /// Returns the increase of a counter; 0 if the kernel does not have it or it did not rise.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Returns the sum of the increases of several counters.
    pub fn sum(&self, names: &[&str]) -> u64 {
        names.iter().map(|name| self.counter(name)).sum()
    }

    /// Returns the number of anonymous and file pages that reclaim scanned.
    pub fn scanned(&self) -> u64 {
        self.sum(&["pgscan_anon", "pgscan_file"])
    }

    /// Returns the number of anonymous and file pages that reclaim freed.
    pub fn reclaimed(&self) -> u64 {
        self.sum(&["pgsteal_anon", "pgsteal_file"])
    }

    /// Returns [`Self::memory`] in pages; at least 1.
    pub fn pages(&self) -> u64 {
        let Pages(pages) = self.memory.pages();
        pages.max(1)
    }
}

/// True if this value of `/proc/vmstat` is a present amount and not a counter.
fn is_gauge(name: &str) -> bool {
    name.starts_with("nr_") && !COUNTERS.contains(&name)
}
