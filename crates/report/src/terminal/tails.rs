//! The tail table: quantiles of all accesses of a cell, pooled over its trials.

use pagetide_compare::{Comparison, Tails};
use pagetide_quantity::Unit;

use crate::draw::{Align, Cell, Grid, Ink, TextStyle, clean};
use crate::terminal::effect;

/// Indent of the table in columns.
const INDENT: usize = 2;

/// Renders the quantiles of a comparison, below its verdicts: a table for each of `tails`, which is about one cell,
/// variant and histogram. The text states that these judgements decide nothing. Empty if `tails` is empty.
pub fn tails(comparison: &Comparison, tails: &[Tails], text_style: &TextStyle) -> String {
    let mut out = String::new();
    for tail in tails {
        let label = comparison
            .cells
            .get(tail.cell)
            .map_or("", |cell| cell.label.as_str());
        let name = |column: usize| {
            comparison
                .columns
                .get(column)
                .map_or("", |column| column.name.as_str())
        };
        let head = format!(
            "{} of {label}: {} against {}",
            tail.histogram,
            name(tail.column),
            name(0)
        );
        out.push('\n');
        out.push_str(&text_style.ink(
            Ink::Strong,
            &clean(&head, text_style.width, text_style.ascii),
        ));
        out.push('\n');
        let mut grid = Grid::new([Align::Left, Align::Right, Align::Left, Align::Left]);
        grid.row(
            ["quantile", "change", "interval", "verdict"].map(|word| Cell::new(Ink::Faint, word)),
        );
        for judgement in &tail.judgements {
            let quantile = judgement
                .name
                .strip_prefix(&tail.histogram)
                .map_or(judgement.name.as_str(), |rest| rest.trim_start_matches('-'));
            grid.row([
                Cell::plain(clean(quantile, text_style.width, text_style.ascii)),
                Cell::plain(effect::change(judgement, Unit::Nanos, text_style.ascii)),
                Cell::plain(effect::interval(judgement, Unit::Nanos, text_style.ascii)),
                effect::verdict(&judgement.verdict, text_style),
            ]);
        }
        out.push_str(&grid.draw(text_style, INDENT));
    }
    if !out.is_empty() {
        let note = "Quantiles of all accesses of all trials; intervals by a bootstrap over trials. They decide nothing.";
        out.push('\n');
        out.push_str(&text_style.ink(Ink::Faint, &clean(note, text_style.width, text_style.ascii)));
        out.push('\n');
    }
    out
}
