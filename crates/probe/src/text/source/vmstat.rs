//! `/proc/vmstat`: events and amounts of the whole machine, mostly in pages (mm/vmstat.c,
//! include/linux/vm_event_item.h).

use pagetide_system::Syntax;

use super::{Owner, Source, keys};

/// Description of `/proc/vmstat` and its numbers.
pub(super) static SOURCE: Source = Source {
    name: "vmstat",
    of: Owner::Machine,
    files: &[("", "proc/vmstat")],
    syntax: Syntax::KeyValue,
    over_time: &[
        "nr_free_pages",
        "nr_inactive_anon",
        "nr_active_anon",
        "nr_inactive_file",
        "nr_active_file",
        "nr_dirty",
        "nr_writeback",
        "pgfault",
        "pgmajfault",
        "pswpin",
        "pswpout",
        "pgscan_kswapd",
        "pgscan_direct",
        "pgscan_anon",
        "pgscan_file",
        "pgsteal_kswapd",
        "pgsteal_direct",
        "pgsteal_anon",
        "pgsteal_file",
        "workingset_refault_anon",
        "workingset_refault_file",
        "allocstall_normal",
        "allocstall_movable",
        "compact_stall",
        "pgmigrate_success",
    ],
    keys: keys! {
        Gauge Pages "nr_free_pages" "free pages, per-CPU lists not included";
        Gauge Pages "nr_inactive_anon" "anonymous and shared memory on the inactive list (MGLRU: older generations)";
        Gauge Pages "nr_active_anon" "anonymous and shared memory on the active list (MGLRU: younger generations)";
        Gauge Pages "nr_inactive_file" "page cache on the inactive list";
        Gauge Pages "nr_active_file" "page cache on the active list";
        Gauge Pages "nr_unevictable" "pages that cannot be reclaimed, such as locked ones";
        Gauge Pages "nr_mlock" "pages locked by mlock";
        Gauge Pages "nr_anon_pages" "anonymous pages mapped into page tables";
        Gauge Pages "nr_mapped" "file pages mapped into page tables";
        Gauge Pages "nr_file_pages" "page cache, shared memory and swap cache included";
        Gauge Pages "nr_dirty" "file pages waiting to be written";
        Gauge Pages "nr_writeback" "pages being written now";
        Gauge Pages "nr_shmem" "shared memory and tmpfs";
        Gauge Pages "nr_swapcached" "pages that are in memory and still have a swap slot";
        Gauge Pages "nr_slab_reclaimable" "kernel objects that can be shrunk";
        Gauge Pages "nr_slab_unreclaimable" "kernel objects that cannot be shrunk";
        Gauge Pages "nr_isolated_anon" "anonymous pages taken off the lists for reclaim or migration";
        Gauge Pages "nr_isolated_file" "file pages taken off the lists for reclaim or migration";
        Gauge Pages "nr_page_table_pages" "page tables";
        Gauge Pages "nr_zspages" "memory of zsmalloc, where zram and zswap keep compressed pages";
        Gauge Count "nr_anon_transparent_hugepages" "huge pages that back anonymous memory";
        Counter Pages "nr_vmscan_write" "pages that reclaim itself sent to be written";
        Counter Pages "nr_vmscan_immediate_reclaim" "dirty pages marked to be reclaimed as soon as they are written";
        Counter Pages "nr_dirtied" "pages made dirty";
        Counter Pages "nr_written" "pages written";
        Counter Pages "nr_throttled_written" "pages written while reclaim was throttled for it";
        Counter Count "workingset_refault_anon" "evicted anonymous pages that came back";
        Counter Count "workingset_refault_file" "evicted file pages that were read again";
        Counter Count "workingset_activate_anon" "refaulted anonymous pages that went to the active list at once";
        Counter Count "workingset_activate_file" "refaulted file pages that went to the active list at once";
        Counter Count "workingset_restore_anon" "refaulted anonymous pages that had been in the workingset before";
        Counter Count "workingset_restore_file" "refaulted file pages that had been in the workingset before";
        Counter Count "workingset_nodereclaim" "shadow-entry nodes reclaimed";
        Gauge Count "workingset_nodes" "shadow-entry nodes in use";
        Counter Bytes "pgpgin" "read from block devices (the name says pages, the kernel counts KiB)";
        Counter Bytes "pgpgout" "written to block devices (the name says pages, the kernel counts KiB)";
        Counter Pages "pswpin" "pages read from swap";
        Counter Pages "pswpout" "pages written to swap";
        Counter Count "pgfault" "page faults";
        Counter Count "pgmajfault" "page faults that waited for I/O";
        Counter Pages "pgfree" "pages freed";
        Counter Pages "pgactivate" "pages moved to the active list";
        Counter Pages "pgdeactivate" "pages moved to the inactive list";
        Counter Pages "pglazyfree" "pages marked by MADV_FREE";
        Counter Pages "pglazyfreed" "pages marked by MADV_FREE that were reclaimed without being written";
        Counter Pages "pgrefill" "pages scanned on the active list (MGLRU: pages sorted back)";
        Counter Pages "pgsteal_kswapd" "pages reclaimed by kswapd";
        Counter Pages "pgsteal_direct" "pages reclaimed by allocating tasks";
        Counter Pages "pgsteal_khugepaged" "pages reclaimed by khugepaged";
        Counter Pages "pgsteal_proactive" "pages reclaimed on request through memory.reclaim";
        Counter Pages "pgscan_kswapd" "pages scanned by kswapd";
        Counter Pages "pgscan_direct" "pages scanned by allocating tasks";
        Counter Pages "pgscan_khugepaged" "pages scanned by khugepaged";
        Counter Pages "pgscan_proactive" "pages scanned on request through memory.reclaim";
        Counter Count "pgscan_direct_throttle" "direct reclaimers put to sleep because kswapd had no reserve left";
        Counter Pages "pgscan_anon" "anonymous pages scanned, by any reclaimer, memory cgroups included";
        Counter Pages "pgscan_file" "file pages scanned, by any reclaimer, memory cgroups included";
        Counter Pages "pgsteal_anon" "anonymous pages reclaimed, by any reclaimer, memory cgroups included";
        Counter Pages "pgsteal_file" "file pages reclaimed, by any reclaimer, memory cgroups included";
        Counter Pages "pgskip_normal" "pages passed over in the Normal zone because the request could not use them";
        Counter Pages "slabs_scanned" "slab objects scanned";
        Counter Count "kswapd_inodesteal" "inode pages freed by kswapd's pruning";
        Counter Count "kswapd_low_wmark_hit_quickly" "kswapd woken again soon because the low watermark was hit";
        Counter Count "kswapd_high_wmark_hit_quickly" "kswapd woken again soon because the high watermark was hit";
        Counter Count "pageoutrun" "times kswapd started to balance a node";
        Counter Count "allocstall_dma" "direct reclaims for zone DMA";
        Counter Count "allocstall_dma32" "direct reclaims for zone DMA32";
        Counter Count "allocstall_normal" "direct reclaims for zone Normal";
        Counter Count "allocstall_movable" "direct reclaims for zone Movable (user memory)";
        Counter Count "allocstall_device" "direct reclaims for device memory";
        Counter Count "drop_pagecache" "times the page cache was dropped by hand";
        Counter Count "drop_slab" "times slabs were dropped by hand";
        Counter Count "oom_kill" "processes killed for lack of memory";
        Counter Pages "pgrotated" "written pages moved to the tail of the inactive list to be reclaimed next";
        Counter Pages "pgdemote_kswapd" "pages that kswapd moved to a lower tier";
        Counter Pages "pgdemote_direct" "pages that allocating tasks moved to a lower tier";
        Counter Pages "pgdemote_khugepaged" "pages that khugepaged moved to a lower tier";
        Counter Pages "pgdemote_proactive" "pages moved to a lower tier on request through memory.reclaim";
        Counter Pages "pgpromote_success" "pages moved from a lower tier to a higher one";
        Counter Pages "pgpromote_candidate" "pages of a lower tier found hot enough for a higher one";
        Counter Count "numa_pte_updates" "page-table entries that NUMA balancing made fault at the next access";
        Counter Count "numa_hint_faults" "faults at such entries";
        Counter Count "numa_hint_faults_local" "of those, faults on pages of the CPU's own node";
        Counter Pages "numa_pages_migrated" "pages that NUMA balancing moved";
        Counter Pages "pgmigrate_success" "pages migrated";
        Counter Pages "pgmigrate_fail" "pages that could not be migrated";
        Counter Count "thp_migration_success" "huge pages migrated whole";
        Counter Count "thp_migration_fail" "huge pages that could not be migrated";
        Counter Count "thp_migration_split" "huge pages split because they could not be migrated whole";
        Counter Pages "compact_migrate_scanned" "pages looked at by compaction's migration scanner";
        Counter Pages "compact_free_scanned" "pages looked at by compaction's free scanner";
        Counter Pages "compact_isolated" "pages isolated by compaction, free ones included";
        Counter Count "compact_stall" "allocations that had to compact memory";
        Counter Count "compact_fail" "of those, allocations that still failed";
        Counter Count "compact_success" "of those, allocations that succeeded";
        Counter Count "compact_daemon_wake" "times kcompactd was woken";
        Counter Pages "compact_daemon_migrate_scanned" "pages looked at by kcompactd's migration scanner";
        Counter Pages "compact_daemon_free_scanned" "pages looked at by kcompactd's free scanner";
        Counter Count "htlb_buddy_alloc_success" "hugetlb pages got from the page allocator";
        Counter Count "htlb_buddy_alloc_fail" "hugetlb pages the page allocator could not give";
        Counter Count "unevictable_pgs_culled" "pages moved to the unevictable list by reclaim";
        Counter Count "thp_fault_alloc" "huge pages given at a fault";
        Counter Count "thp_fault_fallback" "faults that wanted a huge page and got small ones";
        Counter Count "thp_collapse_alloc" "huge pages allocated to collapse small ones into";
        Counter Count "thp_collapse_alloc_failed" "collapses that got no huge page";
        Counter Count "thp_split_page" "huge pages split";
        Counter Count "thp_swpout" "huge pages swapped out whole";
        Counter Count "thp_swpout_fallback" "huge pages split to be swapped out";
        Counter Count "thp_swpin" "huge pages swapped in whole";
        Counter Pages "swap_ra" "pages read ahead from swap";
        Counter Pages "swap_ra_hit" "pages read ahead from swap that were then used";
        Counter Pages "swpin_zero" "pages of zeros recreated without a read";
        Counter Pages "swpout_zero" "pages of zeros that were not written";
        Counter Pages "zswpin" "pages read back from zswap";
        Counter Pages "zswpout" "pages taken up by zswap";
        Counter Pages "zswpwb" "pages zswap wrote back to the swap device";
        Counter Count "ksm_swpin_copy" "merged pages copied at swap-in";
        Counter Count "balloon_inflate" "pages the balloon took";
        Counter Count "balloon_deflate" "pages the balloon gave back";
        Gauge Pages "nr_unstable" "always 0 since 5.9";
    },
};
