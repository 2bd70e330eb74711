//! Tests whether a patch has more effect than a mere change of code layout.

use pagetide_compare::{CompareError, Comparison, compare_two};
use pagetide_store::{CampaignNote, Store};
use pagetide_verdict::Verdict;

use crate::about;
use crate::terminal::summary;

/// Returns text about a campaign that compares its variant `patched` with its variant `control`; `None` if one of these
/// variants is missing.
pub fn of_campaign(
    store: &Store,
    note: &CampaignNote,
    control: &str,
    patched: &str,
) -> Result<Option<String>, CompareError> {
    let has = |name: &str| note.variants.iter().any(|variant| variant == name);
    if !has(patched) || !has(control) {
        return Ok(None);
    }
    let side = |name: &str| format!("{}:{name}", note.id());
    let comparison = compare_two(store, &side(control), &side(patched), true)?;
    Ok(Some(sentences(&comparison)))
}

/// Describes the comparison of a patched kernel with its control. The first column is the control, whose source has a
/// nop at the place of the patch; the second is the patched kernel.
fn sentences(comparison: &Comparison) -> String {
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
