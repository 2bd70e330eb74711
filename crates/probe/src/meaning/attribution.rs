//! Attribution of a task's time to parts, such as reclaim or waiting for I/O.
//!
//! Every moment of a task belongs to exactly one part. On a CPU, it is the innermost activity (compaction within
//! reclaim counts as compaction). Off the CPU, the task sleeps, within these activities or outside, or waits for a CPU.
//! Time on a CPU outside reclaim and compaction is split by the task's own CPU accounting into user mode and the rest,
//! which is page faults and system calls. Time that the trace cannot explain is *unexplained*, so the parts always add
//! up to the elapsed time.

mod parts;
mod task_time;
mod track;

use std::collections::HashMap;

use super::decoder::Decoder;
use super::event::{Event, TraceEvent};
use super::sleep::SleepSites;
use crate::ProbeError;
use crate::trace::TraceFile;
use pagetide_quantity::Nanos;
pub use parts::{Part, Parts};
pub use task_time::{QueueWait, SiteSleeps, TaskAccounting, TaskTime, Waits};
use track::Track;

/// Attributes the time of these tasks in a stored trace to parts. The trace must contain the events of
/// [`super::ATTRIBUTION_EVENTS`] and [`super::RECLAIM_EVENTS`].
pub fn attribute(trace: &TraceFile, tasks: &[TaskAccounting]) -> Result<Vec<TaskTime>, ProbeError> {
    follow(trace, Attribution::new(tasks))
}

/// Attributes a task's time within these windows to parts. Windows must not overlap. All time on a CPU outside reclaim
/// and compaction counts as [`Part::Fault`], because user time is not known per window.
pub fn attribute_within(
    trace: &TraceFile,
    pid: u32,
    windows: &[[Nanos; 2]],
) -> Result<TaskTime, ProbeError> {
    let mut times = follow(trace, Attribution::within(pid, windows))?;
    Ok(times.remove(0))
}

fn follow(trace: &TraceFile, mut attribution: Attribution) -> Result<Vec<TaskTime>, ProbeError> {
    let mut decoder = Decoder::for_trace(trace)?;
    for raw in trace.events() {
        if let Some(traced) = decoder.decode(&raw) {
            attribution.observe(&traced);
        }
    }
    let mut times = attribution.finish_with(decoder.sites());
    for queued in times.iter_mut().flat_map(|time| &mut time.behind) {
        let name = trace.meta.task(queued.pid).unwrap_or_default();
        name.clone_into(&mut queued.name);
    }
    Ok(times)
}

/// Attributes the time of chosen tasks to parts, one event of a trace after the other.
#[derive(Debug, Clone, Default)]
pub struct Attribution {
    tracks: HashMap<u32, Track>,
    switches_seen: bool,
    latest: u64,
}

impl Attribution {
    /// Starts the attribution for these tasks.
    pub fn new(tasks: &[TaskAccounting]) -> Self {
        let tracks = tasks
            .iter()
            .map(|accounting| (accounting.pid, Track::new(accounting)))
            .collect();
        Self {
            tracks,
            switches_seen: false,
            latest: 0,
        }
    }

    /// Starts the attribution for one task within these windows, which must not overlap.
    pub fn within(pid: u32, windows: &[[Nanos; 2]]) -> Self {
        let mut windows: Vec<[u64; 2]> = windows
            .iter()
            .map(|window| window.map(|time| time.0))
            .collect();
        windows.sort_unstable();
        let mut all = Self::new(&[TaskAccounting {
            pid,
            begin: Some(windows.first().map_or(Nanos(0), |first| Nanos(first[0]))),
            end: Some(windows.last().map_or(Nanos(0), |last| Nanos(last[1]))),
            ..TaskAccounting::default()
        }]);
        for track in all.tracks.values_mut() {
            track.only_within(windows.clone());
        }
        all
    }

