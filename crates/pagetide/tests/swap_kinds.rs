//! Tests of compressors and devices of swap: zram and zswap with several compressors work as named and are
//! exactly repeatable; kinds that a kernel lacks are refused; kinds of swap can be compared and be a matrix's factor.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use crate::common::{KERNEL, Lab, metric};
use serde_json::Value;

/// A Debian kernel that has zswap.
const WITH_ZSWAP: &str = "debian:sid";
/// A workload that does not fit into its memory.
const RANDOM: [&str; 7] = [
    "random",
    "--memory",
    "16M",
    "-p",
    "pages=20M",
    "-p",
    "refs=1500",
];

/// Results of one trial.
struct Tried {
    digest: String,
    /// Elapsed time in virtual seconds.
    elapsed: f64,
    results: Value,
}

impl Tried {
    /// Values of a counter before and after.
    fn counter(&self, source: &str, name: &str) -> [u64; 2] {
        let values = &self.results["counters"][source]["values"][name];
        [0, 1].map(|place| {
            values[place]
                .as_u64()
                .unwrap_or_else(|| panic!("{name}: {values}"))
        })
    }

    fn grew(&self, name: &str) -> u64 {
        let [before, after] = self.counter("vmstat", name);
        after - before
    }
}

/// Sorts text with too little memory and with this kind of swap; returns the results. Text is used because the pages
/// that scenarios fill by default compress to the same size with every compressor.
fn tried(lab: &Lab, kernel: &str, memory: &str, swap: &str) -> Tried {
    let prime = 200_003_u64;
    let mut text = String::new();
    for number in 1..prime {
        writeln!(text, "{:012}", number * 7919 % prime).unwrap();
    }
    fs::write(lab.folder().join("numbers"), text).unwrap();
    let words = [
        "run",
        "--memory",
        memory,
        "--seeds",
        "1",
        "--kernel",
        kernel,
        "--swap",
        swap,
        "--observe=none",
        "--fresh",
        "--exit-zero",
        "--file",
        "numbers",
        "--",
        "sort",
        // By default, sort uses a buffer that fits into the memory that it sees.
        "-S",
        "40M",
        "numbers",
    ];
    lab.ends(0, words);
    let (list, _) = lab.ends(0, ["list", "records", "--json", "--limit", "1"]);
    let records: Vec<Value> = serde_json::from_str(&list).unwrap();
    let id = records[0]["id"].as_str().unwrap();
    let (text, _) = lab.ends(0, ["show", id]);
    assert!(text.contains(swap), "{swap} is not named: {text}");
    let (json, _) = lab.ends(0, ["show", id, "--json"]);
    let record: Value = serde_json::from_str(&json).unwrap();
    let results = record["results"].clone();
    assert_eq!(
        results["invalid"].as_array().map(Vec::len),
        Some(0),
        "{swap}: {results}"
    );
    Tried {
        digest: record["digest"].as_str().unwrap().to_owned(),
        elapsed: metric(&record, "elapsed"),
        results,
    }
}

#[test]
#[ignore = "test-all"]
fn every_compressor_of_zram_runs_to_the_bit_and_does_its_own_work() {
    let Some(lab) = Lab::that_runs() else { return };
    let mut most = BTreeMap::new();
    for name in [
        "zram",
        "zram:lz4",
        "zram:lz4hc",
        "zram:zstd",
        "zram:deflate",
    ] {
        let [once, again] = [(); 2].map(|()| tried(&lab, KERNEL, "10M", name));
        assert_eq!(once.digest, again.digest, "{name}");
        let compressor = name.strip_prefix("zram:").unwrap_or("lz4");
        assert_eq!(once.results["facts"]["compressor"], compressor);
        assert!(once.grew("pswpout") > 500, "{name}");
        most.insert(name, once.counter("zram", "mem_used_max")[1]);
    }
    // If the compressor's name were ignored, the memory would be the same for all.
    assert!(most["zram:zstd"] * 10 < most["zram:lz4"] * 8, "{most:?}");
    assert!(most["zram:deflate"] * 10 < most["zram:lz4"] * 8, "{most:?}");
    assert_ne!(most["zram:lz4hc"], most["zram:lz4"], "{most:?}");
    // The default compressor takes about as much memory as lz4, which it is, named explicitly.
    assert!(
        most["zram"].abs_diff(most["zram:lz4"]) * 4 < most["zram"],
        "{most:?}"
    );
}

