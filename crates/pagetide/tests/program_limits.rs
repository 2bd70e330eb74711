//! Tests of limits on a program's memory group, and of files that do not fit.

use std::fs::File;

use crate::common::{KERNEL, Lab, metric, one_sentence};
use serde_json::Value;

const MIB: f64 = 1048576.0;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Runs `dd` with a buffer of 12 MiB, which it fills and reads; returns the record.
fn buffer(lab: &Lab, code: i32, options: &[&str]) -> Value {
    let mut words = vec!["run", "--kernel", KERNEL, "--seeds", "1", "--memory", "32M"];
    words.extend(options);
    words.extend([
        "--",
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=12M",
        "count=3",
    ]);
    lab.ends(code, words);
    let list = json(&lab.ends(0, ["list", "records", "--json"]).0);
    json(
        &lab.ends(0, ["show", list[0]["id"].as_str().unwrap(), "--json"])
            .0,
    )
}

#[test]
fn a_group_above_its_high_mark_is_reclaimed_and_slower_and_not_killed() {
    let Some(lab) = Lab::that_runs() else { return };
    let free = buffer(&lab, 0, &["--high", "24M"]);
    assert!(metric(&free, "group-peak") > 12.0 * MIB);
    assert!(metric(&free, "group-swap-peak") < 1.0);
    let held = buffer(&lab, 0, &["--high", "8M"]);
    assert!(metric(&held, "group-swap-peak") > 3.0 * MIB);
    // The group may exceed the limit for a moment by the amount that is charged at once.
    assert!(metric(&held, "group-peak") < 9.0 * MIB);
    assert!(metric(&held, "psi-memory-some") > 0.0);
    assert!(metric(&held, "elapsed") > 1.2 * metric(&free, "elapsed"));
}

#[test]
#[ignore = "test-all"]
fn a_group_takes_no_more_swap_than_it_may_and_is_killed_where_that_is_too_little() {
    let Some(lab) = Lab::that_runs() else { return };
    let swapping = buffer(&lab, 0, &["--limit", "8M"]);
    assert!(metric(&swapping, "group-swap-peak") > 4.0 * MIB);
    assert!(metric(&swapping, "group-peak") <= 8.0 * MIB);
    let enough = buffer(&lab, 0, &["--limit", "12M", "--swap-max", "3M"]);
    let swapped = metric(&enough, "group-swap-peak");
    assert!((1.0..=3.0 * MIB).contains(&swapped), "{swapped}");
    let killed = buffer(&lab, 3, &["--limit", "8M", "--swap-max", "1M"]);
    let invalid = killed["results"]["invalid"].as_array().unwrap();
    assert_eq!(invalid.len(), 1, "{invalid:?}");
    assert_eq!(invalid[0]["kind"], "out-of-limit", "{invalid:?}");
}

#[test]
fn more_files_than_a_guest_can_be_handed_are_refused_in_one_sentence() {
    let lab = Lab::new();
    let file = File::create(lab.folder().join("huge")).unwrap();
    file.set_len(900 << 20).unwrap();
    let words = [
        "run", "--kernel", KERNEL, "--memory", "64M", "--file", "huge", "--", "sh",
    ];
    let (_, err) = lab.ends(4, words);
    one_sentence(&err, &["900 MiB", "896 MiB", "leave out"]);
    assert!(lab.leftovers().is_empty(), "{:?}", lab.leftovers());
}

#[test]
fn files_in_memory_that_are_more_than_the_memory_are_refused_before_a_guest_is_booted() {
    let Some(lab) = Lab::that_runs() else { return };
    let (_, err) = lab.ends(4, of_a_large_file(&lab, "tmpfs"));
    one_sentence(&err, &["--fs tmpfs", "24 MiB", "--memory", "another --fs"]);
    assert!(!err.contains("booting"), "{err}");
    assert!(lab.leftovers().is_empty(), "{:?}", lab.leftovers());
}

#[test]
#[ignore = "test-all"]
fn files_on_a_disk_may_be_more_than_the_memory() {
    let Some(lab) = Lab::that_runs() else { return };
    lab.ends(0, of_a_large_file(&lab, "ext4"));
}

/// Creates a file of 40 MiB. Returns the arguments of a trial with 24 MiB of memory whose program reads it from this file
/// system.
fn of_a_large_file(lab: &Lab, system: &'static str) -> Vec<&'static str> {
    let file = File::create(lab.folder().join("large")).unwrap();
    file.set_len(40 << 20).unwrap();
    let words = "run --seeds 1 --memory 24M --file large --fs";
    let mut words: Vec<&str> = words.split(' ').collect();
    words.extend([system, "--kernel", KERNEL, "--", "head", "-c", "9", "large"]);
    words
}
