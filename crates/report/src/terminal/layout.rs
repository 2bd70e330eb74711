//! Whether a patch does more than code that merely moves.

use pagetide_compare::Comparison;
use pagetide_verdict::Verdict;

use crate::about;
use crate::terminal::summary;

/// Says what a comparison of a patched kernel with its control shows: the first column is the control, whose source has a
/// nop in the patch's place, the second the patched kernel.
pub fn sentences(comparison: &Comparison) -> String {
    let claims = comparison
        .cells
        .iter()
        .flat_map(|group| &group.metrics)
        .filter(|row| row.primary)
        .filter_map(|row| about::judgement(row, 1))
        .any(|judgement| {
            matches!(
                judgement.verdict,
                Verdict::Improved | Verdict::Regressed | Verdict::Changed
            )
        });
    let meaning = if claims {
        "the patch does more than move code"
    } else {
        "nothing is shown that moving code alone would not do"
    };
    format!(
        "\nControl (the source with a nop in the patch's place): {meaning}.\n  {}\n",
        summary::sentence(comparison, 1, false)
    )
}
