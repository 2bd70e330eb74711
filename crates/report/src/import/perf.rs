//! Imports counters of `perf stat`, written with `-x,` or `-j`: one line for each event.
//!
//! A run begins with `# started on DATE`, which perf writes with `-o`; a file without such a line is one run. The date
//! has no time zone and is taken as UTC, which keeps the order of runs on one machine. With `-r`, a line contains means
//! over several runs and counts as one run. Lines by interval (`-I`), by processor (`-A`) or by socket are refused,
//! because they are not totals.

use pagetide_quantity::{Direction, Nanos, Unit, Value};
use serde::Deserialize;

use super::ImportError;
use super::file::Text;
use super::run::{Known, Run, push};
use crate::date;

/// Text at the beginning of the first line of a run.
const BEGIN: &str = "# started on ";
/// Separators of fields that are accepted.
const SEPARATORS: [char; 2] = [',', ';'];

/// Events with a known direction, without modifiers such as `:u`. A smaller count is better for the same work.
const EVENTS: [Known; 22] = [
    Known::new(
        "duration_time",
        "elapsed",
        Unit::Nanos,
        1.0,
        Direction::Lower,
    )
    .primary(),
    Known::new(
        "task-clock",
        "task-clock",
        Unit::Nanos,
        1.0,
        Direction::Lower,
    )
    .primary(),
    Known::new("cpu-clock", "cpu-clock", Unit::Nanos, 1.0, Direction::Lower),
    Known::new("user_time", "user", Unit::Nanos, 1.0, Direction::Lower),
    Known::new("system_time", "system", Unit::Nanos, 1.0, Direction::Lower),
    event("page-faults"),
    event("minor-faults"),
    event("major-faults"),
    event("context-switches"),
    event("cpu-migrations"),
    event("cycles"),
    event("cpu-cycles"),
    event("instructions"),
    event("branch-misses"),
    event("cache-misses"),
    event("LLC-load-misses"),
    event("LLC-store-misses"),
    event("L1-dcache-load-misses"),
    event("dTLB-load-misses"),
    event("dTLB-store-misses"),
    event("iTLB-load-misses"),
    event("stalled-cycles-backend"),
];
/// Unit and direction of all events that are not in the table.
const OTHER: Known = Known::new("", "", Unit::Count, 1.0, Direction::Neutral);

/// Returns a metric for an event: a count for which smaller is better.
const fn event(name: &'static str) -> Known {
    Known::new(name, name, Unit::Count, 1.0, Direction::Lower)
}

/// One event of one run, as text.
struct Counter<'a> {
    event: &'a str,
    value: &'a str,
    unit: &'a str,
}

/// A line written with `-j`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Line {
    counter_value: Option<String>,
    #[serde(default)]
    unit: String,
    event: Option<String>,
    interval: Option<serde_json::Value>,
    cpu: Option<serde_json::Value>,
    core: Option<serde_json::Value>,
    die: Option<serde_json::Value>,
    socket: Option<serde_json::Value>,
    node: Option<serde_json::Value>,
    thread: Option<serde_json::Value>,
}

/// Returns the lines that are not blank, each with its line number, counted from 1.
fn results(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
}

/// True if a text looks like a file of this format.
pub(super) fn is_in(text: &str) -> bool {
    let mut lines = results(text).map(|(_, line)| line);
    lines
        .find(|line| !line.starts_with('#'))
        .is_some_and(|line| {
            let is_json = line.starts_with('{') && line.contains("\"counter-value\"");
            is_json || fields(line).is_some()
        })
}

