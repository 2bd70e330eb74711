//! A load and the server that it may have, from their start to their end.

use pagetide_quantity::{Bytes, Nanos};

use crate::clock::{self, Clock};
use crate::error::Stop;
use crate::launch::Launch;
use crate::ready::Ready;
use crate::running::{Ending, Reaped, RunningProgram, descendants_beside, kill_all};
use crate::workers::{ProcessUsage, Usage};

/// How long processes that a program leaves behind have to end by themselves.
const GRACE: Nanos = Nanos::from_secs(1);
/// How often they, and a server that is not ready, are looked at.
const LOOK: Nanos = Nanos::from_millis(1);
/// How often the arena is told that time passes.
const SECOND: Nanos = Nanos::from_secs(1);

/// Why a server did not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerFault {
    /// It ended before it was ready.
    EndedEarly(Ending),
    /// It ended while its load ran.
    EndedUnderLoad(Ending),
    /// Its first process ended while others of its processes went on.
    InBackground,
    /// It was not ready within the time limit.
    NeverReady,
}

/// What a server left.
pub(crate) struct ServerRun {
    /// Why it did not serve.
    pub fault: Option<ServerFault>,
    /// It, after its end.
    pub program: RunningProgram,
}

/// What a load left.
pub(crate) struct LoadRun {
    /// How it ended.
    pub ending: Ending,
    /// From its start to the end of its first process.
    pub elapsed: Nanos,
    /// Processes that were still there after the first one had ended, and had to be killed.
    pub left_behind: usize,
    /// It, after its end.
    pub program: RunningProgram,
}

/// What is known of programs that ended.
pub(crate) struct Run {
    /// The load; nothing where its server did not get ready.
    pub load: Option<LoadRun>,
    /// The server, where there is one.
    pub server: Option<ServerRun>,
    /// What the kernel accounted to each of their processes that were ours to wait for, and those that they waited for.
    pub processes: Vec<ProcessUsage>,
    /// The largest resident memory of one of its processes.
    pub peak: Bytes,
}

impl Run {
    /// What all processes used together.
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

/// Programs that run, and what is known of those that ended. `tick` of its functions is called every second at least.
pub(crate) struct Session {
    clock: Clock,
    /// Time of the server to get ready, and of the load to end.
    limit: Nanos,
    reaped: Reaped,
    server: Option<ServerRun>,
}

impl Session {
    /// A session in which each program has so much time.
    pub(crate) fn new(clock: Clock, limit: Nanos) -> Self {
        Self {
            clock,
            limit,
            reaped: Reaped::default(),
            server: None,
        }
    }

    /// Starts the server and waits until it is ready.
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
            wait(&mut events, LOOK);
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

    /// Why a server whose first process has ended does not serve.
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

    /// Runs the load to its end or to the time limit, unless its server is not there, then ends the server.
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
            // At once, so that nothing of what it does when it ends is measured.
            loop {
                kill_all();
                server.program.take_all();
                if !self.reaped.reap_ended() {
                    break;
                }
                tick();
                clock::sleep(LOOK);
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

    /// Waits for the end of the load's first process. Returns how it ended, and after what time.
    fn watch(&mut self, load: &mut RunningProgram, tick: &dyn Fn()) -> (Ending, Nanos) {
        let mut expired = false;
        loop {
            let gone = self.clock.now().since(load.began);
            if gone >= self.limit && !expired {
                expired = true;
                kill_all();
            }
            let left = self.limit.since(gone);
            let time = if expired || left > SECOND {
                SECOND
            } else {
                left
            };
            let mut events = load.waits_for().to_vec();
            let own = events.len();
            // A server that has ended is not waited for again.
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
            // One that ends because its load does is looked at after the load's end.
            if server_ended && !expired && !load.is_ending() {
                self.mourn(load);
            }
            tick();
        }
        let elapsed = self.clock.now().since(load.began);
        let ending = load.ending(&mut self.reaped);
        (if expired { Ending::TimeLimit } else { ending }, elapsed)
    }

    /// Takes note that the server ended while the load ran, and ends the load.
    fn mourn(&mut self, load: &RunningProgram) {
        let Some(mut server) = self.server.take() else {
            return;
        };
        let ended = ServerFault::EndedUnderLoad;
        server.fault = Some(self.fault_of(&server.program, Some(load), ended));
        self.server = Some(server);
        load.kill();
    }

    /// Takes note of a server that crashed although the load ended as soon, as one does that only says it lost its server. A server
    /// that ended well at the load's end served it to the end.
    fn look_for_crash(&mut self, load: &RunningProgram) {
        let Some(mut server) = self.server.take() else {
            return;
        };
        if server.fault.is_none() && server.program.is_ending() {
            // It ends by itself: the wait is short.
            let fault = self.fault_of(&server.program, Some(load), ServerFault::EndedUnderLoad);
            let ended_well = ServerFault::EndedUnderLoad(Ending::Exit(0));
            server.fault = Some(fault).filter(|fault| *fault != ended_well);
        }
        self.server = Some(server);
    }

    /// Waits until the processes that the load left behind have ended; those that do not are killed. Returns how many those were.
    fn end_of_others(&mut self, load: &mut RunningProgram, tick: &dyn Fn()) -> usize {
        let since = self.clock.now();
        let mut killed = 0;
        loop {
            let is_any = self.reaped.reap_ended();
            // Beside a server only those of the load's own session are known to be the load's.
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
            clock::sleep(LOOK);
        }
    }
}

/// Waits for one of these events, for so long at most.
fn wait(events: &mut [libc::pollfd], time: Nanos) {
    let count = libc::nfds_t::try_from(events.len()).unwrap_or(0);
    // SAFETY: the slice has that many elements and lives through the call.
    unsafe { libc::poll(events.as_mut_ptr(), count, millis(time)) };
}

/// The number of milliseconds in a time, rounded up.
fn millis(time: Nanos) -> libc::c_int {
    libc::c_int::try_from(time.0.div_ceil(1_000_000)).unwrap_or(libc::c_int::MAX)
}
