//! Writes the pictures and the table of swap tiers for one cell of the page.

use super::Input;
use super::escape::text;
use super::tier_ages;
use crate::tiers::{HEADS, LEGEND, tables};

/// Maximum length of a name in the table, in characters.
const LONG: usize = 200;

/// Writes in which tier the pages of each variant's first trial were at the end. Variants whose swap has only one tier
/// are left out.
pub(crate) fn section(input: &Input<'_>, cell: usize, out: &mut String) {
    let Some(cell) = input.comparison.cells.get(cell) else {
        return;
    };
    let mut rows = String::new();
    let mut pictures = String::new();
    for (place, (side, column)) in cell.sides.iter().zip(&input.comparison.columns).enumerate() {
        if cell.swap_of(place).tiers().len() < 2 {
            continue;
        }
        let Some(trial) = side.trials.first() else {
            continue;
        };
        // Records that cannot be read are reported in the section with the figures.
        let Some(reader) = (input.open)(&trial.record).ok() else {
            continue;
        };
        let Some(last) = tables(&reader).ok().and_then(|mut tables| tables.pop()) else {
            continue;
        };
        let name = text(&column.name, LONG);
        put!(pictures, "<figure><figcaption>{name}</figcaption>\n");
        tier_ages::picture(&last, &mut pictures);
        pictures.push_str("</figure>\n");
        for row in last.rows {
            put!(rows, "<tr><td>{name}</td>");
            for value in row {
                put!(rows, "<td>{}</td>", text(&value, LONG));
            }
            rows.push_str("</tr>\n");
        }
    }
    if rows.is_empty() {
        return;
    }
    out.push_str("<section class=\"tiers\">\n<h4>Tiers of swap at the end</h4>\n");
    put!(
        out,
        "<p>Each bar: pages by the number of references since they were last used, the most recently used on the left. \
         Swap is in order if the colours follow each other from left to right as in the key.</p>\n\
         <div class=\"tier-pictures\">\n{pictures}</div>\n"
    );
    put!(
        out,
        "<p>{}</p>\n<table>\n<thead><tr><th>variant</th>",
        text(LEGEND, 1000)
    );
    for head in HEADS {
        put!(out, "<th>{head}</th>");
    }
    put!(
        out,
        "</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</section>\n"
    );
}
