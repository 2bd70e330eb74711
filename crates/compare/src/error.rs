//! What a comparison refuses, and what to do about it.

use pagetide_quantity::command::told;
use pagetide_store::StoreError;
use pagetide_verdict::StatError;

use crate::difference::Difference;

/// Why nothing can be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The store could not do its work.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Things that cannot be compared.
    #[error(
        "{a} and {b} cannot be compared: {}; choose records that differ in the variant alone, or insist with --anyway",
        list(.differences)
    )]
    NotComparable {
        /// The one.
        a: String,
        /// The other.
        b: String,
        /// In what they differ.
        differences: Vec<Difference>,
    },
    /// A name that stands for nothing.
    #[error(
        "`{given}` is no variant of the last campaign, no CAMPAIGN:VARIANT, no kernel release and no record in the store{}: \
         {} shows what is there",
        also(.nearest.as_deref()), told("list records")
    )]
    Unknown {
        /// What was given.
        given: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// A campaign that never ran.
    #[error("no campaign `{name}` is in the store{}: {} shows what is there", also(.nearest.as_deref()), told("list campaigns"))]
    NoCampaign {
        /// What was given.
        name: String,
        /// The nearest name there is.
        nearest: Option<String>,
    },
    /// One side without the other.
    #[error("`{name}` is one side: name the other as well, after it")]
    OneSide {
        /// What was given.
        name: String,
    },
    /// A variant that the campaign has not.
    #[error("campaign {campaign} has no variant `{variant}`: it has {known}")]
    NoVariant {
        /// The campaign.
        campaign: String,
        /// What was given.
        variant: String,
        /// What there is.
        known: String,
    },
    /// Fewer than two variants.
    #[error("campaign {campaign} has a single variant, {variant}: add another to compare it with")]
    OneVariant {
        /// The campaign.
        campaign: String,
        /// Its variant.
        variant: String,
    },
    /// No records are there.
    #[error("{what} has no records yet: run its campaign")]
    NoRecords {
        /// What was to be compared.
        what: String,
    },
    /// The store has no campaign at all.
    #[error(
        "no campaign has run yet: {} runs one",
        told("run campaigns/quick.toml")
    )]
    NothingRan,
    /// The statistics refused.
    #[error(transparent)]
    Statistics(#[from] StatError),
}

impl CompareError {
    /// Whether a user's words were wrong, rather than that the store could not answer.
    pub fn is_user_error(&self) -> bool {
        matches!(self, Self::OneSide { .. })
    }
}

/// Differences in one line.
fn list(differences: &[Difference]) -> String {
    let all: Vec<String> = differences.iter().map(ToString::to_string).collect();
    all.join(", ")
}

/// The nearest name as part of a sentence.
fn also(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}
