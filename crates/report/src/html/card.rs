//! The entry of a comparison in a list: the result for each variant, and a small plot of the primary metrics. Also the
//! titles of pages about records and comparisons.

use pagetide_compare::Comparison;
use pagetide_record::Record;

use super::axis::Scales;
use super::escape::text;
use super::{forest, strip, verdicts};
use crate::about::{self, BASELINE};
use crate::draw::clean;
use crate::names::Names;
use crate::terminal::effect;

/// Maximum length of a name, in characters.
const NAME_CHARS: usize = 120;
/// Width of the pictures in pixels.
const WIDTH: f64 = 220.0;
/// Maximum number of rows in the plot; further rows are only counted.
const ROWS: usize = 6;
/// Minimum length of a name of hexadecimal digits only that is taken for a prefix of a record's ID.
const DIGITS: usize = 8;

/// Returns HTML with the result for each variant, and a plot of the first six primary metrics; empty if there is only
/// one variant.
pub fn card(comparison: &Comparison) -> String {
    let mut out = String::new();
    let many = comparison.columns.len() > 2;
    for other in about::others(comparison) {
        let name = if many {
            format!("{}: ", text(about::name(comparison, other), NAME_CHARS))
        } else {
            String::new()
        };
        put!(
            out,
            "<p class=\"answer\">{name}{}</p>\n",
            verdicts::lead(comparison, other)
        );
    }
    let rows = forest::rows(comparison);
    if rows.is_empty() {
        return out;
    }
    let (names, scales) = (Names::of(comparison), Scales::of(comparison));
    out.push_str("<table class=\"small-forest\"><tbody>\n");
    for row in rows.iter().take(ROWS) {
        let mut parts = vec![row.metric.name.as_str()];
        parts.extend(Some(names.cell(row.place)).filter(|cell| !cell.is_empty()));
        if many {
            parts.insert(0, about::name(comparison, row.other));
        }
        let change = effect::change(row.judgement, row.metric.unit, false);
        let interval = effect::interval(row.judgement, row.metric.unit, false);
        let label = format!(
            "{} of {}: {change} {interval}",
            row.metric.name, row.cell.label
        );
        put!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"number\">{}</td><td><span class=\"badge {3}\">{3}</span></td></tr>\n",
            text(&parts.join(" · "), NAME_CHARS),
            strip::bare(row.judgement, row.metric.unit, &scales, WIDTH, &label),
            text(&change, NAME_CHARS),
            row.judgement.verdict
        );
    }
    out.push_str("</tbody></table>\n");
    if rows.len() > ROWS {
        put!(
            out,
            "<p class=\"params\">and {} more</p>\n",
            rows.len() - ROWS
        );
    }
    out
}

/// Returns the title of a record's page: workload, variant and seed.
pub fn title(record: &Record) -> String {
    let subject = &record.subject;
    format!(
        "{}: {}, seed {}",
        clean(&subject.cell_label(), NAME_CHARS, false),
        clean(&subject.variant.name, NAME_CHARS, false),
        subject.seed
    )
}

/// Replaces column names that are record IDs by descriptions of the records. Returns a title for the comparison: the
/// names of the first two columns, and the cell if a record was named and there is only one cell.
pub fn with_names(comparison: &mut Comparison) -> String {
    let is_identity = |name: &str| {
        name.len() >= DIGITS && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    let seeds: Vec<Option<u64>> = (0..comparison.columns.len())
        .map(|column| {
            let mut trials = comparison
                .cells
                .iter()
                .filter_map(|cell| cell.sides.get(column)?.trials.first());
            trials.next().map(|trial| trial.seed)
        })
        .collect();
    let mut single = false;
    for (column, seed) in comparison.columns.iter_mut().zip(seeds) {
        if let (true, Some(variant)) = (is_identity(&column.name), &column.variant) {
            single = true;
            let seed = seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
            column.name = format!("{}{seed}", variant.name);
        }
    }
    // Two records of the same variant and seed get different names.
    for at in 1..comparison.columns.len() {
        if comparison.columns[..at]
            .iter()
            .any(|other| other.name == comparison.columns[at].name)
        {
            let again = format!("{} ({})", comparison.columns[at].name, at + 1);
            comparison.columns[at].name = again;
        }
    }
    let name = |at: usize| clean(about::name(comparison, at), NAME_CHARS, false);
    let cell = match &comparison.cells[..] {
        [only] if single => format!(", {}", clean(&only.label, NAME_CHARS, false)),
        _ => String::new(),
    };
    format!("{} against {}{cell}", name(BASELINE + 1), name(BASELINE))
}
