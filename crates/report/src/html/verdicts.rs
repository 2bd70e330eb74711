//! Verdicts as HTML: the sentence, the tables with intervals drawn, the invalid trials, the reclaim table.

use pagetide_compare::{Cell, MetricRow};
use pagetide_verdict::{Judgement, Verdict};

use super::Input;
use super::escape::{LONG, text};
use super::strip;
use crate::about::{self, BASELINE};
use crate::beside;
use crate::draw::Look;
use crate::draw::quantity::Scale;
use crate::terminal::{effect, notes, summary};

/// Longest name in a table.
const NAME: usize = 80;
/// Invalid trials listed one by one.
const INVALID: usize = 200;

/// What was found.
pub(crate) fn section(input: &Input<'_>, out: &mut String) {
    let comparison = input.comparison;
    out.push_str("<section id=\"verdict\" aria-labelledby=\"verdict-title\">\n");
    let others: Vec<usize> = about::others(comparison).collect();
    if others.is_empty() {
        put!(
            out,
            "<h2 id=\"verdict-title\">What was measured</h2>\n<p class=\"sentence\">{}: one variant, so nothing is judged.</p>\n",
            text(about::name(comparison, BASELINE), NAME)
        );
    } else {
        put!(
            out,
            "<h2 id=\"verdict-title\">Verdict: <span class=\"badge {0}\">{0}</span></h2>\n",
            comparison.overall
        );
        for index in &others {
            put!(
                out,
                "<p class=\"sentence\">{}</p>\n",
                text(&summary::sentence(comparison, *index, false), LONG)
            );
        }
    }
    for (place, cell) in comparison.cells.iter().enumerate() {
        put!(
            out,
            "<h3 id=\"cell-{place}\">{}</h3>\n",
            text(&cell.label, NAME)
        );
        let params = about::params(cell);
        if !params.is_empty() {
            put!(out, "<p class=\"params\">{}</p>\n", text(&params, LONG));
        }
        if others.is_empty() {
            values(cell, out);
        }
        for other in &others {
            table(input, cell, *other, out);
        }
        for sentence in beside::sentences(comparison, place, &Look::plain(4000)) {
            put!(out, "<p>{}</p>\n", text(&sentence.text, LONG));
        }
    }
    invalid(input, out);
    if !others.is_empty() {
        out.push_str("<details><summary>How the figures were found</summary>\n<ul>\n");
        for method in notes::methods(comparison, &Look::plain(4000)) {
            put!(out, "<li>{}</li>\n", text(&method, LONG));
        }
        put!(
            out,
            "<li>Primary metrics share an error rate of {} %. Shaded: the margin within which a difference does not \
             matter.</li>\n</ul></details>\n",
            summary::percent(comparison.alpha)
        );
    }
    out.push_str("</section>\n");
}

/// Metrics and values where there is nothing to compare with.
fn values(cell: &Cell, out: &mut String) {
    out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Metrics\"><table><thead><tr><th scope=\"col\">metric</th><th scope=\"col\">value</th></tr></thead><tbody>\n");
    for row in &cell.metrics {
        let value = row.values.first();
        let shown = match value.and_then(about::centre) {
            Some(centre) => Scale::of_all(row.unit, [centre.median]).show(centre.median, false),
            None => value
                .and_then(|value| value.absent.clone())
                .unwrap_or_else(|| "not measured".to_owned()),
        };
        put!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td></tr>\n",
            text(&row.name, NAME),
            text(&shown, 300)
        );
    }
    out.push_str("</tbody></table></div>\n");
}

/// Baseline against one other variant: primary metrics in sight, the others behind a summary.
fn table(input: &Input<'_>, cell: &Cell, other: usize, out: &mut String) {
    let rows: Vec<&MetricRow> = cell.metrics.iter().collect();
    let reach = (1.0 + effect::reach(&rows) / 100.0).ln();
    let (primary, rest): (Vec<&MetricRow>, Vec<&MetricRow>) =
        rows.iter().partition(|row| row.primary);
    let (first, second) = if primary.is_empty() {
        (rest, Vec::new())
    } else {
        (primary, rest)
    };
    body(input, &first, other, reach, out);
    if !second.is_empty() {
        put!(
            out,
            "<details><summary>{} other {}</summary>\n",
            second.len(),
            if second.len() == 1 {
                "metric"
            } else {
                "metrics"
            }
        );
        body(input, &second, other, reach, out);
        out.push_str("</details>\n");
    }
}

