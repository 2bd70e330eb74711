//! Imports results of YCSB from the lines `[OPERATION], measure, value` that its client prints after a run.
//!
//! A file is one run. Buckets of histograms and all other lines are skipped. YCSB writes NaN if there was nothing to
//! average; then the metric has a reason instead of a number.

use pagetide_quantity::{Direction, Unit, Value};

use super::ImportError;
use super::file::Text;
use super::run::{Known, Run};

const METRICS: [Known; 8] = [
    Known::new(
        "RunTime(ms)",
        "run-time",
        Unit::Nanos,
        1e6,
        Direction::Lower,
    ),
    Known::new(
        "Throughput(ops/sec)",
        "throughput",
        Unit::PerSecond,
        1.0,
        Direction::Higher,
    )
    .primary(),
    Known::new(
        "Operations",
        "operations",
        Unit::Count,
        1.0,
        Direction::Neutral,
    ),
    Known::new(
        "AverageLatency(us)",
        "latency",
        Unit::Nanos,
        1e3,
        Direction::Lower,
    ),
    Known::new(
        "MinLatency(us)",
        "latency-min",
        Unit::Nanos,
        1e3,
        Direction::Neutral,
    ),
    Known::new(
        "MaxLatency(us)",
        "latency-max",
        Unit::Nanos,
        1e3,
        Direction::Lower,
    ),
    Known::new("Time(ms)", "time", Unit::Nanos, 1e6, Direction::Lower),
    Known::new("Count", "count", Unit::Count, 1.0, Direction::Neutral),
];
const PERCENTILE: Known = Known::new("", "", Unit::Nanos, 1e3, Direction::Lower);
const OK: Known = Known::new("", "", Unit::Count, 1.0, Direction::Neutral);
const FAILED: Known = Known::new("", "", Unit::Count, 1.0, Direction::Lower);

/// True if a text looks like a file of this format.
pub(super) fn is_in(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("[OVERALL], "))
}

/// Reads the run in a file.
pub(super) fn read(file: &Text<'_>) -> Result<Vec<Run>, ImportError> {
    let mut run = Run::of("ycsb");
    for (line, text) in (1..).zip(file.content.lines()) {
        if let Some(command) = text.strip_prefix("Command line: ") {
            workload(command, &mut run);
            continue;
        }
        let Some((operation, rest)) = text
            .strip_prefix('[')
            .and_then(|text| text.split_once("], "))
        else {
            continue;
        };
        let Some((measure, value)) = rest.rsplit_once(", ") else {
            return Err(file.bad(line, "it is no line `[OPERATION], measure, value`"));
        };
        let Some((known, measure)) = known(measure) else {
            continue;
        };
        // The names of measures of the whole run have no prefix.
        let name = match operation {
            "OVERALL" => measure,
            _ => format!("{}-{measure}", operation.to_lowercase().replace('_', "-")),
        };
        if value == "NaN" {
            let absent = Value::Absent("YCSB wrote NaN".to_owned());
            run.push(file, line, &known, &name, absent)?;
        } else {
            let number = file.number(line, &name, value)?;
            run.add_as(file, line, &known, &name, number)?;
        }
    }
    if !run.metrics.iter().any(|metric| metric.name == "throughput") {
        return Err(file.bad(0, "it has no line `[OVERALL], Throughput(ops/sec), …`"));
    }
    Ok(vec![run])
}

/// Returns unit, direction and name of a measure; `None` if the measure is not read.
fn known(measure: &str) -> Option<(Known, String)> {
    if let Some(known) = Known::find(&METRICS, measure) {
        return Some((known, known.name.to_owned()));
    }
    if let Some(percent) = measure.strip_suffix("PercentileLatency(us)") {
        let percent = percent.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        return Some((PERCENTILE, format!("latency-p{percent}")));
    }
    let status = measure.strip_prefix("Return=")?;
    let known = if status == "OK" { OK } else { FAILED };
    Some((
        known,
        format!("return-{}", status.to_lowercase().replace('_', "-")),
    ))
}

/// Adds the workload to a run, from the option `-P workloads/workloada` in the client's command line.
fn workload(command: &str, run: &mut Run) {
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        if word == "-P"
            && let Some(path) = words.next()
        {
            let name = path.rsplit('/').next().unwrap_or(path);
            run.params.insert("workload".to_owned(), name.to_owned());
        }
    }
}
