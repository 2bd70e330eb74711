//! A picture of which pages a trial referenced when, as SVG.

use pagetide_profile::Summary;
use pagetide_quantity::Unit;

use crate::draw::clean::clean;
use crate::draw::quantity::{count, number, show};

/// Width of the map in the picture, in pixels.
const WIDTH: f64 = 960.0;
/// Height of a row of the map, in pixels.
const ROW: f64 = 2.0;
/// Maximum number of characters of a name beside the map, and the width of its column in pixels.
const NAME_CHARS: usize = 40;
const NAMES: f64 = 300.0;
/// Minimum distance between two names, in pixels.
const NAME_HEIGHT: f64 = 14.0;
/// Space around the map for its title and labels, in pixels.
const MARGIN: f64 = 40.0;
/// Number of shades.
const SHADES: u64 = 16;

/// Draws the map as SVG: used pages in the order of their addresses from the bottom to the top, time from left to
/// right. The darker a place, the larger the share of its pages that were referenced. `record` is the record's ID.
pub fn map(summary: &Summary, record: &str) -> String {
    let columns = summary.windows.len().max(1);
    let cell = WIDTH / number(columns as u64);
    let height = ROW * number(summary.heat.len() as u64);
    let names = names(summary);
    let beside = if names.is_empty() { 0.0 } else { NAMES };
    let (whole_width, whole_height) = (WIDTH + 2.0 * MARGIN + beside, height + 2.0 * MARGIN);
    let id: String = record.chars().filter(char::is_ascii_alphanumeric).collect();
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {whole_width} {whole_height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"25\">Record {id}: {} used pages in the order of their addresses, over {}</text>\n",
        count(summary.pages),
        show(Unit::Nanos, number(summary.header.until), false)
    );
    let rows = summary.heat.len();
    for (at, row) in summary.heat.iter().enumerate() {
        let before = at as u64 * summary.row_pages;
        let pages = summary
            .pages
            .saturating_sub(before)
            .min(summary.row_pages)
            .max(1);
        let shade = |used: &u32| (u64::from(*used) * SHADES).div_ceil(pages).min(SHADES);
        let shades: Vec<u64> = row.iter().map(shade).collect();
        let y = MARGIN + ROW * number((rows - 1 - at) as u64);
        let mut from = 0;
        for same in shades.chunk_by(|a, b| a == b) {
            let x = MARGIN + cell * number(from as u64);
            from += same.len();
            if let Some(shade @ 1..) = same.first() {
                let width = cell * number(same.len() as u64);
                let opacity = number(*shade) / number(SHADES);
                put!(
                    out,
                    "<rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{ROW}\" fill=\"#08306b\" fill-opacity=\"{opacity:.2}\"/>\n"
                );
            }
        }
    }
    let mut above = f64::INFINITY;
    for (row, name) in names {
        let bottom = MARGIN + ROW * number((rows - row) as u64);
        let (left, right) = (MARGIN + WIDTH, MARGIN + WIDTH + 8.0);
        put!(
            out,
            "<path d=\"M{MARGIN} {bottom}h{}\" stroke=\"#999\" stroke-width=\"0.5\"/>\n",
            left - MARGIN
        );
        // A name that would cover the one below is left out.
        if above - bottom >= NAME_HEIGHT {
            above = bottom;
            put!(
                out,
                "<text x=\"{right}\" y=\"{bottom}\">{}</text>\n",
                escape(&clean(name, NAME_CHARS, false))
            );
        }
    }
    put!(
        out,
        "<rect x=\"{MARGIN}\" y=\"{MARGIN}\" width=\"{WIDTH}\" height=\"{height}\" fill=\"none\" stroke=\"#666\"/>\n</svg>\n"
    );
    out
}

/// Returns the rows at which another mapping begins, from the lowest addresses on, with the mappings' names.
fn names(summary: &Summary) -> Vec<(usize, &str)> {
    let mut all = Vec::new();
    let mut before = None;
    for (row, mapping) in summary.row_mappings.iter().enumerate() {
        let found = mapping.and_then(|mapping| summary.mappings.get(mapping));
        let here = found.map(|mapping| (mapping.space, mapping.title()));
        if here != before
            && let Some((_, name)) = here
        {
            all.push((row, name));
        }
        before = here;
    }
    all
}

/// Escapes text for SVG.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use pagetide_profile::{Mapping, Window};

    use super::*;

    #[test]
    fn neighbours_of_one_shade_are_one_rectangle_and_unused_pages_are_empty() {
        let summary = Summary {
            pages: 3,
            windows: vec![Window::default(); 4],
            heat: vec![vec![2, 2, 0, 1], vec![0, 0, 0, 0]],
            row_pages: 2,
            mappings: vec![Mapping {
                name: "/bin/a<b".to_owned(),
                ..Mapping::default()
            }],
            row_mappings: vec![Some(0), None],
            ..Summary::default()
        };
        let text = map(&summary, "3f2a<");
        assert_eq!(text.matches("fill-opacity").count(), 2);
        assert!(
            text.contains("x=\"40.00\" y=\"42\" width=\"480.00\""),
            "{text}"
        );
        assert!(text.contains("fill-opacity=\"0.50\"") && text.contains("Record 3f2a:"));
        assert!(text.contains(">/bin/a&lt;b</text>"), "{text}");
    }
}
