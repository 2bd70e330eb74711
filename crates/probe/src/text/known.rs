//! What the counters mean: one table of the known keys, their unit, whether they only grow, and one sentence each.
//!
//! Sources: the kernel's mm/vmstat.c (`vmstat_text`), include/linux/vm_event_item.h, fs/proc/meminfo.c,
//! Documentation/admin-guide/{cgroup-v2.rst,cgroup-v1/memory.rst,blockdev/zram.rst}, Documentation/filesystems/proc.rst.
//! Keys that are not here are kept in every record all the same; they only lack an explanation.

use serde::Serialize;

use super::keyed::KeyedSource;

/// What a counter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Base pages.
    Pages,
    /// Bytes.
    Bytes,
    /// Units of 1,024 bytes.
    Kib,
    /// Occurrences.
    Events,
    /// Things of a kind the meaning names: huge pages, devices, ….
    Items,
}

impl From<Unit> for pagetide_quantity::Unit {
    /// The unit of the value as it is read: what the kernel prints in KiB is turned into bytes.
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::Pages => Self::Pages,
            Unit::Bytes | Unit::Kib => Self::Bytes,
            Unit::Events | Unit::Items => Self::Count,
        }
    }
}

/// Whether a counter only grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Counts since boot (or since the group was made); take differences.
    Counter,
    /// An amount at the moment of reading; a difference is a change of level.
    Gauge,
}

/// A key that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Known {
    /// Where it stands.
    pub source: KeyedSource,
    /// Its name there.
    pub key: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// Whether it only grows.
    pub kind: Kind,
    /// One sentence.
    pub meaning: &'static str,
}

/// Looks a key up.
pub fn known(source: KeyedSource, key: &str) -> Option<&'static Known> {
    // Version 1 groups repeat every key for the whole subtree.
    let plain = match source {
        KeyedSource::MemoryStat => key.strip_prefix("total_").unwrap_or(key),
        _ => key,
    };
    KNOWN
        .iter()
        .find(|known| known.source == source && known.key == plain)
}

macro_rules! known {
    ($($source:ident { $($kind:ident $unit:ident $key:literal $meaning:literal;)* })*) => {
        /// All known keys.
        pub static KNOWN: &[Known] = &[$($(Known {
            source: KeyedSource::$source,
            key: $key,
            unit: Unit::$unit,
            kind: Kind::$kind,
            meaning: $meaning,
        },)*)*];
    };
}

