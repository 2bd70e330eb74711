//! What a laboratory cannot do.

use pagetide_campaign::RequestError;
use pagetide_campaign::bisect::BisectError;
use pagetide_exact::ExactError;
use pagetide_kernel::KernelError;
use pagetide_record::ArenaKind;
use pagetide_root::RootError;
use pagetide_source::{OrderError, SourceError};
use thiserror::Error;

/// Why something cannot be put in place. Each cause is the source too, for whoever asks what kind of error it is.
#[derive(Debug, Error)]
pub enum LabError {
    /// An arena that no one has built yet.
    #[error("the {kind} arena is not in this version yet: use the exact arena")]
    NoArena {
        /// Which.
        kind: ArenaKind,
    },
    /// The exact arena does not open.
    #[error("{0}")]
    Exact(#[from] ExactError),
    /// A kernel or packages cannot be had.
    #[error("{0}")]
    Kernel(#[from] KernelError),
    /// A program's files cannot be put in place.
    #[error("{0}")]
    Root(#[from] RootError),
    /// A kernel cannot be built.
    #[error("{0}")]
    Order(#[source] Box<OrderError>),
    /// A source or its history cannot be read.
    #[error("{0}")]
    Source(#[source] Box<SourceError>),
    /// The words ask for no search.
    #[error("{0}")]
    Bisect(#[source] Box<BisectError>),
    /// The words make no campaign.
    #[error("{0}")]
    Request(#[from] RequestError),
}

impl LabError {
    /// Whether a user's words were wrong, rather than this machine unable. Causes answer for themselves, except a program's
    /// files: what is wrong with them was named by the user, unless making the image failed.
    pub fn is_user_error(&self) -> bool {
        match self {
            Self::NoArena { .. } => true,
            Self::Bisect(why) => why.is_user_error(),
            Self::Source(why) => why.is_user_error(),
            Self::Root(why) => !matches!(why, RootError::Image { .. }),
            _ => false,
        }
    }
}

impl From<OrderError> for LabError {
    fn from(why: OrderError) -> Self {
        Self::Order(Box::new(why))
    }
}

impl From<SourceError> for LabError {
    fn from(why: SourceError) -> Self {
        Self::Source(Box::new(why))
    }
}

impl From<BisectError> for LabError {
    fn from(why: BisectError) -> Self {
        Self::Bisect(Box::new(why))
    }
}
