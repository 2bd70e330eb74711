//! Sums of events by reclaimer, by task and by memory cgroup.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::event::{Event, Reclaimer, TraceEvent};
use super::pairs::{PairKind, Pairs};
use crate::trace::TraceMeta;
use pagetide_quantity::{Histogram, Nanos};

/// Number of 512-byte sectors in a page.
pub(super) const SECTORS_A_PAGE: u64 = 8;

/// Reason number of migrations by which reclaim moves pages to a lower tier. Source: kernel
/// `include/linux/migrate_mode.h`, `MR_DEMOTION`.
const DEMOTION: u64 = 8;
/// Reason number of migrations by NUMA balancing: `MR_NUMA_MISPLACED`.
const BALANCING: u64 = 5;

/// Sums over the events of one kind of reclaimer, in pages unless stated otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReclaimSums {
    /// Number of reclaims begun.
    pub reclaims: u64,
    /// Pages reclaimed according to the end events of reclaim; with slab pages (in memory cgroups only before 6.4).
    pub reclaimed_by_end: u64,
    /// Number of batches isolated from inactive lists or old generations.
    pub isolations: u64,
    /// Number of pages scanned for these batches, including pages skipped because of their zone.
    pub scanned: u64,
    /// Number of pages isolated in these batches.
    pub taken: u64,
    /// Number of pages scanned on active lists.
    pub active_scanned: u64,
    /// Number of batches from inactive lists or old generations that were processed.
    pub batches: u64,
    /// Number of pages freed from these batches.
    pub reclaimed: u64,
    /// Number of pages submitted for writing: file asynchronous, anonymous asynchronous, file synchronous, anonymous
    /// synchronous. An anonymous folio counts with all its pages, whose number is known from its I/O, or as one page
    /// if its I/O was not traced. A file folio counts as one page.
    pub written: [u64; 4],
    /// Number of folios submitted for writing.
    pub folios_written: u64,
    /// Number of written anonymous folios of unknown size, because their I/O was not traced.
    pub folios_unsized: u64,
    /// Number of times that the reclaimer was throttled.
    pub throttles: u64,
    /// Total time for which the reclaimer was throttled.
    pub throttled: Nanos,
}

impl ReclaimSums {
    /// Returns the number of pages submitted for writing: file and anonymous, asynchronous and synchronous.
    pub fn written_all(&self) -> u64 {
        self.written.iter().sum()
    }

    /// Returns the number of file pages submitted for writing.
    pub fn written_file(&self) -> u64 {
        self.written[0] + self.written[2]
    }

    /// Returns the number of anonymous pages submitted for writing.
    pub fn written_anon(&self) -> u64 {
        self.written[1] + self.written[3]
    }
}

/// Sums over the events of compaction, in pages unless stated otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// Number of allocations that requested compaction.
    pub attempts: u64,
    /// Number of allocations for which a zone was compacted or deferred, or already met its watermark.
    pub stalls: u64,
    /// Number of allocations for which compaction found or made a free block.
    pub successes: u64,
    /// Number of times that compaction of a zone was deferred.
    pub deferred: u64,
    /// Pages scanned by the migration scanner.
    pub migrate_scanned: u64,
    /// Pages isolated by the migration scanner.
    pub migrate_isolated: u64,
    /// Pages scanned by the free scanner.
    pub free_scanned: u64,
    /// Pages isolated by the free scanner.
    pub free_isolated: u64,
    /// Pages migrated by compaction.
    pub migrated: u64,
    /// Pages that compaction tried but failed to migrate.
    pub failed: u64,
    /// Pages migrated, over migrations of all kinds (as `pgmigrate_success`).
    pub all_migrated: u64,
    /// Pages that failed to migrate, over migrations of all kinds (as `pgmigrate_fail`).
    pub all_failed: u64,
    /// Number of pages moved to a lower memory tier instead of being reclaimed.
    pub demoted: u64,
    /// Pages that could not be moved to a lower memory tier.
    pub not_demoted: u64,
    /// Number of pages that NUMA balancing moved, including those moved to a higher memory tier.
    pub balanced: u64,
    /// Number of times kcompactd started to work.
    pub kcompactd_wakes: u64,
    /// Duration of compaction of one zone in any other task (mostly direct compaction), in nanoseconds.
    pub direct: Histogram,
    /// Duration of compaction of one zone in kcompactd, in nanoseconds.
    pub daemon: Histogram,
}

