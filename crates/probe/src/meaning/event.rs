//! Events of a trace after decoding.

use serde::{Deserialize, Serialize};

use super::sleep::SiteNumber;

/// What triggered a reclaim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reclaimer {
    /// A task in the page allocator's slow path: direct reclaim.
    Direct,
    /// A task whose memory cgroup is at its limit, or a write to `memory.reclaim`.
    Memcg,
    /// kswapd or a task, for a memory cgroup above its soft limit (version 1).
    Softlimit,
    /// A task on a machine with `vm.zone_reclaim_mode` set.
    Node,
    /// kswapd, the background reclaim of a node.
    Kswapd,
    /// Unknown caller: reclaim that started before tracing did, or was requested in another way.
    Unknown,
}

impl Reclaimer {
    /// All reclaimers, in the order of [`Self::index`].
    pub const ALL: [Self; 6] = [
        Self::Direct,
        Self::Memcg,
        Self::Softlimit,
        Self::Node,
        Self::Kswapd,
        Self::Unknown,
    ];

    /// Returns the index of this reclaimer in [`Self::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Self::Direct => 0,
            Self::Memcg => 1,
            Self::Softlimit => 2,
            Self::Node => 3,
            Self::Kswapd => 4,
            Self::Unknown => 5,
        }
    }
}

/// A decoded event with its time, CPU and task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEvent {
    /// Time of the event in nanoseconds on the trace's clock.
    pub time: u64,
    /// The CPU on which the event was recorded.
    pub cpu: u32,
    /// Thread ID of the task that was running.
    pub pid: u32,
    /// The decoded event.
    pub event: Event,
}

/// A decoded event. Counts are numbers of base pages unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are the kernel's own (include/trace/events/*.h); the variants say what they mean.
pub enum Event {
    /// A reclaim begins. `memcg` is the ID of the memory cgroup; `None` if the kernel's event lacks it (before 7.x).
    ReclaimBegin {
        by: Reclaimer,
        order: i64,
        memcg: Option<u64>,
    },
    /// A reclaim ends. `reclaimed` includes slab pages.
    ReclaimEnd { by: Reclaimer, reclaimed: u64 },
    /// kswapd starts to balance its node. It may have been asleep or awake before.
    KswapdWake { node: i64, order: i64 },
    /// kswapd goes to sleep.
    KswapdSleep { node: i64 },
    /// A task wakes kswapd.
    WakeupKswapd { node: i64, order: i64 },
    /// Pages are taken off an LRU list. `lru` is 0 or 1 for anonymous pages, 2 or 3 for file pages; odd numbers are
    /// active lists.
    Isolate { scanned: u64, taken: u64, lru: u64 },
    /// A batch from the inactive list (or the oldest generation) was processed.
    ShrinkInactive { scanned: u64, reclaimed: u64 },
    /// A batch from the active list was processed.
    ShrinkActive { taken: u64, deactivated: u64 },
    /// Reclaim submitted a folio for writing (`flags`: 1 anonymous, 2 file, 4 synchronous, 8 asynchronous).
    WriteFolio { flags: u64 },
    /// Reclaim was throttled for this time.
    Throttled { microseconds: u64 },
    /// Pages were reclaimed on explicit request, by `madvise` or DAMON.
    ReclaimPages { scanned: u64, reclaimed: u64 },
    /// Compaction of a zone begins.
    CompactionBegin,
    /// Compaction of a zone ends; `success` means that a block of the requested order is free.
    CompactionEnd { success: bool },
    /// The migration scanner isolated pages.
    IsolateMigrate { scanned: u64, taken: u64 },
    /// The free scanner isolated pages.
    IsolateFree { scanned: u64, taken: u64 },
    /// The free scanner isolated pages directly from the free lists.
    FastIsolateFree { scanned: u64, taken: u64 },
    /// Compaction migrated pages.
    CompactionMigrate { migrated: u64, failed: u64 },
    /// An allocation requests compaction.
    CompactionAttempt { order: i64 },
    /// Compaction of a zone was considered. `skipped` means that it was not worthwhile.
    CompactionSuitable { skipped: bool },
    /// Compaction of a zone was deferred because it failed before.
    CompactionDeferred,
    /// kcompactd starts to work.
    KcompactdWake,
    /// kcompactd goes to sleep.
    KcompactdSleep,
    /// Pages were migrated. `why` is the kernel's number of the reason; `None` if the event has none.
    Migrate {
        succeeded: u64,
        failed: u64,
        why: Option<u64>,
    },
    /// The OOM killer selected a process.
    OomVictim { pid: u32 },
    /// A task switch. `state` is the new state of the previous task (0 runnable, bit 1 uninterruptible).
    Switch {
        previous: u32,
        state: u64,
        next: u32,
    },
    /// Location in the kernel code at which the task that was just switched out sleeps, from its stack; `None` if the
    /// stack has no named function.
    SleepsIn { site: Option<SiteNumber> },
    /// A task becomes runnable. `cpu` is the CPU it will run on; `None` if the event does not contain it.
    Wakeup { pid: u32, cpu: Option<u32> },
    /// A task is forked.
    Fork { child: u32 },
    /// The current task exits.
    Exit,
    /// A page fault in user mode.
    UserFault { address: u64 },
    /// The current task exceeded the dirty limits (`balance_dirty_pages`). `sleeps` is true if the task is put to
    /// sleep.
    DirtyLimit { sleeps: bool },
    /// A read or write request is issued to a device. Sectors are 512 bytes.
    BlockIssue {
        device: u64,
        sector: u64,
        sectors: u64,
        write: bool,
    },
    /// A request other than a read or a write is issued, such as a discard or a flush.
    BlockOther { device: u64, sector: u64 },
    /// A bio is submitted to a device, before it is merged into requests (drivers such as zram have no requests).
    BioQueue {
        device: u64,
        sectors: u64,
        write: bool,
    },
    /// A bio other than a read or a write is submitted.
    BioOther,
    /// A request to a device completes.
    BlockComplete {
        device: u64,
        sector: u64,
        sectors: u64,
    },
}
