//! Runs one trial: restores a snapshot, watches the guest, and collects the results.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pagetide_arena::{ArenaError, Progress, Step, TrialResult, measured};
use pagetide_guest::spec::Order;
use pagetide_guest::tracearea::{self, Piece};
use pagetide_guest::workload::OUTCOME;
use pagetide_harness::judgement::{LOG, Report};
use pagetide_kernel::Kernel;
use pagetide_probe::observed::TRACE;
use pagetide_probe::trace::{CpuBuffer, Losses, TraceFile};
use pagetide_profile::{ANNOTATION, PROFILE, REFERENCES};
use pagetide_quantity::{Bytes, Nanos, Series};
use pagetide_record::cpus::WORKERS;
use pagetide_record::outcome::Invalid;
use pagetide_record::record::Results;
use pagetide_record::wire::{FramePosition, Kind, Phase};
use pagetide_record::{Machine, Pass, RecordWriter, Subject, Wall};
use pagetide_root::Roots;
use pagetide_scenario::{GROUP_SETTING, Needs};

use serde_json::json;

use crate::boot::boot_files;
use crate::emulator::{Emulator, Running, Wiring};
use crate::error::{ExactError, ended, io};
use crate::functions;
use crate::guard::{End, Guard};
use crate::headroom;
use crate::layout::Layout;
use crate::machine::MachineSpec;
use crate::memory::{self, Output};
use crate::monitor::Monitor;
use crate::place::EmulatorSlots;
use crate::profiler::{Counted, PassCounts, Profiler, is_about_plugins, kernel_ranges};
use crate::recipe::Recipe;
use crate::slow::{self, SlowCounter};
use crate::snapshot::Snapshot;
use crate::tiers;
use crate::turns::Turns;
use crate::watched::Watched;

/// Interval at which this process checks the guest.
const POLL: Duration = Duration::from_millis(2);
/// Interval between two progress reports.
const REPORT: Duration = Duration::from_millis(100);
/// Maximum wall-clock time for restoring a snapshot.
const RESTORE_LIMIT: Duration = Duration::from_mins(1);
/// Maximum number of bytes of the kernel's last output that a record keeps.
const LAST_WORDS_BYTES: usize = 16 << 10;

/// Name of the frame with the scenario's log of accesses.
const ACCESSES: &str = "access-log";
/// Maximum size of the record of references to pages. It is in memory until the trial ends.
const MAX_REFERENCES: Bytes = Bytes(256 << 20);
/// Maximum size of a log of accesses that is read into memory.
const MAX_LOG: Bytes = Bytes(256 << 20);

/// What is needed to run a trial, other than its subject.
pub struct Run<'a> {
    /// Emulator to run.
    pub emulator: &'a Emulator,
    /// Limit on the number of emulators that run at once.
    pub places: &'a EmulatorSlots,
    /// Kernel of the guest.
    pub kernel: &'a Kernel,
    /// Machine to emulate.
    pub machine: &'a MachineSpec,
    /// Inputs that determine the snapshot.
    pub recipe: &'a Recipe,
    /// Snapshot from which the trial starts.
    pub snapshot: &'a Snapshot,
    /// Roots of user programs.
    pub roots: &'a Roots,
    /// Wall-clock time without progress after which the trial is ended.
    pub hang_wall: Duration,
    /// Maximum number of bytes of trace that the record keeps. The guest does not know the limit, so its behaviour does
    /// not depend on it.
    pub trace_limit: Bytes,
    /// True if a profiled pass also records references to pages.
    pub records_references: bool,
    /// Function whose instructions a profiled pass counts one by one.
    pub annotate: Option<&'a str>,
}

/// Plugins of the emulator that a trial needs.
#[derive(Clone, Copy, Default)]
struct Plugins<'a> {
    /// Counts instructions by function.
    profiler: Option<&'a Profiler>,
    /// Counts accesses to slow memory nodes.
    slow: Option<&'a SlowCounter>,
}

