//! Tests that the machine has the memory that `--memory` states, that limits which the kernel derives from the size of
//! memory do not depend on memory that the arena itself uses, and that zswap in front of a disk works at every size.

use serde_json::Value;

use crate::common::{KERNEL, Lab, one_sentence};

/// A Debian kernel that has zswap.
const WITH_ZSWAP: &str = "debian:sid";
const MIB: f64 = 1024.0 * 1024.0;

/// Runs a trial and returns its record, which must be valid.
fn record(lab: &Lab, kernel: &str, words: &[&str]) -> Value {
    let fixed = ["--kernel", kernel, "--seeds", "1", "--observe=none"];
    // The command of a program must come last, so the other options are inserted before it.
    let at = words
        .iter()
        .position(|word| *word == "--")
        .unwrap_or(words.len());
    let all = [&["run"], &words[..at], &fixed, &words[at..]].concat();
    lab.ends(0, &all);
    let record = lab.newest(1).remove(0);
    let invalid = &record["results"]["invalid"];
    assert_eq!(invalid, &Value::Array(Vec::new()), "{all:?}");
    record
}

/// Value of a numeric fact in a record.
fn fact(record: &Value, name: &str) -> f64 {
    let text = record["results"]["facts"][name].as_str();
    text.unwrap_or_else(|| panic!("no {name}")).parse().unwrap()
}

/// One number from each zone with memory in the record's `/proc/zoneinfo`: the first nonzero number after `name`. In
/// `protection: (0, 96)` it is the reserve against allocations for the zone above.
fn zones(record: &Value, name: &str) -> Vec<f64> {
    let text = record["results"]["texts"]["zoneinfo-before"]
        .as_str()
        .unwrap();
    let numbers = |zone: &str, name: &str| -> Vec<f64> {
        zone.lines()
            .filter_map(|line| line.trim().strip_prefix(name))
            .filter(|rest| rest.starts_with([' ', ':']))
            .flat_map(|rest| rest.split([' ', ':', ',', '(', ')']))
            .filter_map(|word| word.parse().ok())
            .collect()
    };
    text.split("Node ")
        .filter(|zone| numbers(zone, "managed").first().is_some_and(|n| *n > 0.0))
        .map(|zone| {
            let all = numbers(zone, name);
            let first = all.iter().find(|number| **number > 0.0);
            first.copied().unwrap_or(0.0)
        })
        .collect()
}

#[track_caller]
fn close(found: f64, right: f64, what: &str) {
    assert!(
        (found / right - 1.0).abs() < 0.05,
        "{what} is {found} instead of {right}"
    );
}

/// Memory that the kernel and the guest program themselves use, in bytes, on a machine without ballast and without a
/// simulated disk.
fn footprint(lab: &Lab, kernel: &str) -> f64 {
    // Swap is off, because the tables of zram and of swap grow with the size of swap.
    let words = ["--memory", "total:160M", "--swap", "none", "--", "true"];
    let record = record(lab, kernel, &words);
    fact(&record, "managed") - fact(&record, "free-at-start")
}

/// Checks the limits that the kernel derives from the size of memory. They must be those of a machine that has `mib`
/// MiB free in addition to what the kernel uses. `swap` is the kind of swap; its disk is in the guest's memory.
fn limits_are_right(lab: &Lab, kernel: &str, footprint: f64, mib: u32, swap: &str) {
    let memory = format!("{mib}M");
    let what = format!("{kernel} {memory} {swap}");
    let size = f64::from(mib) * MIB + footprint;
    let machine = ["--memory", &memory, "--swap", swap];
    let command = ["--", "stat", "-f", "-c", "shm %b %S", "/dev/shm"];
    let record = record(lab, kernel, &[&machine[..], &command].concat());
    close(fact(&record, "managed"), size, &format!("{what}: managed"));
    let held = fact(&record, "held");
    if swap.contains("ssd") {
        // The disk takes three times the memory. The kernel's zones do not contain any of it.
        assert!(held > 3.0 * f64::from(mib) * MIB, "{what}: {held}");
    }
    let pages = size / 4096.0;
    let all: f64 = zones(&record, "managed").iter().sum();
    close(all, pages, &format!("{what}: zones"));
    // Kernel `mm/page_alloc.c`: min_free_kbytes is the square root of 16 times the size in KiB; the watermarks low and
    // high are a quarter and a half above min.
    let min = (size / 1024.0 * 16.0).sqrt() / 4.0;
    for (name, share) in [("min", 1.0), ("low", 1.25), ("high", 1.5)] {
        // Fragmentation raises the watermarks of a small zone for a while, also by what the trial itself allocates
        // first.
        let sum: f64 = zones(&record, name).iter().sum();
        let boost: f64 = zones(&record, "boost").iter().sum();
        close(sum - boost, min * share, &format!("{what}: {name}"));
    }
    // The reserve of the zone DMA is 1/256 of the size of the zone above.
    let [dma, above] = zones(&record, "managed")[..] else {
        panic!("{what}: two zones");
    };
    assert!(dma < 4096.0);
    close(
        zones(&record, "protection")[0],
        above / 256.0,
        &format!("{what}: reserve"),
    );
    // Kernel `mm/page_alloc.c`, `zone_batchsize`: a per-CPU list takes at once a quarter of 1/1024 of the zone, times
    // 1.5, rounded down to a power of two, minus 1.
    let batch = zones(&record, "batch")[1];
    let right = ((pages - dma) / 1024.0 / 4.0 * 1.5).log2().floor().exp2() - 1.0;
    assert!(
        (batch - right.max(1.0)).abs() < 0.5,
        "{what}: {batch} and not {right}"
    );
    // Huge pages are off on machines below 512 MiB.
    let huge = record["results"]["settings"]["thp/enabled"].as_str();
    assert!(huge.unwrap().contains("[never]"), "{what}: {huge:?}");
    // A program sees half of the memory as the size of /dev/shm, here by statfs(2).
    let out = record["results"]["texts"]["stdout"].as_str().unwrap();
    let shm = out.lines().find_map(|line| line.strip_prefix("shm "));
    let [blocks, block] = shm.unwrap().split(' ').collect::<Vec<_>>()[..] else {
        panic!("{out}");
    };
    let shm = blocks.parse::<f64>().unwrap() * block.parse::<f64>().unwrap();
    close(shm, size / 2.0, &format!("{what}: /dev/shm"));
}

