//! Reads `[[program]]`: a user's own program in a campaign file.

use toml::de::DeValue;

use super::defaults::FileDefaults;
use super::error::FileError;
use super::table::{Item, Table};
use super::vocabulary::Vocabulary;
use crate::campaign::ScenarioSpec;
use crate::program::{BesideLimits, OwnProgram, PROGRAM, ProgramFiles, ProgramSpec};

/// Converts a `[[program]]` table to a scenario. Does not look for the program's files yet.
pub fn program(
    table: &Table<'_>,
    shared: &FileDefaults,
    vocabulary: &Vocabulary,
) -> Result<ScenarioSpec, FileError> {
    let own = FileDefaults::read(table, shared.share)?;
    let files = ProgramFiles {
        command: command(&table.need("command", "command = \"sort numbers\"")?, table)?,
        server: match table.get("server") {
            Some(item) => command(&item, table)?,
            None => Vec::new(),
        },
        beside: match table.get("beside") {
            Some(item) => command(&item, table)?,
            None => Vec::new(),
        },
        root: table.text("root", "a folder, a tar archive or deb:PACKAGE in quotes")?,
        files: table.texts("file", "a path in quotes, or a list of them")?,
        dirs: table.texts("dir", "a path in quotes, or a list of them")?,
        input: table.text("input", "a path in quotes")?,
        folder: table.text("folder", "a path inside in quotes")?,
        space: table.parsed("space", "a size such as \"64M\"")?,
    };
    let spec = ProgramSpec {
        env: environment(table)?,
        ready: table.text("ready", "'port N', 'line REGEX' or 'file PATH'")?,
        expect_exit: match table.get("expect-exit") {
            Some(item) => u8::try_from(item.whole(0..=255)?).ok(),
            None => None,
        },
        time_limit: table.parsed("time-limit", "a time such as \"60s\"")?,
        limit: match table.parsed("limit", "a size such as \"32M\"")? {
            Some(limit) => Some(limit),
            None => shared.limit.first().copied(),
        },
        high: table.parsed("high", "a size such as \"24M\"")?,
        swap_max: table.parsed("swap-max", "a size such as \"8M\"")?,
        low: table.parsed("low", "a size such as \"8M\"")?,
        min: table.parsed("min", "a size such as \"8M\"")?,
        beside_limits: BesideLimits {
            limit: table.parsed("beside-limit", "a size such as \"32M\"")?,
            high: table.parsed("beside-high", "a size such as \"24M\"")?,
            low: table.parsed("beside-low", "a size such as \"8M\"")?,
            min: table.parsed("beside-min", "a size such as \"8M\"")?,
            swap_max: table.parsed("beside-swap-max", "a size such as \"8M\"")?,
        },
        metrics: metrics(table)?,
    };
    let known = vocabulary.scenario(PROGRAM);
    let is_known = |name: &String| known.is_some_and(|words| words.metrics.contains(name));
    let above = shared.primary_of(is_known);
    let own = own.over(shared);
    Ok(ScenarioSpec {
        name: PROGRAM.to_owned(),
        // The program has a group of its own, with its limit.
        limit: Vec::new(),
        primary: spec.primary(!files.beside.is_empty()).or(above),
        program: Some(OwnProgram { files, spec }),
        takes: table.parsed("takes", "a time such as \"9s\"")?,
        ..own.spec()
    })
}

/// Reads a command: either one text, quoted as for a shell, or a list of words.
fn command(item: &Item<'_>, table: &Table<'_>) -> Result<Vec<String>, FileError> {
    let wanted = "the command in quotes, or a list of its words";
    let words: Vec<String> = if let DeValue::Array(_) = item.value {
        table.texts(&item.key, wanted)?
    } else {
        let split = shlex::split(&item.string(wanted)?);
        split.ok_or_else(|| item.value(&"its quotes do not match; close each that is opened"))?
    };
    if words.is_empty() {
        return Err(item.value(&"give a command, such as \"sort numbers\""));
    }
    Ok(words)
}

/// Reads environment variables, as `NAME=VALUE`.
fn environment(table: &Table<'_>) -> Result<Vec<String>, FileError> {
    let Some(item) = table.get("env") else {
        return Ok(Vec::new());
    };
    let pairs = item.table(None)?;
    pairs
        .items()
        .map(|item| {
            let value = item.text().ok_or_else(|| item.kind("text or a number"))?;
            Ok(format!("{}={value}", item.key))
        })
        .collect()
}

/// Reads the metrics that are taken from the program's output.
fn metrics(table: &Table<'_>) -> Result<Vec<String>, FileError> {
    let wanted = "a metric in quotes, such as 'ops=([0-9.]+) per second:higher', or a list of them";
    let found = table.texts("metric", wanted)?;
    if let Some(item) = table.get("metric")
        && found
            .iter()
            .any(|text| !text.contains('=') || !text.contains(':'))
    {
        return Err(item.value(&"write NAME=REGEX:higher or NAME=REGEX:lower"));
    }
    Ok(found)
}
