//! What does reclaim do to a workload that you describe?
//!
//! Processes map segments and go through phases, as a workload's text says: they fill, access, advise, fork, wait for
//! each other and reclaim, in cgroups with limits and protection. Every access is timed. Processes that the kernel
//! kills are counted; the others go on. There is no original program.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use pagetide_quantity::{Bytes, Direction, MetricDef, Nanos, Series, Unit};
use pagetide_record::Invalid;
use pagetide_workload::{Group, Kind, PageSize, Workload, group_names, instances, started};

use crate::actors::{Board, Library, Line, Stage, State, note_end, small, value};
use crate::attempt::thp_settings;
use crate::clock;
use crate::content::Content;
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts};
use crate::error::{ScenarioError, Stop};
use crate::expr::Names;
use crate::files::filesystem_for;
use crate::fill::check_content;
use crate::groups::{self, GroupLog, GroupSpec, GroupUse, Limit, MemoryGroup};
use crate::number;
use crate::params::params;
use crate::trial::{COMPRESSED, Trial, metrics};
use crate::workers::{ProcessUsage, Usage};

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Described {
        /// Name of the workload in tables.
        case: String = "";
        /// The workload in canonical form, which is JSON. `--workload FILE` and the table `[workload]` of a campaign
        /// file set it from a description in TOML.
        workload: String = "{\"process\":[{\"name\":\"reader\",\"segment\":[{\"name\":\"heap\",\"size\":\"150%\"}],\"phase\":[{\"do\":\"fill\",\"segment\":\"heap\"},{\"do\":\"access\",\"segment\":\"heap\",\"pattern\":\"zipf(0.8,scatter)\",\"writes\":0.2,\"count\":\"2x\"}]}]}";
        /// Memory that sizes in percent refer to.
        shares_of: Bytes = "memory", min = "1M";
    }
}

/// Interval at which the main process checks the other processes.
const POLL: Nanos = Nanos::from_millis(20);
/// Number of checks between two samples of the cgroups and of swap.
const LOOKS_PER_SAMPLE: u64 = 5;
/// Maximum number of samples of all cgroups together, so that they need little memory.
const MAX_SAMPLES: u64 = 2048;
/// Maximum number of rows in the series `progress`.
const MAX_ROWS: u64 = 1024;
/// Grace period after the time limit, in which processes can stop before they are killed.
const GRACE: Nanos = Nanos::from_secs(1);
/// Size of a huge page on x86-64.
const HUGE: Bytes = Bytes::from_mib(2);

impl Described {
    fn read(&self, name: &str) -> Result<Workload, ScenarioError> {
        Workload::from_canonical(&self.workload).map_err(|why| contradiction(name, why.to_string()))
    }

    /// Returns the description of a cgroup with its limits. `folder` is the name of its folder.
    fn group(&self, group: &Group, folder: &str) -> GroupSpec {
        let mut spec = GroupSpec::new(folder);
        for (file, size) in group.sizes() {
            let limit = Limit::ALL.into_iter().find(|limit| limit.key() == file);
            if let Some(limit) = limit {
                spec = spec.with(limit, size.limit_of(self.shares_of));
            }
        }
        spec
    }
}

fn contradiction(name: &str, why: String) -> ScenarioError {
    ScenarioError::Contradiction {
        scenario: name.to_owned(),
        why,
    }
}

/// Returns true if any of the phases requests reclaim from a cgroup.
fn reclaims(phases: &[pagetide_workload::Phase]) -> bool {
    phases.iter().any(|phase| {
        matches!(phase, pagetide_workload::Phase::Reclaim { .. }) || reclaims(phase.inner())
    })
}

