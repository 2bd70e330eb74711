//! Tests of trials on several CPUs.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::{KERNEL, Lab, TINY, metric, one_sentence, text};
use pagetide_testing::program::write_program;
use pagetide_testing::{Need, skip};
use serde_json::Value;

/// A laboratory that can run trials on several CPUs. `None` if it is not possible here; the reason is then printed.
fn lab() -> Option<Lab> {
    let lab = Lab::that_runs()?;
    let can = |words: &[&str]| {
        let output = lab.pagetide(words).output().unwrap();
        text(&output.stdout).contains("8 CPUs")
    };
    if can(&["emulator", "list", "--json"]) || can(&["emulator", "add", "--json"]) {
        return Some(lab);
    }
    skip(Need::Emulator, "QEMU 8.1 or later cannot be had".to_owned());
    None
}

/// A laboratory without snapshots, with the kernels and emulators of another laboratory.
fn without_snapshots(lab: &Lab) -> Lab {
    let fresh = Lab::with_own_cache();
    fs::create_dir_all(fresh.cache()).unwrap();
    for shared in ["kernels", "pins", "emulators"] {
        if lab.cache().join(shared).exists() {
            symlink(lab.cache().join(shared), fresh.cache().join(shared)).unwrap();
        }
    }
    fresh
}

/// Arguments of a small run with these CPUs, followed by more arguments.
fn tiny<'a>(scenario: &'a str, cpus: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["run", scenario, "--kernel", KERNEL, "--cpus", cpus];
    all.extend(TINY);
    all.extend(["--seeds", "1"]);
    all.extend(more);
    all
}

