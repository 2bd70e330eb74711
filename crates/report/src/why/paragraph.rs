//! The explanations of a cell below its table in the terminal, in a few lines.

use pagetide_compare::Comparison;
use pagetide_quantity::command::in_backticks;

use super::{Detail, Statement, detailed, of_cell};
use crate::draw::clean::wrap;
use crate::draw::{Ink, TextStyle};

/// Maximum number of lines of an explanation below a table; `pagetide explain` prints the full explanation.
const LINES: usize = 8;

/// Amounts of detail, tried in this order until the explanation fits.
const DETAILS: [Detail; 7] = [
    Detail::of(3, 3),
    Detail::of(3, 1),
    Detail::of(3, 1).plain(true),
    Detail::of(3, 1).plain(false),
    Detail::of(2, 1).plain(true),
    Detail::of(2, 1).plain(false),
    Detail::of(1, 1).plain(false),
];

/// Renders the explanations of one cell below its table, each with as much detail as fits.
pub(crate) fn under_cell(comparison: &Comparison, cell: usize, text_style: &TextStyle) -> String {
    let mut out = String::new();
    for explained in of_cell(comparison, cell) {
        let fits = |text: &String| text.lines().count() <= LINES;
        let mut all = DETAILS.iter().map(|detail| {
            let statements = detailed(comparison, explained, *detail, text_style.ascii);
            under_table(&statements, text_style)
        });
        let text = all.find(fits).unwrap_or_else(|| {
            let least = DETAILS[DETAILS.len() - 1];
            let all = under_table(
                &detailed(comparison, explained, least, text_style.ascii),
                text_style,
            );
            let kept = all.lines().take(LINES - 1);
            let mut cut: String = kept.flat_map(|line| [line, "\n"]).collect();
            let all = format!("{} says all", in_backticks("explain"));
            lines(&mut cut, &all, 4, Ink::Faint, text_style);
            cut
        });
        out.push_str(&text);
    }
    out
}

/// Formats statements as lines. The first statement, and in each statement the first line, has a smaller indent.
fn under_table(statements: &[Statement], text_style: &TextStyle) -> String {
    let mut out = String::new();
    for (place, statement) in statements.iter().enumerate() {
        let (indent, ink) = if place == 0 {
            (2, Ink::Plain)
        } else {
            (4, Ink::Faint)
        };
        lines(&mut out, &statement.line(), indent, ink, text_style);
    }
    out
}

/// Appends wrapped lines, indented by `indent` spaces, and by three more from the second line on.
pub(super) fn lines(out: &mut String, text: &str, indent: usize, ink: Ink, text_style: &TextStyle) {
    let room = text_style.width.saturating_sub(indent + 3);
    for (place, line) in wrap(text, room, text_style.ascii).iter().enumerate() {
        out.push_str(&" ".repeat(if place == 0 { indent } else { indent + 3 }));
        out.push_str(&text_style.ink(ink, line));
        out.push('\n');
    }
}
