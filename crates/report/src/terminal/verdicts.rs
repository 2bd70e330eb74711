//! The table of verdicts: variants, results, confidence intervals, and warnings.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_compare::{Caution, Cell as Group, Comparison, MetricRow};
use pagetide_quantity::Unit;
use pagetide_verdict::Verdict;

use crate::about::{self, About, BASELINE};
use crate::column_notes;
use crate::draw::clean::wrap;
use crate::draw::quantity::Scale;
use crate::draw::{Align, Cell, Grid, Ink, TextStyle, clean, clean_label, picture, width};
use crate::kinds;
use crate::terminal::notes::{level, methods, notes};
use crate::terminal::scale::scale;
use crate::terminal::show::Presence;
use crate::terminal::sizes::across_sizes;
use crate::terminal::{effect, summary};
use crate::why;

/// Maximum lengths of metric names, in columns; they are tried in turn until the table fits.
const METRIC: [usize; 4] = [28, 22, 16, 12];
/// Maximum length of a variant's name as a column heading, in columns.
const HEAD: usize = 18;
/// Maximum length of a variant's name that stays on one line of a narrow table, in columns: about the width of a value.
const SHORT_HEAD: usize = 9;
/// Possible widths of the field in which intervals are drawn, in columns; the largest width that fits is used. All
/// widths are odd, so that the column in the middle stands for zero.
const STRIPS: [usize; 3] = [25, 21, 17];
/// Maximum number of invalid trials listed.
const INVALID: usize = 12;

/// What to show in addition to the primary metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// True if other metrics without a difference are shown too.
    pub all: bool,
    /// True if the latency histograms of the variants are drawn.
    pub pictures: bool,
}

/// Renders the tables of verdicts for all cells of a comparison.
pub fn verdicts(
    comparison: &Comparison,
    about: &About,
    options: Options,
    text_style: &TextStyle,
) -> String {
    let mut out = heading(comparison, about, text_style);
    for (place, group) in comparison.cells.iter().enumerate() {
        out.push('\n');
        let deaths = column_notes::sure_deaths(comparison, place, text_style);
        for sentence in &deaths {
            inked(&mut out, &sentence.text, 0, sentence.ink, text_style);
        }
        out.push_str(&cell(comparison, group, options, text_style));
        if let Some(of_cell) = kinds::of_cell(comparison, place) {
            let sign = |verdict: &Verdict| effect::verdict_sign(verdict, text_style);
            out.push_str(&kinds::table(comparison, of_cell, (text_style, 2), &sign));
        }
        let mut others = column_notes::sentences(comparison, place, text_style);
        others.retain(|sentence| !deaths.contains(sentence));
        for sentence in others {
            inked(&mut out, &sentence.text, 2, sentence.ink, text_style);
        }
        out.push_str(&why::under_cell(comparison, place, text_style));
        if options.pictures {
            out.push_str(&pictures(comparison, about, place, text_style));
        }
    }
    out.push_str(&across_sizes(comparison, text_style));
    out.push('\n');
    for index in about::others(comparison) {
        let text = summary::sentence(comparison, index, text_style.ascii);
        for line in wrap(&text, text_style.width, text_style.ascii) {
            out.push_str(&text_style.ink(Ink::Strong, &line));
            out.push('\n');
        }
    }
    let died = about::died(comparison);
    let head = match died.len() {
        1 => "One trial died, which is a result; it has no other values:".to_owned(),
        n => format!("{n} trials died, which is a result; they have no other values:"),
    };
    out.push_str(&listed(&died, &head, text_style));
    let invalid = about::invalid(comparison);
    let head = match invalid.len() {
        1 => "One trial is invalid and not used:".to_owned(),
        n => format!("{n} trials are invalid and not used:"),
    };
    out.push_str(&listed(&invalid, &head, text_style));
    out.push_str(&cautions(comparison, text_style));
    out.push('\n');
    for method in methods(comparison, text_style) {
        faint(&mut out, &method, 0, text_style);
    }
    if about::is_exact(comparison) {
        faint(&mut out, about::EXACT_CAVEAT, 0, text_style);
    }
    out
}

