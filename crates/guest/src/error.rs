//! What can go wrong while a guest is prepared.

use std::io;

use pagetide_harness::HarnessError;

/// Why a guest could not be prepared. Sent to the controller as a sentence.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A file or device refused.
    #[error("{what} {on}: {source}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        on: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The specification cannot be understood.
    #[error(
        "reading the {what} specification: {why}; controller and guest are of different versions, rebuild pagetide"
    )]
    Spec {
        /// Which one.
        what: &'static str,
        /// The parser's reason.
        why: String,
    },
    /// A module was refused by the kernel.
    #[error("loading module {name} ({params}): {source}; {log}")]
    Module {
        /// Its name.
        name: String,
        /// Its parameters.
        params: String,
        /// The system's reason.
        source: io::Error,
        /// The kernel's own last words.
        log: String,
    },
    /// A simulated disk is not what was asked for.
    #[error(
        "the simulated disk {device} {what}, so that every trial on it would be false: build the kernel with CONFIG_BLK_DEV_NULL_BLK=m, or choose another"
    )]
    FalseDisk {
        /// The device.
        device: String,
        /// What it does.
        what: String,
    },
    /// What surrounds a scenario in any arena could not be prepared.
    #[error(transparent)]
    Harness(#[from] HarnessError),
    /// Less memory is free than the workload was promised.
    #[error(
        "the guest has {found} KiB free where {wanted} KiB were promised: raise the guest's overhead allowance"
    )]
    MemoryShort {
        /// Free memory promised, KiB.
        wanted: u64,
        /// Free memory found, KiB.
        found: u64,
    },
    /// The process that was to run the scenario ended while the machine was made ready.
    #[error(
        "the process that runs the workload was killed while memory was set aside: the kernel has too little for itself, give more memory"
    )]
    Killed,
    /// A number in the kernel's own files was not where it was expected.
    #[error("{file} has no {what}: this kernel is not supported")]
    Unexpected {
        /// The file.
        file: &'static str,
        /// What was looked for.
        what: &'static str,
    },
}

/// Adds attempt and object to an I/O error.
pub(crate) fn io(
    what: &'static str,
    on: impl Into<String>,
) -> impl FnOnce(io::Error) -> GuestError {
    let on = on.into();
    move |source| GuestError::Io { what, on, source }
}
