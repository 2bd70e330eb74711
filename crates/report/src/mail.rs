//! The mail table: plain ASCII, 75 columns, ready to paste to a mailing list.
//!
//! Rows are metrics, columns are variants. A value is followed by its change as `( x.xx%)`, a mark for significance,
//! and the interval. The change is that of the value: negative means smaller; the mark says whether that is better.
//!
//! A cover letter contains only what matters most: the primary metrics, the other metrics with the largest significant
//! changes, and the first reasons. `--all` writes every metric with all notes.

use pagetide_compare::{Caution, Cell as Group, Comparison, MetricRow};
use pagetide_quantity::Unit;
use pagetide_quantity::command::continued;
use pagetide_verdict::judgement::{Effect, EffectKind};
use pagetide_verdict::{Judgement, Verdict};

use crate::about::EXACT_CAVEAT;
use crate::about::{self, About, BASELINE};
use crate::column_notes;
use crate::draw::clean::wrap;
use crate::draw::quantity::{Scale, estimate_within, grouped};
use crate::draw::{Align, Cell, Grid, TextStyle, clean, width};
use crate::kinds;
use crate::terminal::notes::{level, methods, notes};
use crate::terminal::scale::scale;
use crate::terminal::summary;
use crate::terminal::verdicts::seeds;
use crate::why;

/// Width of a mail that remains readable when quoted.
pub const WIDTH: usize = 75;
/// Style of text in mails: plain ASCII.
pub(crate) const TEXT_STYLE: TextStyle = TextStyle {
    width: WIDTH,
    colour: false,
    ascii: true,
};
/// Maximum lengths of metric names, in columns; they are tried in turn until the table fits.
const METRIC: [usize; 3] = [30, 22, 16];
/// Maximum length of a variant's name, in columns.
const HEAD_CHARS: usize = 14;
/// Maximum number of invalid trials that are named.
const INVALID: usize = 8;
/// Digits after the decimal point of a change, unless more are needed.
const DIGITS: usize = 2;

/// Limits of times in the exact arena, in one line.
const SHORT_CAVEAT: &str = "Exact arena: an instruction is a nanosecond; caches are not modelled.";
/// A short mail gets fewer metrics and mechanisms until it has fewer lines than this. With the last numbers in
/// [`SHORT`], it may be longer.
const LINES: usize = 40;
/// Numbers of other metrics and of mechanisms shown for each cell of a short mail, in addition to the primary metrics.
/// They are tried in turn; the first with which the mail fits is used.
const SHORT: [[usize; 2]; 4] = [[2, 3], [2, 2], [1, 2], [1, 1]];

/// Formats a comparison as the text of a mail: the most important parts, or everything if `all`.
pub fn mail(comparison: &Comparison, about: &About, all: bool) -> String {
    if all {
        return written(comparison, about, None);
    }
    let [first, rest @ ..] = SHORT.map(Some);
    let mut text = written(comparison, about, first);
    for short in rest {
        if text.lines().count() < LINES {
            break;
        }
        text = written(comparison, about, short);
    }
    text
}

/// Returns the mail. `short` holds the maximum number of other metrics and of mechanisms for each cell; everything is
/// written if it is `None`.
fn written(comparison: &Comparison, about: &About, short: Option<[usize; 2]>) -> String {
    let mut out = String::new();
    let all = short.is_none();
    let [others, reasons] = short.unwrap_or_default();
    for index in about::others(comparison) {
        paragraph(&mut out, &summary::sentence(comparison, index, true));
    }
    let mut hidden = [0; 2];
    for (place, group) in comparison.cells.iter().enumerate() {
        out.push('\n');
        if all {
            in_full(&mut out, comparison, group);
        } else {
            let of_cell = in_short(&mut out, comparison, group, others);
            hidden = [0, 1].map(|kind| hidden[kind] + of_cell[kind]);
        }
        if let Some(of_cell) = kinds::of_cell(comparison, place) {
            let sign = |verdict: &Verdict| Cell::plain(mark(verdict));
            out.push_str(&kinds::table(comparison, of_cell, (&TEXT_STYLE, 0), &sign));
        }
        for sentence in column_notes::sentences(comparison, place, &TEXT_STYLE) {
            paragraph(&mut out, &sentence.text);
        }
        for explained in why::of_cell(comparison, place) {
            if all {
                for statement in why::statements(comparison, explained, false, true) {
                    paragraph(&mut out, &statement.line());
                }
            } else {
                paragraph(&mut out, &why::brief(comparison, explained, reasons));
            }
        }
    }
    out.push('\n');
    if hidden != [0; 2] {
        let [changed, unsure] = hidden;
        let word = if changed == 1 { "metric" } else { "metrics" };
        let text = format!("{changed} more {word} surely changed, {unsure} did not: see --all.");
        paragraph(&mut out, &text);
    }
    legend(&mut out, comparison, all);
    for caution in comparison
        .cautions
        .iter()
        .filter(|caution| **caution != Caution::VirtualTime)
    {
        paragraph(&mut out, &format!("Caution: {caution}."));
    }
    listed(
        &mut out,
        "Died, which is a result",
        &about::died(comparison),
    );
    listed(&mut out, "Invalid, not used", &about::invalid(comparison));
    if all {
        out.push('\n');
    }
    provenance(&mut out, comparison, about, all);
    out
}

