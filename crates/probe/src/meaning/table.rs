//! The table of reclaim statistics. Its rows are computed from tracepoints and compared with vmstat.

use serde::{Deserialize, Serialize};

use super::crosscheck::{Counterparts, CrossCheck};
use super::decoder::{Absence, Decoder};
use super::event::Reclaimer;
use super::observer::{MemcgReclaim, ReclaimObserver, ReclaimSums, SECTORS_A_PAGE, TaskReclaim};
use super::pairs::PairKind;
use super::rows::{ROWS, RowId, RowSpec, RowUnit, Section};
use crate::ProbeError;
use crate::trace::{Losses, TraceFile, TraceMeta};
use pagetide_quantity::{Histogram, HistogramSummary, Nanos};
use pagetide_system::Delta;

/// Times of the workload, for the two rows that are ratios of times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// User time of the workload.
    pub user: Nanos,
    /// System time of the workload.
    pub system: Nanos,
    /// Elapsed wall-clock time of the workload.
    pub elapsed: Nanos,
}

/// Value of a row, or the reason why there is none. An unknown value is never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "value")]
pub enum Value {
    /// Events, pages or folios.
    Count(u64),
    /// A duration.
    Time(Nanos),
    /// A ratio in percent.
    Percent(f64),
    /// This kernel does not provide the data. Contains the reason.
    NotOnThisKernel(String),
    /// The data was not traced or not read. Contains the reason.
    NotObserved(String),
    /// Events of the trace were lost or damaged. Contains the reason.
    Invalid(String),
    /// A ratio whose denominator is zero.
    Undefined,
}

impl Value {
    /// Returns the value of a count; `None` for any other kind of value.
    pub const fn count(&self) -> Option<u64> {
        match self {
            Self::Count(count) => Some(*count),
            _ => None,
        }
    }

    /// Returns the value in the row's unit (nanoseconds for times); `None` if the value is unknown or undefined.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Time(time) => Some(time.0 as f64),
            Self::Percent(percent) => Some(*percent),
            _ => None,
        }
    }
}

/// A row of the reclaim table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Identifies the row.
    pub id: RowId,
    /// Section of the table that the row belongs to.
    pub section: Section,
    /// Name of the row. If the original script had the row, its name there follows in parentheses.
    pub name: String,
    /// Unit of the value.
    pub unit: RowUnit,
    /// Value of the row, or the reason why it has none.
    pub value: Value,
    /// Comparison with vmstat; `None` if vmstat was not read or has no counter for the row, or if `value` is no count.
    pub check: Option<CrossCheck>,
    /// A caveat about the value; `None` if there is none.
    pub note: Option<String>,
}

/// Durations of one kind of activity, from begin to end event, and the number of unmatched events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairRow {
    /// The kind of activity.
    pub kind: PairKind,
    /// Summary of the durations, in nanoseconds.
    pub latency: HistogramSummary,
    /// Distribution of the durations, in nanoseconds.
    pub histogram: Histogram,
    /// Number of begin events without an end event.
    pub unmatched_begins: u64,
    /// Number of end events without a begin event.
    pub unmatched_ends: u64,
}

/// The reclaim statistics of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReclaimTable {
    /// The rows, in the order of the table.
    pub rows: Vec<Row>,
    /// Durations between begin and end events, for each kind of activity that occurred.
    pub pairs: Vec<PairRow>,
    /// Tasks that reclaimed, longest time in reclaim first.
    pub tasks: Vec<TaskReclaim>,
    /// Memory cgroup IDs with the reclaim for each, on kernels whose events contain the ID.
    pub memcgs: Vec<(u64, MemcgReclaim)>,
    /// Number of lost events and damaged sub-buffers.
    pub losses: Losses,
    /// Number of events whose data was truncated or damaged.
    pub undecoded: u64,
    /// True if the multi-generational LRU was enabled.
    pub multi_generational: bool,
}