known! {
    Vmstat {
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
        Gauge Items "nr_anon_transparent_hugepages" "huge pages that back anonymous memory";
        Counter Pages "nr_vmscan_write" "pages that reclaim itself sent to be written";
        Counter Pages "nr_vmscan_immediate_reclaim" "dirty pages marked to be reclaimed as soon as they are written";
        Counter Pages "nr_dirtied" "pages made dirty";
        Counter Pages "nr_written" "pages written";
        Counter Pages "nr_throttled_written" "pages written while reclaim was throttled for it";
        Counter Events "workingset_refault_anon" "evicted anonymous pages that came back";
        Counter Events "workingset_refault_file" "evicted file pages that were read again";
        Counter Events "workingset_activate_anon" "refaulted anonymous pages that went to the active list at once";
        Counter Events "workingset_activate_file" "refaulted file pages that went to the active list at once";
        Counter Events "workingset_restore_anon" "refaulted anonymous pages that had been in the workingset before";
        Counter Events "workingset_restore_file" "refaulted file pages that had been in the workingset before";
        Counter Events "workingset_nodereclaim" "shadow-entry nodes reclaimed";
        Gauge Items "workingset_nodes" "shadow-entry nodes in use";
        Counter Kib "pgpgin" "KiB read from block devices (the name says pages, the kernel counts KiB)";
        Counter Kib "pgpgout" "KiB written to block devices (the name says pages, the kernel counts KiB)";
        Counter Pages "pswpin" "pages read from swap";
        Counter Pages "pswpout" "pages written to swap";
        Counter Events "pgfault" "page faults";
        Counter Events "pgmajfault" "page faults that waited for I/O";
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
        Counter Events "pgscan_direct_throttle" "direct reclaimers put to sleep because kswapd had no reserve left";
        Counter Pages "pgscan_anon" "anonymous pages scanned, by any reclaimer, memory cgroups included";
        Counter Pages "pgscan_file" "file pages scanned, by any reclaimer, memory cgroups included";
        Counter Pages "pgsteal_anon" "anonymous pages reclaimed, by any reclaimer, memory cgroups included";
        Counter Pages "pgsteal_file" "file pages reclaimed, by any reclaimer, memory cgroups included";
        Counter Pages "pgskip_normal" "pages passed over in the Normal zone because the request could not use them";
        Counter Pages "slabs_scanned" "slab objects scanned";
        Counter Events "kswapd_inodesteal" "inode pages freed by kswapd's pruning";
        Counter Events "kswapd_low_wmark_hit_quickly" "kswapd woken again soon because the low watermark was hit";
        Counter Events "kswapd_high_wmark_hit_quickly" "kswapd woken again soon because the high watermark was hit";
        Counter Events "pageoutrun" "times kswapd started to balance a node";
        Counter Events "allocstall_dma" "direct reclaims for zone DMA";
        Counter Events "allocstall_dma32" "direct reclaims for zone DMA32";
        Counter Events "allocstall_normal" "direct reclaims for zone Normal";
        Counter Events "allocstall_movable" "direct reclaims for zone Movable (user memory)";
        Counter Events "allocstall_device" "direct reclaims for device memory";
        Counter Events "drop_pagecache" "times the page cache was dropped by hand";
        Counter Events "drop_slab" "times slabs were dropped by hand";
        Counter Events "oom_kill" "processes killed for lack of memory";
        Counter Pages "pgrotated" "written pages moved to the tail of the inactive list to be reclaimed next";
        Counter Pages "pgmigrate_success" "pages migrated";
        Counter Pages "pgmigrate_fail" "pages that could not be migrated";
        Counter Items "thp_migration_success" "huge pages migrated whole";
        Counter Items "thp_migration_fail" "huge pages that could not be migrated";
        Counter Items "thp_migration_split" "huge pages split because they could not be migrated whole";
        Counter Pages "compact_migrate_scanned" "pages looked at by compaction's migration scanner";
        Counter Pages "compact_free_scanned" "pages looked at by compaction's free scanner";
        Counter Pages "compact_isolated" "pages isolated by compaction, free ones included";
        Counter Events "compact_stall" "allocations that had to compact memory";
        Counter Events "compact_fail" "of those, allocations that still failed";
        Counter Events "compact_success" "of those, allocations that succeeded";
        Counter Events "compact_daemon_wake" "times kcompactd was woken";
        Counter Pages "compact_daemon_migrate_scanned" "pages looked at by kcompactd's migration scanner";
        Counter Pages "compact_daemon_free_scanned" "pages looked at by kcompactd's free scanner";
        Counter Events "htlb_buddy_alloc_success" "hugetlb pages got from the page allocator";
        Counter Events "htlb_buddy_alloc_fail" "hugetlb pages the page allocator could not give";
        Counter Events "unevictable_pgs_culled" "pages moved to the unevictable list by reclaim";
        Counter Events "thp_fault_alloc" "huge pages given at a fault";
        Counter Events "thp_fault_fallback" "faults that wanted a huge page and got small ones";
        Counter Events "thp_collapse_alloc" "huge pages allocated to collapse small ones into";
        Counter Events "thp_collapse_alloc_failed" "collapses that got no huge page";
        Counter Events "thp_split_page" "huge pages split";
        Counter Events "thp_swpout" "huge pages swapped out whole";
        Counter Events "thp_swpout_fallback" "huge pages split to be swapped out";
        Counter Events "thp_swpin" "huge pages swapped in whole";
        Counter Pages "swap_ra" "pages read ahead from swap";
        Counter Pages "swap_ra_hit" "pages read ahead from swap that were then used";
        Counter Pages "swpin_zero" "pages of zeros recreated without a read";
        Counter Pages "swpout_zero" "pages of zeros that were not written";
        Counter Pages "zswpin" "pages read back from zswap";
        Counter Pages "zswpout" "pages taken up by zswap";
        Counter Pages "zswpwb" "pages zswap wrote back to the swap device";
        Counter Events "ksm_swpin_copy" "merged pages copied at swap-in";
        Counter Events "balloon_inflate" "pages the balloon took";
        Counter Events "balloon_deflate" "pages the balloon gave back";
        Gauge Pages "nr_unstable" "always 0 since 5.9";
    }
    Meminfo {
        Gauge Bytes "MemTotal" "memory the page allocator manages";
        Gauge Bytes "MemFree" "free memory";
        Gauge Bytes "MemAvailable" "the kernel's estimate of what can be had without swapping";
        Gauge Bytes "Buffers" "page cache of block devices";
        Gauge Bytes "Cached" "page cache and shared memory, swap cache not included";
        Gauge Bytes "SwapCached" "memory that still has a swap slot";
        Gauge Bytes "Active" "memory on active lists";
        Gauge Bytes "Inactive" "memory on inactive lists";
        Gauge Bytes "SwapTotal" "capacity of all swap areas";
        Gauge Bytes "SwapFree" "what of it is free";
        Gauge Bytes "Zswap" "compressed memory zswap uses";
        Gauge Bytes "Zswapped" "memory zswap holds, before compression";
        Gauge Bytes "Dirty" "file memory waiting to be written";
        Gauge Bytes "Writeback" "memory being written";
        Gauge Bytes "AnonPages" "anonymous memory in page tables";
        Gauge Bytes "Mapped" "file memory in page tables";
        Gauge Bytes "Shmem" "shared memory and tmpfs";
        Gauge Bytes "KReclaimable" "kernel memory that can be reclaimed";
        Gauge Bytes "Slab" "kernel objects";
        Gauge Bytes "SReclaimable" "kernel objects that can be shrunk";
        Gauge Bytes "SUnreclaim" "kernel objects that cannot be shrunk";
        Gauge Bytes "KernelStack" "stacks of tasks in the kernel";
        Gauge Bytes "PageTables" "page tables";
        Gauge Bytes "CommitLimit" "what may be promised under strict overcommit";
        Gauge Bytes "Committed_AS" "what is promised";
        Gauge Bytes "AnonHugePages" "anonymous memory in huge pages";
        Gauge Items "HugePages_Total" "huge pages in the pool";
        Gauge Items "HugePages_Free" "of those, free ones";
        Gauge Bytes "Hugepagesize" "size of the default huge page";
        Gauge Bytes "Hugetlb" "memory in huge-page pools of all sizes";
    }
    MemoryStat {
        Gauge Bytes "anon" "anonymous memory";
        Gauge Bytes "file" "page cache, shared memory included";
        Gauge Bytes "cache" "page cache, shared memory included (version 1)";
        Gauge Bytes "rss" "anonymous memory, huge pages included (version 1)";
        Gauge Bytes "rss_huge" "anonymous huge pages (version 1)";
        Gauge Bytes "kernel" "kernel memory";
        Gauge Bytes "shmem" "shared memory";
        Gauge Bytes "mapped_file" "file memory in page tables (version 1)";
        Gauge Bytes "file_mapped" "file memory in page tables";
        Gauge Bytes "dirty" "file memory waiting to be written (version 1)";
        Gauge Bytes "file_dirty" "file memory waiting to be written";
        Gauge Bytes "writeback" "memory being written (version 1)";
        Gauge Bytes "file_writeback" "memory being written";
        Gauge Bytes "swap" "swap in use (version 1)";
        Gauge Bytes "swapcached" "memory that still has a swap slot";
        Gauge Bytes "inactive_anon" "anonymous memory on the inactive list";
        Gauge Bytes "active_anon" "anonymous memory on the active list";
        Gauge Bytes "inactive_file" "page cache on the inactive list";
        Gauge Bytes "active_file" "page cache on the active list";
        Gauge Bytes "unevictable" "memory that cannot be reclaimed";
        Gauge Bytes "zswap" "compressed memory in zswap";
        Gauge Bytes "zswapped" "memory held by zswap, before compression";
        Gauge Bytes "hierarchical_memory_limit" "the limit that holds, ancestors included (version 1)";
        Gauge Bytes "hierarchical_memsw_limit" "the limit of memory and swap that holds (version 1)";
        Counter Events "pgpgin" "charges (version 1)";
        Counter Events "pgpgout" "uncharges (version 1)";
        Counter Events "pgfault" "page faults";
        Counter Events "pgmajfault" "page faults that waited for I/O";
        Counter Pages "pgscan" "pages scanned";
        Counter Pages "pgsteal" "pages reclaimed";
        Counter Pages "pgscan_kswapd" "pages scanned by kswapd";
        Counter Pages "pgscan_direct" "pages scanned by the group's own tasks";
        Counter Pages "pgscan_khugepaged" "pages scanned by khugepaged";
        Counter Pages "pgscan_proactive" "pages scanned on request through memory.reclaim";
        Counter Pages "pgsteal_kswapd" "pages reclaimed by kswapd";
        Counter Pages "pgsteal_direct" "pages reclaimed by the group's own tasks";
        Counter Pages "pgsteal_khugepaged" "pages reclaimed by khugepaged";
        Counter Pages "pgsteal_proactive" "pages reclaimed on request through memory.reclaim";
        Counter Pages "pgrefill" "pages scanned on the active list";
        Counter Pages "pgactivate" "pages moved to the active list";
        Counter Pages "pgdeactivate" "pages moved to the inactive list";
        Counter Events "workingset_refault_anon" "evicted anonymous pages that came back";
        Counter Events "workingset_refault_file" "evicted file pages that were read again";
        Counter Events "workingset_activate_anon" "refaulted anonymous pages that went to the active list at once";
        Counter Events "workingset_activate_file" "refaulted file pages that went to the active list at once";
        Counter Events "workingset_restore_anon" "refaulted anonymous pages that had been in the workingset before";
        Counter Events "workingset_restore_file" "refaulted file pages that had been in the workingset before";
        Counter Pages "zswpin" "pages read back from zswap";
        Counter Pages "zswpout" "pages taken up by zswap";
        Counter Pages "zswpwb" "pages zswap wrote back";
        Counter Events "thp_fault_alloc" "huge pages given at a fault";
        Counter Events "thp_collapse_alloc" "huge pages allocated to collapse small ones into";
    }
    MemoryEvents {
        Counter Events "low" "reclaims of the group although below its low protection";
        Counter Events "high" "tasks throttled above the high limit";
        Counter Events "max" "charges that hit the limit";
        Counter Events "oom" "times the group ran out of memory";
        Counter Events "oom_kill" "processes of the group killed for lack of memory";
        Counter Events "oom_group_kill" "times the whole group was killed";
    }
    ZramMmStat {
        Gauge Bytes "orig_data_size" "data stored, before compression";
        Gauge Bytes "compr_data_size" "data stored, compressed";
        Gauge Bytes "mem_used_total" "memory used, the allocator's overhead included";
        Gauge Bytes "mem_limit" "the most it may use; 0 is no limit";
        Gauge Bytes "mem_used_max" "the most it has used";
        Gauge Pages "same_pages" "pages of one repeated word, stored without memory";
        Counter Pages "pages_compacted" "pages freed by compacting the store";
        Gauge Pages "huge_pages" "pages that do not compress, now";
        Counter Pages "huge_pages_since" "pages that did not compress, since the device was set up";
    }
    ZramIoStat {
        Counter Events "failed_reads" "reads that failed";
        Counter Events "failed_writes" "writes that failed, for lack of memory mostly";
        Counter Events "invalid_io" "requests not aligned to pages";
        Counter Events "notify_free" "slots freed because swap no longer needs them";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_stands_twice() {
        for (at, one) in KNOWN.iter().enumerate() {
            let twin = KNOWN[at + 1..]
                .iter()
                .find(|other| other.source == one.source && other.key == one.key);
            assert_eq!(twin, None);
        }
    }

    #[test]
    fn a_version_1_total_means_what_its_part_means() {
        let total = known(KeyedSource::MemoryStat, "total_pgfault").unwrap();
        assert_eq!(total.key, "pgfault");
        assert_eq!(known(KeyedSource::Vmstat, "a_key_of_tomorrow"), None);
    }
}
