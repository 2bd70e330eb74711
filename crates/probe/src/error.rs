//! Errors of reading the kernel's sources and of decoding traces.

use std::path::PathBuf;

use thiserror::Error;

/// Why an observation failed. Each message is one sentence with the attempt, its object and the remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The kernel has no such source, or tracefs cannot be mounted. A missing source is never reported as zero.
    #[error("{source_name} cannot be observed here: {why}")]
    Unsupported {
        /// Name of the source as users know it: `tracefs`, or the path of the kernel's file.
        source_name: String,
        /// What the kernel lacks, and how to get it.
        why: String,
    },
    /// A file could not be opened, read, written or listed.
    #[error("could not {action} {path}: {source}; check that it exists and that you may access it")]
    Io {
        /// What was attempted: `open`, `read`, `write`, `list` or `make`.
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error from the operating system.
        source: std::io::Error,
    },
    /// Data is not in the expected format.
    #[error(
        "could not understand {what}: {detail}; the file may be cut off or come from an unknown kernel"
    )]
    Malformed {
        /// The data that was parsed.
        what: String,
        /// Position in the data, and how the data differs from the format.
        detail: String,
    },
}

impl ProbeError {
    /// Returns an error for a source that this kernel does not have.
    pub fn unsupported(source_name: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Unsupported {
            source_name: source_name.into(),
            why: why.into(),
        }
    }

    /// Returns an error for data that is not in the expected format.
    pub fn malformed(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Malformed {
            what: what.into(),
            detail: detail.into(),
        }
    }

    /// Returns the error for a failed I/O operation, with the attempted action and the path.
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
