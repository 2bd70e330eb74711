//! Reads counters of memory cgroups before and after a workload, and over time.

use std::collections::BTreeMap;

use pagetide_quantity::{Nanos, Series, Unit};
use pagetide_system::{Counters, Delta, Syntax};

use crate::number;
use crate::trial::Trial;

use super::created::{MemoryGroup, read};

/// Source of counters: name in the record, syntax of its files, and prefix and name of each file.
type Source = (
    &'static str,
    Syntax,
    &'static [(&'static str, &'static str)],
);

/// The sources of a group's counters.
const SOURCES: [Source; 3] = [
    ("memory.stat", Syntax::KeyValue, &[("", "memory.stat")]),
    ("memory.events", Syntax::KeyValue, &[("", "memory.events")]),
    (
        "pressure",
        Syntax::Pressure,
        &[
            ("memory-", "memory.pressure"),
            ("io-", "io.pressure"),
            ("cpu-", "cpu.pressure"),
        ],
    ),
];

/// Columns of a group's series that come from `memory.stat`, with their units.
const OVER_TIME: [(&str, Unit); 7] = [
    ("anon", Unit::Bytes),
    ("file", Unit::Bytes),
    ("pgmajfault", Unit::Count),
    ("pgscan", Unit::Pages),
    ("pgsteal", Unit::Pages),
    ("workingset_refault_anon", Unit::Count),
    ("workingset_refault_file", Unit::Count),
];

/// Number of samples for which memory is allocated at the start.
const ROOM: usize = 256;

/// One sample of a group: time, memory, swap, time stalled on memory, and the columns of [`OVER_TIME`].
type Sample = [u64; 4 + OVER_TIME.len()];

/// Counters of some groups, read before a workload and sampled while it runs.
pub(crate) struct GroupLog<'g> {
    groups: Vec<&'g MemoryGroup>,
    /// Counters of each group before the workload, by source.
    before: Vec<BTreeMap<&'static str, Counters>>,
    samples: Vec<Vec<Sample>>,
    started: Nanos,
}

/// Growth of a group's counters during a workload.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupUse {
    /// Growth of the counters in `memory.stat`.
    stat: Delta,
    /// Growth of the counters in `memory.events`.
    events: Delta,
    /// Time for which some task of the group waited for memory; `None` if the kernel does not measure pressure.
    pub stalled: Option<Nanos>,
}

impl GroupUse {
    /// Returns the growth of a counter in `memory.stat`; 0 if the kernel has no such counter.
    pub(crate) fn stat(&self, name: &str) -> u64 {
        self.stat.growth(name).unwrap_or(0)
    }

    /// Returns the growth of a counter in `memory.events`; 0 if the kernel has no such counter.
    pub(crate) fn events(&self, name: &str) -> u64 {
        self.events.growth(name).unwrap_or(0)
    }

    /// Returns the number of evicted anonymous pages that were read back.
    pub(crate) fn refaults_anon(&self) -> u64 {
        self.stat("workingset_refault_anon")
    }

    /// Returns the number of evicted file pages that were read again.
    pub(crate) fn refaults_file(&self) -> u64 {
        self.stat("workingset_refault_file")
    }
}

impl<'g> GroupLog<'g> {
    /// Reads the counters of all groups before a workload. `now` is the time on the trial's clock.
    pub(crate) fn begin(groups: impl IntoIterator<Item = &'g MemoryGroup>, now: Nanos) -> Self {
        let groups: Vec<_> = groups.into_iter().collect();
        Self {
            before: groups.iter().map(|group| counters(group)).collect(),
            samples: groups.iter().map(|_| Vec::with_capacity(ROOM)).collect(),
            groups,
            started: now,
        }
    }

    /// Adds a sample of every group, taken at the time `now` of the trial's clock.
    pub(crate) fn sample(&mut self, now: Nanos) {
        let time = now.since(self.started);
        for (group, samples) in self.groups.iter().zip(&mut self.samples) {
            let stat = group.stat();
            let pressure = read(&group.file("memory.pressure"), Syntax::Pressure);
            let mut sample = [0; 4 + OVER_TIME.len()];
            sample[0] = time.0;
            sample[1] = group.used().0;
            sample[2] = group.swapped().0;
            sample[3] = pressure.get("some").unwrap_or(0);
            for (value, (name, _)) in sample[4..].iter_mut().zip(OVER_TIME) {
                *value = stat.get(name).unwrap_or(0);
            }
            samples.push(sample);
        }
    }

    /// Reads the counters of all groups after a workload, and stores them in the trial: the counters as sources such as
    /// `memory.stat-NAME`, and the samples as a series `group-NAME`. Returns the use of each group.
    pub(crate) fn end(self, trial: &mut Trial<'_>) -> Vec<GroupUse> {
        let mut all = Vec::with_capacity(self.groups.len());
        for ((group, before), samples) in self.groups.iter().zip(&self.before).zip(&self.samples) {
            let after = counters(group);
            let name = group.name().replace('/', "-");
            let none = Counters::new();
            let of = |source: &str| {
                let before = before.get(source).unwrap_or(&none);
                after.get(source).map(|after| after.delta(before))
            };
            all.push(GroupUse {
                stat: of("memory.stat").unwrap_or_default(),
                events: of("memory.events").unwrap_or_default(),
                stalled: of("pressure").and_then(|delta| delta.growth("memory-some").map(Nanos)),
            });
            for (source, after) in &after {
                let before = before.get(source).unwrap_or(&none);
                trial.counters(&format!("{source}-{name}"), before, after);
            }
            if !samples.is_empty() {
                trial.series(&series(&format!("group-{name}"), samples));
            }
        }
        all
    }
}

fn series(name: &str, samples: &[Sample]) -> Series {
    let column = |at: usize| samples.iter().map(move |row| number::signed(row[at]));
    let mut series = Series::new(name)
        .int("time", Unit::Nanos, column(0))
        .int("memory", Unit::Bytes, column(1))
        .int("swap", Unit::Bytes, column(2))
        .int("stalled", Unit::Nanos, column(3));
    for (at, (name, unit)) in OVER_TIME.iter().enumerate() {
        series = series.int(name, *unit, column(4 + at));
    }
    series
}

/// Returns the current counters of a group, by source. Leaves out sources that the kernel lacks.
fn counters(group: &MemoryGroup) -> BTreeMap<&'static str, Counters> {
    let mut all = BTreeMap::new();
    for (source, syntax, files) in SOURCES {
        let mut counters = Counters::new();
        for (prefix, file) in files {
            let found = read(&group.file(file), syntax);
            if prefix.is_empty() {
                counters = found;
                continue;
            }
            for (key, value) in found.iter() {
                counters.set(&format!("{prefix}{key}"), value);
            }
        }
        if !counters.is_empty() {
            all.insert(source, counters);
        }
    }
    all
}
