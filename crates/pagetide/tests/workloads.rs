//! Tests of described workloads in a guest: a case file, and the same case as a C program of the user.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use pagetide_testing::{Need, skip};

use crate::common::{KERNEL, Lab, metric, program};

/// Two processes: one is too large for its group, and the other waits for it and needs swap.
const PAIR: &str = r#"
name = "pair"
memory = "16M"
observe = "none"
[sampling]
seeds = 1
[workload]
[[workload.group]]
name = "small"
max = "2M"
swap-max = "0"
[[workload.process]]
name = "eater"
group = "small"
segment = [{ name = "heap", size = "6M" }]
phase = [{ do = "fill", segment = "heap" }]
[[workload.process]]
name = "other"
segment = [{ name = "heap", size = "110%" }]
phase = [
  { do = "fill", segment = "heap" },
  { do = "wait", for = "eater" },
  { do = "access", segment = "heap", pattern = "random", writes = 0.5 },
]
"#;

#[test]
fn a_case_file_runs_and_a_kill_ends_only_the_process_that_was_killed() {
    let Some(lab) = Lab::that_runs() else { return };
    let path = lab.folder().join("pair.toml");
    fs::write(&path, PAIR).unwrap();
    lab.ends(3, ["run", path.to_str().unwrap(), "--kernel", KERNEL]);
    let record = lab.newest(1).remove(0);
    let invalid = record["results"]["invalid"].as_array().unwrap();
    assert!(!invalid.is_empty(), "{record}");
    assert!(
        invalid.iter().all(|why| why["process"] == "eater"),
        "{invalid:?}"
    );
    let count = |name: &str| pagetide_quantity::floor(metric(&record, name));
    assert_eq!((count("killed"), count("unfinished")), (1, 0));
    // The size is 110 % of 16 MiB, read in one pass.
    assert_eq!(count("accesses"), 4505);
    assert!(count("major-faults") > 100, "{record}");
    assert_eq!(record["subject"]["params"]["case"], "pair");
}

#[test]
fn every_case_of_the_zoo_is_a_campaign_that_can_be_planned() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns/zoo");
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort_unstable();
    let names: Vec<String> = found
        .iter()
        .map(|path| {
            format!(
                "campaigns/zoo/{}",
                path.file_name().unwrap().to_string_lossy()
            )
        })
        .collect();
    let mut known: Vec<&str> = pagetide_campaign::ZOO_FILES
        .iter()
        .map(|(path, _)| *path)
        .collect();
    known.sort_unstable();
    assert_eq!(
        known, names,
        "campaign/src/zoo.rs lists the files of the zoo"
    );
}

/// Two variants of a case, and the metric in which they must differ.
struct Sides {
    case: &'static str,
    /// Options that define the two variants.
    options: &'static [&'static str],
    /// Options of the machine for the C program. They state the limits of groups that the program cannot create.
    machine: &'static [&'static str],
    /// Arguments of the C program.
    arguments: &'static [&'static str],
    /// Metric that differs; `None` if one side dies.
    metric: Option<&'static str>,
    /// Seeds for each variant.
    seeds: usize,
}

/// Mean of a metric, or share of the trials that died, for each of the two variants among the newest `count` records,
/// in the order of the variants' names.
fn values(lab: &Lab, count: usize, metric_name: Option<&str>) -> [f64; 2] {
    let records = lab.newest(count);
    let of = |variant: &Value| {
        let own = records
            .iter()
            .filter(|record| record["subject"]["variant"]["name"] == *variant);
        let numbers: Vec<f64> = own
            .map(|record| match metric_name {
                Some(name) => metric(record, name),
                None => f64::from(u8::from(
                    !record["results"]["invalid"].as_array().unwrap().is_empty(),
                )),
            })
            .collect();
        numbers.iter().sum::<f64>() / numbers.len() as f64
    };
    let mut names: Vec<Value> = Vec::new();
    for record in &records {
        let name = &record["subject"]["variant"]["name"];
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names.sort_by_key(ToString::to_string);
    assert_eq!(names.len(), 2, "{names:?}");
    [of(&names[0]), of(&names[1])]
}

/// Runs the command, and accepts any verdict.
fn runs(lab: &Lab, words: &[&str]) {
    let output = lab.pagetide(words.iter().copied()).output().unwrap();
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 1 | 3)),
        "{code:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Fails unless the case and its C program show the same effect: the same sign, and at least half of the size.