/// Appends the meaning of marks and numbers; in a short mail, only the most frequent method.
fn legend(out: &mut String, comparison: &Comparison, all: bool) {
    if all {
        out.push_str("* better, ! worse, / different, beyond chance; ~ equivalent; = identical;\n");
        out.push_str("? inconclusive. ( x.xx%) is the change of the value, [ ] its interval.\n");
    } else {
        out.push_str(
            "* better, ! worse, / different, ~ equivalent, = identical, ? inconclusive.\n",
        );
    }
    if confounded(comparison) {
        out.push_str("# confounded: what nobody asked for differs as well.\n");
    }
    let methods = methods(comparison, &TEXT_STYLE);
    for method in methods.iter().take(if all { usize::MAX } else { 1 }) {
        paragraph(out, method);
    }
    if about::is_exact(comparison) {
        paragraph(out, if all { EXACT_CAVEAT } else { SHORT_CAVEAT });
    }
}

/// True if any cell has an unintended difference that confounds its verdicts, so that the legend must explain the mark.
fn confounded(comparison: &Comparison) -> bool {
    let mut all = comparison.notes.iter();
    all.any(|beside| beside.confounding().next().is_some())
}

fn paragraph(out: &mut String, text: &str) {
    if text.is_empty() {
        return;
    }
    // Shortened before wrapping, because a text may have megabytes.
    for line in wrap(&clean(text, 1000, true), WIDTH, true) {
        put!(out, "{line}\n");
    }
}