impl Scenario for Described {
    const METRICS: &'static [MetricDef] = metrics![
        MetricDef::time("time", "time from the start to the end of the last process").primary(),
        MetricDef::time("access-mean", "mean access").primary(),
        MetricDef::time("access-p50", "median access"),
        MetricDef::time("access-p90", "90th percentile of the accesses"),
        MetricDef::time("access-p99", "99th percentile of the accesses").primary(),
        MetricDef::time("access-p999", "99.9th percentile of the accesses"),
        MetricDef::time("access-max", "longest access"),
        MetricDef::time(
            "longest-stall",
            "longest time, in steps of 20 ms, in which processes ran but none completed an access or a page"
        ),
        MetricDef::count("accesses", Direction::Neutral, "accesses of all processes"),
        MetricDef::count(
            "minor-faults",
            Direction::Lower,
            "page faults of all processes that needed no device"
        ),
        MetricDef::count(
            "major-faults",
            Direction::Lower,
            "page faults of all processes that waited for a device"
        ),
        MetricDef::count(
            "killed",
            Direction::Lower,
            "processes that the kernel killed"
        ),
        MetricDef::time("killed-first", "time from the start to the first kill"),
        MetricDef::count(
            "unfinished",
            Direction::Lower,
            "processes that still ran at the time limit"
        ),
        MetricDef::time("fork", "time in fork, summed over the processes"),
        MetricDef::time("advice", "time in advice, summed over the processes"),
        MetricDef::of(
            "reclaim-asked",
            Unit::Bytes,
            Direction::Neutral,
            "memory that was asked for by writing to memory.reclaim"
        ),
        MetricDef::of(
            "reclaim-taken",
            Unit::Bytes,
            Direction::Neutral,
            "memory that these requests reclaimed, by the kernel's count"
        ),
        MetricDef::time("reclaim-time", "time that these requests took"),
        MetricDef::of(
            "protected-reclaimed",
            Unit::Pages,
            Direction::Lower,
            "pages that the kernel reclaimed from groups with memory.low or memory.min"
        ),
        COMPRESSED,
    ];

    fn check(&self, name: &str, form: Form, context: &Context) -> Result<(), ScenarioError> {
        let name = [name, &self.case].join(" ");
        let name = name.trim();
        let workload = self.read(name)?;
        let swap = Bytes(
            context
                .memory
                .0
                .saturating_add(context.swap_size.0)
                .saturating_sub(self.shares_of.0),
        );
        workload
            .needed(self.shares_of, swap)
            .map_err(|why| contradiction(name, why.to_string()))?;
        for process in &workload.processes {
            for segment in &process.segments {
                let content = Content::read(&segment.content).ok_or_else(|| {
                    contradiction(
                        name,
                        format!(
                            "no content is named {}: give segment {} a number from 0.05 to 0.75, or one of {}",
                            segment.content,
                            segment.name,
                            crate::content::names()
                        ),
                    )
                })?;
                check_content(name, &content, form)?;
            }
        }
        let names = groups::names(context.memory, context.swap_size);
        self.groups(&names)
            .and_then(|groups| groups::check(&groups, context.memory))
            .map_err(|why| contradiction(name, why))
    }

    fn groups(&self, _names: &Names) -> Result<Vec<GroupSpec>, String> {
        let workload = Workload::from_canonical(&self.workload).map_err(|why| why.to_string())?;
        let all = group_names(&workload).into_iter();
        Ok(all
            .map(|(index, folder)| self.group(&workload.groups[index], &folder))
            .collect())
    }

    fn needs(&self, form: Form) -> Needs {
        let _ = form;
        let Ok(workload) = Workload::from_canonical(&self.workload) else {
            return Needs::default();
        };
        let segments = || {
            workload
                .processes
                .iter()
                .flat_map(|process| &process.segments)
        };
        let mut needs = Needs {
            groups: !workload.groups.is_empty(),
            ..Needs::default()
        };
        needs.reclaim_requests = workload
            .processes
            .iter()
            .any(|process| reclaims(&process.phases));
        if segments().any(|segment| segment.kind == Kind::File) {
            let files = workload
                .needed(self.shares_of, Bytes(u64::MAX))
                .map_or(Bytes(0), |needed| needed.files);
            needs.filesystem = Some(filesystem_for(files));
        }
        if let Some(machine) = &workload.machine {
            needs.settings = machine.settings.clone();
        }
        if segments().any(|segment| segment.pages == PageSize::Huge) {
            needs.thp = true;
            for (name, value) in thp_settings(HUGE) {
                needs.settings.entry(name).or_insert(value);
            }
        }
        needs
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let workload = self.read("workload")?;
        let folder = trial.place.work_dir;
        let seed = trial.subject.seed;
        trial.phase("files");
        let library = Library::make(&workload, self.shares_of, folder, seed)?;
        let mut made = BTreeMap::new();
        for spec in groups::of_trial(trial.subject, |names| self.groups(names))? {
            let group = MemoryGroup::create(&spec)?;
            made.insert(spec.name, group);
        }
        let names = workload.names();
        let left: Vec<u32> = names.iter().map(|name| passing(&workload, name)).collect();
        let lines = number::narrow(started(&workload));
        let stage = Stage {
            board: Board::new(lines, &left)?,
            library,
            groups: made,
            memory: self.shares_of,
            clock: trial.place.clock,
            seed,
            names,
            workload: &workload,
        };
        trial.settle();
        let done = Watch::new(&stage).run(trial);
        stage.library.remove(&workload);
        done
    }
}

