//! Planted differences whose direction is known.

use serde_json::Value;

use crate::tool::{Tool, causes, pairs, rows};

/// Expected direction of the metric.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sense {
    Improved,
    Regressed,
    /// The change has no effect: the metric must be neither improved nor regressed, and nothing may be explained.
    Nothing,
    /// The direction follows from this metric, which is a count of the kernel. If the count is higher with the change
    /// for all seeds, the verdict must be regressed. If it is lower for all seeds, the verdict must be improved.
    /// Otherwise the direction is unknown, and only a verdict that contradicts most seeds is wrong.
    Follows(&'static str),
}

/// Difference between the two sides.
enum Change {
    /// The second variant has this setting.
    Setting(&'static str, &'static str),
    /// The sides are two cells with these options.
    Cell(&'static [&'static str], &'static [&'static str]),
}

/// A difference with a known direction.
struct Planted {
    name: &'static str,
    workload: &'static str,
    change: Change,
    metric: &'static str,
    sense: Sense,
    /// One of these mechanisms must be named first; if empty, none may be named.
    causes: &'static [&'static str],
}

const RANDOM: &str = "random -p pages=28M -p refs=8000";
/// Pages that are needed again are read individually, so time is proportional to their number.
const SINGLY: &str = "random -p pages=28M -p refs=8000 --swap ssd:400us --set vm.page-cluster=0";
const LINEAR: &str = "linear -p pages=40M -p refs=12000 --swap ssd:80us";
const FILES: &str = "filecopy -p methods=rw-cp -p verify=false -p size=32M -p victim=8M -p victim-mapping=anon --swap ssd:400us";
const WRITER: &str = "filecopy -p methods=rw-cp -p verify=false -p size=24M -p victim=0";
const HOT: &str =
    "scan-with-hot-core -p pages=32M -p refs=40000 --swap ssd:80us --set vm.page-cluster=0";
const BLOCKS: &str =
    "highalloc -p fragment=0 -p jobs=0 -p share=0.5 -p age=1s -p rest=1s -p rate=8M";
const SCATTERED: &str =
    "highalloc -p fragment=0.2 -p jobs=0 -p share=0.5 -p age=1s -p rest=1s -p rate=8M";
const MEMORY: &[&str] = &["shared-memory", "eviction-choice"];

