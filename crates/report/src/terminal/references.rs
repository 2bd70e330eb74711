//! Renders recorded references as tables: kinds, tasks, ranges of addresses, and the working set over time.

use pagetide_profile::{Kind, Summary};
use pagetide_quantity::Unit;

use crate::draw::quantity::{count, number, show};
use crate::draw::{Align, Cell, Grid, Ink, Look};

/// Maximum number of tasks and of ranges to list.
const MAX_ROWS: usize = 12;
/// Shades of a heat map, from no page of a row to all of them.
const SHADES: [char; 5] = [' ', '░', '▒', '▓', '█'];
/// Shades for terminals without the characters in [`SHADES`].
const ASCII_SHADES: [char; 5] = [' ', '.', ':', '+', '#'];
/// Maximum number of lines of a heat map.
const MAX_LINES: usize = 16;

fn grid(heads: &[&str]) -> Grid {
    let mut grid = Grid::new(Align::names_and_numbers(heads.len() - 1));
    let head = |(at, head): (usize, &&str)| {
        Cell::new(if at == 0 { Ink::Strong } else { Ink::Faint }, *head)
    };
    grid.row(heads.iter().enumerate().map(head));
    grid
}

/// Renders the tables. `record` is the record's ID.
pub fn references(summary: &Summary, record: &str, look: &Look) -> String {
    let header = &summary.header;
    let time = |nanos: u64| show(Unit::Nanos, number(nanos), look.ascii);
    let mut out = String::new();
    put!(
        out,
        "record {record}: {} references to {} pages in {}; {} pages were written\n",
        count(header.references()),
        count(summary.pages),
        time(header.instructions),
        count(summary.written)
    );
    let each = number(header.bytes) / number(header.recorded.max(1));
    put!(
        out,
        "recorded: {} references in {} bytes, {each:.2} bytes each\n",
        count(header.recorded),
        count(header.bytes)
    );
    if header.is_cut() {
        put!(
            out,
            "The record reached its largest size after {}. The other {} references are counted here, but not shown below.\n",
            time(header.until),
            count(header.references() - header.recorded)
        );
    }
    put!(out, "\n");
    let mut kinds = grid(&["kind", "references"]);
    for kind in Kind::ALL {
        kinds.row([kind.name().to_owned(), count(summary.of_kind(kind))].map(Cell::plain));
    }
    kinds.row(
        [
            "kernel, its own memory (not recorded)".to_owned(),
            count(header.kernel_own),
        ]
        .map(Cell::plain),
    );
    out.push_str(&kinds.draw(look, 0));
    put!(out, "\n");
    let mut tasks = grid(&["task", "references"]);
    for task in summary.tasks.iter().take(MAX_ROWS) {
        let name = if task.is_workload {
            "workload".to_owned()
        } else {
            format!("task {}", task.task)
        };
        tasks.row([name, count(task.references)].map(Cell::plain));
    }
    out.push_str(&tasks.draw(look, 0));
    put!(out, "\n");
    let mut ranges = grid(&["addresses", "space", "pages", "used", "references"]);
    for range in summary.ranges.iter().take(MAX_ROWS) {
        let first = format!("{:#x}", range.first << 12);
        let numbers = [range.pages, range.used, range.references].map(count);
        let space = range.space.to_string();
        ranges.row([first, space].into_iter().chain(numbers).map(Cell::plain));
    }
    out.push_str(&ranges.draw(look, 0));
    put!(out, "\n");
    let mut windows = grid(&["from", "working set", "written", "first used", "references"]);
    for window in &summary.windows {
        let numbers = [window.pages, window.written, window.new, window.references];
        let cells = std::iter::once(time(window.start)).chain(numbers.map(count));
        windows.row(cells.map(Cell::plain));
    }
    out.push_str(&windows.draw(look, 0));
    put!(out, "\n");
    out.push_str(&heat(summary, look));
    out
}

/// Renders which pages were used when: a line for each part of the used pages, and a column for each window.
fn heat(summary: &Summary, look: &Look) -> String {
    let rows = &summary.heat;
    let each = rows.len().div_ceil(MAX_LINES).max(1);
    let shades = if look.ascii { ASCII_SHADES } else { SHADES };
    let pages = summary.row_pages * each as u64;
    let mut out = format!(
        "used pages in the order of their addresses, {} a line, over time; the shade is the share that is referenced\n",
        count(pages)
    );
    for (line, part) in rows.chunks(each).enumerate() {
        let before = line as u64 * pages;
        let whole = summary.pages.saturating_sub(before).min(pages).max(1);
        out.push('|');
        for window in 0..summary.windows.len() {
            let used: u64 = part.iter().map(|row| u64::from(row[window])).sum();
            let steps = shades.len() as u64 - 1;
            let shade = (used * steps).div_ceil(whole).min(steps);
            out.push(shades[usize::try_from(shade).unwrap_or(0)]);
        }
        out.push_str("|\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use pagetide_profile::{Header, Window};

    use super::*;

    #[test]
    fn the_map_shows_when_each_part_of_the_pages_was_used() {
        let window = |pages| Window {
            pages,
            ..Window::default()
        };
        let summary = Summary {
            header: Header {
                instructions: 2000,
                until: 1500,
                recorded: 8,
                counts: [9, 0, 0, 0, 0],
                bytes: 4,
                ..Header::default()
            },
            pages: 6,
            windows: vec![window(4), window(3)],
            heat: vec![vec![4, 1], vec![0, 2]],
            row_pages: 4,
            ..Summary::default()
        };
        let text = references(&summary, "3f2a", &Look::plain(80));
        assert!(text.contains("|█░|\n| █|\n"), "{text}");
        assert!(text.contains("0.50 bytes each"), "{text}");
        assert!(text.contains("The other 1 references"), "{text}");
    }
}
