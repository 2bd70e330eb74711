//! What goals and the search use of one trial: time, counters, metrics, and whether the kernel killed a process.

use std::collections::BTreeMap;

use pagetide_quantity::{Bytes, Nanos, Pages};
use pagetide_record::oom::{MemoryAtKill, OomReport};
use pagetide_record::{Invalid, Record};
use pagetide_workload::Workload;
use serde::Serialize;

use crate::opt;

/// What one trial showed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evidence {
    /// Why the trial must not be used, as a sentence; `None` if it can be used. A trial that ended by a death or a
    /// standstill in virtual time can be used.
    pub unusable: Option<String>,
    /// Virtual time of the workload: from its start to the end of its last process.
    pub time: Nanos,
    /// Memory that was free to the workload at its start.
    pub memory: Bytes,
    /// Increase of each counter of `/proc/vmstat`, by the kernel's name. Gauges (`nr_…`) are left out.
    pub counters: BTreeMap<String, u64>,
    /// Metrics of the scenario, by name.
    pub metrics: BTreeMap<String, f64>,
    /// The kill for lack of memory that ended the trial; `None` if there was none.
    pub death: Option<Death>,
    /// Virtual time without any progress after which the trial was ended; `None` if it was not ended for that.
    pub standstill: Option<Nanos>,
}

/// A kill for lack of memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Death {
    /// Name of the process that was killed; empty if the kernel panicked.
    pub process: String,
    /// Virtual time from the start of the scenario to the kill; zero if unknown.
    pub after: Nanos,
    /// Memory at the kill, from the kernel's own report; `None` if the log has no whole report.
    pub memory: Option<MemoryAtKill>,
    /// True if the kernel had memory that it could have reclaimed.
    pub is_to_spare: bool,
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
                .filter(|(name, [before, after])| !name.starts_with("nr_") && after > before);
            evidence.counters = rising
                .map(|(name, [before, after])| (name.clone(), after - before))
                .collect();
        }
        evidence.add_workload(record);
        for why in &results.invalid {
            evidence.add(why, &results.kernel_log);
        }
        evidence
    }

    /// Adds the metrics that follow from the described workload: pages read back, pages that OPT reads back, and
    /// pages that a protected group read back. Metrics that do not apply are left out.
    fn add_workload(&mut self, record: &Record) {
        let subject = &record.subject;
        let text = subject.params.get("workload").map(String::as_str);
        let Some(workload) = text.and_then(|text| Workload::from_canonical(text).ok()) else {
            return;
        };
        let counters = &record.results.counters;
        if let Some(lost) = opt::lost_protection(&workload, self.memory, counters) {
            self.metrics.insert("lost-protection".to_owned(), lost);
        }
        let best = opt::read_back(&workload, self.memory, subject.swap, subject.seed);
        if let Some(best) = best {
            let names = ["workingset_refault_anon", "workingset_refault_file"];
            let back = self.sum(&names);
            self.metrics.insert("read-back".to_owned(), back as f64);
            self.metrics.insert("opt-read-back".to_owned(), best as f64);
        }
    }

    /// The evidence of a trial that the arena refused for the reason `why`.
    pub fn refused(why: &str) -> Self {
        Self {
            unusable: Some(why.to_owned()),
            ..Self::default()
        }
    }

    /// Adds one reason why the record's numbers must not be compared. `log` is the kernel log.
    fn add(&mut self, why: &Invalid, log: &str) {
        let reported = || OomReport::last(log).and_then(|report| report.memory());
        match why {
            Invalid::GaveUp {
                process,
                after,
                memory,
            } if self.death.as_ref().is_none_or(|death| !death.is_to_spare) => {
                self.death = Some(Death {
                    process: process.clone(),
                    after: *after,
                    memory: Some(memory.clone()),
                    is_to_spare: true,
                });
            }
            // The first kill with memory to spare counts, else the first.
            Invalid::GaveUp { .. } => {}
            Invalid::OutOfMemory { process, after } | Invalid::OutOfLimit { process, after } => {
                self.death.get_or_insert_with(|| Death {
                    process: process.clone(),
                    after: *after,
                    memory: reported(),
                    is_to_spare: false,
                });
            }
            Invalid::Panic { .. } if why.is_death() => {
                let memory = reported();
                self.death = Some(Death {
                    is_to_spare: memory.as_ref().is_some_and(MemoryAtKill::is_to_spare),
                    memory,
                    ..Death::default()
                });
            }
            Invalid::Hang { span, clock } if clock == "virtual" => self.standstill = Some(*span),
            // A workload need not be under pressure.
            Invalid::NoReclaim => {}
            // The process that was killed is also reported as one that ended by a signal.
            Invalid::ProcessDied { .. } if self.death.is_some() => {}
            other => {
                self.unusable.get_or_insert_with(|| other.to_string());
            }
        }
    }

    /// Increase of a counter; 0 if the kernel does not have it or it did not rise.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Sum of the increases of several counters.
    pub fn sum(&self, names: &[&str]) -> u64 {
        names.iter().map(|name| self.counter(name)).sum()
    }

    /// Pages that reclaim looked at.
    pub fn scanned(&self) -> u64 {
        self.sum(&["pgscan_anon", "pgscan_file"])
    }

    /// Pages that reclaim freed.
    pub fn reclaimed(&self) -> u64 {
        self.sum(&["pgsteal_anon", "pgsteal_file"])
    }

    /// Pages of the memory that was free to the workload at its start; at least 1.
    pub fn pages(&self) -> u64 {
        let Pages(pages) = self.memory.pages();
        pages.max(1)
    }
}