    /// Adds the next event. Events must be added in order of time.
    pub fn observe(&mut self, traced: &TraceEvent) {
        let TraceEvent {
            time, pid, event, ..
        } = *traced;
        self.latest = self.latest.max(time);
        match event {
            Event::Fork { child } => {
                if let Some(track) = self.tracks.get_mut(&child) {
                    track.made(time);
                }
            }
            Event::Switch {
                previous,
                state,
                next,
            } => {
                self.switches_seen = true;
                for track in self.tracks.values_mut() {
                    track.queue(time, traced.cpu, previous);
                }
                if let Some(track) = self.tracks.get_mut(&previous) {
                    track.leaves(time, traced.cpu, state);
                }
                if let Some(track) = self.tracks.get_mut(&next) {
                    track.switched_to(time);
                }
            }
            Event::SleepsIn { site } => {
                if let Some(track) = self.tracks.get_mut(&pid) {
                    track.sleeps_in(site);
                }
            }
            Event::Wakeup { pid, cpu } => {
                if let Some(track) = self.tracks.get_mut(&pid) {
                    track.woken(time, cpu);
                }
            }
            _ => {
                if let Some(track) = self.tracks.get_mut(&pid) {
                    track.own(time, event);
                }
            }
        }
    }

    /// Ends the measured time of every task and returns the attributions, in order of thread ID.
    pub fn finish(self) -> Vec<TaskTime> {
        self.finish_with(&SleepSites::default())
    }

