//! The rows of the reclaim table: their names, their units, the events they need and the vmstat counters they are
//! compared with.

use serde::{Deserialize, Serialize};

/// Section of the reclaim table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Section {
    /// Direct reclaim and kswapd: the rows of the original script's table.
    Reclaim,
    /// Memory cgroups, and all kinds of reclaim together.
    Memcg,
    /// Compaction and migration.
    Compaction,
    /// Swap, writeback, refaults and page faults, from vmstat; and OOM kills, from the trace.
    Memory,
}

/// Unit of the value in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowUnit {
    /// Number of events.
    Events,
    /// Number of base pages.
    Pages,
    /// Number of folios of any size; each counts once.
    Folios,
    /// Duration in nanoseconds.
    Time,
    /// Ratio in percent.
    Percent,
}

/// Definition of a row in the reclaim table.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSpec {
    pub(super) id: RowId,
    pub(super) section: Section,
    pub(super) unit: RowUnit,
    pub(super) name: &'static str,
    /// Name of the row in the table of the original post-processing script; `None` if the script does not have the row.
    pub(super) original: Option<&'static str>,
    /// Events that the row needs.
    pub(super) events: &'static [&'static str],
    /// Counters of vmstat. The sum of their increases is compared with the row, or is its value if `events` is empty.
    pub(super) counters: &'static [&'static str],
}

macro_rules! original {
    ("") => {
        None
    };
    ($name:literal) => {
        Some($name)
    };
}

macro_rules! rows {
    ($($section:ident { $($id:ident $unit:ident $name:literal $original:tt
        [$($event:ident)*] [$($counter:literal)*];)* })*) => {
        /// Identifies a row of the reclaim table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[allow(missing_docs)] // The table below has the name of each row.
        pub enum RowId { $($($id,)*)* }

        pub(super) const ROWS: &[RowSpec] = &[$($(RowSpec {
            id: RowId::$id,
            section: Section::$section,
            unit: RowUnit::$unit,
            name: $name,
            original: original!($original),
            events: &[$($event,)*],
            counters: &[$($counter,)*],
        },)*)*];
    };
}

const DIRECT_BEGIN: &str = "mm_vmscan_direct_reclaim_begin";
const DIRECT_END: &str = "mm_vmscan_direct_reclaim_end";
const MEMCG_BEGIN: &str = "mm_vmscan_memcg_reclaim_begin";
const MEMCG_END: &str = "mm_vmscan_memcg_reclaim_end";
const SOFT_BEGIN: &str = "mm_vmscan_memcg_softlimit_reclaim_begin";
const NODE_BEGIN: &str = "mm_vmscan_node_reclaim_begin";
const ISOLATE: &str = "mm_vmscan_lru_isolate";
const SHRINK: &str = "mm_vmscan_lru_shrink_inactive";
const WRITE: &str = "mm_vmscan_write_folio";
const WAKE: &str = "mm_vmscan_kswapd_wake";
const SLEEP: &str = "mm_vmscan_kswapd_sleep";
const WAKEUP: &str = "mm_vmscan_wakeup_kswapd";
const THROTTLED: &str = "mm_vmscan_throttled";
const ON_REQUEST: &str = "mm_vmscan_reclaim_pages";
const ATTEMPT: &str = "mm_compaction_try_to_compact_pages";
const COMPACT_BEGIN: &str = "mm_compaction_begin";
const COMPACT_END: &str = "mm_compaction_end";
const SUITABLE: &str = "mm_compaction_suitable";
const DEFERRED: &str = "mm_compaction_deferred";
const MIGRATED: &str = "mm_compaction_migratepages";
const ISOLATE_MIGRATE: &str = "mm_compaction_isolate_migratepages";
const ISOLATE_FREE: &str = "mm_compaction_isolate_freepages";
const KCOMPACTD: &str = "mm_compaction_kcompactd_wake";
const MIGRATE: &str = "mm_migrate_pages";
const VICTIM: &str = "mark_victim";

