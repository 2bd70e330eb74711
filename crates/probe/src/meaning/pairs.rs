//! Matches begin and end events by task.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::event::Reclaimer;
use pagetide_quantity::{Histogram, Nanos};

/// Kind of activity that has a begin and an end event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairKind {
    /// A reclaim by a task.
    Reclaim(Reclaimer),
    /// Compaction of one zone by a task.
    Compaction,
}

impl PairKind {
    /// Number of kinds of pairs.
    pub const COUNT: usize = Reclaimer::ALL.len() + 1;

    /// Returns the index of this kind among all kinds, from 0.
    pub const fn index(self) -> usize {
        match self {
            Self::Reclaim(by) => by.index(),
            Self::Compaction => Reclaimer::ALL.len(),
        }
    }
}

/// A begin event for which no end event has been seen yet.
#[derive(Debug, Clone, Copy)]
struct OpenPair {
    kind: PairKind,
    since: u64,
}

/// Durations of one kind of pair.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairTimes {
    /// Duration of each pair, in nanoseconds.
    pub latency: Histogram,
    /// Number of begin events without an end event: the trace ended, or the end event was lost.
    pub unmatched_begins: u64,
    /// Number of end events without a begin event: the activity began before the trace, or the begin event was lost.
    pub unmatched_ends: u64,
}

/// Matches begin and end events by task, innermost first. Memory use depends on the number of tasks with begin events.
#[derive(Debug, Clone)]
pub struct Pairs {
    open: HashMap<u32, Vec<OpenPair>>,
    paired: Vec<PairTimes>,
}

impl Default for Pairs {
    fn default() -> Self {
        Self::new()
    }
}

impl Pairs {
    /// Creates a matcher without open begin events.
    pub fn new() -> Self {
        Self {
            open: HashMap::new(),
            paired: vec![PairTimes::default(); PairKind::COUNT],
        }
    }

    /// Records a begin event.
    pub fn begin(&mut self, pid: u32, kind: PairKind, time: u64) {
        self.open
            .entry(pid)
            .or_default()
            .push(OpenPair { kind, since: time });
    }

    /// Records an end event. Returns the duration, or `None` if there is no begin event. Begin events that are still
    /// open within the pair count as unmatched.
    pub fn end(&mut self, pid: u32, kind: PairKind, time: u64) -> Option<Nanos> {
        let found = self.open.get_mut(&pid).and_then(|stack| {
            let at = stack.iter().rposition(|open| open.kind == kind)?;
            Some((stack, at))
        });
        let Some((stack, at)) = found else {
            self.paired[kind.index()].unmatched_ends += 1;
            return None;
        };
        for inner in stack.drain(at + 1..) {
            self.paired[inner.kind.index()].unmatched_begins += 1;
        }
        let since = stack.pop()?.since;
        // Clocks of different CPUs may differ slightly; a negative duration counts as zero.
        let took = Nanos(time.saturating_sub(since));
        self.paired[kind.index()].latency.record(took.0);
        Some(took)
    }

    /// Returns the kind of the innermost reclaim that the task is in; `None` outside reclaim.
    pub fn reclaimer(&self, pid: u32) -> Option<Reclaimer> {
        self.open
            .get(&pid)?
            .iter()
            .rev()
            .find_map(|open| match open.kind {
                PairKind::Reclaim(by) => Some(by),
                PairKind::Compaction => None,
            })
    }

    /// Counts open begin events as unmatched. Must be called at the end of the trace.
    pub fn finish(&mut self) {
        for (_, stack) in self.open.drain() {
            for open in stack {
                self.paired[open.kind.index()].unmatched_begins += 1;
            }
        }
    }

    /// Returns the durations of one kind of pair.
    pub fn paired(&self, kind: PairKind) -> &PairTimes {
        &self.paired[kind.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECT: PairKind = PairKind::Reclaim(Reclaimer::Direct);
    const MEMCG: PairKind = PairKind::Reclaim(Reclaimer::Memcg);

    #[test]
    fn nested_pairs_and_tasks_are_kept_apart() {
        let mut pairs = Pairs::new();
        pairs.begin(1, DIRECT, 10);
        pairs.begin(2, DIRECT, 11);
        pairs.begin(1, MEMCG, 20);
        assert_eq!(pairs.reclaimer(1), Some(Reclaimer::Memcg));
        assert_eq!(pairs.end(1, MEMCG, 25), Some(Nanos(5)));
        assert_eq!(pairs.reclaimer(1), Some(Reclaimer::Direct));
        assert_eq!(pairs.end(2, DIRECT, 13), Some(Nanos(2)));
        assert_eq!(pairs.end(1, DIRECT, 40), Some(Nanos(30)));
        assert_eq!(pairs.paired(DIRECT).latency.count, 2);
        assert_eq!(pairs.reclaimer(1), None);
    }

    #[test]
    fn what_has_no_partner_is_counted_and_times_nothing() {
        let mut pairs = Pairs::new();
        assert_eq!(pairs.end(1, DIRECT, 5), None);
        pairs.begin(1, DIRECT, 10);
        pairs.begin(1, PairKind::Compaction, 12);
        pairs.end(1, DIRECT, 20);
        pairs.begin(3, MEMCG, 30);
        pairs.finish();
        assert_eq!(pairs.paired(DIRECT).unmatched_ends, 1);
        assert_eq!(pairs.paired(PairKind::Compaction).unmatched_begins, 1);
        assert_eq!(pairs.paired(MEMCG).unmatched_begins, 1);
        assert_eq!(pairs.paired(DIRECT).latency.sum, 10);
    }

    #[test]
    fn time_going_backwards_gives_no_negative_duration() {
        let mut pairs = Pairs::new();
        pairs.begin(1, DIRECT, 100);
        assert_eq!(pairs.end(1, DIRECT, 90), Some(Nanos(0)));
    }
}
