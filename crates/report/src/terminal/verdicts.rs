//! The table of verdicts: variants, results, confidence intervals, and warnings.

use std::collections::{BTreeMap, BTreeSet};

use pagetide_compare::{Caution, Cell as Group, Comparison, MetricRow};
use pagetide_quantity::Unit;
use pagetide_verdict::Verdict;

use crate::about::{self, About, BASELINE};
use crate::beside;
use crate::draw::clean::wrap;
use crate::draw::quantity::Scale;
use crate::draw::{Align, Cell, Grid, Ink, Look, clean, clean_label, picture, width};
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
/// Maximum length of a variant's name on one line of a narrow table, in columns; the column of values has this width.
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
pub fn verdicts(comparison: &Comparison, about: &About, options: Options, look: &Look) -> String {
    let mut out = heading(comparison, about, look);
    for (place, group) in comparison.cells.iter().enumerate() {
        out.push('\n');
        let deaths = beside::sure_deaths(comparison, place, look);
        for sentence in &deaths {
            inked(&mut out, &sentence.text, 0, sentence.ink, look);
        }
        out.push_str(&cell(comparison, group, options, look));
        if let Some(of_cell) = kinds::of_cell(comparison, place) {
            let sign = |verdict: &Verdict| effect::verdict_sign(verdict, look);
            out.push_str(&kinds::table(comparison, of_cell, (look, 2), &sign));
        }
        let mut others = beside::sentences(comparison, place, look);
        others.retain(|sentence| !deaths.contains(sentence));
        for sentence in others {
            inked(&mut out, &sentence.text, 2, sentence.ink, look);
        }
        out.push_str(&why::under_cell(comparison, place, look));
        if options.pictures {
            out.push_str(&pictures(comparison, about, place, look));
        }
    }
    out.push_str(&across_sizes(comparison, look));
    out.push('\n');
    for index in about::others(comparison) {
        let text = summary::sentence(comparison, index, look.ascii);
        for line in wrap(&text, look.width, look.ascii) {
            out.push_str(&look.ink(Ink::Strong, &line));
            out.push('\n');
        }
    }
    let died = about::died(comparison);
    let head = match died.len() {
        1 => "One trial died, which is a result; it has no other values:".to_owned(),
        n => format!("{n} trials died, which is a result; they have no other values:"),
    };
    out.push_str(&listed(&died, &head, look));
    let invalid = about::invalid(comparison);
    let head = match invalid.len() {
        1 => "One trial is invalid and not used:".to_owned(),
        n => format!("{n} trials are invalid and not used:"),
    };
    out.push_str(&listed(&invalid, &head, look));
    out.push_str(&cautions(comparison, look));
    out.push('\n');
    for method in methods(comparison, look) {
        faint(&mut out, &method, 0, look);
    }
    if about::is_exact(comparison) {
        faint(&mut out, about::EXACT_CAVEAT, 0, look);
    }
    out
}

/// Appends wrapped text in faint style, indented by `indent` spaces, and by two more from the second line on.
fn faint(out: &mut String, text: &str, indent: usize, look: &Look) {
    inked(out, text, indent, Ink::Faint, look);
}

/// Appends wrapped text in the style `ink`, indented by `indent` spaces, and by two more from the second line on.
fn inked(out: &mut String, text: &str, indent: usize, ink: Ink, look: &Look) {
    let room = look.width.saturating_sub(indent + 2);
    for (index, line) in wrap(text, room, look.ascii).iter().enumerate() {
        let more = if index == 0 { 0 } else { 2 };
        out.push_str(&" ".repeat(indent + more));
        out.push_str(&look.ink(ink, line));
        out.push('\n');
    }
}

fn heading(comparison: &Comparison, about: &About, look: &Look) -> String {
    let mut out = String::new();
    let title = clean(&about.title, look.width, look.ascii);
    out.push_str(&look.ink(Ink::Strong, &title));
    out.push('\n');
    // Settings are the longest and least important part, so they are shortened first.
    for (release, settings) in [(26, 60), (26, 30), (26, 12), (26, 0), (9, 0)] {
        let grid = variants(comparison, release, settings, look);
        if grid.width() + 2 <= look.width || release == 9 {
            out.push_str(&grid.draw(look, 2));
            break;
        }
    }
    out
}

