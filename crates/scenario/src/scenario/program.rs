//! How fast is a user's program when memory is short?
//!
//! The program runs unmodified in a separate file system on the simulated disk, as an unprivileged user, with empty
//! caches at its start: its own pages are read, reclaimed and read again as in normal use.

mod failure;

use pagetide_quantity::{Bytes, Direction, MetricDef, Nanos, Unit};

use crate::beside;
use crate::definition::{Context, Definition, Form, Needs, Scenario, Texts};
use crate::error::{ScenarioError, Stop};
use crate::expr::Names;
use crate::group::Group;
use crate::groups::{self, GroupLog, GroupSpec, Limit, MemoryGroup, optional};
use crate::launch::Launch;
use crate::measure::Measure;
use crate::params::params;
use crate::ready::Ready;
use crate::running::{Ending, RunningProgram};
use crate::session::{LoadRun, Run, ServerFault, ServerRun, Session};
use crate::trial::{Trial, metrics};
use failure::{last_words, name_of, why_unusable};
use pagetide_record::Invalid;

params! {
    /// Parameters, in the order in which the command line and the record show them.
    pub(crate) struct Program {
        /// The command, quoted as for a shell; the first word is a path in the root. `{seed}` is replaced by the
        /// trial's seed.
        command: String = "";
        /// A server that is started first, quoted as for a shell; the first word is a path in the root. The command is
        /// then its load.
        server: String = "";
        /// Condition for the server to be ready: `port N`, `line REGEX` or `file PATH`.
        ready: String = "";
        /// Digest of the root: of all files that the program can see.
        root: String = "";
        /// Additional environment variables, next to PATH, HOME, USER, LANG and TZ: `NAME=VALUE`, quoted as for a
        /// shell.
        environment: String = "";
        /// Working directory in the root.
        folder: String = "/work";
        /// File in the root that is its standard input.
        input: String = "/dev/null";
        /// Expected exit status; any other makes the trial invalid.
        expect_exit: u32 = "0", max = "255";
        /// Time limit, in guest time; then the program is killed and the trial is invalid.
        time_limit: Nanos = "600s", min = "1ms";
        /// Limit of its memory control group (`memory.max`); 0 for none.
        limit: Bytes = "0";
        /// Memory above which its group is throttled and reclaimed (`memory.high`); 0 for none.
        high: Bytes = "0";
        /// Largest amount of swap for its group (`memory.swap.max`): a size, or max.
        swap_max: String = "max";
        /// Memory of its group that is reclaimed only if nothing else is left (`memory.low`); 0 for none.
        low: Bytes = "0", left_out_as = "0";
        /// Memory of its group that is never reclaimed (`memory.min`); 0 for none.
        min: Bytes = "0", left_out_as = "0";
        /// A second program that runs beside it in a memory group of its own, quoted as for a shell; the first word is
        /// a path in the root. The trial ends when both have ended.
        beside: String = "", left_out_as = "";
        /// Limits of the group of the program beside it, as KEY=VALUE words: max, high, low, min, swap.max, zswap.max.
        beside_limits: String = "", left_out_as = "";
        /// Numbers to extract from its output: `NAME=REGEX:higher` or `NAME=REGEX:lower`, quoted as for a shell.
        metrics: String = "";
    }
}

/// Environment variables that every program gets.
const ENVIRONMENT: [&str; 5] = [
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/work",
    "USER=program",
    "LANG=C",
    "TZ=UTC",
];

impl Program {
    fn contradiction(name: &str, why: impl Into<String>) -> ScenarioError {
        ScenarioError::Contradiction {
            scenario: name.to_owned(),
            why: why.into(),
        }
    }

    /// Splits a parameter into words as a shell does, and replaces `{seed}`. `None` if quotes do not match.
    fn words(text: &str, seed: u64) -> Option<Vec<String>> {
        let words = shlex::split(text)?;
        let seed = seed.to_string();
        Some(
            words
                .into_iter()
                .map(|word| word.replace("{seed}", &seed))
                .collect(),
        )
    }
}