/// Appends wrapped text in faint style, indented by `indent` spaces, and by two more from the second line on.
fn faint(out: &mut String, text: &str, indent: usize, text_style: &TextStyle) {
    inked(out, text, indent, Ink::Faint, text_style);
}

/// Appends wrapped text in the style `ink`, indented by `indent` spaces, and by two more from the second line on.
fn inked(out: &mut String, text: &str, indent: usize, ink: Ink, text_style: &TextStyle) {
    let room = text_style.width.saturating_sub(indent + 2);
    for (index, line) in wrap(text, room, text_style.ascii).iter().enumerate() {
        let more = if index == 0 { 0 } else { 2 };
        out.push_str(&" ".repeat(indent + more));
        out.push_str(&text_style.ink(ink, line));
        out.push('\n');
    }
}

fn heading(comparison: &Comparison, about: &About, text_style: &TextStyle) -> String {
    let mut out = String::new();
    let title = clean(&about.title, text_style.width, text_style.ascii);
    out.push_str(&text_style.ink(Ink::Strong, &title));
    out.push('\n');
    // Settings are the longest and least important part, so they are shortened first.
    for (release, settings) in [(26, 60), (26, 30), (26, 12), (26, 0), (9, 0)] {
        let grid = variants(comparison, release, settings, text_style);
        if grid.width() + 2 <= text_style.width || release == 9 {
            out.push_str(&grid.draw(text_style, 2));
            break;
        }
    }
    out
}

/// Returns a table of the variants with their kernels and settings. A kernel release is cut to `release` characters and
/// the text of the settings to `settings`; 0 leaves the settings out.
fn variants(
    comparison: &Comparison,
    release: usize,
    settings: usize,
    text_style: &TextStyle,
) -> Grid {
    let mut grid = Grid::new([Align::Left; 4]);
    for (index, column) in comparison.columns.iter().enumerate() {
        let role = if index == BASELINE { "baseline" } else { "" };
        let text = match settings {
            0 => String::new(),
            room => clean(&about::what_differs(column), room, text_style.ascii),
        };
        grid.row([
            Cell::new(Ink::Strong, clean(&column.name, HEAD, text_style.ascii)),
            Cell::plain(clean(about::release(column), release, text_style.ascii)),
            Cell::new(Ink::Faint, role),
            Cell::new(Ink::Faint, text),
        ]);
    }
    grid
}

/// Returns the rows that are shown, primary metrics first, and the number of rows that are not shown.
fn chosen(group: &Group, all: bool) -> (Vec<&MetricRow>, usize) {
    let (mut rows, others): (Vec<&MetricRow>, Vec<&MetricRow>) = group
        .metrics
        .iter()
        .filter(|row| !group.is_scale(row))
        .partition(|row| row.primary);
    let any = !rows.is_empty();
    let mut left = 0;
    for row in others {
        let tells = row
            .judgements
            .iter()
            .flatten()
            .any(|judgement| judgement.verdict.is_difference());
        if all || !any || tells {
            rows.push(row);
        } else {
            left += 1;
        }
    }
    (rows, left)
}