    /// Ends the measured time of every task and returns the attributions, with the code locations of waits. `sites`
    /// comes from the decoder of the events.
    pub fn finish_with(self, sites: &SleepSites) -> Vec<TaskTime> {
        let mut times: Vec<_> = self
            .tracks
            .into_values()
            .map(|track| track.finish(self.switches_seen, self.latest, sites))
            .collect();
        times.sort_by_key(|time| time.pid);
        times
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Reclaimer;
    use super::track::UNINTERRUPTIBLE;
    use super::*;

    const TASK: u32 = 7;

    fn at(time: u64, pid: u32, event: Event) -> TraceEvent {
        TraceEvent {
            time,
            cpu: 0,
            pid,
            event,
        }
    }

    fn begin() -> Event {
        Event::ReclaimBegin {
            by: Reclaimer::Direct,
            order: 0,
            memcg: None,
        }
    }

    fn end() -> Event {
        Event::ReclaimEnd {
            by: Reclaimer::Direct,
            reclaimed: 1,
        }
    }

    fn out(state: u64) -> Event {
        Event::Switch {
            previous: TASK,
            state,
            next: 0,
        }
    }

    /// Returns a wakeup event of a kernel whose events do not name the CPU.
    fn woken() -> Event {
        Event::Wakeup {
            pid: TASK,
            cpu: None,
        }
    }

    fn back() -> Event {
        Event::Switch {
            previous: 0,
            state: 0,
            next: TASK,
        }
    }

    fn time_of(user: u64, system: u64, events: &[TraceEvent]) -> TaskTime {
        let mut attribution = Attribution::new(&[TaskAccounting {
            pid: TASK,
            begin: Some(Nanos(1000)),
            end: Some(Nanos(2000)),
            user: Some(Nanos(user)),
            system: Some(Nanos(system)),
        }]);
        for event in events {
            attribution.observe(event);
        }
        attribution.finish().remove(0)
    }

    #[test]
    fn every_moment_belongs_to_the_innermost_part() {
        let time = time_of(
            100,
            270,
            &[
                at(1100, TASK, begin()),
                at(1150, TASK, Event::CompactionBegin),
                at(1170, TASK, Event::CompactionEnd { success: true }),
                // The task sleeps uninterruptibly within reclaim, is woken, and waits for a CPU.
                at(1200, TASK, out(2)),
                at(1300, 9, woken()),
                at(1310, 0, back()),
                at(1350, TASK, end()),
                // The task swaps a page in.
                at(1400, TASK, out(0x102)),
                at(1800, 9, woken()),
                at(1800, 0, back()),
                // The task sleeps interruptibly.
                at(1900, TASK, out(1)),
                at(1940, 9, woken()),
                at(1940, 0, back()),
            ],
        );
        let part = |part| time.parts.get(part).0;
        assert_eq!(part(Part::Reclaim), 50 + 30 + 40);
        assert_eq!(part(Part::Compaction), 20);
        assert_eq!(part(Part::ReclaimWait), 100);
        assert_eq!(part(Part::RunQueue), 10);
        assert_eq!(part(Part::IoWait), 400);
        assert_eq!(part(Part::Sleep), 40);
        assert_eq!(part(Part::Compute), 100);
        // 100 before reclaim, 50 after, 100 after the swap-in and 60 at the end, minus 100 of user time.
        assert_eq!(part(Part::Fault), 210);
        assert_eq!(part(Part::Unexplained), 0);
        assert_eq!(time.parts.total(), time.elapsed);
        let reclaim = time.parts.get(Part::Reclaim).0 + time.parts.get(Part::ReclaimWait).0;
        assert_eq!(reclaim, 220);
        let wait = |longest| Waits {
            count: 1,
            longest: Nanos(longest),
        };
        // An interruptible sleep is not a wait.
        let waits = [(Part::ReclaimWait, wait(100)), (Part::IoWait, wait(400))];
        assert_eq!(time.waits, waits.into());
        assert_eq!(time.on_cpu, Nanos(450));
    }

    #[test]
    fn a_sleep_is_told_by_its_own_stack_and_by_no_others() {
        let on = |site| Event::SleepsIn { site };
        let mut attribution = Attribution::new(&[TaskAccounting {
            pid: TASK,
            begin: Some(Nanos(1000)),
            end: Some(Nanos(2000)),
            ..TaskAccounting::default()
        }]);
        let functions = ["__mutex_lock", "zcomp_stream_get", "folio_wait_bit"];
        let functions: Vec<_> = (1..)
            .zip(functions)
            .map(|(address, name)| crate::trace::Function {
                address,
                name: name.to_owned(),
            })
            .collect();
        let mut sites = SleepSites::new(&functions);
        let lock = sites.site([1, 2].into_iter());
        let page = sites.site([3].into_iter());
        for event in [
            at(1100, TASK, out(2)),
            at(1101, TASK, on(lock)),
            at(1150, 0, back()),
            at(1200, TASK, out(2)),
            at(1201, TASK, on(lock)),
            // This stack belongs to another task.
            at(1202, 9, on(page)),
            at(1230, 0, back()),
            at(1300, TASK, out(2)),
            at(1301, TASK, on(page)),
            at(1400, 0, back()),
            // No stack was recorded for this sleep; the previous stack must not be used.
            at(1500, TASK, out(2)),
            at(1520, 0, back()),
            // The task is preempted, so this is not a sleep.
            at(1600, TASK, out(0)),
            at(1601, TASK, on(page)),
            at(1700, 0, back()),
        ] {
            attribution.observe(&event);
        }
        let time = attribution.finish_with(&sites).remove(0);
        let told: Vec<_> = time
            .slept
            .iter()
            .map(|slept| {
                assert_eq!(slept.part, Part::IoWait);
                let site = slept.site.as_ref().map(ToString::to_string);
                (site, slept.count, slept.time.0, slept.longest.0)
            })
            .collect();
        let lock = "__mutex_lock in zcomp_stream_get (a mutex)".to_owned();
        let page = "folio_wait_bit (a page that is locked or being written)".to_owned();
        assert_eq!(
            told,
            [
                (Some(page), 1, 100, 100),
                (Some(lock), 2, 80, 50),
                (None, 1, 20, 20)
            ]
        );
    }

    #[test]
    fn a_sleep_for_the_dirty_limits_is_told_from_waits_for_io() {
        let limit = |sleeps| Event::DirtyLimit { sleeps };
        let request = Event::BlockIssue {
            device: 1,
            sector: 8,
            sectors: 8,
            write: true,
        };
        let time = time_of(
            0,
            200,
            &[
                at(1100, TASK, limit(true)),
                at(1105, TASK, request),
                at(1110, TASK, out(0x102)),
                at(1400, 9, woken()),
                at(1410, 0, back()),
                // The next wait has another reason: the dirty limits released the task.
                at(1500, TASK, limit(false)),
                at(1510, TASK, out(2)),
                at(1600, 9, woken()),
                at(1600, 0, back()),
                // Any event of the task between the limit event and the sleep means that the sleep has another reason.
                at(1700, TASK, limit(true)),
                at(1720, TASK, Event::UserFault { address: 0 }),
                at(1750, TASK, out(2)),
                at(1800, 9, woken()),
                at(1800, 0, back()),
            ],
        );
        assert_eq!(time.parts.get(Part::DirtyLimit), Nanos(290));
        assert_eq!(time.parts.get(Part::IoWait), Nanos(90 + 50));
        assert_eq!(time.waits[&Part::DirtyLimit].count, 1);
        assert_eq!(time.parts.total(), time.elapsed);
    }

    #[test]
    fn without_task_switches_what_accounting_does_not_cover_is_unexplained() {
        let time = time_of(200, 300, &[at(1100, TASK, begin()), at(1200, TASK, end())]);
        assert_eq!(time.parts.get(Part::Reclaim), Nanos(100));
        assert_eq!(time.parts.get(Part::Compute), Nanos(200));
        assert_eq!(time.parts.get(Part::Fault), Nanos(200));
        assert_eq!(time.parts.get(Part::Unexplained), Nanos(500));
        assert_eq!(time.parts.total(), time.elapsed);
    }

    #[test]
    fn a_task_never_heard_of_is_unexplained_whole() {
        let time = time_of(0, 0, &[at(1500, 3, begin())]);
        assert_eq!(time.parts.get(Part::Unexplained), Nanos(1000));
    }

    #[test]
    fn events_outside_the_measured_time_count_nothing() {
        let time = time_of(
            0,
            1000,
            &[
                at(500, TASK, begin()),
                at(600, TASK, end()),
                at(2500, TASK, begin()),
                at(2600, TASK, end()),
            ],
        );
        assert_eq!(time.parts.get(Part::Reclaim), Nanos(0));
        assert_eq!(time.parts.total(), Nanos(1000));
    }

    #[test]
    fn only_what_lies_within_windows_counts_though_all_is_followed() {
        let mut attribution = Attribution::within(
            TASK,
            &[[1000, 1100], [1400, 1600]].map(|window| window.map(Nanos)),
        );
        for traced in [
            at(900, TASK, Event::UserFault { address: 0 }),
            at(950, TASK, begin()),
            at(1050, TASK, end()),
            at(1060, TASK, Event::UserFault { address: 0 }),
            at(1200, TASK, begin()),
            at(1300, TASK, end()),
            at(1350, TASK, Event::CompactionBegin),
            at(1450, TASK, Event::CompactionEnd { success: true }),
            at(1500, TASK, out(2)),
            at(1550, 9, woken()),
            at(1700, 0, back()),
        ] {
            attribution.observe(&traced);
        }
        let time = attribution.finish().remove(0);
        let part = |part| time.parts.get(part).0;
        assert_eq!(part(Part::Reclaim), 50);
        assert_eq!(part(Part::Compaction), 50);
        assert_eq!(part(Part::Fault), 50 + 50);
        assert_eq!(part(Part::IoWait), 50);
        assert_eq!(part(Part::RunQueue), 50);
        assert_eq!(time.elapsed, Nanos(300));
        assert_eq!(time.parts.total(), time.elapsed);
        assert_eq!(time.faults, 1);
    }

    #[test]
    fn a_wait_is_counted_once_whatever_is_traced_meanwhile_and_only_where_it_takes_measured_time() {
        let others = |previous, next| Event::Switch {
            previous,
            state: 0,
            next,
        };
        let time = time_of(
            0,
            0,
            &[
                // The wait begins before the measured time and ends within it.
                at(900, TASK, out(2)),
                at(1050, 9, woken()),
                at(1060, 0, back()),
                // The task waits while other tasks run; two wakeups are traced.
                at(1100, TASK, out(2)),
                at(1150, 40, others(40, 41)),
                at(1200, 41, others(41, 40)),
                at(1400, 9, woken()),
                at(1410, 9, woken()),
                at(1420, 0, back()),
                // The wait begins and ends after the measured time.
                at(2100, TASK, out(2)),
                at(2300, 9, woken()),
            ],
        );
        let expected = Waits {
            count: 2,
            longest: Nanos(300),
        };
        assert_eq!(time.waits, [(Part::IoWait, expected)].into());
        assert_eq!(time.parts.get(Part::IoWait), Nanos(350));
    }

    #[test]
    fn waiting_for_a_cpu_is_told_by_the_task_that_had_it() {
        let hand_on = |previous, next| Event::Switch {
            previous,
            state: 0,
            next,
        };
        let time = time_of(
            100,
            100,
            &[
                at(1100, TASK, hand_on(TASK, 40)),
                at(1300, 40, hand_on(40, 41)),
                at(1350, 41, hand_on(41, TASK)),
                at(1500, TASK, hand_on(TASK, 40)),
                at(1600, 40, hand_on(40, TASK)),
            ],
        );
        let behind: Vec<(u32, u64)> = time
            .behind
            .iter()
            .map(|queued| (queued.pid, queued.time.0))
            .collect();
        assert_eq!(behind, [(40, 300), (41, 50)]);
        assert_eq!(time.parts.get(Part::RunQueue), Nanos(350));
        assert_eq!(time.parts.total(), Nanos(1000));
    }

    #[test]
    fn a_task_woken_on_an_idle_cpu_runs_though_no_switch_to_it_was_traced() {
        let leave = |next| Event::Switch {
            previous: TASK,
            state: UNINTERRUPTIBLE,
            next,
        };
        let time = time_of(
            0,
            0,
            &[
                at(1100, TASK, leave(0)),
                at(1300, 0, woken()),
                at(1350, TASK, Event::UserFault { address: 0 }),
                at(1400, TASK, leave(0)),
                at(1700, 0, woken()),
                at(1900, TASK, leave(0)),
            ],
        );
        assert_eq!(time.parts.get(Part::RunQueue), Nanos(0));
        assert_eq!(time.parts.get(Part::IoWait), Nanos(200 + 300 + 100));
        assert_eq!(time.on_cpu, Nanos(400));
    }

    #[test]
    fn a_woken_task_waits_for_those_of_the_cpu_on_which_it_was_woken() {
        let sleep = Event::Switch {
            previous: TASK,
            state: UNINTERRUPTIBLE,
            next: 40,
        };
        let leave = |previous, next| Event::Switch {
            previous,
            state: 1,
            next,
        };
        let woken = Event::Wakeup {
            pid: TASK,
            cpu: Some(1),
        };
        let on_1 = |time, pid, event| TraceEvent {
            cpu: 1,
            ..at(time, pid, event)
        };
        let time = time_of(
            0,
            0,
            &[
                at(1100, TASK, sleep),
                at(1200, 40, woken),
                // CPU 0 no longer matters. On CPU 1 there is no traced switch from another task.
                at(1250, 40, leave(40, 0)),
                on_1(1300, 41, leave(41, 0)),
                on_1(1500, TASK, Event::UserFault { address: 0 }),
            ],
        );
        assert_eq!(time.behind.len(), 1, "{:?}", time.behind);
        assert_eq!(time.parts.get(Part::RunQueue), Nanos(100));
        assert_eq!(time.on_cpu, Nanos(100 + 700));
    }

    #[test]
    fn a_task_made_and_ended_within_the_trace_is_timed_by_it() {
        let mut attribution = Attribution::new(&[TaskAccounting {
            pid: TASK,
            user: Some(Nanos(30)),
            system: Some(Nanos(10)),
            ..TaskAccounting::default()
        }]);
        for event in [
            at(50, TASK, begin()),
            at(100, 1, Event::Fork { child: TASK }),
            at(101, 1, woken()),
            at(110, 1, back()),
            at(150, TASK, Event::Exit),
            at(160, TASK, out(64)),
        ] {
            attribution.observe(&event);
        }
        let time = attribution.finish().remove(0);
        assert_eq!(time.elapsed, Nanos(50));
        assert_eq!(time.parts.total(), time.elapsed);
        assert_eq!(time.parts.get(Part::RunQueue), Nanos(9));
        assert_eq!(time.parts.get(Part::Compute), Nanos(30));
        assert_eq!(time.parts.get(Part::Fault), Nanos(10));
    }

    #[test]
    fn a_reclaim_whose_end_was_lost_ends_at_the_next_user_fault() {
        let fault = Event::UserFault { address: 0 };
        let time = time_of(0, 1000, &[at(1100, TASK, begin()), at(1200, TASK, fault)]);
        assert_eq!(time.parts.get(Part::Reclaim), Nanos(100));
        assert_eq!(time.faults, 1);
    }
}
