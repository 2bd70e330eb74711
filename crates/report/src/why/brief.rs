//! The reasons for a difference in one or two sentences, where there is no space for a paragraph.

use pagetide_compare::Comparison;
use pagetide_compare::explain::{Basis, CellExplanation, Explanation};
use pagetide_quantity::Unit;

use super::SHORT;
use super::head::basis;
use super::piece::pieces_of;
use super::words::NAME_CHARS;
use super::words::{in_brackets, moved, of_claim, reservation};
use crate::about;
use crate::draw::clean::clean;
use crate::draw::quantity::show;

/// Returns the reasons for a significant difference in one sentence: the cost or saving of each mechanism with one
/// counter as evidence. Empty if there is nothing to explain.
///
/// At most `most` mechanisms are named.
pub fn brief(comparison: &Comparison, explained: &CellExplanation, most: usize) -> String {
    let explanation = &explained.explanation;
    let Some(claim) = &explanation.claim else {
        return String::new();
    };
    let subject = match comparison.columns.len() {
        ..=2 => "Why".to_owned(),
        _ => format!(
            "Why {}",
            clean(about::name(comparison, explained.column), NAME_CHARS, true)
        ),
    };
    let whole = explanation.difference();
    let reasons: Vec<String> = explanation
        .findings
        .iter()
        .take(most)
        .map(|finding| {
            let shown = pieces_of(explanation, &finding.evidence, 1, true);
            let effect = if is_part(finding.effect, whole) {
                let effect = show(Unit::Nanos, finding.effect.abs(), true);
                format!("{effect} of {}", moved(whole, true))
            } else if finding.effect * whole > 0.0 {
                moved(finding.effect, true)
            } else {
                format!("against the rest {}", moved(finding.effect, true))
            };
            format!(
                "{}, {effect}{}",
                finding.mechanism,
                in_brackets(&shown.join(""))
            )
        })
        .collect();
    let mut reasons = match (reservation(explanation), &reasons[..]) {
        ("", reasons) => reasons.join("; "),
        (reservation, []) => reservation.to_owned(),
        (reservation, reasons) => format!("{reservation}: {}", reasons.join("; ")),
    };
    if is_opposed(explanation) {
        put!(reasons, "; all together {}", moved(whole, true));
    }
    let seeds = match &explanation.basis {
        Basis::Traced { records, .. } => match records[0].len() {
            1 => "1 observed seed".to_owned(),
            many => format!("{many} observed seeds"),
        },
        Basis::Counters => "counters of the timed trials".to_owned(),
    };
    let metric = clean(&claim.metric, NAME_CHARS, true);
    format!("{subject} {metric} ({seeds}): {reasons}.")
}

/// Returns a significant difference and at most three of its reasons in two sentences, to accompany a picture. Empty if
/// there is nothing to explain.
pub(crate) fn reasons(explained: &CellExplanation) -> String {
    let explanation = &explained.explanation;
    let Some(claim) = &explanation.claim else {
        return String::new();
    };
    let all: Vec<String> = explanation
        .findings
        .iter()
        .take(SHORT[0])
        .map(|finding| {
            let shown = pieces_of(explanation, &finding.evidence, 1, false);
            let effect = moved(finding.effect, false);
            format!(
                "{}, {effect}{}",
                finding.mechanism,
                in_brackets(&shown.join(""))
            )
        })
        .collect();
    let whole = moved(explanation.difference(), false);
    let of = basis(&explanation.basis);
    let whole = if is_opposed(explanation) {
        format!("Parts that oppose each other make {whole} in {of}")
    } else {
        format!("Of {whole} in {of}")
    };
    format!("{}. {whole}: {}.", of_claim(claim, false), all.join("; "))
}

/// True if an effect opposes the difference or is larger than the difference, so that it is not a part of the
/// difference.
fn is_opposed(explanation: &Explanation) -> bool {
    let whole = explanation.difference();
    let mut findings = explanation.findings.iter();
    findings.any(|finding| !is_part(finding.effect, whole))
}

/// True if an effect can be a part of the whole difference: same sign and not larger.
fn is_part(effect: f64, whole: f64) -> bool {
    effect * whole > 0.0 && effect.abs() <= whole.abs()
}