/// Reclaim by one task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReclaim {
    /// Thread ID of the task.
    pub pid: u32,
    /// Name of the task; empty if unknown.
    pub name: String,
    /// Number of reclaims of any kind by the task.
    pub reclaims: u64,
    /// Time that the task spent in reclaim. Nested reclaims are counted once.
    pub stalled: Nanos,
    /// Pages scanned by the task.
    pub scanned: u64,
    /// Pages freed by the task.
    pub reclaimed: u64,
}

/// Reclaim for one memory cgroup, on kernels whose events contain its ID.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemcgReclaim {
    /// Number of reclaims for the memory cgroup.
    pub reclaims: u64,
    /// Time that tasks spent in reclaim for the memory cgroup.
    pub stalled: Nanos,
    /// Pages reclaimed for the memory cgroup.
    pub reclaimed: u64,
}

/// State of the compaction that one allocation requested.
#[derive(Debug, Clone, Copy, Default)]
struct Attempt {
    /// True if at least one zone was compacted or deferred.
    worked: bool,
    skipped: bool,
    success: bool,
}

/// Sums up the events of reclaim and compaction. Memory use depends on the number of tasks that reclaim, not on the
/// number of events.
#[derive(Debug, Clone, Default)]
pub struct ReclaimObserver {
    pub(super) sums: [ReclaimSums; Reclaimer::ALL.len()],
    pub(super) compaction: Compaction,
    pub(super) pairs: Pairs,
    pub(super) tasks: HashMap<u32, TaskReclaim>,
    pub(super) memcgs: BTreeMap<u64, MemcgReclaim>,
    pub(super) wake_requests: u64,
    pub(super) kswapd_wakeups: u64,
    pub(super) kswapd_rewakeups: u64,
    pub(super) kswapd_awake: Nanos,
    pub(super) kswapd_awakes: Histogram,
    pub(super) on_request: ReclaimSums,
    pub(super) oom_victims: u64,
    /// Sectors read from swap devices, and sectors written to them.
    pub(super) swap_sectors: [u64; 2],
    pub(super) swap_devices: Vec<u64>,
    /// Sectors that each task has submitted to swap devices for its current folio.
    handed: HashMap<u32, u64>,
    pub(super) last: u64,
    kswapds: HashMap<u32, Option<u64>>,
    kcompactds: Vec<u32>,
    open_memcg: HashMap<u32, u64>,
    attempts: HashMap<u32, Attempt>,
}

impl ReclaimObserver {
    /// Creates an observer that knows the kswapd and kcompactd tasks named in the trace.
    pub fn new(meta: &TraceMeta) -> Self {
        let mut observer = Self {
            pairs: Pairs::new(),
            swap_devices: meta.swap_devices.clone(),
            ..Self::default()
        };
        for (pid, name) in &meta.tasks {
            if name.starts_with("kswapd") {
                observer.kswapds.insert(*pid, None);
            } else if name.starts_with("kcompactd") {
                observer.kcompactds.push(*pid);
            }
        }
        observer
    }

    /// Returns the kind of reclaim in which a task is: of its innermost begin event, else kswapd's or unknown.
    fn reclaimer(&self, pid: u32) -> Reclaimer {
        match self.pairs.reclaimer(pid) {
            Some(by) => by,
            None if self.kswapds.contains_key(&pid) => Reclaimer::Kswapd,
            None => Reclaimer::Unknown,
        }
    }

    fn sums(&mut self, pid: u32) -> &mut ReclaimSums {
        let by = self.reclaimer(pid);
        &mut self.sums[by.index()]
    }

    fn task(&mut self, pid: u32) -> &mut TaskReclaim {
        self.tasks.entry(pid).or_insert_with(|| TaskReclaim {
            pid,
            ..TaskReclaim::default()
        })
    }

