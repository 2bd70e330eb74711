//! Reasons for the primary results, below the verdicts: a picture and a sentence for each cell with an explanation.

use pagetide_compare::explain::Answer;

use super::Input;
use super::escape::{prose, text};
use super::waterfall;
use crate::about;
use crate::names::Names;
use crate::why;

/// Maximum number of explanations in this section; further explanations are only shown with their cells.
const SHOWN: usize = 6;
/// Maximum length of a sentence, in characters.
const LONG: usize = 600;

/// Writes the explanations; nothing if no significant difference has a cause that explains at least a tenth of it.
pub(crate) fn section(input: &Input<'_>, names: &Names, out: &mut String) {
    let found = input.comparison.explanations.iter().filter(|explained| {
        let explanation = &explained.explanation;
        explanation.answer == Answer::Explained && !explanation.findings.is_empty()
    });
    let all: Vec<_> = found.collect();
    if all.is_empty() {
        return;
    }
    out.push_str("<h3 id=\"why\">Why</h3>\n<div class=\"because\">\n");
    let many = input.comparison.columns.len() > 2;
    for explained in all.iter().take(SHOWN) {
        let explanation = &explained.explanation;
        let mut parts = Vec::new();
        if many {
            parts.push(about::name(input.comparison, explained.column));
        }
        parts.extend(
            explanation
                .claim
                .as_ref()
                .map(|claim| claim.metric.as_str()),
        );
        let cell = names.cell(explained.cell);
        parts.extend((!cell.is_empty()).then_some(cell));
        put!(
            out,
            "<article><h4><a href=\"#cell-{}\">{}</a></h4>\n<p>{}</p>\n",
            explained.cell,
            text(&parts.join(" · "), 200),
            prose(&why::reasons(explained), LONG)
        );
        waterfall::plot(input, explained, out);
        out.push_str("</article>\n");
    }
    out.push_str("</div>\n");
    if all.len() > SHOWN {
        put!(
            out,
            "<p class=\"params\">{} more explanations stand with their cells.</p>\n",
            all.len() - SHOWN
        );
    }
}
