//! The trial as a scenario sees it: clock, seed, output, and the results that every trial reports.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use pagetide_quantity::{Bytes, Direction, Histogram, Metric, MetricDef, Nanos, Series, Unit};
use pagetide_record::cpus::{WORKERS, Workers};
use pagetide_record::wire::{self, Region};
use pagetide_record::{Invalid, Subject, Warning};
use pagetide_reference::Rng;
use pagetide_system::Counters;
use pagetide_system::zram::FIRST as FIRST_ZRAM;
use serde::{Deserialize, Serialize};

use crate::clock::{self, Clock, Mark};
use crate::error::Stop;
use crate::form::{Form, form};
use crate::harness::{self, HarnessMemory};
use crate::touch::Recorder;
use crate::workers::{Ledger, Member, ProcessUsage, Team, Usage};

/// Called when a phase of the scenario begins, so that counters can be read per phase.
pub trait PhaseWatch {
    /// Called when the phase `name` begins.
    fn phase(&mut self, name: &str) {
        let _ = name;
    }
}

/// A watch that ignores the start of phases.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoPhaseWatch;

impl PhaseWatch for NoPhaseWatch {}

/// Cgroup and devices of a workload, and whether other users share its machine.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Folder of the memory cgroup in which the scenario's process already is; `None` if it is in none. With such a
    /// cgroup, a user's own program stays in it and gets no cgroup of its own.
    pub group: Option<&'a Path>,
    /// True if the machine runs nothing else, so that the scenario may affect all of it, for example by dropping all
    /// caches. False restricts the scenario to its own files.
    pub own_machine: bool,
    /// Folder in sysfs of the zram device to which the workload swaps.
    pub zram: &'a Path,
}

impl Default for Surroundings<'_> {
    /// Returns the surroundings of a workload that is alone on its machine, is in no cgroup, and uses the first zram
    /// device if it swaps to zram.
    fn default() -> Self {
        Self {
            group: None,
            own_machine: true,
            zram: Path::new(FIRST_ZRAM),
        }
    }
}

/// What a running scenario gets from the arena, in addition to the subject, which determines its result.
pub struct TrialContext<'a> {
    /// Output region for series, logs and progress.
    pub region: Region<'a>,
    /// Clock that times the trial.
    pub clock: Clock,
    /// A writable folder; on the trial's file system if the scenario asked for one.
    pub work_dir: &'a Path,
    /// Compact form of the reference file; empty if the scenario did not ask for one.
    pub data: &'a [u8],
    /// Receives the start of each phase.
    pub watch: &'a mut dyn PhaseWatch,
    /// Cgroup and devices of the workload, and whether other users share its machine.
    pub surroundings: Surroundings<'a>,
}

/// Result of a scenario. Its series and logs are in the output region.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Every metric of the definition, in the order of the definition. Metrics that were left out are missing.
    pub metrics: Vec<Metric>,
    /// Latency and other distributions by name.
    pub histograms: BTreeMap<String, Histogram>,
    /// Reasons why the numbers must not be used; empty if the trial is valid.
    pub invalid: Vec<Invalid>,
    /// Warnings for the reader of the results.
    pub warnings: Vec<Warning>,
    /// Stored texts by name, such as the output of a program.
    pub texts: BTreeMap<String, String>,
    /// Time from the start of the scenario to its end.
    pub elapsed: Nanos,
    /// Resource usage of each process of the workload: the main process first, then the others in the order in which
    /// they were reaped.
    #[serde(default)]
    pub processes: Vec<ProcessUsage>,
    /// Counters that the scenario itself reads, such as those of its cgroups: by source and by name, each with its
    /// value before and after the workload.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, BTreeMap<String, [u64; 2]>>,
}

/// Definition of the metric `user`.
pub(crate) const USER: MetricDef = MetricDef::time(
    "user",
    "user CPU time of the scenario's processes, as accounted by the kernel",
);
/// Definition of the metric `system`.
pub(crate) const SYSTEM: MetricDef = MetricDef::time(
    "system",
    "system CPU time of the scenario's processes, as accounted by the kernel",
);
/// Definition of the metric `harness`.
pub(crate) const HARNESS: MetricDef = MetricDef::of(
    "harness",
    Unit::Bytes,
    Direction::Neutral,
    "memory of the harness itself, without the workload: locked heap, stack, data and buffers, and page tables",
);

