//! Markdown tables for issues and merge requests, in GitHub's dialect, which other sites can read too.
//!
//! Names are in code spans or escaped, so nothing in them is parsed as markup, a link or a mention.

use pagetide_compare::kinds::Kinds;
use pagetide_compare::{Caution, Cell as Group, Comparison, MetricRow};
use pagetide_verdict::Verdict;

use crate::about::EXACT_CAVEAT;
use crate::about::{self, About, BASELINE};
use crate::column_notes;
use crate::draw::quantity::Scale;
use crate::draw::{TextStyle, clean};
use crate::kinds;
use crate::terminal::notes::{level, methods, notes};
use crate::terminal::{effect, summary};
use crate::why;

/// Style of text in Markdown: Unicode and no colours. Nothing is wrapped at its width.
const TEXT_STYLE: TextStyle = TextStyle::plain(160);
/// Maximum length of a name in a cell, in columns.
const NAME_CHARS: usize = 60;
/// Maximum length of a long text in a code span, in columns. Text outside of code spans may be four times as long.
const TEXT_CHARS: usize = 500;

/// Formats a comparison as Markdown.
pub fn markdown(comparison: &Comparison, about: &About) -> String {
    let mut out = format!("### {}\n", text(&about.title));
    for index in about::others(comparison) {
        let sentence = summary::sentence(comparison, index, false);
        put!(out, "\n{}\n", text(&sentence));
    }
    for (place, group) in comparison.cells.iter().enumerate() {
        cell(&mut out, comparison, group);
        if let Some(of_cell) = kinds::of_cell(comparison, place) {
            kinds_of_swap(&mut out, comparison, of_cell);
        }
        for sentence in column_notes::sentences(comparison, place, &TEXT_STYLE) {
            put!(out, "\n{}\n", text(&sentence.text));
        }
        for explained in why::of_cell(comparison, place) {
            out.push('\n');
            for statement in why::statements(comparison, explained, false, false) {
                put!(out, "{}  \n", text(&statement.line()));
            }
        }
    }
    for (head, all) in [
        ("died, which is a result", about::died(comparison)),
        ("invalid, not used", about::invalid(comparison)),
    ] {
        if all.is_empty() {
            continue;
        }
        put!(out, "\n| {head} | seed | why |\n|---|--:|---|\n");
        for invalid in all {
            put!(
                out,
                "| {} {} | {} | {} |\n",
                code(invalid.column, NAME_CHARS),
                code(invalid.label, NAME_CHARS),
                invalid.trial.seed,
                code(&invalid.trial.why, TEXT_CHARS)
            );
        }
    }
    out.push_str("\n| variant | kernel | settings |\n|---|---|---|\n");
    for column in &comparison.columns {
        put!(
            out,
            "| {} | {} | {} |\n",
            code(&column.name, NAME_CHARS),
            code(&about::kernel(column), TEXT_CHARS),
            code(&about::settings(column), TEXT_CHARS)
        );
    }
    out.push('\n');
    for caution in comparison
        .cautions
        .iter()
        .filter(|caution| **caution != Caution::VirtualTime)
    {
        put!(out, "Caution: {}.  \n", text(&caution.to_string()));
    }
    for method in methods(comparison, &TEXT_STYLE) {
        put!(out, "{}  \n", text(&method));
    }
    if about::is_exact(comparison) {
        put!(out, "{EXACT_CAVEAT}  \n");
    }
    put!(out, "Made by {}\n", code(&about.command, TEXT_CHARS));
    out
}

fn cell(out: &mut String, comparison: &Comparison, group: &Group) {
    put!(out, "\n#### {}\n\n", code(&group.label, NAME_CHARS));
    let mut rows: Vec<&MetricRow> = group.metrics.iter().collect();
    rows.sort_by_key(|row| !row.primary);
    out.push_str("| metric |");
    let mut rule = String::from("|---|");
    let shown: Vec<usize> = std::iter::once(BASELINE)
        .chain(about::shown(comparison, group))
        .collect();
    for &index in &shown {
        put!(
            out,
            " {} |",
            code(about::name(comparison, index), NAME_CHARS)
        );
        rule.push_str("--:|");
        if index != BASELINE {
            put!(out, " change | {} | verdict |", level(&rows));
            rule.push_str("--:|---|---|");
        }
    }
    put!(out, "\n{rule}\n");
    for row in &rows {
        let medians = about::medians(row);
        let scale = Scale::of_all(row.unit, medians.iter().copied().flatten());
        put!(out, "| {} |", code(&row.name, NAME_CHARS));
        for &index in &shown {
            match medians.get(index).copied().flatten() {
                Some(value) => put!(out, " {} |", scale.show(value, false)),
                None => out.push_str(" – |"),
            }
            if index == BASELINE {
                continue;
            }
            let Some(judgement) = about::judgement(row, index) else {
                out.push_str(" | | |");
                continue;
            };
            let strong = match judgement.verdict {
                Verdict::Improved | Verdict::Regressed => "**",
                _ => "",
            };
            put!(
                out,
                " {} | {} | {strong}{}{strong} |",
                effect::change(judgement, row.unit, false),
                effect::interval(judgement, row.unit, false),
                judgement.verdict
            );
        }
        out.push('\n');
    }
    out.push('\n');
    for note in notes(comparison, group, &rows, &TEXT_STYLE) {
        put!(out, "{}  \n", text(&note));
    }
}

/// Appends the table that compares the kinds of swap of one cell.
fn kinds_of_swap(out: &mut String, comparison: &Comparison, of_cell: &Kinds) {
    let heads = kinds::heads(of_cell).map(|head| text(&head));
    put!(
        out,
        "\n| {} |\n|---|--:|--:|--:|--:|---|\n",
        heads.join(" | ")
    );
    for row in kinds::rows(comparison, of_cell, false) {
        let fields = row.map(|field| match field.verdict {
            Some(verdict) => format!("{} {verdict}", text(&field.text)),
            None => text(&field.text),
        });
        put!(out, "| {} |\n", fields.join(" | "));
    }
}

/// Returns the text, cut to 2,000 columns, with all characters escaped that could begin inline markup, a link or a
/// mention.
fn text(text: &str) -> String {
    let mut out = String::new();
    for c in clean(text, 4 * TEXT_CHARS, false).chars() {
        match c {
            // Mentions and references are recognized after markup; only another character in between prevents that.
            '@' | '#' => {
                put!(out, "<!-- -->{c}<!-- -->");
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    // Prevents renderers from turning addresses into links.
    out.replace("://", "&#58;//").replace("www.", "www&#46;")
}

/// Returns a code span with the text, cut to `limit` columns; empty for an empty text. Its fence has more backticks
/// than any sequence of backticks in the text; pipes are escaped for tables.
fn code(text: &str, limit: usize) -> String {
    let text = clean(text, limit, false);
    if text.is_empty() {
        return String::new();
    }
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{fence}{space}{}{space}{fence}", text.replace('|', "\\|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_code_span_and_cell() {
        assert_eq!(code("a|b", 60), "`a\\|b`");
        assert_eq!(code("x``y", 60), "``` x``y ```");
        assert_eq!(code("", 60), "");
        assert_eq!(code("a\nb", 60), "`a\\nb`");
    }

    #[test]
    fn running_text_holds_no_markup() {
        assert_eq!(
            text("<b> @you *x* http://y #1"),
            "&lt;b&gt; <!-- -->@<!-- -->you \\*x\\* http&#58;//y <!-- -->#<!-- -->1"
        );
    }
}
