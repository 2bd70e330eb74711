//! The mail table: plain ASCII, 75 columns, ready to paste to a mailing list.
//!
//! Rows are metrics, columns variants; behind a value stands its change as `( x.xx%)`, a mark for significance and the
//! interval. A change is always that of the value: negative is smaller, and the mark says which way is better.

use pagetide_compare::{Caution, Cell as Group, Comparison, MetricRow};
use pagetide_quantity::Unit;
use pagetide_verdict::judgement::EffectKind;
use pagetide_verdict::{Judgement, Verdict};

use crate::about::{self, About, BASELINE};
use crate::beside;
use crate::draw::clean::wrap;
use crate::draw::quantity::{Scale, grouped};
use crate::draw::{Align, Cell, Grid, Look, clean, width};
use crate::terminal::notes::{level, methods, notes};
use crate::terminal::scale::scale;
use crate::terminal::summary;
use crate::terminal::verdicts::EXACT_CAVEAT;
use crate::why;

/// Columns of a mail that survive quoting.
pub const WIDTH: usize = 75;
/// Mails are ASCII.
const LOOK: Look = Look {
    width: WIDTH,
    colour: false,
    ascii: true,
};
/// Lengths to which metric names are cut until the table fits.
const METRIC: [usize; 3] = [30, 22, 16];
/// Longest name of a variant.
const HEAD: usize = 14;
/// Most invalid trials named.
const INVALID: usize = 8;

/// Writes a comparison as a mail's text.
pub fn mail(comparison: &Comparison, about: &About) -> String {
    let mut out = String::new();
    paragraph(&mut out, &about.title);
    out.push('\n');
    for index in about::others(comparison) {
        paragraph(&mut out, &summary::sentence(comparison, index, true));
    }
    for (place, group) in comparison.cells.iter().enumerate() {
        out.push('\n');
        cell(&mut out, comparison, group);
        for sentence in beside::sentences(comparison, place, &LOOK) {
            paragraph(&mut out, &sentence.text);
        }
        for explained in why::of_cell(comparison, place) {
            for statement in why::statements(comparison, explained, false, true) {
                paragraph(&mut out, &statement.line());
            }
        }
    }
    out.push('\n');
    out.push_str("* better, ! worse, / different, beyond chance; ~ equivalent; = identical;\n");
    out.push_str("? inconclusive. ( x.xx%) is the change of the value, [ ] its interval.\n");
    if confounded(comparison) {
        out.push_str("# confounded: what nobody asked for differs as well.\n");
    }
    for method in methods(comparison, &LOOK) {
        paragraph(&mut out, &method);
    }
    if about::is_exact(comparison) {
        paragraph(&mut out, EXACT_CAVEAT);
    }
    for caution in comparison
        .cautions
        .iter()
        .filter(|caution| **caution != Caution::VirtualTime)
    {
        paragraph(&mut out, &format!("Caution: {caution}."));
    }
    invalid(&mut out, comparison);
    provenance(&mut out, comparison, about);
    out
}

/// Whether the mark of confounded verdicts needs its meaning.
fn confounded(comparison: &Comparison) -> bool {
    let mut all = comparison.beside.iter();
    all.any(|beside| beside.confounding().next().is_some())
}

fn paragraph(out: &mut String, text: &str) {
    if text.is_empty() {
        return;
    }
    // Cut before it is wrapped: a text of a megabyte is no paragraph.
    for line in wrap(&clean(text, 1000, true), WIDTH, true) {
        put!(out, "{line}\n");
    }
}

fn cell(out: &mut String, comparison: &Comparison, group: &Group) {
    put!(out, "{}\n", clean(&group.label, WIDTH, true));
    paragraph(out, &about::params(group));
    let judged = group.metrics.iter().filter(|row| !group.is_scale(row));
    let mut rows: Vec<&MetricRow> = judged.collect();
    rows.sort_by_key(|row| !row.primary);
    let others: Vec<usize> = about::others(comparison).collect();
    let mut from = 0;
    while from < others.len() {
        // One variant has its interval on the line; several have it on a line below.
        let most = others.len() - from;
        let found = (1..=most.min(3)).rev().find_map(|count| {
            METRIC.iter().find_map(|name| {
                let grid = table(comparison, &rows, &others[from..from + count], *name);
                (grid.width() <= WIDTH).then_some((count, grid))
            })
        });
        let (count, grid) = found.unwrap_or_else(|| {
            let grid = table(comparison, &rows, &others[from..=from], 8);
            (1, grid)
        });
        for line in grid.draw(&LOOK, 0).lines() {
            put!(out, "{}\n", clean(line, WIDTH, true));
        }
        from += count;
    }
    for line in scale(comparison, group, &LOOK).iter().flat_map(|grid| {
        grid.draw(&LOOK, 0)
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    }) {
        put!(out, "{}\n", clean(&line, WIDTH, true));
    }
    for note in notes(comparison, &rows, &LOOK) {
        paragraph(out, &note);
    }
}

