//! VM Regress (2002): the report of one benchmark run, and a table with the times of several kernels.

use pagetide_compare::Comparison;
use pagetide_quantity::PAGE_SIZE;
use pagetide_record::Record;

use super::view::{HEAD_CHARS, TITLE_CHARS};
use super::{Paper, View, lay};
use crate::draw::{TextStyle, clean, picture};
use crate::terminal::show::Presence;

/// Rows of the table of times: label and metric.
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

/// The four tests of the paper: true if pages are accessed in random order, true if the pages take twice the memory,
/// and the published result.
const TESTS: [(bool, bool, &str); 4] = [
    (false, false, "equal"),
    (true, false, "equal"),
    (false, true, "about equal; rmap keeps the used pages"),
    (true, true, "rmap faster by almost 10 minutes"),
];

/// A cell that could be one of the four tests.
#[derive(Clone, Copy)]
struct Candidate {
    place: usize,
    random: bool,
    pages: u64,
}

/// Returns groups of cells with the sine patterns that differ only in order and number of pages, each with a label.
fn groups(comparison: &Comparison) -> Vec<(String, Vec<Candidate>)> {
    let mut groups: Vec<(String, Vec<Candidate>)> = Vec::new();
    for (place, cell) in comparison.cells.iter().enumerate() {
        let subject = crate::about::subject(cell);
        let random = match subject.scenario.as_str() {
            "smooth-sin" => false,
            "smooth-sin-random" => true,
            _ => continue,
        };
        let pages = subject
            .params
            .get("pages")
            .and_then(|text| text.parse().ok());
        let written = if subject.as_written {
            " as written"
        } else {
            ""
        };
        let others: Vec<String> = subject
            .params
            .iter()
            .filter(|(name, _)| !["pages", "pattern"].contains(&name.as_str()))
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let key = format!(
            "smooth-sin and smooth-sin-random{written}, {}, {}, {}",
            subject.memory,
            subject.swap_label(),
            others.join(" ")
        );
        let candidate = Candidate {
            place,
            random,
            pages: pages.unwrap_or(0),
        };
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, all)) => all.push(candidate),
            None => groups.push((key, vec![candidate])),
        }
    }
    groups
}

/// Returns the numbers of pages of the smaller and the larger tests in a group of cells. If all tests have one size, it
/// counts as the larger one if it exceeds memory by more than a quarter.
fn sizes(comparison: &Comparison, group: &[Candidate]) -> [Option<u64>; 2] {
    let all = || group.iter().map(|candidate| candidate.pages);
    match (all().min(), all().max()) {
        (Some(least), Some(most)) if least < most => [Some(least), Some(most)],
        (Some(only), _) => {
            let place = group.first().map_or(0, |candidate| candidate.place);
            let memory = crate::about::subject(&comparison.cells[place])
                .memory
                .bytes();
            if only * PAGE_SIZE > memory.0 / 4 * 5 {
                [None, Some(only)]
            } else {
                [Some(only), None]
            }
        }
        _ => [None, None],
    }
}

/// Returns the total time of all accesses in the four tests, with one table for each configuration; `None` if no cell
/// has one of the sine patterns.
pub(super) fn four_tests(comparison: &Comparison) -> Option<String> {
    let mut out = String::new();
    for (label, group) in groups(comparison) {
        let sizes = sizes(comparison, &group);
        let mut head = vec![String::new()];
        for (index, column) in comparison.columns.iter().enumerate() {
            head.push(clean(&column.name, HEAD_CHARS, true));
            if index > 0 {
                head.push("difference".to_owned());
            }
        }
        head.push("published: 2.4.19, 2.4.19-rmap14a".to_owned());
        let mut rows = vec![head];
        for (number, (random, large, published)) in (1..).zip(TESTS) {
            let pages = sizes[usize::from(large)];
            let order = if random { "at random" } else { "in page order" };
            let over = match (pages, large) {
                (Some(pages), _) => format!("{pages} pages"),
                (None, false) => "memory".to_owned(),
                (None, true) => "twice that".to_owned(),
            };
            let found = group
                .iter()
                .find(|one| one.random == random && Some(one.pages) == pages);
            let mut row = vec![format!("Test {number}: {order}, {over}")];
            row.extend(test(comparison, found.map(|one| one.place)));
            row.push(published.to_owned());
            rows.push(row);
        }
        if !out.is_empty() {
            out.push('\n');
        }
        // The part before the comma describes the machine, the part after it the parameters.
        let (place, params) = label.rsplit_once(", ").unwrap_or((&label, ""));
        put!(
            out,
            "VM Regress (2002), the four tests: {}\n{}\ntime of all accesses, mean over the runs\n\n{}",
            clean(place, TITLE_CHARS, true),
            clean(params, 300, true),
            lay(&rows)
        );
    }
    (!out.is_empty()).then_some(out)
}