impl Scenario for Program {
    const METRICS: &'static [MetricDef] = metrics![
        MetricDef::time(
            "elapsed",
            "time from the start of the program, or of the load of a server, to the end of its first process"
        )
        .primary(),
        MetricDef::of(
            "peak-rss",
            Unit::Bytes,
            Direction::Neutral,
            "largest resident memory of any of its processes, as accounted by the kernel"
        ),
        MetricDef::count(
            "minor-faults",
            Direction::Neutral,
            "page faults of its processes that needed no I/O"
        ),
        MetricDef::of(
            "group-peak",
            Unit::Bytes,
            Direction::Neutral,
            "peak memory of its control group, including page cache; only with a limit of the group or with `beside`"
        ),
        MetricDef::of(
            "group-swap-peak",
            Unit::Bytes,
            Direction::Neutral,
            "peak swap of its control group; only with a limit of the group or with `beside`"
        ),
        MetricDef::count(
            "group-major-faults",
            Direction::Lower,
            "page faults of its control group that waited for a device; only with `beside`"
        ),
        MetricDef::count(
            "group-refaults",
            Direction::Lower,
            "evicted pages of its control group that came back; only with `beside`"
        ),
        MetricDef::time(
            "beside-elapsed",
            "time from the start of the program beside it to the end of its first process"
        ),
        MetricDef::of(
            "beside-peak",
            Unit::Bytes,
            Direction::Neutral,
            "peak memory of the control group of the program beside it, including page cache"
        ),
        MetricDef::of(
            "beside-swap-peak",
            Unit::Bytes,
            Direction::Neutral,
            "peak swap of the control group of the program beside it"
        ),
        MetricDef::count(
            "beside-major-faults",
            Direction::Lower,
            "page faults of the control group of the program beside it that waited for a device"
        ),
        MetricDef::count(
            "beside-refaults",
            Direction::Lower,
            "evicted pages of the control group of the program beside it that came back"
        ),
    ];

    fn check(&self, name: &str, _form: Form, context: &Context) -> Result<(), ScenarioError> {
        let example = "as in `pagetide run --memory 64M -- sort numbers`";
        for (what, text) in [
            ("command", &self.command),
            ("environment", &self.environment),
            ("server", &self.server),
            ("program beside it", &self.beside),
        ] {
            if Self::words(text, 0).is_none() {
                return Err(Self::contradiction(
                    name,
                    format!("the quotes of its {what} do not match: close each that is opened"),
                ));
            }
        }
        self.check_server(name)?;
        Measure::read_all(&self.metrics).map_err(|why| Self::contradiction(name, why))?;
        if self.limit > context.memory {
            return Err(Self::contradiction(
                name,
                format!(
                    "a limit of {} never acts in {} of memory: lower it, or raise --memory",
                    self.limit, context.memory
                ),
            ));
        }
        self.check_beside(name, context)?;
        if self.swap_max != "max" && self.swap_max.parse::<Bytes>().is_err() {
            return Err(Self::contradiction(
                name,
                format!("swap-max is `{}`: give a size or max", self.swap_max),
            ));
        }
        let words = Self::words(&self.command, 0).unwrap_or_default();
        match words.first() {
            None => Err(Self::contradiction(
                name,
                format!("it has no command: give one after `--`, {example}"),
            )),
            Some(word) if !word.starts_with('/') => Err(Self::contradiction(
                name,
                format!(
                    "`{word}` is no path inside the root: give the command after `--`, {example}"
                ),
            )),
            Some(_) if self.root.is_empty() => Err(Self::contradiction(
                name,
                format!("it has no root: give the command after `--`, {example}"),
            )),
            Some(_) => Ok(()),
        }
    }

    fn needs(&self, _form: Form) -> Needs {
        Needs {
            root: Some(self.root.clone()),
            groups: !self.beside.is_empty() || self.low.0 > 0 || self.min.0 > 0,
            ..Needs::default()
        }
    }

    /// Returns the descriptions of the program's own cgroup, and of that of the second program if there is one.
    fn groups(&self, names: &Names) -> Result<Vec<GroupSpec>, String> {
        let own = GroupSpec::new("program")
            .with(Limit::Max, optional(self.limit))
            .with(Limit::High, optional(self.high))
            .with(Limit::Low, optional(self.low))
            .with(Limit::Min, optional(self.min))
            .with(Limit::SwapMax, self.swap_max.parse::<Bytes>().ok());
        if self.beside.is_empty() {
            return Ok(vec![own]);
        }
        let beside = GroupSpec::read(&format!("beside {}", self.beside_limits), names)?;
        Ok(vec![own, beside])
    }

    fn run(&self, trial: &mut Trial<'_>) -> Result<(), Stop> {
        let seed = trial.subject.seed;
        let command = Self::words(&self.command, seed).unwrap_or_default();
        let mut environment: Vec<String> = ENVIRONMENT.map(str::to_owned).into();
        environment.extend(Self::words(&self.environment, seed).unwrap_or_default());
        let specs = groups::of_trial(trial.subject, |names| self.groups(names))?;
        let limits = limits(&specs[0]);
        // If the arena made the group, the arena has set its limits.
        let around = trial.place.surroundings.group.map(Group::at);
        let own = match around {
            None => Group::with_limits(&limits)?,
            Some(_) => None,
        };
        let measured = around
            .as_ref()
            .or(own.as_ref())
            .filter(|_| !limits.is_empty());
        if let Some(beside) = specs.get(1) {
            return self.run_beside(trial, beside, &command, &environment);
        }
        for name in OF_PAIR {
            trial.omit(name);
        }
        if measured.is_none() {
            trial.omit("group-peak");
            trial.omit("group-swap-peak");
        }
        let server = Self::words(&self.server, seed).unwrap_or_default();
        let launch = |command, input| Launch {
            group: own.as_ref(),
            root: trial.place.work_dir,
            command,
            environment: &environment,
            folder: &self.folder,
            input,
            shows_group: false,
        };
        let launches = [launch(&server, "/dev/null"), launch(&command, &self.input)];
        let [server, load] = launches;
        trial.settle();
        let mut session = Session::new(trial.place.clock, self.time_limit);
        if let Ok(ready) = Ready::read(&self.ready) {
            trial.phase("start");
            session.serve(&server, &ready, &|| trial.tick())?;
        }
        trial.phase("run");
        let run = session.load(&load, &|| trial.tick())?;
        if let Some(group) = measured {
            report_peaks(trial, ["group-peak", "group-swap-peak"], group);
        }
        self.report(trial, &run);
        Ok(())
    }
}

