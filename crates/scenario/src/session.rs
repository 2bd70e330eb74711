//! Runs a load from start to end, and a server for it if there is one.

use pagetide_quantity::{Bytes, Nanos};

use crate::clock::{self, Clock};
use crate::error::Stop;
use crate::launch::Launch;
use crate::ready::Ready;
use crate::running::{Ending, Reaped, RunningProgram, descendants_beside, kill_all};
use crate::workers::{ProcessUsage, Usage};

/// Grace period for processes that a program left behind. After it they are killed.
const GRACE: Nanos = Nanos::from_secs(1);
/// Polling interval while waiting for leftover processes to exit, or for a server to become ready.
const POLL: Nanos = Nanos::from_millis(1);
/// Interval at which progress is reported to the arena.
const SECOND: Nanos = Nanos::from_secs(1);

/// Why a server did not serve its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerFault {
    /// The server ended before it was ready.
    EndedEarly(Ending),
    /// The server ended while its load ran.
    EndedUnderLoad(Ending),
    /// The server's first process exited while other processes of the server continued.
    InBackground,
    /// The server was not ready within the time limit.
    NeverReady,
}

/// Result of running a server.
pub(crate) struct ServerRun {
    /// Why the server did not serve; `None` if it did.
    pub fault: Option<ServerFault>,
    /// The server's program, which has ended.
    pub program: RunningProgram,
}

/// Result of running a load.
pub(crate) struct LoadRun {
    /// How the load ended.
    pub ending: Ending,
    /// Time from the start of the load to the end of its first process.
    pub elapsed: Nanos,
    /// Number of processes that continued after the first process had ended, and had to be killed.
    pub left_behind: usize,
    /// The load's program, which has ended.
    pub program: RunningProgram,
}

/// Results of the load and of its server.
pub(crate) struct Run {
    /// Result of the load; `None` if the server did not become ready.
    pub load: Option<LoadRun>,
    /// Result of the server; `None` if there is none.
    pub server: Option<ServerRun>,
    /// Resource usage of each reaped process. It includes the children that the process itself reaped.
    pub processes: Vec<ProcessUsage>,
    /// Maximum resident set size of any reaped process.
    pub peak: Bytes,
}

impl Run {
    /// Returns the total resource usage of all reaped processes.
    pub(crate) fn usage(&self) -> Usage {
        let all = self.processes.iter().map(|process| Usage {
            user: process.user,
            system: process.system,
            minor_faults: process.minor_faults,
            major_faults: process.major_faults,
        });
        all.fold(Usage::default(), Usage::plus)
    }
}

/// Runs programs: a server if there is one, then its load. The callback `tick` is called at least every second.
pub(crate) struct Session {
    clock: Clock,
    /// Time limit for the server to become ready, and again for the load to end.
    limit: Nanos,
    reaped: Reaped,
    server: Option<ServerRun>,
}

impl Session {
    /// Creates a session. `limit` is the time limit for each of the two programs.
    pub(crate) fn new(clock: Clock, limit: Nanos) -> Self {
        Self {
            clock,
            limit,
            reaped: Reaped::default(),
            server: None,
        }
    }

    /// Starts the server and waits until it is ready, has ended, or the time limit is reached.
    pub(crate) fn serve(
        &mut self,
        launch: &Launch<'_>,
        ready: &Ready,
        tick: &dyn Fn(),
    ) -> Result<(), Stop> {
        let mut server = launch.start(self.clock)?;
        let mut told = server.began;
        let mut written = u64::MAX;
        let fault = loop {
            let mut events = server.waits_for();
            wait(&mut events, POLL);
            if server.take(&events) {
                server.could_start()?;
                break Some(self.fault_of(&server, None, ServerFault::EndedEarly));
            }
            let total = server.output.total() + server.errors.total();
            if ready.is_there(&server, total != written, launch.root, launch.folder) {
                break None;
            }
            written = total;
            let now = self.clock.now();
            if now.since(server.began) >= self.limit {
                break Some(ServerFault::NeverReady);
            }
            if now.since(told) >= SECOND {
                told = now;
                tick();
            }
        };
        self.server = Some(ServerRun {
            fault,
            program: server,
        });
        Ok(())
    }

    /// Returns why a server whose first process has ended does not serve.
    fn fault_of(
        &mut self,
        server: &RunningProgram,
        load: Option<&RunningProgram>,
        ended: fn(Ending) -> ServerFault,
    ) -> ServerFault {
        match server.ending(&mut self.reaped) {
            Ending::Exit(0) if descendants_beside(load) > 0 => ServerFault::InBackground,
            ending => ended(ending),
        }
    }

