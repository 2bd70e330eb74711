//! What can go wrong around a scenario.

use std::io;

/// Why what surrounds a scenario could not be prepared or put back.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// A file, device or system call refused.
    #[error("{what} {on}: {source}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        on: String,
        /// The system's reason.
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
    /// zswap is not what was asked for.
    #[error(
        "zswap took {took} for its {what} where {wanted} was asked for, so that every trial with it would be false: choose \
         another, or a kernel that has it"
    )]
    Zswap {
        /// Its parameter.
        what: &'static str,
        /// What was asked for.
        wanted: String,
        /// What it says it has.
        took: String,
    },
    /// Settings could not be restored.
    #[error("restoring settings: {0} kept the trial's value; write the old one by hand")]
    NotRestored(String),
}

/// Adds attempt and object to an I/O error.
pub(crate) fn io(
    what: &'static str,
    on: impl Into<String>,
) -> impl FnOnce(io::Error) -> HarnessError {
    let on = on.into();
    move |source| HarnessError::Io { what, on, source }
}
