//! Lists as tables: scenarios, kernels, records, campaigns. The JSON output uses the same structs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::draw::clean::wrap;
use crate::draw::grid::GAP;
use crate::draw::{Align, Cell, Grid, Ink, TextStyle, clean, width};
use crate::json;

/// Maximum length of text in a cell, in columns; the JSON output has the full text.
const LONGEST_CHARS: usize = 200;
/// Columns are not made narrower than this by breaking words, even on narrow terminals.
const NARROWEST_CHARS: usize = 8;

/// An item of a list, which is one row of a table or one object in JSON.
pub trait Row: Serialize {
    /// Headings of the columns with their alignment.
    const HEADS: &'static [(&'static str, Align)];
    /// Indices of columns that are never wrapped, such as dates with time.
    const WHOLE: &'static [usize] = &[];

    /// One text for each column. Texts may contain unsafe characters: they are cleaned when drawn.
    fn cells(&self) -> Vec<String>;
}

/// Renders paragraphs, wrapped to the terminal's width (40 to 100 columns), with an empty line at the end. An item is
/// an indent in columns and a text; an indent of 0 makes a heading, which is not wrapped.
pub fn paragraphs(all: impl Iterator<Item = (usize, String)>, text_style: &TextStyle) -> String {
    let mut text = String::new();
    for (indent, words) in all {
        if indent == 0 {
            let _ = writeln!(text, "{}", text_style.ink(Ink::Strong, &words));
            continue;
        }
        let room = text_style.width.clamp(40, 100).saturating_sub(indent);
        for line in wrap(&words, room, text_style.ascii) {
            let _ = writeln!(text, "{:indent$}{line}", "");
        }
    }
    text.push('\n');
    text
}

/// Renders a list as a table that is not wider than the terminal, if possible.
pub fn list<T: Row>(rows: &[T], text_style: &TextStyle) -> String {
    let cells = rows.iter().map(Row::cells).collect();
    table(T::HEADS, T::WHOLE, cells, text_style)
}

/// Renders a table that is not wider than the terminal, if possible. Long cells are wrapped between words if possible,
/// in the widest columns first. The columns with an index in `whole` are never wrapped.
pub(crate) fn table(
    heads: &[(&str, Align)],
    whole: &[usize],
    rows: Vec<Vec<String>>,
    text_style: &TextStyle,
) -> String {
    let names = heads.iter().map(|(head, _)| (*head).to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(names)
        .chain(rows)
        .map(|row| {
            let clean = |text: &String| clean(text, LONGEST_CHARS, text_style.ascii);
            row.iter().map(clean).collect()
        })
        .collect();
    let widest = |column: usize| {
        let cells = all.iter().filter_map(|row| row.get(column));
        cells.map(|cell| width(cell)).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..heads.len()).map(widest).collect();
    let room = text_style
        .width
        .saturating_sub(GAP * widths.len().saturating_sub(1));
    let word = |column: usize| {
        if whole.contains(&column) {
            return widest(column);
        }
        let cells = all.iter().filter_map(|row| row.get(column));
        cells
            .flat_map(|cell| cell.split(' '))
            .map(width)
            .max()
            .unwrap_or(0)
    };
    let words: Vec<usize> = (0..heads.len()).map(word).collect();
    while widths.iter().sum::<usize>() > room {
        let wider = widths
            .iter_mut()
            .zip(&words)
            .filter(|(wide, word)| **wide > **word);
        match wider.max() {
            Some((widest, _)) => *widest -= 1,
            None => break,
        }
    }
    while widths.iter().sum::<usize>() > room {
        let columns = widths.iter_mut().enumerate();
        let wrapping = columns.filter(|(column, _)| !whole.contains(column));
        match wrapping.map(|(_, wide)| wide).max() {
            Some(widest) if *widest > NARROWEST_CHARS => *widest -= 1,
            _ => break,
        }
    }
    let mut grid = Grid::new(heads.iter().map(|(_, align)| *align));
    for (at, row) in all.iter().enumerate() {
        let ink = if at == 0 { Ink::Strong } else { Ink::Plain };
        let wrapped: Vec<Vec<String>> = row
            .iter()
            .zip(&widths)
            .map(|(cell, wide)| wrap(&broken(cell, *wide), *wide, text_style.ascii))
            .collect();
        for line in 0..wrapped.iter().map(Vec::len).max().unwrap_or(0) {
            let text = |cell: &Vec<String>| cell.get(line).cloned().unwrap_or_default();
            grid.row(wrapped.iter().map(|cell| Cell::new(ink, text(cell))));
        }
    }
    grid.draw(text_style, 0)
}

/// Inserts spaces into words longer than a column, so that they wrap without being cut.
fn broken(text: &str, wide: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut columns = 0;
    for c in text.chars() {
        let own = width(c.encode_utf8(&mut [0; 4]));
        if c == ' ' {
            columns = 0;
        } else if columns + own > wide {
            out.push(' ');
            columns = own;
        } else {
            columns += own;
        }
        out.push(c);
    }
    out
}

/// Returns a list as JSON: an array of the structs.
pub fn list_json<T: Row>(rows: &[T]) -> String {
    json::pretty(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Kernel {
        name: &'static str,
        modules: u32,
    }

    impl Row for Kernel {
        const HEADS: &'static [(&'static str, Align)] =
            &[("kernel", Align::Left), ("modules", Align::Right)];

        fn cells(&self) -> Vec<String> {
            vec![self.name.to_owned(), self.modules.to_string()]
        }
    }

    const KERNELS: [Kernel; 2] = [
        Kernel {
            name: "6.1.0-50",
            modules: 7,
        },
        Kernel {
            name: "evil\x1b[2J",
            modules: 12,
        },
    ];

    #[test]
    fn a_list_lines_up_and_its_names_are_clean() {
        assert_eq!(
            list(&KERNELS, &TextStyle::plain(80)),
            "kernel     modules\n6.1.0-50         7\nevil\\e[2J       12\n"
        );
    }

    #[test]
    fn a_narrow_terminal_wraps_the_widest_column_and_loses_nothing() {
        let long = [Kernel {
            name: "linux-image-6.12.117+deb12-cloud-amd64",
            modules: 3,
        }];
        let text = list(&long, &TextStyle::plain(30));
        assert!(text.lines().all(|line| line.len() <= 30), "{text}");
        let name: String = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next())
            .collect();
        assert_eq!(name, long[0].name);
    }

    #[test]
    fn the_json_twin_holds_the_same_structs() {
        let value: serde_json::Value = serde_json::from_str(&list_json(&KERNELS)).unwrap();
        assert_eq!(value[1]["name"], "evil\x1b[2J");
        assert_eq!(value[0]["modules"], 7);
    }

    #[test]
    fn a_list_without_rows_still_shows_its_head() {
        assert_eq!(
            list::<Kernel>(&[], &TextStyle::plain(80)),
            "kernel  modules\n"
        );
    }
}
