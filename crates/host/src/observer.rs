//! Observes a trial from outside of its cgroup: the cgroup's pressure in every trial; in an observed trial also samples
//! over time, and a trace of the workload's processes.
//!
//! Pressure and samples need no privilege. The trace needs root; without it an observed trial has no trace, and a
//! warning says why.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use pagetide_probe::text::{Owner, Source, Text};
use pagetide_probe::trace::TraceFile;
use pagetide_probe::{MissingSource, Probe, Probes, Scope};
use pagetide_quantity::{Bytes, Nanos, Series};
use pagetide_record::Counters;
use pagetide_system::Syntax;
use pagetide_system::clock::monotonic;

use crate::group::Group;
use crate::journal::Journal;
use crate::tracing::{Target, Trace};

/// Interval between two reads of the trace's buffers in nanoseconds, as in a guest.
const DRAIN: Nanos = Nanos(25_000_000);
/// Interval between two samples in nanoseconds, as in a guest.
const SAMPLE: Nanos = Nanos(50_000_000);
/// Maximum number of samples in a series.
const SAMPLES: usize = 512;
/// Name of the source of the machine's pressure. The pressure of a cgroup has the same format.
const MACHINE_PRESSURE: &str = "pressure";

/// Source of the pressure of the workload's cgroup. Its name begins with that of the machine's source, so reports know
/// the meaning of its numbers.
static PRESSURE: LazyLock<Source> = LazyLock::new(|| Source {
    name: "pressure-group",
    of: Owner::Group,
    files: &[
        ("memory-", "memory.pressure"),
        ("io-", "io.pressure"),
        ("cpu-", "cpu.pressure"),
    ],
    syntax: Syntax::Pressure,
    over_time: &[],
    keys: Source::named(MACHINE_PRESSURE).map_or(&[][..], |source| source.keys),
});

/// The observer of one trial.
pub(crate) struct Observer {
    /// Pressure of the cgroup; `None` if the kernel does not measure it, or after it was read for the last time.
    pressure: Option<Box<Text>>,
    /// Sources that are sampled over time; `None` in a timed trial.
    sampled: Option<Probes>,
    trace: Option<Trace>,
    /// Time at which observation began.
    begin: Nanos,
    next_sample: Nanos,
    next_drain: Nanos,
    /// Why the cgroup's pressure is not observed; `None` if it is.
    without_pressure: Option<String>,
    found: Observed,
}

/// Results of an observer other than counters.
#[derive(Default)]
pub(crate) struct Observed {
    pub(crate) series: Vec<Series>,
    pub(crate) trace: Option<TraceFile>,
    /// For each PID in the workload's namespace, the PID outside of it. Empty if they are equal.
    pub(crate) outside: BTreeMap<u32, u32>,
}

impl Observer {
    /// Opens the sources that need no privilege: the pressure of `group` and, if `is_observed`, those of `scope`.
    pub(crate) fn open(group: &Group, scope: &Scope, is_observed: bool) -> Self {
        let capacity = if is_observed { SAMPLES } else { 0 };
        let pressure = group.pressure().map_or_else(
            || Err("the kernel does not measure pressure (boot with psi=1)".to_owned()),
            |folder| Text::open(&PRESSURE, folder, capacity).map_err(|why| why.to_string()),
        );
        let without_pressure = pressure.as_ref().err().cloned();
        Self {
            pressure: pressure.ok().map(Box::new),
            sampled: is_observed.then(|| Probes::open(scope, capacity)),
            trace: None,
            begin: Nanos(0),
            next_sample: Nanos(0),
            next_drain: Nanos(0),
            without_pressure,
            found: Observed::default(),
        }
    }

    /// Returns the names of all sources that are not observed, including `others`, each with the reason; empty if all
    /// are observed.
    pub(crate) fn missing(&self, others: &[MissingSource]) -> String {
        let others = others
            .iter()
            .map(|other| format!("{}: {}", other.source, other.why));
        let own = self.without_pressure.iter();
        let own = own.map(|why| format!("{}: {why}", PRESSURE.name));
        others.chain(own).collect::<Vec<_>>().join("; ")
    }

