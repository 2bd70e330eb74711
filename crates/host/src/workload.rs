//! The process that runs the scenario: the tool's own program, started again, with a single thread.
//!
//! The process maps the output region and reads its order before it enters the workload's cgroup, so that the memory
//! for both is not charged to this cgroup. Then it waits until the tool has moved it there.

use std::io::{self, Read, Write};
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use pagetide_probe::meaning::TaskAccounting;
use pagetide_probe::observed::{PHASES, PhaseBegin, TASKS};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::outcome::Invalid;
use pagetide_record::wire::{Kind, Phase, Region};
use pagetide_record::{Pass, Subject};
use pagetide_scenario::{Clock, NoPhaseWatch, Outcome, PhaseWatch, Surroundings, TrialContext};
use pagetide_system::clock::monotonic;
use serde::{Deserialize, Serialize};

use crate::program_root;
use crate::refusal::Refusal;
use crate::region::{self, Output};

/// First argument of the workload's command line.
const ARGUMENT: &str = "--workload-of-host-trial";
/// Name of the frame with the scenario's outcome.
pub(crate) const OUTCOME: &str = "outcome";
/// Maximum wait until the workload's process is ready.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the workload's process needs to know to run the scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Subject of the trial.
    pub(crate) subject: Subject,
    /// Folder for the scenario's files.
    pub(crate) work_dir: PathBuf,
    /// Folder of the workload's memory cgroup.
    pub(crate) group: PathBuf,
    /// Folder in sysfs of the workload's zram device, if it swaps to one.
    pub(crate) zram: Option<PathBuf>,
    /// Size of the part of the output region for frames.
    pub(crate) output: Bytes,
    /// Length of the bulk input in the output region.
    pub(crate) input: u64,
    /// True if the work folder is the root of a user's program. The program then runs in namespaces of its own.
    pub(crate) is_program: bool,
}

/// The workload's process, as seen by the tool.
#[derive(Debug)]
pub(crate) struct Workload {
    child: Child,
    orders: Option<ChildStdin>,
}