    /// Runs the load until it ends or the time limit is reached, unless the server has failed. If there is a server,
    /// then kills every descendant.
    pub(crate) fn load(mut self, launch: &Launch<'_>, tick: &dyn Fn()) -> Result<Run, Stop> {
        let serves = |server: &ServerRun| server.fault.is_none();
        let load = if self.server.as_ref().is_none_or(serves) {
            let mut load = launch.start(self.clock)?;
            let (ending, elapsed) = self.watch(&mut load, tick);
            load.could_start()?;
            if ending != Ending::TimeLimit {
                self.look_for_crash(&load);
            }
            let left_behind = self.end_of_others(&mut load, tick);
            load.take_all();
            Some(LoadRun {
                ending,
                elapsed,
                left_behind,
                program: load,
            })
        } else {
            None
        };
        if let Some(server) = &mut self.server {
            // The server is killed at once, so that its shutdown is not measured.
            loop {
                kill_all();
                server.program.take_all();
                if !self.reaped.reap_ended() {
                    break;
                }
                tick();
                clock::sleep(POLL);
            }
            server.program.take_all();
        }
        Ok(Run {
            load,
            server: self.server,
            processes: self.reaped.processes,
            peak: self.reaped.peak,
        })
    }

    /// Waits until the load's first process has ended. Returns how it ended, and the time since its start.
    fn watch(&mut self, load: &mut RunningProgram, tick: &dyn Fn()) -> (Ending, Nanos) {
        let mut expired = false;
        // Time at which the server exited with status 0, if the load still ran then.
        let mut server_left: Option<Nanos> = None;
        loop {
            let gone = self.clock.now().since(load.began);
            if gone >= self.limit && !expired {
                expired = true;
                kill_all();
            }
            if server_left.is_some_and(|left| self.clock.now().since(left) >= GRACE) {
                server_left = None;
                load.kill();
            }
            let left = self.limit.since(gone);
            let time = if expired || left > SECOND {
                SECOND
            } else {
                left
            };
            let time = server_left.map_or(time, |_| time.min(POLL));
            let mut events = load.waits_for().to_vec();
            let own = events.len();
            // Do not poll a server that has already ended.
            let serving = self.server.as_mut().filter(|server| server.fault.is_none());
            if let Some(server) = &serving {
                events.extend(server.program.waits_for());
            }
            wait(&mut events, time);
            let mut server_ended = false;
            if let Some(server) = serving {
                server_ended = server.program.take(&events[own..]);
            }
            if load.take(&events[..own]) {
                break;
            }
            // A server that ends because its load ends is examined after the end of the load.
            if server_ended && !expired && !load.is_ending() {
                let fault = self.server_fault(load);
                // A load that closes its connection before it exits may end shortly after its server.
                if fault == Some(ServerFault::EndedUnderLoad(Ending::Exit(0))) {
                    server_left = Some(self.clock.now());
                } else {
                    load.kill();
                }
            }
            tick();
        }
        let elapsed = self.clock.now().since(load.began);
        let ending = load.ending(&mut self.reaped);
        if let (Some(_), Ending::Exit(0), Some(server)) = (server_left, ending, &mut self.server) {
            server.fault = None;
        }
        (if expired { Ending::TimeLimit } else { ending }, elapsed)
    }

    /// Returns why the server, which must have ended, did so under its load, and records this; `None` without a server.
    fn server_fault(&mut self, load: &RunningProgram) -> Option<ServerFault> {
        let mut server = self.server.take()?;
        let ended = ServerFault::EndedUnderLoad;
        server.fault = Some(self.fault_of(&server.program, Some(load), ended));
        let fault = server.fault;
        self.server = Some(server);
        fault
    }

    /// Checks whether the server crashed when the load ended, because a load may exit normally after it lost its
    /// server. A server that exited with status 0 at the end of the load has served it to the end.
    fn look_for_crash(&mut self, load: &RunningProgram) {
        let Some(mut server) = self.server.take() else {
            return;
        };
        if server.fault.is_none() && server.program.is_ending() {
            // The process is already exiting, so the wait is short.
            let fault = self.fault_of(&server.program, Some(load), ServerFault::EndedUnderLoad);
            let ended_well = ServerFault::EndedUnderLoad(Ending::Exit(0));
            server.fault = Some(fault).filter(|fault| *fault != ended_well);
        }
        self.server = Some(server);
    }

    /// Waits until the processes that the load left behind have exited; kills them if they take longer than [`GRACE`].
    /// Returns the number killed; at least 1 if any outlived [`GRACE`].
    fn end_of_others(&mut self, load: &mut RunningProgram, tick: &dyn Fn()) -> usize {
        let since = self.clock.now();
        let mut killed = 0;
        loop {
            let is_any = self.reaped.reap_ended();
            // With a server, only processes in the load's session are known to belong to the load.
            let is_own = is_any && (self.server.is_none() || load.has_others());
            if !is_own {
                return killed;
            }
            if self.clock.now().since(since) >= GRACE && killed == 0 {
                killed = match self.server {
                    None => kill_all(),
                    Some(_) => load.kill(),
                }
                .max(1);
            }
            load.take_all();
            if let Some(server) = &mut self.server {
                server.program.take_all();
            }
            tick();
            clock::sleep(POLL);
        }
    }
}

/// Waits for one of these events, but not longer than `time`.
pub(crate) fn wait(events: &mut [libc::pollfd], time: Nanos) {
    let count = libc::nfds_t::try_from(events.len()).unwrap_or(0);
    // SAFETY: the slice has that many elements and lives through the call.
    unsafe { libc::poll(events.as_mut_ptr(), count, millis(time)) };
}

/// Converts a time to milliseconds, rounded up.
fn millis(time: Nanos) -> libc::c_int {
    libc::c_int::try_from(time.0.div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX)
}
