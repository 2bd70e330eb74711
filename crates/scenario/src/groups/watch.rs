//! Watches memory cgroups while a workload runs: samples their counters, and requests reclaim at the stated times.

use pagetide_quantity::{Nanos, Series, Unit};

use crate::clock::{self, Clock};
use crate::error::Stop;
use crate::number;
use crate::trial::Trial;

use super::created::{MemoryGroup, Reclaimed};
use super::log::{GroupLog, GroupUse};
use super::spec::{GroupSpec, ReclaimRequest};

/// Interval between two samples of the groups' counters.
const EVERY: Nanos = Nanos::from_millis(50);

/// A request that was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MadeRequest {
    /// Index of the group.
    pub group: usize,
    /// Time from the start of the workload.
    pub at: Nanos,
    /// Amounts and time of the request.
    pub result: Reclaimed,
}

/// Results of a watch.
pub(crate) struct Watched {
    /// Use of each group, in the order of the groups.
    pub uses: Vec<GroupUse>,
    /// The requests, in the order in which they were made.
    pub requests: Vec<MadeRequest>,
}

/// A watch over memory cgroups. Its owner must call [`step`](Self::step) repeatedly while the workload runs.
pub(crate) struct Watch<'g> {
    groups: Vec<&'g MemoryGroup>,
    log: GroupLog<'g>,
    clock: Clock,
    started: Nanos,
    next_sample: Nanos,
    /// Requests that are not yet made, the next one last.
    to_come: Vec<(usize, ReclaimRequest)>,
    made: Vec<MadeRequest>,
}

impl<'g> Watch<'g> {
    /// Starts watching groups, each with its description. Times of requests count from now.
    pub(crate) fn begin(groups: &[(&'g MemoryGroup, &GroupSpec)], clock: Clock) -> Self {
        let all: Vec<_> = groups.iter().map(|(group, _)| *group).collect();
        let mut to_come: Vec<_> = groups
            .iter()
            .enumerate()
            .flat_map(|(at, (_, spec))| spec.requests.iter().map(move |request| (at, *request)))
            .collect();
        to_come.sort_by_key(|(at, request)| (request.at, *at));
        to_come.reverse();
        let made = Vec::with_capacity(to_come.len());
        let log = GroupLog::begin(all.iter().copied(), clock.now());
        let started = clock.now();
        Self {
            groups: all,
            log,
            clock,
            started,
            next_sample: Nanos(0),
            to_come,
            made,
        }
    }

    /// Returns true if all requests to reclaim have been made.
    pub(crate) fn has_asked_all(&self) -> bool {
        self.to_come.is_empty()
    }

    /// Sleeps until the next sample or request is due, then takes the sample or makes the request.
    pub(crate) fn step(&mut self) -> Result<(), Stop> {
        let now = self.clock.now().since(self.started);
        let request = self.to_come.last().map(|(_, request)| request.at);
        let due = request.map_or(self.next_sample, |at| at.min(self.next_sample));
        if due > now {
            clock::sleep(due.since(now));
        }
        match self.to_come.last().copied() {
            Some((group, request)) if request.at <= self.next_sample => {
                self.to_come.pop();
                let at = self.clock.now().since(self.started);
                let result = self.groups[group].reclaim(self.clock, request.size)?;
                self.made.push(MadeRequest { group, at, result });
            }
            _ => {
                self.log.sample(self.clock.now());
                let now = self.clock.now().since(self.started);
                self.next_sample = Nanos(now.0 + EVERY.0);
            }
        }
        Ok(())
    }

    /// Ends the watch. Stores counters and samples of each group, and the requests (series `requests`), in the trial.
    pub(crate) fn end(mut self, trial: &mut Trial<'_>) -> Watched {
        self.log.sample(self.clock.now());
        let uses = self.log.end(trial);
        if !self.made.is_empty() {
            trial.series(&series(&self.made));
        }
        Watched {
            uses,
            requests: self.made,
        }
    }
}

fn series(made: &[MadeRequest]) -> Series {
    let column =
        |of: fn(&MadeRequest) -> u64| made.iter().map(move |made| number::signed(of(made)));
    Series::new("requests")
        .int("time", Unit::Nanos, column(|made| made.at.0))
        .int("group", Unit::Count, column(|made| made.group as u64))
        .int("asked", Unit::Bytes, column(|made| made.result.asked.0))
        .int("taken", Unit::Bytes, column(|made| made.result.taken.0))
        .int("freed", Unit::Bytes, column(|made| made.result.freed.0))
        .int("took", Unit::Nanos, column(|made| made.result.time.0))
        .int(
            "complete",
            Unit::Count,
            column(|made| u64::from(made.result.is_complete)),
        )
}
