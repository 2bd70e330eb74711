//! The kernel's own counters, before and after: of the workload's control group where it has one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pagetide_probe::text::{self, KeyedSource};
use pagetide_record::record::{Counters, Halts};
use serde::{Deserialize, Serialize};

use crate::swap::Swap;

/// How the sources of named numbers are written, by their names in records.
const FORMS: [(&str, KeyedSource); 5] = [
    ("vmstat", KeyedSource::Vmstat),
    ("meminfo", KeyedSource::Meminfo),
    ("zram", KeyedSource::ZramMmStat),
    ("memory.stat", KeyedSource::MemoryStat),
    ("memory.events", KeyedSource::MemoryEvents),
];
/// Texts of the whole machine, kept as they are.
const TEXTS: [&str; 3] = ["zoneinfo", "buddyinfo", "swaps"];

/// Which counters are read around a scenario.
#[derive(Clone, Debug)]
pub struct Counted {
    files: Vec<(&'static str, PathBuf)>,
    /// Folds per-CPU differences into the machine's counters when written to.
    refresh: Option<PathBuf>,
}

impl Counted {
    /// Counters of the workload's control group, a folder of cgroup version 2; without one, of the whole machine.
    pub fn of(group: Option<&Path>) -> Self {
        let proc = Path::new("/proc");
        match group {
            Some(group) => Self {
                files: ["memory.stat", "memory.events"]
                    .map(|name| (name, group.join(name)))
                    .into(),
                refresh: None,
            },
            None => Self {
                files: ["vmstat", "meminfo"]
                    .into_iter()
                    .chain(TEXTS)
                    .map(|name| (name, proc.join(name)))
                    .collect(),
                refresh: Some(proc.join("sys/vm/stat_refresh")),
            },
        }
    }

    /// Those of a compressed swap device too, which must serve this workload alone.
    #[must_use]
    pub fn with_zram(mut self, swap: &Swap) -> Self {
        self.files
            .extend(swap.statistics().map(|file| ("zram", file)));
        self
    }

    /// Reads everything now; the texts are parsed when the trial is over.
    pub fn now(&self) -> Moment {
        if let Some(refresh) = &self.refresh {
            let _ = fs::write(refresh, "1");
        }
        Moment {
            texts: self
                .files
                .iter()
                .filter_map(|(name, path)| {
                    Some(((*name).to_owned(), fs::read_to_string(path).ok()?))
                })
                .collect(),
        }
    }
}

/// All counters at one moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Moment {
    texts: Vec<(String, String)>,
}

/// Idle counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// `idle_calls` of `/proc/timer_list`.
    pub calls: Option<u64>,
    /// Idle and I/O-wait time of `/proc/stat` in clock ticks.
    pub ticks: u64,
}

/// Reads the idle counters.
pub fn idle() -> Idle {
    Idle {
        calls: fs::read_to_string("/proc/timer_list")
            .ok()
            .and_then(|text| idle_calls(&text)),
        ticks: fs::read_to_string("/proc/stat")
            .ok()
            .map_or(0, |text| idle_ticks(&text)),
    }
}

/// The sum over CPUs of `.idle_calls : N`.
fn idle_calls(text: &str) -> Option<u64> {
    text.lines()
        .filter_map(|line| {
            line.trim()
                .strip_prefix(".idle_calls")?
                .trim()
                .strip_prefix(':')?
                .trim()
                .parse()
                .ok()
        })
        .reduce(|a: u64, b| a + b)
}

/// Fourth and fifth field of the `cpu` line: idle and iowait.
fn idle_ticks(text: &str) -> u64 {
    text.lines()
        .find(|line| line.starts_with("cpu "))
        .map_or(0, |line| {
            line.split_whitespace()
                .skip(4)
                .take(2)
                .filter_map(|n| n.parse::<u64>().ok())
                .sum()
        })
}

impl Moment {
    /// The text of one source, such as `zoneinfo`.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.texts
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, text)| text.as_str())
    }
}

/// Pairs two moments; `meminfo` is in bytes.
pub fn between(before: &Moment, after: &Moment) -> BTreeMap<String, Counters> {
    let mut all = BTreeMap::new();
    for (source, form) in FORMS {
        let (Some(a), Some(b)) = (before.text(source), after.text(source)) else {
            continue;
        };
        let parsed = |text: &str| {
            let mut counters = text::Counters::new();
            counters.parse(text.as_bytes(), form.syntax());
            counters
        };
        let earlier = parsed(a);
        let values = parsed(b)
            .iter()
            .map(|(name, value)| (name.to_owned(), [earlier.get(name).unwrap_or(0), value]))
            .collect();
        all.insert(source.to_owned(), Counters { values });
    }
    all
}

/// The texts of two moments, named `zoneinfo-before` and so on.
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

/// The proof that nothing halted between two moments.
pub fn halts(before: Idle, after: Idle) -> Halts {
    Halts {
        idle_calls: before.calls.zip(after.calls).map(|(a, b)| [a, b]),
        idle_ticks: [before.ticks, after.ticks],
    }
}

/// Sum of `nr_free_pages N` and of the per-CPU lists' `count: N`.
pub fn pages_free(zoneinfo: &str) -> Option<u64> {
    let mut found = None;
    for line in zoneinfo.lines().map(str::trim) {
        let number = line
            .strip_prefix("nr_free_pages")
            .or_else(|| line.strip_prefix("count:"));
        if let Some(number) = number.and_then(|text| text.trim().parse::<u64>().ok()) {
            found = Some(found.unwrap_or(0) + number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_cpu_lists_count_as_free() {
        let text = "Node 0, zone DMA\n      nr_free_pages 100\n    cpu: 0\n              count:    7\n              high: 9\n\
                    Node 0, zone DMA32\n      nr_free_pages 1000\n              count:    0\n";
        assert_eq!(pages_free(text), Some(1107));
        assert_eq!(pages_free("nothing"), None);
    }

    #[test]
    fn a_workload_in_a_group_is_counted_by_its_group_alone() {
        let group = tempfile::tempdir().unwrap();
        let stat = group.path().join("memory.stat");
        let counted = Counted::of(Some(group.path()));
        fs::write(&stat, "pgmajfault 5\n").unwrap();
        let before = counted.now();
        fs::write(&stat, "pgmajfault 9\n").unwrap();
        let all = between(&before, &counted.now());
        assert_eq!(all["memory.stat"].delta("pgmajfault"), Some(4));
        assert_eq!(all.len(), 1, "nothing of the machine is in it");
        assert!(Counted::of(None).now().text("vmstat").is_some());
    }

    #[test]
    fn counters_are_paired_by_name_and_new_ones_start_at_zero() {
        let a = Moment {
            texts: vec![("vmstat".into(), "pswpin 5\npgfault 9\n".into())],
        };
        let b = Moment {
            texts: vec![("vmstat".into(), "pswpin 8\npgfault 9\nnew 3\n".into())],
        };
        let all = between(&a, &b);
        assert_eq!(all["vmstat"].delta("pswpin"), Some(3));
        assert_eq!(all["vmstat"].delta("new"), Some(3));
        assert_eq!(all["vmstat"].delta("none"), None);
    }

    #[test]
    fn idle_is_read_from_timer_list_and_stat() {
        let timers = "  .nohz_mode      : 2\n  .idle_calls     : 41\n";
        assert_eq!(idle_calls(timers), Some(41));
        assert_eq!(idle_calls("nothing"), None);
        assert_eq!(idle_ticks("cpu  1 2 3 40 5 6\ncpu0 1 2 3 40 5 6\n"), 45);
    }
}
