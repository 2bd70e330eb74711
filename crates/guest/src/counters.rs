//! The kernel's own counters, before and after.

use std::collections::BTreeMap;
use std::fs;

use pagetide_probe::text::{self, KeyedSource};
use pagetide_record::record::{Counters, Halts};
use serde::{Deserialize, Serialize};

/// Sources of named numbers: the name here, the file, and how it is written.
const SOURCES: [(&str, &str, KeyedSource); 3] = [
    ("vmstat", "/proc/vmstat", KeyedSource::Vmstat),
    ("meminfo", "/proc/meminfo", KeyedSource::Meminfo),
    ("zram", "/sys/block/zram0/mm_stat", KeyedSource::ZramMmStat),
];
/// Texts kept as they are.
const TEXTS: [(&str, &str); 3] = [
    ("zoneinfo", "/proc/zoneinfo"),
    ("buddyinfo", "/proc/buddyinfo"),
    ("swaps", "/proc/swaps"),
];

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

/// Reads everything now; the texts are parsed outside, when the trial is over.
pub fn now() -> Moment {
    let _ = fs::write("/proc/sys/vm/stat_refresh", "1");
    let paths = SOURCES
        .iter()
        .map(|(name, path, _)| (*name, *path))
        .chain(TEXTS);
    Moment {
        texts: paths
            .filter_map(|(name, path)| Some((name.to_owned(), fs::read_to_string(path).ok()?)))
            .collect(),
    }
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
    for (source, _, form) in SOURCES {
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
    for (name, _) in TEXTS {
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

#[cfg(test)]
mod tests {
    use super::*;

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