/// A running guest that was restored from a snapshot, with the files that it and its emulator write.
struct Started {
    // The monitor is not used again, because any later command would make the trial depend on the host's timing.
    _monitor: Monitor,
    running: Running,
    console: File,
    errors: File,
    output: Output,
}

/// What was observed of a trial from outside the guest: how and when the emulator ended.
struct RunWatch {
    status: Option<ExitStatus>,
    hung: Option<Duration>,
    stopped: bool,
    running_at: Option<Instant>,
    ended_at: Option<Instant>,
}

impl Run<'_> {
    /// Runs the trial to its end and returns the results. Writes series, blobs and traces to `sink`.
    pub fn execute(
        &self,
        subject: &Subject,
        needs: &Needs,
        hang_virtual: Nanos,
        host: &Machine,
        sink: &mut RecordWriter,
        progress: &dyn Progress,
    ) -> Result<TrialResult, ArenaError> {
        let broken = ended(ArenaError::broken);
        let place = self.places.take(progress).map_err(&broken)?;
        let started = Instant::now();
        let started_at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let output = self.output().map_err(ArenaError::broken)?;
        let order = order(subject, needs, hang_virtual, &output).map_err(ArenaError::broken)?;
        let json = serde_json::to_vec(&order).unwrap_or_default();
        let is_profiled = subject.pass == Pass::Profiled;
        let mut watched = None;
        let profiler = is_profiled.then(|| self.profiler(needs, &mut watched, progress));
        let profiler = profiler.transpose().map_err(&broken)?;
        let slow = SlowCounter::new(self.machine, self.emulator).map_err(ArenaError::broken)?;
        let plugins = Plugins {
            profiler: profiler.as_ref(),
            slow: slow.as_ref(),
        };
        let mut guest = self
            .begin(output, &json, plugins, progress)
            .map_err(&broken)?;
        let is_observed = subject.pass == Pass::Observed;
        let list = if is_observed {
            functions::kept(&self.snapshot.folder())
        } else {
            None
        };
        let last = if is_observed && list.is_none() {
            Phase::Listed
        } else {
            Phase::Done
        };
        let seen = self.watch(&mut guest, last, progress);
        if seen.stopped {
            return Err(ArenaError::Stopped);
        }
        // The guest's memory is a mapped file. If there is no space for one of its pages, the emulator receives this
        // signal.
        if seen.status.and_then(|status| status.signal()) == Some(libc::SIGBUS) {
            let path = self.snapshot.folder();
            return Err(ArenaError::broken(ExactError::NoRoom { path }));
        }
        let Started {
            running,
            console,
            errors,
            output,
            ..
        } = guest;
        running.end_beside();
        drop(place);
        let ended = seen.ended_at.unwrap_or_else(Instant::now);
        let list = match list {
            None if output.region().phase() >= Phase::Listed => {
                self.listed(&output).map_err(ArenaError::broken)?
            }
            list => list,
        };
        let mut results = self.take(&output, needs.pressure, list.as_deref(), sink)?;
        explain(
            &mut results,
            &seen,
            &memory::text(&console),
            &memory::text(&errors),
        );
        if let Some(results) = &mut results {
            if let Some(profiler) = profiler {
                keep_profile(profiler, watched.as_ref(), results.elapsed, sink)?;
            }
            if needs.root.is_some() {
                measured::add(results, subject);
            }
            if let Some(series) = headroom::add(results, subject, || log_of_accesses(&output)) {
                sink.series(&series)?;
            }
            tiers::add(results, subject, || states_of_pages(&output));
            if let Some(slow) = slow {
                let accesses = slow.accesses().map_err(ArenaError::broken)?;
                slow::add(results, subject, accesses);
            }
        }
        let since = |from: Instant, to: Instant| {
            Nanos(u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX))
        };
        let running_at = seen.running_at.unwrap_or(ended);
        let wall = Wall {
            started: Nanos(u64::try_from(started_at.as_nanos()).unwrap_or(u64::MAX)),
            to_first_instruction: since(started, running_at),
            scenario: since(running_at, ended),
            total: since(started, Instant::now()),
            machine: host.clone(),
            ..Wall::default()
        };
        Ok(TrialResult {
            results: results.unwrap_or_default(),
            // The trial is valid even if the kernel's configuration can no longer be read.
            kernel_config: self
                .kernel
                .config()
                .map_or_else(|_| BTreeMap::new(), |config| config.of_memory()),
            wall,
            ended,
        })
    }

    /// Prepares the plugin that counts instructions. If the list of the kernel's functions is not stored yet, first
    /// runs a guest that lists them. If the kernel has a patch, sets `watched` to the code that the patch changed.
    fn profiler(
        &self,
        needs: &Needs,
        watched: &mut Option<Watched>,
        progress: &dyn Progress,
    ) -> Result<Profiler, ExactError> {
        let list = match functions::kept(&self.snapshot.folder()) {
            Some(list) => list,
            None => self.ask_list(progress)?,
        };
        let ranges = kernel_ranges(&list);
        let layout = Layout::read(&list, &self.snapshot.rams);
        let programs = match &needs.root {
            Some(digest) => self.roots.get(digest)?.code()?,
            None => Vec::new(),
        };
        let changed = self.kernel.changed_code();
        let found = changed.map(|changed| Watched::new(changed, &ranges));
        let addresses = found.as_ref().map(Watched::addresses).unwrap_or_default();
        *watched = found;
        let most = Bytes(MAX_REFERENCES.0.min(self.trace_limit.0));
        Profiler::new(Counted {
            ranges: &ranges,
            programs: &programs,
            watched: &addresses,
            references: self.records_references.then_some(most),
            layout: layout.as_ref(),
            annotate: self.annotate,
        })
    }

    /// Starts a guest with an empty specification, so that it only lists its kernel's functions. Returns the list;
    /// empty if the kernel cannot list them.
    fn ask_list(&self, progress: &dyn Progress) -> Result<Vec<u8>, ExactError> {
        let mut guest = self.begin(self.output()?, b"{}", Plugins::default(), progress)?;
        let seen = self.watch(&mut guest, Phase::Listed, progress);
        guest.running.end_beside();
        if seen.stopped {
            return Err(ExactError::Stopped);
        }
        // A kernel that cannot list its functions is profiled without names.
        if guest.output.region().phase() < Phase::Listed {
            return Ok(Vec::new());
        }
        Ok(self.listed(&guest.output)?.unwrap_or_default())
    }

    /// Creates the output region for a guest.
    fn output(&self) -> Result<Output, ExactError> {
        Output::new(
            Bytes(self.recipe.boot.region_size),
            Bytes(self.recipe.boot.trace_size),
        )
    }

    /// Starts a guest from the snapshot. `order` is the specification of its trial in JSON.
    fn begin(
        &self,
        output: Output,
        order: &[u8],
        plugins: Plugins<'_>,
        progress: &dyn Progress,
    ) -> Result<Started, ExactError> {
        let console = memory::anonymous("console")?;
        let errors = memory::anonymous("errors")?;
        let trial = memory::holding("trial", order)?;
        let files = [&console, &errors, &trial];
        let (running, monitor) = self.start(&output, files, plugins, progress)?;
        Ok(Started {
            _monitor: monitor,
            running,
            console,
            errors,
            output,
        })
    }

    /// Starts an emulator and restores the snapshot in it. `files` are the guest's console, the emulator's messages and
    /// the trial's specification.
    fn start(
        &self,
        output: &Output,
        files: [&File; 3],
        plugins: Plugins<'_>,
        progress: &dyn Progress,
    ) -> Result<(Running, Monitor), ExactError> {
        let [console, errors, trial] = files;
        let state = File::open(&self.snapshot.state).map_err(io(
            "opening snapshot",
            self.snapshot.state.display().to_string(),
        ))?;
        let size = output.whole();
        let wiring = Wiring::new(
            (&self.snapshot.rams, false),
            &self.machine.memories(),
            output.file(),
            size,
            console,
            trial,
        );
        let mut arguments = self.recipe.arguments.clone();
        arguments.extend(wiring.arguments);
        arguments.extend(boot_files(&self.snapshot.stub, None));
        arguments.extend(["-incoming".to_owned(), "defer".to_owned()]);
        let (mut monitor, theirs) = Monitor::pair()?;
        arguments.extend(Monitor::arguments(theirs.as_raw_fd()));
        let mut inherited = wiring.inherited;
        inherited.extend([state.as_raw_fd(), theirs.as_raw_fd()]);
        if let Some(profiler) = plugins.profiler {
            arguments.extend(profiler.arguments());
            inherited.extend(profiler.fds());
        }
        if let Some(slow) = plugins.slow {
            arguments.extend(slow.arguments());
            inherited.extend(slow.fds());
        }
        let turns = Turns::Trial.of(self.machine.cpus);
        let running =
            self.emulator
                .start_in(self.machine.timing, turns, &arguments, &inherited, errors)?;
        // Now only the emulator has its end of the connection open, so its death is noticed.
        drop(theirs);
        let patience = RESTORE_LIMIT.min(self.hang_wall);
        let mut guard = Guard::new(progress, patience, console, output, None, running.id());
        let (ignore, what) = Monitor::ignore_shared();
        let from = json!({ "uri": format!("fd:{}", state.as_raw_fd()) });
        let fault = |why: &str| {
            let text = memory::text(errors);
            let last = text.lines().last().unwrap_or_default();
            // Other failures are about the snapshot.
            if plugins.profiler.is_some() && is_about_plugins(last) {
                return ExactError::NoPlugins {
                    program: self.emulator.program.clone(),
                    why: last.to_owned(),
                };
            }
            ExactError::Restore {
                path: self.snapshot.folder(),
                why: format!("{why}; {last}"),
            }
        };
        let mut commands = vec![("qmp_capabilities", json!({})), (ignore, what)];
        if self.machine.cpus.are_several() {
            commands.push(Monitor::no_announcements());
        }
        commands.push(("migrate-incoming", from));
        monitor
            .send(&commands)
            .map_err(|_| fault("the emulator closed its monitor"))?;
        let restored = monitor.migrated(&mut || guard.should_wait());
        let restored = restored.ok_or_else(|| match guard.end() {
            Some(End::Stopped) => ExactError::Stopped,
            Some(_) => fault("it did not end"),
            None => fault("it gave up"),
        })?;
        if !self.machine.timing.is_real() {
            self.emulator.proven(&restored)?;
        }
        // The guest was saved at its ready point and is still paused. This is the last command from outside.
        monitor
            .send(&[("cont", json!({}))])
            .map_err(|_| fault("the emulator closed its monitor"))?;
        Ok((running, monitor))
    }

    /// Returns the list of the kernel's functions from the guest, and stores it for later trials. `None` if the list is
    /// damaged.
    fn listed(&self, output: &Output) -> Result<Option<Vec<u8>>, ExactError> {
        let list = output.functions()?;
        if let Some(list) = &list {
            // If the list cannot be stored, the next trial must produce it again.
            let _ = functions::keep(&self.snapshot.folder(), list);
        }
        Ok(list)
    }

    /// Watches the guest until it reaches the phase `last`, ends, panics, makes no progress, or is stopped by the user.
    fn watch(&self, guest: &mut Started, last: Phase, progress: &dyn Progress) -> RunWatch {
        let Started {
            running,
            console,
            output,
            ..
        } = guest;
        let head = output.region().head();
        let mut seen = RunWatch {
            status: None,
            hung: None,
            stopped: false,
            running_at: None,
            ended_at: None,
        };
        let mut guard = Guard::new(
            progress,
            self.hang_wall,
            console,
            output,
            None,
            running.id(),
        );
        let mut reported = Instant::now();
        loop {
            let now = Instant::now();
            let phase = output.region().phase();
            if phase >= Phase::Running && seen.running_at.is_none() {
                seen.running_at = Some(now);
            }
            if phase >= Phase::Ended && seen.ended_at.is_none() {
                seen.ended_at = Some(now);
            }
            if phase >= last {
                // All results are written, and the emulator's own end adds nothing.
                return seen;
            }
            if let Some(status) = running.ended() {
                seen.status = Some(status);
                return seen;
            }
            if !guard.should_wait() {
                running.kill();
                match guard.end() {
                    Some(End::Stopped) => seen.stopped = true,
                    Some(End::Hung(span)) => seen.hung = Some(span),
                    Some(End::Panicked) | None => {}
                }
                return seen;
            }
            if now.duration_since(reported) >= REPORT {
                reported = now;
                progress.step(Step {
                    phase,
                    done: head.done.load(Ordering::Acquire),
                    total: head.total.load(Ordering::Acquire),
                    clock: Nanos(head.clock.load(Ordering::Acquire)),
                });
            }
            std::thread::sleep(POLL);
        }
    }

    /// Reads the frames from the region, writes bulk data to `sink`, and returns the evaluated results; `None` if the
    /// guest wrote none and nothing was lost. `list` contains the names of the kernel's functions.
    fn take(
        &self,
        output: &Output,
        needs_pressure: bool,
        list: Option<&[u8]>,
        sink: &mut RecordWriter,
    ) -> Result<Option<Results>, ArenaError> {
        let mut report = None;
        let mut outcome = None;
        let mut log = String::new();
        let mut losses = Losses::default();
        let bytes = |frame| output.bytes(frame).map_err(ArenaError::broken);
        for frame in &output.frames().map_err(ArenaError::broken)? {
            match (frame.kind, frame.name.as_str()) {
                (Kind::Results, _) => {
                    report = serde_json::from_slice::<Report>(&bytes(frame)?).ok();
                }
                (Kind::Blob, OUTCOME) => outcome = Some(bytes(frame)?),
                (Kind::Blob, tracearea::FRAME) => {
                    losses = trace(&bytes(frame)?, output, list, self.trace_limit, sink)?;
                }
                (Kind::Blob, LOG) => log = String::from_utf8_lossy(&bytes(frame)?).into_owned(),
                (Kind::Series, name) => {
                    sink.stream("series", name, frame.length, output.body(frame))?;
                }
                (Kind::Blob, name) => {
                    sink.stream("blob", name, frame.length, output.body(frame))?;
                }
            }
        }
        let mut results =
            report.map(|report| report.finish(outcome.as_deref(), &log, needs_pressure));
        if losses.any() {
            // A gap of unknown size and a damaged piece each hide at least one event.
            let events = losses.events + losses.gaps_unknown + losses.damaged;
            results
                .get_or_insert_with(Results::default)
                .invalid
                .push(Invalid::LostEvents { events });
        }
        if output.region().head().full.load(Ordering::Acquire) != 0 {
            let full = Invalid::Full {
                what: "the output region".to_owned(),
                size: Bytes(self.recipe.boot.region_size),
            };
            results
                .get_or_insert_with(Results::default)
                .invalid
                .push(full);
        }
        Ok(results)
    }
}

