//! Tests of trials in which the kernel kills a process: early deaths with memory to spare, which are compared as
//! results, and true lack of memory.

use crate::common::{KERNEL, Lab};

/// A file copy to a slow disk, on a machine so small that nearly all its memory is under writeback. Linux 6.12 with
/// MGLRU kills the writer with each of the first seeds.
pub const WRITER: [&str; 12] = [
    "filecopy",
    "--kernel",
    KERNEL,
    "--memory",
    "8M",
    "--files-on",
    "disk:8ms,10MB/s",
    "-p",
    "methods=rw-cp",
    "-p",
    "victim=0",
    "--observe=none",
];

#[test]
fn a_kill_with_memory_to_spare_says_what_there_was_and_asks_for_no_more_memory() {
    let Some(lab) = Lab::that_runs() else { return };
    let (_, err) = lab.ends(3, ["run", "--seeds", "1"].into_iter().chain(WRITER));
    let record = lab.newest(1).remove(0);
    let invalid = record["results"]["invalid"].as_array().unwrap();
    assert_eq!(invalid.len(), 1, "{invalid:?}");
    assert_eq!(invalid[0]["kind"], "gave-up", "{invalid:?}");
    assert_eq!(invalid[0]["process"], "the workload's main process");
    let memory = &invalid[0]["memory"];
    let size = |name: &str| memory[name].as_u64().unwrap();
    let (file, waiting) = (size("file"), size("dirty") + size("writeback"));
    assert!(file > 4 << 20 && waiting > file / 2, "{memory}");
    let [free, all] = [0, 1].map(|part| memory["swap"][part].as_u64().unwrap());
    assert!(free > all / 10 * 9 && all > 0, "{memory}");
    assert!(
        err.contains("with memory to spare") && err.contains("vm.dirty_bytes"),
        "{err}"
    );
    assert!(!err.contains("raise --memory"), "{err}");
}

/// The kernel log is judged by its time stamps, which a kernel built without `CONFIG_PRINTK_TIME` leaves out by default.
#[test]
#[ignore = "test-all"]
fn a_kernel_that_writes_no_times_into_its_log_is_made_to() {
    let Some(lab) = Lab::that_runs() else { return };
    let words = ["run", "--seeds", "1", "--boot", "printk.time=0"];
    lab.ends(3, words.into_iter().chain(WRITER));
    let record = lab.newest(1).remove(0);
    let log = record["results"]["kernel_log"].as_str().unwrap();
    let kill = log.lines().find(|line| line.contains("Killed process"));
    let kill = kill.unwrap_or_else(|| panic!("no kill in {log}"));
    assert!(
        kill.starts_with("<3>[") && kill.contains("] Out of memory"),
        "{kill}"
    );
}

#[test]
#[ignore = "test-all"]
fn deaths_that_surely_differ_are_the_verdict_in_every_format() {
    let Some(lab) = Lab::that_runs() else { return };
    let words = [
        "run",
        "--seeds",
        "8",
        "--name",
        "writer",
        "--set",
        "lru_gen/enabled=7",
    ];
    let vs = ["--vs", "vm.dirty_bytes=1048576,name=limited"];
    let (out, _) = lab.ends(0, words.into_iter().chain(vs).chain(WRITER));
    let said = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("was killed with memory to spare in"), "{out}");
    assert!(said.contains("in 0 of 8 (Fisher's exact test"), "{out}");
    assert!(said.contains("deaths 0 of 8 against"), "{out}");
    assert!(said.contains("under writeback"), "{out}");
    assert!(said.contains("reclaim never waited for writeback"), "{out}");
    assert!(!said.contains("nothing could be compared"), "{out}");
    // With the sides swapped, the same difference is a regression.
    let sides = ["writer:limited", "writer:base"];
    let compared = |format: &str| {
        let words = ["compare", "--as", format].into_iter().chain(sides);
        lab.ends(1, words).0
    };
    assert!(
        compared("table").contains("regressed"),
        "{}",
        compared("table")
    );
    assert!(
        compared("ktap").contains("  not ok 1 deaths"),
        "{}",
        compared("ktap")
    );
    let json: serde_json::Value = serde_json::from_str(&compared("json")).unwrap();
    let deaths = &json["beside"][0]["deaths"];
    assert_eq!(deaths["died"][0], 0, "{deaths}");
    assert_eq!(deaths["early"], deaths["died"], "{deaths}");
    assert_eq!(json["overall"], "regressed");
    assert!(compared("mail").contains("Died, which is a result:"));
    assert!(compared("markdown").contains("| died, which is a result |"));
    lab.ends(0, ["report", "writer", "-o", "page.html"]);
    let page = std::fs::read_to_string(lab.folder().join("page.html")).unwrap();
    assert!(page.contains("Dies less often.") && page.contains("died, which is a result"));
}