/// Returns a table of the variants with their kernels and settings. A kernel release is cut to `release` characters and
/// the text of the settings to `settings`; 0 leaves the settings out.
fn variants(comparison: &Comparison, release: usize, settings: usize, look: &Look) -> Grid {
    let mut grid = Grid::new([Align::Left; 4]);
    for (index, column) in comparison.columns.iter().enumerate() {
        let role = if index == BASELINE { "baseline" } else { "" };
        let text = match settings {
            0 => String::new(),
            room => clean(&about::what_differs(column), room, look.ascii),
        };
        grid.row([
            Cell::new(Ink::Strong, clean(&column.name, HEAD, look.ascii)),
            Cell::plain(clean(about::release(column), release, look.ascii)),
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

fn cell(comparison: &Comparison, group: &Group, options: Options, look: &Look) -> String {
    let mut out = String::new();
    let seeds = seeds(group);
    let label = clean_label(
        &group.label,
        look.width.saturating_sub(width(&seeds) + 2),
        look.ascii,
    );
    out.push_str(&look.ink(Ink::Strong, &label));
    let space = look
        .width
        .min(100)
        .saturating_sub(width(&label) + width(&seeds));
    out.push_str(&" ".repeat(space.max(2)));
    out.push_str(&look.ink(Ink::Faint, &seeds));
    out.push('\n');
    let params = about::params(group);
    if !params.is_empty() {
        let text = clean(&params, look.width - 2, look.ascii);
        put!(out, "  {}\n", look.ink(Ink::Faint, &text));
    }
    let (rows, left) = chosen(group, options.all);
    let others: Vec<usize> = about::shown(comparison, group).collect();
    out.push_str(&table(comparison, &rows, &others, look));
    if left > 0 {
        let text = if left == 1 {
            "One other metric shows no sure difference; --all lists it.".to_owned()
        } else {
            format!("{left} other metrics show no sure difference; --all lists them.")
        };
        faint(&mut out, &text, 2, look);
    }
    if let Some(grid) = scale(comparison, group, look)
        && grid.width() + 2 <= look.width
    {
        out.push_str(&grid.draw(look, 2));
    }
    for note in notes(comparison, group, &rows, look) {
        faint(&mut out, &note, 2, look);
    }
    out
}

/// Returns the number of seeds, such as `6 seeds`, or the range if metrics differ.
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
/// many variants as fit next to each other; three lines per metric without a table. Names are never cut so much that
/// two become equal.
fn table(comparison: &Comparison, rows: &[&MetricRow], others: &[usize], look: &Look) -> String {
    let fits = |grid: &Grid| grid.width() + 2 <= look.width;
    let tells = |name: &usize| {
        let mut seen = BTreeSet::new();
        let mut names = rows.iter().map(|row| name_of(row, *name, look).draw(look));
        names.all(|name| seen.insert(name))
    };
    let names: Vec<usize> = METRIC.into_iter().filter(tells).collect();
    let single = |other: &usize, shapes: &[LineShape]| {
        shapes.iter().find_map(|shape| {
            names
                .iter()
                .filter(|name| **name >= METRIC[2])
                .map(|name| lines(comparison, rows, *other, *shape, *name, look))
                .find(fits)
        })
    };
    let of_all = |shapes: &[LineShape]| -> Option<Vec<Grid>> {
        others.iter().map(|other| single(other, shapes)).collect()
    };
    let draw = |grids: Vec<Grid>| {
        let drawn: Vec<String> = grids.iter().map(|grid| grid.draw(look, 2)).collect();
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
        faint(&mut out, &effect::legend(judged, look), 2, look);
        return out;
    }
    let mut out = String::new();
    let mut from = 0;
    while from < others.len() {
        let most = others.len() - from;
        let found = (1..=most).rev().find_map(|count| {
            names.iter().find_map(|name| {
                let grid = blocks(comparison, rows, &others[from..from + count], *name, look);
                fits(&grid).then_some((count, grid))
            })
        });
        if from > 0 {
            out.push('\n');
        }
        if let Some((count, grid)) = found {
            out.push_str(&grid.draw(look, 2));
            from += count;
        } else {
            out.push_str(&stack(rows, others[from], look));
            from += 1;
        }
    }
    out
}

/// Three lines for each metric, for very narrow terminals.
fn stack(rows: &[&MetricRow], other: usize, look: &Look) -> String {
    let mut out = String::new();
    let room = look.width - 4;
    for row in rows {
        let name = name_of(row, room, look).draw(look);
        put!(out, "  {name}\n");
        let values = values_of(row, look);
        let value = |index: usize| values.get(index).map_or(String::new(), |c| c.draw(look));
        let (from, to) = (value(BASELINE), value(other));
        put!(out, "    {from} {} {to}\n", look.or("→", "->"));
        if let Some(judgement) = about::judgement(row, other) {
            let verdict = effect::verdict(&judgement.verdict, look).draw(look);
            let change = effect::change(judgement, row.unit, look.ascii);
            let interval = effect::interval(judgement, row.unit, look.ascii);
            put!(out, "    {verdict} {change}\n");
            if !interval.is_empty() {
                put!(out, "    {interval}\n");
            }
        }
    }
    out
}

fn head_of(comparison: &Comparison, index: usize, look: &Look) -> Cell {
    let name = about::name(comparison, index);
    Cell::new(Ink::Strong, clean(name, HEAD, look.ascii))
}

/// Returns a metric's name. The unit "pages" is added here once instead of to every value.
fn name_of(row: &MetricRow, limit: usize, look: &Look) -> Cell {
    let ink = if row.primary { Ink::Plain } else { Ink::Faint };
    if row.unit == Unit::Pages && !row.name.contains("page") {
        let name = clean(&row.name, limit.saturating_sub(6), look.ascii);
        return Cell::new(ink, name).and(Ink::Faint, " pages");
    }
    Cell::new(ink, clean(&row.name, limit, look.ascii))
}

/// Returns the medians of a row in one common scale; `-` or `–` for a variant without values.
fn values_of(row: &MetricRow, look: &Look) -> Vec<Cell> {
    let medians = about::medians(row);
    let scale = Scale::of_all(row.unit, medians.iter().copied().flatten());
    medians
        .into_iter()
        .map(|median| match median {
            Some(value) if row.unit == Unit::Pages => Cell::plain(scale.number(value)),
            Some(value) => Cell::plain(scale.show(value, look.ascii)),
            None => Cell::new(Ink::Faint, look.or("–", "-")),
        })
        .collect()
}

/// One line for each metric: both values, change, interval, the drawn interval, verdict.
fn lines(
    comparison: &Comparison,
    rows: &[&MetricRow],
    other: usize,
    shape: LineShape,
    name: usize,
    look: &Look,
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
        let sign = look.or("−", "-");
        let (left, right) = (format!("{sign}{percent} %"), format!("+{percent} %"));
        let gap = strip.saturating_sub(width(&left) + width(&right));
        format!("{left}{}{right}", " ".repeat(gap))
    } else {
        String::new()
    };
    let mut heads = [BASELINE, other].map(|side| head_of(comparison, side, look));
    let mut verdict = "verdict";
    if shape == LineShape::Signs {
        let halves = [BASELINE, other].map(|side| halves(about::name(comparison, side)));
        if halves.iter().any(|(upper, _)| !upper.is_empty()) {
            let upper =
                |half: &(&str, &str)| Cell::new(Ink::Strong, clean(half.0, HEAD, look.ascii));
            grid.row([Cell::empty(), upper(&halves[0]), upper(&halves[1])]);
        }
        heads = halves.map(|(_, lower)| Cell::new(Ink::Strong, clean(lower, HEAD, look.ascii)));
        verdict = "";
    }
    let [from, to] = heads;
    let mut head = vec![Cell::empty(), from, to];
    for text in ["change", &level(rows), &axis, verdict] {
        head.push(Cell::new(Ink::Faint, text));
    }
    grid.row(head);
    for row in rows {
        let values = values_of(row, look);
        let value = |index: usize| values.get(index).cloned().unwrap_or_default();
        let mut cells = vec![name_of(row, name, look), value(BASELINE), value(other)];
        if let Some(judgement) = about::judgement(row, other) {
            let ink = effect::ink(&judgement.verdict);
            let change = effect::change(judgement, row.unit, look.ascii);
            cells.push(Cell::new(ink, change));
            let interval = effect::interval(judgement, row.unit, look.ascii);
            cells.push(Cell::plain(interval));
            cells.push(effect::strip(judgement, reach, strip, look));
            cells.push(if shape == LineShape::Signs {
                effect::verdict_sign(&judgement.verdict, look)
            } else {
                effect::verdict(&judgement.verdict, look)
            });
        }
        grid.row(cells);
    }
    grid
}

/// Splits a long name of a variant after its last slash, or else after its equals sign; the first part may be empty.
fn halves(name: &str) -> (&str, &str) {
    let long = width(name) > SHORT_HEAD;
    let at = name.rfind('/').or_else(|| name.rfind('='));
    match at.filter(|at| long && at + 1 < name.len()) {
        Some(at) => name.split_at(at + 1),
        None => ("", name),
    }
}

/// Two lines for each metric: values and verdicts, then changes and intervals below them.
fn blocks(
    comparison: &Comparison,
    rows: &[&MetricRow],
    others: &[usize],
    name: usize,
    look: &Look,
) -> Grid {
    let mut aligns = vec![Align::Left, Align::Right];
    let mut head = vec![Cell::empty(), head_of(comparison, BASELINE, look)];
    let level = level(rows);
    for other in others {
        aligns.extend([Align::Right, Align::Left]);
        head.extend([
            head_of(comparison, *other, look),
            Cell::new(Ink::Faint, level.as_str()),
        ]);
    }
    let mut grid = Grid::new(aligns);
    grid.row(head);
    for row in rows {
        let values = values_of(row, look);
        let value = |index: usize| values.get(index).cloned().unwrap_or_default();
        let mut first = vec![name_of(row, name, look), value(BASELINE)];
        let mut second = vec![Cell::empty(), Cell::empty()];
        for other in others {
            first.push(value(*other));
            let Some(judgement) = about::judgement(row, *other) else {
                first.push(Cell::empty());
                second.extend([Cell::empty(), Cell::empty()]);
                continue;
            };
            first.push(effect::verdict(&judgement.verdict, look));
            // The word "identical" is enough.
            let change = if judgement.verdict == Verdict::Identical {
                String::new()
            } else {
                effect::change(judgement, row.unit, look.ascii)
            };
            let interval = effect::interval(judgement, row.unit, look.ascii);
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
fn listed(all: &[about::Invalid<'_>], head: &str, look: &Look) -> String {
    let mut out = String::new();
    if all.is_empty() {
        return out;
    }
    put!(out, "\n{}\n", look.ink(Ink::Broken, head));
    for invalid in all.iter().take(INVALID) {
        let what = format!(
            "{} · {} · seed {}",
            clean(invalid.column, HEAD, look.ascii),
            clean_label(invalid.label, 60, look.ascii),
            invalid.trial.seed
        );
        put!(out, "  {}\n", clean(&what, look.width - 2, look.ascii));
        let why = clean(&invalid.trial.why, 500, look.ascii);
        for line in wrap(&why, look.width - 4, look.ascii) {
            put!(out, "    {}\n", look.ink(Ink::Faint, &line));
        }
    }
    if all.len() > INVALID {
        let more = format!("and {} more", all.len() - INVALID);
        put!(out, "  {}\n", look.ink(Ink::Faint, &more));
    }
    out
}

/// Renders the warnings about the whole comparison.
fn cautions(comparison: &Comparison, look: &Look) -> String {
    let mut out = String::new();
    // The caution that times are virtual is left out here, because the end of the output contains the same statement in
    // other words.
    for caution in comparison
        .cautions
        .iter()
        .filter(|caution| **caution != Caution::VirtualTime)
    {
        let text = clean(&caution.to_string(), 600, look.ascii);
        for line in wrap(&format!("Caution: {text}."), look.width, look.ascii) {
            put!(out, "{}\n", look.ink(Ink::Unsure, &line));
        }
    }
    if out.is_empty() {
        out
    } else {
        format!("\n{out}")
    }
}

/// Renders the access latencies of every variant that has a histogram.
fn pictures(comparison: &Comparison, about: &About, place: usize, look: &Look) -> String {
    let mut out = String::new();
    for index in 0..comparison.columns.len() {
        let Some(histogram) = about.access.get(&(place, index)) else {
            continue;
        };
        let name = clean(about::name(comparison, index), HEAD, look.ascii);
        let head = format!("access time, {name}");
        put!(out, "  {}\n", look.ink(Ink::Faint, &head));
        out.push_str(&picture::histogram(histogram, look));
    }
    out
}

/// Renders maps of the pages that were in memory at the end, by indices of cell and column. There is one map for each
/// column, from a single seed, because maps of several trials cannot be merged. The maps are printed below the table if
/// pictures are requested.
pub fn presence_maps(
    comparison: &Comparison,
    maps: &BTreeMap<(usize, usize), Presence>,
    look: &Look,
) -> String {
    let mut out = String::new();
    for (place, group) in comparison.cells.iter().enumerate() {
        let mut first = true;
        for index in 0..comparison.columns.len() {
            let Some(map) = maps.get(&(place, index)) else {
                continue;
            };
            if first {
                let label = clean_label(&group.label, look.width, look.ascii);
                put!(out, "\n{}\n", look.ink(Ink::Strong, &label));
                first = false;
            }
            let name = clean(about::name(comparison, index), HEAD, look.ascii);
            let head = format!("pages present at the end, {name}");
            put!(out, "  {}\n", look.ink(Ink::Faint, &head));
            out.push_str(&picture::presence(&map.pages, look));
        }
    }
    out
}