fn table(comparison: &Comparison, rows: &[&MetricRow], others: &[usize], name: usize) -> Grid {
    let inline = others.len() == 1;
    let head = |index: usize| Cell::plain(clean(about::name(comparison, index), HEAD, true));
    let mut aligns = vec![Align::Left, Align::Right];
    let mut heads = vec![Cell::empty(), head(BASELINE)];
    for other in others {
        aligns.extend([Align::Right, Align::Left]);
        heads.extend([head(*other), Cell::empty()]);
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

/// Name and unit of a row.
fn label(row: &MetricRow, scale: &Scale, limit: usize) -> String {
    let unit = match scale.unit {
        "" => String::new(),
        "µs" => " (us)".to_owned(),
        unit => format!(" ({unit})"),
    };
    let name = clean(&row.name, limit.saturating_sub(width(&unit)), true);
    format!("{name}{unit}")
}

/// The mark of a verdict.
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

/// A number of an effect in per cent, points of a share, or the metric's own unit.
fn number(value: f64, kind: EffectKind, row: &MetricRow) -> String {
    match kind {
        EffectKind::Ratio => grouped((value - 1.0) * 100.0, 2),
        EffectKind::Difference if row.unit == Unit::Share => grouped(value * 100.0, 2),
        EffectKind::Difference => {
            let scale = Scale::of_all(row.unit, about::medians(row).into_iter().flatten());
            grouped(value / scale.divisor, 2)
        }
    }
}

/// The change as `(-10.67%)`; points and differences have their own unit behind.
fn change(judgement: &Judgement, row: &MetricRow) -> String {
    let Some(effect) = &judgement.effect else {
        return String::new();
    };
    let estimate = if judgement.verdict == Verdict::Identical {
        effect.kind.null()
    } else {
        effect.estimate
    };
    let unit = match effect.kind {
        EffectKind::Ratio => "%",
        EffectKind::Difference if row.unit == Unit::Share => "pt",
        EffectKind::Difference => "",
    };
    format!("({:>6}{unit})", number(estimate, effect.kind, row))
}

fn interval(judgement: &Judgement, row: &MetricRow) -> String {
    let Some((kind, interval)) = judgement
        .effect
        .as_ref()
        .filter(|_| judgement.verdict != Verdict::Identical)
        .and_then(|effect| Some((effect.kind, effect.interval?)))
    else {
        return String::new();
    };
    format!(
        "[{}, {}]",
        number(interval.low, kind, row),
        number(interval.high, kind, row)
    )
}

fn invalid(out: &mut String, comparison: &Comparison) {
    let all = about::invalid(comparison);
    if all.is_empty() {
        return;
    }
    put!(out, "\nInvalid, not used: {}\n", all.len());
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

/// Machine, kernels, command line.
fn provenance(out: &mut String, comparison: &Comparison, about: &About) {
    out.push('\n');
    let machine = &about.machine;
    if !machine.cpu.is_empty() {
        let text = format!(
            "Machine: {} x {}, {} memory, {}, Linux {}",
            machine.cpus, machine.cpu, machine.memory, machine.system, machine.kernel
        );
        paragraph(out, &text);
    }
    for column in &comparison.columns {
        let settings = match about::settings(column).as_str() {
            "" => String::new(),
            text => format!(", {text}"),
        };
        let kernel = about::kernel(column);
        let text = format!("{}: Linux {kernel}{settings}", column.name);
        paragraph(out, &text);
    }
    if !about.command.is_empty() {
        // A command must survive pasting: it is continued the shell's way.
        let command = clean(&about.command, 1000, true);
        let lines = wrap(&format!("$ {command}"), WIDTH - 2, true);
        put!(out, "{}\n", lines.join(" \\\n"));
    }
}
