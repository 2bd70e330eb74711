//! Content of an observed trial: the decoded trace, and everything else in the record that explanations need.
//!
//! An observed trial repeats a timed one with tracepoints enabled. Its record holds the trace in the blob [`TRACE`],
//! the kernel's accounting for each process in the blob [`TASKS`], and the start times of phases in the blob
//! [`PHASES`]. As in every record, the results hold the counters before and after the trial. [`observe`] reads these
//! data. [`partner`] finds the observed record for a timed one, and the timed record for an observed one.

use pagetide_probe::ProbeError;
use pagetide_probe::block::{BlockSummary, DiskModel, summarise};
use pagetide_probe::meaning::{
    CpuTimes, ReclaimTable, TaskAccounting, TaskTime, analyse, attribute, attribute_within,
};
pub use pagetide_probe::observed::{PHASES, PhaseBegin, TASKS, TRACE};
use pagetide_probe::text::{Effect, Kind, Source, observer_effect};
use pagetide_probe::trace::{SLEEP_STACK, TraceFile, TraceMeta};
use pagetide_quantity::{Nanos, floor};
use pagetide_record::file::FileError;
use pagetide_record::{ArenaKind, Pass, Record, RecordReader, Subject, TraceRing};
use pagetide_store::Row;
use pagetide_store::{Store, StoreError};
use pagetide_system::Delta;
use serde::{Deserialize, Serialize};

/// All information from an observed trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// ID of the observed record.
    pub record: String,
    /// Time from the scenario's start to its end in the observed trial, including the cost of tracing.
    pub elapsed: Nanos,
    /// Rows of the reclaim statistics, checked against vmstat; not checked in the host arena.
    pub table: ReclaimTable,
    /// Time of each process of the workload by part, starting with the main process (which forked the others). The
    /// parts of a process add up to its elapsed time. Empty if the record has no process.
    pub tasks: Vec<TaskTime>,
    /// Time of the main process during attempts, the operations that the scenario times one by one. Time between
    /// attempts and time of other processes is not included. `None` if there are no attempts.
    #[serde(default)]
    pub attempts: Option<TaskTime>,
    /// Why the trace has no stacks for sleeps; `None` if it has stacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_stacks: Option<String>,
    /// Block I/O by device, and the estimated time of the same requests on a disk with seek times.
    pub blocks: BlockSummary,
    /// Phases of the scenario, with their start times on the clock of the trace.
    pub phases: Vec<PhaseBegin>,
    /// Time of the first event of the trace, on the same clock. The times of the record's series of counters start here.
    #[serde(default)]
    pub begin: Nanos,
    /// Time from the scenario's start to its end in the timed trial; `None` if no timed record was given.
    pub timed_elapsed: Option<Nanos>,
    /// Effect of tracing on vmstat: counters that grew differently in the observed and the timed pass. Empty if the
    /// timed record was not given, and in the host arena.
    pub effect: Vec<Effect>,
}

/// Why a record cannot be analysed as an observation.
#[derive(Debug, thiserror::Error)]
pub enum ObservationError {
    /// The record is of a timed or profiled pass, which has no trace.
    #[error(
        "record {id} has no trace, for its pass is {pass}: run the same campaign with --observe"
    )]
    NotObserved {
        /// ID of the record.
        id: String,
        /// Pass of the record.
        pass: Pass,
    },
    /// The pass was observed, but there is no trace.
    #[error("the {arena} arena traced nothing")]
    NoTrace {
        /// The arena of the trial.
        arena: ArenaKind,
    },
    /// Trace events were lost.
    #[error(
        "at least {events} trace events were lost: shorten the trial, or raise --trace-ring or --trace-limit where it was lowered"
    )]
    LostEvents {
        /// Number of lost events; there may be more.
        events: u64,
    },
    /// A section of the record could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The trace cannot be parsed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A store operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A blob is not a list in JSON.
    #[error(
        "the blob {name} of record {id} cannot be understood ({why}): it was written by another version or is damaged"
    )]
    Blob {
        /// Name of the blob.
        name: &'static str,
        /// ID of the record.
        id: String,
        /// The parser's error.
        why: serde_json::Error,
    },
}

