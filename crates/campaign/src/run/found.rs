//! Finds the records of planned trials.

use std::collections::HashMap;

use pagetide_compare::profiled::has_references;
use pagetide_record::Subject;
use pagetide_store::{CampaignNote, Row, Store, StoreError};

use crate::plan::PlannedTrial;

/// A planned trial with its subject (everything that determines its results) and the subject's key. It may not be
/// prepared yet.
pub(crate) struct KnownTrial {
    pub planned: PlannedTrial,
    pub subject: Subject,
    pub key: String,
}

/// Finds a record for each of these trials, preferring valid ones. Records invalidated by an accident do not count. If
/// results have noise or a fresh run was requested, only the campaign's own records count. All trials with the same key
/// must be passed together, because each needs a record of its own.
pub(crate) fn found(
    store: &Store,
    note: &CampaignNote,
    has_noise: bool,
    trials: &[KnownTrial],
) -> Result<Vec<Option<Row>>, StoreError> {
    let mut keys: Vec<String> = trials.iter().map(|trial| trial.key.clone()).collect();
    keys.sort_unstable();
    keys.dedup();
    let id = note.id();
    let own = has_noise || note.fresh;
    let mut records: HashMap<String, Vec<Row>> = HashMap::new();
    for row in store.by_keys(&keys)? {
        if !row.accident && (!own || *row.campaign == *id) {
            records.entry(row.key.clone()).or_default().push(row);
        }
    }
    for rows in records.values_mut() {
        rows.sort_by_key(Row::is_valid);
    }
    // A profiled trial that was recorded without references does not answer a request for references.
    for trial in trials.iter().filter(|trial| trial.planned.trial.references) {
        if let Some(rows) = records.get_mut(&trial.key) {
            let reader = |row: &Row| store.load(&row.id);
            rows.retain(|row| reader(row).is_ok_and(|reader| has_references(reader.record())));
        }
    }
    let taken = |trial: &KnownTrial| records.get_mut(&trial.key).and_then(Vec::pop);
    Ok(trials.iter().map(taken).collect())
}
