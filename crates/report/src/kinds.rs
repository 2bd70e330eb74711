//! The comparison of kinds of swap, as table rows and as a sentence, for terminal, mail, Markdown and web page.

use pagetide_compare::Comparison;
use pagetide_compare::kinds::{Cost, CostKind, KindRow, Kinds};
use pagetide_quantity::Unit;
use pagetide_verdict::Verdict;

use crate::about;
use crate::draw::quantity::show;
use crate::draw::{Align, Cell, Grid, Ink, TextStyle, clean};
use crate::sentence::{Sentence, listed};
use crate::terminal::effect;

/// Maximum length of a variant's name, in columns.
const NAME_CHARS: usize = 24;
/// Title of the table.
pub(crate) const TITLE: &str = "Kinds of swap side by side";

/// One field of the table: a text, and the verdict on it if it was judged.
pub(crate) struct Field {
    /// Text of the field, without control characters.
    pub text: String,
    /// Verdict against the baseline; `None` if the field was not judged.
    pub verdict: Option<Verdict>,
}

/// Returns the comparison of the kinds of swap in a cell; `None` if all variants have the same swap.
pub(crate) fn of_cell(comparison: &Comparison, cell: usize) -> Option<&Kinds> {
    comparison.kinds.iter().find(|kinds| kinds.cell == cell)
}

/// Returns the headings of the table's columns.
pub(crate) fn heads(kinds: &Kinds) -> [String; 6] {
    let metric = kinds.metric.as_deref().unwrap_or("time");
    ["swap", metric, "to disk", "held", "died", ""].map(str::to_owned)
}

/// Returns the rows of the table, one for each variant.
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

