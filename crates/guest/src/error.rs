//! Errors while a guest is prepared.

use std::io;

use pagetide_harness::HarnessError;

/// Why a guest could not be prepared. Sent to the controller as a sentence.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// An operation on a file, device, process or other object failed.
    #[error("{what} {on}: {source}")]
    Io {
        /// The attempted operation, such as "reading".
        what: &'static str,
        /// Path or name of the object.
        on: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The controller sent a specification that the guest cannot parse.
    #[error(
        "reading the {what} specification: {why}; controller and guest are of different versions, rebuild pagetide"
    )]
    Spec {
        /// Name of the specification.
        what: &'static str,
        /// Error message of the parser.
        why: String,
    },
    /// The kernel failed to load a module.
    #[error("loading module {name} ({params}): {source}; {log}")]
    Module {
        /// Name of the kernel module.
        name: String,
        /// Parameters of the module.
        params: String,
        /// The error of the operating system.
        source: io::Error,
        /// The last lines of the kernel log.
        log: String,
    },
    /// A simulated disk does not have the specified properties.
    #[error(
        "the simulated disk {device} {what}, so every trial on it would be wrong: build the kernel with CONFIG_BLK_DEV_NULL_BLK=m, or choose another"
    )]
    FalseDisk {
        /// Path of the device.
        device: String,
        /// What the disk does instead, as a phrase.
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
        /// Specified amount of free memory, in KiB.
        wanted: u64,
        /// Actual amount of free memory, in KiB.
        found: u64,
    },
    /// Less memory is free on a memory node than specified.
    #[error(
        "node {node} has {found} KiB free instead of {wanted} KiB: give the node more memory with --nodes, or choose a kernel that needs less"
    )]
    NodeShort {
        /// Number of the memory node.
        node: u64,
        /// Specified amount of free memory, in KiB.
        wanted: u64,
        /// Actual amount of free memory, in KiB.
        found: u64,
    },
    /// The kernel does not put a slow memory node into a lower tier.
    #[error(
        "this kernel puts the slow node {node} into the memory tier of the first node, so nothing would be demoted to it: choose a kernel \
         from 6.10 on with CONFIG_ACPI_HMAT"
    )]
    NoTier {
        /// Number of the slow memory node.
        node: usize,
    },
    /// The process that should run the scenario ended while the guest was prepared; the likely cause is the OOM killer.
    #[error(
        "the process that runs the workload was killed while the ballast was allocated, because the kernel needs more memory itself: raise --memory"
    )]
    Killed,
    /// The kernel runs fewer or more CPUs than the machine has.
    #[error(
        "the kernel runs {online} of {wanted} CPUs: build it with CONFIG_SMP=y and CONFIG_NR_CPUS of at least {wanted}, and boot it without nr_cpus= or maxcpus="
    )]
    Cpus {
        /// Number of CPUs of the machine.
        wanted: u32,
        /// Number of CPUs that the kernel runs.
        online: i64,
    },
    /// A file of the kernel lacks an expected number.
    #[error("{file} has no {what}: this kernel is not supported")]
    Unexpected {
        /// Path of the kernel's file.
        file: &'static str,
        /// Name of the missing number.
        what: &'static str,
    },
}

/// Returns a function that adds the attempted operation and the name of the file or device to an I/O error.
pub(crate) fn io(
    what: &'static str,
    on: impl Into<String>,
) -> impl FnOnce(io::Error) -> GuestError {
    let on = on.into();
    move |source| GuestError::Io { what, on, source }
}
