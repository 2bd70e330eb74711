//! A summary in one sentence, for quotation.

use pagetide_compare::{Comparison, MetricRow};
use pagetide_verdict::judgement::EffectKind;
use pagetide_verdict::{Judgement, Verdict};

use crate::about::{self, BASELINE};
use crate::column_notes;
use crate::draw::clean;
use crate::names::Names;
use crate::sentence::listed;
use crate::terminal::effect;

/// Maximum length of a name in the sentence, in columns.
const NAME_CHARS: usize = 40;
/// Maximum length of a cell's name, in columns. The limit is high, so that the part that distinguishes cells is not
/// cut.
const CELL_CHARS: usize = 120;

/// Verdicts in the order in which the sentence mentions them.
const WORDS: [&str; 8] = [
    "improved",
    "regressed",
    "changed",
    "equivalent",
    "identical",
    "confounded",
    "inconclusive",
    "invalid",
];

/// A judgement with its metric and cell.
struct JudgedRow<'a> {
    cell: usize,
    row: &'a MetricRow,
    judgement: &'a Judgement,
}

/// Returns the summary of one variant compared with the baseline: the numbers of primary metrics by verdict, and the
/// largest improvement and regression with their intervals. If no metric is primary, all metrics count.
pub fn sentence(comparison: &Comparison, variant: usize, ascii: bool) -> String {
    let names = Names::of(comparison);
    let of_cell = |cell| clean(&names.behind(cell), CELL_CHARS, ascii);
    let name = |index: usize| clean(about::name(comparison, index), NAME_CHARS, ascii);
    let any = comparison
        .cells
        .iter()
        .any(|group| group.metrics.iter().any(|row| row.primary));
    let findings: Vec<JudgedRow> = comparison
        .cells
        .iter()
        .enumerate()
        .flat_map(|(cell, group)| group.metrics.iter().map(move |row| (cell, row)))
        .filter(|(_, row)| row.primary || !any)
        .filter_map(|(cell, row)| {
            let judgement = about::judgement(row, variant)?;
            Some(JudgedRow {
                cell,
                row,
                judgement,
            })
        })
        .collect();
    let subject = format!("{} against {}", name(variant), name(BASELINE));
    let deaths = column_notes::deaths_of(comparison, variant);
    if findings.is_empty() {
        return match deaths {
            Some(deaths) => format!("{subject}: {deaths}; no metric has values on both sides."),
            None => format!("{subject}: nothing could be compared."),
        };
    }
    let subject = match deaths {
        Some(deaths) => format!("{subject}: {deaths}; metrics"),
        None => subject,
    };
    let kind = if any { "primary metric" } else { "metric" };
    let all = findings.len();
    let identical = count(&findings, "identical");
    if identical == all {
        return format!(
            "{subject}: identical to the bit in {}.",
            counted(all, kind, "all ")
        );
    }
    let mut parts = Vec::new();
    for word in WORDS {
        let n = count(&findings, word);
        if n == 0 {
            continue;
        }
        let mut part = format!("{n} {word}");
        if matches!(word, "improved" | "regressed")
            && let Some(most) = largest(&findings, word)
        {
            let unit = most.row.unit;
            put!(
                part,
                " ({}{}{}, {}",
                if n > 1 { "most: " } else { "" },
                clean(&most.row.name, NAME_CHARS, ascii),
                of_cell(most.cell),
                effect::change(most.judgement, unit, ascii),
            );
            if let Some(interval) = most.judgement.effect.and_then(|effect| effect.interval) {
                put!(
                    part,
                    ", {} % interval {}",
                    percent(interval.level),
                    effect::interval(most.judgement, unit, ascii)
                );
            }
            part.push(')');
        }
        parts.push(part);
    }
    format!(
        "{subject}: of {}, {}.",
        counted(all, kind, ""),
        listed(&parts, "and")
    )
}

/// Formats a confidence level or an error rate in per cent, with one decimal, or none if it would be zero.
pub fn percent(level: f64) -> String {
    let text = format!("{:.1}", level * 100.0);
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

fn counted(n: usize, what: &str, all: &str) -> String {
    if n == 1 {
        format!("one {what}")
    } else {
        format!("{all}{n} {what}s")
    }
}

fn count(findings: &[JudgedRow], word: &str) -> usize {
    findings
        .iter()
        .filter(|finding| is(&finding.judgement.verdict, word))
        .count()
}

fn is(verdict: &Verdict, word: &str) -> bool {
    verdict.to_string() == word
}

/// Returns the finding with this verdict and the largest effect; `None` without such a finding. Ratios are compared by
/// the absolute value of their logarithm. They come before differences, whose sizes cannot be compared.
fn largest<'a, 'b>(findings: &'b [JudgedRow<'a>], word: &str) -> Option<&'b JudgedRow<'a>> {
    let size = |finding: &JudgedRow| match &finding.judgement.effect {
        Some(effect) if effect.kind == EffectKind::Ratio => effect.estimate.ln().abs(),
        _ => -1.0,
    };
    findings
        .iter()
        .filter(|finding| is(&finding.judgement.verdict, word))
        .max_by(|a, b| size(a).total_cmp(&size(b)))
}