/// Returns the text of the last column: `front` if no other kind of swap beats this kind, otherwise the first kind that
/// beats it and the number of others. Empty if neither is known.
fn place(comparison: &Comparison, kind: &KindRow, ascii: bool) -> String {
    if kind.is_on_front {
        return "front".to_owned();
    }
    let by: Vec<String> = kind
        .dominated_by
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

/// Renders the table for terminals and mails, indented by `indent` spaces. `sign` formats a verdict.
pub(crate) fn table(
    comparison: &Comparison,
    kinds: &Kinds,
    (text_style, indent): (&TextStyle, usize),
    sign: &dyn Fn(&Verdict) -> Cell,
) -> String {
    let ascii = text_style.ascii;
    let mut grid = Grid::new(Align::names_and_numbers(4).chain([Align::Left]));
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
                    signed = signed.and(
                        effect::ink(&verdict),
                        sign(&verdict).draw(&TextStyle::plain(9)),
                    );
                    signed
                }
                None => cell.and(Ink::Plain, space(place)),
            }
        }));
    }
    // The last column has no heading.
    let lines = grid.draw(text_style, indent);
    lines
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// Returns a sentence on the kinds of swap that no other kind beats, and on those that are beaten. `None` if the cell
/// has no comparison of kinds of swap.
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
        .filter(|kind| !kind.dominated_by.is_empty())
        .map(|kind| {
            let why = match (kind.died, kind.trials) {
                (0, 0) => " (no valid trial)".to_owned(),
                (0, _) => format!(" (by {})", listed(&names(&kind.dominated_by), "and")),
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

/// Returns clauses such as `zram in access-time`: which kinds are best in which costs. Kinds that are best in the same
/// costs share a clause.
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

/// Returns the name of a cost, for use in a sentence.
fn words(kinds: &Kinds, of: CostKind) -> String {
    match of {
        CostKind::Time => kinds.metric.clone().unwrap_or_else(|| "time".to_owned()),
        CostKind::Written => "bytes written to disk".to_owned(),
        CostKind::Memory => "memory held by compression".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use pagetide_compare::{Column, Overall};
    use pagetide_quantity::{Bytes, Direction};

    use super::*;

    fn cost(mean: f64, verdict: Option<Verdict>) -> Option<Cost> {
        Some(Cost { mean, verdict })
    }

    fn kind(column: usize, kind: &str, costs: [f64; 3], dominated_by: &[usize]) -> KindRow {
        let [time, written, memory] = costs.map(|mean| cost(mean, Some(Verdict::Improved)));
        KindRow {
            column,
            kind: kind.parse().unwrap(),
            size: Bytes::from_mib(48),
            time,
            written,
            memory,
            died: 0,
            trials: 8,
            deaths: None,
            dominated_by: dominated_by.to_vec(),
            is_on_front: dominated_by.is_empty(),
        }
    }

    fn comparison(kinds: Vec<KindRow>) -> Comparison {
        let column = |row: &KindRow| Column {
            name: row.kind.to_string().replace(':', "-"),
            variant: None,
            valid: 8,
            invalid: 0,
            pending: 0,
            paired: true,
            swap: format!("swap={}", row.kind),
        };
        Comparison {
            campaign: None,
            baseline: None,
            columns: kinds.iter().map(column).collect(),
            cells: Vec::new(),
            alpha: 0.05,
            look: None,
            overall: Overall::Changed,
            cautions: Vec::new(),
            notes: Vec::new(),
            kinds: vec![Kinds {
                cell: 0,
                metric: Some("access-time".to_owned()),
                unit: Unit::Nanos,
                direction: Direction::Lower,
                kinds,
            }],
            explanations: Vec::new(),
        }
    }

    const MIB: f64 = 1_048_576.0;

    #[test]
    fn the_sentence_names_what_each_kind_is_best_in_and_what_is_beaten_by_which() {
        let of = comparison(vec![
            kind(0, "ssd:1ms", [2e9, 20.0 * MIB, 0.0], &[]),
            kind(1, "zram", [1e9, 0.0, 9.0 * MIB], &[]),
            kind(2, "disk", [9e9, 20.0 * MIB, 0.0], &[0]),
        ]);
        let said = sentence(&of, 0, false).unwrap().text;
        assert_eq!(
            said,
            "No kind of swap is best in everything: zram in access-time and bytes written to disk, ssd-1ms in memory held by \
             compression; beaten: disk-8ms,40MB/s (by ssd-1ms)."
        );
        let mut dead = kind(1, "none", [0.0; 3], &[0]);
        (dead.died, dead.deaths) = (8, Some(Verdict::Regressed));
        let of = comparison(vec![kind(0, "zram", [1e9, 0.0, MIB], &[]), dead.clone()]);
        let said = sentence(&of, 0, false).unwrap().text;
        assert!(
            said.starts_with("zram is the best kind of swap here"),
            "{said}"
        );
        assert!(said.ends_with("; beaten: none (died in 8 of 8)."), "{said}");
        dead.column = 0;
        dead.dominated_by.clear();
        dead.is_on_front = false;
        let said = sentence(&comparison(vec![dead]), 0, false).unwrap().text;
        assert_eq!(said, "No kind of swap comes through all its trials.");
    }

    #[test]
    fn a_row_has_every_cost_with_its_verdict_and_fits_into_a_mail() {
        let of = comparison(vec![
            kind(0, "ssd", [2e9, 20.0 * MIB, 0.0], &[]),
            kind(1, "zswap", [1.5e9, 12.0 * MIB, 3.0 * MIB], &[]),
        ]);
        let text_style = TextStyle::plain(72);
        let sign = |verdict: &Verdict| effect::verdict_sign(verdict, &text_style);
        let drawn = table(&of, of_cell(&of, 0).unwrap(), (&text_style, 0), &sign);
        let lines: Vec<&str> = drawn.lines().collect();
        assert!(
            lines.iter().all(|line| line.chars().count() <= 72),
            "{drawn}"
        );
        assert!(
            lines[0].contains("access-time") && lines[0].contains("held"),
            "{drawn}"
        );
        assert!(
            lines[2].starts_with("zswap+ssd-80us") && lines[2].ends_with("front"),
            "{drawn}"
        );
        assert!(
            lines[2].contains("12.00 MiB ✓") && lines[2].contains("3.000 MiB ✓"),
            "{drawn}"
        );
        assert!(lines[2].contains("0 of 8"), "{drawn}");
    }
}
