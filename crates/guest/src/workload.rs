//! The process that runs the scenario. It starts before the ready point and waits for its order, so that a trial does
//! not spend time on starting it.

use std::fs;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::path::Path;

use pagetide_harness::peak::ZswapPeak;
use pagetide_harness::supervise::{self, Reap};
use pagetide_probe::meaning::TaskAccounting;
use pagetide_probe::observed::{PHASES, PhaseBegin, TASKS};
use pagetide_quantity::Nanos;
use pagetide_record::Pass;
use pagetide_record::outcome::Invalid;
use pagetide_record::wire::{Kind, Phase, Region};
use pagetide_scenario::Group;

use pagetide_system::clock::monotonic;

use crate::error::{GuestError, io};
use crate::idle::Spinner;
use crate::nodes;
use crate::region;
use crate::spec::{BootSpec, MOUNT_POINT, Order};

/// Name of the frame with the scenario's outcome.
pub const OUTCOME: &str = "outcome";

/// Handle of a workload process that waits for its order.
pub struct Workload {
    child: libc::pid_t,
    /// Pipe to the workload. Other processes also have it open, so the workload cannot wait for the end of the file.
    /// Each order therefore starts with its length.
    orders: PipeWriter,
    signals: libc::sigset_t,
    /// The spinner in the workload's address space; `None` with several CPUs (PID 1 has the spinners) and in real time.
    spinner: Option<Spinner>,
}

impl Workload {
    /// Starts the workload process. Its pages are locked when first used, so that reclaim does not evict the code of
    /// the harness.
    pub fn stand_by(boot: &BootSpec, region: &Region<'static>) -> Result<Self, GuestError> {
        let pipe = || io::pipe().map_err(io("making", "the workload's pipe"));
        let (theirs, orders) = pipe()?;
        let (mut ours, id) = pipe()?;
        let signals = supervise::block_child_signal();
        // With several CPUs, the memory would be in use on all of them, and each change of it would interrupt them.
        let shares = !boot.cpus.are_several() && !boot.real_time;
        // SAFETY: PID 1 has a single thread, so the child may go on with ordinary code.
        let child = unsafe { libc::fork() };
        match child {
            -1 => Err(io("starting", "the workload")(io::Error::last_os_error())),
            0 => {
                drop(orders);
                // SAFETY: the set lives through the call.
                unsafe {
                    libc::sigprocmask(libc::SIG_UNBLOCK, &raw const signals, std::ptr::null_mut())
                };
                // If there is no spinner, PID 1 reads no ID.
                let told =
                    !shares || Spinner::share().is_ok_and(|spinner| tell(id, &spinner).is_ok());
                supervise::lock_what_is_here();
                let done = told && work(theirs, boot, region);
                // SAFETY: ends the child without running the parent's exit handlers.
                unsafe { libc::_exit(i32::from(!done)) }
            }
            _ => {
                drop(id);
                let spinner = if shares {
                    let mut text = [0; size_of::<libc::pid_t>()];
                    ours.read_exact(&mut text)
                        .map_err(io("starting", "the workload's spinner"))?;
                    Some(Spinner::child(libc::pid_t::from_ne_bytes(text)))
                } else {
                    None
                };
                Ok(Self {
                    child,
                    orders,
                    signals,
                    spinner,
                })
            }
        }
    }

    /// Returns the process ID of the workload process.
    pub fn id(&self) -> libc::pid_t {
        self.child
    }

    /// Checks that the workload process still runs. Fails if it has ended: a guest without it must not become a
    /// snapshot.
    pub fn waits(&self) -> Result<(), GuestError> {
        let mut status = 0;
        // SAFETY: the status lives through the call.
        match unsafe { libc::waitpid(self.child, &raw mut status, libc::WNOHANG) } {
            0 => Ok(()),
            _ => Err(GuestError::Killed),
        }
    }

    /// Runs the trial specified by `text` and waits for the end of the workload. Updates `peak` meanwhile, if given.
    /// After the end, the spinner `idle` replaces the spinner that shares the workload's address space. Returns the
    /// reasons why the results must not be used.
    pub fn run(
        mut self,
        text: &[u8],
        region: &Region,
        hang_after: Nanos,
        real_time: bool,
        peak: Option<&mut ZswapPeak>,
        idle: &Spinner,
    ) -> Vec<Invalid> {
        let mut order = text.len().to_ne_bytes().to_vec();
        order.extend(text);
        if let Err(why) = self.orders.write_all(&order) {
            let why = format!("starting it: {why}");
            return vec![Invalid::Scenario { why }];
        }
        let limit = (hang_after, if real_time { "wall" } else { "virtual" });
        let child = (self.child, Reap::All);
        let invalid = supervise::wait(child, region, limit, self.signals, peak, || {
            // Makes the kernel log which task waits for what.
            let _ = fs::write("/proc/sysrq-trigger", "w");
        });
        // The memory is freed when the last process that uses it ends.
        idle.resume();
        if let Some(spinner) = self.spinner {
            spinner.end();
        }
        invalid
    }
}