/// Appends a cell with every metric and all notes.
fn in_full(out: &mut String, comparison: &Comparison, group: &Group) {
    put!(out, "{}\n", clean(&group.label, WIDTH, true));
    paragraph(out, &about::params(group));
    let judged = group.metrics.iter().filter(|row| !group.is_scale(row));
    let mut rows: Vec<&MetricRow> = judged.collect();
    rows.sort_by_key(|row| !row.primary);
    tables(out, comparison, group, &rows, "");
    for line in scale(comparison, group, &TEXT_STYLE)
        .iter()
        .flat_map(|grid| {
            grid.draw(&TEXT_STYLE, 0)
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
    {
        put!(out, "{}\n", clean(&line, WIDTH, true));
    }
    for note in notes(comparison, group, &rows, &TEXT_STYLE) {
        paragraph(out, &note);
    }
}

/// Appends a cell with its primary metrics and the `most` other metrics with the largest significant changes, of those
/// that have a better direction. Returns two numbers of metrics that are left out: those that changed significantly,
/// and those that did not.
fn in_short(out: &mut String, comparison: &Comparison, group: &Group, most: usize) -> [usize; 2] {
    put!(out, "{}\n", clean(&group.label, WIDTH, true));
    let judged = group.metrics.iter().filter(|row| !group.is_scale(row));
    let (mut rows, others): (Vec<&MetricRow>, Vec<&MetricRow>) =
        judged.partition(|row| row.primary);
    let (changed, unsure): (Vec<&MetricRow>, Vec<&MetricRow>) =
        others.into_iter().partition(|row| moved(row).is_some());
    let mut better: Vec<&MetricRow> = changed
        .iter()
        .copied()
        .filter(|row| moved(row).is_some_and(|(_, has_sense)| has_sense))
        .collect();
    // The largest change comes first; equal changes stay in the order of the scenario.
    let far = |row: &MetricRow| moved(row).map_or(0.0, |(far, _)| far);
    better.sort_by(|a, b| far(b).total_cmp(&far(a)));
    better.truncate(most);
    let undecided: Vec<&MetricRow> = rows
        .iter()
        .copied()
        .filter(|row| {
            let open = |judgement: &Judgement| {
                matches!(
                    judgement.verdict,
                    Verdict::Inconclusive { .. } | Verdict::Invalid { .. }
                )
            };
            row.judgements.iter().flatten().any(open)
        })
        .collect();
    let shown = better.len();
    rows.extend(better);
    tables(out, comparison, group, &rows, &seeds(group));
    // The first note says how to decide the inconclusive metrics.
    for note in notes(comparison, group, &undecided, &TEXT_STYLE)
        .iter()
        .take(1)
    {
        paragraph(out, note);
    }
    [changed.len() - shown, unsure.len()]
}

/// Returns the size of a row's largest significant change, and true if the verdict on it says better or worse. The size
/// is the absolute value of a natural logarithm for ratios, otherwise in the metric's unit. `None` if no variant
/// changed significantly.
fn moved(row: &MetricRow) -> Option<(f64, bool)> {
    row.judgements
        .iter()
        .flatten()
        .filter(|judgement| judgement.verdict.is_difference())
        .map(|judgement| {
            let effect = judgement.effect.as_ref();
            let far = effect.map_or(0.0, |effect| match effect.kind {
                EffectKind::Ratio => effect.estimate.ln().abs(),
                EffectKind::Difference => effect.estimate.abs(),
            });
            (far, judgement.verdict != Verdict::Changed)
        })
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// Renders the rows as one table, or as several tables if there are too many variants for one. `corner` is the text
/// above the names.
fn tables(
    out: &mut String,
    comparison: &Comparison,
    group: &Group,
    rows: &[&MetricRow],
    corner: &str,
) {
    let others: Vec<usize> = about::shown(comparison, group).collect();
    let mut from = 0;
    while from < others.len() {
        // With a single variant the interval is on the same line, otherwise on the line below.
        let most = others.len() - from;
        let found = (1..=most.min(3)).rev().find_map(|count| {
            METRIC.iter().find_map(|name| {
                let grid = table(comparison, rows, &others[from..from + count], *name, corner);
                (grid.width() <= WIDTH).then_some((count, grid))
            })
        });
        let (count, grid) = found.unwrap_or_else(|| {
            let grid = table(comparison, rows, &others[from..=from], 8, corner);
            (1, grid)
        });
        for line in grid.draw(&TEXT_STYLE, 0).lines() {
            put!(out, "{}\n", clean(line, WIDTH, true));
        }
        from += count;
    }
}

fn table(
    comparison: &Comparison,
    rows: &[&MetricRow],
    others: &[usize],
    name: usize,
    corner: &str,
) -> Grid {
    let inline = others.len() == 1;
    let head = |index: usize| {
        let role = role(comparison, index).filter(|_| !corner.is_empty());
        let name = role.unwrap_or_else(|| about::name(comparison, index));
        Cell::plain(clean(name, HEAD_CHARS, true))
    };
    let mut aligns = vec![Align::Left, Align::Right];
    let mut heads = vec![Cell::plain(corner), head(BASELINE)];
    for other in others {
        aligns.extend([Align::Right, Align::Left]);
        let change = if corner.is_empty() { "" } else { "change" };
        heads.extend([head(*other), Cell::plain(change)]);
    }
    if inline {
        aligns.push(Align::Left);
        heads.push(Cell::plain(level(rows)));
    }
    let mut grid = Grid::new(aligns);
    grid.row(heads);
    for row in rows {
        let medians = about::medians(row);
        let scale = Scale::of_all(row.unit, medians.iter().copied().flatten());
        let value = |index: usize| match medians.get(index) {
            Some(Some(median)) => Cell::plain(scale.number(*median)),
            _ => Cell::plain("-"),
        };
        let mut first = vec![Cell::plain(label(row, &scale, name)), value(BASELINE)];
        let mut second = vec![Cell::empty(); 2];
        for other in others {
            first.push(value(*other));
            let judgement = about::judgement(row, *other);
            first.push(Cell::plain(judgement.map_or_else(String::new, |j| {
                format!("{} {}", change(j, row), mark(&j.verdict))
            })));
            let interval = judgement.map_or_else(String::new, |j| interval(j, row));
            if inline {
                first.push(Cell::plain(interval));
            } else {
                second.extend([Cell::empty(), Cell::plain(interval)]);
            }
        }
        grid.row(first);
        if second.iter().any(|cell| cell.width() > 0) {
            grid.row(second);
        }
    }
    grid
}

/// Returns the heading of a column in a short mail: "before" or "after" if there are two columns, because their names
/// may be long; otherwise `None`.
fn role(comparison: &Comparison, index: usize) -> Option<&'static str> {
    let roles = ["before", "after"];
    (comparison.columns.len() == roles.len()).then(|| roles[index.min(1)])
}

/// Returns the label of a row: the metric's name, cut to `limit` columns, and its unit.
fn label(row: &MetricRow, scale: &Scale, limit: usize) -> String {
    let unit = match scale.unit {
        "" => String::new(),
        "µs" => " (us)".to_owned(),
        unit => format!(" ({unit})"),
    };
    let name = clean(&row.name, limit.saturating_sub(width(&unit)), true);
    format!("{name}{unit}")
}

/// Returns the mark that stands for a verdict after a change.
const fn mark(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Improved => "*",
        Verdict::Regressed => "!",
        Verdict::Changed => "/",
        Verdict::Equivalent => "~",
        Verdict::Identical => "=",
        Verdict::Confounded { .. } => "#",
        Verdict::Inconclusive { .. } => "?",
        Verdict::Invalid { .. } => "-",
    }
}

/// Formats an effect and both ends of its interval, without plus signs: in per cent, percentage points, or the metric's
/// own unit.
fn numbers(effect: &Effect, row: &MetricRow) -> [String; 3] {
    let shown = |value: f64| match effect.kind {
        EffectKind::Ratio => (value - 1.0) * 100.0,
        EffectKind::Difference if row.unit == Unit::Share => value * 100.0,
        EffectKind::Difference => {
            let scale = Scale::of_all(row.unit, about::medians(row).into_iter().flatten());
            value / scale.divisor
        }
    };
    let ends = effect.interval.map_or([effect.estimate; 2], |interval| {
        [interval.low, interval.high]
    });
    estimate_within(shown(effect.estimate), ends.map(shown), DIGITS, true)
        .map(|text| text.trim_start_matches('+').to_owned())
}

/// Returns the change as text, such as `(-10.67%)`; empty without an effect. Percentage points have `pt` after the
/// number. Other differences have no unit, because they are in that of the row.
fn change(judgement: &Judgement, row: &MetricRow) -> String {
    let Some(effect) = &judgement.effect else {
        return String::new();
    };
    let number = if judgement.verdict == Verdict::Identical {
        grouped(0.0, DIGITS)
    } else {
        let [number, ..] = numbers(effect, row);
        number
    };
    let unit = match effect.kind {
        EffectKind::Ratio => "%",
        EffectKind::Difference if row.unit == Unit::Share => "pt",
        EffectKind::Difference => "",
    };
    format!("({number:>6}{unit})")
}

fn interval(judgement: &Judgement, row: &MetricRow) -> String {
    let Some(effect) = judgement
        .effect
        .as_ref()
        .filter(|effect| judgement.verdict != Verdict::Identical && effect.interval.is_some())
    else {
        return String::new();
    };
    let [_, low, high] = numbers(effect, row);
    format!("[{low}, {high}]")
}

/// Appends a heading and trials that have no values, with reasons.
fn listed(out: &mut String, head: &str, all: &[about::Invalid<'_>]) {
    if all.is_empty() {
        return;
    }
    put!(out, "\n{head}: {}\n", all.len());
    for invalid in all.iter().take(INVALID) {
        let text = format!(
            "{}, {}, seed {}: {}",
            clean(invalid.column, 40, true),
            clean(invalid.label, 80, true),
            invalid.trial.seed,
            clean(&invalid.trial.why, 300, true)
        );
        for (index, line) in wrap(&text, WIDTH - 4, true).iter().enumerate() {
            put!(out, "{}{line}\n", if index == 0 { "  " } else { "    " });
        }
    }
}

/// Appends machine, kernels and command line.
fn provenance(out: &mut String, comparison: &Comparison, about: &About, all: bool) {
    let machine = &about.machine;
    if !machine.cpu.is_empty() {
        // Exact trials do not depend on the kernel of the host.
        let kernel = if all || !about::is_exact(comparison) {
            format!(", Linux {}", machine.kernel)
        } else {
            String::new()
        };
        let text = format!(
            "Machine: {} x {}, {} memory, {}{kernel}",
            machine.cpus, machine.cpu, machine.memory, machine.system
        );
        paragraph(out, &text);
    }
    for (index, column) in comparison.columns.iter().enumerate() {
        let settings = match about::settings(column).as_str() {
            "" => String::new(),
            text => format!(", {text}"),
        };
        let kernel = about::kernel(column);
        let role = role(comparison, index).filter(|_| !all);
        let role = role.map_or_else(String::new, |role| format!("{role} = "));
        // The kernel of imported results may be unknown.
        let kernel = match kernel.as_str() {
            "" => String::new(),
            release => format!(": Linux {release}"),
        };
        let text = format!("{role}{}{kernel}{settings}", column.name);
        paragraph(out, &text);
    }
    if !about.command.is_empty() {
        // The command must work when pasted, so lines end with a backslash.
        let command = clean(&about.command, 1000, true);
        let lines = continued(&format!("$ {command}"), WIDTH);
        put!(out, "{}\n", lines.join("\n"));
    }
}
