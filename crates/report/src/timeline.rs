//! The timeline of an observed trial: reclaim, compaction and waits of each task, requests to each device, and
//! counters.
//!
//! The timeline is made from the record's trace, phases and series; [`crate::trace::write`] writes it for Perfetto's
//! viewer.

use std::collections::{BTreeMap, HashMap};

use pagetide_compare::observation::{ObservationError, PHASES, TRACE};
use pagetide_probe::meaning::{Decoder, Event, PairKind, Pairs, Reclaimer, SleepSites, TraceEvent};
use pagetide_probe::observed::PhaseBegin;
use pagetide_probe::trace::TraceFile;
use pagetide_quantity::Nanos;
use pagetide_record::RecordReader;

use crate::trace::{Slice, Timeline, Track, counters};

/// Task state in the trace for an uninterruptible wait for I/O, a lock or a page (`TASK_UNINTERRUPTIBLE`, kernel
/// `include/linux/sched.h`).
const UNINTERRUPTIBLE: u64 = 2;

/// Makes the timeline of an observed record. Fails if the record has no trace or its data cannot be read.
pub fn timeline(reader: &RecordReader) -> Result<Timeline, ObservationError> {
    let record = reader.record();
    let has = |kind: &str, name: &str| {
        record
            .sections
            .iter()
            .any(|section| section.kind == kind && section.name == name)
    };
    if !has("blob", TRACE) {
        return Err(ObservationError::NotObserved {
            id: record.id(),
            pass: record.subject.pass,
        });
    }
    let file = TraceFile::read(reader.blob(TRACE)?)?;
    let mut decoder = Decoder::for_trace(&file)?;
    let mut slices = Slices::default();
    // The times of series start at the first event of the trace.
    let (mut begin, mut end) = (None, 0);
    for raw in file.events() {
        let begin = *begin.get_or_insert(raw.time);
        if let Some(mut traced) = decoder.decode(&raw) {
            slices.sleeps(&traced, decoder.sites());
            traced.time = traced.time.saturating_sub(begin);
            end = end.max(traced.time);
            slices.observe(&traced);
        }
    }
    let begin = begin.unwrap_or(0);
    let mut trace = Timeline {
        title: format!(
            "{}, seed {}",
            record.subject.cell_label(),
            record.subject.seed
        ),
        tracks: slices.tracks(|pid| file.meta.task(pid).map(str::to_owned)),
        counters: Vec::new(),
    };
    if has("blob", PHASES) {
        let phases: Vec<PhaseBegin> =
            serde_json::from_reader(reader.blob(PHASES)?).map_err(|why| {
                ObservationError::Blob {
                    name: PHASES,
                    id: record.id(),
                    why,
                }
            })?;
        trace.tracks.insert(0, phase_track(&phases, begin, end));
    }
    for section in record.sections.iter().filter(|s| s.kind == "series") {
        trace
            .counters
            .extend(counters(&reader.series(&section.name)?));
    }
    Ok(trace)
}

/// Returns the track of phases, each of which ends when the next begins. `begin` is the start of the trace; `end` is
/// relative to it.
fn phase_track(phases: &[PhaseBegin], begin: u64, end: u64) -> Track {
    let since = |phase: &PhaseBegin| phase.begin.0.saturating_sub(begin);
    let ends = phases.iter().skip(1).map(since);
    Track {
        group: "scenario".to_owned(),
        name: "phases".to_owned(),
        slices: phases
            .iter()
            .zip(ends.chain([end]))
            .map(|(phase, end)| slice(&phase.name, since(phase), end))
            .collect(),
    }
}

fn slice(name: &str, start: u64, end: u64) -> Slice {
    Slice {
        name: name.to_owned(),
        start: Nanos(start),
        duration: Nanos(end.saturating_sub(start)),
        details: Vec::new(),
    }
}

/// A sleep that has not ended yet.
struct Sleep {
    since: u64,
    name: &'static str,
    /// Place in the kernel where the task sleeps; `None` if its stack is unknown.
    site: Option<String>,
}