/// Reads the runs in a file.
pub(super) fn read(file: &Text<'_>) -> Result<Vec<Run>, ImportError> {
    let mut runs: Vec<Run> = Vec::new();
    for (line, text) in results(&file.content) {
        if let Some(date) = text.strip_prefix(BEGIN) {
            let mut run = Run::of("perf");
            run.started = moment(date).ok_or_else(|| file.bad(line, "the date is not readable"))?;
            push(file, &mut runs, run)?;
            continue;
        }
        if text.starts_with('#') {
            continue;
        }
        if runs.is_empty() {
            runs.push(Run::of("perf"));
        }
        let Some(run) = runs.last_mut() else { continue };
        if text.starts_with('{') {
            let read: Line = serde_json::from_str(text).map_err(|why| file.bad(line, why))?;
            let parts = [
                &read.interval,
                &read.cpu,
                &read.core,
                &read.die,
                &read.socket,
                &read.node,
                &read.thread,
            ];
            if parts.iter().any(|part| part.is_some()) {
                return Err(file.bad(
                    line,
                    "it is part of a run (-I, -A or --per-…), not its total",
                ));
            }
            // A line without an event contains a further ratio of the previous event.
            let (Some(event), Some(value)) = (&read.event, &read.counter_value) else {
                continue;
            };
            let unit = &read.unit;
            add(file, line, run, &Counter { event, value, unit })?;
        } else {
            let counter = fields(text).ok_or_else(|| {
                file.bad(
                    line,
                    "it is no line `value,unit,event,…` (with commas in events, use -x\\;)",
                )
            })?;
            // A line without a value contains a further ratio of the previous event.
            if !counter.event.is_empty() {
                add(file, line, run, &counter)?;
            }
        }
    }
    if runs.is_empty() || runs.iter().any(|run| run.metrics.is_empty()) {
        return Err(file.bad(0, "it has a run without counters"));
    }
    Ok(runs)
}

/// Parses a line written with `-x`. Its fields are value, unit, event, deviation (with `-r`), time counted in
/// nanoseconds, share of time counted in per cent, ratio, and unit of the ratio. `None` if the line does not have this
/// form.
fn fields(line: &str) -> Option<Counter<'_>> {
    let separator = line.chars().find(|c| SEPARATORS.contains(c))?;
    let all: Vec<&str> = line.split(separator).collect();
    let [value, unit, event, rest @ ..] = &*all else {
        return None;
    };
    if event.is_empty() && value.is_empty() && unit.is_empty() {
        return Some(Counter { event, value, unit });
    }
    let rest = match rest {
        [deviation, rest @ ..] if deviation.ends_with('%') => rest,
        rest => rest,
    };
    let [time, share, ..] = rest else { return None };
    let is_counter = time.parse::<u64>().is_ok() && share.parse::<f64>().is_ok();
    let is_value = value.starts_with('<') || value.parse::<f64>().is_ok();
    (is_counter && is_value && rest.len() <= 4).then_some(Counter { event, value, unit })
}

/// Adds a counter to a run. If perf did not count the event, the metric has a reason instead of a number.
fn add(
    file: &Text<'_>,
    line: usize,
    run: &mut Run,
    counter: &Counter<'_>,
) -> Result<(), ImportError> {
    let bare = counter.event.split(':').next().unwrap_or_default();
    let mut known = Known::find(&EVENTS, bare).unwrap_or(OTHER);
    let (unit, factor) = match counter.unit {
        "" => (Unit::Count, 1.0),
        "nsec" | "ns" => (Unit::Nanos, 1.0),
        "usec" => (Unit::Nanos, 1e3),
        "msec" => (Unit::Nanos, 1e6),
        "sec" => (Unit::Nanos, 1e9),
        "Bytes" => (Unit::Bytes, 1.0),
        "KiB" => (Unit::Bytes, 1024.0),
        "MiB" => (Unit::Bytes, 1_048_576.0),
        _ => (Unit::Ratio, 1.0),
    };
    if known.unit == Unit::Nanos && unit != Unit::Nanos && !counter.unit.is_empty() {
        return Err(file.bad(
            line,
            format_args!(
                "{} is in {}, not in a unit of time",
                counter.event, counter.unit
            ),
        ));
    }
    if known.unit != Unit::Nanos {
        known.unit = unit;
    }
    known.factor = factor;
    // Modifiers distinguish counters of the same event.
    let name = if known.name.is_empty() || bare != counter.event {
        counter.event
    } else {
        known.name
    };
    if counter.value.starts_with('<') {
        let absent = Value::Absent(format!("perf says {}", counter.value));
        return run.push(file, line, &known, name, absent);
    }
    let number = file.number(line, counter.event, counter.value)?;
    run.add_as(file, line, &known, name, number)
}

/// Parses a date in the format of C's `ctime`, such as `Sat Nov 28 02:44:28 2026`, as UTC; `None` if it is none.
fn moment(text: &str) -> Option<Nanos> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, month, day, time, year] = &*words else {
        return None;
    };
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = months.iter().position(|name| name == month)? + 1;
    date::parse(&format!("{year}-{month}-{day}T{time}"))
}
