//! Meaning of each row of the reclaim table, for tooltips.

use pagetide_probe::meaning::RowId;

/// Returns the meaning of a row as a sentence.
#[allow(
    clippy::too_many_lines,
    reason = "a table, and a match so that no row is forgotten"
)]
pub(crate) const fn meaning(row: RowId) -> &'static str {
    match row {
        RowId::DirectReclaims => {
            "Times that a process had to reclaim pages itself before it got memory."
        }
        RowId::DirectScanned => "Pages that processes looked at while they reclaimed.",
        RowId::DirectReclaimed => {
            "Pages that processes freed while they reclaimed; far fewer than scanned means wasted work."
        }
        RowId::DirectWriteFileAsync => {
            "File pages whose write processes started while they reclaimed, without waiting."
        }
        RowId::DirectWriteAnonAsync => {
            "Anonymous pages that processes sent to swap while they reclaimed, without waiting."
        }
        RowId::DirectWriteFileSync => {
            "File pages that processes wrote and waited for while they reclaimed."
        }
        RowId::DirectWriteAnonSync => {
            "Anonymous pages that processes wrote to swap and waited for: reclaim to zram is such."
        }
        RowId::WakeKswapdRequests => {
            "Times that an allocation found free memory low and asked for kswapd."
        }
        RowId::KswapdWakeups => "Times that kswapd, which reclaims in the background, began.",
        RowId::KswapdScanned => "Pages that kswapd looked at.",
        RowId::KswapdReclaimed => "Pages that kswapd freed, which no process had to wait for.",
        RowId::KswapdWriteFileAsync => "File pages whose write kswapd started, without waiting.",
        RowId::KswapdWriteAnonAsync => "Anonymous pages that kswapd sent to swap, without waiting.",
        RowId::KswapdWriteFileSync => "File pages that kswapd wrote and waited for.",
        RowId::KswapdWriteAnonSync => "Anonymous pages that kswapd wrote to swap and waited for.",
        RowId::TimeStalled => {
            "Time that processes spent in direct reclaim, all processes together."
        }
        RowId::TimeKswapdAwake => {
            "Time from kswapd's wakeups to its going to sleep; it need not run all of it."
        }
        RowId::TotalScanned => "Pages that direct reclaim and kswapd looked at.",
        RowId::TotalReclaimed => "Pages that direct reclaim and kswapd freed.",
        RowId::ReclaimedOfScanned => {
            "How many of the pages looked at were freed: near 100 %, reclaim finds cold pages at once."
        }
        RowId::WrittenOfScanned => {
            "How many of the pages looked at had to be written before they could be freed."
        }
        RowId::FileWrittenOfScanned => {
            "How many of the pages looked at were dirty file pages that reclaim wrote itself."
        }
        RowId::TimeInDirectReclaim => "Share of the workload's time that went into direct reclaim.",
        RowId::TimeKswapdAwakeShare => "Share of the elapsed time in which kswapd was awake.",
        RowId::MemcgReclaims => {
            "Times that a process reclaimed because its memory cgroup was full."
        }
        RowId::MemcgScanned => "Pages looked at because a memory cgroup was full.",
        RowId::MemcgReclaimed => "Pages freed because a memory cgroup was full.",
        RowId::MemcgWriteFile => "File pages written because a memory cgroup was full.",
        RowId::MemcgWriteAnon => "Anonymous pages sent to swap because a memory cgroup was full.",
        RowId::TimeStalledMemcg => {
            "Time that processes spent reclaiming because their memory cgroup was full."
        }
        RowId::SoftlimitReclaims => "Reclaims from cgroups above their soft limit.",
        RowId::AllScanned => "Pages that all kinds of reclaim looked at.",
        RowId::AllReclaimed => "Pages that all kinds of reclaim freed.",
        RowId::AllWritten => "Pages that all kinds of reclaim wrote.",
        RowId::AllFoliosWritten => {
            "Folios that the pages written were: with large folios fewer than pages."
        }
        RowId::UnknownScanned => {
            "Pages looked at where no begin of a reclaim was traced, such as one that began before tracing did."
        }
        RowId::OnRequestReclaimed => "Pages freed because a program asked for it.",
        RowId::TimeThrottled => {
            "Time that reclaim was made to wait, for writes or for others that isolated too many pages."
        }
        RowId::NodeReclaims => "Reclaims from one NUMA node before memory of another is taken.",
        RowId::CompactionStalls => {
            "Times that an allocation compacted memory itself to get a larger block."
        }
        RowId::CompactionSuccess => "Compactions after which the block was there.",
        RowId::CompactionFailures => "Compactions after which it was not.",
        RowId::PagesMigrated => "Pages that compaction moved.",
        RowId::MigrateFailures => "Pages that compaction tried to move and could not.",
        RowId::MigrateScanned => "Pages that compaction looked at for something to move.",
        RowId::MigrateIsolated => "Pages that it took from the LRU lists to move them.",
        RowId::FreeScanned => "Pages that compaction looked at for free places to move to.",
        RowId::FreeIsolated => "Free pages that it took as places to move to.",
        RowId::Isolated => "Pages that compaction took, to move and to move to.",
        RowId::AllMigrated => {
            "Pages moved for whatever reason: compaction, NUMA balancing, offlining."
        }
        RowId::AllMigrateFailures => "Pages that could not be moved, for whatever reason.",
        RowId::Demoted => {
            "Pages that reclaim moved to a slower memory tier instead of freeing them."
        }
        RowId::DemotionFailures => {
            "Pages that reclaim tried to move to a slower tier and could not, mostly because it was full."
        }
        RowId::Balanced => {
            "Pages that the kernel moved to the node or tier from which they are used."
        }
        RowId::Promoted => "Pages moved to a faster tier because they are used often.",
        RowId::KcompactdWakes => "Times that kcompactd, which compacts in the background, began.",
        RowId::TimeCompacting => "Time that processes spent compacting memory themselves.",
        RowId::TimeKcompactd => "Time that kcompactd spent compacting.",
        RowId::SwapIns => "Pages read from swap.",
        RowId::SwapOuts => "Pages written to swap.",
        RowId::SwapReadAhead => {
            "Pages read from swap because they lie beside one that was asked for."
        }
        RowId::SwapReadAheadHits => {
            "Pages read ahead that were then used; the others were read in vain."
        }
        RowId::ZswapIns => "Pages that came back from compressed memory before swap.",
        RowId::ZswapOuts => "Pages that were compressed into memory before swap.",
        RowId::FileDirtied => "File pages that were changed and must be written some time.",
        RowId::WrittenBack => "Pages whose write ended or began, by whomever.",
        RowId::HugeSwapOuts => "Huge pages written to swap in one piece.",
        RowId::HugeSwapSplits => {
            "Huge pages that had to be split because swap had no room in one piece."
        }
        RowId::MajorFaults => "Page faults that waited for a page to be read.",
        RowId::RefaultsAnon => {
            "Anonymous pages that were evicted and came back: what reclaim should have kept."
        }
        RowId::RefaultsFile => {
            "File pages that were evicted and came back: what reclaim should have kept."
        }
        RowId::ActivatedAnon => {
            "Anonymous refaults so soon after eviction that the page counts as in use."
        }
        RowId::ActivatedFile => {
            "File refaults so soon after eviction that the page counts as in use."
        }
        RowId::RestoredAnon => {
            "Anonymous refaults of pages that had counted as in use when they were evicted."
        }
        RowId::RestoredFile => {
            "File refaults of pages that had counted as in use when they were evicted."
        }
        RowId::OomKills => {
            "Processes that the kernel killed because nothing could be reclaimed any more."
        }
    }
}
