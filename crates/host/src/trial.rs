//! Runs one trial on the running kernel: creates cgroup, swap and work folder, runs the steps of the trial, and undoes
//! everything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pagetide_arena::{ArenaError, Progress, Step, TrialResult, measured};
use pagetide_harness::counters::CounterSet;
use pagetide_harness::judgement::{LIMIT_HITS, Report};
use pagetide_harness::sequence::{self, MachineState, Steps};
use pagetide_harness::settings::Settings;
use pagetide_harness::{MachineFate, log, supervise};
use pagetide_probe::Scope;
use pagetide_probe::meaning::TaskAccounting;
use pagetide_probe::observed::{TASKS, TRACE};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::outcome::{Invalid, Warning};
use pagetide_record::record::Results;
use pagetide_record::wire::{Kind, Phase};
use pagetide_record::{Counters, Machine, Pass, RecordWriter, Subject, Wall};
use pagetide_root::Roots;
use pagetide_system::clock::monotonic;

use crate::change::{Change, Left};
use crate::conditions::{Conditions, Doubt};
use crate::error::io;
use crate::group::Group;
use crate::hierarchy::Hierarchy;
use crate::journal::{Entry, Journal};
use crate::kernel_log;
use crate::observer::{Observed, Observer};
use crate::plan::{self, SwapPlan, TrialPlan};
use crate::program_root;
use crate::refusal::Refusal;
use crate::region::Output;
use crate::setting::{self, Applied};
use crate::swap_device::{SwapDevice, SwapOn};
use crate::topology;
use crate::tracing::{self, Target};
use crate::workload::{OUTCOME, Order, Workload};

/// Pause between the preparations and the start of the scenario. Deferred work of the kernel, such as writing back the
/// swap header, ends in this pause, so that it is not part of the trial.
const SETTLE: Duration = Duration::from_millis(200);
/// Interval at which the tool checks whether the workload has ended.
const POLL: Duration = Duration::from_millis(5);
/// Maximum wait for the processes of a killed cgroup to exit.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// What is needed to run a trial.
pub(crate) struct Run<'a> {
    pub(crate) journal: &'a Journal,
    pub(crate) hierarchy: &'a Hierarchy,
    /// Path of the program that is started as the workload's process.
    pub(crate) program: &'a Path,
    /// Folder for swap files and the files of scenarios, on a disk.
    pub(crate) folder: &'a Path,
    /// Folder of the cache, which contains the root file systems of programs.
    pub(crate) cache: &'a Path,
    pub(crate) subject: &'a Subject,
    pub(crate) plan: &'a TrialPlan,
    /// Bulk input of the scenario.
    pub(crate) input: &'a [u8],
    pub(crate) machine: &'a Machine,
    /// Time without progress after which the trial is ended.
    pub(crate) hang: Duration,
    /// Maximum size of the trace of an observed trial.
    pub(crate) trace_limit: Bytes,
    pub(crate) progress: &'a dyn Progress,
}

/// A trial that has ended and was cleaned up. Its bulk output still has to be written to the record.
pub(crate) struct EndedTrial {
    pub(crate) finding: TrialResult,
    output: Output,
    observed: Observed,
    /// The trace in the format of a record; `None` if there is none.
    trace: Option<Vec<u8>>,
    /// True if other processes spoiled the trial, so that it should be repeated.
    pub(crate) is_spoiled: bool,
    /// Changes that could not be undone.
    pub(crate) left: Vec<Left>,
}

/// A folder of the trial. It is removed on drop.
struct WorkFolder<'a> {
    path: PathBuf,
    entry: Entry,
    journal: &'a Journal,
}

/// Number of folders that this process has created, used to give each a unique name.
static COUNT: AtomicU32 = AtomicU32::new(0);

impl<'a> WorkFolder<'a> {
    fn make(journal: &'a Journal, parent: &Path) -> Result<Self, ArenaError> {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("work-{}-{count}", std::process::id()));
        let change = Change::Folder { path: path.clone() };
        // A folder that is there already belongs to another process, and is not removed.
        let made = journal.make(change, || {
            fs::create_dir(&path).map_err(io("making the work folder", path.display().to_string()))
        });
        let (entry, ()) = made.map_err(ArenaError::broken)?;
        Ok(Self {
            path,
            entry,
            journal,
        })
    }
}

impl Drop for WorkFolder<'_> {
    fn drop(&mut self) {
        // What could not be undone stays in the journal.
        self.journal.undo(&[self.entry]);
    }
}

