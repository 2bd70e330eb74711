//! Renders the tables of swap tiers for the terminal.

use crate::draw::clean::wrap;
use crate::draw::{Align, Cell, Grid, Ink, TextStyle};
use crate::tiers::{HEADS, LEGEND, TierTable};

/// Renders the tier tables of a record; empty text if `tables` is empty.
pub fn tiers(tables: &[TierTable], text_style: &TextStyle) -> String {
    let mut out = String::new();
    for table in tables {
        let title = format!("Tiers of swap, `{}`", table.moment);
        put!(out, "\n{}\n", text_style.ink(Ink::Strong, &title));
        let mut grid = Grid::new(Align::names_and_numbers(5));
        grid.row(HEADS.map(|head| Cell::new(Ink::Faint, head)));
        for row in &table.rows {
            grid.row(row.each_ref().map(|text| Cell::plain(text.as_str())));
        }
        out.push_str(&grid.draw(text_style, 2));
    }
    if !tables.is_empty() {
        for line in wrap(LEGEND, text_style.width - 2, text_style.ascii) {
            put!(out, "  {}\n", text_style.ink(Ink::Faint, &line));
        }
    }
    out
}