/// Returns the series in which the scenario recorded the state of every page, in the order of recording.
fn states_of_pages(output: &Output) -> Vec<Series> {
    let frames = output.frames().unwrap_or_default();
    let is_state =
        |frame: &&FramePosition| frame.kind == Kind::Series && frame.name.starts_with("pages-");
    let frames = frames.iter().filter(is_state);
    frames
        .filter_map(|frame| Series::decode(&frame.name, &output.bytes(frame).ok()?).ok())
        .collect()
}

/// Writes the profile to the record, and the recorded references and the annotation if there are any. Writes nothing if
/// the scenario has not ended. `watched` is the changed code of a patched kernel; `elapsed` is the duration of the
/// scenario on the guest's clock.
fn keep_profile(
    profiler: Profiler,
    watched: Option<&Watched>,
    elapsed: Nanos,
    sink: &mut RecordWriter,
) -> Result<(), ArenaError> {
    if let Some((file, size)) = profiler.references().map_err(ArenaError::broken)? {
        sink.stream("blob", REFERENCES, size, file)?;
    }
    let found = profiler.profile(elapsed).map_err(ArenaError::broken)?;
    if let Some(PassCounts {
        mut profile,
        executed,
        annotation,
    }) = found
    {
        profile.coverage = watched.map(|watched| watched.coverage(&profile, &executed));
        if let Some(mut annotation) = annotation {
            if let Some(watched) = watched {
                watched.add_lines(&mut annotation);
            }
            let json = serde_json::to_vec(&annotation).map_err(ArenaError::broken)?;
            sink.section("blob", ANNOTATION, &json)?;
        }
        let json = profile.to_json().map_err(ArenaError::broken)?;
        sink.stream("blob", PROFILE, json.len() as u64, json.as_slice())?;
    }
    Ok(())
}