impl Run<'_> {
    /// Runs the trial once and cleans up.
    pub(crate) fn execute(&self) -> Result<EndedTrial, ArenaError> {
        let started = Instant::now();
        let started_at = since_epoch();
        let output = Output::new(self.subject, self.input).map_err(ArenaError::broken)?;
        let folder = WorkFolder::make(self.journal, self.folder)?;
        if let Some(digest) = &self.plan.needs.root {
            // A program's files come before its group, so that their page cache is not charged to the group.
            self.install(digest, &folder.path)?;
        }
        let group = Group::make(self.journal, self.hierarchy, &self.plan.limits)
            .map_err(ArenaError::broken)?;
        let swap = self.swap()?;
        let zram = swap.as_ref().and_then(SwapDevice::zram);
        let zram = zram.map(|name| Path::new("/sys/block").join(name));
        let scope = scope(&group, zram.clone());
        let counters = CounterSet::open(&scope);
        let observer = Observer::open(&group, &scope, self.subject.pass == Pass::Observed);
        let not_observed = observer.missing(counters.unsupported());
        let order = Order {
            subject: self.subject.unnamed(),
            work_dir: folder.path.clone(),
            group: group.path().to_owned(),
            zram,
            output: output.size(),
            input: self.input.len() as u64,
            is_program: self.plan.needs.root.is_some(),
        };
        let mut steps = HostSteps {
            run: self,
            group: &group,
            swap: swap.as_ref(),
            output: &output,
            order: &order,
            observer,
            not_observed,
            no_trace: None,
            applied: None,
            workload: None,
            conditions: None,
            doubts: Vec::new(),
            is_stopped: false,
            running_at: None,
            ended_at: None,
        };
        let mut report = Report::default();
        sequence::run(&mut steps, counters, None, &mut report);
        let HostSteps {
            observer,
            no_trace,
            applied,
            workload,
            conditions,
            mut doubts,
            is_stopped,
            running_at,
            ended_at,
            ..
        } = steps;
        drop(workload);
        let mut observed = observer.end();
        let remaining = group.kill_all(KILL_PATIENCE);
        if let Some(conditions) = conditions {
            doubts.extend(conditions.after(&group));
        }
        let text = kernel_log::of_group(&log::read(), group.path());
        let killed = group.usage().map_or(0, |usage| usage.oom_kills);
        let mut left = applied.map_or_else(Vec::new, Applied::restore);
        left.extend(group.remove());
        left.extend(swap.map_or_else(Vec::new, SwapDevice::switch_off));
        drop(folder);
        if is_stopped {
            return Err(ArenaError::Stopped);
        }
        let ended = ended_at.unwrap_or_else(Instant::now);
        let mut results = self.results(report, &output, &text)?;
        if self.plan.needs.root.is_some() {
            measured::add(&mut results, self.subject);
        }
        add_deaths(&mut results, killed);
        let is_spoiled = add_doubts(&mut results, &doubts);
        warn_of_remains(&mut results, remaining, &left);
        results.warnings.extend(no_trace.map(note));
        let trace = pack_trace(&mut observed, &mut results)?;
        let running_at = running_at.unwrap_or(ended);
        let wall = Wall {
            started: nanos(started_at),
            machine: self.machine.clone(),
            ..wall([started, running_at, ended])
        };
        Ok(EndedTrial {
            finding: TrialResult {
                results,
                kernel_config: BTreeMap::new(),
                wall,
                ended,
            },
            output,
            observed,
            trace,
            is_spoiled,
            left,
        })
    }

    /// Writes the files of a user's program to the work folder.
    fn install(&self, digest: &str, folder: &Path) -> Result<(), ArenaError> {
        let root = Roots::of(self.cache).get(digest);
        let root = root.map_err(ArenaError::broken)?;
        let what = format!("writing the program's files to {}", folder.display());
        program_root::install(&root, folder)
            .map_err(Refusal::failed(what))
            .map_err(ArenaError::broken)
    }

    /// Switches on the swap of the trial. Returns `None` if the trial has no swap area of its own.
    fn swap(&self) -> Result<Option<SwapDevice>, ArenaError> {
        let on = match &self.plan.swap {
            SwapPlan::None | SwapPlan::Existing => return Ok(None),
            SwapPlan::Loop => SwapOn::Loop {
                folder: self.folder.to_owned(),
            },
            SwapPlan::Zram(compressor) => SwapOn::Zram {
                compressor: compressor.clone(),
            },
        };
        let swap = SwapDevice::switch_on(self.journal, &on, self.subject.swap_size);
        Ok(Some(swap.map_err(ArenaError::broken)?))
    }

    /// Reads the workload's output and returns the results.
    fn results(&self, report: Report, output: &Output, log: &str) -> Result<Results, ArenaError> {
        let failed = || Refusal::failed("reading the output of the workload");
        let frames = output.frames();
        let frames = frames.map_err(failed()).map_err(ArenaError::broken)?;
        let outcome = frames
            .iter()
            .find(|frame| frame.kind == Kind::Blob && frame.name == OUTCOME)
            .map(|frame| output.bytes(frame));
        let outcome = outcome.transpose();
        let outcome = outcome.map_err(failed()).map_err(ArenaError::broken)?;
        let mut results = report.finish(outcome.as_deref(), log, self.plan.needs.pressure);
        // The log has only reports of processes killed in the group. What looks like a fault of the kernel in it is the
        // name of a process, such as `BUG:`.
        let is_name = |known: &Invalid| matches!(known, Invalid::Oops { .. });
        results.invalid.retain(|known| !is_name(known));
        if output.region().head().full.load(Ordering::Acquire) != 0 {
            results.invalid.push(Invalid::Full {
                what: "the output region".to_owned(),
                size: output.size(),
            });
        }
        Ok(results)
    }
}

