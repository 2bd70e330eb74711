//! Phases: what a process does, one after the other.

use pagetide_quantity::Nanos;
use pagetide_reference::Pattern;
use serde::{Deserialize, Serialize};

use crate::count::Count;
use crate::form::time;
use crate::size::Size;

/// Advice to the kernel on a part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// The pages will not be used soon (`MADV_COLD`).
    Cold,
    /// The pages are to be reclaimed now (`MADV_PAGEOUT`).
    Pageout,
    /// The content is not needed, unless it is written again (`MADV_FREE`).
    Free,
    /// The content is not needed (`MADV_DONTNEED`).
    Dontneed,
    /// The pages will be used soon (`MADV_WILLNEED`).
    Willneed,
    /// All pages are to be mapped for reading (`MADV_POPULATE_READ`).
    PopulateRead,
    /// All pages are to be mapped for writing (`MADV_POPULATE_WRITE`).
    PopulateWrite,
    /// The pages will be read in ascending order (`MADV_SEQUENTIAL`).
    Sequential,
    /// The pages will be read in random order (`MADV_RANDOM`).
    Random,
    /// The file's clean pages are to be dropped from the page cache (`POSIX_FADV_DONTNEED`).
    DropCache,
}

impl Advice {
    /// All kinds of advice.
    pub const ALL: [Self; 10] = [
        Self::Cold,
        Self::Pageout,
        Self::Free,
        Self::Dontneed,
        Self::Willneed,
        Self::PopulateRead,
        Self::PopulateWrite,
        Self::Sequential,
        Self::Random,
        Self::DropCache,
    ];

    /// Returns the number of this advice for `madvise(2)`; `None` for [`Self::DropCache`], which it does not have.
    pub fn number(self) -> Option<i32> {
        Some(match self {
            Self::Random => 1,
            Self::Sequential => 2,
            Self::Willneed => 3,
            Self::Dontneed => 4,
            Self::Free => 8,
            Self::Cold => 20,
            Self::Pageout => 21,
            Self::PopulateRead => 22,
            Self::PopulateWrite => 23,
            Self::DropCache => return None,
        })
    }
}

/// Amount of memory that one access touches.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// One word of a page. A write leaves the rest of the page as it is.
    #[default]
    Word,
    /// A whole page. A write gives the page the content of its segment.
    Page,
}

/// Way in which a process reads and writes a file.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Through a mapping of the file.
    #[default]
    Mapping,
    /// By `pread(2)` and `pwrite(2)`.
    Call,
}

/// A part of a segment: start and end as fractions of its pages, from 0 to 1.
pub type Part = [f64; 2];

/// A phase of accesses to a segment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Access {
    /// Name of the segment that is accessed.
    pub segment: String,
    /// Pattern that selects the accessed pages.
    #[serde(default = "linear", skip_serializing_if = "is_linear")]
    pub pattern: Pattern,
    /// Share of the accesses that write, from 0 to 1.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub writes: f64,
    /// Number of accesses.
    #[serde(default, skip_serializing_if = "Count::is_one_pass")]
    pub count: Count,
    /// Amount of memory that one access touches.
    #[serde(default, skip_serializing_if = "is_default")]
    pub amount: Amount,
    /// Way in which the process reads and writes a file.
    #[serde(default, skip_serializing_if = "is_default")]
    pub by: By,
    /// Length of the pause after every `every` accesses. `pause` and `every` together limit the rate.
    #[serde(default, skip_serializing_if = "no_time", with = "time")]
    pub pause: Nanos,
    /// Number of accesses between two pauses.
    #[serde(default = "every", skip_serializing_if = "is_every")]
    pub every: u32,
    /// Part of the segment that is accessed; `None` for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Name of a mark or process. The accesses stop early when all processes with the mark have passed it, or all
    /// processes of this name have ended. `None` to make all accesses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

impl Access {
    /// Returns one reading pass over a segment in ascending order, without pauses.
    pub fn new(segment: &str) -> Self {
        Self {
            segment: segment.to_owned(),
            pattern: Pattern::Linear,
            writes: 0.0,
            count: Count::ONE_PASS,
            amount: Amount::Word,
            by: By::Mapping,
            pause: Nanos(0),
            every: every(),
            part: None,
            until: None,
        }
    }
}

/// One step of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Phase {
    /// Writes every page once, as a whole, in ascending order, with the segment's content.
    Fill {
        /// Name of the segment that is filled.
        segment: String,
        /// Way in which the process writes a file.
        #[serde(default, skip_serializing_if = "is_default")]
        by: By,
        /// Part of the segment that is filled; `None` for all of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<Part>,
    },
    /// Accesses a segment. The latency of each access is measured.
    Access(Access),
    /// Writes one segment to the file of another segment, page by page.
    Copy {
        /// Name of the segment that is read.
        from: String,
        /// Name of the file or tmpfs segment that is written.
        to: String,
    },
    /// Writes a file's dirty pages to the disk and waits until they are written.
    Sync {
        /// Name of the file segment.
        segment: String,
    },
    /// Advises the kernel on the use of a segment.
    Advise {
        /// Name of the segment that the advice is about.
        segment: String,
        /// The advice to give.
        advice: Advice,
        /// Part of the segment that the advice is about; `None` for all of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<Part>,
    },
    /// Forks children, which share private memory copy on write and do these phases. The parent goes on with its own.
    Fork {
        /// Number of children.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        count: u32,
        /// Phases that each child does.
        phases: Vec<Phase>,
    },
    /// Waits until all children have ended.
    Join {},
    /// Passes a mark: a named point, for which other processes can wait.
    Mark {
        /// Name of the mark.
        name: String,
    },
    /// Waits until all processes that contain a mark have passed it or ended, or all processes with a name have ended.
    Wait {
        /// Name of a mark or of a process to wait for.
        r#for: String,
    },
    /// Sleeps for a time.
    Pause {
        /// Length of the pause.
        #[serde(with = "time")]
        time: Nanos,
    },
    /// Asks the kernel to reclaim memory from a group's cgroup (`memory.reclaim`).
    Reclaim {
        /// Name of the group in the workload.
        group: String,
        /// Amount of memory to reclaim.
        amount: Size,
    },
    /// Does a list of phases several times.
    Repeat {
        /// Number of repetitions.
        times: u32,
        /// Phases that are repeated.
        phases: Vec<Phase>,
    },
}

impl Phase {
    /// Returns the phases inside this one; empty if there are none.
    pub fn inner(&self) -> &[Phase] {
        match self {
            Self::Fork { phases, .. } | Self::Repeat { phases, .. } => phases,
            _ => &[],
        }
    }

    /// Returns the word that names the phase in a workload's text.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Fill { .. } => "fill",
            Self::Access(_) => "access",
            Self::Copy { .. } => "copy",
            Self::Sync { .. } => "sync",
            Self::Advise { .. } => "advise",
            Self::Fork { .. } => "fork",
            Self::Join {} => "join",
            Self::Mark { .. } => "mark",
            Self::Wait { .. } => "wait",
            Self::Pause { .. } => "pause",
            Self::Reclaim { .. } => "reclaim",
            Self::Repeat { .. } => "repeat",
        }
    }
}

fn linear() -> Pattern {
    Pattern::Linear
}

fn is_linear(pattern: &Pattern) -> bool {
    *pattern == Pattern::Linear
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn no_time(time: &Nanos) -> bool {
    time.0 == 0
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn every() -> u32 {
    32
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_every(value: &u32) -> bool {
    *value == every()
}

fn one() -> u32 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
fn is_one(value: &u32) -> bool {
    *value == 1
}
