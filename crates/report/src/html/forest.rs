//! Overview of the results in one picture: the primary metrics of all cells, from the best change to the worst. Ratios
//! have one scale, differences one for each unit.

use pagetide_compare::{Cell, Comparison, MetricRow};
use pagetide_quantity::Direction;
use pagetide_verdict::judgement::EffectKind;
use pagetide_verdict::{Judgement, Verdict};

use super::Input;
use super::axis::Scales;
use super::escape::text;
use super::strip::{self, PAD};
use crate::about::{self, BASELINE};
use crate::names::Names;
use crate::terminal::effect;

/// Width of the pictures in pixels.
const WIDTH: f64 = 380.0;
/// Maximum length, in characters, of the text about parts that all cells share.
const SHARED_CHARS: usize = 300;
/// Maximum length of a name in a row, in characters.
const NAME_CHARS: usize = 120;
/// Number of visible rows; further rows are in a collapsed part.
const SHOWN_ROWS: usize = 24;

/// A primary metric with its judgement.
pub(crate) struct Row<'a> {
    /// Index of the cell.
    pub place: usize,
    /// Index of the variant.
    pub other: usize,
    /// The cell that contains the metric.
    pub cell: &'a Cell,
    /// The metric with its values.
    pub metric: &'a MetricRow,
    /// Judgement on the variant for this metric.
    pub judgement: &'a Judgement,
}

/// Writes the plot; nothing if no metric is judged.
pub(crate) fn plot(input: &Input<'_>, scales: &Scales, names: &Names, out: &mut String) {
    let rows = rows(input.comparison);
    if rows.is_empty() {
        return;
    }
    let shared = match names.shared.trim_end() {
        "" => String::new(),
        shared => format!("{} ", text(shared, SHARED_CHARS)),
    };
    put!(
        out,
        "<h3 id=\"forest\">What decides, from the best to the worst</h3>\n<p class=\"params\">{shared}Change against {}, with its \
         interval. A filled diamond is a sure verdict, a ring is not sure; shaded is what does not matter.</p>\n",
        text(about::name(input.comparison, BASELINE), NAME_CHARS)
    );
    let (first, rest) = rows.split_at(rows.len().min(SHOWN_ROWS));
    table(input, scales, first, names, out);
    if !rest.is_empty() {
        put!(out, "<details><summary>{} more</summary>\n", rest.len());
        table(input, scales, rest, names, out);
        out.push_str("</details>\n");
    }
}

/// Returns the judged primary metrics of all cells, for each variant shown, the best change first. Cells without
/// primary metrics contribute all metrics.
pub(crate) fn rows(comparison: &Comparison) -> Vec<Row<'_>> {
    let mut all = Vec::new();
    for (place, cell) in comparison.cells.iter().enumerate() {
        let any = cell.metrics.iter().any(|row| row.primary);
        for metric in cell.metrics.iter().filter(|row| row.primary || !any) {
            for other in about::shown(comparison, cell) {
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
    all.sort_by(|a, b| better(a).total_cmp(&better(b)));
    all
}

/// Returns the sort key of a row: the best change is smallest; rows without an effect come last. A metric without a
/// better direction counts as better the more it falls.
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

fn table(input: &Input<'_>, scales: &Scales, rows: &[Row<'_>], names: &Names, out: &mut String) {
    put!(
        out,
        "<table class=\"forest\"><thead><tr><th scope=\"col\">metric</th><th scope=\"col\"><span class=\"unseen\">change with its interval</span>{}</th>\
         <th scope=\"col\" class=\"number\">change</th><th scope=\"col\">verdict</th></tr></thead><tbody>\n",
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
                text(about::name(input.comparison, row.other), NAME_CHARS)
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
            "<tr><th scope=\"row\"><a href=\"#cell-{0}\">{variant}{1}</a>{2}</th><td>{3}</td>\
             <td class=\"number\">{5} <span class=\"interval-text\">{6}</span></td><td><span class=\"badge {4}\">{4}</span>{7}</td></tr>\n",
            row.place,
            text(&row.metric.name, NAME_CHARS),
            match names.cell(row.place) {
                "" => String::new(),
                cell => format!("<small>{}</small>", text(cell, NAME_CHARS)),
            },
            strip::svg(row.judgement, unit, scales, WIDTH, &label),
            row.judgement.verdict,
            text(&change, NAME_CHARS),
            text(&interval, NAME_CHARS),
            why_not(row.judgement)
        );
    }
    out.push_str("</tbody></table>\n");
}

/// Returns a short reason as HTML why a result is invalid or undecided; empty if there is none.
fn why_not(judgement: &Judgement) -> String {
    let why = match &judgement.verdict {
        Verdict::Invalid { reason } => Some(reason.clone()),
        _ => effect::doubt(judgement),
    };
    why.map_or_else(String::new, |why| {
        format!("<small>{}</small>", text(&why, 300))
    })
}