/// Returns the scenario's log of all accesses; `None` if there is none, or if it is too large to be read into memory.
fn log_of_accesses(output: &Output) -> Option<Vec<u8>> {
    let frames = output.frames().ok()?;
    let is_log = |frame: &&FramePosition| frame.kind == Kind::Blob && frame.name == ACCESSES;
    let frame = frames.iter().find(is_log)?;
    (frame.length <= MAX_LOG.0).then(|| output.bytes(frame).ok())?
}

/// Assembles the trace of an observed trial and writes it to the record. Returns how much of the trace was lost.
fn trace(
    contents: &[u8],
    output: &Output,
    list: Option<&[u8]>,
    limit: Bytes,
    sink: &mut RecordWriter,
) -> Result<Losses, ArenaError> {
    let fault = |why: String| ArenaError::broken(ExactError::Trace { why });
    let mut contents: tracearea::Contents =
        serde_json::from_slice(contents).map_err(|why| fault(why.to_string()))?;
    let mut of_cpu: BTreeMap<u32, Vec<Piece>> = BTreeMap::new();
    for piece in output.pieces(contents.used).map_err(ArenaError::broken)? {
        if piece.at + piece.length > limit.0 {
            // The number of events in a piece is unknown until it is read; at least one is lost.
            contents.meta.losses.gaps_unknown += 1;
        } else {
            of_cpu.entry(piece.cpu).or_default().push(piece);
        }
    }
    let mut trace = TraceFile {
        meta: contents.meta,
        cpus: Vec::new(),
    };
    for (cpu, pieces) in of_cpu {
        let mut bytes = Vec::new();
        let read = output.trace(pieces).read_to_end(&mut bytes);
        read.map_err(|why| fault(why.to_string()))?;
        trace.cpus.push(CpuBuffer { cpu, bytes });
    }
    if trace.meta.records_stacks() {
        let list =
            list.ok_or_else(|| fault("the guest did not list its kernel's functions".to_owned()))?;
        let named = trace.name_functions(list);
        named.map_err(|why| fault(why.to_string()))?;
    }
    let mut packed = Vec::new();
    trace
        .write(&mut packed)
        .map_err(|why| fault(why.to_string()))?;
    sink.stream("blob", TRACE, packed.len() as u64, packed.as_slice())?;
    let mut events = trace.events();
    // The buffers' own counts of gaps are complete only after all buffers have been read.
    events.by_ref().for_each(drop);
    Ok(events.losses().plus(trace.meta.losses))
}

