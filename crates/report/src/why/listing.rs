//! Full explanations for `pagetide explain`: time by part, and each mechanism with all its evidence.

use pagetide_compare::Comparison;
use pagetide_compare::explain::{Basis, CellExplanation, Explanation};
use pagetide_quantity::Unit;

use super::account::of_seed;
use super::paragraph::lines;
use super::words::signed;
use super::{of_cell, statements};
use crate::about::{self, BASELINE};
use crate::draw::clean::clean;
use crate::draw::quantity::Scale;
use crate::draw::{Align, Cell, Grid, Ink, TextStyle};

/// Renders the full explanations, including time by part.
pub fn explanations(comparison: &Comparison, text_style: &TextStyle) -> String {
    let mut out = String::new();
    for (place, cell) in comparison.cells.iter().enumerate() {
        for explained in of_cell(comparison, place) {
            if !out.is_empty() {
                out.push('\n');
            }
            let label = clean(&cell.label, text_style.width, text_style.ascii);
            put!(out, "{}\n", text_style.ink(Ink::Strong, &label));
            let mut all = statements(comparison, explained, true, text_style.ascii).into_iter();
            if let Some(head) = all.next() {
                lines(&mut out, &head.line(), 0, Ink::Plain, text_style);
            }
            if let Some(found) = &explained.account {
                let names =
                    [BASELINE, explained.column].map(|place| about::name(comparison, place));
                let is_sure = explained.explanation.claim.is_some();
                out.push_str(&of_seed(found, names, is_sure, text_style));
            }
            out.push_str(&parts(comparison, explained, text_style));
            for statement in all {
                lines(&mut out, &statement.claim, 2, Ink::Plain, text_style);
                for piece in &statement.evidence {
                    lines(&mut out, piece, 5, Ink::Faint, text_style);
                }
            }
            let sources = sources(&explained.explanation);
            if !sources.is_empty() {
                lines(&mut out, &sources, 2, Ink::Faint, text_style);
            }
        }
    }
    if out.is_empty() {
        out.push_str("no explanation found: no cell has trials on both sides\n");
    }
    out
}

/// Names the trials from which effects and evidence were computed.
fn sources(explanation: &Explanation) -> String {
    let [a, b] = explanation.trials;
    match (&explanation.findings[..], &explanation.basis) {
        ([], _) => String::new(),
        (_, Basis::Traced { .. }) => format!(
            "Effects and counters are means of the observed passes, with intervals of 95 % over them; verdicts are of {a} and {b} timed trials."
        ),
        (_, Basis::Counters) => format!(
            "Effects and counters are means of {a} and {b} timed trials, with intervals of 95 % over them."
        ),
    }
}

/// Renders a table of the time of both sides, split into parts such as reclaim and waiting.
fn parts(comparison: &Comparison, explained: &CellExplanation, text_style: &TextStyle) -> String {
    let explanation = &explained.explanation;
    let rows: Vec<_> = explanation
        .parts
        .iter()
        .filter(|(_, times)| times.iter().any(|time| *time > 0.0))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new(Align::names_and_numbers(3));
    let head = |index: usize| {
        Cell::new(
            Ink::Strong,
            clean(about::name(comparison, index), 16, text_style.ascii),
        )
    };
    grid.row([
        Cell::new(Ink::Faint, "part of the time"),
        head(BASELINE),
        head(explained.column),
        Cell::new(Ink::Faint, "difference"),
    ]);
    for (part, [a, b]) in rows {
        let scale = Scale::of_all(Unit::Nanos, [*a, *b]);
        let name = match serde_json::to_value(part) {
            Ok(serde_json::Value::String(name)) => name.replace('-', " "),
            _ => String::new(),
        };
        grid.row([
            Cell::plain(name),
            Cell::plain(scale.show(*a, text_style.ascii)),
            Cell::plain(scale.show(*b, text_style.ascii)),
            Cell::plain(signed(b - a, text_style.ascii)),
        ]);
    }
    grid.draw(text_style, 2)
}
