//! Imports results from CSV in long form, with one line for each trial and metric.
//!
//! Columns are found by name, in any order. `scenario`, `variant`, `metric` and `value` are required. `seed`, `unit`,
//! `direction`, `primary`, `kernel`, `params`, `memory`, `swap`, `as_written`, `valid`, `missing`, `invalid` and
//! `started` are optional. Trials with equal seeds are pairs. If the user names a column, trials with equal values in
//! that column are pairs instead. If there is no column `seed`, lines are numbered within their scenario, variant and
//! metric; if the user names no column either, there are no pairs. The output of [`crate::csv::samples`] can be
//! imported.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::Path;

use pagetide_quantity::{Direction, Metric, Unit, Value};
use pagetide_record::file::MAX_VALUE;
use pagetide_record::{Invalid, KernelId, Record, Variant};

use super::file::bytes;
use super::{Batch, ImportError, record};
use crate::date;
use crate::draw::clean;

/// Maximum size of a file in bytes.
pub const MAX_BYTES: u64 = 64 << 20;
/// Maximum number of trials in a file. Each trial takes 4 KiB of memory until all trials are stored.
pub const MAX_TRIALS: usize = 200_000;

/// Names of all columns that are read.
const COLUMNS: [&str; 17] = [
    "scenario",
    "variant",
    "metric",
    "value",
    "seed",
    "unit",
    "direction",
    "primary",
    "kernel",
    "params",
    "memory",
    "swap",
    "as_written",
    "valid",
    "missing",
    "invalid",
    "started",
];

/// One line of the file, by column.
struct Line<'a> {
    path: &'a Path,
    number: u64,
    cells: BTreeMap<&'static str, String>,
    /// Value in the column that pairs trials; `None` if the user did not name a column.
    block: Option<String>,
}

impl Line<'_> {
    fn get(&self, column: &'static str) -> &str {
        self.cells.get(column).map_or("", String::as_str)
    }

    fn bad(&self, column: &'static str, wanted: &'static str) -> ImportError {
        ImportError::BadCell {
            path: self.path.to_owned(),
            line: self.number,
            column,
            text: clean(self.get(column), 40, false),
            wanted,
        }
    }

    /// Returns the text in a column. Fails if it is empty.
    fn text(&self, column: &'static str) -> Result<&str, ImportError> {
        match self.get(column) {
            "" => Err(self.bad(column, "a name")),
            text => Ok(text),
        }
    }

    fn flag(&self, column: &'static str, default: bool) -> Result<bool, ImportError> {
        match self.get(column) {
            "" => Ok(default),
            "true" | "yes" | "1" => Ok(true),
            "false" | "no" | "0" => Ok(false),
            _ => Err(self.bad(column, "true or false")),
        }
    }
}

/// True if the first line of a text contains the names of all required columns.
pub(super) fn is_in(text: &str) -> bool {
    let heads = text.lines().next().unwrap_or_default();
    let heads: Vec<&str> = heads
        .split(',')
        .map(|head| head.trim_matches(['"', ' ']))
        .collect();
    ["scenario", "variant", "metric", "value"]
        .iter()
        .all(|name| heads.iter().any(|head| head.eq_ignore_ascii_case(name)))
}

/// Reads a CSV file. Trials are paired by the column `pair`, or by seed if `pair` is `None`.
pub fn import(path: &Path, pair: Option<&str>) -> Result<Batch, ImportError> {
    read(path, bytes(path)?.as_slice(), pair)
}

/// Reads CSV; `path` is used in errors. Trials are paired by the column `pair`, or by seed if `pair` is `None`.
pub fn read(path: &Path, reader: impl Read, pair: Option<&str>) -> Result<Batch, ImportError> {
    read_within(MAX_TRIALS, path, reader, pair)
}

