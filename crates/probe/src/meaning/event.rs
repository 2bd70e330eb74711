//! Events by meaning.

use serde::{Deserialize, Serialize};

use super::sleep::SiteNumber;

/// On whose behalf pages are reclaimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reclaimer {
    /// A task that allocates and found too little free memory.
    Direct,
    /// A task whose memory cgroup is at its limit, or a request through `memory.reclaim`.
    Memcg,
    /// kswapd or a task, for a memory cgroup over its soft limit (version 1).
    Softlimit,
    /// A task with `vm.zone_reclaim_mode` set.
    Node,
    /// kswapd.
    Kswapd,
    /// Unknown caller: reclaim that started before tracing did, or was requested in another way.
    Unknown,
}

impl Reclaimer {
    /// All of them, in the order of [`Self::index`].
    pub const ALL: [Self; 6] = [
        Self::Direct,
        Self::Memcg,
        Self::Softlimit,
        Self::Node,
        Self::Kswapd,
        Self::Unknown,
    ];

    /// Its place in [`Self::ALL`].
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

/// An event with its time, CPU and task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEvent {
    /// Nanoseconds on the trace's clock.
    pub time: u64,
    /// The CPU it happened on.
    pub cpu: u32,
    /// The task that was running.
    pub pid: u32,
    /// What happened.
    pub event: Event,
}

/// What happened. Counts are base pages unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are the kernel's own (include/trace/events/*.h); the variants say what they mean.
pub enum Event {
    /// A reclaim begins; the memory cgroup's number is told since 7.x.
    ReclaimBegin {
        by: Reclaimer,
        order: i64,
        memcg: Option<u64>,
    },
    /// A reclaim ends; slab pages are included in what it reclaimed.
    ReclaimEnd { by: Reclaimer, reclaimed: u64 },
    /// kswapd starts to balance its node, having slept or not.
    KswapdWake { node: i64, order: i64 },
    /// kswapd goes to sleep.
    KswapdSleep { node: i64 },
    /// A task wakes kswapd.
    WakeupKswapd { node: i64, order: i64 },
    /// Pages are taken off an LRU list (`lru`: 0 and 1 anonymous, 2 and 3 file; odd ones active).
    Isolate { scanned: u64, taken: u64, lru: u64 },
    /// A batch from the inactive list (or the oldest generation) was worked through.
    ShrinkInactive { scanned: u64, reclaimed: u64 },
    /// A batch from the active list was worked through.
    ShrinkActive { taken: u64, deactivated: u64 },
    /// Reclaim sent a folio to be written (`flags`: 1 anonymous, 2 file, 4 synchronous, 8 asynchronous).
    WriteFolio { flags: u64 },
    /// Reclaim waited on purpose.
    Throttled { microseconds: u64 },
    /// Pages were reclaimed on request, by `madvise` or DAMON.
    ReclaimPages { scanned: u64, reclaimed: u64 },
    /// Compaction of a zone begins.
    CompactionBegin,
    /// It ends, having made a block of the wanted order or not.
    CompactionEnd { success: bool },
    /// The migration scanner took pages.
    IsolateMigrate { scanned: u64, taken: u64 },
    /// The free scanner took pages.
    IsolateFree { scanned: u64, taken: u64 },
    /// The free scanner took pages off the free lists directly.
    FastIsolateFree { scanned: u64, taken: u64 },
    /// Pages were migrated by compaction.
    CompactionMigrate { migrated: u64, failed: u64 },
    /// An allocation asks for compaction.
    CompactionAttempt { order: i64 },
    /// Whether a zone was found worth compacting.
    CompactionSuitable { skipped: bool },
    /// Compaction was put off because it failed before.
    CompactionDeferred,
    /// kcompactd starts to work.
    KcompactdWake,
    /// kcompactd goes to sleep.
    KcompactdSleep,
    /// Pages were migrated, for whatever reason.
    Migrate { succeeded: u64, failed: u64 },
    /// A process is to be killed for lack of memory.
    OomVictim { pid: u32 },
    /// A task switch; `state` is what the previous task goes into (0 runnable, bit 1 uninterruptible).
    Switch {
        previous: u32,
        state: u64,
        next: u32,
    },
    /// Where the task that just left the CPU sleeps, by its kernel stack; `None` where the stack names nothing.
    SleepsIn { site: Option<SiteNumber> },
    /// A task becomes runnable, on this CPU where the event tells.
    Wakeup { pid: u32, cpu: Option<u32> },
    /// A task is made.
    Fork { child: u32 },
    /// The task at hand ends.
    Exit,
    /// A page fault in user mode.
    UserFault { address: u64 },
    /// A task that writes to files has written too much that is not on its device yet: it is put to sleep, unless `sleeps` is false.
    DirtyLimit { sleeps: bool },
    /// A request goes to a device; sectors are 512 bytes.
    BlockIssue {
        device: u64,
        sector: u64,
        sectors: u64,
        write: bool,
    },
    /// A request of another kind goes to a device: a discard, a flush.
    BlockOther { device: u64, sector: u64 },
    /// I/O is handed to a device, before it is merged into requests (drivers such as zram have no requests).
    BioQueue {
        device: u64,
        sectors: u64,
        write: bool,
    },
    /// The same, neither read nor write.
    BioOther,
    /// A request comes back.
    BlockComplete {
        device: u64,
        sector: u64,
        sectors: u64,
    },
}
