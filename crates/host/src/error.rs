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
        /// Path or name of the file, device or other object.
        on: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// No memory group can be made.
    #[error("making a memory group: {why}; {remedy}")]
    NoGroup {
        /// Why no group can be made.
        why: String,
        /// Command or step that removes the obstacle.
        remedy: String,
    },
    /// A limit of a group has another value than the one that was written.
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
    /// pagetide cannot make a swap area.
    #[error("switching on swap of {size} on {on}: {why}; {remedy}")]
    NoSwap {
        /// Kind of the swap area, such as `zram` or `a loop device`.
        on: &'static str,
        /// Wanted size.
        size: Bytes,
        /// Why no swap area can be made.
        why: String,
        /// Command or step that removes the obstacle.
        remedy: String,
    },
    /// The journal contains too many changes that are not undone.
    #[error(
        "writing the journal {path}: {count} changes are not undone; end the tool, and start it again"
    )]
    JournalFull {
        /// Path of the journal.
        path: PathBuf,
        /// Number of changes that are not undone.
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

/// Returns a function that adds the attempted operation and the name of the object to an I/O error.
pub(crate) fn io(what: &'static str, on: impl Into<String>) -> impl FnOnce(io::Error) -> HostError {
    let on = on.into();
    move |source| HostError::Io { what, on, source }
}