fn same_effect(sides: &Sides) {
    let Some(lab) = Lab::that_runs() else { return };
    if Command::new("cc").arg("--version").output().is_err() {
        return skip(Need::Runtimes, "there is no C compiler cc");
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../campaigns/zoo/{}.toml", sides.case));
    let file = file.to_str().unwrap();
    let (count, of_all) = (sides.seeds.to_string(), 2 * sides.seeds);
    let seeds = ["--seeds", &count, "--observe=none", "--name"];
    let mut words = vec!["run", file];
    words.extend(seeds);
    words.push("described");
    words.extend(sides.options);
    runs(&lab, &words);
    let described = values(&lab, of_all, sides.metric);
    let folder = lab.folder();
    let (source, binary) = (folder.join("case.c"), folder.join("case"));
    let written = Command::new(program())
        .args(["case", file, "-o"])
        .arg(&source)
        .status()
        .unwrap();
    assert!(written.success());
    let compiled = Command::new("cc")
        .args(["-O1", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&binary)
        .arg(&source)
        .status()
        .unwrap();
    assert!(compiled.success());
    let name = sides.metric.unwrap_or("time");
    let number = format!("effect={name} ([0-9]+):lower");
    let mut words = vec!["run"];
    words.extend(seeds);
    words.push("program");
    words.extend(sides.options);
    words.extend(sides.machine);
    words.extend([
        "--metric", &number, "--",
        // By a relative path, because the folder may lie in /dev/shm, over which a guest mounts a file system.
        "./case", "--seed", "{seed}",
    ]);
    words.extend(sides.arguments);
    runs(&lab, &words);
    let in_c = values(&lab, of_all, sides.metric.map(|_| "effect"));
    let effect = |[a, b]: [f64; 2]| match sides.metric {
        // A count may be 0 on one side, so the difference of counts is compared, not their ratio.
        Some("major-faults" | "reclaim-taken") | None => b - a,
        Some(_) => (b / a).ln(),
    };
    let (described, in_c) = (effect(described), effect(in_c));
    assert!(
        described.abs() > 0.05,
        "{}: no effect: {described}",
        sides.case
    );
    assert!(
        in_c * described.signum() >= described.abs() / 2.0,
        "{}: described {described}, in C {in_c}",
        sides.case
    );
}

/// Linux 6.1 against 6.12.
const OLDEST_AND_OLD: &[&str] = &[
    "--kernel",
    "debian:bookworm",
    "--kernel",
    "debian:bookworm/6.12",
];
/// Linux 6.12 against 7.2.
const OLD_AND_NEW: &[&str] = &["--kernel", "debian:bookworm/6.12", "--kernel", "debian:sid"];

#[test]
#[ignore = "test-all"]
fn limited_writer_is_killed_in_c_too() {
    same_effect(&Sides {
        case: "limited-writer",
        options: OLD_AND_NEW,
        machine: &[
            "--memory",
            "24M",
            "--files-on",
            "disk:8ms,20MB/s",
            "--limit",
            "4M",
            "--swap-max",
            "0",
        ],
        arguments: &["--no-groups"],
        metric: None,
        seeds: 2,
    });
}

#[test]
#[ignore = "test-all"]
fn reclaim_request_is_the_same_in_c() {
    // Background reclaim sometimes takes pages of the group too, so two seeds are too few.
    same_effect(&Sides {
        case: "reclaim-request",
        options: OLDEST_AND_OLD,
        machine: &["--memory", "24M", "--swap", "zram"],
        arguments: &[],
        metric: Some("reclaim-taken"),
        seeds: 6,
    });
}

#[test]
#[ignore = "test-all"]
fn reclaim_beside_low_is_the_same_in_c() {
    same_effect(&Sides {
        case: "reclaim-beside-low",
        options: OLDEST_AND_OLD,
        // A group protects no more than the group around it.
        machine: &["--memory", "24M", "--swap", "zram", "--low", "24M"],
        arguments: &[],
        metric: Some("major-faults"),
        seeds: 2,
    });
}

#[test]
#[ignore = "test-all"]
fn fork_storm_is_the_same_in_c() {
    same_effect(&Sides {
        case: "fork-storm",
        options: OLDEST_AND_OLD,
        machine: &["--memory", "24M"],
        arguments: &[],
        metric: Some("access-p99"),
        seeds: 2,
    });
}

#[test]
#[ignore = "test-all"]
fn populate_beside_writer_is_the_same_in_c() {
    same_effect(&Sides {
        case: "populate-beside-writer",
        options: &[
            "--kernel",
            "debian:bookworm",
            "--kernel",
            "debian:bookworm/6.12",
            "--set",
            "lru_gen/enabled=0",
        ],
        machine: &["--memory", "16M", "--swap", "zram", "--swap-size", "32M"],
        arguments: &[],
        metric: Some("time"),
        seeds: 2,
    });
}

#[test]
#[ignore = "test-all"]
fn cache_burst_is_the_same_in_c() {
    same_effect(&Sides {
        case: "cache-burst",
        options: &["--set", "vm.swappiness=60", "--vs", "vm.swappiness=200"],
        // A program's files and its group take memory too.
        machine: &["--memory", "20M", "--swap", "ssd:80us", "--space", "64M"],
        arguments: &[],
        metric: Some("major-faults"),
        seeds: 2,
    });
}

#[test]
#[ignore = "test-all"]
fn dirty_tail_is_the_same_in_c() {
    same_effect(&Sides {
        case: "dirty-tail",
        options: OLD_AND_NEW,
        machine: &["--memory", "16M"],
        arguments: &[],
        metric: Some("access-p99"),
        seeds: 2,
    });
}

#[test]
#[ignore = "test-all"]
fn free_pages_is_the_same_in_c() {
    same_effect(&Sides {
        case: "free-pages",
        options: OLD_AND_NEW,
        machine: &["--memory", "16M", "--swap", "none"],
        arguments: &[],
        metric: Some("time"),
        seeds: 2,
    });
}

#[test]
#[ignore = "test-all"]
fn launches_is_the_same_in_c() {
    same_effect(&Sides {
        case: "launches",
        options: OLDEST_AND_OLD,
        machine: &["--memory", "24M"],
        arguments: &["--no-groups"],
        metric: Some("access-mean"),
        seeds: 2,
    });
}

#[test]
#[ignore = "test-all"]
fn shared_from_zram_is_the_same_in_c() {
    same_effect(&Sides {
        case: "shared-from-zram",
        options: OLD_AND_NEW,
        machine: &["--memory", "16M"],
        arguments: &[],
        metric: Some("major-faults"),
        seeds: 2,
    });
}

#[test]
#[ignore = "test-all"]
fn mapped_writes_are_the_same_in_c() {
    same_effect(&Sides {
        case: "mapped-writes",
        options: OLD_AND_NEW,
        machine: &["--memory", "16M"],
        arguments: &[],
        metric: Some("time"),
        seeds: 2,
    });
}
