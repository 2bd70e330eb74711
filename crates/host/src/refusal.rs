//! Reasons why a trial cannot run on the running kernel.

use pagetide_quantity::Bytes;

/// Why a trial is refused before anything on the machine is changed. Each message names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The request names a kernel or boot arguments.
    #[error(
        "the arena host runs on the kernel of this machine, not on {asked}: leave --kernel, --boot and --patch out, or use the arena exact"
    )]
    OtherKernel {
        /// The requested kernel or boot argument.
        asked: String,
    },
    /// The request states the total memory of a machine.
    #[error(
        "total memory is that of a machine, and the arena host limits a group: give --limit SIZE"
    )]
    TotalMemory,
    /// The scenario needs a machine of its own.
    #[error("{scenario} needs a machine of its own: {why}; run it in the arena exact")]
    OwnMachine {
        /// Name of the scenario.
        scenario: String,
        /// Why the scenario needs a machine of its own.
        why: &'static str,
    },
    /// A profiled pass was requested.
    #[error(
        "profiled trials count the instructions of an emulator: leave --profile out, or use the arena exact"
    )]
    Profiled,
    /// Memory nodes were requested.
    #[error(
        "the arena host has the memory nodes of this machine, not {asked}: leave --nodes out, or use the arena exact"
    )]
    Nodes {
        /// The requested nodes.
        asked: String,
    },
    /// Memory and swap of the trial would use too large a part of this machine.
    #[error(
        "the trial would take {limit} of memory and {swap} of swap, and {available} are available here, of which a quarter may be \
         used: give a smaller --memory, --limit or --swap-size, or end other programs"
    )]
    TooLarge {
        /// Memory limit of the trial.
        limit: Bytes,
        /// Size of the swap area.
        swap: Bytes,
        /// Available memory of the machine.
        available: Bytes,
    },
    /// This machine cannot provide the requested kind of swap.
    #[error("--swap {swap} cannot be had here: {why}")]
    Swap {
        /// The requested kind of swap.
        swap: String,
        /// Why it cannot be provided, and what to use instead.
        why: String,
    },
    /// A place for files other than the disk of this machine was requested.
    #[error(
        "files of a trial lie on the disk of this machine, and not on {asked}: leave --files-on and --fs out, or use the arena exact"
    )]
    Files {
        /// The requested place.
        asked: String,
    },
    /// A number of CPUs was requested.
    #[error(
        "the arena host has the processors of this machine: leave --cpus out, or use the arena exact"
    )]
    Processors,
    /// A setting affects the whole machine, which the user has not allowed.
    #[error(
        "{names} would change the whole machine while a trial runs: add --change-this-machine to allow it; the old value is restored \
         after each trial"
    )]
    GlobalSetting {
        /// Names of the settings.
        names: String,
    },
    /// A setting does not exist here, or no kernel accepts its value.
    #[error("setting {name} cannot be used on this machine ({why}): leave it out")]
    NoSetting {
        /// Name of the setting.
        name: String,
        /// Why it cannot be used.
        why: String,
    },
    /// An option was requested that only cgroups of version 2 have.
    #[error(
        "{option} needs memory groups of version 2, and this machine has version 1: leave it out, or boot with systemd.unified_cgroup_hierarchy=1"
    )]
    Version1 {
        /// Name of the option.
        option: &'static str,
    },
    /// The user lacks a privilege.
    #[error("{what} needs root: run it as root{instead}")]
    Root {
        /// What was requested.
        what: String,
        /// Alternative without root, as the end of the sentence.
        instead: &'static str,
    },
    /// An operation on a file, or a system call, failed.
    #[error("{what}: {why}")]
    Failed {
        /// The attempted operation, such as "reading references from FILE".
        what: String,
        /// Error from the operating system.
        why: std::io::Error,
    },
    /// The workload's process did not start.
    #[error("starting the workload's process: {why}")]
    NotStarted {
        /// Error that the process reported, or how it ended.
        why: String,
    },
}

impl Refusal {
    /// Returns a function that converts an I/O error to [`Refusal::Failed`] with the attempted operation.
    pub(crate) fn failed(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |why| Self::Failed { what, why }
    }
}
