//! The observer of an observed trial: a separate process that traces and samples while the scenario runs.
//!
//! It is a separate process, so that the workload does not inherit its memory. It starts before the amount of free
//! memory is adjusted, so it uses no memory of the workload. The kernel's ring buffer is drained every [`INTERVAL`] of
//! virtual time into memory of the host; nothing is formatted or compressed in the guest. The observer is a real-time
//! task, so that a busy workload cannot delay it.

use std::io;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

use pagetide_harness::supervise;
use pagetide_probe::meaning::{ATTRIBUTION_EVENTS, BLOCK_EVENTS, RECLAIM_EVENTS};
use pagetide_probe::trace::{Capture, Instance, TraceSettings, Tracefs};
use pagetide_probe::{ProbeError, ProbeResult, Probes, Scope};
use pagetide_quantity::Nanos;
use pagetide_record::TraceRing;
use pagetide_record::wire::{Kind, Region};
use pagetide_system::clock::{monotonic as now, sleep};
use pagetide_system::{Mapping, Source};

use crate::error::{GuestError, io};
use crate::spec::BootSpec;
use crate::tracearea::{self, Contents, FRAME, TraceArea};

/// Polling interval of the kernel's trace ring buffer, in virtual time.
pub const INTERVAL: Nanos = Nanos(25_000_000);
/// Sampling interval of the counters of the observer's text sources, in virtual time.
pub const SAMPLE: Nanos = Nanos(50_000_000);
/// Maximum number of samples in a series.
const SAMPLES: usize = 512;
/// Maximum time that PID 1 waits for an answer of the observer, in milliseconds of virtual time.
const PATIENCE_MS: u32 = 60_000;

// States of the observer; 0 during setup.
const READY: u32 = 1;
const GO: u32 = 2;
const RECORDING: u32 = 3;
const STOP: u32 = 4;
const STOPPED: u32 = 5;
const WRITE: u32 = 6;
const DONE: u32 = 7;
const FAILED: u32 = 8;

/// Memory shared by PID 1 and the observer: the state of the observer, and why it failed.
#[repr(C)]
struct Board {
    state: AtomicU32,
    length: AtomicUsize,
    why: [AtomicU8; 1000],
}

/// Handle of the observer process, in PID 1.
#[derive(Debug)]
pub struct Observer {
    /// Memory that contains the shared [`Board`].
    memory: Mapping,
}

impl Observer {
    /// Starts the observer process. Waits until it has opened all sources in `scope` and allocated its memory.
    pub fn start(
        boot: &BootSpec,
        region: &Region,
        scope: &Scope,
        ring: TraceRing,
    ) -> Result<Self, GuestError> {
        let memory = Mapping::with(Source::Shared, size_of::<Board>(), libc::MAP_POPULATE)
            .map_err(io("sharing memory with", "the observer"))?;
        let observer = Self { memory };
        // SAFETY: PID 1 has a single thread, so the child may go on with ordinary code.
        match unsafe { libc::fork() } {
            -1 => Err(io("starting", "the observer")(io::Error::last_os_error())),
            0 => {
                if let Err(why) = observer.observe(boot, region, scope, ring) {
                    observer.fail(&why.to_string());
                }
                // SAFETY: ends the child without running the parent's exit handlers.
                unsafe { libc::_exit(0) }
            }
            _ => {
                observer.reached(READY)?;
                Ok(observer)
            }
        }
    }

    /// Starts recording. Fails if the observer does not answer.
    pub fn begin(&self) -> Result<(), GuestError> {
        self.set(GO);
        self.reached(RECORDING)
    }

    /// Stops recording. Fails if the observer does not answer.
    pub fn stop(&self) -> Result<(), GuestError> {
        self.set(STOP);
        self.reached(STOPPED)
    }

    /// Waits until all recorded data is written. Writing uses memory, so the kernel may reclaim and migrate pages: read
    /// the counters of the trial before.
    pub fn end(self) -> Result<(), GuestError> {
        self.set(WRITE);
        self.reached(DONE)
    }

    fn board(&self) -> &Board {
        // SAFETY: the mapping is page aligned, large enough and lives as long as `self`; a board is all atomics, for which every
        // bit pattern is valid and which the other process may write meanwhile.
        unsafe { &*self.memory.start().cast() }
    }

    fn set(&self, state: u32) {
        self.board().state.store(state, Ordering::Release);
    }

    /// Waits until the observer has set the state `wanted`. Fails if the observer fails or does not answer in time.
    fn reached(&self, wanted: u32) -> Result<(), GuestError> {
        let fault = |why: String| Err(io("observing", "the trial")(io::Error::other(why)));
        for _ in 0..PATIENCE_MS {
            match self.board().state.load(Ordering::Acquire) {
                state if state == wanted => return Ok(()),
                FAILED => {
                    let length = self.board().length.load(Ordering::Acquire);
                    let text: Vec<u8> = self
                        .board()
                        .why
                        .iter()
                        .take(length)
                        .map(|byte| byte.load(Ordering::Relaxed))
                        .collect();
                    return fault(String::from_utf8_lossy(&text).into_owned());
                }
                _ => sleep(Nanos(1_000_000)),
            }
        }
        fault("the observer does not answer".to_owned())
    }

