//! Tests of trials on the running kernel: they end with verdicts, and the machine is the same afterwards as before.

use std::collections::BTreeMap;
use std::fs;

use pagetide_testing::machine::{Turn, alone};
use pagetide_testing::{Need, skip};
use serde_json::Value;

use crate::common::{Lab, metric, one_sentence};

/// Sizes of a trial, small because other programs use the machine too.
pub const SMALL: [&str; 6] = ["--on", "host", "--memory", "24M", "--swap-size", "96M"];

/// A laboratory on a machine where groups can be made and swap be switched on, and the turn to use this machine alone;
/// `None`, with a counted skip, otherwise.
pub fn lab() -> Option<(Lab, Turn)> {
    if !rustix::process::geteuid().is_root() {
        skip(Need::Root, "swap can be switched on by root only");
        return None;
    }
    let lab = Lab::with_own_cache();
    // The exit code is not checked, because it is 0 only if the exact arena works.
    let output = lab.pagetide(["doctor", "--json"]).output().unwrap();
    let pieces: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let of_host = pieces.iter().filter(|piece| piece["arena"] == "host");
    for piece in of_host {
        if piece["state"] == "missing" {
            skip(Need::MemoryGroup, piece["found"].as_str().unwrap());
            return None;
        }
        if piece["name"] == "swap of its own" && !piece["found"].as_str().unwrap().contains("loop")
        {
            skip(Need::Swap, piece["found"].as_str().unwrap());
            return None;
        }
    }
    Some((lab, alone()))
}

/// State of everything that a trial may change on this machine, as text by name.
pub fn state() -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    let mut add = |path: String| {
        let text = fs::read_to_string(&path).unwrap_or_default();
        state.insert(path, text);
    };
    add("/proc/self/mounts".to_owned());
    for name in [
        "page-cluster",
        "swappiness",
        "min_free_kbytes",
        "dirty_ratio",
        "dirty_bytes",
    ] {
        add(format!("/proc/sys/vm/{name}"));
    }
    for name in ["enabled", "defrag"] {
        add(format!("/sys/kernel/mm/transparent_hugepage/{name}"));
    }
    for entry in fs::read_dir("/sys/block").unwrap().flatten() {
        let folder = entry.path().display().to_string();
        add(format!("{folder}/loop/backing_file"));
        add(format!("{folder}/initstate"));
        add(format!("{folder}/comp_algorithm"));
    }
    let swaps = fs::read_to_string("/proc/swaps").unwrap();
    let areas: Vec<&str> = swaps
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    state.insert("swaps".to_owned(), areas.join(" "));
    for root in [
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/memory",
        "/sys/fs/cgroup/unified",
    ] {
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.starts_with("pagetide"))
            .collect();
        names.sort();
        state.insert(root.to_owned(), names.join(" "));
    }
    state
}

