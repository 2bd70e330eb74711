//! A grid of text cells: columns as wide as their content, two spaces apart, without rules. Columns without content
//! take no space. The caller chooses which columns fit the terminal.

use super::clean::width;
use super::text_style::{Ink, TextStyle};

/// Alignment of text in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Aligned left.
    #[default]
    Left,
    /// Aligned right, for numbers.
    Right,
}

impl Align {
    /// Returns the alignments of a table whose first column has names, followed by `count` columns of numbers.
    pub fn names_and_numbers(count: usize) -> impl Iterator<Item = Self> {
        std::iter::once(Self::Left).chain(std::iter::repeat_n(Self::Right, count))
    }
}

/// A cell: pieces of clean text, each with a style.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    parts: Vec<(Ink, String)>,
}

impl Cell {
    /// Creates a cell with text in one style. The text must be clean.
    pub fn new(ink: Ink, text: impl Into<String>) -> Self {
        Self {
            parts: vec![(ink, text.into())],
        }
    }

    /// Creates a cell with text in normal style. The text must be clean.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(Ink::Plain, text)
    }

    /// Creates an empty cell.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns the cell with more text appended.
    #[must_use]
    pub fn and(mut self, ink: Ink, text: impl Into<String>) -> Self {
        self.parts.push((ink, text.into()));
        self
    }

    /// Returns the width of the cell's text in terminal columns.
    pub fn width(&self) -> usize {
        self.parts.iter().map(|(_, text)| width(text)).sum()
    }

    /// Returns the cell's text, with escape sequences for its styles if colours may be used.
    pub fn draw(&self, text_style: &TextStyle) -> String {
        self.parts
            .iter()
            .map(|(ink, text)| text_style.ink(*ink, text))
            .collect()
    }
}

/// Rows of cells that are rendered as a table without rules.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    aligns: Vec<Align>,
    rows: Vec<Vec<Cell>>,
}

/// Spaces between two columns.
pub(crate) const GAP: usize = 2;

impl Grid {
    /// Creates a grid without rows; `aligns` gives the alignment of each column.
    pub fn new(aligns: impl IntoIterator<Item = Align>) -> Self {
        Self {
            aligns: aligns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; missing cells at its end are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds an empty line.
    pub fn gap(&mut self) {
        self.rows.push(Vec::new());
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.aligns.len()];
        for row in &self.rows {
            for (cell, wide) in row.iter().zip(&mut widths) {
                *wide = (*wide).max(cell.width());
            }
        }
        widths
    }

    /// Returns the width of the whole grid in terminal columns, without indent.
    pub fn width(&self) -> usize {
        let widths = self.widths();
        let used = widths.iter().filter(|wide| **wide > 0).count();
        widths.iter().sum::<usize>() + GAP * used.saturating_sub(1)
    }

    /// Renders the grid. Each line is indented by `indent` spaces and has no trailing spaces.
    pub fn draw(&self, text_style: &TextStyle, indent: usize) -> String {
        let widths = self.widths();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            // Spaces to write before the next visible text.
            let mut owed = indent;
            let mut first = true;
            for (index, wide) in widths.iter().enumerate() {
                if *wide == 0 {
                    continue;
                }
                if !first {
                    owed += GAP;
                }
                first = false;
                let empty = Cell::empty();
                let cell = row.get(index).unwrap_or(&empty);
                let space = wide - cell.width();
                let right = self.aligns.get(index) == Some(&Align::Right);
                if cell.width() == 0 {
                    owed += space;
                    continue;
                }
                if right {
                    owed += space;
                }
                line.push_str(&" ".repeat(owed));
                line.push_str(&cell.draw(text_style));
                owed = if right { 0 } else { space };
            }
            out.push_str(&line);
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_at_their_last_character() {
        let mut grid = Grid::new([Align::Left, Align::Right, Align::Left]);
        grid.row([Cell::plain("metric"), Cell::plain("µs"), Cell::plain("x")]);
        grid.row([Cell::plain("a"), Cell::plain("1.25")]);
        grid.row([Cell::empty(), Cell::plain("10"), Cell::plain("yy")]);
        assert_eq!(
            grid.draw(&TextStyle::plain(80), 1),
            " metric    µs  x\n a       1.25\n           10  yy\n"
        );
        assert_eq!(grid.width(), 6 + 2 + 4 + 2 + 2);
    }

    #[test]
    fn colours_do_not_count_as_width() {
        let text_style = TextStyle {
            colour: true,
            ..TextStyle::plain(80)
        };
        let mut grid = Grid::new([Align::Left, Align::Left]);
        grid.row([Cell::new(Ink::Good, "ok"), Cell::plain("|")]);
        grid.row([Cell::plain("long"), Cell::plain("|")]);
        assert_eq!(
            grid.draw(&text_style, 0),
            "\x1b[32mok\x1b[0m    |\nlong  |\n"
        );
    }
}
