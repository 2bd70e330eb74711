//! Tests of every scenario on Debian's oldest and newest kernel: features that a kernel lacks are reported, and all
//! other results are as expected. Sizes are the smallest at which a scenario still has its intended effect.

use std::collections::BTreeMap;

use crate::common::Lab;
use crate::common::trial::{Done, run_on};

/// Words with which a trial reports that its kernel lacks a requested feature.
const NOT_HERE: &str = "not on this kernel";

/// Trials without a file system. The exact value of each count follows from the trial's definition.
const PLAIN: [(&str, &[(&str, u64)]); 6] = [
    (
        "contswap -p mapping=20M -p reclaimers=5 -p hold=10ms",
        &[("pages-touched", 2 * 5120)],
    ),
    ("zipf -p pages=30M -p refs=3000", &[("references", 3000)]),
    ("fault -p floor=zero -p passes=2", &[]),
    ("alloc -p floor=zero -p passes=1", &[]),
    (
        "swapbench -p locked=4M -p processes=6 -p size=4M",
        &[("pages-written", 6 * 1024), ("pages-read", 6 * 1024)],
    ),
    (
        "usemem -p processes=3 -p size=10M -p passes=1",
        &[("pages-written", 3 * 2560)],
    ),
];

/// Trials with a file system, with exact counts.
const WITH_FILES: [(&str, &[(&str, u64)]); 3] = [
    (
        // The file system has the same size as in the other trials, so that one guest serves all.
        "kv -p size=24M -p operations=4000",
        &[("operations", 4000), ("snapshot-pages", 24 * 256)],
    ),
    (
        "highalloc -p by=thp -p age=100ms -p rest=10ms -p rate=256M -p share=0.5",
        &[("attempts", 3 * 6)],
    ),
    (
        "random -p mapping=file -p access=mixed -p pages=26M -p refs=1000",
        &[("references", 1000)],
    ),
];

/// Trial of all methods of requesting a block; some kernels lack some of these methods.
const WAYS: &str = "highalloc -p age=50ms -p rest=10ms -p rate=256M -p share=0.25";

/// Methods of copying that need a kernel feature that not every kernel has.
const COPIES: &str = "mm-cold-cp,copy-file-range-cp,splice-cp,dontcache-cp,uring-cp";

fn one<'a>(lab: &'a Lab, kernel: &str, arguments: &str) -> Done<'a> {
    let words: Vec<&str> = arguments.split(' ').collect();
    let mut all = run_on(lab, kernel, &words);
    assert_eq!(all.len(), 1, "{arguments}");
    all.remove(0)
}

/// Metrics without a number, each with the reason.
fn absent(done: &Done<'_>) -> BTreeMap<String, String> {
    let metrics = done.record["results"]["metrics"].as_array().unwrap();
    let reason = |metric: &serde_json::Value| {
        let why = metric["value"]["absent"].as_str()?;
        Some((metric["name"].as_str()?.to_owned(), why.to_owned()))
    };
    metrics.iter().filter_map(reason).collect()
}

/// Runs all scenarios on one kernel. `lacking` are the methods of copying that the kernel does not have, and
/// `has_small_huge_pages` is true if it has huge pages of 64 KiB.
fn all_scenarios(kernel: &str, lacking: &[&str], has_small_huge_pages: bool) {
    let Some(lab) = Lab::that_runs_on(kernel) else {
        return;
    };
    for (arguments, counts) in PLAIN.into_iter().chain(WITH_FILES) {
        let done = one(&lab, kernel, arguments);
        for (name, count) in counts {
            assert_eq!(done.count(name), *count, "{arguments}: {name}");
        }
        let scans = done.vmstat("pgscan_kswapd") + done.vmstat("pgscan_direct");
        assert!(scans > 0, "{arguments}: nothing was reclaimed");
        for (name, why) in absent(&done) {
            assert_ne!(why, NOT_HERE, "{arguments}: {name}");
            assert_ne!(why, "not measured", "{arguments}: {name}");
        }
    }

    let ways = format!("{WAYS} -p by=collapse -p by=hugetlb -p by=packet");
    let ways: Vec<&str> = ways.split(' ').collect();
    for done in run_on(&lab, kernel, &ways) {
        assert_eq!(done.count("attempts"), 3 * 3, "{}", done.name());
        assert!(done.metric("success") > 0.0, "{}", done.name());
    }
    let small = one(&lab, kernel, &format!("{WAYS} -p by=thp -p block=64K"));
    if has_small_huge_pages {
        assert_eq!(small.count("attempts"), 3 * 96);
    } else {
        let reasons: Vec<String> = absent(&small)
            .into_iter()
            .filter(|(name, _)| name.starts_with("success"))
            .map(|(_, why)| why)
            .collect();
        assert!(reasons.len() > 4 && reasons.iter().all(|why| why == NOT_HERE));
        let warnings = small.record["results"]["warnings"].to_string();
        assert!(
            warnings.contains("transparent huge pages of 64"),
            "{warnings}"
        );
    }

    let copies = one(
        &lab,
        kernel,
        &format!("filecopy -p size=14M -p victim=0 -p methods={COPIES}"),
    );
    let there = COPIES.split(',').count() as u64 - lacking.len() as u64;
    assert_eq!(copies.count("copied"), there * (14 << 20));
    assert_eq!(copies.count("compared"), there * (14 << 20));
    let told: Vec<String> = absent(&copies)
        .into_iter()
        .filter(|(name, why)| name.starts_with("time-") && why == NOT_HERE)
        .map(|(name, _)| name.replace("time-", ""))
        .collect();
    assert_eq!(told, lacking);
}

#[test]
#[ignore = "test-all"]
fn every_scenario_runs_on_6_1_which_lacks_small_huge_pages_and_uncached_io() {
    all_scenarios("debian:bookworm", &["dontcache-cp"], false);
}

#[test]
#[ignore = "test-all"]
fn every_scenario_runs_on_the_newest_kernel_which_lacks_nothing() {
    all_scenarios("debian:sid", &[], true);
}
