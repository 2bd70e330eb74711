//! The page for a comparison in a store: opens the records, and adds data that the comparison does not contain.

use std::io::Write;

use pagetide_compare::explain::explain_with_accounts;
use pagetide_compare::{CompareError, Comparison, show_note};
use pagetide_record::Machine;
use pagetide_store::{CampaignNote, CaseNote, Store};

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

/// Reasons why the page of a case cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The trials of the case cannot be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// The page cannot be written.
    #[error(transparent)]
    Html(#[from] HtmlError),
}

/// Writes the page of a case that a search found. `note` lists its trials, whose records are in `store`.
pub fn of_case(
    store: &Store,
    note: &CampaignNote,
    case: &CaseNote,
    out: &mut dyn Write,
) -> Result<PageSummary, CaseError> {
    let comparison = show_note(store, note)?;
    let about = About {
        title: case.title.clone(),
        command: "pagetide run case.toml".to_owned(),
        case: Some(case.clone()),
        ..About::default()
    };
    Ok(of_store(store, &comparison, &about, Assets::Inside, out)?)
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
