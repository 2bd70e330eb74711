//! Decodes raw events. The accessors of each event are compiled once, from its format.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::event::{Event, Reclaimer, TraceEvent};
use super::sleep::SleepSites;
use crate::ProbeError;
use crate::trace::{
    EventFormat, FieldAccess, IdTable, RawEvent, StackAccess, TextAccess, TraceFile,
};

/// Why a trace does not contain an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "why")]
pub enum Absence {
    /// The kernel does not have the event, or the event lacks a field that is needed.
    NotOnThisKernel(String),
    /// The event was not enabled when the trace was recorded.
    NotObserved(String),
}

/// Reads one field from the data of an event.
type Get = FieldAccess;

/// The accessors that are needed to decode one kind of event.
#[derive(Debug, Clone, Copy)]
enum Plan {
    ReclaimBegin(Reclaimer, Get, Option<Get>),
    ReclaimEnd(Reclaimer, Get),
    KswapdWake(Get, Get),
    KswapdSleep(Get),
    WakeupKswapd(Get, Get),
    Isolate(Get, Get, Get),
    ShrinkInactive(Get, Get),
    ShrinkActive(Get, Get),
    WriteFolio(Get),
    Throttled(Get),
    ReclaimPages(Get, Get),
    CompactionBegin,
    CompactionEnd(Get, u64),
    IsolateMigrate(Get, Get),
    IsolateFree(Get, Get),
    FastIsolateFree(Get, Get),
    CompactionMigrate(Get, Get),
    CompactionAttempt(Get),
    CompactionSuitable(Get),
    CompactionDeferred,
    KcompactdWake,
    KcompactdSleep,
    Migrate(Get, Get, Option<Get>),
    OomVictim(Get),
    Switch(Get, Get, Get),
    Stack(StackAccess),
    Wakeup(Get, Option<Get>),
    Fork(Get),
    Exit,
    UserFault(Get),
    DirtyLimit(Get),
    BlockIssue(Get, Get, Get, TextAccess),
    BioQueue(Get, Get, TextAccess),
    BlockComplete(Get, Get, Get),
}

/// Decodes the events for which accessors were compiled, and ignores all others.
#[derive(Debug, Clone, Default)]
pub struct Decoder {
    plans: IdTable<(Get, Plan)>,
    decodable: BTreeSet<String>,
    missing: BTreeMap<String, Absence>,
    undecoded: u64,
    sites: SleepSites,
}

impl Decoder {
    /// Compiles the accessors for the events of a stored trace. Fails if a stored format cannot be parsed.
    pub fn for_trace(trace: &TraceFile) -> Result<Self, ProbeError> {
        let mut decoder = Self::compile(&trace.formats()?, &trace.meta.absent);
        decoder.sites = SleepSites::new(&trace.meta.functions);
        Ok(decoder)
    }

    /// Compiles the accessors for events with these formats. `absent` lists the events that the kernel does not have,
    /// as `system/name`.
    pub fn compile(formats: &[EventFormat], absent: &[String]) -> Self {
        let mut decoder = Self::default();
        for name in absent {
            let bare = name.rsplit('/').next().unwrap_or(name);
            let why = format!("this kernel has no event {bare}");
            decoder
                .missing
                .insert(bare.to_owned(), Absence::NotOnThisKernel(why));
        }
        for format in formats {
            let pid = FieldAccess::first_of(format, &["common_pid"]);
            match (pid, plan(format)) {
                (Some(pid), Ok(Some(plan))) => {
                    decoder.plans.insert(format.id, (pid, plan));
                    // The event is named after folios since 6.0; before, it was named after pages.
                    let name = match format.name.as_str() {
                        "mm_vmscan_writepage" => "mm_vmscan_write_folio",
                        name => name,
                    };
                    decoder.decodable.insert(name.to_owned());
                }
                (_, Ok(None)) => {}
                (None, Ok(_)) => decoder.lacks(format, "common_pid"),
                (_, Err(field)) => decoder.lacks(format, field),
            }
        }
        decoder
    }

    fn lacks(&mut self, format: &EventFormat, field: &str) {
        let why = format!("this kernel's event {} has no field {field}", format.name);
        self.missing
            .insert(format.name.clone(), Absence::NotOnThisKernel(why));
    }

