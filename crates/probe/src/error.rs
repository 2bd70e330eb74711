//! What can go wrong while observing.

use std::path::PathBuf;

use thiserror::Error;

/// Why an observation could not be made. One sentence each: what was attempted, on what, and what to do about it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The running kernel or its configuration does not offer the source; never turned into a zero.
    #[error("{source_name} cannot be observed here: {why}")]
    Unsupported {
        /// The source, as a user would name it: `psi memory`, `tracefs`, `PAGEMAP_SCAN`.
        source_name: String,
        /// What is missing, and what would bring it.
        why: String,
    },
    /// A file could not be opened, read, written or listed.
    #[error("could not {action} {path}: {source}; check that it exists and that you may access it")]
    Io {
        /// The verb: `open`, `read`, `write`, `list`.
        action: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Bytes did not have the form they should have.
    #[error(
        "could not understand {what}: {detail}; the file may be cut off or come from an unknown kernel"
    )]
    Malformed {
        /// What was being parsed.
        what: String,
        /// Where and how it departs from the format.
        detail: String,
    },
}

impl ProbeError {
    /// A source that this kernel does not offer.
    pub fn unsupported(source_name: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Unsupported {
            source_name: source_name.into(),
            why: why.into(),
        }
    }

    /// Bytes that do not have the form they should have.
    pub fn malformed(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Malformed {
            what: what.into(),
            detail: detail.into(),
        }
    }

    /// Turns an I/O error into one that names the action and the path.
    pub fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
        source: impl Into<std::io::Error>,
    ) -> Self {
        Self::Io {
            action,
            path: path.into(),
            source: source.into(),
        }
    }
}
