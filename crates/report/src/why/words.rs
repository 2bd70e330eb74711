//! Values and differences as text.

use pagetide_compare::explain::{Answer, Claim, Explanation, MechanismShare};
use pagetide_quantity::Unit;
use pagetide_verdict::judgement::EffectKind;

use crate::draw::clean::clean;
use crate::draw::quantity::{self, Scale, show};

/// Formats a claim with its verdict, and medians and change as in the table: `access-time improved, 1.20 → 1.05 s
/// (−12.5 %)`.
pub(super) fn of_claim(claim: &Claim, ascii: bool) -> String {
    let change = match claim.kind {
        EffectKind::Ratio => percent(claim.effect - 1.0, 1.0, ascii),
        EffectKind::Difference if claim.unit == Unit::Share => points(claim.effect, ascii),
        EffectKind::Difference => percent(claim.effect, claim.medians[0], ascii),
    };
    format!(
        "{} {}, {}{}",
        clean(&claim.metric, NAME_CHARS, ascii),
        claim.verdict,
        both(claim.medians, claim.unit, ascii),
        in_brackets(&change)
    )
}

/// Returns text to put before a difference of which no significant cause explains at least a tenth; otherwise empty.
pub(super) fn reservation(explanation: &Explanation) -> &'static str {
    match (explanation.answer, &explanation.findings[..]) {
        (Answer::Explained, _) => "",
        (_, []) => "no sure cause found",
        (_, [_, ..]) => "only small sure causes, each below a tenth",
    }
}

/// Returns a space and the text in brackets, to follow a value; empty if the text is empty.
pub(super) fn in_brackets(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(" ({text})")
    }
}

/// If a difference is larger than this multiple of the baseline, it is not printed as a percentage.
const MAX_TIMES: f64 = 10.0;

/// Formats a difference as a percentage with its sign. Empty if the baseline is zero or so small that a percentage
/// would not help.
pub(super) fn percent(difference: f64, of: f64, ascii: bool) -> String {
    if of == 0.0 || (difference / of).abs() > MAX_TIMES || !(difference / of).is_finite() {
        return String::new();
    }
    let text = format!("{:+.1} %", 100.0 * difference / of.abs());
    if ascii {
        text
    } else {
        text.replace('-', "−")
    }
}

/// Formats a difference of shares in percentage points, as in the table of verdicts.
fn points(difference: f64, ascii: bool) -> String {
    format!("{} pt", quantity::signed(100.0 * difference, 1, ascii))
}

/// Formats a mechanism's effect as text: `direct reclaim: 47 ms less (62 % of it; surely 41 ms to 53 ms)`.
pub(super) fn claim(explanation: &Explanation, finding: &MechanismShare, ascii: bool) -> String {
    let word = if finding.effect < 0.0 { "less" } else { "more" };
    let [low, high] = finding.interval.map(f64::abs);
    let scale = Scale::of_all(Unit::Nanos, [low, high]);
    let sure = format!(
        "surely {} to {}",
        scale.show(low.min(high), ascii),
        scale.show(low.max(high), ascii)
    );
    let share = match finding.share {
        Some(share) if share <= 1.0 => format!("{:.0} % of it; ", 100.0 * share),
        None if finding.effect * explanation.difference() < 0.0 => "against the rest; ".to_owned(),
        _ => String::new(),
    };
    format!(
        "{}: {} {word} ({share}{sure})",
        finding.mechanism,
        show(Unit::Nanos, finding.effect.abs(), ascii)
    )
}

/// Formats a change of a time as text, such as `47 ms less`.
pub(super) fn moved(time: f64, ascii: bool) -> String {
    let word = if time < 0.0 { "less" } else { "more" };
    format!("{} {word}", show(Unit::Nanos, time.abs(), ascii))
}

/// Formats two values as text in one scale, with an arrow between them; pages and counts are printed without unit and
/// decimals.
pub(super) fn both(values: [f64; 2], unit: Unit, ascii: bool) -> String {
    let scale = Scale::of_all(unit, values);
    let shown = values.map(|value| match unit {
        Unit::Pages | Unit::Count => show(Unit::Count, value.round(), ascii),
        _ => scale.show(value, ascii),
    });
    format!("{} {} {}", shown[0], arrow(ascii), shown[1])
}

pub(super) const fn arrow(ascii: bool) -> &'static str {
    if ascii { "->" } else { "→" }
}

/// Formats a time as text with its sign and unit.
pub(super) fn signed(time: f64, ascii: bool) -> String {
    let sign = match (time < 0.0, ascii) {
        (true, true) => "-",
        (true, false) => "−",
        (false, _) => "+",
    };
    format!("{sign}{}", show(Unit::Nanos, time.abs(), ascii))
}

/// Maximum length of a name in a sentence, in columns.
pub(super) const NAME_CHARS: usize = 40;