    /// Returns the reason why an event is not decoded; `None` if it is decoded.
    pub fn missing(&self, event: &str) -> Option<Absence> {
        if self.decodable.contains(event) {
            return None;
        }
        let unasked = || Absence::NotObserved(format!("{event} was not traced"));
        Some(self.missing.get(event).cloned().unwrap_or_else(unasked))
    }

    /// Returns the locations in the kernel code where tasks slept, from the events decoded so far.
    pub fn sites(&self) -> &SleepSites {
        &self.sites
    }

    /// Returns the number of events whose data was truncated or damaged.
    pub fn undecoded(&self) -> u64 {
        self.undecoded
    }

    /// Decodes one event. `None` for an event without accessors, and for truncated or damaged data, which is counted.
    #[inline]
    pub fn decode(&mut self, raw: &RawEvent<'_>) -> Option<TraceEvent> {
        let &(pid, plan) = self.plans.get(raw.id)?;
        let decoded = pid
            .get(raw.data)
            .and_then(|pid| u32::try_from(pid).ok())
            .and_then(|pid| {
                let event = match plan {
                    Plan::Stack(stack) => Event::SleepsIn {
                        site: self.sites.site(stack.get(raw.data)?),
                    },
                    _ => read(plan, raw.data)?,
                };
                Some(TraceEvent {
                    time: raw.time,
                    cpu: raw.cpu,
                    pid,
                    event,
                })
            });
        if decoded.is_none() {
            self.undecoded += 1;
        }
        decoded
    }
}

/// Upper limit for a number of pages in one event (4 PiB). Larger numbers show that the data is damaged, and must not
/// be added to sums.
const MAX_PAGES: u64 = 1 << 40;

/// Decodes the data of one event according to its plan; `None` if the data is truncated or damaged.
#[inline]
fn read(plan: Plan, data: &[u8]) -> Option<Event> {
    let number = |access: Get| access.get(data).filter(|&count| count < MAX_PAGES);
    Some(match plan {
        Plan::ReclaimBegin(by, order, memcg) => Event::ReclaimBegin {
            by,
            order: order.get_signed(data)?,
            memcg: memcg.and_then(|id| id.get(data)),
        },
        Plan::ReclaimEnd(by, reclaimed) => Event::ReclaimEnd {
            by,
            reclaimed: number(reclaimed)?,
        },
        Plan::KswapdWake(node, order) => Event::KswapdWake {
            node: node.get_signed(data)?,
            order: order.get_signed(data)?,
        },
        Plan::KswapdSleep(node) => Event::KswapdSleep {
            node: node.get_signed(data)?,
        },
        Plan::WakeupKswapd(node, order) => Event::WakeupKswapd {
            node: node.get_signed(data)?,
            order: order.get_signed(data)?,
        },
        Plan::Isolate(scanned, taken, lru) => Event::Isolate {
            scanned: number(scanned)?,
            taken: number(taken)?,
            lru: number(lru)?,
        },
        Plan::ShrinkInactive(scanned, reclaimed) => Event::ShrinkInactive {
            scanned: number(scanned)?,
            reclaimed: number(reclaimed)?,
        },
        Plan::ShrinkActive(taken, deactivated) => Event::ShrinkActive {
            taken: number(taken)?,
            deactivated: number(deactivated)?,
        },
        Plan::WriteFolio(flags) => Event::WriteFolio {
            flags: number(flags)?,
        },
        Plan::Throttled(delay) => Event::Throttled {
            microseconds: u64::try_from(delay.get_signed(data)?).unwrap_or(0),
        },
        Plan::ReclaimPages(scanned, reclaimed) => Event::ReclaimPages {
            scanned: number(scanned)?,
            reclaimed: number(reclaimed)?,
        },
        _ => return read_others(plan, data),
    })
}

