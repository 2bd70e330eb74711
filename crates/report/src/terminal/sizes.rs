//! Effects of cells that differ only in memory, one row per size.

use pagetide_compare::Comparison;
use pagetide_compare::sizes::{AcrossSizes, Constancy, sizes};

use crate::about;
use crate::draw::{Align, Cell, Grid, Ink, TextStyle, clean};
use crate::terminal::effect;

/// Maximum length of a cell's label, in columns.
const LABEL_CHARS: usize = 70;
const NAME_CHARS: usize = 30;

/// Renders one table for each metric and variant; empty if no two cells differ only in memory.
pub fn across_sizes(comparison: &Comparison, text_style: &TextStyle) -> String {
    let mut out = String::new();
    for across in sizes(comparison) {
        let head = format!(
            "{} of {} by size of memory, {}",
            clean(&across.metric, NAME_CHARS, text_style.ascii),
            clean(
                about::name(comparison, across.column),
                NAME_CHARS,
                text_style.ascii
            ),
            clean(&across.label, LABEL_CHARS, text_style.ascii)
        );
        put!(out, "\n{}\n", text_style.ink(Ink::Strong, &head));
        out.push_str(&rows(comparison, &across, text_style).draw(text_style, 2));
        put!(
            out,
            "  {}\n",
            text_style.ink(Ink::Faint, &sentence(&across))
        );
    }
    out
}

fn rows(comparison: &Comparison, across: &AcrossSizes, text_style: &TextStyle) -> Grid {
    let mut grid = Grid::new([Align::Right, Align::Right, Align::Left, Align::Left]);
    for (place, memory, judgement) in &across.sizes {
        let mut cells = vec![Cell::plain(memory.to_string())];
        if let Some(judgement) = judgement {
            let unit = comparison.cells[*place]
                .metrics
                .iter()
                .find(|row| row.name == across.metric)
                .map(|row| row.unit);
            if let Some(unit) = unit {
                let ink = effect::ink(&judgement.verdict);
                cells.push(Cell::new(
                    ink,
                    effect::change(judgement, unit, text_style.ascii),
                ));
                cells.push(Cell::plain(effect::interval(
                    judgement,
                    unit,
                    text_style.ascii,
                )));
                cells.push(effect::verdict(&judgement.verdict, text_style));
            }
        }
        grid.row(cells);
    }
    grid
}

/// States whether sign and amount of the effect are the same at every memory size.
fn sentence(across: &AcrossSizes) -> String {
    let sign = match across.sign {
        Constancy::Yes => "The sign holds at every size",
        Constancy::No => "The sign does not hold: sizes differ in it",
        Constancy::Open => "Whether the sign holds is open",
    };
    let size = match across.size {
        Constancy::Yes => "the intervals have a value in common, so one size of effect is possible",
        Constancy::No => "the size of the effect does not hold",
        Constancy::Open => "whether the size of the effect holds is open",
    };
    format!("{sign}; {size}.")
}
