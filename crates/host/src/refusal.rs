//! Reasons why a trial cannot run on the running kernel.

use pagetide_quantity::Bytes;

/// Reasons why a trial is refused before anything on the machine is changed. Each names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The variant names a kernel or boot arguments.
    #[error(
        "the arena host runs on the kernel of this machine, not on {asked}: leave --kernel, --boot and --patch out, or use the arena exact"
    )]
    OtherKernel {
        /// The kernel or boot argument that was asked for.
        asked: String,
    },
    /// The memory of a whole machine was asked for.
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
    /// Instructions by function were asked for.
    #[error(
        "profiled trials count the instructions of an emulator: leave --profile out, or use the arena exact"
    )]
    Profiled,
    /// Memory nodes were asked for.
    #[error(
        "the arena host has the memory nodes of this machine, not {asked}: leave --nodes out, or use the arena exact"
    )]
    Nodes {
        /// The nodes that were asked for.
        asked: String,
    },
    /// Memory and swap of the trial would be too large a part of this machine.
    #[error(
        "the trial would take {limit} of memory and {swap} of swap, and {available} are available here, of which a quarter may be \
         used: give a smaller --memory, --limit or --swap-size, or end other programs"
    )]
    TooLarge {
        /// Limit of the group.
        limit: Bytes,
        /// Size of the swap area.
        swap: Bytes,
        /// Available memory of the machine.
        available: Bytes,
    },
    /// A kind of swap that this machine cannot have.
    #[error("--swap {swap} cannot be had here: {why}")]
    Swap {
        /// The kind of swap that was asked for.
        swap: String,
        /// Why the swap cannot be used, and what to use instead.
        why: String,
    },
    /// A place for files other than the disk of this machine.
    #[error(
        "files of a trial lie on the disk of this machine, and not on {asked}: leave --files-on and --fs out, or use the arena exact"
    )]
    Files {
        /// The place that was asked for.
        asked: String,
    },
    /// A number of processors was asked for.
    #[error(
        "the arena host has the processors of this machine: leave --cpus out, or use the arena exact"
    )]
    Processors,
    /// A setting acts on the whole machine, which the user has not allowed.
    #[error(
        "{names} would change the whole machine while a trial runs: add --change-this-machine to allow it; the old value is restored \
         after each trial"
    )]
    GlobalSetting {
        /// Names of the settings.
        names: String,
    },
    /// A setting does not exist here.
    #[error("setting {name} cannot be used on this machine ({why}): leave it out")]
    NoSetting {
        /// Name of the setting.
        name: String,
        /// Why it cannot be used.
        why: String,
    },
    /// An option that only memory groups of version 2 have.
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
        /// What was asked for.
        what: String,
        /// Alternative without root, as the end of the sentence.
        instead: &'static str,
    },
    /// A file or system call failed.
    #[error("{what}: {why}")]
    Failed {
        /// The attempt, such as "reading references from FILE".
        what: String,
        /// The error of the operating system.
        why: std::io::Error,
    },
    /// The workload process did not start.
    #[error("starting the workload's process: {why}")]
    NotStarted {
        /// What the process reported, or how it ended.
        why: String,
    },
}

impl Refusal {
    /// Returns a function that adds the attempt to an I/O error.
    pub(crate) fn failed(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |why| Self::Failed { what, why }
    }
}