    /// Prepares a trace of at most `limit` bytes. The error says why none can be recorded.
    pub(crate) fn trace(
        &mut self,
        journal: &Journal,
        target: &Target,
        limit: Bytes,
    ) -> Result<(), String> {
        self.trace = Some(Trace::open(journal, target, limit)?);
        Ok(())
    }

    /// Reads the state before the workload, and starts the trace.
    pub(crate) fn begin(&mut self) -> Result<(), String> {
        if let Some(pressure) = &mut self.pressure {
            pressure.before().map_err(|why| why.to_string())?;
        }
        if let Some(sampled) = &mut self.sampled {
            sampled.before().map_err(|why| why.to_string())?;
        }
        if let Some(trace) = &mut self.trace {
            trace.start().map_err(|why| why.to_string())?;
        }
        self.begin = monotonic();
        Ok(())
    }

    /// In an observed trial, takes a sample and reads the trace buffers when they are due. Must be called often while
    /// the workload runs. Errors in reading the trace are reported by [`Observer::stop`].
    pub(crate) fn step(&mut self, group: &Group, is_program: bool) {
        if self.sampled.is_none() {
            return;
        }
        let now = monotonic();
        if now >= self.next_drain {
            self.next_drain = now.saturating_add(DRAIN);
            if let Some(trace) = &mut self.trace {
                trace.drain();
            }
        }
        if now >= self.next_sample {
            self.next_sample = now.saturating_add(SAMPLE);
            self.sample(now);
            if is_program && self.trace.is_some() {
                self.note_numbers(group);
            }
        }
    }

    fn sample(&mut self, now: Nanos) {
        let time = now.saturating_sub(self.begin);
        if let Some(pressure) = &mut self.pressure {
            // The last reading after the trial fails in the same way.
            let _ = pressure.sample(time);
        }
        if let Some(sampled) = &mut self.sampled {
            let _ = sampled.sample(time);
        }
    }

    /// Records the PIDs that the processes of the cgroup have in their own namespace. A process that lives for less
    /// than the sampling interval may be missing.
    fn note_numbers(&mut self, group: &Group) {
        for pid in group.members() {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            if let Some(inner) = innermost(&status) {
                self.found.outside.insert(inner, pid);
            }
        }
    }

    /// Stops the trace and reads the rest of it, and takes the last sample.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        if let Some(trace) = self.trace.take() {
            self.found.trace = Some(trace.finish().map_err(|why| why.to_string())?);
        }
        if self.sampled.is_some() {
            self.sample(monotonic());
        }
        Ok(())
    }

    /// Reads the cgroup's pressure after the workload. Returns counters by source; empty if the cgroup is gone.
    pub(crate) fn counters(&mut self) -> BTreeMap<String, Counters> {
        let Some(found) = self.pressure.take().and_then(|text| text.after().ok()) else {
            return BTreeMap::new();
        };
        self.found.series.extend(found.series);
        let values = found.counters.into_iter().collect();
        BTreeMap::from([(PRESSURE.name.to_owned(), Counters { values })])
    }

    /// Returns what was observed.
    pub(crate) fn end(mut self) -> Observed {
        let found = self.sampled.take().map(Probes::after);
        // A source of a group that is gone has no series.
        if let Some(Ok(found)) = found {
            let series = found.into_iter().filter_map(|(_, found)| found.series);
            self.found.series.extend(series);
        }
        self.found
    }
}

/// Returns the PID of a process in its innermost namespace, from the text of `/proc/PID/status`; `None` if it is not
/// stated.
fn innermost(status: &str) -> Option<u32> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_in_a_namespace_of_its_own_has_two_numbers() {
        let status = "Name:\tsort\nNSpid:\t4711\t2\nNSpgid:\t4711\t2\n";
        assert_eq!(innermost(status), Some(2));
        assert_eq!(innermost("NSpid:\t4711\n"), Some(4711));
        assert_eq!(innermost("Name:\tsort\n"), None);
    }

    #[test]
    fn pressure_of_a_group_has_the_meaning_of_the_machines_own() {
        let known = Source::named(PRESSURE.name).unwrap();
        assert_eq!(known.name, MACHINE_PRESSURE);
        assert!(PRESSURE.key("memory-some").is_some());
    }
}