impl EndedTrial {
    /// Writes the workload's bulk output, the observer's series and the trace to the record.
    pub(crate) fn write(&self, sink: &mut RecordWriter) -> Result<(), ArenaError> {
        let frames = self.output.frames();
        let failed = || Refusal::failed("reading the output of the workload");
        for frame in frames.map_err(failed()).map_err(ArenaError::broken)? {
            let section = match (frame.kind, frame.name.as_str()) {
                (Kind::Blob, OUTCOME) | (Kind::Results, _) => continue,
                (Kind::Blob, TASKS) => {
                    let tasks = self.output.bytes(&frame);
                    let tasks = tasks.map_err(failed()).map_err(ArenaError::broken)?;
                    let tasks = numbered_outside(tasks, &self.observed.outside);
                    sink.section("blob", TASKS, &tasks)?;
                    continue;
                }
                (Kind::Series, _) => "series",
                (Kind::Blob, _) => "blob",
            };
            sink.stream(section, &frame.name, frame.length, self.output.body(&frame))?;
        }
        for series in &self.observed.series {
            sink.section("series", &series.name, &series.encode())?;
        }
        if let Some(trace) = &self.trace {
            sink.section("blob", TRACE, trace)?;
        }
        Ok(())
    }
}

/// Returns the sources of counters of a trial in this cgroup. `zram` is the folder of its zram device in sysfs.
fn scope(group: &Group, zram: Option<PathBuf>) -> Scope {
    Scope {
        group: Some(group.path().to_owned()),
        machine: true,
        zram,
        devices: Vec::new(),
        nodes: Vec::new(),
    }
}

/// Returns the durations of a trial until now. The times are those at which its preparation, its scenario and its
/// clean-up began.
fn wall([started, running_at, ended]: [Instant; 3]) -> Wall {
    Wall {
        to_first_instruction: nanos(running_at.saturating_duration_since(started)),
        scenario: nanos(ended.saturating_duration_since(running_at)),
        total: nanos(started.elapsed()),
        ..Wall::default()
    }
}

/// Returns the time since 1970.
fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

