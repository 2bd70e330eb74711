//! Imports results of hyperfine from files made by `--export-json`.
//!
//! Every number in `times` is one run. `user`, `system` and other means over all runs of a command are not read. If
//! there is only one file and the user named no variant, its commands are variants of one workload. Otherwise each file
//! is a variant and its commands are workloads. hyperfine completes all runs of a command before the next command, so
//! the variants in a file did not take turns.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_quantity::{Direction, Unit};
use pagetide_record::Invalid;
use serde::Deserialize;

use super::ImportError;
use super::file::Text;
use super::run::{Known, Run, push};

/// Wall-clock time of a run, in seconds in the file.
const TIME: Known = Known::new("times", "time", Unit::Nanos, 1e9, Direction::Lower).primary();
/// Peak memory of a run in bytes; written since hyperfine 1.19.
const MEMORY: Known = Known::new(
    "memory_usage_byte",
    "peak-memory",
    Unit::Bytes,
    1.0,
    Direction::Lower,
);

/// Content of a file.
#[derive(Deserialize)]
struct Export {
    results: Vec<Command>,
}

/// A command with its runs.
#[derive(Deserialize)]
struct Command {
    #[serde(rename = "command")]
    line: String,
    times: Vec<f64>,
    #[serde(default)]
    exit_codes: Vec<Option<i64>>,
    #[serde(default)]
    memory_usage_byte: Vec<f64>,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
}

/// True if a text looks like a file of this format.
pub(super) fn is_in(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && text.contains("\"results\"")
        && text.contains("\"command\"")
}

/// Reads the runs in a file. If `is_alone`, its commands are the variants.
pub(super) fn read(file: &Text<'_>, is_alone: bool) -> Result<Vec<Run>, ImportError> {
    let export: Export = serde_json::from_str(&file.content).map_err(|why| file.bad(0, why))?;
    let mut runs = Vec::new();
    let mut seen = BTreeSet::new();
    for command in export.results {
        let name = (command.line.clone(), command.parameters.clone());
        if !seen.insert(name) {
            let why = format_args!("the command `{}` is there twice", command.line);
            return Err(file.bad(0, why));
        }
        if command.times.is_empty() {
            return Err(file.bad(
                0,
                format_args!("the command `{}` has no times", command.line),
            ));
        }
        for (place, time) in command.times.iter().enumerate() {
            let mut run = Run::of("hyperfine");
            if is_alone {
                run.variant.clone_from(&command.line);
            } else {
                run.params.clone_from(&command.parameters);
                run.params
                    .insert("command".to_owned(), command.line.clone());
            }
            if *time < 0.0 {
                return Err(file.bad(0, format_args!("a time of `{}` is negative", command.line)));
            }
            run.add(file, 0, &TIME, *time)?;
            if command.memory_usage_byte.len() == command.times.len() {
                run.add(file, 0, &MEMORY, command.memory_usage_byte[place])?;
            }
            if let Some(code) = command.exit_codes.get(place)
                && *code != Some(0)
            {
                run.invalid.push(Invalid::ProcessDied {
                    process: command.line.clone(),
                    how: code
                        .map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}")),
                });
            }
            push(file, &mut runs, run)?;
        }
    }
    if runs.is_empty() {
        return Err(file.bad(0, "it has no commands"));
    }
    Ok(runs)
}
