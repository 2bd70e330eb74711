//! Errors of the laboratory.

use pagetide_campaign::RequestError;
use pagetide_campaign::bisect::BisectError;
use pagetide_exact::ExactError;
use pagetide_kernel::KernelError;
use pagetide_record::ArenaKind;
use pagetide_root::RootError;
use pagetide_source::{OrderError, SourceError};
use thiserror::Error;

/// Why the laboratory cannot do what was asked for. Each cause is also the source, so that callers can find the kind of
/// error.
#[derive(Debug, Error)]
pub enum LabError {
    /// An arena that this version does not have.
    #[error("the {kind} arena is not in this version yet: use the exact arena")]
    NoArena {
        /// Kind of the arena.
        kind: ArenaKind,
    },
    /// The exact arena cannot be opened.
    #[error("{0}")]
    Exact(#[from] ExactError),
    /// A kernel or a package is not available.
    #[error("{0}")]
    Kernel(#[from] KernelError),
    /// A program's files cannot be made into a root.
    #[error("{0}")]
    Root(#[from] RootError),
    /// A kernel cannot be built.
    #[error("{0}")]
    Order(#[source] Box<OrderError>),
    /// A source or its history cannot be read.
    #[error("{0}")]
    Source(#[source] Box<SourceError>),
    /// The request is not a valid search.
    #[error("{0}")]
    Bisect(#[source] Box<BisectError>),
    /// The request is not a valid campaign.
    #[error("{0}")]
    Request(#[from] RequestError),
}

impl LabError {
    /// True if the user's input was wrong, as opposed to a failure of the machine. Causes are asked themselves. Errors
    /// about a program's files count as the user's, because the user named the files, unless making the image failed.
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
