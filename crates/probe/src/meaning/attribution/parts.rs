//! The parts into which a task's time is divided.

use serde::{Deserialize, Serialize};

use pagetide_quantity::Nanos;

/// A part of a task's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// On a CPU in user mode.
    Compute,
    /// On a CPU in the kernel, outside reclaim and compaction: page faults and system calls.
    Fault,
    /// On a CPU in reclaim.
    Reclaim,
    /// Asleep within reclaim: throttled, or waiting for something that no event states.
    ReclaimWait,
    /// On a CPU in compaction.
    Compaction,
    /// Asleep within compaction.
    CompactionWait,
    /// Uninterruptible sleep outside reclaim and compaction, for I/O or for a lock. Events do not tell which.
    IoWait,
    /// Asleep in `balance_dirty_pages`, because of the dirty limits.
    DirtyLimit,
    /// Runnable, but waiting for a CPU that another task has.
    RunQueue,
    /// Any other sleep outside reclaim and compaction, mostly interruptible, such as at barriers and in pauses.
    Sleep,
    /// Time that no event explains.
    Unexplained,
}

impl Part {
    /// All parts, in the order in which they are shown.
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

/// Time of a task in each part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parts([Nanos; Part::ALL.len()]);

impl Parts {
    /// Returns the time in one part.
    pub const fn get(&self, part: Part) -> Nanos {
        self.0[part.index()]
    }

    /// Returns all parts with their times.
    pub fn iter(&self) -> impl Iterator<Item = (Part, Nanos)> {
        Part::ALL.into_iter().zip(self.0)
    }

    /// Returns the sum of all parts.
    pub fn total(&self) -> Nanos {
        self.0
            .iter()
            .fold(Nanos(0), |sum, &part| sum.saturating_add(part))
    }

    /// Returns the sum of the times of two tasks, part by part.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (part, time) in other.iter() {
            self.add(part, time.0);
        }
        self
    }

    /// Returns the time in compaction, including waits within compaction.
    pub fn compaction(&self) -> Nanos {
        self.get(Part::Compaction)
            .saturating_add(self.get(Part::CompactionWait))
    }

    pub(super) fn add(&mut self, part: Part, time: u64) {
        let at = &mut self.0[part.index()];
        *at = at.saturating_add(Nanos(time));
    }

    /// Moves up to `time` from one part to another. Returns the amount moved.
    pub(super) fn shift(&mut self, from: Part, to: Part, time: Nanos) -> Nanos {
        let moved = time.min(self.get(from));
        self.0[from.index()] = self.get(from).saturating_sub(moved);
        self.add(to, moved.0);
        moved
    }
}
