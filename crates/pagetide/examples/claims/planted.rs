//! Differences of known sense.

use serde_json::Value;

use crate::tool::{Tool, causes, rows};

/// Which way the planted difference moves the metric.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sense {
    Improved,
    Regressed,
    /// It cannot matter: the metric must not be called either, and nothing may be explained.
    Nothing,
}

/// What is changed.
enum Change {
    /// A setting of the second variant.
    Setting(&'static str, &'static str),
    /// Options of the second side, which make another cell.
    Cell(&'static [&'static str], &'static [&'static str]),
}

/// One planted difference.
struct Planted {
    name: &'static str,
    workload: &'static str,
    change: Change,
    metric: &'static str,
    sense: Sense,
    /// Mechanisms of which one must be named first.
    causes: &'static [&'static str],
}

const RANDOM: &str = "random -p pages=28M -p refs=8000";
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
    // Where direct reclaim is frequent, a higher factor lets kswapd start sooner (Documentation/admin-guide/sysctl/vm.rst).
    Planted {
        name: "watermark-scale-factor",
        workload: "random -p pages=28M -p refs=8000 --swap ssd:80us",
        change: Change::Setting(
            "vm.watermark_scale_factor=10",
            "vm.watermark_scale_factor=100",
        ),
        metric: "access-time",
        sense: Sense::Improved,
        causes: &[
            "direct-reclaim",
            "write-back",
            "reclaim-waits",
            "background-reclaim",
        ],
    },
    Planted {
        name: "min-free",
        workload: "random -p pages=28M -p refs=8000 --swap ssd:80us",
        change: Change::Setting("vm.min_free_kbytes=512", "vm.min_free_kbytes=2048"),
        metric: "access-time",
        sense: Sense::Regressed,
        causes: MEMORY,
    },
    Planted {
        name: "a-tenth-of-memory-less",
        workload: "random -p pages=28M -p refs=8000 --swap ssd:80us",
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
        sense: Sense::Improved,
        causes: &["eviction-choice"],
    },
    Planted {
        name: "mglru-walks-off",
        workload: HOT,
        change: Change::Setting("lru_gen/enabled=7", "lru_gen/enabled=5"),
        metric: "access-time",
        sense: Sense::Nothing,
        causes: &[],
    },
    Planted {
        name: "mglru-walks-of-upper-tables-off",
        workload: HOT,
        change: Change::Setting("lru_gen/enabled=7", "lru_gen/enabled=3"),
        metric: "access-time",
        sense: Sense::Nothing,
        causes: &[],
    },
    // Without it nothing is reclaimed or compacted for a fault (Documentation/admin-guide/mm/transhuge.rst).
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
        name: "proactive-compaction-unused",
        workload: BLOCKS,
        change: Change::Setting(
            "vm.compaction_proactiveness=0",
            "vm.compaction_proactiveness=20",
        ),
        metric: "attempt-time",
        sense: Sense::Nothing,
        causes: &[],
    },
    Planted {
        name: "dirty-limits-on-a-writer",
        workload: WRITER,
        change: Change::Setting("vm.dirty_ratio=80", "vm.dirty_bytes=262144"),
        metric: "copy-time",
        sense: Sense::Regressed,
        causes: &["write-back", "device-queue", "device-latency"],
    },
];

/// Runs them; true where every sense is right and at most one first cause is wrong.
pub fn run(tool: &Tool) -> bool {
    let [mut senses, mut firsts] = [0_usize; 2];
    for planted in &PLANTED {
        let Some((comparison, explained)) = of(tool, planted) else {
            println!("{}: did not run", planted.name);
            continue;
        };
        let row = rows(&comparison)
            .into_iter()
            .find(|row| row.name == planted.metric);
        let verdict = row.as_ref().map_or("absent", |row| row.verdict.as_str());
        let estimate = row.as_ref().map_or(f64::NAN, |row| row.estimate);
        let causes = causes(&explained);
        let sense = match planted.sense {
            Sense::Improved => verdict == "improved",
            Sense::Regressed => verdict == "regressed",
            Sense::Nothing => verdict != "improved" && verdict != "regressed",
        };
        let first = match causes.first() {
            Some((first, _)) => planted.causes.contains(&first.as_str()),
            None => planted.causes.is_empty(),
        };
        senses += usize::from(sense);
        firsts += usize::from(first);
        let causes: Vec<String> = causes
            .iter()
            .map(|(cause, effect)| format!("{cause} {:+.2} ms", effect / 1e6))
            .collect();
        println!(
            "{}: {} {verdict} ({estimate:.3}), planted {:?}: {}; causes {causes:?}, planted {:?}: {}",
            planted.name,
            planted.metric,
            planted.sense,
            if sense { "right" } else { "WRONG" },
            planted.causes,
            if first { "right" } else { "WRONG" },
        );
    }
    let all = PLANTED.len();
    println!(
        "{all} planted differences: {senses} with the right sense, {firsts} with the right first cause"
    );
    senses == all && firsts + 1 >= all
}

/// The comparison of a planted difference, and what explains it.
fn of(tool: &Tool, planted: &Planted) -> Option<(Value, Vec<Value>)> {
    let sampling = ["--swap-size", "96M", "--seeds", "8", "--observe=6"];
    match planted.change {
        Change::Setting(a, b) => {
            let mut words: Vec<&str> = planted.workload.split(' ').collect();
            let memory = if planted.workload.starts_with("highalloc ") {
                "48M"
            } else {
                "16M"
            };
            words.extend(["--memory", memory, "--set", a, "--vs", b]);
            words.extend(sampling);
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
                words.extend(sampling);
                tool.run_alone(&name, &words)?;
                sides.push(format!("{name}:base"));
            }
            let comparison = tool.compare(&sides[0], &sides[1])?;
            let explained = tool.explain(&[&sides[0], &sides[1], "--anyway"]);
            Some((comparison, explained))
        }
    }
}
