//! The kernel's counters before and after a scenario: those of the machine, of the workload's memory cgroup, or of
//! both.

use std::collections::BTreeMap;
use std::fs;

use pagetide_probe::{MissingSource, ProbeError, Probes, Scope};
use pagetide_record::record::{Counters, Halts};
use pagetide_system::idle::{Timers, ticks};
use serde::{Deserialize, Serialize};

/// Files of `/proc` about the whole machine, whose text is recorded.
const TEXTS: [&str; 3] = ["zoneinfo", "buddyinfo", "swaps"];

/// The opened sources of counters that are read just before and just after a scenario.
pub struct CounterSet {
    probes: Probes,
    /// True if counters and texts of the whole machine are read.
    machine: bool,
}

impl CounterSet {
    /// Opens all sources of counters in `scope`.
    pub fn open(scope: &Scope) -> Self {
        Self {
            probes: Probes::open(scope, 0),
            machine: scope.group.is_none() || scope.machine,
        }
    }

    /// Returns the sources of counters that this kernel does not have.
    pub fn unsupported(&self) -> &[MissingSource] {
        self.probes.unsupported()
    }

    /// Reads texts and counters before the scenario. The counters are read last.
    pub fn before(&mut self) -> Result<Moment, ProbeError> {
        self.refresh();
        let moment = read_texts(self.machine);
        self.probes.before()?;
        Ok(moment)
    }

    /// Reads counters and texts after the scenario. The counters are read first. Returns the texts, and the counters by
    /// source, each with its value before and after the scenario.
    pub fn after(self) -> Result<(Moment, BTreeMap<String, Counters>), ProbeError> {
        self.refresh();
        let machine = self.machine;
        let found = self.probes.after()?;
        let moment = read_texts(machine);
        let counters = found
            .into_iter()
            .map(|(source, found)| {
                let values = found.counters.into_iter().collect();
                (source, Counters { values })
            })
            .collect();
        Ok((moment, counters))
    }

    /// Makes the kernel add the per-CPU differences to the machine's counters, if it has `vm.stat_refresh`.
    fn refresh(&self) {
        if self.machine {
            let _ = fs::write("/proc/sys/vm/stat_refresh", "1");
        }
    }
}

/// Reads the files of [`TEXTS`]. Returns no texts if `machine` is false.
fn read_texts(machine: bool) -> Moment {
    let texts = TEXTS.iter().filter(|_| machine).filter_map(|name| {
        let text = fs::read_to_string(format!("/proc/{name}")).ok()?;
        Some(((*name).to_owned(), text))
    });
    Moment {
        texts: texts.collect(),
    }
}

/// Texts of files in `/proc` at one point in time, by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Moment {
    texts: Vec<(String, String)>,
}

/// Counters that show whether CPUs were idle, at one point in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// Sum of `idle_calls` over all CPUs, from `/proc/timer_list`; `None` if the file has no such line.
    pub calls: Option<u64>,
    /// Idle time plus I/O-wait time from `/proc/stat`, in clock ticks.
    pub ticks: u64,
}

/// Reads the current idle counters.
pub fn idle() -> Idle {
    Idle {
        calls: Timers::now().idle_calls(),
        ticks: ticks(),
    }
}

impl Moment {
    /// Creates a [`Moment`] with a single text.
    #[cfg(test)]
    pub(crate) fn of(name: &str, text: String) -> Self {
        Self {
            texts: vec![(name.to_owned(), text)],
        }
    }

    /// Returns the text of the file `/proc/NAME`, such as `zoneinfo`; `None` if it was not read.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, text)| text.as_str())
    }
}

/// Returns the texts of two points in time in one map, with keys such as `zoneinfo-before` and `zoneinfo-after`.
pub fn texts(before: &Moment, after: &Moment) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for name in TEXTS {
        for (moment, when) in [(before, "before"), (after, "after")] {
            if let Some(text) = moment.text(name) {
                all.insert(format!("{name}-{when}"), text.to_owned());
            }
        }
    }
    all
}

/// Combines the idle counters of two points in time. Equal counters mean that the CPU never halted in between.
pub fn halts(before: Idle, after: Idle) -> Halts {
    Halts {
        idle_calls: before.calls.zip(after.calls).map(|(a, b)| [a, b]),
        idle_ticks: [before.ticks, after.ticks],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_in_a_group_is_counted_by_its_group_alone() {
        let group = tempfile::tempdir().unwrap();
        let stat = group.path().join("memory.stat");
        fs::write(&stat, "pgmajfault 5\n").unwrap();
        let mut set = CounterSet::open(&Scope {
            group: Some(group.path().to_owned()),
            ..Scope::default()
        });
        let before = set.before().unwrap();
        fs::write(&stat, "pgmajfault 9\nnew 3\n").unwrap();
        let (after, all) = set.after().unwrap();
        assert_eq!(all["memory.stat"].delta("pgmajfault"), Some(4));
        assert_eq!(all["memory.stat"].delta("new"), Some(3), "it was 0 before");
        assert_eq!(all["memory.stat"].delta("none"), None);
        assert_eq!(all.len(), 1, "nothing of the machine is in it");
        assert!(texts(&before, &after).is_empty());
    }

    #[test]
    fn a_machine_of_its_own_is_counted_whole() {
        let mut set = CounterSet::open(&Scope::default());
        let before = set.before().unwrap();
        let (after, all) = set.after().unwrap();
        assert!(all["vmstat"].delta("pgfault").is_some());
        assert!(texts(&before, &after).contains_key("zoneinfo-after"));
    }
}