    /// Adds the next event. Events must be added in order of time.
    pub fn observe(&mut self, traced: &TraceEvent) {
        let TraceEvent { time, pid, .. } = *traced;
        self.last = self.last.max(time);
        match traced.event {
            Event::ReclaimBegin { by, memcg, .. } => {
                self.sums[by.index()].reclaims += 1;
                self.task(pid).reclaims += 1;
                self.pairs.begin(pid, PairKind::Reclaim(by), time);
                if let Some(memcg) = memcg.filter(|_| by == Reclaimer::Memcg) {
                    self.memcgs.entry(memcg).or_default().reclaims += 1;
                    self.open_memcg.insert(pid, memcg);
                }
            }
            Event::ReclaimEnd { by, reclaimed } => self.reclaim_ends(pid, by, reclaimed, time),
            Event::Isolate {
                scanned,
                taken,
                lru,
            } => {
                // A batch begins: I/O that the task submitted to swap before does not belong to a folio of this batch.
                self.handed.remove(&pid);
                let sums = self.sums(pid);
                if lru & 1 == 1 {
                    grow(&mut sums.active_scanned, scanned);
                } else {
                    sums.isolations += 1;
                    grow(&mut sums.scanned, scanned);
                    grow(&mut sums.taken, taken);
                    grow(&mut self.task(pid).scanned, scanned);
                }
            }
            Event::ShrinkInactive { reclaimed, .. } => {
                let sums = self.sums(pid);
                sums.batches += 1;
                grow(&mut sums.reclaimed, reclaimed);
                grow(&mut self.task(pid).reclaimed, reclaimed);
            }
            Event::WriteFolio { flags } => self.folio_written(pid, flags),
            Event::Throttled { microseconds } => {
                let sums = self.sums(pid);
                sums.throttles += 1;
                let delay = Nanos(microseconds.saturating_mul(1000));
                sums.throttled = sums.throttled.saturating_add(delay);
            }
            Event::ReclaimPages { scanned, reclaimed } => {
                self.on_request.batches += 1;
                grow(&mut self.on_request.scanned, scanned);
                grow(&mut self.on_request.reclaimed, reclaimed);
            }
            Event::WakeupKswapd { .. } => self.wake_requests += 1,
            Event::KswapdWake { .. } => {
                let awake = self.kswapds.entry(pid).or_default();
                if awake.is_some() {
                    self.kswapd_rewakeups += 1;
                } else {
                    *awake = Some(time);
                    self.kswapd_wakeups += 1;
                }
            }
            Event::KswapdSleep { .. } => {
                if let Some(since) = self.kswapds.entry(pid).or_default().take() {
                    let awake = Nanos(time.saturating_sub(since));
                    self.kswapd_awake = self.kswapd_awake.saturating_add(awake);
                    self.kswapd_awakes.record(awake.0);
                }
            }
            Event::BioQueue {
                device,
                sectors,
                write,
            } => {
                if self.swap_devices.contains(&device) {
                    grow(&mut self.swap_sectors[usize::from(write)], sectors);
                    if write {
                        grow(self.handed.entry(pid).or_default(), sectors);
                    }
                }
            }
            Event::OomVictim { .. } => self.oom_victims += 1,
            _ => self.observe_compaction(traced),
        }
    }

    /// Adds a written folio to the sums. The event does not contain the size of the folio, but directly follows the
    /// folio's I/O (mm/vmscan.c, `pageout`). Only anonymous folios can be large here, because reclaim leaves file
    /// systems with large folios to the flusher threads.
    fn folio_written(&mut self, pid: u32, flags: u64) {
        let anonymous = flags & 1 != 0;
        let synchronous = usize::from(flags & 4 != 0);
        let pages = if anonymous {
            self.handed.remove(&pid).unwrap_or(0) / SECTORS_A_PAGE
        } else {
            1
        };
        let sums = self.sums(pid);
        sums.folios_written += 1;
        sums.folios_unsized += u64::from(pages == 0);
        let kind = &mut sums.written[usize::from(anonymous) + 2 * synchronous];
        grow(kind, pages.max(1));
    }

    fn reclaim_ends(&mut self, pid: u32, by: Reclaimer, reclaimed: u64, time: u64) {
        grow(&mut self.sums[by.index()].reclaimed_by_end, reclaimed);
        let took = self.pairs.end(pid, PairKind::Reclaim(by), time);
        let outermost = self.pairs.reclaimer(pid).is_none();
        if let Some(took) = took.filter(|_| outermost) {
            let task = self.task(pid);
            task.stalled = task.stalled.saturating_add(took);
        }
        if by == Reclaimer::Memcg
            && let Some(memcg) = self.open_memcg.remove(&pid)
        {
            let sums = self.memcgs.entry(memcg).or_default();
            grow(&mut sums.reclaimed, reclaimed);
            sums.stalled = sums.stalled.saturating_add(took.unwrap_or_default());
        }
    }

