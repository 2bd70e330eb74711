//! The trace of a trial: tracepoints in tracing instances of our own, which record the workload alone.
//!
//! One instance records the workload's processes: the kernel follows their forks, and leaves out all events while
//! another process runs. A request to the swap device ends in an interrupt, or in a thread of the kernel, which such an
//! instance leaves out. So a second instance records the block events of the swap device, which belongs to the trial
//! alone. Reclaim by kswapd is in neither of them: it is caused by the whole machine.

use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pagetide_probe::ProbeError;
use pagetide_probe::meaning::{ATTRIBUTION_EVENTS, BLOCK_EVENTS, RECLAIM_EVENTS};
use pagetide_probe::trace::{
    Capture, CpuBuffer, Instance, KALLSYMS, Losses, TraceFile, TraceMeta, TraceSettings, Tracefs,
};
use pagetide_quantity::Bytes;
use pagetide_record::TraceRing;
use rustix::fs::{major, minor};
use rustix::process::geteuid;

use crate::change::Change;
use crate::journal::{Entry, Journal};
use crate::process::Process;

/// Command with which the user can record traces.
const AS_ROOT: &str = "`sudo pagetide run … --on host --observe`";

/// What a trace records.
#[derive(Clone, Debug)]
pub(crate) struct Target<'a> {
    /// PID of the workload's first process.
    pub(crate) pid: u32,
    /// The swap device of the trial; `None` if it has none of its own.
    pub(crate) swap: Option<&'a Path>,
    /// Size of the ring buffer of each CPU.
    pub(crate) ring: TraceRing,
}

/// A trace that is being recorded. When it is dropped, its tracing instances are removed.
pub(crate) struct Trace {
    parts: Vec<Part>,
    /// Number of bytes by which the trace may still grow.
    room: u64,
    /// Number of pieces that were discarded because the trace would exceed its limit.
    refused: u64,
    /// First error in reading the trace.
    broken: Option<ProbeError>,
    entry: Entry,
    journal: Journal,
}

/// One tracing instance, and what has been read from it.
struct Part {
    capture: Capture,
    cpus: Vec<CpuBuffer>,
}

/// Returns the common prefix of the names of all tracing instances of this process, as created by [`Instance::new`].
fn prefix() -> String {
    let Process { pid, start } = Process::current();
    format!("pagetide-{pid}-{start}-")
}

impl Trace {
    /// Creates the tracing instances. Recording begins with [`Trace::start`]. The error says why no trace can be
    /// recorded.
    pub(crate) fn open(journal: &Journal, target: &Target, limit: Bytes) -> Result<Self, String> {
        possible()?;
        let entry = journal.record(Change::TraceInstance { name: prefix() });
        let entry = entry.map_err(|why| why.to_string())?;
        // From here on, dropping it removes what was made.
        let mut trace = Self {
            parts: Vec::new(),
            room: limit.0,
            refused: 0,
            broken: None,
            entry,
            journal: journal.clone(),
        };
        let made = trace.make(target);
        made.map(|()| trace).map_err(|why| why.to_string())
    }

    fn make(&mut self, target: &Target) -> Result<(), ProbeError> {
        let settings = TraceSettings {
            buffer_kib: target.ring.bytes().0 >> 10,
            ..TraceSettings::default()
        };
        let of_processes = Instance::new(
            Tracefs::open()?,
            &TraceSettings {
                events: [RECLAIM_EVENTS, ATTRIBUTION_EVENTS].concat(),
                pids: vec![target.pid],
                sleep_stacks: true,
                ..settings.clone()
            },
        )?;
        write(&of_processes, "options/event-fork", "1")?;
        self.add(of_processes)?;
        let Some(device) = target.swap.and_then(number) else {
            return Ok(());
        };
        let of_swap = Instance::new(
            Tracefs::open()?,
            &TraceSettings {
                events: BLOCK_EVENTS.to_vec(),
                ..settings
            },
        )?;
        for format in of_swap.formats() {
            let file = format!("events/{}/{}/filter", format.system, format.name);
            write(&of_swap, &file, &format!("dev == {device}"))?;
        }
        self.add(of_swap)
    }

    fn add(&mut self, instance: Instance) -> Result<(), ProbeError> {
        self.parts.push(Part {
            capture: Capture::new(instance)?,
            cpus: Vec::new(),
        });
        Ok(())
    }

    /// Starts recording.
    pub(crate) fn start(&mut self) -> Result<(), ProbeError> {
        self.parts
            .iter_mut()
            .try_for_each(|part| part.capture.start())
    }

