//! Imports results of stress-ng from the file made by `--metrics --yaml`.
//!
//! Only YAML written by stress-ng is read: a document from `---` to `...`, with sections that are not indented. A
//! section contains `key: value` and lists whose items begin with `- stressor: NAME`. A file is one run, and each
//! stressor is a workload.

use std::collections::BTreeSet;

use pagetide_quantity::{Direction, Nanos, Unit};

use super::ImportError;
use super::file::Text;
use super::run::{Known, Run, push};

const METRICS: [Known; 8] = [
    Known::new("bogo-ops", "bogo-ops", Unit::Count, 1.0, Direction::Neutral),
    Known::new(
        "bogo-ops-per-second-real-time",
        "bogo-ops-per-second",
        Unit::PerSecond,
        1.0,
        Direction::Higher,
    )
    .primary(),
    Known::new(
        "bogo-ops-per-second-usr-sys-time",
        "bogo-ops-per-cpu-second",
        Unit::PerSecond,
        1.0,
        Direction::Higher,
    ),
    Known::new(
        "wall-clock-time",
        "wall-clock-time",
        Unit::Nanos,
        1e9,
        Direction::Neutral,
    ),
    Known::new("user-time", "user", Unit::Nanos, 1e9, Direction::Neutral),
    Known::new(
        "system-time",
        "system",
        Unit::Nanos,
        1e9,
        Direction::Neutral,
    ),
    Known::new(
        "cpu-usage-per-instance",
        "cpu-share",
        Unit::Share,
        0.01,
        Direction::Neutral,
    ),
    // In the file, this value is in KiB.
    Known::new(
        "max-rss",
        "peak-memory",
        Unit::Bytes,
        1024.0,
        Direction::Neutral,
    ),
];
/// Unit and direction of a measure that is not in the table, because only one stressor writes it. The file does not
/// contain its unit and direction.
const OWN: Known = Known::new("", "", Unit::Ratio, 1.0, Direction::Neutral);

/// True if a text looks like a file of this format.
pub(super) fn is_in(text: &str) -> bool {
    text.starts_with("---\n") && text.contains("\n      stress-ng-version: ")
}

/// Reads the runs in a file.
pub(super) fn read(file: &Text<'_>) -> Result<Vec<Run>, ImportError> {
    let mut lines = (1..).zip(file.content.lines());
    if lines.next().is_none_or(|(_, text)| text != "---") {
        return Err(file.bad(1, "it does not begin with `---`"));
    }
    let (mut section, mut sections) = (String::new(), BTreeSet::new());
    let (mut kernel, mut started) = (String::new(), Nanos(0));
    let mut runs: Vec<Run> = Vec::new();
    let mut stressors = BTreeSet::new();
    let mut is_whole = false;
    for (line, text) in lines {
        if is_whole && !text.is_empty() {
            return Err(file.bad(line, "something stands after the end of the document"));
        }
        if text.is_empty() {
            continue;
        }
        if text == "..." {
            is_whole = true;
            continue;
        }
        let inner = text.trim_start_matches(' ');
        let Some((key, value)) = inner.split_once(':') else {
            return Err(file.bad(line, "it is neither `key: value` nor the head of a section"));
        };
        let value = unquoted(value.trim());
        if inner.len() == text.len() {
            if !sections.insert(key.to_owned()) {
                return Err(file.bad(line, format_args!("the section `{key}` is there twice")));
            }
            key.clone_into(&mut section);
            continue;
        }
        match (section.as_str(), key.strip_prefix("- ")) {
            ("system-info", None) if key == "release" => value.clone_into(&mut kernel),
            ("system-info", None) if key == "epoch-secs" => {
                let seconds: u64 = value
                    .parse()
                    .map_err(|_| file.bad(line, "epoch-secs is no whole number of seconds"))?;
                started = Nanos(seconds.saturating_mul(1_000_000_000));
            }
            ("metrics", Some("stressor")) => {
                if !stressors.insert(value.to_owned()) {
                    return Err(
                        file.bad(line, format_args!("the stressor `{value}` is there twice"))
                    );
                }
                push(file, &mut runs, Run::of(format!("stress-ng {value}")))?;
            }
            ("metrics", None) => {
                let Some(run) = runs.last_mut() else {
                    return Err(file.bad(line, "a measure stands before the first stressor"));
                };
                let known = Known::find(&METRICS, key).unwrap_or(OWN);
                let name = if known.name.is_empty() {
                    key
                } else {
                    known.name
                };
                let number = file.number(line, key, value)?;
                run.add_as(file, line, &known, name, number)?;
            }
            ("metrics", Some(_)) => return Err(file.bad(line, "an item is no stressor")),
            // Other sections do not contain results.
            _ => {}
        }
    }
    if !is_whole {
        return Err(file.bad(0, "it ends before `...`"));
    }
    if runs.is_empty() {
        return Err(file.bad(0, "it has no metrics"));
    }
    for run in &mut runs {
        run.kernel.clone_from(&kernel);
        run.started = started;
        if !run.metrics.iter().any(|metric| metric.primary) {
            return Err(file.bad(
                0,
                format_args!("{} has no bogo-ops-per-second-real-time", run.scenario),
            ));
        }
    }
    Ok(runs)
}

/// Returns the value without single quotes at both ends.
fn unquoted(value: &str) -> &str {
    value
        .strip_prefix('\'')
        .and_then(|value| value.strip_suffix('\''))
        .unwrap_or(value)
}