impl ReclaimTable {
    /// Returns the row with this ID; `None` if the table does not have it.
    pub fn row(&self, id: RowId) -> Option<&Row> {
        self.rows.iter().find(|row| row.id == id)
    }

    /// Returns the rows that disagree with vmstat.
    pub fn disagreements(&self) -> impl Iterator<Item = &Row> {
        self.rows
            .iter()
            .filter(|row| row.check.as_ref().is_some_and(|check| check.disagrees))
    }
}

/// Computes the table from a stored trace. `vmstat` is the change of vmstat during the trace. Fails if a format in the
/// trace cannot be parsed.
pub fn analyse(
    trace: &TraceFile,
    vmstat: Option<&Delta>,
    cpu: Option<CpuTimes>,
) -> Result<ReclaimTable, ProbeError> {
    let mut decoder = Decoder::for_trace(trace)?;
    let mut observer = ReclaimObserver::new(&trace.meta);
    let mut events = trace.events();
    for raw in events.by_ref() {
        if let Some(traced) = decoder.decode(&raw) {
            observer.observe(&traced);
        }
    }
    observer.finish(trace.meta.end);
    let losses = events.losses().plus(trace.meta.losses);
    let cpus = u64::try_from(trace.cpus.len()).unwrap_or(1);
    Ok(table(
        &observer,
        &decoder,
        &Context {
            meta: &trace.meta,
            losses,
            vmstat,
            cpu,
            cpus,
        },
    ))
}

/// Input of the table other than the sums of events.
struct Context<'a> {
    meta: &'a TraceMeta,
    losses: Losses,
    vmstat: Option<&'a Delta>,
    cpu: Option<CpuTimes>,
    cpus: u64,
}

/// Which number of an isolation event is the number of scanned pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanMeaning {
    /// Pages looked at (`nr_scanned`), as counted by the classic LRU lists.
    LookedAt,
    /// Pages isolated (`nr_taken`), which the multi-generational LRU counts as scanned.
    Taken,
    /// No event contains the number of scanned pages.
    Unknown,
}

const UNTOLD: &str = "with the multi-generational LRU on, this kernel (before 6.8) has no event for what is scanned; use vmstat's pgscan_* and pgsteal_*";
const UNSEEN: &str = "not checked: no event on this kernel tells what goes to and comes from this swap area (a file, or zram before 6.3, which is handed pages without I/O)";
const BY_VMSTAT: &str = "from vmstat's nr_vmscan_write: large folios were written whose I/O is not traced, and the event does not tell their size";
const AT_LEAST: &str =
    "at least: large folios were written whose I/O is not traced, and each counts as a page";
const LEFT_TO_FLUSHERS: &str = "today's kernels leave nearly all file pages to the flusher threads: see file pages dirtied, and pages written back";
const TOLD_BY_END: &str =
    "from the end of each reclaim, slab pages included: this kernel has no event for each batch";

fn table(observer: &ReclaimObserver, decoder: &Decoder, context: &Context<'_>) -> ReclaimTable {
    let scanned = how_scanned(observer, context);
    let compared = context.vmstat.map(|vmstat| Counterparts {
        vmstat,
        observer,
        cpus: context.cpus,
        memcg_in_direct: memcg_in_direct(observer, vmstat, scanned),
        fast_path_traced: decoder
            .missing("mm_compaction_fast_isolate_freepages")
            .is_none(),
    });
    let maker = RowMaker {
        observer,
        decoder,
        context,
        scanned,
        compared,
    };
    let mut tasks: Vec<_> = observer.tasks.values().cloned().collect();
    for task in &mut tasks {
        let name = context.meta.task(task.pid).unwrap_or_default();
        name.clone_into(&mut task.name);
    }
    tasks.sort_by_key(|task| (std::cmp::Reverse(task.stalled), task.pid));
    ReclaimTable {
        rows: ROWS.iter().map(|spec| maker.row(spec)).collect(),
        pairs: pair_rows(observer),
        tasks,
        memcgs: observer
            .memcgs
            .iter()
            .map(|(&id, &sums)| (id, sums))
            .collect(),
        losses: context.losses,
        undecoded: decoder.undecoded(),
        multi_generational: context.meta.multi_generational(),
    }
}

