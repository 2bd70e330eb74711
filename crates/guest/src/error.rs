//! Errors while a guest is prepared.

use std::io;

use pagetide_harness::HarnessError;

/// Why a guest could not be prepared. Sent to the controller as a sentence.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// An operation on a file or device failed.
    #[error("{what} {on}: {source}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// The object.
        on: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A specification cannot be parsed.
    #[error(
        "reading the {what} specification: {why}; controller and guest are of different versions, rebuild pagetide"
    )]
    Spec {
        /// Which specification.
        what: &'static str,
        /// The error of the parser.
        why: String,
    },
    /// The kernel refused a module.
    #[error("loading module {name} ({params}): {source}; {log}")]
    Module {
        /// Name of the module.
        name: String,
        /// Parameters of the module.
        params: String,
        /// The error of the operating system.
        source: io::Error,
        /// The last lines of the kernel log.
        log: String,
    },
    /// A simulated disk does not have the requested properties.
    #[error(
        "the simulated disk {device} {what}, so every trial on it would be wrong: build the kernel with CONFIG_BLK_DEV_NULL_BLK=m, or choose another"
    )]
    FalseDisk {
        /// The device.
        device: String,
        /// Its actual behaviour.
        what: String,
    },
    /// The environment of the scenario could not be prepared.
    #[error(transparent)]
    Harness(#[from] HarnessError),
    /// Less memory is free than specified.
    #[error(
        "the guest has {found} KiB free instead of {wanted} KiB: raise the guest's overhead allowance"
    )]
    MemoryShort {
        /// Specified free memory, in KiB.
        wanted: u64,
        /// Actual free memory, in KiB.
        found: u64,
    },
    /// The process that should run the scenario was killed while the machine was prepared.
    #[error(
        "the process that runs the workload was killed while the ballast was allocated, because the kernel needs more memory itself: raise --memory"
    )]
    Killed,
    /// A number in a file of the kernel was not found.
    #[error("{file} has no {what}: this kernel is not supported")]
    Unexpected {
        /// The file.
        file: &'static str,
        /// The number.
        what: &'static str,
    },
}

/// Adds the attempt and the object to an I/O error.
pub(crate) fn io(
    what: &'static str,
    on: impl Into<String>,
) -> impl FnOnce(io::Error) -> GuestError {
    let on = on.into();
    move |source| GuestError::Io { what, on, source }
}