/// Definition of the metric `compressed`.
pub(crate) const COMPRESSED: MetricDef = MetricDef::of(
    "compressed",
    Unit::Share,
    Direction::Neutral,
    "compressed size of the pages in zram or zswap divided by their original size; should be near `content`",
);

/// Returns the metrics of a scenario, followed by those that every scenario has.
macro_rules! metrics {
    ($($def:expr),* $(,)?) => {
        &[$($def,)* $crate::trial::USER, $crate::trial::SYSTEM, $crate::trial::HARNESS]
    };
}
pub(crate) use metrics;

/// A trial in progress: the only handle through which a scenario acts and reports.
pub(crate) struct Trial<'a> {
    /// Definitions of the scenario's metrics.
    metrics: &'static [MetricDef],
    /// Scenario, parameters, seed and memory: everything that determines the result.
    pub subject: &'a Subject,
    pub place: TrialContext<'a>,
    values: BTreeMap<String, Metric>,
    pub outcome: Outcome,
    started: Nanos,
    own_before: Usage,
    members: Usage,
    ledger: Ledger,
    omitted: Vec<String>,
    settled: Option<HarnessMemory>,
    /// Number of workers started so far.
    workers: Cell<u32>,
}

impl<'a> Trial<'a> {
    /// Begins a trial whose scenario has these metrics.
    pub(crate) fn begin(
        subject: &'a Subject,
        place: TrialContext<'a>,
        metrics: &'static [MetricDef],
    ) -> Self {
        Self {
            metrics,
            subject,
            started: place.clock.mark(Mark::Begin),
            place,
            values: BTreeMap::new(),
            outcome: Outcome::default(),
            own_before: Usage::own(),
            members: Usage::default(),
            ledger: Ledger::default(),
            omitted: Vec::new(),
            settled: None,
            workers: Cell::new(0),
        }
    }
}