fn pair_rows(observer: &ReclaimObserver) -> Vec<PairRow> {
    Reclaimer::ALL
        .map(PairKind::Reclaim)
        .into_iter()
        .chain([PairKind::Compaction])
        .filter_map(|kind| {
            let paired = observer.pairs.paired(kind);
            let any = paired.latency.count + paired.unmatched_begins + paired.unmatched_ends > 0;
            any.then(|| PairRow {
                kind,
                latency: paired.latency.summary(),
                histogram: paired.latency.clone(),
                unmatched_begins: paired.unmatched_begins,
                unmatched_ends: paired.unmatched_ends,
            })
        })
        .collect()
}

fn total(observer: &ReclaimObserver, what: impl Fn(&ReclaimSums) -> u64) -> u64 {
    observer.sums.iter().map(what).fold(0, u64::saturating_add)
}

/// Determines which number of an isolation event the kernel itself counts as scanned pages.
fn how_scanned(observer: &ReclaimObserver, context: &Context<'_>) -> ScanMeaning {
    if !context.meta.multi_generational() {
        return ScanMeaning::LookedAt;
    }
    let counted = context
        .vmstat
        .and_then(|vmstat| vmstat.growth_of(&["pgscan_anon", "pgscan_file"]));
    let reclaimed = total(observer, |sums| sums.reclaims + sums.reclaimed_by_end)
        + observer.kswapd_wakeups
        + counted.unwrap_or(0);
    if total(observer, |sums| sums.isolations) == 0 && reclaimed > 0 {
        return ScanMeaning::Unknown;
    }
    let looked_at = total(observer, |sums| sums.scanned);
    let taken = total(observer, |sums| sums.taken);
    // mm/vmscan.c, `scan_folios`, counts the pages it isolates. If a later kernel counts the pages it looks at, vmstat
    // shows that.
    match counted {
        Some(counted) if looked_at.abs_diff(counted) < taken.abs_diff(counted) => {
            ScanMeaning::LookedAt
        }
        _ => ScanMeaning::Taken,
    }
}

/// Returns true if pgscan_direct and similar counters include memory cgroup reclaim. In that case their sum is
/// pgscan_anon + pgscan_file.
fn memcg_in_direct(observer: &ReclaimObserver, vmstat: &Delta, scanned: ScanMeaning) -> bool {
    let by_reclaimer = vmstat.growth_of(&[
        "pgscan_direct",
        "pgscan_kswapd",
        "pgscan_khugepaged",
        "pgscan_proactive",
    ]);
    let by_type = vmstat.growth_of(&["pgscan_anon", "pgscan_file"]);
    let groups = pages_scanned(observer.by(Reclaimer::Memcg), scanned);
    match (by_reclaimer, by_type) {
        (Some(by_reclaimer), Some(by_type)) => {
            groups > 0 && by_type.saturating_sub(by_reclaimer) < groups / 2
        }
        _ => false,
    }
}

fn pages_scanned(sums: &ReclaimSums, scanned: ScanMeaning) -> u64 {
    match scanned {
        ScanMeaning::Taken => sums.taken,
        _ => sums.scanned,
    }
}

struct RowMaker<'a> {
    observer: &'a ReclaimObserver,
    decoder: &'a Decoder,
    context: &'a Context<'a>,
    scanned: ScanMeaning,
    compared: Option<Counterparts<'a>>,
}

