//! Verdicts as HTML: the summary sentence, tables with drawn intervals, invalid trials.

use pagetide_compare::kinds::Kinds;
use pagetide_compare::{Cell, Comparison, MetricRow};
use pagetide_store::short;
use pagetide_verdict::judgement::Note;
use pagetide_verdict::{Judgement, Verdict};

use super::Input;
use super::axis::Scales;
use super::escape::{LONG, prose, text};
use super::strip::{self, PAD};
use super::{because, forest};
use crate::about::{self, BASELINE};
use crate::column_notes;
use crate::draw::quantity::Scale;
use crate::draw::{Ink, TextStyle};
use crate::kinds;
use crate::names::Names;
use crate::terminal::{effect, notes, summary};

/// Maximum length of a name in a table, in characters.
const NAME_CHARS: usize = 80;
/// Width of the pictures of intervals in pixels.
const WIDTH: f64 = 260.0;
/// Maximum number of seeds that is printed as enough to decide a verdict.
const MANY: u64 = 1000;
/// Maximum number of invalid trials listed one by one.
const SHOWN_INVALID: usize = 200;

/// Writes the results: a sentence for each variant, the primary metrics in one picture, important notes, and
/// explanations.
pub(crate) fn section(input: &Input<'_>, scales: &Scales, out: &mut String) {
    let comparison = input.comparison;
    let names = Names::of(comparison);
    out.push_str("<section id=\"verdict\" aria-labelledby=\"verdict-title\">\n");
    if about::others(comparison).next().is_none() {
        let died = about::died(comparison);
        let dead = about::invalid(comparison);
        let is_dead = comparison.columns.iter().all(|column| column.valid == 0);
        let sentence = match died.first().or(dead.first()).filter(|_| is_dead) {
            Some(first) => format!(
                "<strong class=\"badge invalid\">{}</strong> {}",
                if first.trial.died {
                    "Died."
                } else {
                    "Not valid."
                },
                prose(&first.trial.why, 1000)
            ),
            None => format!(
                "{}: one variant, so nothing is judged.",
                text(about::name(comparison, BASELINE), NAME_CHARS)
            ),
        };
        put!(
            out,
            "<h2 id=\"verdict-title\">What was measured</h2>\n<p class=\"sentence\">{sentence}</p>\n"
        );
    } else {
        out.push_str("<h2 id=\"verdict-title\">Verdict</h2>\n");
        for index in about::others(comparison) {
            let sentence = summary::sentence(comparison, index, false);
            let sentence = text(&sentence, LONG);
            let judged = cells_judged(comparison, index);
            if judged || column_notes::deaths_verdict(comparison, index).is_some() {
                let lead = lead(comparison, index);
                put!(out, "<p class=\"sentence\">{lead} {sentence}</p>\n");
            } else {
                put!(
                    out,
                    "<p class=\"sentence\"><strong class=\"badge invalid\">{sentence}</strong></p>\n"
                );
            }
        }
        dead(comparison, out);
    }
    forest::plot(input, scales, &names, out);
    beside_all(input, out);
    because::section(input, &names, out);
    out.push_str("</section>\n");
}

/// True if any metric of this variant is judged.
fn cells_judged(comparison: &Comparison, other: usize) -> bool {
    let mut rows = comparison.cells.iter().flat_map(|cell| &cell.metrics);
    rows.any(|row| about::judgement(row, other).is_some())
}

/// Writes the variants all of whose trials are invalid or died, each with the most frequent reason.
fn dead(comparison: &Comparison, out: &mut String) {
    let mut invalid = about::died(comparison);
    invalid.extend(about::invalid(comparison));
    for column in &comparison.columns {
        if column.valid > 0 || column.invalid == 0 {
            continue;
        }
        let reasons = || {
            let own = invalid.iter().filter(|one| one.column == column.name);
            own.map(|one| one.trial.why.as_str())
        };
        let count = |why: &str| reasons().filter(|other| *other == why).count();
        let Some(most) = reasons().max_by_key(|why| count(why)) else {
            continue;
        };
        let died = invalid
            .iter()
            .filter(|one| one.trial.died && one.column == column.name);
        let what = match died.count() {
            all if all == column.invalid => format!("all {all} trials died"),
            _ => format!("no trial of {} is valid", column.invalid),
        };
        put!(
            out,
            "<p class=\"sentence\">{}: {what}. {} of them: {} <a href=\"#invalid\">All reasons</a></p>\n",
            text(&column.name, NAME_CHARS),
            count(most),
            prose(most, 1000)
        );
    }
}

