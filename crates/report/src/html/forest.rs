//! The answer in one picture: what decides, cell by cell, on one scale, from the best change to the worst.

use pagetide_compare::{Cell, MetricRow};
use pagetide_quantity::Direction;
use pagetide_verdict::judgement::EffectKind;
use pagetide_verdict::{Judgement, Verdict};

use super::Input;
use super::axis::Scales;
use super::escape::text;
use super::strip::{self, PAD};
use crate::about::{self, BASELINE};
use crate::terminal::effect;

/// Width of the pictures.
const WIDTH: f64 = 420.0;
/// Longest name in a row.
const NAME: usize = 120;
/// Rows in sight; the others are behind a summary.
const SHOWN: usize = 24;

struct Row<'a> {
    place: usize,
    other: usize,
    cell: &'a Cell,
    metric: &'a MetricRow,
    judgement: &'a Judgement,
}

/// The plot; nothing where nothing is judged.
pub(crate) fn plot(input: &Input<'_>, scales: &Scales, out: &mut String) {
    let mut rows = rows(input);
    if rows.is_empty() {
        return;
    }
    rows.sort_by(|a, b| better(a).total_cmp(&better(b)));
    let common = common(input);
    let labels = short_labels(input, &common);
    let shared = shared(&common);
    put!(
        out,
        "<h3 id=\"forest\">What decides, from the best to the worst</h3>\n<p class=\"params\">{shared}Change against {}, with its \
         interval. A filled diamond is a sure verdict, a ring is not sure; shaded is what does not matter.</p>\n",
        text(about::name(input.comparison, BASELINE), NAME)
    );
    let (first, rest) = rows.split_at(rows.len().min(SHOWN));
    table(input, scales, first, &labels, out);
    if !rest.is_empty() {
        put!(out, "<details><summary>{} more</summary>\n", rest.len());
        table(input, scales, rest, &labels, out);
        out.push_str("</details>\n");
    }
}

/// The metrics that decide; all metrics of a cell in which none does.
fn rows<'a>(input: &Input<'a>) -> Vec<Row<'a>> {
    let mut all = Vec::new();
    for (place, cell) in input.comparison.cells.iter().enumerate() {
        let any = cell.metrics.iter().any(|row| row.primary);
        for metric in cell.metrics.iter().filter(|row| row.primary || !any) {
            for other in about::others(input.comparison) {
                if let Some(judgement) = about::judgement(metric, other) {
                    all.push(Row {
                        place,
                        other,
                        cell,
                        metric,
                        judgement,
                    });
                }
            }
        }
    }
    all
}

/// Where a row stands: the best change first; what cannot be judged last.
fn better(row: &Row<'_>) -> f64 {
    let Some(effect) = row.judgement.effect else {
        return f64::INFINITY;
    };
    let size = match effect.kind {
        EffectKind::Ratio => effect.estimate.ln(),
        EffectKind::Difference => effect.estimate,
    };
    match row.metric.direction {
        Direction::Higher => -size,
        Direction::Lower | Direction::Neutral => size,
    }
}

/// The parts of cells' labels, as they are joined.
const JOINT: &str = " · ";

/// What all cells have in common, said once; empty where there is nothing.
fn shared(common: &[&str]) -> String {
    if common.is_empty() {
        return String::new();
    }
    format!("All cells: {}. ", text(&common.join(JOINT), 300))
}

/// The parts of their labels that all cells have, if there are several cells.
fn common<'a>(input: &Input<'a>) -> Vec<&'a str> {
    let mut cells = input.comparison.cells.iter();
    let (Some(first), true) = (cells.next(), input.comparison.cells.len() > 1) else {
        return Vec::new();
    };
    let rest: Vec<Vec<&str>> = cells
        .map(|cell| cell.label.split(JOINT).collect())
        .collect();
    first
        .label
        .split(JOINT)
        .filter(|part| rest.iter().all(|other| other.contains(part)))
        .collect()
}

/// Labels of the cells without what all have in common.
fn short_labels(input: &Input<'_>, common: &[&str]) -> Vec<String> {
    input
        .comparison
        .cells
        .iter()
        .map(|cell| {
            let own: Vec<&str> = cell
                .label
                .split(JOINT)
                .filter(|part| !common.contains(part))
                .collect();
            if own.is_empty() {
                cell.label.clone()
            } else {
                own.join(JOINT)
            }
        })
        .collect()
}

fn table(
    input: &Input<'_>,
    scales: &Scales,
    rows: &[Row<'_>],
    labels: &[String],
    out: &mut String,
) {
    put!(
        out,
        "<table class=\"forest\"><thead><tr><th scope=\"col\">metric</th><th scope=\"col\" aria-label=\"change with its interval\">{}</th>\
         <th scope=\"col\">verdict</th></tr></thead><tbody>\n",
        scales.ratio().svg(WIDTH, PAD)
    );
    let many = input.comparison.columns.len() > 2;
    for row in rows {
        let unit = row.metric.unit;
        let change = effect::change(row.judgement, unit, false);
        let interval = effect::interval(row.judgement, unit, false);
        let variant = if many {
            format!(
                "{} · ",
                text(about::name(input.comparison, row.other), NAME)
            )
        } else {
            String::new()
        };
        let label = format!(
            "{} of {}: {change} {interval}",
            row.metric.name, row.cell.label
        );
        put!(
            out,
            "<tr><th scope=\"row\"><a href=\"#cell-{0}\">{variant}{1}</a><small>{2}</small></th><td>{3}</td>\
             <td><span class=\"badge {4}\">{4}</span> <span class=\"number\">{5} {6}</span>{7}</td></tr>\n",
            row.place,
            text(&row.metric.name, NAME),
            text(labels.get(row.place).map_or("", String::as_str), NAME),
            strip::svg(row.judgement, unit, scales, WIDTH, &label),
            row.judgement.verdict,
            text(&change, NAME),
            text(&interval, NAME),
            why_not(row.judgement)
        );
    }
    out.push_str("</tbody></table>\n");
}

/// Half a line for what is not sure.
fn why_not(judgement: &Judgement) -> String {
    let why = match &judgement.verdict {
        Verdict::Invalid { reason } => Some(reason.clone()),
        _ => effect::doubt(judgement),
    };
    why.map_or_else(String::new, |why| {
        format!("<small>{}</small>", text(&why, 300))
    })
}
