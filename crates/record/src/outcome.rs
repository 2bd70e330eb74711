//! Why the results of a trial must not be used, and warnings about results that may be used.

use serde::{Deserialize, Serialize};

use pagetide_quantity::{Bytes, Nanos};

use crate::oom::MemoryAtKill;

/// Why a trial's numbers must not be used. The user sees this message unchanged. Such a trial is stored and shown, but
/// excluded from comparisons.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Invalid {
    /// The kernel OOM-killed a process of the workload because the machine had no memory left.
    #[error(
        "the kernel killed {process} for lack of memory after {after}: raise --memory or the swap size"
    )]
    OutOfMemory {
        /// Name of the process that was killed.
        process: String,
        /// Time of the kill, from the start of the scenario.
        after: Nanos,
    },
    /// The kernel OOM-killed a process of the workload because the workload's memory cgroup reached its limit.
    #[error(
        "the kernel killed {process} after {after} at the limit of its memory group, not of the machine: raise --limit or --swap-max"
    )]
    OutOfLimit {
        /// Name of the process that was killed.
        process: String,
        /// Time of the kill, from the start of the scenario.
        after: Nanos,
    },
    /// The kernel OOM-killed a process of the workload although there was memory to reclaim, in the machine or in the
    /// workload's memory cgroup.
    #[error(
        "the kernel killed {process} after {after} with memory to spare, {memory}: it gave up early{}", .memory.remedy()
    )]
    GaveUp {
        /// Name of the process that was killed.
        process: String,
        /// Time of the kill, from the start of the scenario.
        after: Nanos,
        /// Memory at the time of the kill.
        memory: MemoryAtKill,
    },
    /// The guest's kernel panicked.
    #[error("the guest kernel panicked ({reason}): read the kernel log in the record")]
    Panic {
        /// First line of the kernel's panic message.
        reason: String,
    },
    /// The guest's kernel reported an oops, a warning with a stack, or a hung task.
    #[error("the guest kernel reported `{line}`: read the kernel log in the record")]
    Oops {
        /// First line of the report in the kernel log.
        line: String,
    },
    /// The guest stopped making progress.
    #[error(
        "the scenario made no progress for {span} of {clock} time: raise --timeout if it is only slow"
    )]
    Hang {
        /// Time during which no step of the scenario was completed.
        span: Nanos,
        /// Clock that measured `span`: `virtual` or `wall`.
        clock: String,
    },
    /// The emulator ended without a result.
    #[error("the emulator ended before the guest reported a result ({how}): run `pagetide doctor`")]
    EmulatorDied {
        /// Exit status of the emulator and the last line of its error output.
        how: String,
    },
    /// The scenario stopped with an error.
    #[error("the scenario stopped: {why}")]
    Scenario {
        /// Error of the scenario, as a sentence.
        why: String,
    },
    /// The user's program did not end as expected.
    #[error("the program {why}")]
    Program {
        /// What the program did, as the rest of a sentence.
        why: String,
    },
    /// A process of the workload was killed by a signal or exited with an error.
    #[error("{process} of the workload ended with {how}: read the kernel log in the record")]
    ProcessDied {
        /// Name of the process, or `the main process`.
        process: String,
        /// Exit status of the process, or the signal that killed it.
        how: String,
    },
    /// A setting does not have the requested value when it is read back.
    #[error(
        "setting {name} was set to `{wanted}` but reads `{found}`: choose a value the kernel accepts"
    )]
    SettingDidNotStick {
        /// Name of the setting.
        name: String,
        /// Value that was written.
        wanted: String,
        /// The value that was read back.
        found: String,
    },
    /// The file of a setting does not exist or could not be written.
    #[error("setting {name} cannot be applied on this kernel ({why}): remove it from the variant")]
    SettingRefused {
        /// Name of the setting.
        name: String,
        /// Reason, such as an error of the operating system, as text.
        why: String,
    },
    /// The scenario needs reclaim, but the kernel reclaimed nothing.
    #[error(
        "the scenario needs memory pressure but the kernel reclaimed nothing: lower --memory or enlarge the workload"
    )]
    NoReclaim,
    /// Some trace events were lost.
    #[error(
        "at least {events} trace events were lost: shorten the trial (or raise --trace-ring or --trace-limit, where it was lowered), or it explains nothing"
    )]
    LostEvents {
        /// Number of lost trace events, or a lower bound.
        events: u64,
    },
    /// The guest's CPU went idle during the measurement, so the result may not be exact.
    #[error(
        "the guest's CPU went idle while it was measured (its idle counters grew by {times}): this result is not exact, please report it"
    )]
    Halted {
        /// Increase of the idle counters ([`Halts::times`](crate::Halts::times)); not a count of idle periods.
        times: u64,
    },
    /// The output region, a disk or a file system was full.
    #[error("{what} was full after {size}: shorten the scenario or raise the limit")]
    Full {
        /// Name of what was full, such as the output region.
        what: String,
        /// Size of the output region, disk or file system.
        size: Bytes,
    },
    /// Other processes of the machine spoiled the trial.
    #[error("other processes of this machine spoiled the trial: {why}")]
    Disturbed {
        /// What the other processes did, with the remedy, as a clause.
        why: String,
    },
    /// The scenario counted a different number of items than its definition requires.
    #[error(
        "the scenario did {found} {what} where its definition says {expected}: please report it"
    )]
    WrongCount {
        /// Plural of what was counted, such as page accesses.
        what: String,
        /// Number of items that the scenario's definition requires.
        expected: u64,
        /// Number of items that the scenario counted.
        found: u64,
    },
}

