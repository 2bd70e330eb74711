//! The arena `host`: prepares and runs trials on the running kernel.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pagetide_arena::{
    Arena, ArenaError, Options, PreparedTrial, Progress, Trial, TrialResult, host, measured,
};
use pagetide_quantity::Bytes;
use pagetide_record::{ArenaKind, ArenaSpec, Machine, RecordWriter, Subject, Warning};
use rustix::fs::{FlockOperation, flock};

use crate::conditions::Conditions;
use crate::error::HostError;
use crate::hierarchy::Hierarchy;
use crate::identity;
use crate::plan::{self, SwapPlan, TrialPlan};
use crate::refusal::Refusal;
use crate::session::Session;
use crate::state::StateFolder;
use crate::trial::Run;

/// Maximum number of runs of a trial. A trial that other processes spoiled is run again.
const ATTEMPTS: u32 = 3;
/// Polling interval of a trial that waits until it may run.
const POLL: Duration = Duration::from_millis(50);

/// Function that receives messages for the user.
type Say = dyn Fn(&str) + Send + Sync;

/// The running kernel as an arena.
pub struct Host {
    options: Options,
    hierarchy: Hierarchy,
    state: StateFolder,
    /// The session, which may change the machine; `None` before the first trial. Locked during a trial, so that trials
    /// run one at a time.
    session: Mutex<Option<Session>>,
    /// Digest of the program that contains the scenarios.
    program: String,
    /// Path of the running program, which is started again as the guardian and as the workload.
    path: PathBuf,
    machine: Machine,
    tally: Mutex<Tally>,
    say: Arc<Say>,
}

/// Numbers of trials that ran, for a final remark.
#[derive(Clone, Debug, Default)]
struct Tally {
    trials: u32,
    /// Number of trials of which only the times are doubtful.
    doubtful_times: u32,
    /// Number of trials of which the counts are doubtful too.
    doubtful_counts: u32,
    /// Latest reason for doubt.
    why: String,
}

impl Tally {
    fn add(&mut self, warnings: &[Warning]) {
        self.trials += 1;
        let doubts = warnings.iter().filter_map(|warning| match warning {
            Warning::Doubtful { why, of_times } => Some((why, *of_times)),
            _ => None,
        });
        let (mut any, mut counts) = (false, false);
        for (why, of_times) in doubts {
            any = true;
            counts |= !of_times;
            self.why.clone_from(why);
        }
        self.doubtful_counts += u32::from(counts);
        self.doubtful_times += u32::from(any && !counts);
    }

