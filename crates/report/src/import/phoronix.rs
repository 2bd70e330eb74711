//! Imports results of the Phoronix Test Suite from `composite.xml` of a saved result.
//!
//! A `Result` is one test with its arguments, which becomes a workload. An `Entry` contains the values that one
//! `System` measured; the system becomes a variant. `RawString` contains the values of all repetitions, separated by
//! colons. Without it, `Value` is the only value. `Proportion` is `HIB` if more is better and `LIB` if less is better.
//! `Scale` is the unit. Charts over time are skipped.
//!
//! The repetitions of a system follow each other, so the variants did not take turns. The `TimeStamp` of a system has
//! no time zone and is taken as UTC, which keeps the order of results of one machine.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_quantity::{Direction, Nanos, Unit};
use pagetide_record::Invalid;

use super::ImportError;
use super::file::Text;
use super::run::{Known, Run, push};
use super::xml::{Piece, Reader, plain};
use crate::date;

/// Scales with a known unit, each with the metric's name. For other scales, the scale is the metric's name, and there
/// is no unit.
const SCALES: [Known; 16] = [
    scale("Seconds", "time", Unit::Nanos, 1e9),
    scale("Second", "time", Unit::Nanos, 1e9),
    scale("Milliseconds", "time", Unit::Nanos, 1e6),
    scale("ms", "time", Unit::Nanos, 1e6),
    scale("Microseconds", "time", Unit::Nanos, 1e3),
    scale("us", "time", Unit::Nanos, 1e3),
    scale("Nanoseconds", "time", Unit::Nanos, 1.0),
    scale("ns", "time", Unit::Nanos, 1.0),
    scale("GB/s", "bandwidth", Unit::BytesPerSecond, 1e9),
    scale("MB/s", "bandwidth", Unit::BytesPerSecond, 1e6),
    scale("KB/s", "bandwidth", Unit::BytesPerSecond, 1e3),
    scale("MiB/s", "bandwidth", Unit::BytesPerSecond, 1_048_576.0),
    scale("GiB/s", "bandwidth", Unit::BytesPerSecond, 1_073_741_824.0),
    scale("Requests Per Second", "requests", Unit::PerSecond, 1.0),
    scale("Operations Per Second", "operations", Unit::PerSecond, 1.0),
    scale("Frames Per Second", "frames", Unit::PerSecond, 1.0),
];

const fn scale(key: &'static str, name: &'static str, unit: Unit, factor: f64) -> Known {
    Known::new(key, name, unit, factor, Direction::Neutral).primary()
}

/// An element that is being read.
#[derive(Default)]
struct Element {
    /// Text of each child element by its name.
    fields: BTreeMap<String, String>,
}

impl Element {
    fn get(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }
}

/// True if a text looks like a file of this format.
pub(super) fn is_in(text: &str) -> bool {
    text.trim_start().starts_with('<')
        && text.contains("<PhoronixTestSuite>")
        && text.contains("<Generated>")
}