/// Names of the metrics that exist only if a program runs beside the first one.
const OF_PAIR: [&str; 7] = [
    "group-major-faults",
    "group-refaults",
    "beside-elapsed",
    "beside-peak",
    "beside-swap-peak",
    "beside-major-faults",
    "beside-refaults",
];

/// Sets two metrics: the peak memory usage and the peak swap usage of a cgroup.
fn report_peaks(trial: &mut Trial<'_>, metrics: [&str; 2], group: &Group) {
    // The second name is that in version 1 of cgroups.
    let names = [
        ["memory.peak", "memory.max_usage_in_bytes"].as_slice(),
        ["memory.swap.peak"].as_slice(),
    ];
    for (metric, names) in metrics.into_iter().zip(names) {
        match names.iter().find_map(|name| group.number(name)) {
            Some(value) => trial.metric(metric, value as f64),
            None => trial.absent(metric, "not on this kernel"),
        }
    }
}

impl Program {
    /// Fails if the limits of the two programs contradict each other, if there are limits but no second program, or if
    /// there is a second program without an absolute path or together with a server.
    fn check_beside(&self, name: &str, context: &Context) -> Result<(), ScenarioError> {
        let refuse = |why: String| Err(Self::contradiction(name, why));
        match (self.beside.is_empty(), self.beside_limits.is_empty()) {
            (true, false) => {
                return refuse(
                    "limits of a program beside it need one: name it with --beside".to_owned(),
                );
            }
            (false, _) if !self.server.is_empty() => {
                return refuse(
                    "it has a server and a program beside it: leave out --server or --beside"
                        .to_owned(),
                );
            }
            (true, true) | (false, _) => {}
        }
        let words = Self::words(&self.beside, 0).unwrap_or_default();
        if let Some(word) = words.first().filter(|word| !word.starts_with('/')) {
            return refuse(format!(
                "the program beside it, `{word}`, is no path inside the root: give it with --beside"
            ));
        }
        let names = groups::names(context.memory, context.swap_size);
        let groups = self
            .groups(&names)
            .or_else(|why| refuse(why).map(|()| Vec::new()))?;
        if groups.iter().any(|group| !group.requests.is_empty()) {
            return refuse("requests to reclaim are made by the scenario proactive".to_owned());
        }
        groups::check(&groups, context.memory).or_else(refuse)
    }