/// Reads and analyses an observed record. `timed` is the record of the timed pass of the same trial; if given, the
/// effect of tracing is included. Takes about a second for 20 million events.
pub fn observe(
    reader: &RecordReader,
    timed: Option<&Record>,
) -> Result<Observation, ObservationError> {
    let record = reader.record();
    if !has(record, TRACE) {
        let (pass, arena) = (record.subject.pass, record.subject.arena.kind);
        return Err(match pass {
            Pass::Observed => ObservationError::NoTrace { arena },
            Pass::Timed | Pass::Profiled => ObservationError::NotObserved {
                id: record.id(),
                pass,
            },
        });
    }
    let trace = TraceFile::read(reader.blob(TRACE)?)?;
    // In the host arena, the trace covers only the workload, but vmstat counts what all processes of the machine do.
    let is_alone = |record: &&Record| record.subject.arena.kind != ArenaKind::Host;
    let vmstat = Some(record).filter(is_alone).and_then(self::vmstat);
    let accounting: Vec<TaskAccounting> = list(reader, TASKS)?;
    let table = analyse(&trace, vmstat.as_ref(), cpu_times(record))?;
    let mut tasks = attribute(&trace, &accounting)?;
    let place = |pid: u32| accounting.iter().position(|task| task.pid == pid);
    tasks.sort_by_key(|task| place(task.pid));
    let effect = match (timed.and_then(self::vmstat), &vmstat) {
        (Some(timed), Some(observed)) => observer_effect(&growing(&timed), &growing(observed)),
        _ => Vec::new(),
    };
    let phases = list(reader, PHASES)?;
    let attempts = match (accounting.first(), windows(reader, &phases)) {
        (Some(main), Some(windows)) => Some(attribute_within(&trace, main.pid, &windows)?),
        _ => None,
    };
    Ok(Observation {
        record: record.id(),
        elapsed: record.results.elapsed,
        table,
        tasks,
        attempts,
        no_stacks: no_stacks(&trace.meta),
        blocks: summarise(&trace, DiskModel::barracuda_2009())?,
        phases,
        begin: Nanos(trace.events().next().map_or(0, |event| event.time)),
        timed_elapsed: timed.map(|timed| timed.results.elapsed),
        effect,
    })
}

/// Returns the reason why a trace has no stacks for sleeps; `None` if it has stacks.
fn no_stacks(meta: &TraceMeta) -> Option<String> {
    let asked = format!("{}/{}", SLEEP_STACK.system, SLEEP_STACK.name);
    if meta.absent.contains(&asked) {
        return Some("this kernel cannot record stacks (CONFIG_STACKTRACE)".to_owned());
    }
    if !meta.records_stacks() {
        return Some("stacks were not recorded: run it anew with this version".to_owned());
    }
    // If no task slept, there is no function to name.
    None
}

/// Returns the record of the other pass of the same trial: the observed one for a timed record, the timed one for an
/// observed or profiled record. The newest valid record is preferred, then the newest invalid one; `None` if the store
/// has none.
pub fn partner(store: &Store, row: &Row) -> Result<Option<Row>, StoreError> {
    let subject = row.subject();
    let other = |pass, trace_ring| Subject {
        pass,
        trace_ring,
        ..subject.clone()
    };
    let others: Vec<Subject> = match subject.pass {
        // The observed pass may have been made with a trace ring of any size.
        Pass::Timed => TraceRing::all()
            .map(|ring| other(Pass::Observed, ring))
            .collect(),
        Pass::Observed | Pass::Profiled => vec![other(Pass::Timed, TraceRing::default())],
    };
    let keys: Vec<String> = others.iter().map(Subject::key).collect();
    let rows = store.by_keys(&keys)?;
    // Rows are sorted newest first.
    let valid = rows.iter().position(Row::is_valid).unwrap_or(0);
    Ok(rows.into_iter().nth(valid))
}

/// Returns the observed pass of a record's trial: the record itself, or its partner in the store. `None` if the trial
/// was not observed.
pub fn observed(store: &Store, row: &Row) -> Result<Option<RecordReader>, StoreError> {
    let row = match row.subject().pass {
        Pass::Observed => Some(row.clone()),
        Pass::Timed => partner(store, row)?,
        Pass::Profiled => match partner(store, row)? {
            Some(timed) => partner(store, &timed)?,
            None => None,
        },
    };
    row.map(|row| store.load(&row.id)).transpose()
}

