//! Imports results of pgbench from the text that it prints, for one run or several runs in sequence.
//!
//! A run begins with `transaction type:` and must contain a line `tps = `. Versions before 14 print tps twice; the
//! number without the time to establish connections is read.

use pagetide_quantity::{Direction, Unit};
use pagetide_record::Invalid;

use super::ImportError;
use super::file::Text;
use super::run::{Known, Run, push};

/// Text at the beginning of the first line of a run.
const BEGIN: &str = "transaction type: ";
/// Lines that define the workload, each with the name of its parameter.
const PARAMS: [(&str, &str); 8] = [
    ("transaction type: ", "transactions"),
    ("scaling factor: ", "scale"),
    ("query mode: ", "mode"),
    ("number of clients: ", "clients"),
    ("number of threads: ", "threads"),
    ("number of transactions per client: ", "per-client"),
    ("duration: ", "duration"),
    ("maximum number of tries: ", "tries"),
];
const METRICS: [Known; 7] = [
    Known::new("tps = ", "tps", Unit::PerSecond, 1.0, Direction::Higher).primary(),
    Known::new(
        "latency average = ",
        "latency",
        Unit::Nanos,
        1e6,
        Direction::Lower,
    ),
    Known::new(
        "latency stddev = ",
        "latency-deviation",
        Unit::Nanos,
        1e6,
        Direction::Lower,
    ),
    Known::new(
        "initial connection time = ",
        "connection-time",
        Unit::Nanos,
        1e6,
        Direction::Lower,
    ),
    Known::new(
        "number of transactions actually processed: ",
        "transactions",
        Unit::Count,
        1.0,
        Direction::Neutral,
    ),
    Known::new(
        "number of failed transactions: ",
        "failed",
        Unit::Count,
        1.0,
        Direction::Lower,
    ),
    Known::new(
        "number of transactions above the ",
        "late",
        Unit::Count,
        1.0,
        Direction::Lower,
    ),
];

/// True if a text looks like a file of this format.
pub(super) fn is_in(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(BEGIN)) && text.contains("number of clients: ")
}

/// Reads the runs in a file.
pub(super) fn read(file: &Text<'_>) -> Result<Vec<Run>, ImportError> {
    let mut runs: Vec<Run> = Vec::new();
    let mut begun = 0;
    for (line, text) in (1..).zip(file.content.lines()) {
        if text.starts_with(BEGIN) {
            is_whole(file, begun, runs.last())?;
            push(file, &mut runs, Run::of("pgbench"))?;
            begun = line;
        }
        let Some(run) = runs.last_mut() else { continue };
        take(file, line, text, run)?;
    }
    is_whole(file, begun, runs.last())?;
    if runs.is_empty() {
        return Err(file.bad(0, "it has no line `transaction type:`"));
    }
    Ok(runs)
}

/// Returns an error if the run that began in line `begun` has no result.
fn is_whole(file: &Text<'_>, begun: usize, run: Option<&Run>) -> Result<(), ImportError> {
    let has_result = |run: &Run| run.metrics.iter().any(|metric| metric.primary);
    match run {
        Some(run) if !has_result(run) => {
            Err(file.bad(begun, "the run that begins here has no line `tps =`"))
        }
        _ => Ok(()),
    }
}

/// Reads one line of a run. Unknown lines, such as reports on statements and scripts, are skipped.
fn take(file: &Text<'_>, line: usize, text: &str, run: &mut Run) -> Result<(), ImportError> {
    if text.contains("the above results are incomplete") || text.contains("Run was aborted") {
        run.invalid.push(Invalid::Scenario {
            why: "pgbench says that the run was aborted".to_owned(),
        });
        return Ok(());
    }
    for (key, name) in PARAMS {
        if let Some(value) = text.strip_prefix(key) {
            let value = value.trim().to_owned();
            if run.params.insert(name.to_owned(), value).is_some() {
                return Err(file.bad(line, format_args!("`{key}` is there twice in one run")));
            }
            return Ok(());
        }
    }
    for known in &METRICS {
        let Some(rest) = text.strip_prefix(known.key) else {
            continue;
        };
        // Versions up to 13 print `tps = 85.2 (including connections establishing)`.
        if rest.contains("(including connections") {
            return Ok(());
        }
        let rest = match known.name {
            "late" => rest.split_once(": ").map_or("", |(_, rest)| rest),
            _ => rest,
        };
        let mut words = rest.split([' ', '/']);
        let number = file.number(line, known.key.trim(), words.next().unwrap_or_default())?;
        if known.factor > 1.0 && words.next() != Some("ms") {
            return Err(file.bad(line, format_args!("{} is not in ms", known.name)));
        }
        return run.add(file, line, known, number);
    }
    Ok(())
}
