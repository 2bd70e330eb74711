//! VM Regress (2002): the report of one benchmark run, and the times of several kernels beside each other.

use pagetide_record::Record;

use super::{View, lay};
use crate::draw::{Look, clean, picture};
use crate::terminal::show::Presence;

/// Rows of the table of times.
const TIMES: [(&str, &str); 6] = [
    ("Minimum access time", "access-min"),
    ("Mean access time", "access-mean"),
    ("Median access time", "access-p50"),
    ("99th percentile", "access-p99"),
    ("Maximum access time", "access-max"),
    ("Time of all accesses", "access-time"),
];

/// Lines of `/proc/zoneinfo` that the report shows.
const ZONE: [&str; 5] = ["pages free", "min", "low", "high", "spanned"];

/// Writes the table of several columns.
pub(super) fn table(view: &View) -> String {
    let mut out = format!("VM Regress: {}\n", view.label());
    out.push_str(&clean(&crate::about::params(view.cell), 75, true));
    out.push_str("\n\n");
    let mut rows = vec![[vec![String::new()], view.heads()].concat()];
    for (label, metric) in TIMES {
        if !view.has(metric) {
            continue;
        }
        let cells = view.means(metric).into_iter().map(time);
        rows.push(std::iter::once(label.to_owned()).chain(cells).collect());
    }
    for (label, metric) in [
        ("Pages present (%)", "present"),
        ("Major faults", "major-faults"),
    ] {
        if view.has(metric) {
            let share = metric == "present";
            let cells = view.means(metric).into_iter().map(|mean| match mean {
                Some(mean) if share => format!("{:.2}", mean * 100.0),
                Some(mean) => format!("{mean:.0}"),
                None => "-".to_owned(),
            });
            rows.push(std::iter::once(label.to_owned()).chain(cells).collect());
        }
    }
    out.push_str(&lay(&rows));
    out
}

/// Microseconds, as the original prints access times; seconds for long sums.
fn time(nanos: Option<f64>) -> String {
    match nanos {
        None => "-".to_owned(),
        Some(nanos) if nanos < 1e9 => format!("{:.2} us", nanos / 1e3),
        Some(nanos) => format!("{:.2} s", nanos / 1e9),
    }
}

/// Writes the report of one run: parameters, times, zones before and after, presence.
pub fn report(record: &Record, presence: &[Presence]) -> String {
    let subject = &record.subject;
    let mut out = String::from("VM Regress benchmark report\n\nTest parameters\n");
    let mut rows = vec![
        vec!["  pattern".to_owned(), clean(&subject.scenario, 60, true)],
        vec![
            "  kernel".to_owned(),
            clean(&subject.variant.kernel.release, 60, true),
        ],
        vec!["  memory".to_owned(), subject.memory.to_string()],
        vec!["  swap".to_owned(), subject.swap.to_string()],
        vec!["  seed".to_owned(), subject.seed.to_string()],
    ];
    for (name, value) in &subject.params {
        rows.push(vec![
            format!("  {}", clean(name, 30, true)),
            clean(value, 60, true),
        ]);
    }
    out.push_str(&lay(&rows));
    let mut rows = Vec::new();
    for (label, name) in TIMES {
        if let Some(value) = record.metric(name).and_then(|metric| metric.value.number()) {
            rows.push(vec![format!("  {label}"), time(Some(value))]);
        }
    }
    put!(out, "\nTest results\n{}", lay(&rows));
    let texts = &record.results.texts;
    if let (Some(before), Some(after)) = (texts.get("zoneinfo-before"), texts.get("zoneinfo-after"))
    {
        let mut rows = vec![
            ["  zone", "", "before", "after"]
                .map(str::to_owned)
                .to_vec(),
        ];
        let after = zones(after);
        for (zone, values) in zones(before) {
            let end = after.iter().find(|(name, _)| *name == zone);
            for (name, value) in values {
                let then = end
                    .and_then(|(_, values)| values.iter().find(|(n, _)| *n == name))
                    .map_or("-", |(_, value)| value);
                rows.push(vec![
                    format!("  {}", clean(&words(zone), 30, true)),
                    name.trim_start_matches("pages ").to_owned(),
                    clean(value, 20, true),
                    clean(then, 20, true),
                ]);
            }
        }
        put!(out, "\nZones before and after\n{}", lay(&rows));
    }
    for map in presence {
        let look = Look {
            ascii: true,
            ..Look::plain(75)
        };
        put!(
            out,
            "\nPages present after the test ({})\n{}",
            clean(&map.name, 40, true),
            picture::presence(&map.pages, &look)
        );
    }
    out
}

/// A text with single spaces.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines of [`ZONE`] for each zone that has pages.
fn zones(text: &str) -> Vec<(&str, Vec<(&'static str, &str)>)> {
    let mut all: Vec<(&str, Vec<(&'static str, &str)>)> = Vec::new();
    for line in text.lines() {
        if let Some(zone) = line.strip_prefix("Node ") {
            all.push((zone.trim(), Vec::new()));
            continue;
        }
        let line = line.trim();
        for name in ZONE {
            if let Some(value) = line.strip_prefix(name)
                && value.starts_with(' ')
                && let Some((_, values)) = all.last_mut()
                && values.iter().all(|(known, _)| *known != name)
            {
                values.push((name, value.trim()));
            }
        }
    }
    all.retain(|(_, values)| {
        values
            .iter()
            .any(|(name, value)| *name == "spanned" && *value != "0")
    });
    all
}
