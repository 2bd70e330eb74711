//! Errors of comparisons; each message states a remedy.

use pagetide_quantity::command::in_backticks;
use pagetide_record::ArenaKind;
use pagetide_store::StoreError;
use pagetide_verdict::StatError;

use crate::difference::Difference;

/// Why records cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// A store operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The two sides differ in more than the variant.
    #[error(
        "{a} and {b} cannot be compared: {}; {}, or insist with --anyway",
        list(.differences), instead(.differences)
    )]
    NotComparable {
        /// Name of the first side.
        a: String,
        /// Name of the second side.
        b: String,
        /// Differences other than the variant.
        differences: Vec<Difference>,
    },
    /// The name matches no variant, campaign, kernel release or record.
    #[error(
        "`{given}` is no variant of the last campaign, no CAMPAIGN:VARIANT, no kernel release and no record in the store{}: \
         {} shows what is there",
        suggestion(.nearest.as_deref()), in_backticks("list records")
    )]
    Unknown {
        /// The name that matches nothing.
        given: String,
        /// The most similar known name; `None` if none is similar.
        nearest: Option<String>,
    },
    /// The campaign is not in the store.
    #[error("no campaign `{name}` is in the store{}: {} shows what is there", suggestion(.nearest.as_deref()), in_backticks("list campaigns"))]
    NoCampaign {
        /// The name that matches no campaign.
        name: String,
        /// The most similar known name; `None` if none is similar.
        nearest: Option<String>,
    },
    /// A campaign ran in one arena only, so there is no other arena to compare with.
    #[error(
        "{campaign} ran in the arena {arena} only: run the same command with --on {}, or name the campaigns of both arenas",
        other(*.arena)
    )]
    OneArena {
        /// ID of the campaign's run.
        campaign: String,
        /// The arena in which the campaign ran.
        arena: ArenaKind,
    },
    /// Only one side was named.
    #[error("`{name}` is one side: name the other as well, after it")]
    OneSide {
        /// Name of the only side.
        name: String,
    },
    /// The campaign has no variant of this name.
    #[error("campaign {campaign} has no variant `{variant}`: it has {known}")]
    NoVariant {
        /// ID of the campaign's run.
        campaign: String,
        /// The name that matches no variant.
        variant: String,
        /// Names of the campaign's variants.
        known: String,
    },
    /// The campaign has fewer than two variants.
    #[error("campaign {campaign} has a single variant, {variant}: add another to compare it with")]
    OneVariant {
        /// ID of the campaign's run.
        campaign: String,
        /// Name of its only variant.
        variant: String,
    },
    /// A side has no records.
    #[error("{what} has no records yet: run its campaign")]
    NoRecords {
        /// Name of the side.
        what: String,
    },
    /// The store has no campaign at all.
    #[error(
        "no campaign has run yet: {} runs one",
        in_backticks("run campaigns/quick.toml")
    )]
    NothingRan,
    /// The statistics cannot use the values.
    #[error(transparent)]
    Statistics(#[from] StatError),
}

impl CompareError {
    /// True if the command line is wrong whatever the store contains, as when only one side is named; false for all
    /// other errors.
    pub fn is_user_error(&self) -> bool {
        matches!(self, Self::OneSide { .. })
    }
}

/// Returns advice on what to do instead of comparing records that have these differences.
fn instead(differences: &[Difference]) -> &'static str {
    let is_swap = |one: &Difference| one.what.starts_with("swap");
    if differences.iter().all(is_swap) {
        "to compare kinds of swap, run them as variants of one campaign with --vs swap=KIND"
    } else {
        "choose records that differ in the variant alone"
    }
}

/// Returns the differences, separated by commas.
fn list(differences: &[Difference]) -> String {
    let all: Vec<String> = differences.iter().map(ToString::to_string).collect();
    all.join(", ")
}

/// Returns a clause that suggests the most similar name; empty for `None`.
fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

/// Returns the name of another arena in which the campaign could run.
fn other(arena: ArenaKind) -> &'static str {
    match arena {
        ArenaKind::Exact => "host",
        ArenaKind::Host | ArenaKind::Vm => "exact",
    }
}
