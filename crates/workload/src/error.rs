//! Errors: why a workload is refused.

use pagetide_quantity::{Bytes, Nanos};

use crate::bounds::{MAX_TEXT, MAX_TIME};
use crate::form::plain_time;

/// Why a workload is refused. Each message says what is wrong, where, and what to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// The text cannot be read.
    #[error("cannot read the workload{}: {why}", .line.map_or(String::new(), |line| format!(" at line {line}")))]
    Text {
        /// Number of the line with the mistake, from 1; `None` if it is not known.
        line: Option<usize>,
        /// Explanation of what is wrong.
        why: String,
    },
    /// The text is too long.
    #[error(
        "cannot read the workload: it is longer than {}, leave processes or phases out",
        MAX_TEXT
    )]
    TooLong,
    /// There is no process.
    #[error("cannot run a workload without a process: add a [[process]] with a name and phases")]
    Empty,
    /// A name is empty, too long, or has characters that names must not have.
    #[error(
        "cannot name a {what} `{name}`: use 1 to 24 lower-case letters, digits and hyphens, beginning with a letter"
    )]
    Name {
        /// Kind of thing that has the name, such as process, group, segment, mark or file.
        what: &'static str,
        /// The refused name.
        name: String,
    },
    /// Two things of the same kind have the same name.
    #[error("cannot tell two things named `{name}` apart: give each {what} a name of its own")]
    Twice {
        /// Kind of thing that has the name.
        what: &'static str,
        /// The name that occurs twice.
        name: String,
    },
    /// A process or phase uses a name that is not defined.
    #[error("cannot find the {what} `{name}` in {place}: {hint}")]
    Unknown {
        /// Kind of thing that the name should refer to.
        what: &'static str,
        /// The undefined name.
        name: String,
        /// The process or phase that uses the name.
        place: String,
        /// A similar name, some known names, or how to define the name.
        hint: String,
    },
    /// A number is out of bounds.
    #[error("cannot run {place} with {what} {value}: give {bounds}")]
    Bounds {
        /// The process, phase, segment or group that has the number.
        place: String,
        /// Name of the number that is out of bounds.
        what: &'static str,
        /// The value that is out of bounds.
        value: String,
        /// Allowed values, as text.
        bounds: String,
    },
    /// There are too many things of one kind.
    #[error("cannot run a workload with {found} {what}: the most is {most}")]
    TooMany {
        /// Kind of thing, such as processes.
        what: &'static str,
        /// Number of these things in the workload.
        found: u64,
        /// Maximum number of these things.
        most: u64,
    },
    /// A process, segment or phase contradicts itself, or does not suit what it refers to.
    #[error("cannot run {place}: {why}")]
    Contradiction {
        /// The process, segment or phase that cannot run.
        place: String,
        /// Why it cannot run, and what to change.
        why: String,
    },
    /// A process waits for ever for a mark or for the end of a process.
    #[error(
        "cannot run a workload in which {process} waits for `{mark}` for ever: let the mark come before the wait, or remove one"
    )]
    Standstill {
        /// The process that waits.
        process: String,
        /// The mark or process that it waits for.
        mark: String,
    },
    /// The time limit is out of bounds.
    #[error("cannot run a workload for {}: give a time limit from 1ms to {}", plain_time(*.given), plain_time(MAX_TIME))]
    Time {
        /// The requested time limit.
        given: Nanos,
    },
    /// Anonymous memory and tmpfs files of the workload do not fit into memory and swap.
    #[error(
        "cannot hold {wanted} of anonymous memory and tmpfs in {memory} of memory and {swap} of swap: lower the sizes or enlarge the swap"
    )]
    Memory {
        /// Total size of the workload's anonymous memory and tmpfs files.
        wanted: Bytes,
        /// Memory of the trial, to which shares refer.
        memory: Bytes,
        /// Swap size of the trial's machine.
        swap: Bytes,
    },
    /// The workload locks too much memory.
    #[error("cannot lock {locked} of {memory} of memory: lock at most {most}")]
    Locked {
        /// Amount of memory that the workload locks.
        locked: Bytes,
        /// Memory of the trial, to which shares refer.
        memory: Bytes,
        /// Maximum amount of memory that can be locked.
        most: Bytes,
    },
    /// The files on the disk are too large in total.
    #[error(
        "cannot make files of {wanted} in total: the most is {most}, lower their sizes or their number"
    )]
    Files {
        /// Total size of all files.
        wanted: Bytes,
        /// Maximum total size of all files.
        most: Bytes,
    },
}
