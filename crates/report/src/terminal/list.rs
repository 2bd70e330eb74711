//! Lists as tables: scenarios, kernels, records, campaigns. The JSON twin comes from the same structs.

use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::Serialize;

use crate::draw::{Align, Ink, Look, clean};
use crate::json;

/// Longest text in a cell; the rest is in the JSON twin.
const LONGEST: usize = 200;

/// A thing that can stand in a list.
pub trait Row: Serialize {
    /// Heads of the columns and where their text stands.
    const HEADS: &'static [(&'static str, Align)];

    /// One text for each column. Any text: it is cleaned here.
    fn cells(&self) -> Vec<String>;
}

/// Draws a list as a table as wide as the terminal; long cells wrap.
pub fn list<T: Row>(rows: &[T], look: &Look) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(look.width).unwrap_or(u16::MAX));
    table.force_no_tty();
    // Wrapped by our own width, coloured afterwards: the head is the first line alone as heads are short words.
    table.set_header(T::HEADS.iter().map(|(head, _)| *head));
    for row in rows {
        let cells = row.cells();
        table.add_row(
            cells
                .iter()
                .map(|text| clean(text, LONGEST, look.ascii))
                .collect::<Vec<_>>(),
        );
    }
    for (index, (_, align)) in T::HEADS.iter().enumerate() {
        if let Some(column) = table.column_mut(index) {
            column.set_padding((0, 2));
            if *align == Align::Right {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    let mut out = String::new();
    for (index, line) in table.lines().enumerate() {
        let line = line.trim_end();
        if index == 0 {
            out.push_str(&look.ink(Ink::Strong, line));
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

/// The same list as JSON: an array of the structs themselves.
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
            list(&KERNELS, &Look::plain(80)),
            "kernel     modules\n6.1.0-50         7\nevil\\e[2J       12\n"
        );
    }

    #[test]
    fn the_json_twin_holds_the_same_structs() {
        let value: serde_json::Value = serde_json::from_str(&list_json(&KERNELS)).unwrap();
        assert_eq!(value[1]["name"], "evil\x1b[2J");
        assert_eq!(value[0]["modules"], 7);
    }

    #[test]
    fn a_list_without_rows_still_shows_its_head() {
        assert_eq!(list::<Kernel>(&[], &Look::plain(80)), "kernel  modules\n");
    }
}