fn cell(
    comparison: &Comparison,
    group: &Group,
    options: Options,
    text_style: &TextStyle,
) -> String {
    let mut out = String::new();
    let seeds = seeds(group);
    let label = clean_label(
        &group.label,
        text_style.width.saturating_sub(width(&seeds) + 2),
        text_style.ascii,
    );
    out.push_str(&text_style.ink(Ink::Strong, &label));
    let space = text_style
        .width
        .min(100)
        .saturating_sub(width(&label) + width(&seeds));
    out.push_str(&" ".repeat(space.max(2)));
    out.push_str(&text_style.ink(Ink::Faint, &seeds));
    out.push('\n');
    let params = about::params(group);
    if !params.is_empty() {
        let text = clean(&params, text_style.width - 2, text_style.ascii);
        put!(out, "  {}\n", text_style.ink(Ink::Faint, &text));
    }
    let (rows, left) = chosen(group, options.all);
    let others: Vec<usize> = about::shown(comparison, group).collect();
    out.push_str(&table(comparison, &rows, &others, text_style));
    if left > 0 {
        let text = if left == 1 {
            "One other metric shows no sure difference; --all lists it.".to_owned()
        } else {
            format!("{left} other metrics show no sure difference; --all lists them.")
        };
        faint(&mut out, &text, 2, text_style);
    }
    if let Some(grid) = scale(comparison, group, text_style)
        && grid.width() + 2 <= text_style.width
    {
        out.push_str(&grid.draw(text_style, 2));
    }
    for note in notes(comparison, group, &rows, text_style) {
        faint(&mut out, &note, 2, text_style);
    }
    out
}

/// Returns the number of seeds, such as `6 seeds`, or the range if metrics differ; empty if nothing is judged.
pub fn seeds(group: &Group) -> String {
    let ns = || {
        group
            .metrics
            .iter()
            .flat_map(|row| row.judgements.iter().flatten())
            .map(|judgement| judgement.n)
            .filter(|n| *n > 0)
    };
    match (ns().min(), ns().max()) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high} seeds"),
        (_, Some(1)) => "1 seed".to_owned(),
        (_, Some(n)) => format!("{n} seeds"),
        _ => String::new(),
    }
}

/// Content of a table line for one metric.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineShape {
    /// The interval drawn in a field of this width in columns, and the verdict as a word.
    Strip(usize),
    /// The verdict as a word, without a drawn interval.
    Words,
    /// Only the sign of the verdict; names of variants take two lines.
    Signs,
}

/// Chooses the widest layout that fits. The layouts are, in this order: a table for each variant with one line per
/// metric, with the interval drawn, without it, or with only the verdict's sign; blocks of two lines per metric for as
/// many variants as fit next to each other; up to four lines per metric without a table. In tables, names are never cut
/// so much that two become equal.
fn table(
    comparison: &Comparison,
    rows: &[&MetricRow],
    others: &[usize],
    text_style: &TextStyle,
) -> String {
    let fits = |grid: &Grid| grid.width() + 2 <= text_style.width;
    let tells = |name: &usize| {
        let mut seen = BTreeSet::new();
        let mut names = rows
            .iter()
            .map(|row| name_of(row, *name, text_style).draw(text_style));
        names.all(|name| seen.insert(name))
    };
    let names: Vec<usize> = METRIC.into_iter().filter(tells).collect();
    let single = |other: &usize, shapes: &[LineShape]| {
        shapes.iter().find_map(|shape| {
            names
                .iter()
                .filter(|name| **name >= METRIC[2])
                .map(|name| lines(comparison, rows, *other, *shape, *name, text_style))
                .find(fits)
        })
    };
    let of_all = |shapes: &[LineShape]| -> Option<Vec<Grid>> {
        others.iter().map(|other| single(other, shapes)).collect()
    };
    let draw = |grids: Vec<Grid>| {
        let drawn: Vec<String> = grids.iter().map(|grid| grid.draw(text_style, 2)).collect();
        drawn.join("\n")
    };
    let widest = STRIPS.map(LineShape::Strip);
    if let Some(grids) = of_all(&[&widest[..], &[LineShape::Words]].concat()) {
        return draw(grids);
    }
    if let Some(grids) = of_all(&[LineShape::Signs]) {
        let mut out = draw(grids);
        let judged = rows.iter().flat_map(|row| {
            let of = others
                .iter()
                .filter_map(|other| about::judgement(row, *other));
            of.map(|judgement| &judgement.verdict)
        });
        faint(&mut out, &effect::legend(judged, text_style), 2, text_style);
        return out;
    }
    let mut out = String::new();
    let mut from = 0;
    while from < others.len() {
        let most = others.len() - from;
        let found = (1..=most).rev().find_map(|count| {
            names.iter().find_map(|name| {
                let grid = blocks(
                    comparison,
                    rows,
                    &others[from..from + count],
                    *name,
                    text_style,
                );
                fits(&grid).then_some((count, grid))
            })
        });
        if from > 0 {
            out.push('\n');
        }
        if let Some((count, grid)) = found {
            out.push_str(&grid.draw(text_style, 2));
            from += count;
        } else {
            out.push_str(&stack(rows, others[from], text_style));
            from += 1;
        }
    }
    out
}

