//! Why a trial must not be used, and what a reader should know of one that may.

use serde::{Deserialize, Serialize};

use pagetide_quantity::{Bytes, Nanos};

/// Why a trial's numbers must not be used. Shown as is; the trial is kept, shown and excluded.
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
    /// The kernel killed a process of the workload at the limit of its memory group.
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
        /// The line that gave it away.
        line: String,
    },
    /// The guest stopped making progress.
    #[error(
        "the scenario made no progress for {span} of {clock} time: raise --timeout if it is only slow"
    )]
    Hang {
        /// How long nothing moved.
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
    /// The scenario itself gave up.
    #[error("the scenario stopped: {why}")]
    Scenario {
        /// Its own sentence.
        why: String,
    },
    /// A program of the user's own did not end as expected.
    #[error("the program {why}")]
    Program {
        /// What it did.
        why: String,
    },
    /// A process of the workload ended by a signal or with an error.
    #[error("{process} of the workload ended with {how}: read the kernel log in the record")]
    ProcessDied {
        /// Which process.
        process: String,
        /// Exit status or signal.
        how: String,
    },
    /// A setting read back differs from what was asked for.
    #[error(
        "setting {name} was set to `{wanted}` but reads `{found}`: choose a value the kernel accepts"
    )]
    SettingDidNotStick {
        /// Name of the setting.
        name: String,
        /// What was asked for.
        wanted: String,
        /// What was read back.
        found: String,
    },
    /// A setting's file is not there or could not be written.
    #[error("setting {name} cannot be applied on this kernel ({why}): remove it from the variant")]
    SettingRefused {
        /// Name of the setting.
        name: String,
        /// The system's reason.
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
        /// How many.
        events: u64,
    },
    /// The guest's CPU halted while it was measured, so that exactness is not proven.
    #[error(
        "the guest's CPU went idle {times} times while it was measured: this result is not exact, please report it"
    )]
    Halted {
        /// Number of times the idle loop ran.
        times: u64,
    },
    /// The output region, a disk or a file system was full.
    #[error("{what} was full after {size}: shorten the scenario or raise the limit")]
    Full {
        /// What was full.
        what: String,
        /// How much it holds.
        size: Bytes,
    },
    /// A count differs from what the scenario's definition demands.
    #[error(
        "the scenario did {found} {what} where its definition says {expected}: please report it"
    )]
    WrongCount {
        /// What was counted.
        what: String,
        /// What the definition says.
        expected: u64,
        /// What was counted.
        found: u64,
    },
}

impl Invalid {
    /// Whether the machine around the arena may be to blame, so that the same trial may go well another time.
    pub fn is_accident(&self) -> bool {
        match self {
            Self::EmulatorDied { .. } => true,
            Self::Hang { clock, .. } => clock == "wall",
            _ => false,
        }
    }
}

/// Something a reader of the result should know; the result stands.
#[derive(Clone, Debug, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Warning {
    /// The guest has no high-resolution timers.
    #[error("the guest has no high-resolution timers: device latencies are rounded up to a tick")]
    CoarseTimers,
    /// A feature asked for is not on this kernel.
    #[error("{feature} is not on this kernel")]
    NotOnThisKernel {
        /// The missing feature.
        feature: String,
    },
    /// The access log was cut because it outgrew its region.
    #[error(
        "the access log holds the first {kept} of {total} accesses; histogram and metrics cover all"
    )]
    LogCut {
        /// Entries kept.
        kept: u64,
        /// Accesses made.
        total: u64,
    },
    /// Free text of a scenario.
    #[error("{text}")]
    Note {
        /// The sentence.
        text: String,
    },
}
