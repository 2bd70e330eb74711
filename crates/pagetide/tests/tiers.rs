//! Tests of swap on several devices: each combination works and is exactly repeatable, the order of pages in the tiers
//! is measured, and impossible combinations are refused.

use serde_json::Value;

use crate::common::{KERNEL, Lab, metric};

/// A Debian kernel that has zswap.
const WITH_ZSWAP: &str = "debian:sid";

/// Runs a scenario with 16 MiB of memory. It first fills the pages of the first half, and never uses them again.
/// Returns the record and the output of `show`.
fn cold_first(lab: &Lab, swap: &str, more: &[&str]) -> (Value, String) {
    let mut words = vec![
        "run",
        "patterns",
        "-p",
        "pattern=cold-first",
        "-p",
        "refs=2*pages",
        "-p",
        "snapshots=4",
        "--memory",
        "16M",
        "--seeds",
        "1",
        "--kernel",
        WITH_ZSWAP,
        "--swap",
        swap,
        "--observe=none",
        "--fresh",
        "--exit-zero",
    ];
    words.extend(more);
    lab.ends(0, words);
    let (list, _) = lab.ends(0, ["list", "records", "--json", "--limit", "1"]);
    let records: Vec<Value> = serde_json::from_str(&list).unwrap();
    let id = records[0]["id"].as_str().unwrap();
    let (text, _) = lab.ends(0, ["show", id]);
    let (json, _) = lab.ends(0, ["show", id, "--json"]);
    let record: Value = serde_json::from_str(&json).unwrap();
    let invalid = &record["results"]["invalid"];
    assert_eq!(
        invalid.as_array().map(Vec::len),
        Some(0),
        "{swap}: {invalid}"
    );
    (record, text)
}

/// Increase of a counter from the start to the end of the trial.
fn grew(record: &Value, source: &str, name: &str) -> u64 {
    let values = &record["results"]["counters"][source]["values"][name];
    let [before, after] = [0, 1].map(|at| {
        values[at]
            .as_u64()
            .unwrap_or_else(|| panic!("{source} {name}: {values}"))
    });
    after - before
}

/// Name of the source of counters that begins with `prefix`. Fails unless there is exactly one.
fn source<'a>(record: &'a Value, prefix: &str) -> &'a str {
    let sources = record["results"]["counters"].as_object().unwrap();
    let mut found = sources.keys().filter(|name| name.starts_with(prefix));
    let name = found
        .next()
        .unwrap_or_else(|| panic!("no {prefix} in {:?}", sources.keys()));
    assert_eq!(found.next(), None);
    name
}

#[test]
fn cold_pages_that_come_first_stay_above_hot_ones_in_zram_before_a_disk_and_not_in_zswap_that_shrinks()
 {
    let Some(lab) = Lab::that_runs_on(WITH_ZSWAP) else {
        return;
    };
    let swap = "zram:8M@100,ssd@10";
    let (turned, text) = cold_first(&lab, swap, &[]);
    // All pages read back from the disk were used more recently than the cold pages in zram.
    let back = metric(&turned, "lower-tier-back");
    assert!(back > 1000.0, "{back}");
    assert!(metric(&turned, "inversion") > 0.95, "{text}");
    for word in ["Tiers of swap", "zram:8M@100", "ssd:80us@10"] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    // Each device has its own counters, and the record states the priorities.
    assert!(grew(&turned, "diskstats", "nullb80 written") > 4 << 20);
    assert!(grew(&turned, "zram", "mem_used_max") > 2 << 20);
    let swaps = turned["results"]["texts"]["swaps-after"].as_str().unwrap();
    let priorities: Vec<&str> = swaps
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    assert_eq!(priorities, ["100", "10"]);

    // zswap's shrinker writes the cold pages to the disk, and the hot pages stay in zswap.
    let swap = "zswap:shrinker+ssd";
    let (straight, text) = cold_first(&lab, swap, &[]);
    assert!(grew(&straight, "vmstat", "zswpwb") > 1000, "{text}");
    let came_back = metric(&straight, "lower-tier-back");
    let inverted = if came_back > 0.0 {
        metric(&straight, "inversion") * came_back
    } else {
        0.0
    };
    assert!(
        inverted < 0.06 * back,
        "{inverted} of {came_back} pages, {text}"
    );
    assert!(
        text.contains("zswap") && !text.contains("not known"),
        "{text}"
    );
}