    /// Reads everything recorded so far. Errors are returned by [`Trace::finish`].
    pub(crate) fn drain(&mut self) {
        let Self {
            parts,
            room,
            refused,
            broken,
            ..
        } = self;
        for Part { capture, cpus } in parts {
            let read = capture.drain_to(|cpu, bytes| keep(cpus, room, refused, cpu, bytes));
            if let Err(why) = read {
                broken.get_or_insert(why);
            }
        }
    }

    /// Stops recording, reads the rest and removes the tracing instances. Returns the complete trace.
    pub(crate) fn finish(mut self) -> Result<TraceFile, ProbeError> {
        let mut whole: Option<TraceFile> = None;
        for Part { capture, mut cpus } in std::mem::take(&mut self.parts) {
            let (room, refused) = (&mut self.room, &mut self.refused);
            let meta =
                capture.finish_to(|cpu, bytes| keep(&mut cpus, room, refused, cpu, bytes))?;
            match &mut whole {
                None => whole = Some(TraceFile { meta, cpus }),
                Some(whole) => {
                    join(&mut whole.meta, meta);
                    whole.cpus.extend(cpus);
                }
            }
        }
        if let Some(why) = self.broken.take() {
            return Err(why);
        }
        let mut whole = whole.unwrap_or_default();
        whole.meta.losses.gaps_unknown += self.refused;
        Ok(whole)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // An instance can be removed only after its files are closed.
        self.parts.clear();
        // What could not be undone stays in the journal.
        self.journal.undo(&[self.entry]);
    }
}

/// Returns true if this process is in the initial PID namespace, whose PIDs traces contain. Source: kernel
/// `include/linux/proc_ns.h`, `PROC_PID_INIT_INO`.
fn is_in_first_namespace() -> bool {
    const FIRST: &str = "pid:[4026531836]";
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link == Path::new(FIRST))
}

/// Fails if this process cannot record traces. The error says why, and what to do.
pub(crate) fn possible() -> Result<(), String> {
    if !geteuid().is_root() {
        return Err(format!("tracepoints need root: {AS_ROOT}"));
    }
    if !is_in_first_namespace() {
        return Err(
            "tracepoints name processes by the numbers of the machine, which differ in this container: start it outside of the container"
                .to_owned(),
        );
    }
    Tracefs::open().map(drop).map_err(|why| why.to_string())
}

/// Writes `text` to a control file of a tracing instance.
fn write(instance: &Instance, file: &str, text: &str) -> Result<(), ProbeError> {
    let path = instance.path().join(file);
    fs::write(&path, text).map_err(|error| ProbeError::io("write", path, error))
}

/// Returns the number of a device as encoded in trace events; `None` if the file is not a device.
fn number(device: &Path) -> Option<u64> {
    let device = fs::metadata(device).ok()?.rdev();
    (device != 0).then(|| u64::from(major(device)) << 20 | u64::from(minor(device)))
}

/// Appends a piece of trace to the buffer of its CPU, or counts it as refused if it exceeds the limit.
fn keep(cpus: &mut Vec<CpuBuffer>, room: &mut u64, refused: &mut u64, cpu: u32, bytes: &[u8]) {
    let Some(rest) = room.checked_sub(bytes.len() as u64) else {
        *refused += 1;
        return;
    };
    *room = rest;
    let at = cpus.iter().position(|buffer| buffer.cpu == cpu);
    let at = at.unwrap_or_else(|| {
        cpus.push(CpuBuffer {
            cpu,
            bytes: Vec::new(),
        });
        cpus.len() - 1
    });
    cpus[at].bytes.extend_from_slice(bytes);
}

/// Adds the metadata of another part of the same trace to `whole`.
fn join(whole: &mut TraceMeta, part: TraceMeta) {
    whole.formats.extend(part.formats);
    whole.absent.extend(part.absent);
    whole.begin = whole.begin.min(part.begin);
    whole.end = whole.end.max(part.end);
    whole.losses = whole.losses.plus(part.losses);
    for task in part.tasks {
        if !whole.tasks.iter().any(|(pid, _)| *pid == task.0) {
            whole.tasks.push(task);
        }
    }
}

/// Adds function names to the stacks of a trace and compresses it. Returns the compressed trace and how much was lost.
pub(crate) fn packed(mut trace: TraceFile) -> Result<(Vec<u8>, Losses), ProbeError> {
    if let Ok(symbols) = File::open(KALLSYMS) {
        trace.name_functions(BufReader::new(symbols))?;
    }
    let mut bytes = Vec::new();
    trace.write(&mut bytes)?;
    let mut events = trace.events();
    // The buffers' own counts of gaps are complete only after all buffers have been read.
    events.by_ref().for_each(drop);
    let losses = events.losses().plus(trace.meta.losses);
    Ok((bytes, losses))
}
