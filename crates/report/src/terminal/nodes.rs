//! Renders memory nodes over time: a line for each node and kind of memory.

use pagetide_quantity::Bytes;

use crate::draw::{Align, Cell, Grid, Ink, TextStyle};
use crate::nodes::NodeMemory;

/// Maximum number of columns of a line over time.
const MAX_CHARS: usize = 60;
/// Characters for amounts from nothing to all: first for terminals with Unicode, then for terminals without.
const LEVELS: [&str; 2] = [" ▁▂▃▄▅▆▇█", " .:-=+*#@"];

/// Renders the amounts over time; empty text if `memories` is empty.
pub fn nodes(memories: &[NodeMemory], text_style: &TextStyle) -> String {
    let all = memories.iter().flat_map(|memory| &memory.over_time);
    let most = all.map(|amount| amount.0).max().unwrap_or(0).max(1);
    let mut out = String::new();
    if memories.is_empty() {
        return out;
    }
    let title = "Memory of each node over time, from the observed pass";
    put!(out, "\n{}\n", text_style.ink(Ink::Strong, title));
    let mut grid = Grid::new([Align::Left, Align::Left, Align::Left, Align::Right]);
    let room = text_style.width.saturating_sub(40).clamp(10, MAX_CHARS);
    grid.row(["node", "memory", "over time", "at the end"].map(|head| Cell::new(Ink::Faint, head)));
    for memory in memories {
        let last = memory.over_time.last().copied().unwrap_or_default();
        grid.row([
            Cell::plain(memory.node.clone()),
            Cell::plain(memory.kind),
            Cell::plain(line(&memory.over_time, most, room, text_style)),
            Cell::plain(last.to_string()),
        ]);
    }
    out.push_str(&grid.draw(text_style, 2));
    let note = format!(
        "A full column is {}. Pages of the ballast are not shown.",
        Bytes(most)
    );
    put!(out, "  {}\n", text_style.ink(Ink::Faint, &note));
    out
}

/// Renders the amounts as a line of at most `room` columns, each as high as its share of `most`. If a column stands for
/// several samples, it shows the largest. An amount above zero is always visible.
fn line(amounts: &[Bytes], most: u64, room: usize, text_style: &TextStyle) -> String {
    let levels: Vec<char> = LEVELS[usize::from(text_style.ascii)].chars().collect();
    let top = levels.len() as u64 - 1;
    let wide = amounts.len().div_ceil(room).max(1);
    amounts
        .chunks(wide)
        .map(|chunk| {
            let amount = chunk.iter().map(|amount| amount.0).max().unwrap_or(0);
            let level = (amount * top).div_ceil(most).min(top);
            levels[usize::try_from(level).unwrap_or(0)]
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_drawn_in_proportion_and_small_ones_stay_visible() {
        let memory = |kind, amounts: &[u64]| NodeMemory {
            node: "node 0".to_owned(),
            kind,
            over_time: amounts.iter().map(|amount| Bytes(*amount)).collect(),
        };
        let memories = [
            memory("anonymous", &[0, 1, 400, 800]),
            memory("file", &[800; 4]),
        ];
        let text = nodes(&memories, &TextStyle::plain(100));
        assert!(text.contains(" ▁▄█") && text.contains("████"), "{text}");
        let ascii = TextStyle {
            ascii: true,
            ..TextStyle::plain(100)
        };
        let text = nodes(&memories, &ascii);
        assert!(text.contains(" .=@") && text.is_ascii(), "{text}");
        assert!(nodes(&[], &ascii).is_empty());
    }
}
