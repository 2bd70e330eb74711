//! Results as CSV in long form, a line for each trial and metric.
//!
//! Columns by name, in any order: `scenario`, `variant`, `metric` and `value` must be there; `seed`, `unit`, `direction`,
//! `primary`, `kernel`, `params`, `memory`, `swap`, `as_written`, `valid`, `missing` and `invalid` may be. Without a seed, lines are numbered
//! within their scenario, variant and metric. What [`crate::csv::samples`] writes can be read back.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use pagetide_quantity::{Direction, Metric, Unit, Value};
use pagetide_record::{Invalid, KernelId, Record, Variant};

use super::{ImportError, record};
use crate::draw::clean;

/// Columns that may be there.
const COLUMNS: [&str; 16] = [
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
];

/// One line, by column.
struct Line<'a> {
    path: &'a Path,
    number: u64,
    cells: BTreeMap<&'static str, String>,
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

    /// A cell that must not be empty.
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

/// Reads a file.
pub fn import(path: &Path) -> Result<Vec<Record>, ImportError> {
    let file = std::fs::File::open(path).map_err(|source| ImportError::Io {
        path: path.to_owned(),
        source,
    })?;
    read(path, file)
}

/// Reads CSV; `path` is named in errors.
pub fn read(path: &Path, reader: impl Read) -> Result<Vec<Record>, ImportError> {
    let no_csv = |error: csv::Error| ImportError::NoCsv {
        path: path.to_owned(),
        why: error.to_string(),
    };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_reader(reader);
    let heads = reader.headers().map_err(no_csv)?.clone();
    let places: BTreeMap<&'static str, usize> = COLUMNS
        .iter()
        .filter_map(|name| {
            let place = heads
                .iter()
                .position(|head| head.eq_ignore_ascii_case(name))?;
            Some((*name, place))
        })
        .collect();
    for column in ["scenario", "variant", "metric", "value"] {
        if !places.contains_key(column) {
            return Err(ImportError::NoColumn {
                path: path.to_owned(),
                column,
            });
        }
    }
    let mut records: Vec<Record> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut runs: BTreeMap<String, u64> = BTreeMap::new();
    for row in reader.records() {
        let row = row.map_err(no_csv)?;
        let line = Line {
            path,
            number: row.position().map_or(0, csv::Position::line),
            cells: places
                .iter()
                .filter_map(|(name, place)| Some((*name, unquoted(row.get(*place)?))))
                .collect(),
        };
        take(&line, &mut records, &mut known, &mut runs)?;
    }
    if records.is_empty() {
        return Err(ImportError::Nothing {
            path: path.to_owned(),
            what: "lines of results",
            remedy: "give a line for each trial and metric below the heads",
        });
    }
    Ok(records)
}

/// The text behind the apostrophe that keeps spreadsheets from running it.
fn unquoted(text: &str) -> String {
    match text.strip_prefix('\'') {
        Some(rest) if rest.starts_with(['=', '+', '-', '@']) => rest.to_owned(),
        _ => text.to_owned(),
    }
}

/// Adds a line's value to its record.
fn take(
    line: &Line,
    records: &mut Vec<Record>,
    known: &mut BTreeMap<String, usize>,
    runs: &mut BTreeMap<String, u64>,
) -> Result<(), ImportError> {
    let (unit, factor) = unit(line)?;
    let direction = match line.get("direction") {
        "" | "lower" => Direction::Lower,
        "higher" => Direction::Higher,
        "neutral" => Direction::Neutral,
        _ => return Err(line.bad("direction", "lower, higher or neutral")),
    };
    let value = match line.get("value") {
        "" if line.get("missing").is_empty() => {
            Value::Absent("no value in the imported file".to_owned())
        }
        "" => Value::Absent(line.get("missing").to_owned()),
        text => match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Value::Number(value * factor),
            _ => return Err(line.bad("value", "a number, such as 12.5")),
        },
    };
    // Everything that tells one trial from another, but for the seed.
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
    let seed = match line.get("seed") {
        "" => {
            let run = runs
                .entry(format!("{place}{}", line.get("metric")))
                .or_default();
            *run += 1;
            *run
        }
        text => text
            .parse()
            .map_err(|_| line.bad("seed", "a whole number, such as 3"))?,
    };
    let key = format!("{place}{seed}");
    let index = if let Some(index) = known.get(&key) {
        *index
    } else {
        records.push(start(line, seed)?);
        known.insert(key, records.len() - 1);
        records.len() - 1
    };
    let Some(record) = records.get_mut(index) else {
        return Ok(());
    };
    if !line.flag("valid", true)? && record.is_valid() {
        let why = match line.get("invalid") {
            "" => "the imported file marks this trial as invalid",
            why => why,
        };
        record.results.invalid.push(Invalid::Scenario {
            why: why.to_owned(),
        });
    }
    // An invalid trial that measured nothing has a line all the same.
    if !record.is_valid() && line.get("metric").is_empty() && line.get("value").is_empty() {
        return Ok(());
    }
    let name = line.text("metric")?;
    if record.metric(name).is_some() {
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

/// A record for the trial a line is the first of.
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
            .map_err(|_| line.bad("swap", "zram, ssd, ssd:80us or none"))?;
    }
    "csv".clone_into(&mut record.wall.campaign);
    Ok(record)
}

/// The unit, and the factor to it from the one the file has.
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