/// Intervals that have not ended yet, and ended intervals by group and task.
#[derive(Default)]
struct Slices {
    open: Pairs,
    kswapd: HashMap<i64, (u32, u64)>,
    /// The current sleep of each task, by process id.
    asleep: HashMap<u32, Sleep>,
    requests: HashMap<(u64, u64), (u64, u64, bool)>,
    closed: BTreeMap<(&'static str, u32), Vec<Slice>>,
    devices: BTreeMap<u64, Vec<Slice>>,
}

impl Slices {
    /// Stores the place in the kernel where a task fell asleep, if the event tells it.
    fn sleeps(&mut self, traced: &TraceEvent, sites: &SleepSites) {
        if let Event::SleepsIn { site: Some(site) } = traced.event
            && let Some(sleep) = self.asleep.get_mut(&traced.pid)
        {
            sleep.site = sites.get(site).map(ToString::to_string);
        }
    }

    fn observe(&mut self, traced: &TraceEvent) {
        let (pid, time) = (traced.pid, traced.time);
        match traced.event {
            Event::ReclaimBegin { by, .. } => self.open.begin(pid, PairKind::Reclaim(by), time),
            Event::ReclaimEnd { by, reclaimed } => {
                let details = vec![("reclaimed pages".to_owned(), reclaimed.to_string())];
                self.end(pid, PairKind::Reclaim(by), time, details);
            }
            Event::CompactionBegin => self.open.begin(pid, PairKind::Compaction, time),
            Event::CompactionEnd { success } => {
                let details = vec![("success".to_owned(), success.to_string())];
                self.end(pid, PairKind::Compaction, time, details);
            }
            Event::KswapdWake { node, .. } => {
                // The event also occurs when kswapd is already awake and gets a higher order.
                self.kswapd.entry(node).or_insert((pid, time));
            }
            Event::KswapdSleep { node } => {
                if let Some((pid, since)) = self.kswapd.remove(&node) {
                    self.close("kswapd", pid, slice("awake", since, time));
                }
            }
            Event::Throttled { microseconds } => {
                let start = time.saturating_sub(microseconds.saturating_mul(1000));
                self.close("stalls", pid, slice("throttled", start, time));
            }
            Event::Switch {
                previous,
                state,
                next,
            } => {
                if previous != 0 && state & UNINTERRUPTIBLE != 0 {
                    let sleep = Sleep {
                        since: time,
                        name: self.blocked(previous),
                        site: None,
                    };
                    self.asleep.insert(previous, sleep);
                }
                if let Some(sleep) = self.asleep.remove(&next) {
                    let mut wait = slice(sleep.name, sleep.since, time);
                    let site = sleep.site.unwrap_or_else(|| "not recorded".to_owned());
                    wait.details = vec![("slept on".to_owned(), site)];
                    self.close("stalls", next, wait);
                }
            }
            Event::BlockIssue {
                device,
                sector,
                sectors,
                write,
            } => {
                self.requests
                    .insert((device, sector), (time, sectors, write));
            }
            Event::BlockComplete { device, sector, .. } => {
                if let Some((since, sectors, write)) = self.requests.remove(&(device, sector)) {
                    let mut done = slice(if write { "write" } else { "read" }, since, time);
                    done.details = vec![
                        ("sector".to_owned(), sector.to_string()),
                        ("sectors".to_owned(), sectors.to_string()),
                    ];
                    self.devices.entry(device).or_default().push(done);
                }
            }
            _ => {}
        }
    }

    /// Returns the name for a wait that begins now; it depends on whether the task is in reclaim.
    fn blocked(&self, pid: u32) -> &'static str {
        if self.open.reclaimer(pid).is_some() {
            "blocked within reclaim"
        } else {
            "blocked"
        }
    }

    fn end(&mut self, pid: u32, kind: PairKind, time: u64, details: Vec<(String, String)>) {
        let Some(took) = self.open.end(pid, kind, time) else {
            return;
        };
        let (group, name) = match kind {
            PairKind::Reclaim(Reclaimer::Kswapd) => ("kswapd", "reclaim"),
            PairKind::Reclaim(Reclaimer::Memcg) => ("reclaim", "memory cgroup reclaim"),
            PairKind::Reclaim(_) => ("reclaim", "direct reclaim"),
            PairKind::Compaction => ("compaction", "compaction"),
        };
        let mut done = slice(name, time.saturating_sub(took.0), time);
        done.details = details;
        self.close(group, pid, done);
    }

    fn close(&mut self, group: &'static str, pid: u32, slice: Slice) {
        self.closed.entry((group, pid)).or_default().push(slice);
    }