/// Decodes the data of one event outside of vmscan according to its plan; `None` if the data is truncated or damaged.
#[inline]
fn read_others(plan: Plan, data: &[u8]) -> Option<Event> {
    let any = |access: Get| access.get(data);
    let number = |access: Get| any(access).filter(|&count| count < MAX_PAGES);
    let pid = |access: Get| u32::try_from(access.get(data)?).ok();
    Some(match plan {
        Plan::CompactionBegin => Event::CompactionBegin,
        Plan::CompactionEnd(status, success) => Event::CompactionEnd {
            success: number(status)? == success,
        },
        Plan::IsolateMigrate(scanned, taken) => Event::IsolateMigrate {
            scanned: number(scanned)?,
            taken: number(taken)?,
        },
        Plan::IsolateFree(scanned, taken) => Event::IsolateFree {
            scanned: number(scanned)?,
            taken: number(taken)?,
        },
        Plan::FastIsolateFree(scanned, taken) => Event::FastIsolateFree {
            scanned: number(scanned)?,
            taken: number(taken)?,
        },
        Plan::CompactionMigrate(migrated, failed) => Event::CompactionMigrate {
            migrated: number(migrated)?,
            failed: number(failed)?,
        },
        Plan::CompactionAttempt(order) => Event::CompactionAttempt {
            order: order.get_signed(data)?,
        },
        // COMPACT_NOT_SUITABLE_ZONE and COMPACT_SKIPPED are 0 and 1 (include/linux/compaction.h).
        Plan::CompactionSuitable(result) => Event::CompactionSuitable {
            skipped: number(result)? <= 1,
        },
        Plan::CompactionDeferred => Event::CompactionDeferred,
        Plan::KcompactdWake => Event::KcompactdWake,
        Plan::KcompactdSleep => Event::KcompactdSleep,
        Plan::Migrate(succeeded, failed, why) => Event::Migrate {
            succeeded: number(succeeded)?,
            failed: number(failed)?,
            why: why.and_then(number),
        },
        Plan::OomVictim(victim) => Event::OomVictim { pid: pid(victim)? },
        Plan::Switch(previous, state, next) => Event::Switch {
            previous: pid(previous)?,
            state: any(state)?,
            next: pid(next)?,
        },
        Plan::Wakeup(task, cpu) => Event::Wakeup {
            pid: pid(task)?,
            cpu: cpu.and_then(pid),
        },
        Plan::Fork(child) => Event::Fork { child: pid(child)? },
        Plan::Exit => Event::Exit,
        Plan::UserFault(address) => Event::UserFault {
            address: any(address)?,
        },
        Plan::DirtyLimit(pause) => Event::DirtyLimit {
            sleeps: pause.get_signed(data)? > 0,
        },
        Plan::BlockIssue(device, sector, sectors, kind) => match is_write(kind.get(data)?) {
            Some(write) => Event::BlockIssue {
                device: any(device)?,
                sector: any(sector)?,
                sectors: number(sectors)?,
                write,
            },
            None => Event::BlockOther {
                device: any(device)?,
                sector: any(sector)?,
            },
        },
        Plan::BioQueue(device, sectors, kind) => match is_write(kind.get(data)?) {
            Some(write) => Event::BioQueue {
                device: any(device)?,
                sectors: number(sectors)?,
                write,
            },
            None => Event::BioOther,
        },
        Plan::BlockComplete(device, sector, sectors) => Event::BlockComplete {
            device: any(device)?,
            sector: any(sector)?,
            sectors: number(sectors)?,
        },
        _ => return None,
    })
}

/// Returns true for a write, false for a read, and `None` for any other request. `letters` describes the request, as
/// printed by blk_fill_rwbs (kernel/trace/blktrace.c).
fn is_write(letters: &[u8]) -> Option<bool> {
    if letters.contains(&b'D') {
        None
    } else if letters.contains(&b'W') {
        Some(true)
    } else {
        letters.contains(&b'R').then_some(false)
    }
}

/// Value of `COMPACT_SUCCESS` in include/linux/compaction.h since 4.9.
const COMPACT_SUCCESS: u64 = 8;