    fn remarks(&self) -> Vec<String> {
        let remark = |count: u32, what: &str| {
            (count > 0).then(|| {
                format!(
                    "{count} of {} trials are doubtful {what}, because others were at work on this machine (the last: {})",
                    self.trials, self.why
                )
            })
        };
        [
            remark(self.doubtful_times, "in their times"),
            remark(self.doubtful_counts, "in their counts too"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl Host {
    /// Opens the arena without changing anything on the machine. `program` is the digest of the program that contains
    /// the scenarios. `say` receives messages for the user. The running program must call [`crate::serve_if_asked`] at
    /// the start of its `main`. Fails if this process cannot create memory cgroups.
    pub fn open(
        options: Options,
        program: String,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, HostError> {
        Self::open_with(
            options,
            program,
            Path::new("/proc/self/exe"),
            StateFolder::of_user(),
            say,
        )
    }

    /// Like [`Host::open`], with two more parameters: `path` is the program that is started as the guardian and as the
    /// workload, and `state` is the folder of journals. The program must call [`crate::serve_if_asked`].
    pub fn open_with(
        options: Options,
        program: String,
        path: &Path,
        state: StateFolder,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, HostError> {
        Ok(Self {
            options,
            hierarchy: Hierarchy::find()?,
            state,
            session: Mutex::new(None),
            program,
            path: path.to_owned(),
            machine: host::machine(),
            tally: Mutex::default(),
            say: Arc::new(say),
        })
    }

    /// Returns the folder for swap files and the files of scenarios.
    fn folder(&self) -> PathBuf {
        self.options.cache.join("host")
    }

    fn say(&self, text: &str) {
        (self.say)(text);
    }

    /// Waits until no other trial runs on this machine. Returns the held lock, or an error if the user stops the wait.
    fn turn(&self, progress: &dyn Progress) -> Result<File, ArenaError> {
        self.state.make().map_err(ArenaError::broken)?;
        let path = self.state.path().join("trial");
        let what = format!("locking {}", path.display());
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Refusal::failed(what.clone()))
            .map_err(ArenaError::broken)?;
        let mut is_told = false;
        while let Err(why) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if why != rustix::io::Errno::WOULDBLOCK {
                let failed = Refusal::failed(what)(why.into());
                return Err(ArenaError::broken(failed));
            }
            if progress.is_stopped() {
                return Err(ArenaError::Stopped);
            }
            if !is_told {
                self.say("waiting for a trial of another run on this machine");
                is_told = true;
            }
            std::thread::sleep(POLL);
        }
        Ok(file)
    }

    /// Returns the session, after starting it if this is the first trial. Starts another guardian if the guardian was
    /// killed.
    fn session(&self) -> Result<MutexGuard<'_, Option<Session>>, ArenaError> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if session.is_none() {
            let started = Session::start_with(&self.state, &self.path);
            let (new, swept) = started.map_err(ArenaError::broken)?;
            if !swept.undone.is_empty() {
                let all: Vec<String> = swept.undone.iter().map(ToString::to_string).collect();
                self.say(&format!(
                    "an earlier run left changes, which are now undone: {}",
                    all.join(", ")
                ));
            }
            for left in &swept.left {
                self.say(&left.to_string());
            }
            for (path, why) in &swept.untouched {
                let path = path.display();
                self.say(&format!(
                    "the journal {path} of an earlier run is left as it is: {why}"
                ));
            }
            *session = Some(new);
        }
        if let Some(session) = session.as_ref() {
            session.guarded().map_err(ArenaError::broken)?;
        }
        Ok(session)
    }

    /// Returns the bulk input of a scenario: the page references of its data file in compact form; empty if it has no
    /// data file.
    fn input(subject: &Subject, plan: &TrialPlan) -> Result<Vec<u8>, ArenaError> {
        let Some(path) = &plan.needs.data else {
            return Ok(Vec::new());
        };
        let pages = subject.params.get("pages").map_or("", String::as_str);
        let pages = pages.split_whitespace().next().unwrap_or_default();
        let pages = pages.parse().unwrap_or(pagetide_reference::MAX_PAGES);
        let mut packed = std::io::Cursor::new(Vec::new());
        pagetide_reference::pack_file(path, pages, &mut packed).map_err(|why| {
            let what = format!("reading references from {}", path.display());
            let why = std::io::Error::other(why.to_string());
            ArenaError::wrong(Refusal::failed(what)(why))
        })?;
        Ok(packed.into_inner())
    }
}

/// Returns the default size of the swap area: three times the memory, as in the exact arena.
fn default_swap_size(memory: Bytes) -> Bytes {
    Bytes((memory.0 * 3).next_multiple_of(1 << 20))
}

impl Arena for Host {
    fn kind(&self) -> ArenaKind {
        ArenaKind::Host
    }

    fn prepare(&self, trial: &Trial) -> Result<PreparedTrial, ArenaError> {
        plan::check(trial).map_err(ArenaError::wrong)?;
        let limit = plan::limit_of(trial).map_err(ArenaError::wrong)?;
        let swap_size = trial
            .swap
            .total(trial.swap_size, default_swap_size(trial.memory.bytes()))
            .map_err(ArenaError::wrong)?;
        let context = pagetide_scenario::Context {
            memory: limit,
            swap_size,
            cpus: self.machine.cpus,
        };
        let params = pagetide_scenario::resolve(
            &trial.scenario,
            trial.as_written,
            None,
            &trial.params,
            &context,
        )
        .map_err(ArenaError::wrong)?;
        let kernel = identity::kernel();
        let mut subject = Subject {
            params,
            swap_size,
            limit: Some(limit),
            ..trial.subject(kernel, swap_size)
        };
        subject.arena = ArenaSpec {
            kind: ArenaKind::Host,
            emulator: String::new(),
            machine: identity::machine(&self.machine),
            cpu: self.machine.cpu.clone(),
            cmdline: identity::command_line(),
            guest: self.program.clone(),
            swap: String::new(),
        };
        measured::check(&subject).map_err(ArenaError::wrong)?;
        let needs = pagetide_scenario::needs(&subject).map_err(ArenaError::wrong)?;
        let may_change = self.options.may_change_machine;
        let plan = plan::plan(&subject, needs, &self.hierarchy, may_change)
            .map_err(ArenaError::refused)?;
        subject.arena.swap = identity::swap(&plan.swap, subject.swap, &self.folder());
        Ok(PreparedTrial::new(trial.clone(), subject, plan))
    }

    fn remarks(&self) -> Vec<String> {
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.remarks()
    }

    fn run(
        &self,
        prepared: &PreparedTrial,
        sink: &mut RecordWriter,
        progress: &dyn Progress,
    ) -> Result<TrialResult, ArenaError> {
        let subject = prepared.subject();
        let plan: &TrialPlan = prepared.own()?;
        let folder = self.folder();
        let what = format!("making the folder {}", folder.display());
        fs::create_dir_all(&folder)
            .map_err(Refusal::failed(what))
            .map_err(ArenaError::broken)?;
        let input = Self::input(subject, plan)?;
        let _turn = self.turn(progress)?;
        let session = self.session()?;
        let Some(session) = session.as_ref() else {
            return Err(ArenaError::broken("there is no session"));
        };
        let in_memory = match plan.swap {
            SwapPlan::Zram(_) => subject.swap_size,
            _ => Bytes(0),
        };
        Conditions::enough(Bytes(plan.limits.max.0 + in_memory.0)).map_err(ArenaError::broken)?;
        let run = Run {
            journal: session.journal(),
            hierarchy: &self.hierarchy,
            program: &self.path,
            folder: &folder,
            cache: &self.options.cache,
            subject,
            plan,
            input: &input,
            machine: &self.machine,
            hang: self.options.hang_wall,
            trace_limit: self.options.trace_limit,
            progress,
        };
        let mut attempt = 1;
        loop {
            let ended = run.execute()?;
            for left in &ended.left {
                self.say(&left.to_string());
            }
            if ended.is_spoiled && attempt < ATTEMPTS {
                attempt += 1;
                self.say("other processes of this machine spoiled a trial; it runs again");
                continue;
            }
            let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.add(&ended.finding.results.warnings);
            drop(tally);
            ended.write(sink)?;
            return Ok(ended.finding);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubtful_trials_are_counted_by_what_is_doubtful() {
        let doubt = |of_times| Warning::Doubtful {
            why: "others".to_owned(),
            of_times,
        };
        let mut tally = Tally::default();
        tally.add(&[]);
        assert_eq!(tally.remarks(), [""; 0]);
        tally.add(&[doubt(true), doubt(true)]);
        tally.add(&[doubt(true), doubt(false)]);
        let found = tally.remarks();
        assert!(
            found[0].starts_with("1 of 3 trials are doubtful in their times"),
            "{found:?}"
        );
        assert!(
            found[1].starts_with("1 of 3 trials are doubtful in their counts too"),
            "{found:?}"
        );
    }
}