fn nanos(span: Duration) -> Nanos {
    Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

/// Removes the trace from `observed` and returns it in the format of a record; `None` if there is none. Lost events
/// make the results invalid.
fn pack_trace(
    observed: &mut Observed,
    results: &mut Results,
) -> Result<Option<Vec<u8>>, ArenaError> {
    let Some(trace) = observed.trace.take() else {
        return Ok(None);
    };
    let (bytes, losses) = tracing::packed(trace).map_err(ArenaError::broken)?;
    if losses.any() {
        // A gap of unknown size and a damaged piece each hide at least one event.
        let events = losses.events + losses.gaps_unknown + losses.damaged;
        results.invalid.push(Invalid::LostEvents { events });
    }
    Ok(Some(bytes))
}

/// Replaces the PIDs in a list of [`TaskAccounting`] by the PIDs outside of the workload's namespace, which traces
/// contain. Leaves out processes whose outer PID is unknown. If `outside` is empty, the PIDs are equal and nothing
/// changes.
fn numbered_outside(tasks: Vec<u8>, outside: &BTreeMap<u32, u32>) -> Vec<u8> {
    if outside.is_empty() {
        return tasks;
    }
    let mut known: Vec<TaskAccounting> = serde_json::from_slice(&tasks).unwrap_or_default();
    known.retain_mut(|task| {
        let number = outside.get(&task.pid);
        task.pid = number.copied().unwrap_or(task.pid);
        number.is_some()
    });
    serde_json::to_vec(&known).unwrap_or_default()
}

/// Returns a warning with free text.
fn note(text: String) -> Warning {
    Warning::Note { text }
}

/// Adds a warning if processes of the workload could not be killed, and one for each change that could not be undone.
fn warn_of_remains(results: &mut Results, processes: usize, changes: &[Left]) {
    if processes > 0 {
        results.warnings.push(note(format!(
            "{processes} processes of the workload could not be killed"
        )));
    }
    let texts = changes.iter().map(ToString::to_string);
    results.warnings.extend(texts.map(note));
}

/// Makes the trial invalid if the OOM killer killed processes of the cgroup and no other reason for invalidity says so.
/// This replaces the reasons that a process died or that the program failed.
fn add_deaths(results: &mut Results, killed: u64) {
    if killed == 0 || results.invalid.iter().any(Invalid::is_death) {
        return;
    }
    results
        .invalid
        .retain(|known| !matches!(known, Invalid::ProcessDied { .. } | Invalid::Program { .. }));
    results.invalid.push(Invalid::OutOfLimit {
        process: "a process".to_owned(),
        after: results.elapsed,
    });
}

/// Adds the reasons for doubt to the results, as reasons for invalidity or as warnings. Returns true if other processes
/// spoiled the trial.
fn add_doubts(results: &mut Results, doubts: &[Doubt]) -> bool {
    let mut is_spoiled = false;
    for doubt in doubts {
        let why = doubt.to_string();
        if doubt.is_invalid() {
            is_spoiled = true;
            let spoiled = Invalid::Disturbed { why };
            if !results.invalid.contains(&spoiled) {
                results.invalid.push(spoiled);
            }
        } else {
            results.warnings.push(Warning::Doubtful {
                why,
                of_times: doubt.is_of_times(),
            });
        }
    }
    is_spoiled
}

/// State of the steps of a trial on the running kernel.
struct HostSteps<'a> {
    run: &'a Run<'a>,
    group: &'a Group,
    swap: Option<&'a SwapDevice>,
    output: &'a Output,
    order: &'a Order,
    observer: Observer,
    /// Sources of counters that this kernel does not have, each with the reason.
    not_observed: String,
    /// Why an observed trial has no trace; `None` if it has one, or if the trial is timed.
    no_trace: Option<String>,
    applied: Option<Applied>,
    workload: Option<Workload>,
    /// Observes the conditions of the trial; `None` before its start.
    conditions: Option<Conditions>,
    /// Reasons for doubt because of which the trial was ended.
    doubts: Vec<Doubt>,
    /// True if the user stopped the trial.
    is_stopped: bool,
    running_at: Option<Instant>,
    ended_at: Option<Instant>,
}

