//! The first section of the page about a finding: what happened, how general it is, what memory held over time, and the
//! counters that show it.

use pagetide_store::CaseNote;

use super::Input;
use super::escape::{LONG, lines, prose, text};
use crate::draw::quantity::count;

/// Maximum length of a name, in characters.
const NAME_CHARS: usize = 120;
/// Maximum length of a campaign file, in characters.
const FILE_CHARS: usize = 100_000;
/// Counters of pages that reclaim looked at or freed. Without them, nothing was reclaimed.
const RECLAIM: [&str; 4] = ["pgscan_anon", "pgscan_file", "pgsteal_anon", "pgsteal_file"];

/// Writes the section; nothing if the page is not about a finding.
pub(crate) fn section(input: &Input<'_>, out: &mut String) {
    let Some(case) = &input.about.case else {
        return;
    };
    out.push_str("<section id=\"case\" aria-labelledby=\"case-title\">\n");
    happened(case, out);
    generality(case, out);
    make_up(input, case, out);
    counters(case, out);
    out.push_str("</section>\n");
}

fn happened(case: &CaseNote, out: &mut String) {
    put!(
        out,
        "<h2 id=\"case-title\">What happened</h2>\n<p class=\"sentence\">{}: {}.</p>\n<p>{}</p>\n",
        prose(&case.title, LONG),
        prose(&case.shown, LONG),
        prose(&case.goal, LONG)
    );
    if let Some(death) = &case.death {
        put!(
            out,
            "<p>What the kernel reported when it killed: {}.</p>\n",
            text(death, LONG)
        );
    }
    let smallest = if case.is_smallest {
        "Nothing can be left out of the workload"
    } else {
        "The workload, which may not be the smallest"
    };
    put!(
        out,
        "<p>{smallest}: {}.</p>\n<details><summary>The case as a campaign file</summary>\n<pre>{}</pre>\n</details>\n",
        text(&case.workload, LONG),
        lines(&case.toml, FILE_CHARS)
    );
}

fn generality(case: &CaseNote, out: &mut String) {
    out.push_str("<h3>How general it is</h3>\n");
    begin("How general it is", &["tried with", "result"], "", out);
    for (with, result) in &case.generality {
        put!(
            out,
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
            text(with, NAME_CHARS),
            text(result, LONG)
        );
    }
    out.push_str("</tbody></table></div>\n");
}

/// Writes the place for the figures of memory by kind. The script of the page draws them.
fn make_up(input: &Input<'_>, case: &CaseNote, out: &mut String) {
    out.push_str("<h3>Memory over time</h3>\n<div class=\"figures\" id=\"makeup\"></div>\n");
    if input.sources.observed.is_empty() && case.unobserved.is_empty() {
        out.push_str("<p>No trial was observed.</p>\n");
    }
    if let Some(observed) = &case.observed {
        put!(out, "<p>{}</p>\n", text(observed, LONG));
    }
    for why in &case.unobserved {
        put!(out, "<p>Not observed: {}</p>\n", text(why, LONG));
    }
}

fn counters(case: &CaseNote, out: &mut String) {
    out.push_str("<h3 id=\"counters\">Counters that show it</h3>\n");
    let reclaimed = case
        .counters
        .iter()
        .any(|(name, values)| RECLAIM.contains(&&**name) && values.iter().any(|value| *value > 0));
    let what = if reclaimed {
        ""
    } else {
        " Reclaim looked at no page."
    };
    let order = if case.variants.len() > 1 {
        " Counters that differ the most between the first two variants come first."
    } else {
        ""
    };
    put!(
        out,
        "<p>Increase of the kernel's counters in <code>/proc/vmstat</code> with the first fresh seed.{what}{order}</p>\n"
    );
    if case.counters.is_empty() {
        return;
    }
    let names: Vec<&str> = case.variants.iter().map(String::as_str).collect();
    let heads = [vec!["counter"], names].concat();
    begin("Counters", &heads, " class=\"number\"", out);
    for (name, values) in sorted(&case.counters) {
        put!(out, "<tr><th scope=\"row\">{}</th>", text(name, NAME_CHARS));
        for value in values {
            put!(out, "<td class=\"number\">{}</td>", count(*value));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}

/// Begins a table. All heads but the first have the attribute `class`.
fn begin(label: &str, heads: &[&str], class: &str, out: &mut String) {
    put!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><table><thead><tr>"
    );
    for (place, head) in heads.iter().enumerate() {
        let class = if place == 0 { "" } else { class };
        put!(
            out,
            "<th scope=\"col\"{class}>{}</th>",
            text(head, NAME_CHARS)
        );
    }
    out.push_str("</tr></thead><tbody>\n");
}

/// Sorts counters by how surely the first two values differ, as if they were counts of independent events (*a* − *b*, as
/// a multiple of the root of *a* + *b*). With one value, the order is kept.
fn sorted(counters: &[(String, Vec<u64>)]) -> Vec<&(String, Vec<u64>)> {
    let difference = |values: &[u64]| match values {
        [a, b, ..] => a.abs_diff(*b) as f64 / ((*a as f64 + *b as f64).sqrt()).max(1.0),
        _ => 0.0,
    };
    let mut all: Vec<_> = counters.iter().collect();
    all.sort_by(|(_, a), (_, b)| difference(b).total_cmp(&difference(a)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_surely_differ_come_first_and_equal_ones_keep_their_order() {
        let of = |name: &str, values: &[u64]| (name.to_owned(), values.to_vec());
        let all = [
            of("same", &[7, 7, 1]),
            of("chance", &[1_000_000, 1_000_500]),
            of("new", &[0, 90]),
            of("alone", &[5]),
            of("none", &[]),
            of("most", &[u64::MAX, 0]),
        ];
        let names: Vec<&str> = sorted(&all).iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["most", "new", "chance", "same", "alone", "none"]);
    }
}