/// Returns the cells of the table for one test: the time of each column, and the difference from the first column.
fn test(comparison: &Comparison, place: Option<usize>) -> Vec<String> {
    let none = super::extras::Extras::default();
    let view = place.map(|place| View {
        comparison,
        cell: &comparison.cells[place],
        place,
        extras: &none,
    });
    let mean = |column| {
        view.as_ref()
            .and_then(|view| view.mean("access-time", column))
    };
    let mut cells = Vec::new();
    for column in 0..comparison.columns.len() {
        cells.push(match (mean(column), &view) {
            (Some(nanos), _) => format!("{:.2} s", nanos / 1e9),
            (None, Some(view)) => view.why("access-time", column).to_owned(),
            (None, None) => "unrun".to_owned(),
        });
        if column > 0 {
            cells.push(match (mean(0), mean(column)) {
                (Some(first), Some(this)) => format!("{:+.2} s", (this - first) / 1e9),
                _ => String::new(),
            });
        }
    }
    cells
}

/// Returns the index of the cell with the most informative report: the random sine over the most pages, otherwise the
/// last cell from this paper; `None` if there is none.
pub(super) fn telling(comparison: &Comparison) -> Option<usize> {
    let fourth = groups(comparison)
        .into_iter()
        .flat_map(|(_, group)| group)
        .filter(|one| one.random)
        .max_by_key(|one| (one.pages, std::cmp::Reverse(one.place)))
        .map(|one| one.place);
    fourth.or_else(|| {
        comparison.cells.iter().rposition(|cell| {
            Paper::of(&crate::about::subject(cell).scenario) == Some(Paper::VmRegress)
        })
    })
}

/// Returns the times of one cell as a table with a column for each variant.
pub(super) fn table(view: &View) -> String {
    let mut out = format!("VM Regress (2002): {}\n", view.label());
    out.push_str(&clean(&crate::about::params(view.cell), 300, true));
    out.push_str("\n\n");
    let mut rows = vec![[vec![String::new()], view.heads()].concat()];
    for (label, metric) in TIMES {
        let cells = view.shown(metric, time);
        rows.push(std::iter::once(label.to_owned()).chain(cells).collect());
    }
    let percent = |share: f64| format!("{:.2}", share * 100.0);
    let whole = |count: f64| format!("{count:.0}");
    let present = view.shown("present", percent);
    rows.push([vec!["Pages present (%)".to_owned()], present].concat());
    let faults = view.shown("major-faults", whole);
    rows.push([vec!["Major faults".to_owned()], faults].concat());
    out.push_str(&lay(&rows));
    out
}

/// Formats nanoseconds as microseconds, as the original prints access times; as seconds from one second on.
fn time(nanos: f64) -> String {
    if nanos < 1e9 {
        format!("{:.2} us", nanos / 1e3)
    } else {
        format!("{:.2} s", nanos / 1e9)
    }
}

/// Returns the report of one trial: parameters, times, zones before and after, present pages.
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
        vec!["  swap".to_owned(), subject.swap_label()],
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
            rows.push(vec![format!("  {label}"), time(value)]);
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
        let text_style = TextStyle {
            ascii: true,
            ..TextStyle::plain(75)
        };
        put!(
            out,
            "\nPages present after the test ({})\n{}",
            clean(&map.name, 40, true),
            picture::presence(&map.pages, &text_style)
        );
    }
    out
}

/// Returns the text with each sequence of white space replaced by one space.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the values of the lines named in [`ZONE`] for each zone that spans pages, from the text of `/proc/zoneinfo`.
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