/// Returns the number of processes that pass the mark `name` or are called `name`.
fn passing(workload: &Workload, name: &str) -> u32 {
    let passes = |process: &&pagetide_workload::Process| {
        process.name == name || process.marks().contains(&name)
    };
    workload
        .processes
        .iter()
        .filter(passes)
        .map(|process| process.count)
        .sum()
}

/// State of the main process while it watches the other processes.
struct Watch<'s> {
    stage: &'s Stage<'s>,
    /// Rows of the series `progress`: time, steps, and number of processes that run.
    rows: Vec<[u64; 3]>,
    longest_stall: Nanos,
    killed_first: Option<Nanos>,
    /// Pages reclaimed from cgroups with `low` or `min`; `None` if there is no such cgroup.
    protected: Option<u64>,
}

impl<'s> Watch<'s> {
    fn new(stage: &'s Stage<'s>) -> Self {
        Self {
            stage,
            rows: Vec::with_capacity(1024),
            longest_stall: Nanos(0),
            killed_first: None,
            protected: None,
        }
    }

    /// Starts all processes, follows them to their end, and reports.
    fn run(mut self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let stage = self.stage;
        // Children of processes that have ended become children of this process.
        // SAFETY: sets an attribute of this process.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
        trial.phase("start");
        let result = self.start_all(trial).map(|()| self.follow(trial));
        if result.is_err() {
            self.kill_all();
            while self.reap(trial) {
                clock::sleep(Nanos::from_millis(1));
            }
        }
        // SAFETY: as above.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 0) };
        let begin = result?;
        trial.phase("report");
        self.report(trial, begin);
        for line in stage
            .board
            .lines()
            .filter(|line| line.state() == State::Failed)
        {
            trial.invalid(Invalid::Scenario {
                why: format!("{}: {}", self.name(line), line.reason()),
            });
        }
        Ok(())
    }

    fn name(&self, line: &Line) -> String {
        let process = self
            .stage
            .workload
            .processes
            .get(small(&line.process) as usize);
        format!(
            "{} {}",
            process.map_or("a process", |process| &process.name),
            small(&line.number)
        )
    }

    fn start_all(&mut self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let stage = self.stage;
        for (index, process) in stage.workload.processes.iter().enumerate() {
            for number in 0..process.count {
                let pid = stage.start(index, number)?;
                let line = stage.board.lines().last();
                if let Some(line) = line {
                    line.pid.store(pid.cast_unsigned(), Ordering::Release);
                }
            }
        }
        let all = number::narrow(instances(stage.workload));
        while !stage.board.are_ready(all) {
            self.reap(trial);
            let gone = stage
                .board
                .lines()
                .find(|line| line.state() != State::Running);
            if let Some(line) = gone {
                return Err(Stop::Invalid(Invalid::ProcessDied {
                    process: self.name(line),
                    how: match line.state() {
                        State::Killed => "a kill before it started".to_owned(),
                        _ => line.reason(),
                    },
                }));
            }
            trial.tick();
        }
        Ok(())
    }

    /// Lets the processes start and waits until all have ended. Returns the time of the start.
    fn follow(&mut self, trial: &mut Trial<'_>) -> Nanos {
        let stage = self.stage;
        let limit = stage.workload.time_limit;
        let every = Nanos((limit.0 / MAX_ROWS).max(POLL.0));
        let per_sample = limit.0 / MAX_SAMPLES * stage.groups.len() as u64;
        let per_sample = Nanos(per_sample.max(POLL.0 * LOOKS_PER_SAMPLE));
        let mut sampled = Nanos(0);
        let mut log = GroupLog::begin(stage.groups.values(), stage.clock.now());
        trial.phase("run");
        let begin = stage.clock.now();
        stage.board.start(begin);
        let (mut steps, mut moved) = (0, begin);
        let mut killed = false;
        let mut looks = 0_u64;
        let mut compressed = 0;
        while self.reap(trial) {
            let now = stage.clock.now();
            let runs = |line: &&Line| line.state() == State::Running;
            let running = stage.board.lines().filter(runs).count() as u64;
            let active = stage
                .board
                .lines()
                .filter(runs)
                .any(|line| small(&line.waits) == 0);
            let total: u64 = stage.board.lines().map(|line| value(&line.steps)).sum();
            if total != steps || !active {
                (steps, moved) = (total, now);
            } else {
                self.longest_stall = self.longest_stall.max(now.since(moved));
            }
            if self
                .rows
                .last()
                .is_none_or(|row| now.since(begin).0 >= row[0] + every.0)
            {
                self.rows.push([now.since(begin).0, total, running]);
            }
            if now.since(begin) >= sampled && !stage.groups.is_empty() {
                log.sample(now);
                sampled = Nanos(now.since(begin).0 + per_sample.0);
            }
            // The compression ratio of pages is read while processes still hold the pages.
            if looks.is_multiple_of(LOOKS_PER_SAMPLE) && running > 0 {
                compressed += 1;
                trial.compressed();
            }
            let gone = now.since(begin);
            if gone >= limit && !stage.board.is_stopped() {
                stage.board.stop();
            }
            if gone >= Nanos(limit.0 + GRACE.0) && !killed {
                killed = true;
                self.kill_all();
            }
            looks += 1;
            trial.tick();
            clock::sleep(POLL);
        }
        if compressed == 0 {
            trial.absent("compressed", "the workload was too short");
        }
        let uses = log.end(trial);
        self.protected = self.taken_from_protected(&uses);
        begin
    }