#[test]
#[ignore = "test-all"]
fn every_kind_of_tier_runs_to_the_bit_and_does_its_own_work() {
    let Some(lab) = Lab::that_runs_on(WITH_ZSWAP) else {
        return;
    };
    // `no-writeback` runs with well compressible pages, so that zswap's pool is large enough without writeback.
    let tried = |swap: &str| {
        let more: &[&str] = if swap.contains("no-writeback") {
            &["-p", "content=0.1"]
        } else {
            &[]
        };
        let [once, again] = [(); 2].map(|()| cold_first(&lab, swap, more));
        assert_eq!(once.0["digest"], again.0["digest"], "{swap}");
        once
    };
    // A process of the guest writes idle pages to the backing device. `show` lists this device as a tier.
    let (record, text) = tried("zram:writeback=ssd");
    assert!(
        grew(&record, source(&record, "writeback-zram0"), "bd_writes") > 1000,
        "{text}"
    );
    assert!(text.contains("writeback to ssd:80us") && metric(&record, "lower-tier-back") >= 0.0);
    tried("zram:8M@100,ssd@10");
    let (record, _) = tried("zram:8M:limit=4M@100,ssd@10");
    let values = &record["results"]["counters"]["zram"]["values"];
    assert_eq!(values["mem_limit"][1], 4 << 20);
    assert!(
        values["mem_used_max"][1].as_u64().unwrap() <= 4 << 20,
        "{values}"
    );
    // The kernel stripes swap over devices of equal priority. The record states this.
    let (record, text) = tried("ssd@5,ssd:80us@5");
    assert!(text.contains("the kernel stripes them"), "{text}");
    let written =
        ["nullb80 written", "nullb81 written"].map(|name| grew(&record, "diskstats", name));
    assert!(
        written[0].abs_diff(written[1]) * 2 < written[0],
        "{written:?}"
    );
    let (record, _) = tried("file:64M+ssd");
    let swaps = record["results"]["texts"]["swaps-after"].as_str().unwrap();
    assert!(
        swaps.contains("/swap-0/swap") && swaps.contains("file"),
        "{swaps}"
    );
    let (record, _) = tried("disk:1ms,40MB/s@3");
    assert!(grew(&record, "diskstats", "nbd0 written") > 1 << 20);
    let (record, _) = tried("zswap:shrinker+ssd");
    assert_eq!(record["results"]["settings"]["zswap/shrinker_enabled"], "Y");
    assert!(grew(&record, "vmstat", "zswpwb") > 0);
    let (record, _) = tried("zswap:no-writeback+ssd");
    assert_eq!(grew(&record, "vmstat", "zswpwb"), 0);
    assert!(grew(&record, "vmstat", "zswpout") > 1000);
}

#[test]
fn swap_that_cannot_be_is_refused_before_a_guest_boots() {
    let Some(lab) = Lab::that_runs() else { return };
    let refused = |swap: &str, words: &[&str]| lab.refuses(KERNEL, swap, words);
    refused(
        "zram:64M@100,ssd@10",
        &["sizes of 64M together", "all swap has 24M", "--swap-size"],
    );
    refused(
        "zram:recompress=zstd",
        &["recompression of zram", "CONFIG_ZRAM_MULTI_COMP"],
    );
    refused(
        "zswap:shrinker+ssd",
        &["CONFIG_ZSWAP", "CONFIG_ZSWAP_SHRINKER_DEFAULT_ON"],
    );
    refused("zram:lzo:8M", &["lzo", "CONFIG_ZRAM_BACKEND_LZO"]);
}