/// Adds the reason for missing or incomplete results, as observed from outside the guest.
fn explain(results: &mut Option<Results>, seen: &RunWatch, console: &str, errors: &str) {
    if let Some(span) = seen.hung {
        let results = results.get_or_insert_with(Results::default);
        let span = Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        results.invalid.push(Invalid::Hang {
            span,
            clock: "wall".to_owned(),
        });
        results.kernel_log = last(console);
        return;
    }
    if results.is_some() {
        return;
    }
    let panic = console.lines().find_map(|line| {
        line.split_once("Kernel panic - not syncing:")
            .map(|(_, why)| why)
    });
    let guest = console
        .lines()
        .rev()
        .find_map(|line| line.split_once("pagetide:").map(|(_, why)| why));
    let oops = console
        .lines()
        .find(|line| line.contains("BUG:") || line.contains("Oops"));
    let reason = match (panic, guest, oops) {
        (Some(why), _, _) => Invalid::Panic {
            reason: why.trim().to_owned(),
        },
        (_, Some(why), _) => Invalid::Scenario {
            why: why.trim().to_owned(),
        },
        (_, _, Some(line)) => Invalid::Oops {
            line: line.trim().to_owned(),
        },
        _ => {
            let status = seen
                .status
                .map_or("no status".to_owned(), |status| status.to_string());
            let complaint = errors
                .lines()
                .rev()
                .find(|line| !line.trim().is_empty() && !line.contains("warning:"));
            let how = complaint.map_or(status.clone(), |line| {
                format!("{status}, `{}`", line.trim())
            });
            Invalid::EmulatorDied { how }
        }
    };
    *results = Some(Results {
        invalid: vec![reason],
        kernel_log: last(console),
        ..Results::default()
    });
}

