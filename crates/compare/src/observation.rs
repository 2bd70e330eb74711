//! What an observed trial says of *why*: its trace, decoded once, with everything a record keeps beside it.
//!
//! An observed trial is the same trial as a timed one, run a second time with tracepoints on. Its record holds the trace in
//! the blob [`TRACE`], what the kernel accounted to each process in the blob [`TASKS`], and when phases began in the blob
//! [`PHASES`]; counters before and after stand in its results, as in every record. [`observe`] reads all of it;
//! [`partner`] finds the observed record that belongs to a timed one, and the other way round.

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

/// All that an observed trial says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Identity of the observed record.
    pub record: String,
    /// From the scenario's start to its end in the observed trial, the observer's cost included.
    pub elapsed: Nanos,
    /// The reclaim statistics, row for row, checked against vmstat.
    pub table: ReclaimTable,
    /// Where the time of each process of the workload went, the main process (that forked the others) first; the parts of
    /// each add up to its own elapsed time. Empty where the record tells of no process.
    pub tasks: Vec<TaskTime>,
    /// The main process's time within the attempts that the scenario times one by one, where it tells of such: what it does
    /// in between, and what others do meanwhile, is not in it.
    #[serde(default)]
    pub attempts: Option<TaskTime>,
    /// Why no stacks tell what tasks slept on; `None` where they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_stacks: Option<String>,
    /// Block I/O by device, with what the same requests would have cost on a disk with seeks.
    pub blocks: BlockSummary,
    /// Phases of the scenario.
    pub phases: Vec<PhaseBegin>,
    /// From the scenario's start to its end in the timed trial, where its record was given.
    pub timed_elapsed: Option<Nanos>,
    /// The observer's effect on vmstat, where the timed record was given: counters that grew differently in the two passes.
    pub effect: Vec<Effect>,
}

/// Why a record has no observation.
#[derive(Debug, thiserror::Error)]
pub enum ObservationError {
    /// It was not observed.
    #[error(
        "record {id} has no trace, for its pass is {pass}: run the same campaign with --observe"
    )]
    NotObserved {
        /// The record.
        id: String,
        /// Its pass.
        pass: Pass,
    },
    /// It was observed, and nothing was traced.
    #[error("the {arena} arena traced nothing")]
    NoTrace {
        /// Where it ran.
        arena: ArenaKind,
    },
    /// Its trace has gaps.
    #[error(
        "at least {events} trace events were lost: shorten the trial, or raise --trace-ring or --trace-limit where it was lowered"
    )]
    LostEvents {
        /// How many, at least.
        events: u64,
    },
    /// A section of the record could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The trace could not be understood.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A list in a blob is no such list.
    #[error(
        "the blob {name} of record {id} cannot be understood ({why}): it was written by another version or is damaged"
    )]
    Blob {
        /// Which blob.
        name: &'static str,
        /// The record.
        id: String,
        /// What is wrong with it.
        why: serde_json::Error,
    },
}

/// Reads and analyses an observed record. With the record of the timed pass of the same trial, the observer's effect is told
/// too. Takes about a second for 20 million events.
pub fn observe(
    reader: &RecordReader,
    timed: Option<&Record>,
) -> Result<Observation, ObservationError> {
    let record = reader.record();
    if !has(record, TRACE) {
        let (pass, arena) = (record.subject.pass, record.subject.arena.kind);
        return Err(match pass {
            Pass::Observed => ObservationError::NoTrace { arena },
            Pass::Timed => ObservationError::NotObserved {
                id: record.id(),
                pass,
            },
        });
    }
    let trace = TraceFile::read(reader.blob(TRACE)?)?;
    let vmstat = vmstat(record);
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
        timed_elapsed: timed.map(|timed| timed.results.elapsed),
        effect,
    })
}

/// Why the stacks of a trace tell nothing.
fn no_stacks(meta: &TraceMeta) -> Option<String> {
    let asked = format!("{}/{}", SLEEP_STACK.system, SLEEP_STACK.name);
    if meta.absent.contains(&asked) {
        return Some("this kernel cannot record stacks (CONFIG_STACKTRACE)".to_owned());
    }
    if !meta.records_stacks() {
        return Some("stacks were not recorded: run it anew with this version".to_owned());
    }
    // Without any sleep there is no function to be named.
    None
}

/// The other pass of the same trial: the newest record of the same subject and seed, observed for a timed one and timed for
/// an observed one. It is a valid one if there is any; the reader of an invalid one says why it explains nothing.
pub fn partner(store: &Store, row: &Row) -> Result<Option<Row>, StoreError> {
    let subject = row.subject();
    let other = |pass, trace_ring| Subject {
        pass,
        trace_ring,
        ..subject.clone()
    };
    let others: Vec<Subject> = match subject.pass {
        // With whatever ring it was observed.
        Pass::Timed => TraceRing::all()
            .map(|ring| other(Pass::Observed, ring))
            .collect(),
        Pass::Observed => vec![other(Pass::Timed, TraceRing::default())],
    };
    let keys: Vec<String> = others.iter().map(Subject::key).collect();
    let rows = store.by_keys(&keys)?;
    // Newest first.
    let valid = rows.iter().position(Row::is_valid).unwrap_or(0);
    Ok(rows.into_iter().nth(valid))
}

/// The observed pass of a record's trial: the record itself, or its partner in the store.
pub fn observed(store: &Store, row: &Row) -> Result<Option<RecordReader>, StoreError> {
    let row = match row.subject().pass {
        Pass::Observed => Some(row.clone()),
        Pass::Timed => partner(store, row)?,
    };
    row.map(|row| store.load(&row.id)).transpose()
}

/// The observation of a record, timed or observed, and of its partner in the store.
pub fn observation(store: &Store, row: &Row) -> Result<Observation, ObservationError> {
    let other = partner(store, row)?;
    let (observed, timed) = match row.subject().pass {
        Pass::Observed => (Some(row.clone()), other),
        Pass::Timed => (other, Some(row.clone())),
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

/// The growth of a record's vmstat counters.
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

/// What counts since boot; levels such as free pages are no effect.
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

/// The workload's processor time, which every scenario measures.
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

/// When each attempt of the series `attempts` was made, on the trace's clock: they tell their begin since that of their pass,
/// whose phase is named after it.
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

/// Series in which a scenario tells of attempts it timed one by one.
const ATTEMPTS: &str = "attempts";
/// What the names of the phases begin with in which it made them.
const PASS: &str = "pass-";

fn has(record: &Record, blob: &str) -> bool {
    record
        .sections
        .iter()
        .any(|section| section.kind == "blob" && section.name == blob)
}

/// A list that a blob holds as JSON; empty where there is no such blob.
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