impl RowMaker<'_> {
    fn row(&self, spec: &RowSpec) -> Row {
        let mut note = None;
        let value = self.value(spec, &mut note);
        Row {
            id: spec.id,
            section: spec.section,
            name: match spec.original {
                Some(original) => format!("{} ({original})", spec.name),
                None => spec.name.to_owned(),
            },
            unit: spec.unit,
            check: self.check(spec, &value),
            value,
            note,
        }
    }

    /// Returns the value of a row, or the reason if needed data is missing or was lost. May set `note` to a caveat.
    fn value(&self, spec: &RowSpec, note: &mut Option<String>) -> Value {
        if spec.section == Section::Memory && spec.id != RowId::OomKills {
            let swap = matches!(spec.id, RowId::SwapIns | RowId::SwapOuts);
            if swap && self.observer.swap_devices.is_empty() {
                *note = Some(UNSEEN.into());
            }
            return self.vmstat_growth(spec);
        }
        for event in spec.events {
            match self.decoder.missing(event) {
                Some(Absence::NotOnThisKernel(why)) => return Value::NotOnThisKernel(why),
                Some(Absence::NotObserved(why)) => return Value::NotObserved(why),
                None => {}
            }
        }
        let losses = &self.context.losses;
        if losses.any() || self.decoder.undecoded() > 0 {
            return Value::Invalid(format!(
                "{} events were lost, {} gaps of unknown size, {} sub-buffers and {} events damaged: take a larger buffer",
                losses.events,
                losses.gaps_unknown,
                losses.damaged,
                self.decoder.undecoded()
            ));
        }
        if self.scanned == ScanMeaning::Unknown {
            if spec.events.contains(&"mm_vmscan_lru_isolate") {
                return Value::NotOnThisKernel(UNTOLD.into());
            }
            if spec.events.contains(&"mm_vmscan_lru_shrink_inactive") {
                let told = match spec.id {
                    RowId::DirectReclaimed => Reclaimer::Direct,
                    RowId::MemcgReclaimed => Reclaimer::Memcg,
                    _ => return Value::NotOnThisKernel(UNTOLD.into()),
                };
                *note = Some(TOLD_BY_END.into());
                return Value::Count(self.observer.by(told).reclaimed_by_end);
            }
        }
        if self.scanned == ScanMeaning::Taken && spec.events.contains(&"mm_vmscan_lru_isolate") {
            *note = Some("pages taken: what the multi-generational LRU counts as scanned".into());
        }
        if spec.events.contains(&"mm_vmscan_write_folio")
            && let Some(pages) = self.written_by_vmstat()
        {
            match spec.id {
                RowId::AllWritten => {
                    *note = Some(BY_VMSTAT.into());
                    return Value::Count(pages);
                }
                RowId::WrittenOfScanned => {
                    *note = Some(BY_VMSTAT.into());
                    let groups = self.observer.by(Reclaimer::Memcg).written_all();
                    return self.of_scanned(pages.saturating_sub(groups));
                }
                RowId::AllFoliosWritten => {}
                _ => *note = Some(AT_LEAST.into()),
            }
        }
        if matches!(
            spec.id,
            RowId::DirectWriteFileAsync | RowId::KswapdWriteFileAsync
        ) {
            *note = Some(LEFT_TO_FLUSHERS.into());
        }
        self.traced(spec)
    }

    /// Returns the number of pages that reclaim wrote by vmstat; `None` if vmstat was not read or tells no more.
    fn written_by_vmstat(&self) -> Option<u64> {
        let traced = total(self.observer, ReclaimSums::written_all);
        self.compared.as_ref()?.written(traced)
    }

    /// Returns `part` in percent of the pages scanned by direct reclaim and kswapd together.
    fn of_scanned(&self, part: u64) -> Value {
        let scan = |by| pages_scanned(self.observer.by(by), self.scanned);
        let scanned = scan(Reclaimer::Direct) + scan(Reclaimer::Kswapd);
        percent(part as f64, scanned as f64)
    }

    fn vmstat_growth(&self, spec: &RowSpec) -> Value {
        let Some(vmstat) = self.context.vmstat else {
            return Value::NotObserved("vmstat was not read before and after".into());
        };
        match vmstat.growth_of(spec.counters) {
            Some(growth) => Value::Count(growth),
            None => Value::NotOnThisKernel(format!(
                "this kernel's vmstat has no {}",
                spec.counters.join(", ")
            )),
        }
    }

    fn check(&self, spec: &RowSpec, value: &Value) -> Option<CrossCheck> {
        let compared = self.compared.as_ref()?;
        let mut traced = match spec.id {
            RowId::SwapIns | RowId::SwapOuts => self.swap_traffic(spec.id)?,
            id if spec.section == Section::Memory && id != RowId::OomKills => return None,
            _ => value.count()?,
        };
        let mut counters = spec.counters.to_vec();
        let groups = self.observer.by(Reclaimer::Memcg);
        match spec.id {
            RowId::DirectScanned | RowId::TotalScanned if compared.memcg_in_direct => {
                traced += pages_scanned(groups, self.scanned);
                counters.push("pgscan_proactive");
            }
            RowId::DirectReclaimed | RowId::TotalReclaimed if compared.memcg_in_direct => {
                traced += groups.reclaimed;
                counters.push("pgsteal_proactive");
            }
            // vmstat also counts a kswapd run without a sleep in between.
            RowId::KswapdWakeups => traced += self.observer.kswapd_rewakeups,
            _ => {}
        }
        compared.check(spec.id, &counters, traced)
    }

    /// Returns the number of pages written to or read from swap devices, from the I/O submitted to them. `None` if this
    /// I/O was not traced, if events were lost, or if no swap area is a device (that of a swap file has other I/O too).
    fn swap_traffic(&self, id: RowId) -> Option<u64> {
        let told = !self.observer.swap_devices.is_empty()
            && self.decoder.missing("block_bio_queue").is_none()
            && !self.context.losses.any();
        let direction = usize::from(id == RowId::SwapOuts);
        told.then(|| self.observer.swap_sectors[direction] / SECTORS_A_PAGE)
    }

    /// Returns the sum over the trace of what a row counts.
    fn traced(&self, spec: &RowSpec) -> Value {
        let observer = self.observer;
        let direct = observer.by(Reclaimer::Direct);
        let kswapd = observer.by(Reclaimer::Kswapd);
        let memcg = observer.by(Reclaimer::Memcg);
        let compaction = &observer.compaction;
        let scan = |sums: &ReclaimSums| pages_scanned(sums, self.scanned);
        let latency = |by| Nanos(observer.pairs.paired(PairKind::Reclaim(by)).latency.sum);
        let total_scanned = scan(direct) + scan(kswapd);
        let of_scanned = |part: u64| self.of_scanned(part);
        Value::Count(match spec.id {
            RowId::DirectReclaims => direct.reclaims,
            RowId::DirectScanned => scan(direct),
            RowId::DirectReclaimed => direct.reclaimed,
            RowId::DirectWriteFileAsync => direct.written[0],
            RowId::DirectWriteAnonAsync => direct.written[1],
            RowId::DirectWriteFileSync => direct.written[2],
            RowId::DirectWriteAnonSync => direct.written[3],
            RowId::WakeKswapdRequests => observer.wake_requests,
            RowId::KswapdWakeups => observer.kswapd_wakeups,
            RowId::KswapdScanned => scan(kswapd),
            RowId::KswapdReclaimed => kswapd.reclaimed,
            RowId::KswapdWriteFileAsync => kswapd.written[0],
            RowId::KswapdWriteAnonAsync => kswapd.written[1],
            RowId::KswapdWriteFileSync => kswapd.written[2],
            RowId::KswapdWriteAnonSync => kswapd.written[3],
            RowId::TimeStalled => return Value::Time(latency(Reclaimer::Direct)),
            RowId::TimeKswapdAwake => return Value::Time(observer.kswapd_awake),
            RowId::TotalScanned => total_scanned,
            RowId::TotalReclaimed => direct.reclaimed + kswapd.reclaimed,
            RowId::ReclaimedOfScanned => return of_scanned(direct.reclaimed + kswapd.reclaimed),
            RowId::WrittenOfScanned => {
                return of_scanned(direct.written_all() + kswapd.written_all());
            }
            RowId::FileWrittenOfScanned => {
                return of_scanned(direct.written_file() + kswapd.written_file());
            }
            RowId::TimeInDirectReclaim => return self.time_in_direct(latency(Reclaimer::Direct)),
            RowId::TimeKswapdAwakeShare => return self.time_awake(observer.kswapd_awake),
            RowId::MemcgReclaims => memcg.reclaims,
            RowId::MemcgScanned => scan(memcg),
            RowId::MemcgReclaimed => memcg.reclaimed,
            RowId::MemcgWriteFile => memcg.written_file(),
            RowId::MemcgWriteAnon => memcg.written_anon(),
            RowId::TimeStalledMemcg => return Value::Time(latency(Reclaimer::Memcg)),
            RowId::SoftlimitReclaims => observer.by(Reclaimer::Softlimit).reclaims,
            RowId::AllScanned => total(observer, scan),
            RowId::AllReclaimed => total(observer, |sums| sums.reclaimed),
            RowId::AllWritten => total(observer, ReclaimSums::written_all),
            RowId::AllFoliosWritten => total(observer, |sums| sums.folios_written),
            RowId::UnknownScanned => scan(observer.by(Reclaimer::Unknown)),
            RowId::OnRequestReclaimed => observer.on_request.reclaimed,
            RowId::TimeThrottled => {
                return Value::Time(Nanos(total(observer, |sums| sums.throttled.0)));
            }
            RowId::NodeReclaims => observer.by(Reclaimer::Node).reclaims,
            RowId::CompactionStalls => compaction.stalls,
            RowId::CompactionSuccess => compaction.successes,
            RowId::CompactionFailures => compaction.stalls - compaction.successes,
            RowId::PagesMigrated => compaction.migrated,
            RowId::MigrateFailures => compaction.failed,
            RowId::MigrateScanned => compaction.migrate_scanned,
            RowId::MigrateIsolated => compaction.migrate_isolated,
            RowId::FreeScanned => compaction.free_scanned,
            RowId::FreeIsolated => compaction.free_isolated,
            RowId::Isolated => compaction.migrate_isolated + compaction.free_isolated,
            RowId::AllMigrated => compaction.all_migrated,
            RowId::AllMigrateFailures => compaction.all_failed,
            RowId::Demoted => compaction.demoted,
            RowId::DemotionFailures => compaction.not_demoted,
            RowId::Balanced => compaction.balanced,
            RowId::KcompactdWakes => compaction.kcompactd_wakes,
            RowId::TimeCompacting => return Value::Time(Nanos(compaction.direct.sum)),
            RowId::TimeKcompactd => return Value::Time(Nanos(compaction.daemon.sum)),
            RowId::OomKills => observer.oom_victims,
            _ => return self.vmstat_growth(spec),
        })
    }

    fn time_in_direct(&self, stalled: Nanos) -> Value {
        let Some(cpu) = self.context.cpu else {
            return Value::NotObserved("the workload's CPU times were not given".into());
        };
        let stalled = stalled.0 as f64;
        let all = cpu.user.0 as f64 + cpu.system.0 as f64 + stalled;
        percent(stalled, all)
    }

    fn time_awake(&self, awake: Nanos) -> Value {
        let traced = self
            .context
            .meta
            .end
            .saturating_sub(self.context.meta.begin);
        let elapsed = self.context.cpu.map_or(traced, |cpu| cpu.elapsed);
        percent(awake.0 as f64, elapsed.0 as f64)
    }
}

/// Returns `part` in percent of `whole`; undefined if `whole` is 0.
fn percent(part: f64, whole: f64) -> Value {
    if whole > 0.0 {
        Value::Percent(100.0 * part / whole)
    } else {
        Value::Undefined
    }
}