#[test]
#[ignore = "test-all"]
fn zswap_holds_pages_before_a_disk_to_the_bit() {
    let Some(lab) = Lab::that_runs_on(WITH_ZSWAP) else {
        return;
    };
    let elapsed = ["zswap:lz4+ssd:80us", "zswap:zstd:zsmalloc+ssd:80us"].map(|name| {
        let [once, again] = [(); 2].map(|()| tried(&lab, WITH_ZSWAP, "12M", name));
        assert_eq!(once.digest, again.digest, "{name}");
        assert!(
            once.grew("zswpout") > 500 && once.grew("zswpin") > 100,
            "{name}"
        );
        assert_eq!(once.results["settings"]["zswap/enabled"], "Y");
        once.elapsed
    });
    // zstd takes longer for a page; if the name were ignored, the times would be equal.
    assert!((elapsed[1] / elapsed[0] - 1.0).abs() > 0.05, "{elapsed:?}");
    let without = tried(&lab, WITH_ZSWAP, "12M", "ssd:80us");
    assert_eq!(without.grew("zswpout"), 0);
    assert!(without.grew("pswpout") > 500);
}

#[test]
fn what_a_kernel_lacks_is_one_error_and_nothing_is_left() {
    let Some(lab) = Lab::that_runs() else { return };
    lab.refuses(
        KERNEL,
        "zram:lzo",
        &["zram of 6.12", "lzo", "CONFIG_ZRAM_BACKEND_LZO"],
    );
    lab.refuses(KERNEL, "zram:842", &["842", "CONFIG_ZRAM_BACKEND_842"]);
    lab.refuses(
        KERNEL,
        "zswap",
        &[
            "zswap needs CONFIG_ZSWAP",
            "6.12",
            "; --kernel debian:sid has all that is needed",
        ],
    );
    if Lab::that_runs_on(WITH_ZSWAP).is_some() {
        lab.refuses(
            WITH_ZSWAP,
            "zswap:842+ssd",
            &["zswap of 7", "842", "CONFIG_CRYPTO_842"],
        );
        lab.refuses(
            WITH_ZSWAP,
            "zswap:lz4:zbud+disk",
            &["zswap of 7", "zbud", "CONFIG_ZBUD"],
        );
    }
}

/// Checks that all trials of the campaign started with the same amount of free memory, before any memory was used for
/// compressed pages. Also checks that the block layer and the swap code counted the same writes.
fn all_start_with_the_same_memory(lab: &Lab) {
    let mut free = Vec::new();
    let (list, _) = lab.ends(0, ["list", "records", "--json", "--limit", "100"]);
    let records: Vec<Value> = serde_json::from_str(&list).unwrap();
    assert_eq!(records.len(), 24);
    for id in records.iter().map(|record| record["id"].as_str().unwrap()) {
        let (json, _) = lab.ends(0, ["show", id, "--json"]);
        let record: Value = serde_json::from_str(&json).unwrap();
        let at_start = record["results"]["facts"]["free-at-start"]
            .as_str()
            .unwrap();
        free.push(at_start.parse::<f64>().unwrap());
        // The block layer and the swap code count the same writes to the disk.
        let swapped = metric(&record, "swapped-out") * 4096.0;
        let written = metric(&record, "swap-written");
        if record["subject"]["swap"] != "zram" {
            assert!(
                (written - swapped).abs() <= 64.0 * 4096.0,
                "{written} of {swapped}"
            );
        }
    }
    let (least, most) = (
        free.iter().copied().fold(f64::MAX, f64::min),
        free.iter().copied().fold(0.0, f64::max),
    );
    assert!(most <= least * 1.02, "{free:?}");
}

