//! The first line of an explanation: the explained difference, and the data it is based on.

use pagetide_compare::Comparison;
use pagetide_compare::explain::{Answer, Basis, CellExplanation, Claim};
use pagetide_quantity::Unit;
use pagetide_record::Subject;
use pagetide_verdict::Verdict;

use super::words::{NAME_CHARS, both, in_brackets, moved, of_claim, percent, reservation};
use crate::about::{self, BASELINE};
use crate::draw::clean::clean;

/// Returns the explained difference, and the data it is based on.
pub(super) fn head(comparison: &Comparison, explained: &CellExplanation, ascii: bool) -> String {
    let explanation = &explained.explanation;
    let name = |index: usize| clean(about::name(comparison, index), NAME_CHARS, ascii);
    let subject = format!("Why {} against {}", name(explained.column), name(BASELINE));
    let claim = match (&explanation.claim, explanation.answer) {
        (_, Answer::Identical) => {
            return format!("{subject}: no difference, the records are equal to the bit");
        }
        _ if is_imported(comparison, explained) => {
            return format!("{subject}: imported results do not tell");
        }
        (None, _) if explanation.changed.iter().any(is_time) => {
            return format!(
                "{subject}: no sure difference in a whole time to explain; quantiles, maxima and times below a tenth of all processes' time are not explained"
            );
        }
        (None, _) | (_, Answer::NotSure) => {
            return format!("{subject}: no sure difference in time to explain");
        }
        (Some(claim), _) => claim,
    };
    let found = match reservation(explanation) {
        "" => String::new(),
        reservation => format!("{reservation}: "),
    };
    let [a, b] = explanation.time;
    let of_time = both([a, b], Unit::Nanos, ascii) + &in_brackets(&percent(b - a, a, ascii));
    let relation = match explanation.answer {
        Answer::Contrary => "; these differ the other way, so they explain nothing",
        _ if explanation.is_another_time() => {
            "; not the same time, so read the rows as parts of this one"
        }
        _ => "",
    };
    format!(
        "{subject}: {found}{}; in {}, {of_time}{relation}",
        of_claim(claim, ascii),
        basis(&explanation.basis)
    )
}

/// Returns the explained difference in one sentence, without the values that the table above contains; `None` if there
/// is no difference to explain or no cause was found, because then the sentence needs more words.
pub(super) fn short_head(
    comparison: &Comparison,
    explained: &CellExplanation,
    ascii: bool,
) -> Option<String> {
    let explanation = &explained.explanation;
    let claim = explanation.claim.as_ref()?;
    if explanation.answer != Answer::Explained {
        return None;
    }
    let of = if comparison.columns.len() > 2 {
        let name = about::name(comparison, explained.column);
        format!(" of {}", clean(name, NAME_CHARS, ascii))
    } else {
        String::new()
    };
    let relation = if explanation.is_another_time() {
        ", which is not the same time"
    } else {
        ""
    };
    let rests_on = match &explanation.basis {
        Basis::Traced {
            records, attempts, ..
        } => {
            let time = if *attempts {
                "the attempts'"
            } else {
                "all processes'"
            };
            match records[0].len() {
                1 => format!("{time} time (1 seed)"),
                many => format!("{time} time ({many} seeds)"),
            }
        }
        Basis::Counters => "elapsed time (counters alone)".to_owned(),
    };
    Some(format!(
        "Why {}{of} {}: {} in {rests_on}{relation}",
        clean(&claim.metric, NAME_CHARS, ascii),
        claim.verdict,
        moved(explanation.difference(), ascii),
    ))
}

/// True if the records were imported. Imported records contain only results.
pub(super) fn is_imported(comparison: &Comparison, explained: &CellExplanation) -> bool {
    let cell = comparison.cells.get(explained.cell);
    let subject = cell.and_then(|cell| cell.subject.as_ref());
    subject.is_some_and(Subject::is_imported)
}

/// True if the claim is about a time that became significantly better or worse.
fn is_time(claim: &Claim) -> bool {
    claim.unit == Unit::Nanos && claim.verdict != Verdict::Changed
}

/// Describes the data that an explanation is based on.
pub(super) fn basis(basis: &Basis) -> String {
    let (seeds, records, attempts) = match basis {
        Basis::Traced {
            seeds,
            records,
            attempts,
        } => (seeds, records, *attempts),
        Basis::Counters => {
            return "elapsed time of the timed trials (no pass of both was observed, --observe, so only time off the CPU is attributed)".to_owned();
        }
    };
    let passes = match (&seeds[..], records[0].len()) {
        ([seed], _) => format!("the observed pass of seed {seed}"),
        ([], 1) => "observed passes of different seeds".to_owned(),
        ([], many) => format!("{many} observed passes of different seeds"),
        (many, _) => format!("the observed passes of {} seeds", many.len()),
    };
    if attempts {
        format!("the attempts' time of {passes}")
    } else {
        format!("all processes' time of {passes}")
    }
}