const PLANTED: [Planted; 16] = [
    Planted {
        name: "latency-doubled",
        workload: RANDOM,
        change: Change::Cell(&["--swap", "ssd:80us"], &["--swap", "ssd:160us"]),
        metric: "access-time",
        sense: Sense::Regressed,
        causes: &["device-latency"],
    },
    Planted {
        name: "page-cluster-up-ascending",
        workload: LINEAR,
        change: Change::Setting("vm.page-cluster=0", "vm.page-cluster=3"),
        metric: "access-time",
        sense: Sense::Improved,
        causes: &["read-ahead"],
    },
    Planted {
        name: "page-cluster-down-ascending",
        workload: LINEAR,
        change: Change::Setting("vm.page-cluster=3", "vm.page-cluster=0"),
        metric: "access-time",
        sense: Sense::Regressed,
        causes: &["read-ahead"],
    },
    Planted {
        name: "swappiness-on-mixed-memory",
        workload: FILES,
        change: Change::Setting("vm.swappiness=0", "vm.swappiness=200"),
        metric: "victim-refaults",
        sense: Sense::Regressed,
        causes: &["eviction-choice"],
    },
    Planted {
        name: "swappiness-without-swap",
        workload: "filecopy -p methods=rw-cp -p verify=false -p size=24M -p victim=4M --swap none",
        change: Change::Setting("vm.swappiness=0", "vm.swappiness=200"),
        metric: "copy-time",
        sense: Sense::Nothing,
        causes: &[],
    },
    // Memory below the watermark is not available to the workload. The direction of the time depends on what reclaim
    // saves elsewhere, so the counters decide.
    Planted {
        name: "watermark-scale-factor",
        workload: SINGLY,
        change: Change::Setting(
            "vm.watermark_scale_factor=10",
            "vm.watermark_scale_factor=100",
        ),
        metric: "access-time",
        sense: Sense::Follows("major-faults"),
        causes: MEMORY,
    },
    Planted {
        name: "min-free",
        workload: SINGLY,
        change: Change::Setting("vm.min_free_kbytes=512", "vm.min_free_kbytes=1536"),
        metric: "access-time",
        sense: Sense::Follows("major-faults"),
        causes: MEMORY,
    },
    Planted {
        name: "a-tenth-of-memory-less",
        workload: SINGLY,
        change: Change::Cell(&["--memory", "20M"], &["--memory", "18M"]),
        metric: "access-time",
        sense: Sense::Regressed,
        causes: MEMORY,
    },
    Planted {
        name: "disk-for-zram",
        workload: RANDOM,
        change: Change::Cell(&["--swap", "zram"], &["--swap", "ssd:1ms"]),
        metric: "access-time",
        sense: Sense::Regressed,
        causes: &["device-latency"],
    },
    Planted {
        name: "mglru-on",
        workload: HOT,
        change: Change::Setting("lru_gen/enabled=0", "lru_gen/enabled=7"),
        metric: "access-time",
        sense: Sense::Follows("major-faults"),
        causes: &["eviction-choice"],
    },
    Planted {
        name: "mglru-walks-off",
        workload: HOT,
        change: Change::Setting("lru_gen/enabled=7", "lru_gen/enabled=5"),
        metric: "access-time",
        sense: Sense::Follows("major-faults"),
        causes: &["eviction-choice"],
    },
    Planted {
        name: "mglru-walks-of-upper-tables-off",
        workload: HOT,
        change: Change::Setting("lru_gen/enabled=7", "lru_gen/enabled=3"),
        metric: "access-time",
        sense: Sense::Follows("major-faults"),
        causes: &["eviction-choice"],
    },
    // With `never`, no memory is reclaimed or compacted for a fault (Documentation/admin-guide/mm/transhuge.rst).
    Planted {
        name: "no-huge-pages-made-where-they-are-advised",
        workload: SCATTERED,
        change: Change::Setting("thp/defrag=always", "thp/defrag=never"),
        metric: "success",
        sense: Sense::Regressed,
        causes: &["compaction"],
    },
    Planted {
        name: "huge-pages-where-all-is-advised-against",
        workload: "random -p pages=28M -p refs=8000 --swap zram",
        change: Change::Setting("thp/enabled=never", "thp/enabled=always"),
        metric: "access-time",
        sense: Sense::Nothing,
        causes: &[],
    },
    Planted {
        name: "dirty-limits-where-nothing-is-written",
        workload: BLOCKS,
        change: Change::Setting("vm.dirty_ratio=20", "vm.dirty_ratio=60"),
        metric: "attempt-time",
        sense: Sense::Nothing,
        causes: &[],
    },
    Planted {
        name: "dirty-limits-on-a-writer",
        workload: WRITER,
        change: Change::Setting("vm.dirty_bytes=16777216", "vm.dirty_bytes=262144"),
        metric: "copy-time",
        sense: Sense::Regressed,
        causes: &["dirty-limits"],
    },
];

/// Runs the differences; returns true if all ran, every direction is right and at most one first cause is wrong.
///
/// `only` selects differences whose name contains it. Seeds start at `first`.
pub fn run(tool: &Tool, only: Option<&str>, first: &str) -> bool {
    let [mut senses, mut firsts, mut all] = [0_usize; 3];
    for planted in PLANTED
        .iter()
        .filter(|planted| only.is_none_or(|only| planted.name.contains(only)))
    {
        all += 1;
        let Some((comparison, explained)) = of(tool, planted, first) else {
            println!("{}: did not run", planted.name);
            continue;
        };
        let row = rows(&comparison)
            .into_iter()
            .find(|row| row.name == planted.metric);
        let verdict = row.as_ref().map_or("absent", |row| row.verdict.as_str());
        let estimate = row.as_ref().map_or(f64::NAN, |row| row.estimate);
        let causes = causes(&explained);
        let known = known(planted.sense, &comparison);
        let sense = match known {
            Known::Improves => verdict == "improved",
            Known::Regresses => verdict == "regressed",
            Known::MattersNot => !["improved", "regressed"].contains(&verdict),
            Known::NotSurely(against) => verdict != against,
        };
        let first = match causes.first() {
            Some((first, _)) => planted.causes.contains(&first.as_str()),
            // If no difference is sure, nothing may be explained.
            None => planted.causes.is_empty() || matches!(known, Known::NotSurely(_)),
        };
        senses += usize::from(sense);
        firsts += usize::from(first);
        let causes: Vec<String> = causes
            .iter()
            .map(|(cause, effect)| {
                if effect.is_nan() {
                    format!("{cause}, of a count")
                } else {
                    format!("{cause} {:+.2} ms", effect / 1e6)
                }
            })
            .collect();
        println!(
            "{}: {} {verdict} ({estimate:.3}), planted {:?}: {}; causes {causes:?}, planted {:?}: {}",
            planted.name,
            planted.metric,
            known,
            if sense { "right" } else { "WRONG" },
            planted.causes,
            if first { "right" } else { "WRONG" },
        );
    }
    println!(
        "{all} planted differences: {senses} with the right sense, {firsts} with the right first cause"
    );
    senses == all && firsts + 1 >= all
}