impl Workload {
    /// Starts the process and waits until it is ready to be moved into its cgroup. `program` is the tool's program.
    /// Fails if it is not ready within [`PATIENCE`].
    pub(crate) fn start(program: &Path, output: &Output, order: &Order) -> Result<Self, Refusal> {
        let not_started = |why: String| Refusal::NotStarted { why };
        let descriptor = output.descriptor();
        let tool = std::process::id();
        let mut command = Command::new(program);
        command
            .arg0("pagetide-workload")
            .arg(ARGUMENT)
            .arg(descriptor.to_string())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: between fork and exec, only async-signal-safe calls are made, and no memory is allocated.
        unsafe {
            command.pre_exec(move || prepare(descriptor, tool));
        }
        let mut child = command
            .spawn()
            .map_err(|why| not_started(format!("{}: {why}", program.display())))?;
        let orders = child.stdin.take();
        let mut workload = Self { child, orders };
        let text = serde_json::to_vec(order).unwrap_or_default();
        let mut message = (text.len() as u64).to_ne_bytes().to_vec();
        message.extend(text);
        workload
            .tell(&message)
            .map_err(|why| not_started(format!("giving it its order: {why}")))?;
        let began = Instant::now();
        while output.region().phase() < Phase::Ready {
            if let Some(status) = workload.ended() {
                return Err(not_started(format!("it ended with {status}")));
            }
            if began.elapsed() > PATIENCE {
                let patience = PATIENCE.as_secs();
                return Err(not_started(format!("it was not ready after {patience} s")));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(workload)
    }

    /// Returns the PID of the workload's process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Tells the process to start the scenario. It must be in its cgroup.
    pub(crate) fn go(&mut self) -> io::Result<()> {
        self.tell(b"g")
    }

    /// Returns the exit status; `None` if the process still runs.
    pub(crate) fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    fn tell(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(orders) = &mut self.orders else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        orders.write_all(bytes)?;
        orders.flush()
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // The process has already ended, unless the trial was stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs in the new process between fork and exec. Lets it inherit the output region, and makes sure that it is killed
/// when the tool exits.
fn prepare(descriptor: RawFd, tool: u32) -> io::Result<()> {
    // SAFETY: all calls take numbers only, and are async-signal-safe.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // The tool may have ended before this took effect.
        if libc::getppid().cast_unsigned() != tool {
            libc::_exit(1);
        }
        if libc::fcntl(descriptor, libc::F_SETFD, 0) < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// If the command line asks for the workload's process, does its whole work and exits. Otherwise does nothing and
/// returns false. Must be called at the start of `main`, before any thread is started, by each program that opens the
/// host arena.
pub fn serve_if_asked() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_none_or(|first| first != ARGUMENT) {
        return false;
    }
    let descriptor = arguments
        .next()
        .and_then(|number| number.to_str()?.parse().ok());
    let done = descriptor.is_some_and(|descriptor| serve(descriptor).is_ok());
    // SAFETY: ends the process at once. What the tool's program would do at its end is not part of a trial.
    unsafe { libc::_exit(i32::from(!done)) }
}

/// Receives the order, waits until the tool tells it to start, and runs the scenario.
fn serve(descriptor: RawFd) -> io::Result<()> {
    // SAFETY: the name is a C string; changes only how this process is listed.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"pagetide-work".as_ptr()) };
    let mut orders = io::stdin().lock();
    let mut length = [0; 8];
    orders.read_exact(&mut length)?;
    let length = usize::try_from(u64::from_ne_bytes(length)).map_err(io::Error::other)?;
    let mut text = vec![0; length];
    orders.read_exact(&mut text)?;
    let order: Order = serde_json::from_slice(&text)?;
    drop(text);
    let (region, input) = region::inherited(descriptor, order.output, order.input)?;
    let mut furnished = Ok(());
    if order.is_program {
        furnished = program_root::isolate();
    }
    region.set_phase(Phase::Ready);
    // An end of the pipe means that the tool is gone.
    orders.read_exact(&mut [0])?;
    if order.is_program && furnished.is_ok() {
        // The child is the first process of the program's namespace, in the same cgroup as this process.
        follow_child();
        furnished = program_root::furnish(&order.work_dir, &order.group);
    }
    region::keep_from_children(&region, order.output);
    region.set_phase(Phase::Running);
    let outcome = match furnished {
        Ok(()) => scenario(&order, region, input),
        Err(why) => failed(format!("preparing what the program sees: {why}")),
    };
    region.set_phase(Phase::Ended);
    let json = serde_json::to_vec(&outcome).unwrap_or_default();
    region
        .write(Kind::Blob, OUTCOME, &json)
        .map_err(io::Error::other)
}

/// Forks, and returns in the child only. The parent waits for the child, and exits with the same status or signal.
fn follow_child() {
    // SAFETY: this process has a single thread, so the child may go on with ordinary code; the pointers live through
    // the calls, and the parent ends without running exit handlers.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            return;
        }
        let mut status = 0;
        while child > 0 && libc::waitpid(child, &raw mut status, 0) < 0 {}
        if child > 0 && libc::WIFSIGNALED(status) {
            libc::signal(libc::WTERMSIG(status), libc::SIG_DFL);
            libc::kill(libc::getpid(), libc::WTERMSIG(status));
        }
        libc::_exit(if child > 0 {
            libc::WEXITSTATUS(status)
        } else {
            1
        })
    }
}

/// Name and start time of each phase of the scenario.
struct PhaseLog(Vec<PhaseBegin>);

impl PhaseWatch for PhaseLog {
    fn phase(&mut self, name: &str) {
        self.0.push(PhaseBegin {
            name: name.to_owned(),
            begin: monotonic(),
        });
    }
}

/// Returns the CPU times of the workload's processes as accounted by the kernel: of this process those between `begin`
/// and `end`, of other processes those of their whole life.
fn accounting(outcome: &Outcome, begin: Nanos, end: Nanos) -> Vec<TaskAccounting> {
    let own = std::process::id();
    let accounted = outcome.processes.iter().map(|process| {
        let is_main = process.pid == own;
        TaskAccounting {
            pid: process.pid,
            begin: is_main.then_some(begin),
            end: is_main.then_some(end),
            user: Some(process.user),
            system: Some(process.system),
        }
    });
    accounted.collect()
}

/// Returns the outcome of a scenario that could not run for the reason `why`.
fn failed(why: String) -> Outcome {
    Outcome {
        invalid: vec![Invalid::Scenario { why }],
        ..Outcome::default()
    }
}

fn scenario(order: &Order, region: Region<'static>, data: &'static [u8]) -> Outcome {
    if let Err(why) = std::env::set_current_dir(&order.work_dir) {
        return failed(format!("entering {}: {why}", order.work_dir.display()));
    }
    let mut surroundings = Surroundings {
        group: Some(&order.group),
        own_machine: false,
        ..Surroundings::default()
    };
    if let Some(zram) = &order.zram {
        surroundings.zram = zram;
    }
    let is_observed = order.subject.pass == Pass::Observed;
    let mut nobody = NoPhaseWatch;
    let mut phases = PhaseLog(Vec::with_capacity(32));
    let watch: &mut dyn PhaseWatch = if is_observed {
        &mut phases
    } else {
        &mut nobody
    };
    let begin = monotonic();
    let place = TrialContext {
        region,
        clock: Clock::Monotonic,
        work_dir: &order.work_dir,
        data,
        watch,
        surroundings,
    };
    let outcome = pagetide_scenario::run(&order.subject, place);
    if is_observed {
        let tasks = accounting(&outcome, begin, monotonic());
        let tasks = serde_json::to_vec(&tasks).unwrap_or_default();
        let phases = serde_json::to_vec(&phases.0).unwrap_or_default();
        // The tool detects by itself that the region is full.
        let _ = region.write(Kind::Blob, TASKS, &tasks);
        let _ = region.write(Kind::Blob, PHASES, &phases);
    }
    outcome
}