/// Summarizes the result for one variant in a few words as HTML, with the colour of its verdicts.
pub(crate) fn lead(comparison: &Comparison, other: usize) -> String {
    let cells = &comparison.cells;
    let any = cells
        .iter()
        .flat_map(|cell| &cell.metrics)
        .any(|row| row.primary);
    let all: Vec<&Verdict> = cells
        .iter()
        .flat_map(|cell| &cell.metrics)
        .filter(|row| row.primary || !any)
        .filter_map(|row| about::judgement(row, other))
        .map(|judgement| &judgement.verdict)
        .collect();
    let count = |is: &dyn Fn(&Verdict) -> bool| all.iter().filter(|verdict| is(verdict)).count();
    let better = count(&|verdict| *verdict == Verdict::Improved);
    let worse = count(&|verdict| *verdict == Verdict::Regressed);
    let identical = count(&|verdict| *verdict == Verdict::Identical);
    let same = identical + count(&|verdict| *verdict == Verdict::Equivalent);
    let invalid = count(&|verdict| matches!(verdict, Verdict::Invalid { .. }));
    let of = |n: usize| match all.len() {
        whole if n == whole => String::new(),
        whole => format!(" in {n} of {whole}"),
    };
    let deaths = column_notes::deaths_verdict(comparison, other);
    let (class, words) = match (better, worse) {
        _ if deaths == Some(&Verdict::Regressed) => ("regressed", "Dies more often.".to_owned()),
        (_, 0) if deaths == Some(&Verdict::Improved) => ("improved", "Dies less often.".to_owned()),
        _ if all.is_empty() || invalid == all.len() => {
            ("invalid", "Nothing could be compared.".to_owned())
        }
        (0, 0) if identical == all.len() => ("identical", "No difference at all.".to_owned()),
        (0, 0) if same == all.len() => ("equivalent", "No difference that matters.".to_owned()),
        (0, 0) => ("inconclusive", "Not decided.".to_owned()),
        (_, 0) => ("improved", format!("Better{}.", of(better))),
        (0, _) => ("regressed", format!("Worse{}.", of(worse))),
        _ => (
            "inconclusive",
            format!(
                "Mixed: better in {better}, worse in {worse} of {}.",
                all.len()
            ),
        ),
    };
    format!("<strong class=\"badge {class}\">{words}</strong>")
}

/// Writes the important notes on the verdicts: a side that ran out of memory, an unintended difference, a setting that
/// cannot act. Notes that apply to all cells are written once.
fn beside_all(input: &Input<'_>, out: &mut String) {
    let mut said: Vec<(String, Vec<&str>)> = Vec::new();
    for (place, cell) in input.comparison.cells.iter().enumerate() {
        for sentence in column_notes::sentences(input.comparison, place, &TextStyle::plain(4000)) {
            if sentence.ink == Ink::Faint {
                continue;
            }
            match said.iter_mut().find(|(known, _)| *known == sentence.text) {
                Some((_, labels)) => labels.push(&cell.label),
                None => said.push((sentence.text, vec![&cell.label])),
            }
        }
    }
    if said.is_empty() {
        return;
    }
    out.push_str("<ul class=\"beside\">\n");
    for (sentence, labels) in &said {
        let of = if labels.len() == input.comparison.cells.len() {
            String::new()
        } else {
            format!("{}: ", text(&labels.join("; "), LONG))
        };
        put!(out, "<li>{of}{}</li>\n", text(sentence, LONG));
    }
    out.push_str("</ul>\n");
}