/// Reads CSV with at most `most` trials; see [`read`].
fn read_within(
    most: usize,
    path: &Path,
    reader: impl Read,
    pair: Option<&str>,
) -> Result<Batch, ImportError> {
    let no_csv = |error: csv::Error| ImportError::NoCsv {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(reader);
    let heads = reader.headers().map_err(no_csv)?.clone();
    let place_of = |name: &str| {
        heads
            .iter()
            .position(|head| head.eq_ignore_ascii_case(name))
    };
    let places: BTreeMap<&'static str, usize> = COLUMNS
        .iter()
        .filter_map(|name| Some((*name, place_of(name)?)))
        .collect();
    let no_column = |column: &str| ImportError::NoColumn {
        path: path.to_owned(),
        column: clean(column, 40, false),
    };
    for column in ["scenario", "variant", "metric", "value"] {
        if !places.contains_key(column) {
            return Err(no_column(column));
        }
    }
    let pair_place = match pair {
        Some(name) => Some(place_of(name).ok_or_else(|| no_column(name))?),
        None => None,
    };
    let mut table = Table::default();
    for row in reader.records() {
        let row = row.map_err(no_csv)?;
        let line = Line {
            path,
            number: row.position().map_or(0, csv::Position::line),
            cells: places
                .iter()
                .filter_map(|(name, place)| Some((*name, unquoted(row.get(*place)?))))
                .collect(),
            block: pair_place.map(|place| row.get(place).unwrap_or_default().to_owned()),
        };
        if let (Some(""), Some(column)) = (line.block.as_deref(), pair) {
            return Err(ImportError::NoBlock {
                path: path.to_owned(),
                line: line.number,
                column: clean(column, 40, false),
            });
        }
        table.take(&line)?;
        if table.records.len() > most {
            return Err(ImportError::Beyond {
                what: "trials",
                most,
            });
        }
    }
    if table.records.is_empty() {
        return Err(ImportError::Nothing {
            path: path.to_owned(),
            what: "lines of results",
            remedy: "give a line for each trial and metric below the heads",
        });
    }
    let by_seed = places.contains_key("seed").then_some("seed");
    Ok(Batch {
        records: table.records,
        blocks: table.blocks,
        paired_by: pair.or(by_seed).map(str::to_owned),
        lasting: true,
        first: "the first in the file",
        in_a_row: None,
    })
}

/// Returns the text without the apostrophe that prevents spreadsheets from running it as a formula.
fn unquoted(text: &str) -> String {
    match text.strip_prefix('\'') {
        Some(rest) if rest.starts_with(['=', '+', '-', '@']) => rest.to_owned(),
        _ => text.to_owned(),
    }
}

/// Data of the lines read so far.
#[derive(Default)]
struct Table {
    records: Vec<Record>,
    /// For each record, the key that pairs trials.
    blocks: Vec<String>,
    /// Index of the record of each trial.
    known: BTreeMap<String, usize>,
    /// Metrics that records already have, each with the index of the record.
    metrics: HashSet<(usize, String)>,
    /// Number of lines so far of each metric, by everything that distinguishes trials except the seed. Numbers the
    /// lines of files without seeds.
    runs: BTreeMap<String, u64>,
    /// Number of trials so far in files without seeds, by the columns that distinguish trials; gives them their seeds.
    unseeded: BTreeMap<String, u64>,
}

impl Table {
    /// Adds the value in a line to the record of its trial.
    fn take(&mut self, line: &Line) -> Result<(), ImportError> {
        let (unit, factor) = unit(line)?;
        let direction = match line.get("direction") {
            "" | "lower" => Direction::Lower,
            "higher" => Direction::Higher,
            "neutral" => Direction::Neutral,
            _ => return Err(line.bad("direction", "lower, higher or neutral")),
        };
        let value = value(line, factor)?;
        let place = self.record(line)?;
        let record = &mut self.records[place];
        if !line.flag("valid", true)? && record.is_valid() {
            let why = match line.get("invalid") {
                "" => "the imported file marks this trial as invalid",
                why => why,
            };
            record.results.invalid.push(Invalid::Scenario {
                why: why.to_owned(),
            });
        }
        // An invalid trial without any measurement has a line without a metric.
        if !record.is_valid() && line.get("metric").is_empty() && line.get("value").is_empty() {
            return Ok(());
        }
        let name = line.text("metric")?;
        if !self.metrics.insert((place, name.to_owned())) {
            return Err(ImportError::Twice {
                path: line.path.to_owned(),
                line: line.number,
                metric: clean(name, 40, false),
            });
        }
        record.results.metrics.push(Metric {
            name: name.to_owned(),
            unit,
            direction,
            primary: line.flag("primary", true)?,
            value,
        });
        Ok(())
    }

    /// Returns the index of the record for a line. The first line of a trial creates the record.
    fn record(&mut self, line: &Line) -> Result<usize, ImportError> {
        // All parts that distinguish trials, except the seed.
        let parts = [
            "scenario",
            "variant",
            "kernel",
            "params",
            "memory",
            "swap",
            "as_written",
        ]
        .map(|column| line.get(column));
        let place = serde_json::to_string(&parts).unwrap_or_default();
        let block = line.block.clone();
        let key = if line.cells.contains_key("seed") {
            format!("{place}{}", line.get("seed"))
        } else {
            let of = format!("{place}{block:?}");
            let run = self
                .runs
                .entry(format!("{of}{}", line.get("metric")))
                .or_default();
            *run += 1;
            format!("{of}{run}")
        };
        if let Some(&index) = self.known.get(&key) {
            return Ok(index);
        }
        let seed = if line.cells.contains_key("seed") {
            line.get("seed").parse().map_err(|_| {
                line.bad(
                    "seed",
                    "a whole number, such as 3, as in every line or none",
                )
            })?
        } else {
            let run = self.unseeded.entry(place).or_default();
            *run += 1;
            *run
        };
        self.records.push(start(line, seed)?);
        self.blocks.push(block.unwrap_or_else(|| seed.to_string()));
        let place = self.records.len() - 1;
        self.known.insert(key, place);
        Ok(place)
    }
}

/// Returns the value in a line, multiplied by `factor` to convert it to the unit of the metric; the reason if the value
/// is missing.
fn value(line: &Line, factor: f64) -> Result<Value, ImportError> {
    Ok(match line.get("value") {
        "" if line.get("missing").is_empty() => {
            Value::Absent("no value in the imported file".to_owned())
        }
        "" => Value::Absent(line.get("missing").to_owned()),
        // The number in the metric's unit may be 10⁹ times larger than in the file.
        text => match text.parse::<f64>().map(|value| value * factor) {
            Ok(value) if value.abs() <= MAX_VALUE => Value::Number(value),
            _ => return Err(line.bad("value", "a number of usual size, such as 12.5")),
        },
    })
}

/// Creates the record of a trial from its first line.
fn start(line: &Line, seed: u64) -> Result<Record, ImportError> {
    let variant = Variant {
        name: line.text("variant")?.to_owned(),
        kernel: KernelId {
            release: line.get("kernel").to_owned(),
            ..KernelId::default()
        },
        ..Variant::default()
    };
    let mut record = record("CSV", line.text("scenario")?, variant, seed);
    let subject = &mut record.subject;
    subject.as_written = line.flag("as_written", false)?;
    for pair in line.get("params").split_whitespace() {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| line.bad("params", "pairs, such as pages=25000 refs=2000000"))?;
        subject.params.insert(name.to_owned(), value.to_owned());
    }
    if !line.get("memory").is_empty() {
        subject.memory = line
            .get("memory")
            .parse()
            .map_err(|_| line.bad("memory", "a size, such as 160M or total:160M"))?;
    }
    if !line.get("swap").is_empty() {
        subject.swap = line
            .get("swap")
            .parse()
            .map_err(|_| line.bad("swap", pagetide_record::swap::FORMS))?;
    }
    if !line.get("started").is_empty() {
        record.wall.started = date::parse(line.get("started")).ok_or_else(|| {
            line.bad(
                "started",
                "seconds since 1970 or a date, such as 2026-05-01T12:00:00Z",
            )
        })?;
    }
    "csv".clone_into(&mut record.wall.campaign);
    Ok(record)
}