#[test]
fn kinds_of_swap_are_variants_of_one_run_with_verdicts_on_the_same_memory() {
    let Some(lab) = Lab::that_runs_on(WITH_ZSWAP) else {
        return;
    };
    let own = [
        "--kernel",
        WITH_ZSWAP,
        "--seeds",
        "8",
        "--observe=none",
        "--swap",
        "ssd",
        "--vs",
        "swap=zram",
        "--vs",
        "swap=zswap+ssd",
        "--exit-zero",
    ];
    let words = [&["run"], &RANDOM[..], &own].concat();
    let (out, _) = lab.ends(0, &words);
    assert!(
        out.contains("refs=1500 · 16M ") && !out.contains("Confounded"),
        "{out}"
    );
    for text in [
        "swap=ssd:80us",
        "swap=zram",
        "swap=zswap+ssd:80us",
        "to disk",
        "kind of swap",
    ] {
        assert!(out.contains(text), "{text}: {out}");
    }
    let (json, _) = lab.ends(0, ["compare", "--as", "json", "--exit-zero"]);
    let found: Value = serde_json::from_str(&json).unwrap();
    let kinds = found["kinds"][0]["kinds"]
        .as_array()
        .unwrap_or_else(|| panic!("{found}"));
    let cost = |kind: usize, name: &str| kinds[kind][name]["mean"].as_f64().unwrap();
    let [ssd, zram, zswap] = [0, 1, 2];
    assert!(
        cost(ssd, "written") > 3e6 && cost(ssd, "memory") == 0.0,
        "{kinds:?}"
    );
    assert!(
        cost(zram, "written") == 0.0 && cost(zram, "memory") > 1e6,
        "{kinds:?}"
    );
    assert!(cost(zswap, "memory") > 1e6, "{kinds:?}");
    for kind in [zram, zswap] {
        for name in ["time", "written", "memory"] {
            let verdict = &kinds[kind][name]["verdict"]["verdict"];
            assert!(verdict.is_string(), "{name}: {kinds:?}");
        }
        assert_eq!(kinds[kind]["died"], 0);
    }
    let verdict = |kind: usize, name: &str| &kinds[kind][name]["verdict"]["verdict"];
    assert_eq!(verdict(zram, "written"), "improved", "{kinds:?}");
    assert_eq!(verdict(zram, "memory"), "regressed", "{kinds:?}");
    // With a disk, read-ahead brings in several pages per fault. Zram reads one page per fault, so it has more major
    // faults.
    let is_sure =
        |line: &str| line.trim_start().starts_with("major-faults") && line.contains("✗ regressed");
    assert!(out.lines().any(is_sure), "{out}");
    let front = |kind: usize| kinds[kind]["is_on_front"] == true;
    assert!(front(ssd), "no other kind holds no memory: {kinds:?}");
    all_start_with_the_same_memory(&lab);
    // A second run and a plan find the records of the first run.
    let mut plan = words;
    plan[0] = "plan";
    plan.retain(|word| *word != "--exit-zero");
    let (out, _) = lab.ends(0, plan);
    assert!(
        out.contains("24 trials in the exact arena, 24 have records"),
        "{out}"
    );
}

#[test]
#[ignore = "test-all"]
fn swap_is_a_factor_of_a_matrix_which_takes_a_kernel_that_has_it() {
    let Some(lab) = Lab::that_runs_on(WITH_ZSWAP) else {
        return;
    };
    let own = [
        "--seeds",
        "3",
        "--only",
        "--vary",
        "swap=ssd:2ms,zswap+ssd:2ms",
        "--json",
    ];
    let mut words = [&["matrix"], &RANDOM[..], &own].concat();
    let (out, said) = lab.ends(0, &words);
    assert!(said.contains("takes --kernel debian:sid"), "{said}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(found["factors"][0]["key"], "swap");
    let share = found["kinds"][0]["effects"][0]["share"].as_f64().unwrap();
    assert!(
        share < -0.3,
        "a cache before a slow disk saves time: {share}"
    );
    let recommended = usize::try_from(found["recommended"].as_u64().unwrap()).unwrap();
    let choice = &found["choices"][recommended];
    assert_eq!(choice["swap"], "zswap+ssd:2ms", "{found}");
    assert_eq!(
        choice["settings"].as_array().map(Vec::len),
        Some(0),
        "{found}"
    );
    // If the user names a kernel that lacks a kind of swap, the kind is left out. The output names a kernel that has
    // it.
    words.extend(["--kernel", KERNEL]);
    let (out, _) = lab.ends(0, words);
    let found: Value = serde_json::from_str(&out).unwrap();
    let left_out = found["left_out"][0].as_str().unwrap();
    assert!(
        left_out.contains("(--kernel debian:sid has it)"),
        "{left_out}"
    );
}
