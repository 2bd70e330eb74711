//! The page for a comparison in a store: opens the records, and adds data that the comparison does not contain.

use std::io::Write;

use pagetide_compare::Comparison;
use pagetide_compare::explain::explain_with_accounts;
use pagetide_record::Machine;
use pagetide_store::Store;

use super::{Assets, HtmlError, Input, PageSummary, Sources, write};
use crate::about::About;
use crate::records::machine;

/// Writes the page of a comparison whose records are in `store`. If `about` has no machine, the page shows the machine
/// of the first record.
pub fn of_store(
    store: &Store,
    comparison: &Comparison,
    about: &About,
    assets: Assets<'_>,
    out: &mut dyn Write,
) -> Result<PageSummary, HtmlError> {
    let open = |id: &str| store.load(id).map_err(|error| error.to_string());
    let mut about = about.clone();
    if about.machine == Machine::default() {
        about.machine = machine(store, comparison).unwrap_or_default();
    }
    let mut sources = Sources::of(store, comparison);
    let explained;
    let comparison = if comparison.explanations.is_empty() {
        explained = explain_or_omit(store, comparison, &mut sources);
        &explained
    } else {
        comparison
    };
    let input = Input {
        comparison,
        about: &about,
        sources: &sources,
        open: &open,
        assets,
    };
    write(&input, out)
}

/// Returns the comparison with its explanations. If the explanations cannot be computed, adds a line to the omitted
/// data.
fn explain_or_omit(store: &Store, comparison: &Comparison, sources: &mut Sources) -> Comparison {
    let mut comparison = comparison.clone();
    if comparison.columns.len() > 1 {
        match explain_with_accounts(store, &comparison) {
            Ok(explanations) => comparison.explanations = explanations,
            Err(error) => sources.omitted.push(format!("why: {error}")),
        }
    }
    comparison
}