/// Renders up to four lines for each metric, for very narrow terminals: name, values, verdict, interval.
fn stack(rows: &[&MetricRow], other: usize, text_style: &TextStyle) -> String {
    let mut out = String::new();
    let room = text_style.width - 4;
    for row in rows {
        let name = name_of(row, room, text_style).draw(text_style);
        put!(out, "  {name}\n");
        let values = values_of(row, text_style);
        let value = |index: usize| {
            values
                .get(index)
                .map_or(String::new(), |c| c.draw(text_style))
        };
        let (from, to) = (value(BASELINE), value(other));
        put!(out, "    {from} {} {to}\n", text_style.or("→", "->"));
        if let Some(judgement) = about::judgement(row, other) {
            let verdict = effect::verdict(&judgement.verdict, text_style).draw(text_style);
            let change = effect::change(judgement, row.unit, text_style.ascii);
            let interval = effect::interval(judgement, row.unit, text_style.ascii);
            put!(out, "    {verdict} {change}\n");
            if !interval.is_empty() {
                put!(out, "    {interval}\n");
            }
        }
    }
    out
}

fn head_of(comparison: &Comparison, index: usize, text_style: &TextStyle) -> Cell {
    let name = about::name(comparison, index);
    Cell::new(Ink::Strong, clean(name, HEAD, text_style.ascii))
}

/// Returns a metric's name. The unit "pages" is added here once instead of to every value.
fn name_of(row: &MetricRow, limit: usize, text_style: &TextStyle) -> Cell {
    let ink = if row.primary { Ink::Plain } else { Ink::Faint };
    if row.unit == Unit::Pages && !row.name.contains("page") {
        let name = clean(&row.name, limit.saturating_sub(6), text_style.ascii);
        return Cell::new(ink, name).and(Ink::Faint, " pages");
    }
    Cell::new(ink, clean(&row.name, limit, text_style.ascii))
}

/// Returns the medians of a row in one common scale; `-` or `–` for a variant without values.
fn values_of(row: &MetricRow, text_style: &TextStyle) -> Vec<Cell> {
    let medians = about::medians(row);
    let scale = Scale::of_all(row.unit, medians.iter().copied().flatten());
    medians
        .into_iter()
        .map(|median| match median {
            Some(value) if row.unit == Unit::Pages => Cell::plain(scale.number(value)),
            Some(value) => Cell::plain(scale.show(value, text_style.ascii)),
            None => Cell::new(Ink::Faint, text_style.or("–", "-")),
        })
        .collect()
}