/// In the workload: waits for an order, runs it and writes the outcome to the region. Returns true if the outcome was
/// written.
fn work(mut orders: PipeReader, boot: &BootSpec, region: &Region<'static>) -> bool {
    let Ok(order) = receive(&mut orders) else {
        return false;
    };
    region.set_phase(Phase::Running);
    let outcome = scenario(boot, &order, region);
    region.set_phase(Phase::Ended);
    region.write(Kind::Blob, OUTCOME, &outcome).is_ok()
}

/// Sends the process ID of the spinner to PID 1.
fn tell(mut to: PipeWriter, spinner: &Spinner) -> io::Result<()> {
    to.write_all(&spinner.id().to_ne_bytes())
}

fn receive(orders: &mut PipeReader) -> io::Result<Order> {
    let mut length = [0; size_of::<usize>()];
    orders.read_exact(&mut length)?;
    let mut text = vec![0; usize::from_ne_bytes(length)];
    orders.read_exact(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

/// Name and start time of each phase of the scenario.
struct PhaseLog(Vec<PhaseBegin>);

impl pagetide_scenario::PhaseWatch for PhaseLog {
    fn phase(&mut self, name: &str) {
        self.0.push(PhaseBegin {
            name: name.to_owned(),
            begin: monotonic(),
        });
    }
}

/// Returns the CPU times of the workload's processes, as accounted by the kernel. For the main process these are times
/// between `begin` and `end`, for other processes the times of their whole life.
fn accounting(
    outcome: &pagetide_scenario::Outcome,
    begin: Nanos,
    end: Nanos,
) -> Vec<TaskAccounting> {
    let own = std::process::id();
    outcome
        .processes
        .iter()
        .map(|process| {
            let is_main = process.pid == own;
            TaskAccounting {
                pid: process.pid,
                begin: is_main.then_some(begin),
                end: is_main.then_some(end),
                user: Some(process.user),
                system: Some(process.system),
            }
        })
        .collect()
}

/// Returns the outcome of a scenario that could not run for the reason `why`, as JSON.
fn failed(why: String) -> Vec<u8> {
    let outcome = pagetide_scenario::Outcome {
        invalid: vec![Invalid::Scenario { why }],
        ..pagetide_scenario::Outcome::default()
    };
    serde_json::to_vec(&outcome).unwrap_or_default()
}

/// Runs the scenario and returns its outcome as JSON.
fn scenario(boot: &BootSpec, order: &Order, region: &Region<'static>) -> Vec<u8> {
    // The scenario's processes do not write to the region, and each would need memory for its page tables.
    region::keep_from_children(region, boot.region_size);
    let mut region = *region;
    let data = order.data.map_or(&[][..], |(offset, length)| {
        let fits = offset
            .checked_add(length)
            .is_some_and(|end| end <= boot.region_size);
        let (Ok(offset), Ok(length), true) =
            (usize::try_from(offset), usize::try_from(length), fits)
        else {
            return &[];
        };
        region = region.up_to(offset);
        // SAFETY: the range was checked to lie within the region. The controller wrote it before the guest went on. While
        // this process lives it alone hands out frames (PID 1 and the observer write theirs after its end), and from
        // here on it does so below `offset` only.
        unsafe { region::bytes(&region, offset, length) }
    });
    let work_dir = if boot.filesystem.is_some() {
        MOUNT_POINT
    } else {
        "/tmp"
    };
    let _ = fs::create_dir_all(work_dir);
    let mut nobody = pagetide_scenario::NoPhaseWatch;
    let mut phases = PhaseLog(Vec::with_capacity(32));
    let observed = order.subject.pass == Pass::Observed;
    let watch: &mut dyn pagetide_scenario::PhaseWatch =
        if observed { &mut phases } else { &mut nobody };
    let begin = monotonic();
    let place = pagetide_scenario::TrialContext {
        region,
        clock: if boot.real_time {
            pagetide_scenario::Clock::Monotonic
        } else {
            pagetide_scenario::Clock::RawTsc
        },
        work_dir: Path::new(work_dir),
        data,
        watch,
        surroundings: pagetide_scenario::Surroundings::default(),
    };
    if let Some(limit) = order.subject.limit
        && let Err(why) = Group::join_limited(limit)
    {
        let why = format!("joining a memory group with a limit of {limit}: {why}");
        return failed(why);
    }
    if let Some(policy) = nodes::policy(&order.settings) {
        // PID 1 has already tried this policy.
        let _ = nodes::obey(policy);
    }
    let outcome = pagetide_scenario::run(&order.subject, place);
    if observed {
        let tasks = accounting(&outcome, begin, monotonic());
        let tasks = serde_json::to_vec(&tasks).unwrap_or_default();
        let phases = serde_json::to_vec(&phases.0).unwrap_or_default();
        // The controller detects by itself that the region is full.
        let _ = region.write(Kind::Blob, TASKS, &tasks);
        let _ = region.write(Kind::Blob, PHASES, &phases);
    }
    serde_json::to_vec(&outcome).unwrap_or_default()
}
