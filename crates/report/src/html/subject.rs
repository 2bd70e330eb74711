//! Finds what an HTML report shows: the comparison, campaign or record that is named on a command line.

use pagetide_compare::{CompareError, Comparison, Names, show_campaign};
use pagetide_store::{Store, StoreError};

use super::{single, title, with_names};
use crate::about::About;

/// Reasons why a page cannot be made for names on the command line.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The comparison is not possible.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// A store operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A name is neither the name of a campaign nor a prefix of a record's ID.
    #[error("making a page of `{name}`, which is no record's identity")]
    Neither {
        /// The name as typed.
        name: String,
        /// Reason why the name is not a campaign.
        source: CompareError,
    },
}

impl SubjectError {
    /// True if the comparison is not possible because the user's input is wrong. False for [`Self::Neither`]: there,
    /// the error in `source` tells it.
    pub fn is_user_error(&self) -> bool {
        matches!(self, Self::Compare(error) if error.is_user_error())
    }
}

/// Returns the subject of the page: two sides, a campaign or a record, with its title and the command that repeats it.
pub fn subject(store: &Store, names: &Names) -> Result<(Comparison, About), SubjectError> {
    let about = |title: String, command: String| About {
        title,
        command,
        ..About::default()
    };
    let again = || names.words("report");
    let name = match names {
        Names { b: Some(_), .. } => {
            let mut comparison = names.compare(store)?;
            let title = with_names(&mut comparison);
            return Ok((comparison, about(title, again())));
        }
        Names { a: Some(name), .. } if name.contains(':') => {
            let name = name.clone();
            return Err(CompareError::OneSide { name }.into());
        }
        Names { a, .. } => a.as_deref(),
    };
    match show_campaign(store, name) {
        Ok(comparison) => {
            let title = comparison.campaign.clone();
            let title = title.unwrap_or_else(|| "Campaign".to_owned());
            // A reader of the page needs the command that repeats the results, not the one that makes the page.
            let command = names.origin(store, &comparison, "report")?;
            Ok((comparison, about(title, command)))
        }
        Err(source @ CompareError::NoCampaign { .. }) => {
            let name = name.unwrap_or_default();
            match store.find(name) {
                Ok(row) => {
                    let record = store.load(&row.id)?.into_record();
                    let title = title(&record);
                    Ok((single(&record), about(title, record.maker.command)))
                }
                // The name may mean a campaign or a record, so the error mentions both.
                Err(StoreError::Unknown { .. }) => Err(SubjectError::Neither {
                    name: name.to_owned(),
                    source,
                }),
                Err(error) => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}