/// Returns a table with one line for each metric: both values, change, interval, the drawn interval, verdict.
fn lines(
    comparison: &Comparison,
    rows: &[&MetricRow],
    other: usize,
    shape: LineShape,
    name: usize,
    text_style: &TextStyle,
) -> Grid {
    use Align::{Left, Right};
    let strip = match shape {
        LineShape::Strip(columns) => columns,
        LineShape::Words | LineShape::Signs => 0,
    };
    let mut grid = Grid::new([Left, Right, Right, Right, Left, Left, Left]);
    let percent = effect::reach(rows);
    let reach = (percent / 100.0).ln_1p();
    let axis = if strip > 0 {
        let sign = text_style.or("−", "-");
        let (left, right) = (format!("{sign}{percent} %"), format!("+{percent} %"));
        let gap = strip.saturating_sub(width(&left) + width(&right));
        format!("{left}{}{right}", " ".repeat(gap))
    } else {
        String::new()
    };
    let mut heads = [BASELINE, other].map(|side| head_of(comparison, side, text_style));
    let mut verdict = "verdict";
    if shape == LineShape::Signs {
        let halves = [BASELINE, other].map(|side| halves(about::name(comparison, side)));
        if halves.iter().any(|(upper, _)| !upper.is_empty()) {
            let upper =
                |half: &(&str, &str)| Cell::new(Ink::Strong, clean(half.0, HEAD, text_style.ascii));
            grid.row([Cell::empty(), upper(&halves[0]), upper(&halves[1])]);
        }
        heads =
            halves.map(|(_, lower)| Cell::new(Ink::Strong, clean(lower, HEAD, text_style.ascii)));
        verdict = "";
    }
    let [from, to] = heads;
    let mut head = vec![Cell::empty(), from, to];
    for text in ["change", &level(rows), &axis, verdict] {
        head.push(Cell::new(Ink::Faint, text));
    }
    grid.row(head);
    for row in rows {
        let values = values_of(row, text_style);
        let value = |index: usize| values.get(index).cloned().unwrap_or_default();
        let mut cells = vec![
            name_of(row, name, text_style),
            value(BASELINE),
            value(other),
        ];
        if let Some(judgement) = about::judgement(row, other) {
            let ink = effect::ink(&judgement.verdict);
            let change = effect::change(judgement, row.unit, text_style.ascii);
            cells.push(Cell::new(ink, change));
            let interval = effect::interval(judgement, row.unit, text_style.ascii);
            cells.push(Cell::plain(interval));
            cells.push(effect::strip(judgement, reach, strip, text_style));
            cells.push(if shape == LineShape::Signs {
                effect::verdict_sign(&judgement.verdict, text_style)
            } else {
                effect::verdict(&judgement.verdict, text_style)
            });
        }
        grid.row(cells);
    }
    grid
}

/// Splits a long name of a variant after its last slash, or else after its last equals sign. The first part is empty if
/// the name is short or has neither.
fn halves(name: &str) -> (&str, &str) {
    let long = width(name) > SHORT_HEAD;
    let at = name.rfind('/').or_else(|| name.rfind('='));
    match at.filter(|at| long && at + 1 < name.len()) {
        Some(at) => name.split_at(at + 1),
        None => ("", name),
    }
}

/// Returns a table with two lines for each metric: values and verdicts, then changes and intervals below them.
fn blocks(
    comparison: &Comparison,
    rows: &[&MetricRow],
    others: &[usize],
    name: usize,
    text_style: &TextStyle,
) -> Grid {
    let mut aligns = vec![Align::Left, Align::Right];
    let mut head = vec![Cell::empty(), head_of(comparison, BASELINE, text_style)];
    let level = level(rows);
    for other in others {
        aligns.extend([Align::Right, Align::Left]);
        head.extend([
            head_of(comparison, *other, text_style),
            Cell::new(Ink::Faint, level.as_str()),
        ]);
    }
    let mut grid = Grid::new(aligns);
    grid.row(head);
    for row in rows {
        let values = values_of(row, text_style);
        let value = |index: usize| values.get(index).cloned().unwrap_or_default();
        let mut first = vec![name_of(row, name, text_style), value(BASELINE)];
        let mut second = vec![Cell::empty(), Cell::empty()];
        for other in others {
            first.push(value(*other));
            let Some(judgement) = about::judgement(row, *other) else {
                first.push(Cell::empty());
                second.extend([Cell::empty(), Cell::empty()]);
                continue;
            };
            first.push(effect::verdict(&judgement.verdict, text_style));
            // The word "identical" is enough.
            let change = if judgement.verdict == Verdict::Identical {
                String::new()
            } else {
                effect::change(judgement, row.unit, text_style.ascii)
            };
            let interval = effect::interval(judgement, row.unit, text_style.ascii);
            second.push(Cell::new(effect::ink(&judgement.verdict), change));
            second.push(Cell::plain(interval));
        }
        grid.row(first);
        if second.iter().any(|cell| cell.width() > 0) {
            grid.row(second);
        }
    }
    grid
}