impl Trial<'_> {
    /// Returns whether the scenario runs in its corrected form or as originally written.
    pub(crate) fn form(&self) -> Form {
        form(self.subject.as_written)
    }

    /// Returns the memory available to the workload: the limit of its cgroup, if it has one.
    pub(crate) fn memory(&self) -> Bytes {
        self.subject.room()
    }

    /// Returns a random number generator for `label`. It depends only on the seed and the label.
    pub(crate) fn rng(&self, label: &str) -> Rng {
        Rng::stream(self.subject.seed, label)
    }

    /// Tells the watch that the phase `name` begins.
    pub(crate) fn phase(&mut self, name: &str) {
        self.tick();
        self.place.watch.phase(name);
        self.tick();
    }

    /// Locks and counts the memory of the harness. Must be called before the workload is mapped; later calls do
    /// nothing.
    pub(crate) fn settle(&mut self) {
        if self.settled.is_some() {
            return;
        }
        let own = harness::lock_own_memory();
        if !own.locked {
            self.note("the harness may not lock its memory: run as root, or raise RLIMIT_MEMLOCK");
        }
        self.settled = Some(own);
    }

    /// Sets the metric `harness`: the memory of the harness, including its growth during the trial.
    fn count_harness(&mut self) {
        let Some(own) = self.settled else {
            return;
        };
        let size = Bytes(own.grown().0 + self.ledger.borrow().buffers.0);
        self.metric("harness", size.0 as f64);
        if size > harness::LIMIT {
            let limit = harness::LIMIT;
            self.note(format!("the harness holds {size}, more than {limit}"));
        }
    }

    /// Sets the total number of steps, so that the arena can show progress.
    pub(crate) fn steps(&self, total: u64) {
        self.place
            .region
            .head()
            .total
            .store(total, Ordering::Relaxed);
        self.place.region.head().done.store(0, Ordering::Relaxed);
    }

    /// Sets the number of steps that are complete.
    pub(crate) fn done(&self, steps: u64) {
        self.place
            .region
            .head()
            .done
            .store(steps, Ordering::Relaxed);
    }

    /// Signals progress to the arena, which ends a trial that makes none. Only needed if steps are not counted.
    pub(crate) fn tick(&self) {
        let head = self.place.region.head();
        if head.total.load(Ordering::Relaxed) == 0 {
            head.done.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sleeps in short steps, so that a long sleep is not taken for a hang.
    pub(crate) fn sleep(&self, span: Nanos) {
        let slice = Nanos::from_secs(10);
        let mut left = span;
        while left > slice {
            clock::sleep(slice);
            self.tick();
            left = left.since(slice);
        }
        clock::sleep(left);
        self.tick();
    }

    /// Runs `work` and returns its duration and its result.
    pub(crate) fn time<T>(&self, work: impl FnOnce() -> T) -> (Nanos, T) {
        let start = self.place.clock.now();
        let value = work();
        (self.place.clock.now().since(start), value)
    }

    /// Sets the value of a metric. The trial becomes invalid if the scenario does not declare the metric.
    pub(crate) fn metric(&mut self, name: &str, value: f64) {
        match self.declared(name) {
            Some(def) => {
                self.values.insert(name.to_owned(), Metric::new(def, value));
            }
            None => self.undeclared(name),
        }
    }

    /// Sets a metric to a time. The trial becomes invalid if the scenario does not declare the metric.
    pub(crate) fn time_metric(&mut self, name: &str, value: Nanos) {
        self.metric(name, value.0 as f64);
    }

    /// Records why a metric has no value in this trial.
    pub(crate) fn absent(&mut self, name: &str, why: &str) {
        match self.declared(name) {
            Some(def) => {
                self.values
                    .insert(name.to_owned(), Metric::absent(def, why));
            }
            None => self.undeclared(name),
        }
    }

    /// Leaves a metric out of the results, because this trial was not asked to measure it.
    pub(crate) fn omit(&mut self, name: &str) {
        self.omitted.push(name.to_owned());
    }

    fn declared(&self, name: &str) -> Option<&'static MetricDef> {
        self.metrics.iter().find(|def| def.name == name)
    }

    fn undeclared(&mut self, name: &str) {
        self.outcome.invalid.push(Invalid::Scenario {
            why: format!("it measured {name}, which it does not declare, please report it"),
        });
    }

    /// Sets the metrics `NAME-min`, `NAME-mean`, `NAME-p50` to `NAME-p999` and `NAME-max`, and stores the histogram
    /// `NAME`.
    pub(crate) fn accesses(&mut self, name: &str, recorder: &mut Recorder<'_>) {
        let histogram = recorder.histogram();
        self.metric(&format!("{name}-min"), histogram.min as f64);
        self.metric(&format!("{name}-mean"), histogram.mean());
        for (suffix, q) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
            let value = recorder.quantile(q);
            self.metric(&format!("{name}-{suffix}"), value as f64);
        }
        self.metric(&format!("{name}-max"), histogram.max as f64);
        self.histogram(name, histogram);
    }

    /// Finishes the log of a recorder, and warns if it does not contain every access.
    pub(crate) fn finish_log(&mut self, recorder: &mut Recorder<'_>) {
        if let Some(warning) = recorder.finish() {
            self.warn(warning);
        }
    }

    /// Stores a series in the output region. Adds a warning if the region is full.
    pub(crate) fn series(&mut self, series: &Series) {
        let kept = self
            .place
            .region
            .write(wire::Kind::Series, &series.name, &series.encode());
        if let Err(error) = kept {
            self.note(error.to_string());
        }
    }

    /// Stores a histogram under this name in the outcome.
    pub(crate) fn histogram(&mut self, name: &str, histogram: Histogram) {
        self.outcome.histograms.insert(name.to_owned(), histogram);
    }

    /// Adds a warning for the reader, unless the outcome already has it.
    pub(crate) fn warn(&mut self, warning: Warning) {
        if !self.outcome.warnings.contains(&warning) {
            self.outcome.warnings.push(warning);
        }
    }

    /// Adds a warning with free text.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.warn(Warning::Note { text: text.into() });
    }

    /// Warns that the kernel does not have a feature.
    pub(crate) fn not_on_this_kernel(&mut self, feature: &str) {
        self.warn(Warning::NotOnThisKernel {
            feature: feature.to_owned(),
        });
    }

    /// Marks the trial as invalid for this reason. The trial continues, so that all reasons are reported.
    pub(crate) fn invalid(&mut self, invalid: Invalid) {
        self.outcome.invalid.push(invalid);
    }

    /// Marks the trial as invalid if `found` differs from `expected`. `what` names the count in the message.
    pub(crate) fn must_count(&mut self, what: &str, expected: u64, found: u64) {
        if expected != found {
            self.invalid(Invalid::WrongCount {
                what: what.to_owned(),
                expected,
                found,
            });
        }
    }

    /// Starts `members` processes of the workload that do `work`; `what` names them in messages. If the variant spreads
    /// workers over CPUs, each stays on one: the trial's first worker on CPU 0, the next on CPU 1, and so on.
    pub(crate) fn team(
        &self,
        what: &'static str,
        members: u32,
        work: impl FnMut(&mut Member<'_>) -> Result<(), Stop>,
    ) -> Result<Team, Stop> {
        let before = self.workers.get();
        self.workers.set(before.saturating_add(members));
        let placement = self.subject.variant.settings.get(WORKERS);
        let is_spread = placement.is_some_and(|text| text.parse() == Ok(Workers::Spread));
        let count = self.subject.cpus.count;
        let cpu = |number: u32| is_spread.then(|| before.saturating_add(number) % count.max(1));
        Team::start(self.place.clock, &self.ledger, what, members, cpu, work)
    }

    /// Adds the resource usage of an ended process to the metrics `user` and `system`.
    pub(crate) fn account(&mut self, usage: Usage) {
        self.members = self.members.plus(usage);
    }

    /// Adds an ended process of the workload to the outcome and its resource usage to the metrics.
    pub(crate) fn ended(&mut self, process: ProcessUsage) {
        self.account(Usage {
            user: process.user,
            system: process.system,
            minor_faults: process.minor_faults,
            major_faults: process.major_faults,
        });
        self.ledger.borrow_mut().processes.push(process);
    }

    /// Stores the values of counters before and after the workload in the outcome, as a source with this name. Counters
    /// that existed only after the workload were 0 before.
    pub(crate) fn counters(&mut self, source: &str, before: &Counters, after: &Counters) {
        let pairs = after.iter().enumerate().map(|(at, (key, value))| {
            let earlier = before.get_near(at, key).unwrap_or(0);
            (key.to_owned(), [earlier, value])
        });
        let counters = &mut self.outcome.counters;
        counters.insert(source.to_owned(), pairs.collect());
    }

    /// Stores a text under this name in the outcome.
    pub(crate) fn text(&mut self, name: &str, text: String) {
        self.outcome.texts.insert(name.to_owned(), text);
    }

    /// Ends the trial and returns its results.
    pub(crate) fn end(mut self) -> Outcome {
        self.outcome.elapsed = self.place.clock.mark(Mark::End).since(self.started);
        self.count_harness();
        let own = Usage::own().since(self.own_before);
        let usage = own.plus(self.members);
        self.outcome.processes = vec![ProcessUsage::own(own)];
        let mut notes = self.ledger.borrow_mut();
        self.outcome.processes.append(&mut notes.processes);
        drop(notes);
        self.time_metric("user", usage.user);
        self.time_metric("system", usage.system);
        self.outcome.metrics = self
            .metrics
            .iter()
            .filter(|def| !self.omitted.iter().any(|name| name == def.name))
            .map(|def| {
                self.values
                    .remove(def.name)
                    .unwrap_or_else(|| Metric::absent(def, "not measured"))
            })
            .collect();
        self.outcome
    }
}

impl Trial<'_> {
    /// Sets the metric `compressed`: compressed size / original size of the pages in zram or zswap. Must be called
    /// while the workload still holds these pages.
    pub(crate) fn compressed(&mut self) {
        let zram = pagetide_system::zram::of(self.place.surroundings.zram);
        let amount = |name| pagetide_system::meminfo::amount(name).map(|amount| amount.0);
        let (sizes, nothing) = match (zram.get("orig_data_size"), zram.get("compr_data_size")) {
            (Some(original), Some(compressed)) => (
                (original > SWAP_HEADER_BYTES).then_some([original, compressed]),
                "nothing is in zram",
            ),
            // Kernels without zswap do not have these lines. If zswap is off, the values are zero.
            _ => match (amount("Zswapped"), amount("Zswap")) {
                (Some(original), Some(compressed)) if original > 0 => {
                    (Some([original, compressed]), "")
                }
                _ => (None, "no zram"),
            },
        };
        match sizes {
            Some([original, compressed]) => {
                self.metric("compressed", compressed as f64 / original as f64);
            }
            None => self.absent("compressed", nothing),
        }
    }
}

/// Number of bytes that a swap device contains before anything is swapped.
const SWAP_HEADER_BYTES: u64 = 4096;