/// Asserts that the machine is in the same state as before, and that the cache's work folder is empty.
pub fn nothing_is_left(lab: &Lab, before: &BTreeMap<String, String>) {
    assert_eq!(&state(), before);
    let work = lab.cache().join("host");
    let left: Vec<_> = fs::read_dir(work).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Runs trials with these words. Returns the newest records, one for each trial. All must be valid.
pub fn valid(lab: &Lab, words: &[&str], trials: usize) -> Vec<Value> {
    let mut all = vec!["run"];
    all.extend(words);
    let output = lab.pagetide(&all).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{err}");
    let records = lab.newest(trials);
    assert_eq!(records.len(), trials, "{err}");
    for record in &records {
        let invalid = &record["results"]["invalid"];
        assert_eq!(invalid.as_array().map_or(0, Vec::len), 0, "{invalid}");
        assert_eq!(record["subject"]["arena"]["kind"], "host");
    }
    records
}

#[test]
fn a_pattern_on_the_running_kernel_reads_back_what_lru_must_and_leaves_nothing() {
    let Some((lab, _turn)) = lab() else { return };
    let before = state();
    let mut words = vec!["linear", "--swap", "ssd", "--seeds", "2", "-p", "pages=36M"];
    words.extend(["-p", "refs=18432"]);
    words.extend(SMALL);
    let records = valid(&lab, &words, 2);
    nothing_is_left(&lab, &before);
    for record in &records {
        assert_eq!(record["subject"]["limit"], 24 << 20);
        let facts = &record["results"]["facts"];
        assert!(
            facts["cpus"].is_string() && facts["group-peak"].is_string(),
            "{facts}"
        );
        // Two passes in address order over 1.5 times the memory: read-ahead brings in eight pages with each fault.
        let faults = metric(record, "major-faults");
        let swapped = metric(record, "swapped-in");
        assert!((500.0..18_433.0).contains(&faults), "{faults}");
        assert!((4000.0..40_000.0).contains(&swapped), "{swapped}");
        assert!(metric(record, "system") > 0.0);
    }
    let apart =
        (metric(&records[0], "major-faults") / metric(&records[1], "major-faults") - 1.0).abs();
    // In an emulated guest on a busy machine, two trials differed by 10.6 %.
    assert!(
        apart < 0.3,
        "faults of two trials with one workload are alike: {apart}"
    );
    // A second run of the same campaign finds the records.
    let (_, err) = lab.ends(0, ["run"].iter().chain(&words));
    assert!(!err.contains("runs again"), "{err}");
    assert_eq!(lab.records(), 2);
    let (list, _) = lab.ends(0, ["list", "records", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let id = list[0]["id"].as_str().unwrap();
    // The swap is named by its device: its latency is that of the disk.
    let (out, _) = lab.ends(0, ["show", id]);
    assert!(out.contains("loop on ") && !out.contains("80us"), "{out}");
    let (out, _) = lab.ends(0, ["repeat", id]);
    assert!(
        out.contains("major-faults") && out.contains("apart"),
        "{out}"
    );
    nothing_is_left(&lab, &before);
}

#[test]
fn an_observed_trial_traces_the_workload_alone_and_leaves_no_instance() {
    let Some((lab, _turn)) = lab() else { return };
    let before = state();
    let mut words = vec!["linear", "--swap", "ssd", "--seeds", "1", "--observe"];
    words.extend(["-p", "pages=36M", "-p", "refs=18432"]);
    words.extend(SMALL);
    let records = valid(&lab, &words, 2);
    nothing_is_left(&lab, &before);
    let of_pass = |pass| {
        let mut found = records.iter();
        found
            .find(|record| record["subject"]["pass"] == pass)
            .unwrap()
    };
    for record in &records {
        let counters = &record["results"]["counters"];
        // The group has version 1 or 2, whose counters have different names.
        assert!(counters["memory.stat"].is_object(), "{counters}");
        assert!(counters["vmstat"].is_object(), "{counters}");
        let psi = &counters["pressure-group"]["memory-some"];
        if !psi.is_null() {
            assert!(psi[1].as_u64() > psi[0].as_u64(), "{psi}");
        }
    }
    let has = |record: &Value, name: &str| {
        let sections = record["sections"].as_array().unwrap();
        sections.iter().any(|section| section["name"] == name)
    };
    assert!(!has(of_pass("timed"), "trace") && !has(of_pass("timed"), "memory.stat"));
    let observed = of_pass("observed");
    for name in ["trace", "tasks", "phases", "memory.stat", "vmstat"] {
        assert!(has(observed, name), "{name}: {}", observed["sections"]);
    }
    let (list, _) = lab.ends(0, ["list", "records", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let shown = |row: &Value| {
        let id = row["id"].as_str().unwrap().to_owned();
        lab.ends(0, ["show", &id, "--reclaim", "--json"]).0
    };
    let seen: Value = serde_json::from_str(&shown(&list[0])).unwrap();
    // The group's own processes reclaim what does not fit, and each page that came back was read from the swap device.
    let rows = seen["table"]["rows"].as_array().unwrap();
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).unwrap();
    let reclaimed = &row("memcg-reclaimed")["value"]["value"];
    assert!(reclaimed.as_u64() > Some(3000), "{reclaimed}");
    assert!(
        rows.iter().all(|row| row["check"].is_null()),
        "others use the machine too"
    );
    let device = &seen["blocks"]["devices"][0];
    let read = device["sums"]["reads"]["bytes"].as_f64().unwrap();
    let swapped = metric(observed, "swapped-in") * 4096.0;
    assert!((read / swapped - 1.0).abs() < 0.1, "{read} {swapped}");
    let tasks = seen["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    let waited = tasks[0]["parts"].to_string();
    assert!(tasks[0]["faults"].as_u64() > Some(500), "{waited}");
}

#[test]
#[ignore = "test-all"]
fn a_planted_difference_of_read_ahead_is_found_by_counts_and_the_setting_is_restored() {
    let Some((lab, _turn)) = lab() else { return };
    let before = state();
    let mut words = vec![
        "run",
        "linear",
        "--swap",
        "ssd",
        "--seeds",
        "8",
        "-p",
        "pages=36M",
    ];
    words.extend([
        "-p",
        "refs=9216",
        "--set",
        "vm.page-cluster=3",
        "--vs",
        "vm.page-cluster=0",
    ]);
    words.extend(SMALL);
    let (_, err) = lab.ends(2, &words);
    one_sentence(&err, &["vm.page-cluster", "--change-this-machine"]);
    assert_eq!(lab.records(), 0);
    words.extend(["--change-this-machine", "--json"]);
    let (out, _) = lab.ends(1, &words);
    nothing_is_left(&lab, &before);
    let found: Value = serde_json::from_str(&out).unwrap();
    let rows = found["cells"][0]["metrics"].as_array().unwrap();
    let faults = rows
        .iter()
        .find(|row| row["name"] == "major-faults")
        .unwrap();
    let judgement = &faults["judgements"][0];
    assert_eq!(judgement["verdict"], "regressed");
    assert!(
        judgement["effect"]["estimate"].as_f64().unwrap() > 3.0,
        "{judgement}"
    );
}

#[test]
#[ignore = "test-all"]
fn the_scenarios_of_several_processes_end_with_values_on_the_running_kernel() {
    let Some((lab, _turn)) = lab() else { return };
    let before = state();
    for scenario in ["swapbench", "contswap", "kv", "usemem", "filecopy"] {
        let mut words = vec![scenario, "--swap", "ssd", "--seeds", "1"];
        if scenario == "filecopy" {
            words.extend(["-p", "size=16M", "-p", "victim=4M"]);
        }
        words.extend(SMALL);
        let records = valid(&lab, &words, 1);
        assert!(metric(&records[0], "system") > 0.0, "{scenario}");
        nothing_is_left(&lab, &before);
    }
    // Kernels differ in the compressors that they have.
    let listed = fs::read_to_string("/sys/block/zram0/comp_algorithm").unwrap_or_default();
    let known = ["lzo", "lz4", "zstd"].into_iter().find(|name| {
        listed
            .split([' ', '[', ']'])
            .any(|word| word.trim() == *name)
    });
    let Some(known) = known else {
        return skip(Need::Swap, "there is no zram device");
    };
    let swap = format!("zram:{known}");
    let mut words = vec!["fault", "-p", "floor=zero", "--swap", &swap, "--seeds", "1"];
    words.extend(SMALL);
    valid(&lab, &words, 1);
    nothing_is_left(&lab, &before);
}

/// Command of a shell that takes memory until it is killed.
const GROW: &str = "x=0123456789abcdef; while :; do x=$x$x; done";
/// Programs that swap: their files, and the command for a shell.
const PROGRAMS: [(&[&str], &str); 3] = [
    (
        &["/bin/sh", "/usr/bin/head", "/usr/bin/tail"],
        "head -c 40000000 /dev/urandom | tail -c 40000000 | head -c 1",
    ),
    (
        &["/bin/sh", "/usr/bin/head", "/usr/bin/sort"],
        "head -c 20000000 /dev/urandom | sort -S 40M | head -c 1",
    ),
    (
        &["/bin/sh", "/usr/bin/head", "/usr/bin/tail"],
        "head -c 30000000 /dev/zero | tail -c 30000000 | head -c 1",
    ),
];

/// Most memory by which the rest of the machine may grow while trials run.
const GROWTH: u64 = 64 << 20;

/// Memory at one moment, in bytes. Groups have version 2.
struct Used {
    /// Memory outside of the groups of trials, without caches that the kernel can drop at once.
    rest: u64,
    /// The same with these caches.
    with_caches: u64,
    /// Memory of the groups of trials.
    groups: u64,
}

impl Used {
    fn now() -> Self {
        let amount = |text: &str, name: &str| -> u64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            number.and_then(|number| number.parse().ok()).unwrap_or(0)
        };
        let text = fs::read_to_string("/proc/meminfo").unwrap();
        let machine = |name: &str| amount(&text, name) << 10;
        let (mut groups, mut kept) = (0, 0);
        for group in fs::read_dir("/sys/fs/cgroup").unwrap().flatten() {
            if group.file_name().to_string_lossy().starts_with("pagetide-") {
                let read = |file| fs::read_to_string(group.path().join(file)).unwrap_or_default();
                let all = amount(&read("memory.current"), "");
                let stat = read("memory.stat");
                let files = amount(&stat, "active_file ") + amount(&stat, "inactive_file ");
                groups += all;
                kept += all.saturating_sub(files);
            }
        }
        let total = machine("MemTotal:");
        Self {
            rest: total.saturating_sub(machine("MemAvailable:") + kept),
            with_caches: total.saturating_sub(machine("MemFree:") + groups),
            groups,
        }
    }
}

#[test]
#[ignore = "test-all"]
fn the_rest_of_the_machine_grows_by_less_than_64_mib_in_all_workloads() {
    let Some((lab, _turn)) = lab() else { return };
    if std::env::var_os("PAGETIDE_TEST_ALONE").is_none() {
        let why = "other programs use this machine, so its free memory says nothing about trials";
        return skip(Need::MemoryGroup, why);
    }
    let ssd = ["--swap", "ssd"];
    let program = |(names, command): (&[&'static str], &'static str), swap: &'static str| {
        let files = names.iter().flat_map(|name| ["--file", *name]);
        let words = ["--swap", swap, "--", "sh", "-c", command];
        files.chain(words).collect::<Vec<&str>>()
    };
    let copies = ["filecopy", "-p", "size=16M", "-p", "victim=4M"];
    let workloads: [Vec<&str>; 11] = [
        [&["swapbench"], &ssd[..]].concat(),
        [&["contswap"], &ssd[..]].concat(),
        [&copies[..], &ssd].concat(),
        [&["smooth-sin", "-p", "refs=20000"], &ssd[..]].concat(),
        [&["smooth-sin-random", "-p", "refs=5000"], &ssd[..]].concat(),
        [&["kv"], &ssd[..]].concat(),
        [&["usemem"], &ssd[..]].concat(),
        [&["linear", "-p", "refs=18432", "--observe"], &ssd[..]].concat(),
        program(PROGRAMS[0], "ssd"),
        program(PROGRAMS[1], "ssd"),
        program((&["/bin/sh"], GROW), "none"),
    ];
    for words in workloads {
        let before = Used::now();
        let words = [&["run", "--seeds", "1"], &SMALL[..], &words].concat();
        let mut child = lab.start(&words);
        let (mut rest, mut with_caches, mut groups) = (0, 0, 0);
        let status = loop {
            let now = Used::now();
            rest = now.rest.max(rest);
            with_caches = now.with_caches.max(with_caches);
            groups = now.groups.max(groups);
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        let growth = rest.saturating_sub(before.rest);
        println!(
            "growth {} KiB, with caches {} KiB, group {} KiB, {status}: {}",
            growth >> 10,
            with_caches.saturating_sub(before.with_caches) >> 10,
            groups >> 10,
            words.join(" ")
        );
        assert!(
            matches!(status.code(), Some(0 | 1 | 3)),
            "{status}: {words:?}"
        );
        assert!(growth < GROWTH, "{growth}: {words:?}");
        assert!(groups > 4 << 20, "{groups}: {words:?}");
    }
}

#[test]
#[ignore = "test-all"]
fn user_scenarios_end_with_values_in_a_delegated_group() {
    if rustix::process::geteuid().is_root() {
        return skip(Need::MemoryGroup, "root needs no delegated group");
    }
    let lab = Lab::with_own_cache();
    let output = lab.pagetide(["doctor", "--json"]).output().unwrap();
    let found = String::from_utf8_lossy(&output.stdout);
    if !found.contains("in the delegated group") {
        return skip(Need::MemoryGroup, "no group is delegated to this user");
    }
    if fs::read_to_string("/proc/swaps").unwrap().lines().count() < 2 {
        return skip(Need::Swap, "a user can only use swap that is on");
    }
    let before = state();
    for scenario in [
        "linear",
        "swapbench",
        "contswap",
        "kv",
        "usemem",
        "filecopy",
    ] {
        let mut words = vec![scenario, "--swap", "ssd", "--seeds", "1", "--observe"];
        if scenario == "filecopy" {
            words.extend(["-p", "size=16M", "-p", "victim=4M"]);
        }
        if scenario == "swapbench" {
            // A user may usually lock 8 MiB (`ulimit -l`).
            words.extend(["-p", "locked=4M"]);
        }
        words.extend(SMALL);
        for record in valid(&lab, &words, 2) {
            assert!(metric(&record, "system") > 0.0, "{scenario}");
            let warnings = record["results"]["warnings"].to_string();
            assert!(warnings.contains("use the same swap area"), "{warnings}");
            let is_observed = record["subject"]["pass"] == "observed";
            assert_eq!(warnings.contains("no trace"), is_observed, "{warnings}");
        }
        nothing_is_left(&lab, &before);
    }
    // What only root can do is refused with what can be done.
    let setting = ["--change-this-machine", "--set", "vm.page-cluster=0"];
    let words = [
        &["run", "linear", "--swap", "ssd", "--seeds", "1"],
        &setting[..],
        &SMALL,
    ]
    .concat();
    let (_, err) = lab.ends_badly(&words);
    one_sentence(&err, &["root"]);
    nothing_is_left(&lab, &before);
    // Programs run in a user namespace. They see nothing of the machine, and one that exceeds its limit is killed.
    for (files, command) in PROGRAMS {
        let files = files.iter().flat_map(|file| ["--file", *file]);
        let mut words: Vec<&str> = ["--swap", "ssd", "--seeds", "1"].into();
        words.extend(SMALL);
        words.extend(files);
        words.extend(["--", "sh", "-c", command]);
        let records = valid(&lab, &words, 1);
        assert!(metric(&records[0], "elapsed") > 0.0, "{command}");
        nothing_is_left(&lab, &before);
    }
    let mut words = vec!["--swap", "none", "--seeds", "1"];
    words.extend(SMALL);
    words.extend(["--", "ls", "/", "/proc"]);
    let records = valid(&lab, &words, 1);
    sees_nothing(records[0]["results"]["texts"]["stdout"].as_str().unwrap());
    let words = ["run", "--swap", "none", "--seeds", "1", "--file", "/bin/sh"];
    let command = ["--", "sh", "-c", GROW];
    lab.ends(3, [&words[..], &SMALL, &command].concat());
    let record = lab.newest(1).remove(0);
    assert_eq!(
        record["results"]["invalid"][0]["kind"], "out-of-limit",
        "{record}"
    );
    nothing_is_left(&lab, &before);
}

/// Asserts that a program that listed `/` and `/proc` saw nothing of the machine.
fn sees_nothing(seen: &str) {
    let processes = seen
        .lines()
        .filter(|line| line.parse::<u32>().is_ok())
        .count();
    assert!((1..=3).contains(&processes), "{seen}");
    assert!(
        !seen.lines().any(|line| line == "home" || line == "boot"),
        "{seen}"
    );
}

#[test]
fn a_program_sees_nothing_of_the_machine_and_its_ends_are_told() {
    let Some((lab, _turn)) = lab() else { return };
    let before = state();
    let mut words = vec!["--swap", "none", "--seeds", "1"];
    words.extend(SMALL);
    words.extend(["--", "ls", "/", "/proc"]);
    let records = valid(&lab, &words, 1);
    let seen = records[0]["results"]["texts"]["stdout"].as_str().unwrap();
    sees_nothing(seen);
    nothing_is_left(&lab, &before);
    // A program that kills all processes that it may kill must reach none outside. A program that exceeds its limit
    // must be killed.
    let run = |command: &str| -> Value {
        let mut words = vec!["run", "--swap", "none", "--seeds", "1", "--fresh"];
        words.extend(SMALL);
        words.extend([
            "--expect-exit",
            "0",
            "--file",
            "/bin/sh",
            "--",
            "sh",
            "-c",
            command,
        ]);
        lab.ends(3, &words);
        nothing_is_left(&lab, &before);
        lab.newest(1).remove(0)
    };
    let record = run("kill -9 -1; kill -9 $$");
    assert!(
        record["results"]["invalid"].as_array().unwrap().len() == 1,
        "{record}"
    );
    let record = run(GROW);
    assert_eq!(
        record["results"]["invalid"][0]["kind"], "out-of-limit",
        "{record}"
    );
}

#[test]
fn what_the_running_kernel_cannot_give_is_refused_with_what_can() {
    let Some((lab, _turn)) = lab() else { return };
    let before = state();
    let cases: [(&[&str], &[&str]); 7] = [
        (&["highalloc"], &["machine of its own", "exact"]),
        (&["fault"], &["watermarks", "floor=zero"]),
        (&["linear", "--swap", "ssd:20us"], &["--swap ssd"]),
        (
            &["linear", "--swap", "zram:8M@100,ssd@10"],
            &["several devices"],
        ),
        (&["linear", "--kernel", "debian:sid"], &["--kernel"]),
        (&["linear", "--profile"], &["profiled", "exact"]),
        (&["linear", "--memory", "40G"], &["a quarter"]),
    ];
    for (words, told) in cases {
        let mut all = vec!["run"];
        all.extend(words);
        all.extend(["--on", "host", "--seeds", "1"]);
        let (_, err) = lab.ends_badly(&all);
        one_sentence(&err, told);
    }
    let bisect = [
        "bisect", "--on", "host", "--good", "v6.12", "--bad", "HEAD", "kv",
    ];
    let (_, err) = lab.ends_badly(bisect);
    one_sentence(&err, &["bisect compares kernels", "--vs"]);
    assert_eq!(lab.records(), 0);
    nothing_is_left(&lab, &before);
}