/// Repeats the newest record `times` times, which must give the same digest each time. Returns the record.
fn repeats(lab: &Lab, times: &str) -> Value {
    let record = lab.newest(1).remove(0);
    assert_eq!(record["results"]["invalid"], Value::Array(Vec::new()));
    let (list, _) = lab.ends(0, ["list", "records", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let id = list[0]["id"].as_str().unwrap();
    let (out, _) = lab.ends(0, ["repeat", id, "--times", times, "--json"]);
    let repeated: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        repeated["identical"].to_string(),
        times,
        "{repeated}: {record}"
    );
    record
}

#[test]
fn a_trial_on_two_cpus_repeats_bit_for_bit() {
    let Some(lab) = lab() else { return };
    lab.ends(0, tiny("linear", "2", &[]));
    let record = repeats(&lab, "1");
    assert_eq!(record["subject"]["cpus"], "2:5us");
    assert!(lab.ends(0, ["list", "records"]).0.contains("2 CPUs"));
}

#[test]
#[ignore = "test-all"]
fn a_trial_on_two_cpus_is_the_same_from_a_kept_and_a_fresh_snapshot() {
    let Some(lab) = lab() else { return };
    lab.ends(0, tiny("linear", "2", &[]));
    let kept = repeats(&lab, "2");

    let other = without_snapshots(&lab);
    other.ends(0, tiny("linear", "2", &[]));
    assert_eq!(other.newest(1)[0]["digest"], kept["digest"]);
}

#[test]
#[ignore = "test-all"]
fn hundreds_of_repeats_on_several_cpus_under_load_are_identical() {
    let Some(lab) = lab() else { return };
    // This test makes no load of its own; it is meant to run while other tests occupy the processors.
    let times = std::env::var("PAGETIDE_TEST_REPEATS").unwrap_or_else(|_| "25".to_owned());
    for kernel in [KERNEL, "debian:bookworm", "debian:sid"] {
        for cpus in ["2", "4"] {
            for swap in ["zram", "ssd:80us", "disk"] {
                let with = ["--kernel", kernel, "--swap", swap, "--jobs", "8"];
                let mut asked = vec!["run", "smooth-sin-random", "--cpus", cpus, "--seeds", "1"];
                asked.extend(TINY);
                asked.extend(with);
                lab.ends(0, asked);
                repeats(&lab, &times);
            }
        }
    }
}

#[test]
#[ignore = "test-all"]
fn four_cpus_place_pages_in_swap_otherwise_than_one() {
    let Some(lab) = lab() else { return };
    let contiguity = |cpus: &str| {
        let asked = ["run", "contswap", "--kernel", KERNEL, "--memory", "64M"];
        let more = ["-p", "reclaimers=51", "--swap", "ssd:30us", "--seeds", "1"];
        lab.ends(0, [&asked[..], &more, &["--cpus", cpus]].concat());
        metric(&lab.newest(1)[0], "contiguity")
    };
    // One seed is one trajectory, so the sign of the difference is not tested (docs/notes/cpus.md).
    let (one, four) = (contiguity("1"), contiguity("4"));
    assert!(
        one > 0.0 && four > 0.0 && (one - four).abs() > 1e-6,
        "{one} and {four}"
    );
}

#[test]
#[ignore = "test-all"]
fn an_observed_pass_on_two_cpus_traces_both() {
    let Some(lab) = lab() else { return };
    lab.ends(0, tiny("linear", "2", &["--observe"]));
    let (list, _) = lab.ends(0, ["list", "records", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let mut shown = list.as_array().unwrap().iter().map(|row| {
        let id = row["id"].as_str().unwrap();
        let (record, _) = lab.ends(0, ["show", id, "--json"]);
        (id, serde_json::from_str::<Value>(&record).unwrap())
    });
    let observed = shown.find(|(_, record)| record["subject"]["pass"] == "observed");
    let (id, record) = observed.unwrap();
    assert_eq!(record["results"]["invalid"], Value::Array(Vec::new()));
    // The kernel's counters are sums over both CPUs, and so is what the trace has.
    let (table, _) = lab.ends(0, ["show", id, "--reclaim", "--json"]);
    let table: Value = serde_json::from_str(&table).unwrap();
    let rows = table["table"]["rows"].as_array().unwrap();
    let checked = rows.iter().filter(|row| {
        row["check"]["counters"]
            .as_array()
            .is_some_and(|names| names.contains(&Value::from("pgsteal_anon")))
    });
    let checked: Vec<&Value> = checked.collect();
    assert!(!checked.is_empty(), "{rows:?}");
    for row in checked {
        assert!(row["check"]["counter"].as_u64().unwrap() > 1000, "{row}");
        assert_eq!(row["check"]["disagrees"], false, "{row}");
    }
}

#[test]
#[ignore = "test-all: boots a guest with four CPUs"]
fn workers_that_are_spread_stay_on_their_cpus() {
    let Some(lab) = lab() else { return };
    let switched = |workers: &str| {
        let setting = format!("cpu/workers={workers}");
        let more = ["-p", "processes=8", "-p", "size=4M", "--set", &setting];
        let mut asked = vec!["run", "usemem", "--kernel", KERNEL, "--cpus", "4"];
        asked.extend(["--memory", "24M", "--seeds", "1", "--observe=none"]);
        asked.extend(more);
        lab.ends(0, asked);
        let record = repeats(&lab, "1");
        assert_eq!(
            record["subject"]["variant"]["settings"]["cpu/workers"],
            workers
        );
        record["digest"].clone()
    };
    assert_ne!(switched("free"), switched("spread"));
}

#[test]
#[ignore = "test-all"]
fn workers_that_cannot_be_spread_are_refused_in_one_sentence() {
    let Some(lab) = lab() else { return };
    for (scenario, cpus, value, part) in [
        ("usemem", "1", "spread", "give --cpus 2 to 8"),
        ("usemem", "2", "apart", "give free, or spread"),
        ("linear", "2", "spread", "no workers"),
    ] {
        let setting = format!("cpu/workers={value}");
        let words = ["run", scenario, "--kernel", KERNEL, "--cpus", cpus];
        let output = lab.pagetide([&words[..], &["--memory", "24M", "--set", &setting]].concat());
        let output = { output }.output().unwrap();
        assert_ne!(output.status.code(), Some(0), "{setting}");
        one_sentence(&text(&output.stderr), &[part]);
    }
}

#[test]
fn wrong_cpus_are_refused_in_one_sentence() {
    let lab = Lab::new();
    for wrong in ["0", "9", "-1", "four", "4:1s", "4:0us"] {
        let output = lab.pagetide(tiny("linear", wrong, &[])).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{wrong}");
        let said = text(&output.stderr);
        assert!(said.contains(&format!("'{wrong}' for '--cpus")), "{said}");
        assert!(said.contains("4:10us"), "{said}");
    }
}

#[test]
fn an_emulator_that_is_too_old_for_several_cpus_is_refused_with_the_command_that_fetches_one() {
    let lab = Lab::with_own_cache();
    let old = lab.folder().join("old-qemu");
    write_program(&old, "#!/bin/sh\necho 'QEMU emulator version 7.2.9'\n");
    let mut command = lab.pagetide(tiny("linear", "4", &[]));
    let output = command.env("PAGETIDE_QEMU", &old).output().unwrap();
    assert_ne!(output.status.code(), Some(0));
    one_sentence(
        &text(&output.stderr),
        &["4 CPUs need QEMU 8.1", "QEMU 7.2.9", "emulator add"],
    );
    let mut command = lab.pagetide(["emulator", "list"]);
    let output = command.env("PAGETIDE_QEMU", &old).output().unwrap();
    let said = text(&output.stdout);
    assert!(said.contains("7.2.9") && !said.contains("8 CPUs"), "{said}");
}

#[test]
fn a_named_emulator_that_is_missing_is_not_replaced_by_a_fetched_one() {
    let Some(lab) = lab() else { return };
    let mut command = lab.pagetide(tiny("linear", "1", &[]));
    let output = command
        .env("PAGETIDE_QEMU", "/nonexistent")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    one_sentence(&text(&output.stderr), &["/nonexistent"]);
    let mut command = lab.pagetide(["emulator", "list", "--json"]);
    let output = command
        .env("PAGETIDE_QEMU", "/nonexistent")
        .output()
        .unwrap();
    let said = text(&output.stdout);
    assert!(!said.contains("CPUs\""), "{said}");
}
