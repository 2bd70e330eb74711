//! Steps of resolving a reference to a kernel, for a progress display.

use std::fmt::{self, Display};

/// A step of resolving a reference. It is reported when it begins. [`Display`] formats it as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Waiting for another process that uses the same apt state.
    Waiting {
        /// Name of the suite, or text that stands for the suites of this machine.
        place: String,
    },
    /// Fetching the package lists.
    Updating {
        /// Name of the suite, or text that stands for the suites of this machine.
        place: String,
    },
    /// Continuing without suites that could not be fetched.
    Without {
        /// Names of the suites that could not be fetched.
        suites: Vec<String>,
    },
    /// Fetching a package.
    Fetching {
        /// Name of the package.
        package: String,
        /// Size of the package in bytes; `None` if unknown.
        bytes: Option<u64>,
    },
    /// Trying the next best package, because a package is listed but cannot be downloaded.
    Passed {
        /// Name of the package that cannot be downloaded.
        package: String,
    },
    /// Unpacking or copying a package, an image or a tree.
    Unpacking {
        /// Name of the package or source.
        name: String,
    },
    /// A damaged kernel was found in the cache. It is removed and added again.
    Damaged {
        /// The kernel's release, or the first digits of its digest if the release cannot be read.
        kernel: String,
        /// How the kernel is damaged.
        why: String,
    },
    /// Using the pinned kernel, because no newer one could be fetched.
    KeptPinned {
        /// Release of the pinned kernel.
        release: String,
        /// Why no newer kernel could be fetched.
        reason: String,
    },
}

/// A callback that receives each step when it begins.
pub type OnStep<'a> = dyn FnMut(&Step) + 'a;

impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting { place } => {
                write!(f, "waiting for another pagetide that fetches from {place}")
            }
            Self::Updating { place } => write!(f, "updating the list of packages in {place}"),
            Self::Without { suites } => write!(
                f,
                "going on without {}, which could not be fetched",
                suites.join(", ")
            ),
            Self::Fetching { package, bytes } => {
                write!(f, "fetching {package}")?;
                bytes
                    .iter()
                    .try_for_each(|bytes| write!(f, " ({} MB)", bytes.div_ceil(1_000_000)))
            }
            Self::Passed { package } => {
                write!(f, "passing over {package}, which is listed but not there")
            }
            Self::Unpacking { name } => write!(f, "unpacking {name}"),
            Self::Damaged { kernel, why } => write!(
                f,
                "kernel {kernel} in the cache is damaged ({why}): removing it and getting it again"
            ),
            Self::KeptPinned { release, reason } => {
                write!(f, "using {release} from the cache, because {reason}")
            }
        }
    }
}