/// Analyses the observed pass of a trial together with its timed pass. `row` may be the record of any pass of the
/// trial; the others are looked up in the store. Without a timed record, the effect of tracing is missing.
pub fn observation(store: &Store, row: &Row) -> Result<Observation, ObservationError> {
    let other = partner(store, row)?;
    let (observed, timed) = match row.subject().pass {
        Pass::Observed => (Some(row.clone()), other),
        Pass::Timed => (other, Some(row.clone())),
        Pass::Profiled => match &other {
            Some(timed) => (partner(store, timed)?, other),
            None => (None, None),
        },
    };
    let Some(observed) = observed else {
        return Err(ObservationError::NotObserved {
            id: row.id.clone(),
            pass: Pass::Timed,
        });
    };
    let reader = store.load(&observed.id)?;
    let timed = timed
        .map(|timed| store.load(&timed.id))
        .transpose()?
        .map(RecordReader::into_record);
    observe(&reader, timed.as_ref())
}

/// Returns the growth of the vmstat counters over a record's trial; `None` if the record has no such counters.
pub fn vmstat(record: &Record) -> Option<Delta> {
    let counters = record.results.counters.get("vmstat")?;
    let growth = |[before, after]: &[u64; 2]| after.wrapping_sub(*before).cast_signed();
    Some(
        counters
            .values
            .iter()
            .map(|(name, pair)| (name.as_str(), growth(pair)))
            .collect(),
    )
}

/// Returns only the counters that never fall while the kernel runs. Levels such as free pages say nothing about the
/// effect of tracing.
fn growing(delta: &Delta) -> Delta {
    let known = |key| Source::named("vmstat").and_then(|source| source.key(key));
    delta
        .iter()
        .filter(|(key, _)| match known(key) {
            Some(known) => known.kind == Kind::Counter,
            None => !key.starts_with("nr_"),
        })
        .collect()
}

/// Returns the processor time of the workload, which every scenario measures; `None` if the record lacks it.
fn cpu_times(record: &Record) -> Option<CpuTimes> {
    let time = |name: &str| {
        let value = record.metric(name)?.value.number()?;
        Some(Nanos(floor(value)))
    };
    Some(CpuTimes {
        user: time("user")?,
        system: time("system")?,
        elapsed: record.results.elapsed,
    })
}

/// Returns the start and end of each row of the series `attempts`, on the trace's clock. The series states start times
/// relative to the start of the phase that the row belongs to. `None` if there is no such series.
fn windows(reader: &RecordReader, phases: &[PhaseBegin]) -> Option<Vec<[Nanos; 2]>> {
    let attempts = reader.series(ATTEMPTS).ok()?;
    let passes: Vec<Nanos> = phases
        .iter()
        .filter(|phase| phase.name.starts_with(PASS))
        .map(|phase| phase.begin)
        .collect();
    let column = |name: &str| attempts.column(name);
    let (pass, begin, latency) = (column("pass")?, column("begin")?, column("latency")?);
    (0..attempts.rows())
        .map(|row| {
            let pass = usize::try_from(floor(pass.get(row)?)).ok()?;
            let begin = passes
                .get(pass)?
                .saturating_add(Nanos(floor(begin.get(row)?)));
            Some([begin, begin.saturating_add(Nanos(floor(latency.get(row)?)))])
        })
        .collect()
}

/// Name of the series that lists the attempts, the operations that a scenario times one by one.
const ATTEMPTS: &str = "attempts";
/// Prefix of the names of phases that contain individually timed attempts.
const PASS: &str = "pass-";

fn has(record: &Record, blob: &str) -> bool {
    record
        .sections
        .iter()
        .any(|section| section.kind == "blob" && section.name == blob)
}

/// Parses a blob that contains a list in JSON; returns an empty list if the blob does not exist.
fn list<T: for<'a> Deserialize<'a>>(
    reader: &RecordReader,
    name: &'static str,
) -> Result<Vec<T>, ObservationError> {
    if !has(reader.record(), name) {
        return Ok(Vec::new());
    }
    serde_json::from_reader(reader.blob(name)?).map_err(|why| ObservationError::Blob {
        name,
        id: reader.record().id(),
        why,
    })
}