/// Returns the accessors for the fields of an event. `Ok(None)` for an event that is not decoded; `Err` with the name
/// of a missing field.
fn plan(format: &EventFormat) -> Result<Option<Plan>, &'static str> {
    // If there are several names, the first is the current one.
    let get = |names: &[&'static str]| FieldAccess::first_of(format, names).ok_or(names[0]);
    let one = |name: &'static str| get(&[name]);
    let text = |name: &'static str| format.field(name).and_then(TextAccess::new).ok_or(name);
    let by = |name: &str| match name {
        n if n.contains("memcg_softlimit") => Reclaimer::Softlimit,
        n if n.contains("memcg") => Reclaimer::Memcg,
        n if n.contains("node") => Reclaimer::Node,
        _ => Reclaimer::Direct,
    };
    Ok(Some(match format.name.as_str() {
        name @ ("mm_vmscan_direct_reclaim_begin"
        | "mm_vmscan_memcg_reclaim_begin"
        | "mm_vmscan_memcg_softlimit_reclaim_begin"
        | "mm_vmscan_node_reclaim_begin") => Plan::ReclaimBegin(
            by(name),
            one("order")?,
            FieldAccess::first_of(format, &["memcg_id"]),
        ),
        name @ ("mm_vmscan_direct_reclaim_end"
        | "mm_vmscan_memcg_reclaim_end"
        | "mm_vmscan_memcg_softlimit_reclaim_end"
        | "mm_vmscan_node_reclaim_end") => Plan::ReclaimEnd(by(name), one("nr_reclaimed")?),
        "mm_vmscan_kswapd_wake" => Plan::KswapdWake(one("nid")?, one("order")?),
        "mm_vmscan_kswapd_sleep" => Plan::KswapdSleep(one("nid")?),
        "mm_vmscan_wakeup_kswapd" => Plan::WakeupKswapd(one("nid")?, one("order")?),
        "mm_vmscan_lru_isolate" => Plan::Isolate(one("nr_scanned")?, one("nr_taken")?, one("lru")?),
        "mm_vmscan_lru_shrink_inactive" => {
            Plan::ShrinkInactive(one("nr_scanned")?, one("nr_reclaimed")?)
        }
        "mm_vmscan_lru_shrink_active" => {
            Plan::ShrinkActive(one("nr_taken")?, one("nr_deactivated")?)
        }
        "mm_vmscan_write_folio" | "mm_vmscan_writepage" => Plan::WriteFolio(one("reclaim_flags")?),
        "mm_vmscan_throttled" => Plan::Throttled(one("usec_delayed")?),
        "mm_vmscan_reclaim_pages" => Plan::ReclaimPages(one("nr_scanned")?, one("nr_reclaimed")?),
        "mm_compaction_begin" => Plan::CompactionBegin,
        "mm_compaction_end" => Plan::CompactionEnd(one("status")?, COMPACT_SUCCESS),
        "mm_compaction_isolate_migratepages" => {
            Plan::IsolateMigrate(one("nr_scanned")?, one("nr_taken")?)
        }
        "mm_compaction_isolate_freepages" => {
            Plan::IsolateFree(one("nr_scanned")?, one("nr_taken")?)
        }
        "mm_compaction_fast_isolate_freepages" => {
            Plan::FastIsolateFree(one("nr_scanned")?, one("nr_taken")?)
        }
        "mm_compaction_migratepages" => {
            Plan::CompactionMigrate(one("nr_migrated")?, one("nr_failed")?)
        }
        "mm_compaction_try_to_compact_pages" => Plan::CompactionAttempt(one("order")?),
        "mm_compaction_suitable" => Plan::CompactionSuitable(one("ret")?),
        "mm_compaction_deferred" => Plan::CompactionDeferred,
        "mm_compaction_kcompactd_wake" => Plan::KcompactdWake,
        "mm_compaction_kcompactd_sleep" => Plan::KcompactdSleep,
        "mm_migrate_pages" => Plan::Migrate(
            one("succeeded")?,
            one("failed")?,
            FieldAccess::first_of(format, &["reason"]),
        ),
        "mark_victim" => Plan::OomVictim(one("pid")?),
        "sched_switch" => Plan::Switch(one("prev_pid")?, one("prev_state")?, one("next_pid")?),
        "kernel_stack" => Plan::Stack(StackAccess::new(format).ok_or("caller")?),
        "sched_wakeup" | "sched_wakeup_new" => {
            Plan::Wakeup(one("pid")?, FieldAccess::first_of(format, &["target_cpu"]))
        }
        "sched_process_fork" => Plan::Fork(one("child_pid")?),
        "sched_process_exit" => Plan::Exit,
        "page_fault_user" => Plan::UserFault(get(&["address", "cr2"])?),
        "balance_dirty_pages" => Plan::DirtyLimit(one("pause")?),
        "block_rq_issue" => Plan::BlockIssue(
            one("dev")?,
            one("sector")?,
            one("nr_sector")?,
            text("rwbs")?,
        ),
        "block_bio_queue" => Plan::BioQueue(one("dev")?, one("nr_sector")?, text("rwbs")?),
        "block_rq_complete" => Plan::BlockComplete(one("dev")?, one("sector")?, one("nr_sector")?),
        _ => return Ok(None),
    }))
}
