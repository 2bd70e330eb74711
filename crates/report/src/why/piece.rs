//! Formats a piece of evidence as text: name, value before, value after.

use pagetide_compare::explain::{Basis, Evidence, Explanation, LIST_MOVES, Reading, Source};

use super::words::{NAME_CHARS, arrow, both};
use crate::draw::clean::clean;
use crate::draw::quantity::show;

/// Returns the pieces of evidence for a mechanism as text: at most `most`, and counters of moves between LRU lists.
pub(super) fn pieces_of(
    explanation: &Explanation,
    evidence: &[Evidence],
    most: usize,
    ascii: bool,
) -> Vec<String> {
    let is_traced = matches!(explanation.basis, Basis::Traced { .. });
    let mut left = most;
    evidence
        .iter()
        .filter(|piece| {
            // Counters of moves between LRU lists are shown in addition: they do not count towards `most`.
            if LIST_MOVES.contains(&piece.name.as_str()) {
                return left > 0;
            }
            let is_shown = left > 0;
            left = left.saturating_sub(1);
            is_shown
        })
        .map(|piece| self::piece(piece, is_traced, ascii))
        .collect()
}

/// Formats a piece of evidence as text: name, value before, value after.
fn piece(evidence: &Evidence, is_traced: bool, ascii: bool) -> String {
    let values = match (&evidence.before, &evidence.after) {
        (Reading::Number(before), Reading::Number(after)) => {
            both([*before, *after], evidence.unit, ascii)
        }
        (before, after) => {
            let text = |reading: &Reading| match reading {
                Reading::Number(number) => show(evidence.unit, *number, ascii),
                Reading::Text(text) => clean(text, NAME_CHARS, ascii),
            };
            format!("{} {} {}", text(before), arrow(ascii), text(after))
        }
    };
    let source = match evidence.source {
        Source::Timed if is_traced => " (timed trials)",
        Source::Timed | Source::Observed | Source::Setting => "",
    };
    format!("{} {values}{source}", evidence.name)
}