impl Invalid {
    /// Returns true if the kernel OOM-killed a process, or panicked for lack of memory. Such a trial has no numbers to
    /// compare, but the fact that it ended this way is compared.
    pub fn is_death(&self) -> bool {
        match self {
            Self::OutOfMemory { .. } | Self::OutOfLimit { .. } | Self::GaveUp { .. } => true,
            // The kernel panics if it runs out of memory and finds no process to kill.
            Self::Panic { reason } => {
                reason.to_lowercase().contains("out of memory")
                    || reason.contains("deadlocked on memory")
            }
            _ => false,
        }
    }

    /// Returns true if the cause may lie in the host, so that a repetition of the trial may succeed.
    pub fn is_accident(&self) -> bool {
        match self {
            Self::EmulatorDied { .. } | Self::Disturbed { .. } => true,
            Self::Hang { clock, .. } => clock == "wall",
            _ => false,
        }
    }
}

/// A warning about a result that may nevertheless be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Warning {
    /// The guest has no high-resolution timers.
    #[error("the guest has no high-resolution timers: device latencies are rounded up to a tick")]
    CoarseTimers,
    /// This kernel does not have a requested feature.
    #[error("{feature} is not on this kernel")]
    NotOnThisKernel {
        /// Name of the missing feature.
        feature: String,
    },
    /// The access log is incomplete, because there was too little space for it in the output region.
    #[error(
        "the access log holds the first {kept} of {total} accesses; histogram and metrics cover all"
    )]
    LogCut {
        /// Number of accesses in the log.
        kept: u64,
        /// Number of accesses that the workload made.
        total: u64,
    },
    /// The kernel counts memory that the arena uses as memory of the machine, because the kernel lacks what is needed
    /// to change its count.
    #[error(
        "the kernel counts {counted} of memory instead of {meant}, so shares of memory such as zswap's pool are too large: {why}"
    )]
    LargerMachine {
        /// Memory that the kernel manages.
        counted: Bytes,
        /// Memory that the kernel should manage, without the memory that the arena uses.
        meant: Bytes,
        /// Name of what the kernel lacks, with an explanation.
        why: String,
    },
    /// Other processes, or slow processors, may have influenced the results.
    #[error("{why}")]
    Doubtful {
        /// What happened on the machine during the trial, as a sentence.
        why: String,
        /// True if only times are affected, not counts.
        of_times: bool,
    },
    /// A note by a scenario or an arena, as free text.
    #[error("{text}")]
    Note {
        /// Text of the note, as a sentence.
        text: String,
    },
}
