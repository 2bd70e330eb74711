//! Begin and end events, paired by task.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::event::Reclaimer;
use pagetide_quantity::{Histogram, Nanos};

/// What begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairKind {
    /// A reclaim by a task.
    Reclaim(Reclaimer),
    /// Compaction of one zone.
    Compaction,
}

impl PairKind {
    /// How many kinds there are.
    pub const COUNT: usize = Reclaimer::ALL.len() + 1;

    /// Its place among all kinds.
    pub const fn index(self) -> usize {
        match self {
            Self::Reclaim(by) => by.index(),
            Self::Compaction => Reclaimer::ALL.len(),
        }
    }
}

/// One open pair.
#[derive(Debug, Clone, Copy)]
struct OpenPair {
    kind: PairKind,
    since: u64,
}

/// The pairs of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairTimes {
    /// How long each took.
    pub latency: Histogram,
    /// Begins that had no end: cut off by the end of the trace, or lost.
    pub unmatched_begins: u64,
    /// Ends that had no begin: begun before the trace, or lost.
    pub unmatched_ends: u64,
}

/// Pairs begins and ends by task, innermost first. Memory depends on how many tasks have something open.
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
    /// Nothing open.
    pub fn new() -> Self {
        Self {
            open: HashMap::new(),
            paired: vec![PairTimes::default(); PairKind::COUNT],
        }
    }

    /// Something begins.
    pub fn begin(&mut self, pid: u32, kind: PairKind, time: u64) {
        self.open
            .entry(pid)
            .or_default()
            .push(OpenPair { kind, since: time });
    }

    /// Something ends; gives how long it took, or `None` where its begin is missing. What was opened within it and not
    /// closed counts as begins without end.
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
        // Clocks of different CPUs may differ by a little; a negative duration is none.
        let took = Nanos(time.saturating_sub(since));
        self.paired[kind.index()].latency.record(took.0);
        Some(took)
    }

    /// The innermost reclaim a task is in.
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

    /// At the end of a trace: counts open begins as unmatched.
    pub fn finish(&mut self) {
        for (_, stack) in self.open.drain() {
            for open in stack {
                self.paired[open.kind.index()].unmatched_begins += 1;
            }
        }
    }

    /// The pairs of one kind.
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