impl Steps for HostSteps<'_> {
    fn apply(&mut self) -> MachineState {
        let mut state = MachineState {
            facts: plan::facts(self.run.plan),
            ..MachineState::default()
        };
        if !self.not_observed.is_empty() {
            let fact = ("not-observed".to_owned(), self.not_observed.clone());
            state.facts.extend([fact]);
        }
        state.facts.extend(Conditions::facts());
        state.facts.extend(topology::facts());
        if let Some(swap) = self.swap {
            let path = swap.device().display().to_string();
            state.facts.insert("swap-areas".to_owned(), path);
            if !swap.is_direct() {
                state.warnings.push(note(
                    "the swap file is read through the page cache of the machine, because its disk has no direct I/O".to_owned(),
                ));
            }
        }
        match self.run.plan.swap {
            SwapPlan::Existing => state.warnings.push(note(
                "other processes use the same swap area, so counts of swap may include their pages".to_owned(),
            )),
            // Source: kernel mm/zsmalloc.c: the pages of a pool are allocated without charging a group.
            SwapPlan::Zram(_) => state.warnings.push(note(
                "zram's compressed pages are in the machine's memory, and do not count towards the group's limit".to_owned(),
            )),
            SwapPlan::None | SwapPlan::Loop => {}
        }
        match setting::apply(self.run.journal, &self.run.plan.settings) {
            Ok(mut applied) => {
                state.refused = std::mem::take(&mut applied.refused);
                state.settings = Settings::of_machine(MachineFate::Ends).survey(|_| true);
                state.settings.append(&mut applied.read.clone());
                self.applied = Some(applied);
            }
            Err(why) => {
                let why = why.to_string();
                state.refused.push(Invalid::Scenario { why });
            }
        }
        if let Some(swappiness) = self.run.plan.limits.swappiness {
            let value = swappiness.to_string();
            state.settings.insert("vm.swappiness".to_owned(), value);
        }
        state
    }

    fn prepare(&mut self) -> Result<(), String> {
        let workload = Workload::start(self.run.program, self.output, self.order);
        let workload = workload.map_err(|why| why.to_string())?;
        let admitted = self.group.admit(workload.id());
        let target = Target {
            pid: workload.id(),
            swap: self.swap.map(SwapDevice::device),
            ring: self.run.subject.trace_ring,
        };
        self.workload = Some(workload);
        admitted.map_err(|why| why.to_string())?;
        if self.run.subject.pass == Pass::Observed {
            let (journal, limit) = (self.run.journal, self.run.trace_limit);
            if let Err(why) = self.observer.trace(journal, &target, limit) {
                self.no_trace = Some(format!(
                    "this trial has counters and samples over time, but no trace: {why}"
                ));
            }
        }
        Ok(())
    }

    fn wait_for_start(&mut self) {
        std::thread::sleep(SETTLE);
        self.conditions = Some(Conditions::before(self.group));
    }

    fn begin_observing(&mut self) -> Result<(), String> {
        self.observer.begin()
    }

    fn workload(&mut self) -> Vec<Invalid> {
        let Some(mut workload) = self.workload.take() else {
            return Vec::new();
        };
        self.running_at = Some(Instant::now());
        if let Err(why) = workload.go() {
            let why = format!("starting it: {why}");
            return vec![Invalid::Scenario { why }];
        }
        let invalid = self.watch(&mut workload);
        self.ended_at = Some(Instant::now());
        // The workload is dropped here, so that its exit status is collected before counters are read.
        drop(workload);
        invalid
    }

    fn facts(&mut self) -> BTreeMap<String, String> {
        let Some(usage) = self.group.usage() else {
            return BTreeMap::new();
        };
        let mut facts = BTreeMap::from([
            (LIMIT_HITS.to_owned(), usage.limit_hits.to_string()),
            ("group-swap".to_owned(), usage.swap.0.to_string()),
        ]);
        if let Some(peak) = usage.peak {
            facts.insert("group-peak".to_owned(), peak.0.to_string());
        }
        facts
    }

    fn stop_observing(&mut self) -> Result<(), String> {
        self.observer.stop()
    }

    fn counters(&mut self) -> BTreeMap<String, Counters> {
        self.observer.counters()
    }
}

impl HostSteps<'_> {
    /// Watches workload and machine until the workload exits, makes no progress, is stopped by the user, or is spoiled
    /// by other processes. Returns the reasons for invalidity.
    fn watch(&mut self, workload: &mut Workload) -> Vec<Invalid> {
        let region = self.output.region();
        let head = region.head();
        let mut sampled = Instant::now();
        let (mut done, mut since) = (u64::MAX, Instant::now());
        loop {
            if let Some(status) = workload.ended() {
                return supervise::fault(raw(status)).into_iter().collect();
            }
            self.observer.step(self.group, self.order.is_program);
            let now = Instant::now();
            if now.duration_since(sampled) >= Conditions::INTERVAL {
                sampled = now;
                head.clock.store(monotonic().0, Ordering::Release);
                let steps = head.done.load(Ordering::Acquire);
                if steps != done {
                    (done, since) = (steps, now);
                }
                self.run.progress.step(Step {
                    phase: region.phase(),
                    done: steps,
                    total: head.total.load(Ordering::Acquire),
                    clock: monotonic(),
                });
                let conditions = self.conditions.as_mut();
                let doubt = conditions.and_then(|now| now.sample(self.group, self.swap));
                let hung = now.duration_since(since);
                let is_hung = hung > self.run.hang && region.phase() < Phase::Ended;
                self.is_stopped = self.run.progress.is_stopped();
                if self.is_stopped || is_hung || doubt.is_some() {
                    self.group.kill_all(KILL_PATIENCE);
                    self.doubts.extend(doubt);
                    let span = Nanos(u64::try_from(hung.as_nanos()).unwrap_or(u64::MAX));
                    let hang = Invalid::Hang {
                        span,
                        clock: "wall".to_owned(),
                    };
                    return is_hung.then_some(hang).into_iter().collect();
                }
            }
            std::thread::sleep(POLL);
        }
    }
}

/// Returns the status in the form in which `waitpid` returned it.
fn raw(status: ExitStatus) -> i32 {
    std::os::unix::process::ExitStatusExt::into_raw(status)
}
