//! Tests of the simulated disk with seek times in the exact arena: its times follow its model, and its trials are
//! exactly repeatable.

use std::fs;

use crate::common::trial::{Done, run_on};
use crate::common::{KERNEL, Lab, one_sentence};

/// Number of pages in 30 MiB; the guest has 24 MiB of memory.
const PAGES: u32 = 7680;

/// Writes a file of references to all pages; `place` returns the page for each index. Returns the file as a scenario.
fn references(lab: &Lab, name: &str, place: impl Fn(u32) -> u32) -> String {
    let path = lab.folder().join(name);
    let lines: Vec<String> = (0..PAGES).map(|n| place(n).to_string()).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    format!("file:{}", path.display())
}

/// Reads the pages of a scenario back from a disk with 8 ms seek time and 40 MB/s, with one request for each page.
fn read_back<'a>(lab: &'a Lab, scenario: &str) -> Done<'a> {
    let arguments = [
        scenario,
        "--swap",
        "disk:8ms,40MB/s",
        "--set",
        "vm.page-cluster=0",
        "--set",
        "lru_gen/enabled=0",
        // The process that simulates the disk needs memory to answer. With a reserve of 512 KiB it may fail to get it
        // while memory is being filled, for 17 s of virtual time.
        "--set",
        "vm.min_free_kbytes=1024",
        "-p",
        "pages=30M",
        "-p",
        "refs=7680",
        "-p",
        "access=read",
        "-p",
        "snapshots=0",
    ];
    run_on(lab, KERNEL, &arguments).remove(0)
}

#[test]
#[ignore = "test-all"]
fn pages_that_lie_in_order_on_the_disk_are_read_many_times_faster_than_the_same_shuffled() {
    let Some(lab) = Lab::that_runs() else { return };
    let ordered = references(&lab, "ordered", |n| n);
    // 2741 and 7680 have no common divisor. So every page occurs once, and consecutive references are far apart.
    let shuffled = references(&lab, "shuffled", |n| n * 2741 % PAGES);
    let (ordered, shuffled) = (read_back(&lab, &ordered), read_back(&lab, &shuffled));
    for done in [&ordered, &shuffled] {
        let faults = done.metric("major-faults");
        assert!(faults > f64::from(PAGES) * 0.3, "{faults} pages came back");
        let facts = &done.record["results"]["facts"];
        assert_eq!(facts["rotational-nbd0"], "1");
        assert!(
            facts["scheduler-nbd0"]
                .as_str()
                .unwrap()
                .contains("[mq-deadline]"),
            "{facts}"
        );
    }
    // Reading a page of 4 KiB takes 0.1024 ms, a seek 8 ms more; the kernel needs about 0.05 ms for a fault.
    let usual = |done: &Done| done.metric("access-p90") / 1e6;
    let (a, b) = (usual(&ordered), usual(&shuffled));
    assert!((0.1024..0.25).contains(&a), "{a} ms a page in order");
    assert!((8.1024..8.3).contains(&b), "{b} ms a shuffled page");
    // Averaged over all accesses: pages swapped out in between also move the head, and their requests sometimes come
    // first.
    let mean = |done: &Done| done.metric("access-mean");
    let ratio = mean(&shuffled) / mean(&ordered);
    assert!((8.0..80.0).contains(&ratio), "{ratio}");
    println!("p90 in order {a:.3} ms, shuffled {b:.3} ms; ratio of the means {ratio:.1}");
}

#[test]
fn a_trial_on_disks_is_equal_to_the_bit_when_repeated() {
    let Some(lab) = Lab::that_runs() else { return };
    let arguments = [
        "filecopy",
        "--swap",
        "disk:4ms,40MB/s",
        "--files-on",
        "disk:8ms,20MB/s",
        "-p",
        "size=14M",
        "-p",
        "victim=0",
        "-p",
        "methods=rw-cp",
    ];
    let done = run_on(&lab, KERNEL, &arguments).remove(0);
    let facts = &done.record["results"]["facts"];
    assert_eq!(facts["rotational-nbd1"], "1", "{facts}");
    assert_eq!(done.record["subject"]["files_on"], "disk:8ms,20MB/s");
    assert_eq!(done.record["schema"], 2);
    // 16 MiB are read and written at 20 MB/s, which takes 1.68 s plus seeks.
    let seconds = done.metric("time-rw-cp") / 1e9;
    assert!((1.678..6.0).contains(&seconds), "{seconds}");
    let (out, _) = lab.ends(0, ["repeat", done.id()]);
    assert!(out.contains("identical"), "{out}");
}

#[test]
#[ignore = "test-all"]
fn a_kill_is_the_result_even_if_the_kernel_then_loses_the_disk() {
    let Some(lab) = Lab::that_runs() else { return };
    let words = [
        "run",
        "contswap",
        "--kernel",
        KERNEL,
        "--memory",
        "32M",
        "--seeds",
        "1",
        "--observe=none",
    ];
    let disk = ["--swap", "disk:8ms,40MB/s", "--set", "vm.page-cluster=0"];
    let sizes = ["-p", "mapping=1650/2048*memory", "-p", "reclaimers=128"];
    lab.ends(3, [&words[..], &disk, &sizes].concat());
    let record = lab.newest(1).remove(0);
    let invalid = record["results"]["invalid"].as_array().unwrap();
    assert!(!invalid.is_empty());
    for reason in invalid {
        let kind = reason["kind"].as_str().unwrap();
        assert!(["out-of-memory", "gave-up"].contains(&kind), "{invalid:?}");
    }
}

#[test]
fn what_is_no_disk_is_refused_with_an_example() {
    let lab = Lab::new();
    let (_, err) = lab.ends(4, ["run", "linear", "--swap", "disk:fast"]);
    assert!(err.contains("disk:fast"), "{err}");
    let text = "name = \"x\"\n[[variant]]\nname = \"base\"\n[[scenario]]\nname = \"filecopy\"\nfiles-on = \"disk:8ms,40\"\n";
    fs::write(lab.folder().join("x.toml"), text).unwrap();
    let (_, err) = lab.ends(4, ["run", "x.toml"]);
    one_sentence(&err, &["files-on", "40MB/s"]);
}
