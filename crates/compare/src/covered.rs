//! Coverage of patches: which changed lines the profiled trials of a campaign executed.

use std::collections::BTreeSet;

use pagetide_profile::Coverage;
use pagetide_record::Pass;
use pagetide_store::{CampaignNote, Row, Store};
use serde::Serialize;

use crate::profiled::{ProfiledError, profiled};

/// How often the profiled trials of a variant executed the lines that its kernel's patch changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VariantCoverage {
    /// Name of the variant.
    pub variant: String,
    /// Number of profiled trials.
    pub trials: usize,
    /// Counts of all these trials together.
    pub coverage: Coverage,
}

impl VariantCoverage {
    /// Adds the coverage of one trial to that of a variant. `so_far` is `None` before the first trial. A trial without
    /// coverage is ignored.
    fn add(so_far: Option<Self>, variant: &str, found: Option<Coverage>) -> Option<Self> {
        let Some(found) = found else {
            return so_far;
        };
        Some(match so_far {
            None => Self {
                variant: variant.to_owned(),
                trials: 1,
                coverage: found,
            },
            Some(mut all) => {
                all.trials += 1;
                all.coverage.add(&found);
                all
            }
        })
    }
}

/// Returns the coverage of each variant that has profiled trials and whose kernel was built with a patch.
pub fn coverage(store: &Store, note: &CampaignNote) -> Result<Vec<VariantCoverage>, ProfiledError> {
    let mut all = Vec::new();
    for (place, variant) in note.variants.iter().enumerate() {
        let entries = note.entries.iter().filter(|entry| entry.variant == place);
        let keys: BTreeSet<String> = entries.map(|entry| entry.key.clone()).collect();
        let keys: Vec<String> = keys.into_iter().collect();
        let mut seen = BTreeSet::new();
        let mut found = None;
        // Rows are sorted newest first.
        for row in store.by_keys(&keys)? {
            let is_profiled = row.cell.subject.pass == Pass::Profiled && row.is_valid();
            if is_profiled && seen.insert(row.key.clone()) {
                found = VariantCoverage::add(found, variant, of_record(store, &row)?);
            }
        }
        all.extend(found);
    }
    Ok(all)
}

/// Returns the coverage of the trial of one record; `None` if the trial was not profiled, or if its kernel was not
/// built with a patch.
pub fn of_record(store: &Store, row: &Row) -> Result<Option<Coverage>, ProfiledError> {
    Ok(profiled(store, row)?.and_then(|pass| pass.profile.coverage))
}