/// Returns the unit of the metric, and the factor that converts from the unit in the file.
fn unit(line: &Line) -> Result<(Unit, f64), ImportError> {
    Ok(match line.get("unit") {
        "" | "count" => (Unit::Count, 1.0),
        "nanos" | "ns" => (Unit::Nanos, 1.0),
        "us" | "µs" => (Unit::Nanos, 1e3),
        "ms" => (Unit::Nanos, 1e6),
        "s" | "seconds" => (Unit::Nanos, 1e9),
        "bytes" | "B" => (Unit::Bytes, 1.0),
        "KiB" => (Unit::Bytes, 1024.0),
        "MiB" => (Unit::Bytes, 1_048_576.0),
        "GiB" => (Unit::Bytes, 1_073_741_824.0),
        "pages" => (Unit::Pages, 1.0),
        "share" => (Unit::Share, 1.0),
        "%" | "percent" => (Unit::Share, 0.01),
        "bytes-per-second" | "B/s" => (Unit::BytesPerSecond, 1.0),
        "MiB/s" => (Unit::BytesPerSecond, 1_048_576.0),
        "per-second" | "/s" => (Unit::PerSecond, 1.0),
        "ratio" => (Unit::Ratio, 1.0),
        _ => {
            return Err(line.bad(
                "unit",
                "one of ns, us, ms, s, B, KiB, MiB, GiB, pages, count, share, %, B/s, MiB/s, /s, ratio",
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_trials_than_there_is_room_for_are_refused() {
        let read = |most| {
            let text = "scenario,variant,metric,value,seed\na,b,m,1,1\na,b,n,1,1\na,b,m,1,2\n";
            read_within(most, Path::new("x.csv"), text.as_bytes(), None)
        };
        assert_eq!(read(2).unwrap().records.len(), 2);
        let said = read(1).unwrap_err().to_string();
        assert!(said.contains("more than 1 trials"), "{said}");
    }
}
