//! Errors in the environment of a scenario.

use std::io;

/// Why the environment of a scenario could not be prepared or restored.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// An operation on a file or device, or a system call, failed.
    #[error("{what} {on}: {source}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// The object.
        on: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A device did not appear.
    #[error(
        "{device} did not appear after its module was loaded: the kernel's driver may be too old or too new"
    )]
    NoDevice {
        /// The device.
        device: String,
    },
    /// zswap does not have the requested configuration.
    #[error(
        "zswap uses {took} as its {what} instead of {wanted}, so every trial with it would be wrong: choose \
         another, or a kernel that has it"
    )]
    Zswap {
        /// The parameter of zswap.
        what: &'static str,
        /// The requested value.
        wanted: String,
        /// The value that zswap reports.
        took: String,
    },
    /// Settings could not be restored.
    #[error(
        "restoring settings: {0} still has the value of the trial; write its old value by hand"
    )]
    NotRestored(String),
}

/// Adds the attempt and the object to an I/O error.
pub(crate) fn io(
    what: &'static str,
    on: impl Into<String>,
) -> impl FnOnce(io::Error) -> HarnessError {
    let on = on.into();
    move |source| HarnessError::Io { what, on, source }
}
