//! An explanation as sentences, the same for every format.

pub mod account;
mod brief;
mod head;
mod listing;
mod paragraph;
mod piece;
mod words;

use pagetide_compare::Comparison;
use pagetide_compare::explain::{Answer, CellExplanation, Explanation, Lead};

pub use self::brief::brief;
pub(crate) use self::brief::reasons;
use self::head::{head, is_imported, short_head};
pub use self::listing::explanations;
pub(crate) use self::paragraph::under_cell;
use self::piece::pieces_of;
use self::words::{NAME_CHARS, claim, in_brackets, moved, of_claim};
use crate::draw::clean::clean;

/// Maximum numbers of findings, and of pieces of evidence for each finding, in the short form under a comparison.
const SHORT: [usize; 2] = [3, 3];

/// Amount of detail of an explanation.
#[derive(Clone, Copy)]
struct Detail {
    /// Maximum number of mechanisms.
    most: usize,
    /// Maximum number of pieces of evidence for each mechanism.
    pieces: usize,
    /// True if all findings and all evidence are included.
    is_full: bool,
    /// True if values that the table contains, and intervals, are left out.
    is_plain: bool,
    /// True if the remaining difference is stated.
    has_rest: bool,
}

impl Detail {
    const FULL: Self = Self {
        most: usize::MAX,
        pieces: usize::MAX,
        is_full: true,
        is_plain: false,
        has_rest: true,
    };

    const fn of(most: usize, pieces: usize) -> Self {
        Self {
            most,
            pieces,
            is_full: false,
            is_plain: false,
            has_rest: true,
        }
    }

    /// Returns the same amount of detail, without intervals and without values that the table contains.
    const fn plain(self, has_rest: bool) -> Self {
        Self {
            is_plain: true,
            has_rest,
            ..self
        }
    }
}

/// A statement of an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Text of the statement.
    pub claim: String,
    /// The pieces of evidence for the statement.
    pub evidence: Vec<String>,
}

impl Statement {
    fn bare(claim: String) -> Self {
        Self {
            claim,
            evidence: Vec::new(),
        }
    }

    /// Returns statement and evidence in one line.
    pub fn line(&self) -> String {
        if self.evidence.is_empty() {
            return self.claim.clone();
        }
        format!("{}: {}", self.claim, self.evidence.join("; "))
    }
}

/// Returns the explanation of a column as statements: the explained difference, mechanisms with their evidence, the
/// remaining difference, and other changes. Returns all statements if `full`, otherwise at most three mechanisms with
/// three pieces of evidence each.
pub fn statements(
    comparison: &Comparison,
    explained: &CellExplanation,
    full: bool,
    ascii: bool,
) -> Vec<Statement> {
    let [most, pieces] = SHORT;
    let detail = if full {
        Detail::FULL
    } else {
        Detail::of(most, pieces)
    };
    detailed(comparison, explained, detail, ascii)
}

/// Returns the statements with this amount of detail.
fn detailed(
    comparison: &Comparison,
    explained: &CellExplanation,
    detail: Detail,
    ascii: bool,
) -> Vec<Statement> {
    let explanation = &explained.explanation;
    if is_imported(comparison, explained) {
        return vec![Statement::bare(head(comparison, explained, ascii))];
    }
    let Detail { most, pieces, .. } = detail;
    let short = detail
        .is_plain
        .then(|| short_head(comparison, explained, ascii));
    let head = short
        .flatten()
        .unwrap_or_else(|| head(comparison, explained, ascii));
    let mut all = vec![Statement::bare(head)];
    for (number, finding) in (1..).zip(explanation.findings.iter().take(most)) {
        let evidence = pieces_of(explanation, &finding.evidence, pieces, ascii);
        all.push(if detail.is_plain {
            let (mechanism, effect) = (finding.mechanism, moved(finding.effect, ascii));
            let shown = in_brackets(&evidence.join("; "));
            Statement::bare(format!("{number}. {mechanism}, {effect}{shown}"))
        } else {
            Statement {
                claim: format!("{number}. {}", claim(explanation, finding, ascii)),
                evidence,
            }
        });
    }
    let rest = rest(explanation, most, ascii).filter(|_| detail.has_rest);
    all.extend(rest.map(Statement::bare));
    let (of_counts, beside): (Vec<&Lead>, Vec<&Lead>) =
        explanation.leads.iter().partition(|lead| lead.of.is_some());
    let told = |lead: &&Lead| Statement {
        claim: match &lead.of {
            Some(metric) => {
                format!(
                    "what moved {}: {}",
                    clean(metric, NAME_CHARS, ascii),
                    lead.mechanism
                )
            }
            None => format!("also changed, {}", lead.mechanism),
        },
        evidence: pieces_of(explanation, &lead.evidence, pieces, ascii),
    };
    all.extend(of_counts.iter().map(told));
    if detail.is_full {
        all.extend(beside.iter().map(told));
    } else if !beside.is_empty() {
        all.push(Statement::bare(leads(&beside)));
    }
    if let Some(changed) = changed(explanation, most, ascii) {
        all.push(Statement::bare(changed));
    }
    all.extend(explained.notes.iter().cloned().map(Statement::bare));
    all
}

/// Returns a sentence about the difference that the shown findings do not explain; `None` if there is nothing to state.
fn rest(explanation: &Explanation, most: usize, ascii: bool) -> Option<String> {
    if explanation.answer == Answer::NotSure || explanation.answer == Answer::Identical {
        return None;
    }
    let hidden = explanation.findings.iter().skip(most);
    let other: f64 = hidden.map(|finding| finding.effect).sum::<f64>() + explanation.minor;
    let counts = |time: f64| time.abs() > 0.005 * explanation.difference().abs();
    let mut parts = Vec::new();
    if counts(other) {
        parts.push(format!(
            "other, small or not sure in sign: {}",
            moved(other, ascii)
        ));
    }
    if counts(explanation.unexplained) {
        parts.push(format!(
            "unexplained: {}",
            moved(explanation.unexplained, ascii)
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns a sentence with other significant changes, if the explanation states nothing else or if everything is
/// included; otherwise `None`.
fn changed(explanation: &Explanation, most: usize, ascii: bool) -> Option<String> {
    let is_all = explanation.claim.is_none();
    if explanation.changed.is_empty() || !(is_all || most == usize::MAX) {
        return None;
    }
    let shown = most.saturating_mul(2);
    let mut texts: Vec<String> = explanation
        .changed
        .iter()
        .take(shown)
        .map(|claim| of_claim(claim, ascii))
        .collect();
    let hidden = explanation.changed.len().saturating_sub(shown);
    if hidden > 0 {
        texts.push(format!("{hidden} more"));
    }
    Some(format!("surely changed: {}", texts.join("; ")))
}

fn leads(leads: &[&Lead]) -> String {
    let names: Vec<String> = leads
        .iter()
        .map(|lead| lead.mechanism.to_string())
        .collect();
    format!("changed as well, without a time: {}", names.join(", "))
}

/// Returns the explanations of one cell, one for each column that is explained.
pub(crate) fn of_cell(
    comparison: &Comparison,
    cell: usize,
) -> impl Iterator<Item = &CellExplanation> {
    comparison
        .explanations
        .iter()
        .filter(move |explained| explained.cell == cell)
}