/// Direction of a planted difference, known from its design or from the kernel's counters.
#[derive(Clone, Copy, Debug)]
enum Known {
    Improves,
    Regresses,
    MattersNot,
    /// The counts of the seeds differ in direction. This verdict would contradict most seeds.
    NotSurely(&'static str),
}

/// Minimum relative change of a count. With smaller changes, time may change by less than the margin of 1 % and be
/// equivalent.
const ENOUGH: f64 = 0.02;

fn known(sense: Sense, comparison: &Value) -> Known {
    let name = match sense {
        Sense::Improved => return Known::Improves,
        Sense::Regressed => return Known::Regresses,
        Sense::Nothing => return Known::MattersNot,
        Sense::Follows(name) => name,
    };
    let pairs = pairs(comparison, name);
    let higher = pairs
        .iter()
        .filter(|[a, b]| *b > a * (1.0 + ENOUGH))
        .count();
    let lower = pairs
        .iter()
        .filter(|[a, b]| *a > b * (1.0 + ENOUGH))
        .count();
    match (higher, lower) {
        (_, 0) if higher > 0 && higher == pairs.len() => Known::Regresses,
        (0, _) if lower > 0 && lower == pairs.len() => Known::Improves,
        _ if higher >= lower => Known::NotSurely("improved"),
        _ => Known::NotSurely("regressed"),
    }
}

/// Number of seeds of a campaign: twice as many for shares of blocks, because a trial attempts only a few dozen.
fn seeds(planted: &Planted) -> &'static str {
    if planted.metric == "success" {
        "16"
    } else {
        "8"
    }
}

/// Returns the comparison of a planted difference and its explanations; `None` if a command failed.
fn of(tool: &Tool, planted: &Planted, first: &str) -> Option<(Value, Vec<Value>)> {
    let seeds = seeds(planted);
    let mut sampling = vec!["--swap-size", "96M", "--seeds", seeds, "--observe=6"];
    sampling.extend(["--first-seed", first]);
    match planted.change {
        Change::Setting(a, b) => {
            let mut words: Vec<&str> = planted.workload.split(' ').collect();
            let memory = if planted.workload.starts_with("highalloc ") {
                "48M"
            } else {
                "16M"
            };
            words.extend(["--memory", memory, "--set", a, "--vs", b]);
            words.extend(&sampling);
            let comparison = tool.run(planted.name, &words)?;
            Some((comparison, tool.explain(&[planted.name])))
        }
        Change::Cell(a, b) => {
            let mut sides = Vec::new();
            for (side, options) in [("a", a), ("b", b)] {
                let name = format!("{}-{side}", planted.name);
                let mut words: Vec<&str> = planted.workload.split(' ').collect();
                words.extend(options);
                if !options.contains(&"--memory") {
                    words.extend(["--memory", "16M"]);
                }
                words.extend(&sampling);
                tool.run_alone(&name, &words)?;
                sides.push(format!("{name}:base"));
            }
            let comparison = tool.compare(&sides[0], &sides[1])?;
            let explained = tool.explain(&[&sides[0], &sides[1], "--anyway"]);
            Some((comparison, explained))
        }
    }
}
