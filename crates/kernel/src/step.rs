//! What is being done on the way to a kernel, for a progress display.

use std::fmt::{self, Display};

/// One step, as it begins; [`Display`] makes a line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Another process uses the same apt state; it is waited for.
    Waiting {
        /// The suite.
        place: String,
    },
    /// The list of packages is being fetched.
    Updating {
        /// The suite.
        place: String,
    },
    /// Suites that could not be had, and are done without.
    Without {
        /// The suites.
        suites: Vec<String>,
    },
    /// A package is being fetched.
    Fetching {
        /// Its name.
        package: String,
        /// Its size in bytes, if known.
        bytes: Option<u64>,
    },
    /// A package is listed but not there; the next best is tried.
    Passed {
        /// Its name.
        package: String,
    },
    /// A package or other source is being unpacked or copied.
    Unpacking {
        /// Its name.
        name: String,
    },
    /// A kernel in the cache is not what it was when it was added; it is removed, and had again.
    Damaged {
        /// The kernel's release, or the start of its digest where not even that can be read.
        kernel: String,
        /// What does not fit.
        why: String,
    },
    /// The archive could not be asked, so the kernel of last time is used.
    KeptPinned {
        /// The kernel's release.
        release: String,
        /// Why the archive could not be asked.
        reason: String,
    },
}

/// Told of each step as it begins.
pub type Watch<'a> = dyn FnMut(&Step) + 'a;

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
