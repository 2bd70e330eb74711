//! Errors of this crate.

use pagetide_campaign::RequestError;
use pagetide_campaign::bisect::BisectError;
use pagetide_exact::ExactError;
use pagetide_host::HostError;
use pagetide_kernel::KernelError;
use pagetide_root::RootError;
use pagetide_source::{OrderError, SourceError};
use thiserror::Error;

/// Why a command's request cannot be carried out. Each variant contains the original error, so that callers can find
/// its type.
#[derive(Debug, Error)]
pub enum LabError {
    /// Programs that a campaign needs are not installed.
    #[error("running this needs {missing}: apt-get install {packages}")]
    Lacks {
        /// Names of all missing programs and libraries.
        missing: String,
        /// Names of the Debian packages that contain the missing programs and libraries.
        packages: String,
    },
    /// A kernel would be built without options that the machine of a scenario needs.
    #[error(
        "a kernel for {machine} needs {options}, which the configuration of this build leaves out: add --config debian, or \
         --config FILE with what is missing"
    )]
    BuiltWithout {
        /// The option of the command line that asks for the machine.
        machine: &'static str,
        /// Names of the kernel options that are missing.
        options: String,
    },
    /// The exact arena cannot be opened.
    #[error("{0}")]
    Exact(#[from] ExactError),
    /// The host arena cannot be opened.
    #[error("{0}")]
    Host(#[from] HostError),
    /// A kernel or a package is not available.
    #[error("{0}")]
    Kernel(#[from] KernelError),
    /// The files of a program cannot be put into a root.
    #[error("{0}")]
    Root(#[from] RootError),
    /// The kernel of a variant cannot be built.
    #[error("{0}")]
    Order(#[source] Box<OrderError>),
    /// A kernel source or its history cannot be read.
    #[error("{0}")]
    Source(#[source] Box<SourceError>),
    /// The request does not describe a valid search.
    #[error("{0}")]
    Bisect(#[source] Box<BisectError>),
    /// The request does not describe a valid campaign.
    #[error("{0}")]
    Request(#[from] RequestError),
}

impl LabError {
    /// True if the user's input was wrong; false if the machine failed. Errors of campaigns, arenas and kernels return
    /// false here; callers check these themselves. Errors about a program's files count as user errors, unless making
    /// the image failed.
    pub fn is_user_error(&self) -> bool {
        match self {
            Self::BuiltWithout { .. } => true,
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
