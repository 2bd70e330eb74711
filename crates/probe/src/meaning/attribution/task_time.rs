//! A task's accounting, and its time divided into parts.

use std::collections::BTreeMap;

use pagetide_quantity::Nanos;
use serde::{Deserialize, Serialize};

use super::super::sleep::SleepSite;
use super::parts::{Part, Parts};

/// CPU accounting of a task, measured by the task itself. `begin` and `end` are on the trace's clock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskAccounting {
    /// Thread ID of the task.
    pub pid: u32,
    /// Begin of the measured time; `None` if it begins when the trace shows the fork of the task.
    pub begin: Option<Nanos>,
    /// End of the measured time; `None` if it ends when the trace shows the exit of the task, or with the last event.
    pub end: Option<Nanos>,
    /// User time between begin and end; `None` if unknown.
    pub user: Option<Nanos>,
    /// System time between begin and end; `None` if unknown.
    pub system: Option<Nanos>,
}

/// One task's time, divided into parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskTime {
    /// Thread ID of the task.
    pub pid: u32,
    /// Time from begin to end of the measured time.
    pub elapsed: Nanos,
    /// Time in each part. The parts add up to `elapsed`.
    pub parts: Parts,
    /// Number of page faults in user mode in the trace, or in the windows if there are any; 0 if they were not traced.
    pub faults: u64,
    /// Number of times that the task was switched out in the whole trace.
    pub switches: u64,
    /// Time on a CPU according to the trace.
    pub on_cpu: Nanos,
    /// Time on a CPU according to the task's accounting; `None` if unknown. Should agree with `on_cpu`.
    pub accounted: Option<Nanos>,
    /// Pages that the task scanned on inactive lists in reclaim.
    #[serde(default)]
    pub scanned: u64,
    /// Pages that the task freed in reclaim.
    #[serde(default)]
    pub reclaimed: u64,
    /// Number and longest duration of the task's waits, by part: within reclaim, within compaction, and uninterruptible
    /// elsewhere. Needs traced task switches.
    #[serde(default)]
    pub waits: BTreeMap<Part, Waits>,
    /// The task's waits by part and by the kernel function that waits, from stack traces. Longest total time first.
    #[serde(default)]
    pub slept: Vec<SiteSleeps>,
    /// Other tasks that had the CPU while this task was runnable, longest time first. The times add up to at most
    /// [`Part::RunQueue`].
    #[serde(default)]
    pub behind: Vec<QueueWait>,
}

/// Number of a task's waits in one part, and duration of the longest one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// Number of waits.
    pub count: u64,
    /// Duration of the longest wait.
    pub longest: Nanos,
}

/// Waits of one task in one part at one location in the kernel code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteSleeps {
    /// The part to which the waits belong.
    pub part: Part,
    /// Location in the kernel code; `None` if no stack was recorded or the stack has no named function.
    pub site: Option<SleepSite>,
    /// Number of waits.
    pub count: u64,
    /// Total duration of the waits.
    pub time: Nanos,
    /// Duration of the longest wait.
    pub longest: Nanos,
}

/// Time in which a task was runnable while one other task had the CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueWait {
    /// Thread ID of the task that had the CPU.
    pub pid: u32,
    /// Name of the task that had the CPU; empty if unknown.
    pub name: String,
    /// Total time for which that task had the CPU while the attributed task was runnable.
    pub time: Nanos,
}