    /// Returns the number of pages that were reclaimed from cgroups with `low` or `min`; `None` if there is no such
    /// cgroup. `uses` contains the counters of each cgroup.
    fn taken_from_protected(&self, uses: &[GroupUse]) -> Option<u64> {
        let workload = self.stage.workload;
        let protected: Vec<String> = group_names(workload)
            .into_iter()
            .filter(|(index, _)| {
                let group = &workload.groups[*index];
                group.low.is_some() || group.min.is_some()
            })
            .map(|(_, folder)| folder)
            .collect();
        let own = self.stage.groups.keys().zip(uses);
        let own = own.filter(|(folder, _)| protected.contains(folder));
        let taken = own.map(|(_, used)| used.stat("pgsteal")).sum();
        (!protected.is_empty()).then_some(taken)
    }

    fn kill_all(&self) {
        self.stage.board.stop();
        for line in self
            .stage
            .board
            .lines()
            .filter(|line| line.state() == State::Running)
        {
            let pid = small(&line.pid).cast_signed();
            if pid > 0 {
                // SAFETY: the process is a descendant of this one that has not been reaped: its line says that it runs.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
        }
    }

    /// Reaps all processes that have ended. Returns false if no process is left.
    fn reap(&mut self, trial: &mut Trial<'_>) -> bool {
        let stage = self.stage;
        loop {
            let mut status = 0;
            // SAFETY: a rusage of zeros is a valid value to write to.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // SAFETY: `status` and `usage` are valid to write to.
            let pid = unsafe { libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage) };
            if pid == 0 {
                return true;
            }
            if pid < 0 {
                return false;
            }
            let own = |line: &&Line| small(&line.pid) == pid.cast_unsigned();
            let Some(line) = stage.board.lines().find(own) else {
                continue;
            };
            let used = Usage::from_kernel(&usage);
            let was = line.state();
            note_end(stage, line, status);
            if was == State::Running {
                line.minor.store(used.minor_faults, Ordering::Relaxed);
                line.major.store(used.major_faults, Ordering::Relaxed);
            }
            trial.ended(ProcessUsage::of(pid.cast_unsigned(), used));
        }
    }