/// Renders a heading and, below it, trials that have no values, with reasons. Returns an empty text if `all` is empty.
fn listed(all: &[about::Invalid<'_>], head: &str, text_style: &TextStyle) -> String {
    let mut out = String::new();
    if all.is_empty() {
        return out;
    }
    put!(out, "\n{}\n", text_style.ink(Ink::Broken, head));
    for invalid in all.iter().take(INVALID) {
        let what = format!(
            "{} · {} · seed {}",
            clean(invalid.column, HEAD, text_style.ascii),
            clean_label(invalid.label, 60, text_style.ascii),
            invalid.trial.seed
        );
        put!(
            out,
            "  {}\n",
            clean(&what, text_style.width - 2, text_style.ascii)
        );
        let why = clean(&invalid.trial.why, 500, text_style.ascii);
        for line in wrap(&why, text_style.width - 4, text_style.ascii) {
            put!(out, "    {}\n", text_style.ink(Ink::Faint, &line));
        }
    }
    if all.len() > INVALID {
        let more = format!("and {} more", all.len() - INVALID);
        put!(out, "  {}\n", text_style.ink(Ink::Faint, &more));
    }
    out
}

/// Renders the warnings about the whole comparison.
fn cautions(comparison: &Comparison, text_style: &TextStyle) -> String {
    let mut out = String::new();
    // The caution that times are virtual is left out here, because the end of the output contains the same statement in
    // other words.
    for caution in comparison
        .cautions
        .iter()
        .filter(|caution| **caution != Caution::VirtualTime)
    {
        let text = clean(&caution.to_string(), 600, text_style.ascii);
        for line in wrap(
            &format!("Caution: {text}."),
            text_style.width,
            text_style.ascii,
        ) {
            put!(out, "{}\n", text_style.ink(Ink::Unsure, &line));
        }
    }
    if out.is_empty() {
        out
    } else {
        format!("\n{out}")
    }
}

/// Renders the access latencies of every variant that has a histogram.
fn pictures(
    comparison: &Comparison,
    about: &About,
    place: usize,
    text_style: &TextStyle,
) -> String {
    let mut out = String::new();
    for index in 0..comparison.columns.len() {
        let Some(histogram) = about.access.get(&(place, index)) else {
            continue;
        };
        let name = clean(about::name(comparison, index), HEAD, text_style.ascii);
        let head = format!("access time, {name}");
        put!(out, "  {}\n", text_style.ink(Ink::Faint, &head));
        out.push_str(&picture::histogram(histogram, text_style));
    }
    out
}

/// Renders maps of the pages that were in memory at the end, which `maps` holds by indices of cell and column. Each map
/// is from a single seed, because maps of several trials cannot be merged. The maps are printed below the table if
/// pictures are requested.
pub fn presence_maps(
    comparison: &Comparison,
    maps: &BTreeMap<(usize, usize), Presence>,
    text_style: &TextStyle,
) -> String {
    let mut out = String::new();
    for (place, group) in comparison.cells.iter().enumerate() {
        let mut first = true;
        for index in 0..comparison.columns.len() {
            let Some(map) = maps.get(&(place, index)) else {
                continue;
            };
            if first {
                let label = clean_label(&group.label, text_style.width, text_style.ascii);
                put!(out, "\n{}\n", text_style.ink(Ink::Strong, &label));
                first = false;
            }
            let name = clean(about::name(comparison, index), HEAD, text_style.ascii);
            let head = format!("pages present at the end, {name}");
            put!(out, "  {}\n", text_style.ink(Ink::Faint, &head));
            out.push_str(&picture::presence(&map.pages, text_style));
        }
    }
    out
}
