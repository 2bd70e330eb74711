//! Lists of the events to enable for each kind of analysis.

use crate::trace::EventName;

macro_rules! events {
    ($(#[$doc:meta])* $name:ident: $($system:literal [$($event:literal)*])*) => {
        $(#[$doc])*
        pub const $name: &[EventName] = &[$($(EventName { system: $system, name: $event },)*)*];
    };
}

events! {
    /// Events for the reclaim table. If a kernel lacks an event, the rows that need the event have a reason instead of
    /// a value.
    RECLAIM_EVENTS:
    "vmscan" [
        "mm_vmscan_direct_reclaim_begin" "mm_vmscan_direct_reclaim_end"
        "mm_vmscan_memcg_reclaim_begin" "mm_vmscan_memcg_reclaim_end"
        "mm_vmscan_memcg_softlimit_reclaim_begin" "mm_vmscan_memcg_softlimit_reclaim_end"
        "mm_vmscan_node_reclaim_begin" "mm_vmscan_node_reclaim_end"
        "mm_vmscan_kswapd_wake" "mm_vmscan_kswapd_sleep" "mm_vmscan_wakeup_kswapd"
        "mm_vmscan_lru_isolate" "mm_vmscan_lru_shrink_inactive" "mm_vmscan_lru_shrink_active"
        "mm_vmscan_write_folio" "mm_vmscan_writepage" "mm_vmscan_throttled" "mm_vmscan_reclaim_pages"
    ]
    "compaction" [
        "mm_compaction_begin" "mm_compaction_end"
        "mm_compaction_isolate_migratepages" "mm_compaction_isolate_freepages"
        "mm_compaction_fast_isolate_freepages" "mm_compaction_migratepages"
        "mm_compaction_try_to_compact_pages" "mm_compaction_suitable" "mm_compaction_deferred"
        "mm_compaction_kcompactd_wake" "mm_compaction_kcompactd_sleep"
    ]
    "migrate" ["mm_migrate_pages"]
    "oom" ["mark_victim"]
}

events! {
    /// Additional events for attributing a task's waits. They occur at every task switch, so tracing them has a cost.
    ATTRIBUTION_EVENTS:
    "sched" ["sched_switch" "sched_wakeup" "sched_wakeup_new" "sched_process_fork" "sched_process_exit"]
    "exceptions" ["page_fault_user"]
    "writeback" ["balance_dirty_pages"]
}

events! {
    /// Events of requests to block devices, and of the bios submitted to them (the I/O to swap is known from bios).
    BLOCK_EVENTS:
    "block" ["block_rq_issue" "block_rq_complete" "block_bio_queue"]
}
