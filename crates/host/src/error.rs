//! Errors of changing the running machine.

use std::io;
use std::path::PathBuf;

use pagetide_quantity::Bytes;

/// Reasons why the machine could not be prepared for trials.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// An operation on a file or device, or a system call, failed.
    #[error("{what} {on}: {source}")]
    Io {
        /// The attempted operation, such as "reading".
        what: &'static str,
        /// What the operation was applied to: path or name of a file, device or other object.
        on: String,
        /// Error from the operating system.
        source: io::Error,
    },
    /// No memory cgroup can be created.
    #[error("making a memory group: {why}; {remedy}")]
    NoGroup {
        /// Why no cgroup can be created.
        why: String,
        /// Command or step that removes the obstacle.
        remedy: String,
    },
    /// After writing a cgroup's limit, another value was read back.
    #[error(
        "setting {file} to {wanted}: the kernel set {found} instead; choose a value that it accepts"
    )]
    Limit {
        /// Path of the limit's file.
        file: PathBuf,
        /// Value that was written.
        wanted: String,
        /// Value that was read back.
        found: String,
    },
    /// No swap area can be created.
    #[error("switching on swap of {size} on {on}: {why}; {remedy}")]
    NoSwap {
        /// Kind of the swap area, such as `zram` or `a loop device`.
        on: &'static str,
        /// Wanted size.
        size: Bytes,
        /// Why no swap area can be created.
        why: String,
        /// Command or step that removes the obstacle.
        remedy: String,
    },
    /// The journal contains too many changes that have not been undone.
    #[error(
        "writing the journal {path}: {count} changes are not undone; end the tool, and start it again"
    )]
    JournalFull {
        /// Path of the journal.
        path: PathBuf,
        /// Number of changes that have not been undone.
        count: usize,
    },
    /// The guardian could not be started.
    #[error(
        "starting the guardian, which undoes changes if the tool is killed: {why}; without it nothing is changed"
    )]
    NoGuardian {
        /// Why the guardian could not be started.
        why: String,
    },
}

/// Returns a function that converts an I/O error to a [`HostError`] with the attempted operation and the name of its
/// object.
pub(crate) fn io(what: &'static str, on: impl Into<String>) -> impl FnOnce(io::Error) -> HostError {
    let on = on.into();
    move |source| HostError::Io { what, on, source }
}