    fn report(&mut self, trial: &mut Trial<'_>, begin: Nanos) {
        let board = &self.stage.board;
        let lines: Vec<&Line> = board
            .lines()
            .filter(|line| line.state() != State::Unused)
            .collect();
        let count = |state: State| lines.iter().filter(|line| line.state() == state).count();
        let sum = |of: fn(&Line) -> u64| lines.iter().map(|line| of(line)).sum::<u64>() as f64;
        let ends = lines.iter().map(|line| value(&line.end));
        trial.time_metric("time", Nanos(ends.max().unwrap_or(0)).since(begin));
        let histogram = board.histogram();
        if histogram.count == 0 {
            for name in ["mean", "p50", "p90", "p99", "p999", "max"] {
                trial.absent(&format!("access-{name}"), "no phase accesses memory");
            }
        } else {
            trial.metric("access-mean", histogram.mean());
            for (name, q) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
                trial.metric(&format!("access-{name}"), histogram.quantile(q) as f64);
            }
            trial.metric("access-max", histogram.max as f64);
        }
        trial.metric("accesses", histogram.count as f64);
        trial.histogram("access", histogram);
        trial.time_metric("longest-stall", self.longest_stall);
        trial.metric("minor-faults", sum(|line| value(&line.minor)));
        trial.metric("major-faults", sum(|line| value(&line.major)));
        trial.metric("killed", count(State::Killed) as f64);
        let killed = lines.iter().filter(|line| line.state() == State::Killed);
        self.killed_first = killed
            .map(|line| Nanos(value(&line.end)).since(begin))
            .min();
        match self.killed_first {
            Some(time) => trial.time_metric("killed-first", time),
            None => trial.absent("killed-first", "no process was killed"),
        }
        let unfinished = count(State::Unfinished);
        trial.metric("unfinished", unfinished as f64);
        if unfinished > 0 {
            let limit = self.stage.workload.time_limit;
            trial.note(format!(
                "{unfinished} processes still ran at the time limit of {limit} and were ended"
            ));
        }
        trial.metric("fork", sum(|line| value(&line.forking)));
        trial.metric("advice", sum(|line| value(&line.advising)));
        trial.metric("reclaim-asked", sum(|line| value(&line.asked)));
        trial.metric("reclaim-taken", sum(|line| value(&line.taken)));
        trial.metric("reclaim-time", sum(|line| value(&line.reclaiming)));
        match self.protected {
            Some(pages) => trial.metric("protected-reclaimed", pages as f64),
            None => trial.absent("protected-reclaimed", "no group is protected"),
        }
        self.series(trial, &lines, begin);
    }

    fn series(&self, trial: &mut Trial<'_>, lines: &[&Line], begin: Nanos) {
        let column = |of: &dyn Fn(&Line) -> u64| {
            lines
                .iter()
                .map(|line| number::signed(of(line)))
                .collect::<Vec<_>>()
        };
        let time = |time: u64| Nanos(time).since(begin).0;
        let count = Unit::Count;
        let mean = |line: &Line| value(&line.sum) / value(&line.accesses).max(1);
        trial.series(
            &Series::new("processes")
                .int(
                    "process",
                    count,
                    column(&|line| small(&line.process).into()),
                )
                .int("number", count, column(&|line| small(&line.number).into()))
                .int("depth", count, column(&|line| small(&line.depth).into()))
                .int(
                    "killed",
                    count,
                    column(&|line| (line.state() == State::Killed).into()),
                )
                .int(
                    "unfinished",
                    count,
                    column(&|line| (line.state() == State::Unfinished).into()),
                )
                .int(
                    "begin",
                    Unit::Nanos,
                    column(&|line| time(value(&line.begin))),
                )
                .int("end", Unit::Nanos, column(&|line| time(value(&line.end))))
                .int("waited", Unit::Nanos, column(&|line| value(&line.waited)))
                .int("steps", count, column(&|line| value(&line.steps)))
                .int("accesses", count, column(&|line| value(&line.accesses)))
                .int("access-mean", Unit::Nanos, column(&mean))
                .int(
                    "access-p50",
                    Unit::Nanos,
                    column(&|line| line.quantile(0.5)),
                )
                .int(
                    "access-p99",
                    Unit::Nanos,
                    column(&|line| line.quantile(0.99)),
                )
                .int("access-max", Unit::Nanos, column(&|line| value(&line.max)))
                .int("minor-faults", count, column(&|line| value(&line.minor)))
                .int("major-faults", count, column(&|line| value(&line.major))),
        );
        let column = |index: usize| self.rows.iter().map(move |row| number::signed(row[index]));
        trial.series(
            &Series::new("progress")
                .int("time", Unit::Nanos, column(0))
                .int("steps", count, column(1))
                .int("running", count, column(2)),
        );
    }
}

/// Definition of the scenario `workload`.
pub(crate) static WORKLOAD: Definition = Definition::of::<Described>(
    Texts {
        name: "workload",
        summary: "what reclaim does to a workload that you describe",
        docs: "Runs the processes of a workload that is described as TOML: they map segments (anonymous, shared, file, tmpfs) and go \
               through phases (fill, access, advise, copy, sync, fork, join, mark, wait, pause, reclaim, repeat) in memory groups. \
               docs/workload.md has every key. Every access is timed. Processes that the kernel kills are counted, and the others go \
               on. At the time limit, processes that still run are ended. Series `processes` has a row for each process, and series \
               `progress` the accesses and pages that were completed over time.",
        origin: "none: it is described by its user.",
        repaired: "",
    },
    Bytes::from_mib(64),
    &[],
)
.with_memory(Bytes::from_mib(16));