    /// Runs the program and a second program beside it, each in its own cgroup.
    fn run_beside(
        &self,
        trial: &mut Trial<'_>,
        beside: &GroupSpec,
        command: &[String],
        environment: &[String],
    ) -> Result<(), Stop> {
        let own =
            Group::of_program().map_err(Stop::system("cannot open the program's memory group"))?;
        let beside = MemoryGroup::create(beside)?;
        let groups = [MemoryGroup::existing("program", own), beside];
        let words = Self::words(&self.beside, trial.subject.seed).unwrap_or_default();
        let launch = |group, command, input, shows_group| Launch {
            group: Some(MemoryGroup::group(group)),
            root: trial.place.work_dir,
            command,
            environment,
            folder: &self.folder,
            input,
            shows_group,
        };
        let first = launch(&groups[0], command, self.input.as_str(), false);
        let second = launch(&groups[1], &words, "/dev/null", true);
        trial.settle();
        trial.phase("run");
        let clock = trial.place.clock;
        let log = GroupLog::begin(&groups, clock.now());
        let pair = beside::run(clock, self.time_limit, [&first, &second], &|| trial.tick())?;
        let uses = log.end(trial);
        let [run, other] = &pair.runs;
        for process in &pair.processes {
            trial.ended(*process);
        }
        trial.metric("peak-rss", pair.peak.0 as f64);
        let faults: u64 = pair
            .processes
            .iter()
            .map(|process| process.minor_faults)
            .sum();
        trial.metric("minor-faults", faults as f64);
        report_peaks(trial, ["group-peak", "group-swap-peak"], groups[0].group());
        report_peaks(
            trial,
            ["beside-peak", "beside-swap-peak"],
            groups[1].group(),
        );
        for (of, used) in ["group", "beside"].into_iter().zip(&uses) {
            let refaults = used.refaults_anon() + used.refaults_file();
            trial.metric(
                &format!("{of}-major-faults"),
                used.stat("pgmajfault") as f64,
            );
            trial.metric(&format!("{of}-refaults"), refaults as f64);
        }
        trial.time_metric("elapsed", run.elapsed);
        trial.time_metric("beside-elapsed", other.elapsed);
        keep_output(trial, &run.program, ["stdout", "stderr"]);
        keep_output(trial, &other.program, ["beside-stdout", "beside-stderr"]);
        let expected = i32::try_from(self.expect_exit).unwrap_or(0);
        let beside = self.load_fault(other, 0);
        let beside = beside.map(|why| format!("ran beside one that {why}"));
        if let Some(why) = self.load_fault(run, expected).or(beside) {
            trial.invalid(Invalid::Program { why });
        }
        Ok(())
    }
}

impl Program {
    fn report(&self, trial: &mut Trial<'_>, run: &Run) {
        trial.metric("peak-rss", run.peak.0 as f64);
        trial.metric("minor-faults", run.usage().minor_faults as f64);
        for process in &run.processes {
            trial.ended(*process);
        }
        let server_fault = run
            .server
            .as_ref()
            .and_then(|server| self.server_fault(server));
        let why = match (&server_fault, &run.load) {
            (Some(_), _) | (None, None) => server_fault,
            (None, Some(load)) => {
                self.load_fault(load, i32::try_from(self.expect_exit).unwrap_or(0))
            }
        };
        match &run.load {
            Some(load) => {
                trial.time_metric("elapsed", load.elapsed);
                keep_output(trial, &load.program, ["stdout", "stderr"]);
            }
            None => trial.absent("elapsed", "the server did not get ready"),
        }
        if let Some(server) = &run.server {
            keep_output(trial, &server.program, ["server-stdout", "server-stderr"]);
        }
        if let Some(why) = why {
            trial.invalid(Invalid::Program { why });
        }
    }

    /// Returns why the result of a program that must end with the status `expected` cannot be used; `None` if it can.
    fn load_fault(&self, load: &LoadRun, expected: i32) -> Option<String> {
        let errors = load.program.errors.text();
        let why = why_unusable(load.ending, expected, self.time_limit, &errors);
        why.or_else(|| {
            (load.left_behind > 0).then(|| {
                format!(
                    "ended while {} of its processes went on: run it in the foreground ({FOREGROUND})",
                    load.left_behind
                )
            })
        })
    }

