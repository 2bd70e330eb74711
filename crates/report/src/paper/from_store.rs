//! Reads from the store the data that the papers' tables need in addition to the comparison.

use pagetide_compare::observation::partner;
use pagetide_compare::{Cell, Comparison, ObservationError, observation};
use pagetide_quantity::command::command;
use pagetide_quantity::{ColumnData, Nanos};
use pagetide_record::{FileError, RecordReader};
use pagetide_store::{Row, Store, StoreError, short};

use super::extras::{CellColumn, CpuTime, Extras, ProcessTimes};
use super::graphs::{self, RunData};
use super::kind::Paper;
use super::vmregress;
use crate::about;
use crate::terminal::show::presence;

/// Returns the processor time of all processes of a trial, from the series `usage` of its record; `None` if the record
/// has no such series.
pub fn cpu_time(reader: &RecordReader) -> Result<Option<CpuTime>, FileError> {
    if !reader.series_names().any(|name| name == "usage") {
        return Ok(None);
    }
    let usage = reader.series("usage")?;
    let sum = |name: &str| match usage.column(name) {
        Some(ColumnData::Int(times)) => Nanos(
            times
                .iter()
                .filter_map(|time| u64::try_from(*time).ok())
                .fold(0, u64::saturating_add),
        ),
        _ => Nanos(0),
    };
    Ok(Some(CpuTime {
        user: sum("user"),
        system: sum("system"),
    }))
}

/// Sums for one process: nanoseconds and number of operations, separately for reads and writes.
#[derive(Clone, Copy, Default)]
struct Sums {
    read: (f64, f64),
    write: (f64, f64),
}

/// Adds the values in a trial's series `processes` to the sums of each process.
fn add_processes(reader: &RecordReader, sums: &mut Vec<Sums>) -> Result<(), FileError> {
    if !reader.series_names().any(|name| name == "processes") {
        return Ok(());
    }
    let series = reader.series("processes")?;
    let get = |name: &str, row: usize| series.column(name).and_then(|column| column.get(row));
    for row in 0..series.rows() {
        let (Some(process), Some(is_read), Some(time)) =
            (get("process", row), get("is-read", row), get("time", row))
        else {
            continue;
        };
        // The scenario writes integers from 0; the cast saturates for any other value in a damaged record.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let process = (process as usize).min(MAX_PROCESSES);
        if sums.len() <= process {
            sums.resize(process + 1, Sums::default());
        }
        let sum = &mut sums[process];
        let (nanos, count) = if is_read > 0.5 {
            &mut sum.read
        } else {
            &mut sum.write
        };
        *nanos += time;
        *count += 1.0;
    }
    Ok(())
}

/// Maximum index of a process. Processes with higher indices are added to this one.
const MAX_PROCESSES: usize = 4096;

/// Reads from the store the data that the papers' tables need in addition to the comparison.
pub(crate) fn of_store(store: &Store, comparison: &Comparison) -> Result<Extras, ExtrasError> {
    let mut extras = Extras::default();
    for (cell, group) in comparison.cells.iter().enumerate() {
        let paper = Paper::of(&about::subject(group).scenario);
        for (column, side) in group.sides.iter().enumerate() {
            let place = (cell, column);
            let mut sums = Vec::new();
            for trial in &side.trials {
                let reader = store.load(&trial.record)?;
                if let Some(time) = cpu_time(&reader)? {
                    extras.cpu.entry(place).or_default().push(time);
                }
                let elapsed = reader.record().results.elapsed;
                extras.elapsed.entry(place).or_default().push(elapsed);
                if paper == Some(Paper::Swapbench) {
                    add_processes(&reader, &mut sums)?;
                }
            }
            if !sums.is_empty() {
                let mean = |(nanos, count): (f64, f64)| (count > 0.0).then(|| nanos / count);
                let processes = sums.iter().map(|sum| ProcessTimes {
                    read: mean(sum.read),
                    write: mean(sum.write),
                });
                extras.processes.insert(place, processes.collect());
            }
            if paper == Some(Paper::Highalloc) {
                observed(store, place, group, &mut extras)?;
            }
        }
    }
    if let Some(cell) = vmregress::telling(comparison) {
        extras.report = report(store, &comparison.cells[cell])?;
    }
    Ok(extras)
}

/// Adds the reclaim table of a column to `extras`: of the first observed trial that can be read. If observed trials
/// cannot be read, adds the reason of the last one. Adds no reason if no trial was observed.
fn observed(
    store: &Store,
    place: CellColumn,
    cell: &Cell,
    extras: &mut Extras,
) -> Result<(), ExtrasError> {
    let trials = cell.sides.get(place.1).map_or(&[][..], |side| &side.trials);
    for trial in trials {
        match observation(store, &store.find(&trial.record)?) {
            Ok(seen) => {
                extras.reclaim.insert(place, seen.table);
                return Ok(());
            }
            Err(ObservationError::NotObserved { .. }) => {}
            Err(ObservationError::LostEvents { .. }) => {
                extras.no_reclaim.insert(place, "lost");
            }
            Err(ObservationError::Store(why)) => return Err(why.into()),
            Err(_) => {
                extras.no_reclaim.insert(place, "unreadable");
            }
        }
    }
    Ok(())
}

/// Returns a report on the first valid trial of a cell, in the form that VM Regress prints, with graphs. `None` if the
/// cell has no valid trial.
fn report(store: &Store, cell: &Cell) -> Result<Option<String>, ExtrasError> {
    let Some(first) = cell.sides.iter().find_map(|side| side.trials.first()) else {
        return Ok(None);
    };
    let reader = store.load(&first.record)?;
    let maps = presence(&reader)?;
    let last = maps.last().map_or(&[][..], std::slice::from_ref);
    let id = short(&first.record);
    let text = vmregress::report(reader.record(), last);
    let graphs = graphs::graphs(&run_data(store, &reader, &first.record)?);
    Ok(Some(format!(
        "{text}{graphs}\nThe same in detail, on a page: {}\n",
        command(&["report", id, "-o", "run.html"])
    )))
}

/// Reads the data for the graphs of one run.
fn run_data(store: &Store, reader: &RecordReader, record: &str) -> Result<RunData, ExtrasError> {
    let mut data = RunData::default();
    let mut sections = reader.record().sections.iter();
    let log = sections.find(|section| section.kind == "blob" && section.name == LOG);
    if let Some(log) = log {
        let accesses = graphs::accesses(reader.blob(LOG)?, log.size.0 / 8);
        data.accesses = accesses.map_err(|source| ExtrasError::Log {
            record: record.to_owned(),
            source,
        })?;
    }
    let states = reader
        .series_names()
        .filter(|name| name.starts_with("pages-"));
    if let Some(name) = states.last() {
        data.pages = graphs::pages(&reader.series(name)?).unwrap_or_default();
    }
    let observed = partner(store, &store.find(record)?)?.filter(Row::is_valid);
    if let Some(observed) = observed {
        let observed = store.load(&observed.id)?;
        if observed.series_names().any(|name| name == "vmstat") {
            data.vmstat = Some(observed.series("vmstat")?);
        }
    }
    Ok(data)
}

/// Name of the section with the log of accesses.
const LOG: &str = "access-log";

/// Reason why the additional data of the papers' tables cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ExtrasError {
    /// A store operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The log of accesses of a record cannot be read.
    #[error("the log of accesses of record {record} cannot be read ({source}): run the trial anew")]
    Log {
        /// ID of the record whose log cannot be read.
        record: String,
        /// Error of reading the log.
        source: std::io::Error,
    },
}