/// Reads the runs in a file.
pub(super) fn read(file: &Text<'_>) -> Result<Vec<Run>, ImportError> {
    let mut reader = Reader::new(&file.content);
    let mut path: Vec<&str> = Vec::new();
    let mut text = String::new();
    let (mut system, mut result, mut entry) =
        (Element::default(), Element::default(), Element::default());
    let mut systems: BTreeMap<String, Nanos> = BTreeMap::new();
    let mut entries: Vec<Element> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut runs = Vec::new();
    let (mut line, mut left) = (1, file.content.as_str());
    loop {
        let piece = reader.next().map_err(|why| file.bad(line, why))?;
        let rest = reader.rest();
        line += left[..left.len() - rest.len()].matches('\n').count();
        left = rest;
        match piece {
            None => break,
            Some(Piece::Begin(name)) => {
                path.push(name);
                text.clear();
                match &*path {
                    [_, "System"] => system = Element::default(),
                    [_, "Result"] => {
                        result = Element::default();
                        entries.clear();
                    }
                    [_, "Result", "Data", "Entry"] => entry = Element::default(),
                    _ => {}
                }
            }
            Some(Piece::Text(piece)) => {
                text.push_str(&plain(piece).map_err(|why| file.bad(line, why))?);
            }
            Some(Piece::End) => {
                let element = match &*path {
                    [_, "System", _] => Some(&mut system),
                    [_, "Result", _] => Some(&mut result),
                    [_, "Result", "Data", "Entry", _] => Some(&mut entry),
                    _ => None,
                };
                if let (Some(element), Some(name)) = (element, path.last()) {
                    let value = text.trim().to_owned();
                    if element.fields.insert((*name).to_owned(), value).is_some() {
                        return Err(file.bad(line, format_args!("`{name}` is there twice")));
                    }
                }
                match &*path {
                    [_, "System"] => {
                        let started = date::parse(system.get("TimeStamp")).unwrap_or_default();
                        systems.insert(system.get("Identifier").to_owned(), started);
                    }
                    [_, "Result", "Data", "Entry"] => entries.push(std::mem::take(&mut entry)),
                    [_, "Result"] => {
                        add(file, line, &result, &entries, &mut seen, &mut runs)?;
                    }
                    _ => {}
                }
                path.pop();
                text.clear();
            }
        }
    }
    if runs.is_empty() {
        return Err(file.bad(0, "it has no results"));
    }
    for run in &mut runs {
        run.started = systems.get(&run.variant).copied().unwrap_or_default();
    }
    Ok(runs)
}

/// Adds the runs of one `Result`.
fn add(
    file: &Text<'_>,
    line: usize,
    result: &Element,
    entries: &[Element],
    seen: &mut BTreeSet<[String; 4]>,
    runs: &mut Vec<Run>,
) -> Result<(), ImportError> {
    // Skips charts over time, images, and tests that pass or fail.
    if !matches!(
        result.get("DisplayFormat"),
        "" | "BAR_GRAPH" | "HORIZONTAL_BAR_GRAPH"
    ) {
        return Ok(());
    }
    let (test, own) = (result.get("Identifier"), result.get("Scale"));
    if test.is_empty() || own.is_empty() {
        return Err(file.bad(line, "a result has no `Identifier` or no `Scale`"));
    }
    let mut known = Known::find(&SCALES, own).unwrap_or_else(|| scale("", "", Unit::Ratio, 1.0));
    known.direction = match result.get("Proportion") {
        "LIB" => Direction::Lower,
        "HIB" => Direction::Higher,
        "" => Direction::Neutral,
        other => {
            return Err(file.bad(
                line,
                format_args!("the proportion `{other}` is neither HIB nor LIB"),
            ));
        }
    };
    let name = if known.name.is_empty() {
        own
    } else {
        known.name
    };
    let describe = [
        test,
        result.get("Arguments"),
        result.get("Description"),
        own,
    ];
    for entry in entries {
        let variant = entry.get("Identifier");
        let mut key = describe.map(str::to_owned);
        key[3] = format!("{own} of {variant}");
        if variant.is_empty() || !seen.insert(key) {
            return Err(file.bad(
                line,
                format_args!("{test} has a system without a name or the system `{variant}` twice"),
            ));
        }
        let raw = match entry.get("RawString") {
            "" => entry.get("Value"),
            raw => raw,
        };
        for number in raw.split(':') {
            let mut run = Run::of(test);
            variant.clone_into(&mut run.variant);
            for (key, value) in [("arguments", describe[1]), ("description", describe[2])] {
                if !value.is_empty() {
                    run.params.insert(key.to_owned(), value.to_owned());
                }
            }
            // Values with a different scale belong to a different workload.
            run.params.insert("scale".to_owned(), own.to_owned());
            if number.is_empty() {
                run.invalid.push(Invalid::Scenario {
                    why: "the test gave no result".to_owned(),
                });
            } else {
                let number = file.number(line, test, number)?;
                run.add_as(file, line, &known, name, number)?;
            }
            push(file, runs, run)?;
        }
    }
    Ok(())
}