/// Writes the parameters, tables and notes of one cell.
pub(crate) fn tables(
    input: &Input<'_>,
    scales: &Scales,
    place: usize,
    cell: &Cell,
    out: &mut String,
) {
    let params = about::params(cell);
    if !params.is_empty() {
        put!(out, "<p class=\"params\">{}</p>\n", text(&params, LONG));
    }
    let others = about::shown(input.comparison, cell);
    if about::others(input.comparison).next().is_none() {
        values(cell, out);
    }
    for other in others {
        table(input, cell, other, scales, out);
    }
    if let Some(of_cell) = kinds::of_cell(input.comparison, place) {
        kinds_of_swap(input, of_cell, out);
    }
    for sentence in column_notes::sentences(input.comparison, place, &TextStyle::plain(4000)) {
        put!(out, "<p>{}</p>\n", text(&sentence.text, LONG));
    }
}

/// Writes the table that compares the kinds of swap of one cell.
fn kinds_of_swap(input: &Input<'_>, of_cell: &Kinds, out: &mut String) {
    put!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{0}\"><table><caption>{0}</caption><thead><tr>",
        kinds::TITLE
    );
    for head in kinds::heads(of_cell) {
        put!(out, "<th scope=\"col\">{}</th>", text(&head, NAME_CHARS));
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in kinds::rows(input.comparison, of_cell, false) {
        out.push_str("<tr>");
        for (place, field) in row.into_iter().enumerate() {
            let shown = text(&field.text, NAME_CHARS);
            let verdict = field.verdict.map_or_else(String::new, |verdict| {
                format!(" <span class=\"badge {verdict}\">{verdict}</span>")
            });
            match place {
                0 => put!(out, "<th scope=\"row\">{shown}</th>"),
                1..=4 => put!(out, "<td class=\"number\">{shown}{verdict}</td>"),
                _ => put!(out, "<td>{shown}</td>"),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

/// Summarizes the verdicts on the primary metrics of a cell in a few words as HTML, for the cell's summary line. With
/// several variants, each variant's name precedes its verdicts.
pub(crate) fn words(input: &Input<'_>, cell: &Cell) -> String {
    let mut out = String::new();
    let several = about::others(input.comparison).count() > 1;
    for other in about::shown(input.comparison, cell) {
        if several {
            let name = text(about::name(input.comparison, other), NAME_CHARS);
            put!(out, " <span class=\"of\">{name}:");
        }
        for row in cell.metrics.iter().filter(|row| row.primary) {
            if let Some(judgement) = about::judgement(row, other) {
                put!(
                    out,
                    " <span class=\"badge {0}\">{1} {0} {2}</span>",
                    judgement.verdict,
                    text(&row.name, NAME_CHARS),
                    text(&effect::change(judgement, row.unit, false), NAME_CHARS)
                );
            }
        }
        if several {
            out.push_str("</span>");
        }
    }
    out
}

/// Writes how the numbers were computed.
pub(crate) fn methods(input: &Input<'_>, out: &mut String) {
    let comparison = input.comparison;
    if about::others(comparison).next().is_none() {
        return;
    }
    out.push_str("<details><summary>How the figures were found</summary>\n<ul>\n");
    for method in notes::methods(comparison, &TextStyle::plain(4000)) {
        put!(out, "<li>{}</li>\n", text(&method, LONG));
    }
    put!(
        out,
        "<li>Primary metrics share an error rate of {} %. Shaded: the margin within which a difference does not matter.</li>\n\
         <li>Change and interval are those of pairs with the same seed where there are pairs; the two columns before them are \
         medians.</li>\n</ul></details>\n",
        summary::percent(comparison.alpha)
    );
}

/// Writes metrics and values if there is nothing to compare with: primary metrics are visible (all metrics if none is
/// primary), all others are in a collapsed part.
fn values(cell: &Cell, out: &mut String) {
    let (primary, rest): (Vec<&MetricRow>, Vec<&MetricRow>) =
        cell.metrics.iter().partition(|row| row.primary);
    let (first, second) = if primary.is_empty() {
        (rest, Vec::new())
    } else {
        (primary, rest)
    };
    if !first.is_empty() {
        list(&first, out);
    }
    if !second.is_empty() {
        put!(
            out,
            "<details><summary>{} other metrics</summary>\n",
            second.len()
        );
        list(&second, out);
        out.push_str("</details>\n");
    }
}

fn list(rows: &[&MetricRow], out: &mut String) {
    out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Metrics\"><table><thead><tr><th scope=\"col\">metric</th><th scope=\"col\" class=\"number\">value</th></tr></thead><tbody>\n");
    for row in rows {
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
            text(&row.name, NAME_CHARS),
            text(&shown, 300)
        );
    }
    out.push_str("</tbody></table></div>\n");
}

/// Writes the table of the baseline and one other variant: primary metrics are visible (all metrics if none is
/// primary), all others are in collapsed parts.
fn table(input: &Input<'_>, cell: &Cell, other: usize, scales: &Scales, out: &mut String) {
    let (primary, rest): (Vec<&MetricRow>, Vec<&MetricRow>) =
        cell.metrics.iter().partition(|row| row.primary);
    let (first, second) = if primary.is_empty() {
        (rest, Vec::new())
    } else {
        (primary, rest)
    };
    body(input, &first, other, scales, out);
    if second.is_empty() {
        return;
    }
    let is_sure = |row: &&MetricRow| {
        about::judgement(row, other).is_some_and(|judgement| judgement.verdict.is_difference())
    };
    let (sure, open): (Vec<&MetricRow>, Vec<&MetricRow>) = second.into_iter().partition(is_sure);
    for (rows, what) in [
        (sure, "that surely differ"),
        (open, "without a sure difference"),
    ] {
        if rows.is_empty() {
            continue;
        }
        let noun = if rows.len() == 1 { "metric" } else { "metrics" };
        put!(
            out,
            "<details><summary>{} other {noun} {what}</summary>\n",
            rows.len()
        );
        body(input, &rows, other, scales, out);
        out.push_str("</details>\n");
    }
}

fn body(input: &Input<'_>, rows: &[&MetricRow], other: usize, scales: &Scales, out: &mut String) {
    let name = |index: usize| text(about::name(input.comparison, index), NAME_CHARS);
    put!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{1} against {0}\"><table class=\"verdicts\"><thead><tr>\
         <th scope=\"col\">metric</th><th scope=\"col\">{0}</th><th scope=\"col\">{1}</th><th scope=\"col\">change</th>\
         <th scope=\"col\"><span class=\"unseen\">interval</span>{2}</th><th scope=\"col\">n</th><th scope=\"col\">verdict</th></tr></thead><tbody>\n",
        name(BASELINE),
        name(other),
        scales.ratio().svg(WIDTH, PAD)
    );
    for row in rows {
        line(input, row, other, scales, out);
    }
    out.push_str("</tbody></table></div>\n");
}

fn line(input: &Input<'_>, row: &MetricRow, other: usize, scales: &Scales, out: &mut String) {
    let name = |index: usize| text(about::name(input.comparison, index), NAME_CHARS);
    let medians = about::medians(row);
    let scale = Scale::of_all(row.unit, medians.iter().flatten().copied());
    let value = |index: usize| match medians.get(index).copied().flatten() {
        Some(median) => text(&scale.show(median, false), NAME_CHARS),
        None => text(
            row.values
                .get(index)
                .and_then(|values| values.absent.as_deref())
                .unwrap_or("–"),
            NAME_CHARS,
        ),
    };
    put!(
        out,
        "<tr><th scope=\"row\">{}</th><td class=\"number\" data-name=\"{}\">{}</td><td class=\"number\" data-name=\"{}\">{}</td>",
        text(&row.name, NAME_CHARS),
        name(BASELINE),
        value(BASELINE),
        name(other),
        value(other)
    );
    let Some(judgement) = about::judgement(row, other) else {
        out.push_str("<td></td><td></td><td></td><td>not judged</td></tr>\n");
        return;
    };
    let change = effect::change(judgement, row.unit, false);
    let interval = effect::interval(judgement, row.unit, false);
    let label = format!("{}: {change} {interval}", row.name);
    let level = judgement
        .effect
        .and_then(|effect| effect.interval)
        .filter(|_| !interval.is_empty())
        .map_or_else(String::new, |interval| {
            format!(" at {} %", summary::percent(interval.level))
        });
    put!(
        out,
        "<td class=\"number\" data-name=\"change\">{}</td><td>{}<span class=\"interval-text\">{}{level}</span></td><td class=\"number\">{}</td>\
         <td><span class=\"badge {}\">{}</span>{}</td></tr>\n",
        text(&change, NAME_CHARS),
        strip::svg(judgement, row.unit, scales, WIDTH, &label),
        text(&interval, NAME_CHARS),
        judgement.n,
        judgement.verdict,
        judgement.verdict,
        remarks(row, other, judgement)
    );
}

/// Returns remarks on a row as HTML: how to decide an inconclusive verdict, why a verdict is invalid, and other notes.
fn remarks(row: &MetricRow, other: usize, judgement: &Judgement) -> String {
    let mut all = Vec::new();
    let doubt = effect::doubt(judgement);
    let is_agreed = effect::agreement(judgement).is_some();
    all.extend(doubt);
    all.extend(effect::parting(row, other));
    match &judgement.verdict {
        Verdict::Inconclusive { .. } if is_agreed => {}
        Verdict::Inconclusive { n_needed: Some(n) } if *n > MANY => {
            all.push(format!("more than {MANY} seeds would be needed to decide"));
        }
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
    let notes = judgement.notes.iter();
    let others = notes.filter(|note| !matches!(note, Note::AllAgree { .. }));
    all.extend(others.map(notes::remark));
    all.iter().fold(String::new(), |mut out, line| {
        put!(out, "<small>{}</small>", text(line, 400));
        out
    })
}

/// Writes two lists with reasons: trials that died, and other invalid trials.
pub(crate) fn invalid(input: &Input<'_>, out: &mut String) {
    let trials = |n: usize| if n == 1 { "trial" } else { "trials" };
    let died = about::died(input.comparison);
    let invalid = about::invalid(input.comparison);
    let [d, i] = [died.len(), invalid.len()];
    let head = format!("{d} {} died, which is a result", trials(d));
    // The page's link to the reasons leads to the first of the two lists.
    listed(&died, "invalid", &head, out);
    let id = if d > 0 { "invalid-others" } else { "invalid" };
    listed(
        &invalid,
        id,
        &format!("{i} invalid {}, not used", trials(i)),
        out,
    );
}

/// Writes a heading and, below it, trials that have no values, with reasons. Writes nothing if `all` is empty.
fn listed(all: &[about::Invalid<'_>], id: &str, head: &str, out: &mut String) {
    if all.is_empty() {
        return;
    }
    put!(out, "<h2 id=\"{id}\">{head}</h2>\n<ul class=\"invalid\">\n");
    // Seeds with the same reason are listed together.
    let mut reasons: Vec<(&about::Invalid<'_>, Vec<u64>)> = Vec::new();
    for invalid in all {
        let same = |known: &about::Invalid<'_>| {
            (known.column, known.label, &known.trial.why)
                == (invalid.column, invalid.label, &invalid.trial.why)
        };
        match reasons.iter_mut().find(|(known, _)| same(known)) {
            Some((_, seeds)) => seeds.push(invalid.trial.seed),
            None => reasons.push((invalid, vec![invalid.trial.seed])),
        }
    }
    for (invalid, seeds) in reasons.iter().take(SHOWN_INVALID) {
        let which = match &seeds[..] {
            [seed] => {
                let short = text(short(&invalid.trial.record), 12);
                format!("seed {seed}</strong> <code>{short}</code>")
            }
            many => {
                let seeds: Vec<String> = many.iter().map(u64::to_string).collect();
                let seeds = text(&seeds.join(", "), 200);
                format!("{} trials</strong> (seeds {seeds})", many.len())
            }
        };
        put!(
            out,
            "<li><strong>{} · {} · {which}: {}</li>\n",
            text(invalid.column, NAME_CHARS),
            text(invalid.label, NAME_CHARS),
            prose(&invalid.trial.why, 1000)
        );
    }
    if reasons.len() > SHOWN_INVALID {
        put!(out, "<li>and {} more</li>\n", reasons.len() - SHOWN_INVALID);
    }
    out.push_str("</ul>\n");
}
