//! IDs of the records in a comparison, and the machine on which they were made.

use pagetide_compare::Comparison;
use pagetide_record::{Machine, Record};
use pagetide_store::{Store, StoreError};

/// Returns the IDs of the valid records, each with the indices of its cell and column.
pub(crate) fn identities(comparison: &Comparison) -> impl Iterator<Item = ((usize, usize), &str)> {
    comparison
        .cells
        .iter()
        .enumerate()
        .flat_map(|(cell, group)| {
            let sides = group.sides.iter().enumerate();
            sides.flat_map(move |(column, side)| {
                let ids = side.trials.iter().map(|trial| trial.record.as_str());
                ids.map(move |id| ((cell, column), id))
            })
        })
}

/// Returns the machine on which the first valid record of a comparison was made. `None` if there is no such record or
/// it cannot be read. That is not an error, because no number depends on the machine.
pub(crate) fn machine(store: &Store, comparison: &Comparison) -> Option<Machine> {
    let (_, id) = identities(comparison).next()?;
    Some(store.load(id).ok()?.into_record().wall.machine)
}

pub(crate) fn records(store: &Store, comparison: &Comparison) -> Result<Vec<Record>, StoreError> {
    identities(comparison)
        .map(|(_, id)| Ok(store.load(id)?.into_record()))
        .collect()
}
