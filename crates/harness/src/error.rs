//! Errors of preparing or restoring the environment of a scenario.

use std::io;

/// Reasons why the environment of a scenario could not be prepared or restored.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
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
    /// A required device does not exist. The likely cause is named in the message.
    #[error(
        "{device} did not appear after its module was loaded: the kernel's driver may be too old or too new"
    )]
    NoDevice {
        /// Path of the device.
        device: String,
    },
    /// zswap did not accept the requested value of a parameter.
    #[error(
        "zswap uses {took} as its {what} instead of {wanted}, so every trial with it would be wrong: choose \
         another, or a kernel that has it"
    )]
    Zswap {
        /// Name of the parameter of zswap.
        what: &'static str,
        /// Requested value of the parameter.
        wanted: String,
        /// Value of the parameter that zswap reports instead.
        took: String,
    },
    /// A setting could not be restored; the text is the path of its file.
    #[error(
        "restoring settings: {0} still has the value of the trial; write its old value by hand"
    )]
    NotRestored(String),
}

/// Returns a function that adds the attempted operation and the name of the object to an I/O error.
pub(crate) fn io(
    what: &'static str,
    on: impl Into<String>,
) -> impl FnOnce(io::Error) -> HarnessError {
    let on = on.into();
    move |source| HarnessError::Io { what, on, source }
}