    fn tracks(self, name: impl Fn(u32) -> Option<String>) -> Vec<Track> {
        let tasks = self.closed.into_iter().map(|((group, pid), slices)| Track {
            group: group.to_owned(),
            name: format!("{} {pid}", name(pid).unwrap_or_else(|| "task".to_owned())),
            slices,
        });
        let devices = self.devices.into_iter().map(|(device, slices)| Track {
            group: "block I/O".to_owned(),
            // Source: kernel `include/linux/kdev_t.h`.
            name: format!("device {}:{}", device >> 20, device & 0xf_ffff),
            slices,
        });
        tasks.chain(devices).collect()
    }
}

#[cfg(test)]
mod tests {
    use pagetide_probe::trace::Function;

    use super::*;

    fn at(time: u64, pid: u32, event: Event) -> TraceEvent {
        TraceEvent {
            time,
            cpu: 0,
            pid,
            event,
        }
    }

    #[test]
    fn pairs_become_slices_and_ends_without_begins_none() {
        let mut slices = Slices::default();
        let begin = Event::ReclaimBegin {
            by: Reclaimer::Direct,
            order: 0,
            memcg: None,
        };
        let end = Event::ReclaimEnd {
            by: Reclaimer::Direct,
            reclaimed: 32,
        };
        let sleep = Event::Switch {
            previous: 7,
            state: 2,
            next: 0,
        };
        let wake = Event::Switch {
            previous: 0,
            state: 0,
            next: 7,
        };
        for traced in [
            at(5, 7, end),
            at(10, 7, begin),
            at(12, 7, Event::CompactionBegin),
            at(20, 7, end),
            at(30, 7, sleep),
            at(45, 0, wake),
            at(50, 9, Event::KswapdWake { node: 0, order: 0 }),
            at(55, 9, Event::KswapdWake { node: 0, order: 3 }),
            at(60, 7, begin),
            at(62, 7, sleep),
            at(72, 0, wake),
            at(75, 7, end),
            at(90, 9, Event::KswapdSleep { node: 0 }),
        ] {
            slices.observe(&traced);
        }
        let tracks = slices.tracks(|pid| (pid == 7).then(|| "worker".to_owned()));
        let seen: Vec<_> = tracks
            .iter()
            .flat_map(|track| {
                track.slices.iter().map(|s| {
                    let name = format!("{}/{}/{}", track.group, track.name, s.name);
                    (name, s.start.0, s.duration.0)
                })
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("kswapd/task 9/awake".to_owned(), 50, 40),
                ("reclaim/worker 7/direct reclaim".to_owned(), 10, 10),
                ("reclaim/worker 7/direct reclaim".to_owned(), 60, 15),
                ("stalls/worker 7/blocked".to_owned(), 30, 15),
                ("stalls/worker 7/blocked within reclaim".to_owned(), 62, 10),
            ]
        );
        let not_recorded = detail("not recorded");
        for wait in tracks
            .iter()
            .filter(|track| track.group == "stalls")
            .flat_map(|track| &track.slices)
        {
            assert_eq!(wait.details, not_recorded);
        }
    }
    fn detail(text: &str) -> [(String, String); 1] {
        [("slept on".to_owned(), text.to_owned())]
    }

    #[test]
    fn a_wait_has_the_place_from_its_own_stack() {
        let function = Function {
            address: 1,
            name: "io_wait_of_some_kind".to_owned(),
        };
        let mut sites = SleepSites::new(&[function]);
        let site = sites.site(std::iter::once(1));
        let mut slices = Slices::default();
        let switch = |previous, state, next| Event::Switch {
            previous,
            state,
            next,
        };
        for traced in [
            at(10, 7, switch(7, 2, 0)),
            // An event of a task that does not sleep is ignored.
            at(11, 9, Event::SleepsIn { site }),
            at(20, 0, switch(0, 0, 7)),
            at(30, 7, switch(7, 2, 0)),
            at(31, 7, Event::SleepsIn { site }),
            at(40, 0, switch(0, 0, 7)),
        ] {
            slices.sleeps(&traced, &sites);
            slices.observe(&traced);
        }
        let tracks = slices.tracks(|_| None);
        let waits: Vec<_> = tracks[0].slices.iter().map(|wait| &wait.details).collect();
        assert_eq!(
            waits,
            [&detail("not recorded"), &detail("io_wait_of_some_kind")]
        );
    }
}
