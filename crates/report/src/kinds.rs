//! Kinds of swap side by side, as rows of text and as a sentence, the same for every format.

use pagetide_compare::Comparison;
use pagetide_compare::kinds::{Cost, CostKind, KindRow, Kinds};
use pagetide_quantity::Unit;
use pagetide_verdict::Verdict;

use crate::about;
use crate::beside::Sentence;
use crate::draw::quantity::show;
use crate::draw::{Align, Cell, Grid, Ink, Look, clean};
use crate::terminal::effect;

/// Maximum length of a variant's name, in columns.
const NAME_CHARS: usize = 24;
/// Title of the table.
pub(crate) const TITLE: &str = "Kinds of swap side by side";

/// One field of the table: a text, and the verdict on it if it was judged.
pub(crate) struct Field {
    /// Clean text of the field.
    pub text: String,
    /// Verdict against the baseline; `None` if there is none.
    pub verdict: Option<Verdict>,
}

/// The kinds of swap of a cell; `None` if the variants have the same swap.
pub(crate) fn of_cell(comparison: &Comparison, cell: usize) -> Option<&Kinds> {
    comparison.kinds.iter().find(|kinds| kinds.cell == cell)
}

/// Heads of the table.
pub(crate) fn heads(kinds: &Kinds) -> [String; 6] {
    let metric = kinds.metric.as_deref().unwrap_or("time");
    ["swap", metric, "to disk", "held", "died", ""].map(str::to_owned)
}

/// Rows of the table, one for each kind of swap.
pub(crate) fn rows(comparison: &Comparison, kinds: &Kinds, ascii: bool) -> Vec<[Field; 6]> {
    let plain = |text: String| Field {
        text,
        verdict: None,
    };
    let of_cost = |cost: Option<&Cost>, unit: Unit| Field {
        text: cost.map_or_else(|| "-".to_owned(), |cost| show(unit, cost.mean, ascii)),
        verdict: cost.and_then(|cost| cost.verdict.clone()),
    };
    let row = |kind: &KindRow| {
        [
            plain(name(comparison, kind.column, ascii)),
            of_cost(kind.time.as_ref(), kinds.unit),
            of_cost(kind.written.as_ref(), Unit::Bytes),
            of_cost(kind.memory.as_ref(), Unit::Bytes),
            Field {
                text: format!("{} of {}", kind.died, kind.trials),
                verdict: kind.deaths.clone(),
            },
            plain(place(comparison, kind, ascii)),
        ]
    };
    kinds.kinds.iter().map(row).collect()
}

/// Whether a kind is on the front, or else which kinds beat it.
fn place(comparison: &Comparison, kind: &KindRow, ascii: bool) -> String {
    if kind.is_on_front {
        return "front".to_owned();
    }
    let by: Vec<String> = kind
        .beaten_by
        .iter()
        .map(|column| name(comparison, *column, ascii))
        .collect();
    match by.as_slice() {
        [] => String::new(),
        [one] => format!("behind {one}"),
        [one, others @ ..] => format!("behind {one} and {} more", others.len()),
    }
}

fn name(comparison: &Comparison, column: usize, ascii: bool) -> String {
    clean(about::name(comparison, column), NAME_CHARS, ascii)
}

/// The table for terminals and mails. `sign` draws a verdict.
pub(crate) fn grid(
    comparison: &Comparison,
    kinds: &Kinds,
    ascii: bool,
    sign: &dyn Fn(&Verdict) -> Cell,
) -> Grid {
    let mut grid = Grid::new([
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Right,
        Align::Left,
    ]);
    let space = |place: usize| if place > 0 && place < 5 { "  " } else { "" };
    let heads = heads(kinds).into_iter().enumerate();
    grid.row(heads.map(|(place, head)| {
        Cell::new(Ink::Faint, clean(&head, NAME_CHARS, ascii) + space(place))
    }));
    for row in rows(comparison, kinds, ascii) {
        grid.row(row.into_iter().enumerate().map(|(place, field)| {
            let ink = if place == 0 { Ink::Strong } else { Ink::Plain };
            let cell = Cell::new(ink, field.text);
            match field.verdict {
                Some(verdict) => {
                    let mut signed = cell.and(Ink::Plain, " ");
                    signed =
                        signed.and(effect::ink(&verdict), sign(&verdict).draw(&Look::plain(9)));
                    signed
                }
                None => cell.and(Ink::Plain, space(place)),
            }
        }));
    }
    grid
}

/// The sentence on which kinds no other beats; `None` if the variants have the same swap or nothing was measured.
pub(crate) fn sentence(comparison: &Comparison, cell: usize, ascii: bool) -> Option<Sentence> {
    let kinds = of_cell(comparison, cell)?;
    let names = |columns: &[usize]| -> Vec<String> {
        let columns = columns.iter();
        columns
            .map(|column| name(comparison, *column, ascii))
            .collect()
    };
    let front: Vec<usize> = kinds
        .kinds
        .iter()
        .filter(|kind| kind.is_on_front)
        .map(|kind| kind.column)
        .collect();
    let mut text = match front.as_slice() {
        [] => "No kind of swap comes through all its trials".to_owned(),
        [one] => format!(
            "{} is the best kind of swap here: no other is surely better in {}",
            name(comparison, *one, ascii),
            listed(&CostKind::ALL.map(|of| words(kinds, of)), "or")
        ),
        several => match bests(kinds, &names) {
            best if best.is_empty() => format!(
                "No kind of swap is surely better than the others: {}",
                listed(&names(several), "and")
            ),
            best => format!("No kind of swap is best in everything: {}", best.join(", ")),
        },
    };
    let behind: Vec<String> = kinds
        .kinds
        .iter()
        .filter(|kind| !kind.beaten_by.is_empty())
        .map(|kind| {
            let why = match (kind.died, kind.trials) {
                (0, 0) => " (no valid trial)".to_owned(),
                (0, _) => format!(" (by {})", listed(&names(&kind.beaten_by), "and")),
                (died, trials) => format!(" (died in {died} of {trials})"),
            };
            name(comparison, kind.column, ascii) + &why
        })
        .collect();
    if !behind.is_empty() {
        text = format!("{text}; beaten: {}", behind.join(", "));
    }
    text.push('.');
    Some(Sentence {
        ink: Ink::Strong,
        text,
    })
}

/// Clauses such as `zram in access-time`, one for each set of kinds that are best in something.
fn bests(kinds: &Kinds, names: &dyn Fn(&[usize]) -> Vec<String>) -> Vec<String> {
    let mut all: Vec<(Vec<usize>, Vec<String>)> = Vec::new();
    for of in CostKind::ALL {
        let best = kinds.best(of);
        if best.is_empty() {
            continue;
        }
        let word = words(kinds, of);
        match all.iter_mut().find(|(columns, _)| *columns == best) {
            Some((_, in_what)) => in_what.push(word),
            None => all.push((best, vec![word])),
        }
    }
    all.into_iter()
        .map(|(columns, in_what)| {
            format!(
                "{} in {}",
                listed(&names(&columns), "and"),
                listed(&in_what, "and")
            )
        })
        .collect()
}

/// Name of a cost within a sentence.
fn words(kinds: &Kinds, of: CostKind) -> String {
    match of {
        CostKind::Time => kinds.metric.clone().unwrap_or_else(|| "time".to_owned()),
        CostKind::Written => "bytes written to disk".to_owned(),
        CostKind::Memory => "memory held by compression".to_owned(),
    }
}

/// Words as a list in a sentence: `a, b and c`.
fn listed(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