    /// In the observer: waits until PID 1 has set the state `wanted`.
    fn wait_for(&self, wanted: u32) {
        while self.board().state.load(Ordering::Acquire) != wanted {
            sleep(Nanos(1_000_000));
        }
    }

    /// In the observer: stores `why`, the reason why the observer cannot continue, for PID 1 to read.
    fn fail(&self, why: &str) {
        let room = &self.board().why;
        for (place, byte) in room.iter().zip(why.bytes()) {
            place.store(byte, Ordering::Relaxed);
        }
        let length = why.len().min(room.len());
        self.board().length.store(length, Ordering::Release);
        self.set(FAILED);
    }

    /// Runs the observer process, from its start to its end.
    fn observe(
        &self,
        boot: &BootSpec,
        region: &Region,
        scope: &Scope,
        ring: TraceRing,
    ) -> Result<(), GuestError> {
        let probe = |why: ProbeError| io("observing", "the trial")(io::Error::other(why));
        // SAFETY: the name is a C string.
        unsafe { libc::prctl(libc::PR_SET_NAME, c"pagetide-watch".as_ptr()) };
        let events = [RECLAIM_EVENTS, ATTRIBUTION_EVENTS, BLOCK_EVENTS].concat();
        let settings = TraceSettings {
            events,
            buffer_kib: ring.bytes().0 >> 10,
            sleep_stacks: true,
            ..TraceSettings::default()
        };
        let tracefs = Tracefs::open().map_err(probe)?;
        let instance = Instance::of_machine(tracefs, &settings).map_err(probe)?;
        let mut capture = Capture::new(instance).map_err(probe)?;
        let mut probes = Probes::open(scope, SAMPLES);
        let mut area = TraceArea::open(boot.trace_at, tracearea::room(boot.trace_size))?;
        let mut broken = Ok(());
        supervise::lock_what_is_here();
        in_real_time();
        self.set(READY);
        self.wait_for(GO);
        probes.before().map_err(probe)?;
        capture.start().map_err(probe)?;
        let begin = now();
        let mut next = begin;
        self.set(RECORDING);
        while self.board().state.load(Ordering::Acquire) != STOP {
            capture
                .drain_to(|cpu, bytes| keep(&mut area, &mut broken, cpu, bytes))
                .map_err(probe)?;
            let time = now();
            if time >= next {
                probes.sample(time.saturating_sub(begin)).map_err(probe)?;
                next = time.saturating_add(SAMPLE);
            }
            sleep(INTERVAL);
        }
        let mut meta = capture
            .finish_to(|cpu, bytes| keep(&mut area, &mut broken, cpu, bytes))
            .map_err(probe)?;
        probes.sample(now().saturating_sub(begin)).map_err(probe)?;
        broken?;
        self.set(STOPPED);
        self.wait_for(WRITE);
        meta.losses.gaps_unknown += area.refused();
        let contents = Contents {
            meta,
            used: area.used(),
        };
        let found = probes.after().map_err(probe)?;
        store(region, &contents, found)?;
        self.set(DONE);
        Ok(())
    }
}

/// Appends a piece of the trace to the trace area. Stores the first error in `broken`, and drops all later pieces.
fn keep(area: &mut TraceArea, broken: &mut Result<(), GuestError>, cpu: u32, bytes: &[u8]) {
    if broken.is_ok() {
        *broken = area.append(cpu, bytes);
    }
}

/// Writes the series and the metadata of the trace to the output region. The events are already in the trace area.
fn store(
    region: &Region,
    contents: &Contents,
    found: Vec<(String, ProbeResult)>,
) -> Result<(), GuestError> {
    let full = |why| io("writing", "what was observed")(io::Error::other(why));
    for series in found.into_iter().filter_map(|(_, found)| found.series) {
        region
            .write(Kind::Series, &series.name, &series.encode())
            .map_err(full)?;
    }
    let contents = serde_json::to_vec(contents)
        .map_err(|why| io("encoding", "what was observed")(io::Error::other(why)))?;
    region.write(Kind::Blob, FRAME, &contents).map_err(full)
}

/// Gives this process real-time priority, without passing it on to child processes.
fn in_real_time() {
    let param = libc::sched_param { sched_priority: 1 };
    // SAFETY: changes only this process; `param` lives through the call.
    unsafe {
        libc::sched_setscheduler(
            0,
            libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
            &raw const param,
        );
    }
}
