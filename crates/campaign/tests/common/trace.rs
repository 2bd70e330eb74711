//! A synthetic trace of an observed pass: one process, and how it spent its time.

use pagetide_arena::ArenaError;
use pagetide_probe::meaning::TaskAccounting;
use pagetide_probe::observed::{TASKS, TRACE};
use pagetide_probe::trace::{CpuBuffer, StoredFormat, TraceFile, TraceMeta};
use pagetide_quantity::Nanos;
use pagetide_record::{Counters, RecordWriter, Results};

/// Identifier of the traced process.
const TASK: u32 = 7;
/// Identifier of the event for task switches.
const SWITCH: u16 = 1;
/// Task state `TASK_UNINTERRUPTIBLE`.
const BLOCKED: u64 = 2;
/// Time that the process spends on a CPU, in nanoseconds.
const ON_CPU: u64 = 900_000_000;

const FORMAT: &str = "name: sched_switch
ID: 1
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;
	field:pid_t prev_pid;	offset:8;	size:4;	signed:1;
	field:long prev_state;	offset:16;	size:8;	signed:1;
	field:pid_t next_pid;	offset:24;	size:4;	signed:1;
";

/// Content of the trace of an observed trial.
#[derive(Clone, Copy, Debug)]
pub enum Told {
    /// The process blocks once, for this many nanoseconds.
    Blocked(u64),
    /// The trace has no events, and the process lives for this many nanoseconds.
    Nothing(u64),
}

impl Told {
    /// Writes the trace to a record.
    pub fn write(self, sink: &mut RecordWriter, results: &mut Results) -> Result<(), ArenaError> {
        let (end, bytes) = match self {
            Self::Blocked(time) => {
                let out = ON_CPU / 2;
                let away = switch(out, TASK, BLOCKED, 0);
                let back = switch(out + time, 0, 0, TASK);
                (ON_CPU + time, [away, back].concat())
            }
            Self::Nothing(time) => (time, Vec::new()),
        };
        let trace = TraceFile {
            meta: TraceMeta {
                clock: "mono".into(),
                formats: vec![StoredFormat {
                    system: "sched".into(),
                    name: "sched_switch".into(),
                    text: FORMAT.into(),
                }],
                ..TraceMeta::default()
            },
            cpus: vec![CpuBuffer { cpu: 0, bytes }],
        };
        let mut packed = Vec::new();
        trace.write(&mut packed).unwrap();
        sink.section("blob", TRACE, &packed)?;
        let tasks = [TaskAccounting {
            pid: TASK,
            begin: Some(Nanos(0)),
            end: Some(Nanos(end)),
            user: Some(Nanos(0)),
            system: Some(Nanos(0)),
        }];
        sink.section("blob", TASKS, &serde_json::to_vec(&tasks).unwrap())?;
        let one = |name: &str, growth: u64| (name.to_owned(), [0, growth]);
        let values = [one("pgmajfault", 1), one("pswpin", 1), one("pgpgin", 4)];
        let vmstat = Counters {
            values: values.into(),
        };
        results.counters.insert("vmstat".into(), vmstat);
        Ok(())
    }
}

/// Bytes of a sub-buffer with one task switch.
fn switch(time: u64, previous: u32, state: u64, next: u32) -> Vec<u8> {
    let mut event = vec![0; 28];
    event[0..2].copy_from_slice(&SWITCH.to_le_bytes());
    event[4..8].copy_from_slice(&previous.to_le_bytes());
    event[8..12].copy_from_slice(&previous.to_le_bytes());
    event[16..24].copy_from_slice(&state.to_le_bytes());
    event[24..28].copy_from_slice(&next.to_le_bytes());
    let words = u32::try_from(event.len() / 4).unwrap();
    let mut page = time.to_le_bytes().to_vec();
    page.extend((event.len() as u64 + 4).to_le_bytes());
    page.extend(words.to_le_bytes());
    page.extend(event);
    page
}
