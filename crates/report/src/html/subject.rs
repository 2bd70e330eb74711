//! What a page is about, by the names on a command line.

use pagetide_compare::{CompareError, Comparison, Names, show_campaign};
use pagetide_store::{Store, StoreError};

use super::{single, title, with_names};
use crate::about::About;

/// Why names stand for nothing that a page can show.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// Nothing can be compared.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A name is neither a campaign's nor a record's.
    #[error("making a page of `{name}`, which is no record's identity")]
    Neither {
        /// The name.
        name: String,
        /// Why it is no campaign.
        source: CompareError,
    },
}

impl SubjectError {
    /// Whether a user's words were wrong, rather than that the store could not answer.
    pub fn is_user_error(&self) -> bool {
        matches!(self, Self::Compare(error) if error.is_user_error())
    }
}

/// What the page is about: two sides, a campaign or a record, with its title and the command that makes it again.
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
            // Whoever reads the page wants to make the results again, not the page.
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
                // It was meant as a campaign, or as a record: say both.
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
