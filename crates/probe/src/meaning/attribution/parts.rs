//! The parts into which a task's time is divided.

use serde::{Deserialize, Serialize};

use pagetide_quantity::Nanos;

/// Where time can go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// In user mode.
    Compute,
    /// In the kernel outside reclaim and compaction: page faults and system calls.
    Fault,
    /// Reclaiming, on a CPU.
    Reclaim,
    /// Asleep within reclaim: throttled, or on something that no event names.
    ReclaimWait,
    /// Compacting, on a CPU.
    Compaction,
    /// Waiting within compaction.
    CompactionWait,
    /// Uninterruptibly asleep elsewhere: on I/O or on a lock, which no event tells apart.
    IoWait,
    /// Asleep because too much of what was written to files is not on its device yet (`balance_dirty_pages`).
    DirtyLimit,
    /// Ready to run, but another task had the CPU.
    RunQueue,
    /// Asleep of its own will: barriers, pauses.
    Sleep,
    /// What none of this explains.
    Unexplained,
}

impl Part {
    /// All parts, in the order they are shown.
    pub const ALL: [Self; 11] = [
        Self::Compute,
        Self::Fault,
        Self::Reclaim,
        Self::ReclaimWait,
        Self::Compaction,
        Self::CompactionWait,
        Self::IoWait,
        Self::DirtyLimit,
        Self::RunQueue,
        Self::Sleep,
        Self::Unexplained,
    ];

    const fn index(self) -> usize {
        match self {
            Self::Compute => 0,
            Self::Fault => 1,
            Self::Reclaim => 2,
            Self::ReclaimWait => 3,
            Self::Compaction => 4,
            Self::CompactionWait => 5,
            Self::IoWait => 6,
            Self::DirtyLimit => 7,
            Self::RunQueue => 8,
            Self::Sleep => 9,
            Self::Unexplained => 10,
        }
    }
}

/// Time by part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parts([Nanos; Part::ALL.len()]);

impl Parts {
    /// One part.
    pub const fn get(&self, part: Part) -> Nanos {
        self.0[part.index()]
    }

    /// All parts with their times.
    pub fn iter(&self) -> impl Iterator<Item = (Part, Nanos)> {
        Part::ALL.into_iter().zip(self.0)
    }

    /// All parts together.
    pub fn total(&self) -> Nanos {
        self.0
            .iter()
            .fold(Nanos(0), |sum, &part| sum.saturating_add(part))
    }

    /// Part by part, of two tasks together.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (part, time) in other.iter() {
            self.add(part, time.0);
        }
        self
    }

    /// Compaction, waits within it included.
    pub fn compaction(&self) -> Nanos {
        self.get(Part::Compaction)
            .saturating_add(self.get(Part::CompactionWait))
    }

    pub(super) fn add(&mut self, part: Part, time: u64) {
        let at = &mut self.0[part.index()];
        *at = at.saturating_add(Nanos(time));
    }

    /// Moves up to `time` from one part to another; gives how much that was.
    pub(super) fn shift(&mut self, from: Part, to: Part, time: Nanos) -> Nanos {
        let moved = time.min(self.get(from));
        self.0[from.index()] = self.get(from).saturating_sub(moved);
        self.add(to, moved.0);
        moved
    }
}
