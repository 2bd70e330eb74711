//! Reasons why a trial must not be used, and warnings about one that may be used.

use serde::{Deserialize, Serialize};

use pagetide_quantity::{Bytes, Nanos};

/// Why a trial's numbers must not be used. The message is shown as is. Such a trial is stored and shown, but excluded
/// from comparisons.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Invalid {
    /// The kernel killed a process of the workload for lack of memory.
    #[error(
        "the kernel killed {process} for lack of memory after {after}: raise --memory or the swap size"
    )]
    OutOfMemory {
        /// The process that was killed.
        process: String,
        /// Time from the start of the scenario.
        after: Nanos,
    },
    /// The kernel killed a process of the workload at the limit of its control group.
    #[error(
        "the kernel killed {process} after {after} at the limit of its memory group, not of the machine: raise --limit or --swap-max"
    )]
    OutOfLimit {
        /// The process that was killed.
        process: String,
        /// Time from the start of the scenario.
        after: Nanos,
    },
    /// The guest's kernel panicked.
    #[error("the guest kernel panicked ({reason}): read the kernel log in the record")]
    Panic {
        /// First line of the panic.
        reason: String,
    },
    /// The guest's kernel reported an oops, a warning with a stack, or a hung task.
    #[error("the guest kernel reported `{line}`: read the kernel log in the record")]
    Oops {
        /// The log line.
        line: String,
    },
    /// The guest stopped making progress.
    #[error(
        "the scenario made no progress for {span} of {clock} time: raise --timeout if it is only slow"
    )]
    Hang {
        /// Time without progress.
        span: Nanos,
        /// `virtual` or `wall`.
        clock: String,
    },
    /// The emulator ended without a result.
    #[error("the emulator ended before the guest reported a result ({how}): run `pagetide doctor`")]
    EmulatorDied {
        /// Exit status and the last line of its error output.
        how: String,
    },
    /// The scenario stopped with an error.
    #[error("the scenario stopped: {why}")]
    Scenario {
        /// Its error, as a sentence.
        why: String,
    },
    /// The user's program did not end as expected.
    #[error("the program {why}")]
    Program {
        /// What it did, as the rest of a sentence.
        why: String,
    },
    /// A process of the workload was killed by a signal or exited with an error.
    #[error("{process} of the workload ended with {how}: read the kernel log in the record")]
    ProcessDied {
        /// Which process.
        process: String,
        /// Exit status or signal.
        how: String,
    },
    /// A setting does not have the requested value when read back.
    #[error(
        "setting {name} was set to `{wanted}` but reads `{found}`: choose a value the kernel accepts"
    )]
    SettingDidNotStick {
        /// Name of the setting.
        name: String,
        /// The requested value.
        wanted: String,
        /// The value that was read back.
        found: String,
    },
    /// The file of a setting does not exist or could not be written.
    #[error("setting {name} cannot be applied on this kernel ({why}): remove it from the variant")]
    SettingRefused {
        /// Name of the setting.
        name: String,
        /// The error of the operating system.
        why: String,
    },
    /// The scenario needs reclaim, and the kernel reclaimed nothing.
    #[error(
        "the scenario needs memory pressure but the kernel reclaimed nothing: lower --memory or enlarge the workload"
    )]
    NoReclaim,
    /// Trace events were lost.
    #[error(
        "at least {events} trace events were lost: shorten the trial (or raise --trace-ring or --trace-limit, where it was lowered), or it explains nothing"
    )]
    LostEvents {
        /// Number of lost events.
        events: u64,
    },
    /// The guest's CPU halted during the measurement, so the result may not be exact.
    #[error(
        "the guest's CPU went idle {times} times while it was measured: this result is not exact, please report it"
    )]
    Halted {
        /// How often the CPU went idle.
        times: u64,
    },
    /// The output region, a disk or a file system was full.
    #[error("{what} was full after {size}: shorten the scenario or raise the limit")]
    Full {
        /// What was full.
        what: String,
        /// Its size.
        size: Bytes,
    },
    /// A count differs from the scenario's definition.
    #[error(
        "the scenario did {found} {what} where its definition says {expected}: please report it"
    )]
    WrongCount {
        /// What was counted.
        what: String,
        /// The count according to the definition.
        expected: u64,
        /// The actual count.
        found: u64,
    },
}

impl Invalid {
    /// True if the host may be the cause, so that the same trial may succeed another time.
    pub fn is_accident(&self) -> bool {
        match self {
            Self::EmulatorDied { .. } => true,
            Self::Hang { clock, .. } => clock == "wall",
            _ => false,
        }
    }
}

/// A warning about a result that may be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Warning {
    /// The guest has no high-resolution timers.
    #[error("the guest has no high-resolution timers: device latencies are rounded up to a tick")]
    CoarseTimers,
    /// This kernel does not have a requested feature.
    #[error("{feature} is not on this kernel")]
    NotOnThisKernel {
        /// The missing feature.
        feature: String,
    },
    /// The access log is incomplete because it exceeded its space in the region.
    #[error(
        "the access log holds the first {kept} of {total} accesses; histogram and metrics cover all"
    )]
    LogCut {
        /// Number of entries stored.
        kept: u64,
        /// Number of accesses made.
        total: u64,
    },
    /// Free text of a scenario.
    #[error("{text}")]
    Note {
        /// The sentence.
        text: String,
    },
}