    /// Returns why a server did not serve its load; `None` if it did.
    fn server_fault(&self, server: &ServerRun) -> Option<String> {
        let said = last_words(&[server.program.errors.text(), server.program.output.text()]);
        let how = |ending| match ending {
            Ending::Exit(status) => format!("ended with status {status}"),
            Ending::Signal(signal) => format!("was killed by {}", name_of(signal)),
            Ending::TimeLimit => "was ended".to_owned(),
        };
        let why = match server.fault? {
            ServerFault::EndedEarly(ending) => format!(
                "has no server: it {} before it was ready (--ready '{}'){said}",
                how(ending),
                self.ready
            ),
            ServerFault::EndedUnderLoad(ending) => format!(
                "lost its server, which {} while the load ran{said}",
                how(ending)
            ),
            ServerFault::InBackground => format!(
                "has a server that went into the background: run it in the foreground ({FOREGROUND})"
            ),
            ServerFault::NeverReady => format!(
                "has a server that was not ready (--ready '{}') within the time limit of {}: correct --ready, or raise \
                 --time-limit{said}",
                self.ready, self.time_limit
            ),
        };
        Some(why)
    }

    /// Fails if a server has no valid readiness condition or no absolute path, or a condition has no server.
    fn check_server(&self, name: &str) -> Result<(), ScenarioError> {
        let refuse = |why: String| Err(Self::contradiction(name, why));
        let words = Self::words(&self.server, 0).unwrap_or_default();
        match (words.first(), self.ready.is_empty()) {
            (None, true) => Ok(()),
            (None, false) => refuse("--ready is of a server: name one with --server".to_owned()),
            (Some(_), true) => refuse(
                "nothing says when its server is ready: add --ready 'port N', 'line REGEX' or 'file PATH'"
                    .to_owned(),
            ),
            (Some(word), false) if !word.starts_with('/') => {
                refuse(format!("its server `{word}` is no path inside the root: give it with --server"))
            }
            (Some(_), false) => match Ready::read(&self.ready) {
                Ok(_) => Ok(()),
                Err(why) => refuse(why),
            },
        }
    }
}

/// Returns the limits of a cgroup as names and values of its files; empty for no limits.
fn limits(group: &GroupSpec) -> Vec<(String, String)> {
    let limits = group.limits.iter();
    limits
        .map(|(limit, size)| (limit.file(), size.0.to_string()))
        .collect()
}

/// Hint for a program that went into the background, where it cannot be watched.
const FOREGROUND: &str = "the option of a daemon is often -f, -D or --no-daemon";

/// Stores a program's standard output and standard error under two names, in this order.
fn keep_output(trial: &mut Trial<'_>, program: &RunningProgram, names: [&str; 2]) {
    for (name, capture) in names.into_iter().zip([&program.output, &program.errors]) {
        let total = Bytes(capture.total());
        if total > Bytes(64 << 10) {
            trial.note(format!(
                "of {total} of {name} the first 48 KiB and the last 16 KiB are kept"
            ));
        }
        trial.text(name, capture.text());
    }
}

/// Definition of the scenario `program`.
pub(crate) static PROGRAM: Definition = Definition::of::<Program>(
    Texts {
        name: "program",
        summary: "how fast your program is when memory is short",
        docs: "Starts `command` in a separate file system on the simulated disk, with empty caches, as an unprivileged user, \
               and waits for its end. It sees only the files of `root`. Standard output and standard error \
               are stored, at most 64 KiB of each. A trial is invalid if the program ends with another status than `expect-exit`, by \
               a signal, at `time-limit`, or leaves processes behind. With `server` the command is its load: it is started when the \
               server is ready, and when it has ended the server is killed. Run it as `pagetide run --memory 64M -- COMMAND ARG…`, \
               which finds the program's libraries and makes the root. With `beside` a second program runs at the same time in a memory \
               group of its own, and the trial ends when both have ended.",
        origin: "none: the program is yours.",
        repaired: "",
    },
    Bytes::from_mib(64),
    &[],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_stands_in_the_words_where_its_name_stood() {
        let words = Program::words("/bin/sort --random-source='a b' 'x{seed}'", 7).unwrap();
        assert_eq!(words, ["/bin/sort", "--random-source=a b", "x7"]);
        assert_eq!(Program::words("it's", 7), None);
    }
}