rows! {
    Reclaim {
        DirectReclaims Events "direct reclaims" "Direct reclaims" [DIRECT_BEGIN]
            ["allocstall_dma" "allocstall_dma32" "allocstall_normal" "allocstall_movable" "allocstall_device"];
        DirectScanned Pages "direct pages scanned" "Direct reclaim pages scanned" [DIRECT_BEGIN DIRECT_END ISOLATE]
            ["pgscan_direct" "pgscan_khugepaged"];
        DirectReclaimed Pages "direct pages reclaimed" "Direct reclaim pages reclaimed" [DIRECT_BEGIN DIRECT_END SHRINK]
            ["pgsteal_direct" "pgsteal_khugepaged"];
        DirectWriteFileAsync Pages "direct write file async I/O" "Direct reclaim write file async I/O" [DIRECT_BEGIN DIRECT_END WRITE] [];
        DirectWriteAnonAsync Pages "direct write anon async I/O" "Direct reclaim write anon async I/O" [DIRECT_BEGIN DIRECT_END WRITE] [];
        DirectWriteFileSync Pages "direct write file sync I/O" "Direct reclaim write file sync I/O" [DIRECT_BEGIN DIRECT_END WRITE] [];
        DirectWriteAnonSync Pages "direct write anon sync I/O" "Direct reclaim write anon sync I/O" [DIRECT_BEGIN DIRECT_END WRITE] [];
        WakeKswapdRequests Events "wake kswapd requests" "Wake kswapd requests" [WAKEUP] [];
        KswapdWakeups Events "kswapd wakeups" "Kswapd wakeups" [WAKE SLEEP] ["pageoutrun"];
        KswapdScanned Pages "kswapd pages scanned" "Kswapd pages scanned" [ISOLATE] ["pgscan_kswapd"];
        KswapdReclaimed Pages "kswapd pages reclaimed" "Kswapd pages reclaimed" [SHRINK] ["pgsteal_kswapd"];
        KswapdWriteFileAsync Pages "kswapd write file async I/O" "Kswapd reclaim write file async I/O" [WRITE] [];
        KswapdWriteAnonAsync Pages "kswapd write anon async I/O" "Kswapd reclaim write anon async I/O" [WRITE] [];
        KswapdWriteFileSync Pages "kswapd write file sync I/O" "Kswapd reclaim write file sync I/O" [WRITE] [];
        KswapdWriteAnonSync Pages "kswapd write anon sync I/O" "Kswapd reclaim write anon sync I/O" [WRITE] [];
        TimeStalled Time "time stalled in direct reclaim" "Time stalled direct reclaim (seconds)" [DIRECT_BEGIN DIRECT_END] [];
        TimeKswapdAwake Time "time kswapd awake" "Time kswapd awake (seconds)" [WAKE SLEEP] [];
        TotalScanned Pages "total pages scanned" "Total pages scanned" [ISOLATE]
            ["pgscan_direct" "pgscan_khugepaged" "pgscan_kswapd"];
        TotalReclaimed Pages "total pages reclaimed" "Total pages reclaimed" [SHRINK]
            ["pgsteal_direct" "pgsteal_khugepaged" "pgsteal_kswapd"];
        ReclaimedOfScanned Percent "reclaimed / scanned" "%age total pages scanned/reclaimed" [ISOLATE SHRINK] [];
        WrittenOfScanned Percent "written / scanned" "%age total pages scanned/written" [ISOLATE WRITE] [];
        FileWrittenOfScanned Percent "file pages written / scanned" "%age  file pages scanned/written" [ISOLATE WRITE] [];
        TimeInDirectReclaim Percent "time in direct reclaim / (user + system + stalled)" "Percentage Time Spent Direct Reclaim" [DIRECT_BEGIN DIRECT_END] [];
        TimeKswapdAwakeShare Percent "time kswapd awake / elapsed" "Percentage Time kswapd Awake" [WAKE SLEEP] [];
    }
    Memcg {
        MemcgReclaims Events "memcg reclaims" "" [MEMCG_BEGIN] [];
        MemcgScanned Pages "memcg pages scanned" "" [MEMCG_BEGIN MEMCG_END ISOLATE] [];
        MemcgReclaimed Pages "memcg pages reclaimed" "" [MEMCG_BEGIN MEMCG_END SHRINK] [];
        MemcgWriteFile Pages "memcg write file I/O" "" [MEMCG_BEGIN MEMCG_END WRITE] [];
        MemcgWriteAnon Pages "memcg write anon I/O" "" [MEMCG_BEGIN MEMCG_END WRITE] [];
        TimeStalledMemcg Time "time stalled in memcg reclaim" "" [MEMCG_BEGIN MEMCG_END] [];
        SoftlimitReclaims Events "memcg soft-limit reclaims" "" [SOFT_BEGIN] [];
        AllScanned Pages "pages scanned by all reclaimers" "" [ISOLATE] ["pgscan_anon" "pgscan_file"];
        AllReclaimed Pages "pages reclaimed by all reclaimers" "" [SHRINK] ["pgsteal_anon" "pgsteal_file"];
        AllWritten Pages "pages written by all reclaimers" "" [WRITE] ["nr_vmscan_write"];
        AllFoliosWritten Folios "folios these were" "" [WRITE] [];
        UnknownScanned Pages "pages scanned outside any known reclaim" "" [ISOLATE] [];
        OnRequestReclaimed Pages "pages reclaimed on request (madvise, DAMON)" "" [ON_REQUEST] [];
        TimeThrottled Time "time reclaim was throttled" "" [THROTTLED] [];
        NodeReclaims Events "node reclaims" "" [NODE_BEGIN] [];
    }
    Compaction {
        CompactionStalls Events "compaction stalls" "Compaction stalls" [ATTEMPT COMPACT_BEGIN SUITABLE DEFERRED] ["compact_stall"];
        CompactionSuccess Events "compaction success" "Compaction success" [ATTEMPT COMPACT_BEGIN COMPACT_END SUITABLE DEFERRED] ["compact_success"];
        CompactionFailures Events "compaction failures" "Compaction failures" [ATTEMPT COMPACT_BEGIN COMPACT_END SUITABLE DEFERRED] ["compact_fail"];
        PagesMigrated Pages "pages migrated by compaction" "Compaction pages moved" [MIGRATED] [];
        MigrateFailures Pages "pages compaction could not migrate" "Compaction move failure" [MIGRATED] [];
        MigrateScanned Pages "migrate scanner pages scanned" "" [ISOLATE_MIGRATE] ["compact_migrate_scanned"];
        MigrateIsolated Pages "migrate scanner pages isolated" "" [ISOLATE_MIGRATE] [];
        FreeScanned Pages "free scanner pages scanned" "" [ISOLATE_FREE] ["compact_free_scanned"];
        FreeIsolated Pages "free scanner pages isolated" "" [ISOLATE_FREE] [];
        Isolated Pages "pages isolated by compaction" "" [ISOLATE_MIGRATE ISOLATE_FREE] ["compact_isolated"];
        AllMigrated Pages "pages migrated for any reason" "" [MIGRATE] ["pgmigrate_success"];
        AllMigrateFailures Pages "pages not migrated for any reason" "" [MIGRATE] ["pgmigrate_fail"];
        Demoted Pages "pages demoted to a lower tier" "" [MIGRATE]
            ["pgdemote_kswapd" "pgdemote_direct" "pgdemote_khugepaged" "pgdemote_proactive"];
        DemotionFailures Pages "pages that could not be demoted" "" [MIGRATE] [];
        Balanced Pages "pages moved by NUMA balancing" "" [MIGRATE] ["numa_pages_migrated"];
        Promoted Pages "of those, promoted to a higher tier" "" [] ["pgpromote_success"];
        KcompactdWakes Events "kcompactd wakeups" "" [KCOMPACTD] ["compact_daemon_wake"];
        TimeCompacting Time "time stalled in compaction" "" [COMPACT_BEGIN COMPACT_END] [];
        TimeKcompactd Time "time kcompactd compacted" "" [COMPACT_BEGIN COMPACT_END] [];
    }
    Memory {
        SwapIns Pages "pages swapped in" "" [] ["pswpin"];
        SwapOuts Pages "pages swapped out" "" [] ["pswpout"];
        SwapReadAhead Pages "pages read ahead from swap" "" [] ["swap_ra"];
        SwapReadAheadHits Pages "of those, used" "" [] ["swap_ra_hit"];
        ZswapIns Pages "pages read from zswap" "" [] ["zswpin"];
        ZswapOuts Pages "pages stored in zswap" "" [] ["zswpout"];
        FileDirtied Pages "file pages dirtied" "" [] ["nr_dirtied"];
        WrittenBack Pages "pages written back, to files and to swap" "" [] ["nr_written"];
        HugeSwapOuts Folios "huge pages swapped out whole" "" [] ["thp_swpout"];
        HugeSwapSplits Folios "huge pages split to be swapped out" "" [] ["thp_swpout_fallback"];
        MajorFaults Events "major faults" "" [] ["pgmajfault"];
        RefaultsAnon Pages "refaults of anonymous pages" "" [] ["workingset_refault_anon"];
        RefaultsFile Pages "refaults of file pages" "" [] ["workingset_refault_file"];
        ActivatedAnon Pages "refaults activated, anonymous" "" [] ["workingset_activate_anon"];
        ActivatedFile Pages "refaults activated, file" "" [] ["workingset_activate_file"];
        RestoredAnon Pages "refaults of the workingset, anonymous" "" [] ["workingset_restore_anon"];
        RestoredFile Pages "refaults of the workingset, file" "" [] ["workingset_restore_file"];
        OomKills Events "processes killed for lack of memory" "" [VICTIM] ["oom_kill"];
    }
}