#[test]
#[ignore = "test-all"]
fn limits_are_those_of_a_machine_with_this_memory_on_three_kernels_at_three_sizes() {
    for kernel in ["debian:bookworm", KERNEL, WITH_ZSWAP] {
        let Some(lab) = Lab::that_runs_on(kernel) else {
            continue;
        };
        let footprint = footprint(&lab, kernel);
        for mib in [16, 64, 256] {
            limits_are_right(&lab, kernel, footprint, mib, "ssd");
        }
        // A machine without a disk has the same limits.
        limits_are_right(&lab, kernel, footprint, 64, "zram");
    }
}

#[test]
#[ignore = "test-all"]
fn limits_do_not_depend_on_the_disk_in_the_guests_memory() {
    let Some(lab) = Lab::that_runs() else { return };
    limits_are_right(&lab, KERNEL, footprint(&lab, KERNEL), 16, "ssd");
}

/// Runs a scenario with zswap in front of a disk, with default settings. Checks that the pool's limit is 20 % and that
/// zswap stored more than 500 pages. `more` are further options.
fn ends_with_zswap(lab: &Lab, scenario: &str, memory: &str, more: &[&str]) {
    let words = [scenario, "--memory", memory, "--swap", "zswap+ssd"];
    let record = record(lab, WITH_ZSWAP, &[&words[..], more].concat());
    let results = &record["results"];
    assert_eq!(results["settings"]["zswap/max_pool_percent"], "20");
    let values = &results["counters"]["vmstat"]["values"];
    let grew = |name: &str| {
        let [before, after] = [0, 1].map(|at| values[name][at].as_u64().unwrap());
        after - before
    };
    assert!(grew("zswpout") > 500, "{scenario} {memory}");
}

#[test]
#[ignore = "test-all"]
fn hot_cold_ends_with_zswap_before_a_disk_at_24_mib_and_repeats() {
    let Some(lab) = Lab::that_runs_on(WITH_ZSWAP) else {
        return;
    };
    ends_with_zswap(&lab, "hot-cold", "24M", &[]);
    let (list, _) = lab.ends(0, ["list", "records", "--json", "--limit", "1"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    lab.ends(0, ["repeat", list[0]["id"].as_str().unwrap()]);
}

#[test]
#[ignore = "test-all"]
fn workloads_end_with_zswap_before_a_disk_at_every_size() {
    let Some(lab) = Lab::that_runs_on(WITH_ZSWAP) else {
        return;
    };
    // At 16M, hot-cold and swapbench die for lack of memory. They also die on a machine of this size that boots without
    // ballast (docs/notes/memory-size.md). Without boosted watermarks, swapbench ends on both.
    ends_with_zswap(&lab, "usemem", "16M", &[]);
    let without_boost = ["--set", "vm.watermark_boost_factor=0"];
    ends_with_zswap(&lab, "swapbench", "16M", &without_boost);
    for scenario in ["hot-cold", "usemem", "swapbench"] {
        for memory in ["24M", "64M", "256M"] {
            ends_with_zswap(&lab, scenario, memory, &[]);
        }
    }
}

#[test]
fn a_value_beyond_the_kernels_range_and_a_limit_of_a_group_are_refused_before_a_trial() {
    let Some(lab) = Lab::that_runs() else { return };
    for (setting, words) in [
        ("vm.swappiness=201", ["201", "0 to 200"]),
        ("vm.overcommit_memory=3", ["3", "0 to 2"]),
        ("memory.high=32M", ["control group", "--high"]),
    ] {
        for option in ["--set", "--vs"] {
            let all = ["run", "linear", "--kernel", KERNEL, option, setting];
            let (_, err) = lab.ends(4, all);
            one_sentence(&err, &words);
        }
    }
    assert_eq!(lab.records(), 0);
}