fn last(console: &str) -> String {
    pagetide_harness::log::last(console, LAST_WORDS_BYTES).to_owned()
}

/// Returns the specification that tells the guest how to run the trial. Writes the scenario's bulk input to the region.
fn order(
    subject: &Subject,
    needs: &Needs,
    hang_virtual: Nanos,
    output: &Output,
) -> Result<Order, ExactError> {
    let data = match &needs.data {
        Some(path) => Some(output.put(&packed(path, subject)?)?),
        None => None,
    };
    let mut asked = subject.unnamed();
    if asked.pass == Pass::Profiled {
        // A profiled pass must run exactly the same guest as the timed pass.
        asked.pass = Pass::Timed;
    }
    Ok(Order {
        subject: asked,
        settings: settings(subject, needs),
        data,
        hang_after: hang_virtual,
    })
}

/// Returns names and values of the variant's settings, and of those settings that the scenario requires and the variant
/// does not set.
fn settings(subject: &Subject, needs: &Needs) -> BTreeMap<String, String> {
    let mut settings = needs.settings.clone();
    // Linux 6.8 introduced huge pages of several sizes. Older kernels have no such settings, which the scenario
    // reports.
    if older_than(&subject.variant.kernel.release, [6, 8]) {
        settings.retain(|name, _| !name.starts_with("thp/hugepages-"));
    }
    settings.extend(subject.variant.settings.clone());
    // Limits of groups are set by the scenario, which creates the groups. Workers set their CPU themselves.
    settings.retain(|name, _| !name.starts_with(GROUP_SETTING) && name != WORKERS);
    settings
}

/// Returns true if a kernel release such as `6.1.0-30-cloud-amd64` is older than this version.
fn older_than(release: &str, version: [u32; 2]) -> bool {
    let mut parts = release
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|part| part.parse::<u32>().ok());
    let found = [parts.next().unwrap_or(0), parts.next().unwrap_or(0)];
    found < version
}

/// Returns the references from the file at `path`, in the guest's format.
fn packed(path: &Path, subject: &Subject) -> Result<Vec<u8>, ExactError> {
    let fault = |why: String| {
        io("reading references from", path.display().to_string())(std::io::Error::other(why))
    };
    let pages = subject.params.get("pages").map_or("", String::as_str);
    let pages = pages.split_whitespace().next().unwrap_or_default();
    let pages = pages
        .parse()
        .map_err(|_| fault(format!("the parameter pages is `{pages}`")))?;
    let mut out = std::io::Cursor::new(Vec::new());
    pagetide_reference::pack_file(path, pages, &mut out).map_err(|why| fault(why.to_string()))?;
    Ok(out.into_inner())
}