    fn observe_compaction(&mut self, traced: &TraceEvent) {
        let TraceEvent { time, pid, .. } = *traced;
        let sums = &mut self.compaction;
        match traced.event {
            Event::CompactionAttempt { .. } => {
                sums.attempts += 1;
                if let Some(earlier) = self.attempts.insert(pid, Attempt::default()) {
                    settle(&mut self.compaction, earlier);
                }
            }
            Event::CompactionBegin => {
                self.pairs.begin(pid, PairKind::Compaction, time);
                if let Some(attempt) = self.attempts.get_mut(&pid) {
                    attempt.worked = true;
                }
            }
            Event::CompactionEnd { success } => {
                if let Some(attempt) = self.attempts.get_mut(&pid) {
                    attempt.success |= success;
                }
                if let Some(took) = self.pairs.end(pid, PairKind::Compaction, time) {
                    if self.kcompactds.contains(&pid) {
                        self.compaction.daemon.record(took.0);
                    } else {
                        self.compaction.direct.record(took.0);
                    }
                }
            }
            Event::CompactionSuitable { skipped } => {
                if let Some(attempt) = self.attempts.get_mut(&pid) {
                    attempt.skipped |= skipped;
                }
            }
            Event::CompactionDeferred => {
                if let Some(attempt) = self.attempts.get_mut(&pid) {
                    attempt.worked = true;
                }
                sums.deferred += 1;
            }
            Event::IsolateMigrate { scanned, taken } => {
                grow(&mut sums.migrate_scanned, scanned);
                grow(&mut sums.migrate_isolated, taken);
            }
            Event::IsolateFree { scanned, taken } | Event::FastIsolateFree { scanned, taken } => {
                grow(&mut sums.free_scanned, scanned);
                grow(&mut sums.free_isolated, taken);
            }
            Event::CompactionMigrate { migrated, failed } => {
                grow(&mut sums.migrated, migrated);
                grow(&mut sums.failed, failed);
            }
            Event::Migrate {
                succeeded,
                failed,
                why,
            } => {
                grow(&mut sums.all_migrated, succeeded);
                grow(&mut sums.all_failed, failed);
                match why {
                    Some(DEMOTION) => {
                        grow(&mut sums.demoted, succeeded);
                        grow(&mut sums.not_demoted, failed);
                    }
                    Some(BALANCING) => grow(&mut sums.balanced, succeeded),
                    _ => {}
                }
            }
            Event::KcompactdWake => {
                sums.kcompactd_wakes += 1;
                if !self.kcompactds.contains(&pid) {
                    self.kcompactds.push(pid);
                }
            }
            _ => {}
        }
    }

    /// Ends the observation at `end`, or at the last event if that is later. A kswapd that is awake counts as awake
    /// until then. A reclaim or compaction that has not ended counts as unmatched.
    pub fn finish(&mut self, end: Nanos) {
        let end = end.0.max(self.last);
        for since in self.kswapds.values_mut().filter_map(Option::take) {
            let awake = Nanos(end.saturating_sub(since));
            self.kswapd_awake = self.kswapd_awake.saturating_add(awake);
        }
        for (_, attempt) in self.attempts.drain() {
            settle(&mut self.compaction, attempt);
        }
        self.pairs.finish();
    }

    /// Returns the sums for one kind of reclaimer.
    pub fn by(&self, by: Reclaimer) -> &ReclaimSums {
        &self.sums[by.index()]
    }

    /// Returns the sums for compaction.
    pub fn compaction(&self) -> &Compaction {
        &self.compaction
    }

    /// Returns the matched begin and end events, with their durations.
    pub fn pairs(&self) -> &Pairs {
        &self.pairs
    }
}

/// Adds `more` to `sum`; the result is at most `u64::MAX`.
fn grow(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// Counts an allocation's compaction like vmstat (mm/page_alloc.c, `__alloc_pages_direct_compact`): as a stall, unless
/// a zone was skipped and none was compacted or deferred. If no zone had an event, the watermark was already met. That
/// counts as a success without work.
fn settle(sums: &mut Compaction, attempt: Attempt) {
    let idle = !attempt.worked;
    if idle && attempt.skipped {
        return;
    }
    sums.stalls += 1;
    sums.successes += u64::from(attempt.success || idle);
}