fn body(input: &Input<'_>, rows: &[&MetricRow], other: usize, reach: f64, out: &mut String) {
    let name = |index: usize| text(about::name(input.comparison, index), NAME);
    put!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{1} against {0}\"><table class=\"verdicts\"><thead><tr>\
         <th scope=\"col\">metric</th><th scope=\"col\">{0}</th><th scope=\"col\">{1}</th><th scope=\"col\">change</th>\
         <th scope=\"col\">interval (±{2:.0} %)</th><th scope=\"col\">n</th><th scope=\"col\">verdict</th></tr></thead><tbody>\n",
        name(BASELINE),
        name(other),
        (reach.exp() - 1.0) * 100.0
    );
    for row in rows {
        line(row, other, reach, out);
    }
    out.push_str("</tbody></table></div>\n");
}

fn line(row: &MetricRow, other: usize, reach: f64, out: &mut String) {
    let medians = about::medians(row);
    let scale = Scale::of_all(row.unit, medians.iter().flatten().copied());
    let value = |index: usize| match medians.get(index).copied().flatten() {
        Some(median) => text(&scale.show(median, false), NAME),
        None => text(
            row.values
                .get(index)
                .and_then(|values| values.absent.as_deref())
                .unwrap_or("–"),
            NAME,
        ),
    };
    put!(
        out,
        "<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td class=\"number\">{}</td>",
        text(&row.name, NAME),
        value(BASELINE),
        value(other)
    );
    let Some(judgement) = about::judgement(row, other) else {
        out.push_str("<td></td><td></td><td></td><td>not judged</td></tr>\n");
        return;
    };
    let change = effect::change(judgement, row.unit, false);
    let interval = effect::interval(judgement, row.unit, false);
    let label = format!("{}: {change} {interval}", row.name);
    put!(
        out,
        "<td class=\"number\">{}</td><td>{}<span class=\"interval-text\">{}</span></td><td class=\"number\">{}</td>\
         <td><span class=\"badge {}\">{}</span>{}</td></tr>\n",
        text(&change, NAME),
        strip::svg(judgement, reach, &label),
        text(&interval, NAME),
        judgement.n,
        judgement.verdict,
        judgement.verdict,
        remarks(judgement)
    );
}

/// What would decide the undecided, why the invalid is, and what else to know.
fn remarks(judgement: &Judgement) -> String {
    let mut all = Vec::new();
    match &judgement.verdict {
        Verdict::Inconclusive { n_needed: Some(n) } => {
            all.push(format!("{n} seeds would probably decide"));
        }
        Verdict::Inconclusive { n_needed: None } => {
            all.push("no number of seeds is likely to decide".to_owned());
        }
        Verdict::Invalid { reason } => all.push(reason.clone()),
        Verdict::Confounded { by } => all.push(format!("also differs: {by}")),
        _ => {}
    }
    all.extend(judgement.notes.iter().map(notes::remark));
    all.iter().fold(String::new(), |mut out, line| {
        put!(out, "<small>{}</small>", text(line, 400));
        out
    })
}

/// Trials that are not used, with their reasons.
fn invalid(input: &Input<'_>, out: &mut String) {
    let all = about::invalid(input.comparison);
    if all.is_empty() {
        return;
    }
    put!(
        out,
        "<h3 id=\"invalid\">{} invalid {}, not used</h3>\n<ul class=\"invalid\">\n",
        all.len(),
        if all.len() == 1 { "trial" } else { "trials" }
    );
    for invalid in all.iter().take(INVALID) {
        put!(
            out,
            "<li><strong>{} · {} · seed {}</strong> <code>{}</code>: {}</li>\n",
            text(invalid.column, NAME),
            text(invalid.label, NAME),
            invalid.trial.seed,
            text(
                invalid
                    .trial
                    .record
                    .get(..12)
                    .unwrap_or(&invalid.trial.record),
                12
            ),
            text(&invalid.trial.why, 1000)
        );
    }
    if all.len() > INVALID {
        put!(out, "<li>and {} more</li>\n", all.len() - INVALID);
    }
    out.push_str("</ul>\n");
}
