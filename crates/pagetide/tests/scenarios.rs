//! Tests of every scenario in the exact arena on a real kernel: exact counts that follow from its definition, and
//! evidence that the intended effect happened. Sizes are small, with one trial each.

#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "what is not there fails the test, and numbers that are copied stay equal"
)]

use std::collections::BTreeMap;
use std::fs;

use crate::common::trial::{Done, run_on};
use crate::common::{KERNEL, Lab};

const MIB: u64 = 1 << 20;

/// Runs scenarios with these arguments; returns the trials in the order of the store.
fn run<'a>(lab: &'a Lab, arguments: &[&str]) -> Vec<Done<'a>> {
    run_on(lab, KERNEL, arguments)
}

/// Runs one trial and returns it.
fn one<'a>(lab: &'a Lab, arguments: &[&str]) -> Done<'a> {
    let mut all = run(lab, arguments);
    assert_eq!(all.len(), 1, "{arguments:?}");
    all.remove(0)
}

fn sum(column: &[f64]) -> f64 {
    column.iter().sum()
}

fn near(found: f64, expected: f64, share: f64) {
    assert!(
        (found / expected - 1.0).abs() <= share,
        "{found} is not {expected} within {share}"
    );
}

/// Asserts equality up to rounding errors.
fn same(found: f64, expected: f64) {
    near(found + 1.0, expected + 1.0, 1e-9);
}

const CONTSWAP: [&str; 7] = [
    "contswap",
    "-p",
    "mapping=20M",
    "-p",
    "reclaimers=5",
    "-p",
    "hold=100ms",
];

#[test]
fn contswap_scatters_what_it_swaps_and_reads_every_page_back() {
    let Some(lab) = Lab::that_runs() else { return };
    let done = one(&lab, &CONTSWAP);
    let (pages, share) = (5120, 1024);
    assert_eq!(done.count("pages-touched"), pages + 5 * share);
    assert_eq!(done.histogram_count("access"), pages);
    assert_eq!(done.log("access-log"), (0..pages).collect::<Vec<_>>());
    let faults = done.column("usage", "minor-faults");
    assert_eq!(faults.len(), 5);
    for faults in faults {
        // There is one fault per page, and some faults of the process itself.
        assert!((1024.0..1100.0).contains(&faults), "{faults}");
    }

    let offsets = done.column("swap-offsets", "offset");
    assert_eq!(offsets.len() as u64, pages);
    let swapped = offsets.iter().filter(|offset| **offset >= 0.0).count() as u64;
    assert_eq!(done.count("swapped"), swapped);
    assert!(swapped > pages / 2, "{swapped}");
    let pairs: Vec<f64> = offsets
        .windows(2)
        .filter(|pair| pair[0] >= 0.0 && pair[1] >= 0.0)
        .map(|pair| pair[1] - pair[0])
        .collect();
    let contiguous = pairs.iter().filter(|jump| **jump == 1.0).count();
    let contiguity = done.metric("contiguity");
    same(contiguity, contiguous as f64 / pairs.len() as f64);
    assert!(contiguity > 0.0 && contiguity < 1.0, "{contiguity}");
    let jumps: f64 = pairs.iter().map(|jump| jump.abs()).sum();
    same(done.metric("mean-jump"), jumps / pairs.len() as f64);
    assert!(done.count("swap-in-major-faults") >= swapped);
    assert!(done.count("swapped-in") >= swapped && done.count("swapped-out") >= swapped);
    near(done.metric("compressed"), 0.35, 0.1);
}

#[test]
#[ignore = "test-all"]
fn contswap_as_written_reads_the_zero_page_and_swaps_nothing() {
    let Some(lab) = Lab::that_runs() else { return };
    let done = one(&lab, &[&CONTSWAP[..], &["--as-written"]].concat());
    assert_eq!(done.count("pages-touched"), 10_240);
    for name in ["swapped", "swapped-out", "swap-in-major-faults"] {
        assert_eq!(done.count(name), 0, "{name}");
    }
    let why = done.value("contiguity")["absent"].as_str().unwrap();
    assert!(why.contains("nothing of the mapping was swapped"), "{why}");
}

/// The reference string of a pattern as page indices, made outside of the guest.
fn references(lab: &Lab, pattern: &str, pages: &str, refs: &str) -> Vec<u64> {
    let arguments = [
        "references",
        pattern,
        "--pages",
        pages,
        "--refs",
        refs,
        "--seed",
        "1",
        "--text",
    ];
    let (out, _) = lab.ends(0, arguments);
    out.lines().map(|line| line.parse().unwrap()).collect()
}

/// Asserts that the log equals the reference string. The last series of pages must have the number and the time of each
/// page's references.
fn check_references(done: &Done<'_>, string: &[u64], last: &str) {
    let name = done.name();
    assert_eq!(done.count("references"), string.len() as u64, "{name}");
    assert_eq!(
        done.histogram_count("access"),
        string.len() as u64,
        "{name}"
    );
    assert!(done.log("access-log") == string, "{name}: another order");
    let pages = done.series(last);
    let mut uses = vec![0.0; pages["page"].len()];
    let mut ages = vec![string.len() as f64; uses.len()];
    for (at, page) in string.iter().enumerate() {
        let page = usize::try_from(*page).unwrap();
        uses[page] += 1.0;
        ages[page] = (string.len() - at - 1) as f64;
    }
    assert_eq!(pages["uses"], uses, "{name}");
    assert_eq!(pages["age"], ages, "{name}");
    let present = sum(&pages["present"]) / uses.len() as f64;
    same(done.metric("present"), present);
    assert!(present > 0.0 && present < 1.0, "{name}: {present}");
}

#[test]
fn every_pattern_makes_its_string_faults_once_a_page_and_loses_pages() {
    let Some(lab) = Lab::that_runs() else { return };
    let string = references(&lab, "random", "7680", "4000");
    let lines: Vec<String> = string.iter().map(ToString::to_string).collect();
    fs::write(lab.folder().join("trace.txt"), lines.join("\n")).unwrap();
    let patterns = [
        "linear",
        "random",
        "smooth-sin",
        "smooth-sin-random",
        "zipf05",
        "zipf(1.1)",
        "lognormal",
        "hot-cold",
        "scan-with-hot-core",
        "loop",
        "file:trace.txt",
    ];
    let params = ["-p", "pages=30M", "-p", "refs=4000", "-p", "snapshots=1"];
    let all = run(&lab, &[&patterns[..], &params].concat());
    assert_eq!(all.len(), patterns.len());
    for done in &all {
        let string = references(&lab, done.param("pattern"), "7680", "4000");
        check_references(done, &string, "pages-1");
        // One fault per page, and rarely another one if a page was evicted during the filling.
        let faults = done.count("fill-faults");
        assert!((7680..7700).contains(&faults), "{faults}");
        assert!(done.count("swapped-out") > 1000, "{}", done.name());
        let (major, swapped_in) = (done.count("major-faults"), done.count("swapped-in"));
        assert!(major > 0 && swapped_in >= major, "{major} {swapped_in}");
    }
}

#[test]
#[ignore = "test-all"]
fn patterns_as_written_touch_pages_first_by_references_so_that_memory_runs_out_on_the_way_and_swap()
{
    let Some(lab) = Lab::that_runs() else { return };
    // This is a small version of the third test of 2002: twice the memory in page order.
    let params = "smooth-sin --as-written -p pages=48M -p refs=60000";
    let done = one(&lab, &params.split(' ').collect::<Vec<_>>());
    assert!(
        done.value("fill")["absent"].is_string(),
        "nothing is filled before"
    );
    let halfway = done.series("pages-1");
    let touched = halfway["uses"].iter().filter(|uses| **uses > 0.0).count();
    let present = sum(&halfway["present"]);
    // Half of the references have touched less than the size of memory, so all touched pages are still in memory.
    assert!((4000..6000).contains(&touched), "{touched}");
    same(present, touched as f64);
    let end = done.series("pages-2");
    let touched = end["uses"].iter().filter(|uses| **uses > 0.0).count();
    let present = sum(&end["present"]);
    assert!(touched > 12_000, "{touched}");
    assert!(present < 0.6 * touched as f64, "{present} of {touched}");
    // Full pages of data were written, so they reach the device.
    let swapped = done.vmstat("pswpout");
    assert!(swapped > 6000, "{swapped}");
    // With `access=read`, a first read maps the zero page, as in the original.
    let params = "random --as-written -p access=read -p pages=30M -p refs=9000";
    let done = one(&lab, &params.split(' ').collect::<Vec<_>>());
    assert_eq!(done.count("references"), 9000);
    assert_eq!(done.count("major-faults"), 0);
}

#[test]
#[ignore = "test-all"]
fn requested_huge_pages_are_used_and_swapped_as_a_whole() {
    let Some(lab) = Lab::that_runs() else { return };
    let usemem = |more: &str| {
        let all = format!("usemem -p processes=2 -p size=16M -p passes=1 {more}");
        one(&lab, &all.split_whitespace().collect::<Vec<_>>())
    };
    let faults = |done: &Done| sum(&done.column("usage", "minor-faults"));
    let small = usemem("");
    assert_eq!(small.param("page-size"), "small");
    assert_eq!(small.vmstat("thp_fault_alloc"), 0);
    assert_eq!(small.vmstat("thp_swpout"), 0);
    assert!(faults(&small) >= 8192.0);
    let huge = usemem("-p page-size=huge");
    assert!(huge.vmstat("thp_fault_alloc") >= 4);
    assert!(huge.vmstat("thp_swpout") > 0);
    assert!(faults(&huge) < faults(&small) * 0.8);
    // Sizes in between are set by settings; without madvise they must be enabled for all memory.
    let middle = "-p page-size=huge --set thp/hugepages-64kB/enabled=madvise --set thp/hugepages-2048kB/enabled=never";
    let default = "-p page-size=default --set thp/hugepages-64kB/enabled=always --set thp/hugepages-2048kB/enabled=never";
    for more in [middle, default] {
        let done = usemem(more);
        assert_eq!(done.vmstat("thp_fault_alloc"), 0, "{more}");
        assert!(faults(&done) < faults(&small) * 0.5, "{more}");
    }
}

#[test]
#[ignore = "test-all"]
fn a_mapped_file_is_read_written_and_both_with_presence_age_and_uses() {
    let Some(lab) = Lab::that_runs() else { return };
    let params = "random -p mapping=file -p pages=30M -p refs=9000 -p access=read -p access=write -p access=mixed";
    let all = run(&lab, &params.split(' ').collect::<Vec<_>>());
    assert_eq!(all.len(), 3);
    let string = references(&lab, "random", "7680", "9000");
    let mut written = BTreeMap::new();
    for done in &all {
        check_references(done, &string, "pages-2");
        // Single pages of the harness may be swapped, but none of the 7,680 pages of the file.
        let swapped = done.count("swapped-out");
        assert!(swapped <= 1, "a file goes back to its disk: {swapped}");
        // A fault also reads surrounding pages.
        let major = done.count("major-faults");
        assert!(major > 50, "{}: {major}", done.name());
        let why = done.value("compressed")["absent"].as_str();
        assert!(why.is_some() || swapped > 0, "nothing of a file is in zram");
        written.insert(done.param("access").to_owned(), done.vmstat("nr_dirtied"));
    }
    // Filling the file dirties every page once; written references dirty pages again.
    assert!(written["mixed"] > written["read"] + 1000, "{written:?}");
    assert!(written["write"] > written["mixed"], "{written:?}");
}

#[test]
#[ignore = "test-all"]
fn fault_reaches_its_floors_and_touches_again_what_is_absent() {
    let Some(lab) = Lab::that_runs() else { return };
    let done = one(&lab, &["fault"]);
    let passes = done.series("passes");
    assert_eq!(passes["pass"].len(), 4 * 3);
    for (floor, name) in ["fast", "low", "min", "zero"].into_iter().enumerate() {
        let pages = done.metric(&format!("pages-{name}"));
        let mut absent = pages;
        for pass in 0..3 {
            let row = floor * 3 + pass;
            same(passes["referenced"][row], absent);
            let present = done.column(&format!("pages-{name}-{pass}"), "present");
            same(present.len() as f64, pages);
            same(sum(&present), passes["present"][row]);
            absent = pages - sum(&present);
        }
        let later = passes["referenced"][floor * 3 + 1] + passes["referenced"][floor * 3 + 2];
        same(done.metric(&format!("absent-{name}")), later);
    }
    assert_eq!(
        done.count("absent-fast"),
        0,
        "nothing is reclaimed above the watermarks"
    );
    assert!(
        done.count("absent-zero") > 100,
        "what does not fit is reclaimed"
    );
    let lower = [
        "pages-fast",
        "pages-low",
        "pages-min",
        "pages-zero",
        "absent-low",
    ]
    .map(|name| done.count(name));
    assert!(lower.is_sorted_by(|a, b| a < b) || lower[..4].is_sorted_by(|a, b| a < b));
    assert!(lower[4] > 0, "kswapd works between high and low: {lower:?}");
    assert!(done.vmstat("pgscan_kswapd") > 0 && done.vmstat("allocstall_movable") > 0);
}

#[test]
#[ignore = "test-all"]
fn alloc_times_every_page_and_a_fast_floor_reclaims_nothing() {
    let Some(lab) = Lab::that_runs() else { return };
    let done = one(&lab, &["alloc"]);
    let passes = done.series("passes");
    assert_eq!(passes["pages"].len(), 4 * 2);
    same(done.metric("allocated"), sum(&passes["pages"]));
    for (floor, name) in ["fast", "low", "min", "zero"].into_iter().enumerate() {
        let pages = sum(&passes["pages"][floor * 2..floor * 2 + 2]);
        same(done.metric(&format!("pages-{name}")), pages);
        let log = done.log(&format!("alloc-log-{name}"));
        same(log.len() as f64, pages);
        same(done.histogram_count(&format!("alloc-{name}")) as f64, pages);
    }
    assert!(done.vmstat("pgscan_kswapd") > 0 && done.vmstat("allocstall_movable") > 0);
    for done in run(&lab, &["fault", "alloc", "-p", "floor=fast"]) {
        assert_eq!(done.count("reclaimed"), 0, "{}", done.name());
        assert_eq!(done.vmstat("pgscan_kswapd"), 0, "{}", done.name());
    }
}

#[test]
fn highalloc_makes_its_attempts_and_the_kernel_compacts() {
    let Some(lab) = Lab::that_runs() else { return };
    highalloc_makes_its_attempts(&lab, &["-p by=thp"]);
}

#[test]
#[ignore = "test-all"]
fn highalloc_makes_its_attempts_in_every_way() {
    let Some(lab) = Lab::that_runs() else { return };
    let ways = "-p by=collapse -p by=hugetlb -p by=packet";
    highalloc_makes_its_attempts(&lab, &[ways, "-p by=thp -p block=64K"]);
}

/// Runs `highalloc` with each of these parameters and checks what every trial must have.
fn highalloc_makes_its_attempts(lab: &Lab, params: &[&str]) {
    let common = "highalloc -p age=500ms -p rest=100ms -p rate=64M -p share=0.5";
    let all = params.iter().flat_map(|more| {
        let all = format!("{common} {more}");
        run(lab, &all.split(' ').collect::<Vec<_>>())
    });
    let all: Vec<Done<'_>> = all.collect();
    let asked: usize = params.iter().map(|more| more.matches("by=").count()).sum();
    assert_eq!(all.len(), asked);
    for done in &all {
        let name = done.name();
        let each = if done.param("block") == "2M" { 6 } else { 192 };
        assert_eq!(done.count("attempts"), 3 * each, "{name}");
        let attempts = done.series("attempts");
        assert_eq!(attempts["pass"].len() as u64, 3 * each);
        let got = |pass: f64| {
            let rows = attempts["pass"].iter().zip(&attempts["success"]);
            rows.filter(|row| *row.0 == pass)
                .map(|row| row.1)
                .sum::<f64>()
        };
        for (pass, number) in [("1", 0.0), ("2", 1.0), ("rest", 2.0)] {
            let share = got(number) / each as f64;
            same(done.metric(&format!("success-{pass}")), share);
            let percent = (100.0 * share + 1e-9).floor();
            same(done.metric(&format!("percent-{pass}")), percent);
            let unusable = done.metric(&format!("unusable-{pass}"));
            assert!((0.0..=1.0).contains(&unusable), "{unusable}");
        }
        same(done.metric("attempt-time"), sum(&attempts["latency"]));
        assert!(
            got(0.0) + got(1.0) + got(2.0) > 0.0,
            "{name}: no block at all"
        );
        assert!(
            done.vmstat("compact_stall") + done.vmstat("compact_daemon_wake") > 0,
            "{name}"
        );
        assert!(done.vmstat("compact_migrate_scanned") > 0, "{name}");
        assert!(done.count("load-steps") > 10, "{name}");
        if matches!(done.param("by"), "thp" | "collapse") {
            let defrag = done.record["results"]["settings"]["thp/defrag"].as_str();
            assert!(defrag.unwrap().contains("[madvise]"), "{defrag:?}");
        }
    }
}

#[test]
#[ignore = "test-all"]
fn highalloc_holds_every_block_it_got_under_a_load_that_swaps_and_writes_files() {
    let Some(lab) = Lab::that_runs() else { return };
    // Blocks and load together exceed memory, and blocks of this size can be reclaimed: without mlock, one block of
    // twenty was gone by the end of its pass.
    let arguments =
        "highalloc -p block=16K -p share=0.6 -p load=17M -p age=200ms -p rest=100ms -p rate=64M";
    let done = one(&lab, &arguments.split_whitespace().collect::<Vec<_>>());
    let got = sum(&done.column("attempts", "success"));
    assert!(got > 3.0 * 800.0, "{got}");
    assert!(
        done.vmstat("pswpout") > 1000,
        "{}: the load was not under pressure",
        done.vmstat("pswpout")
    );
    same(done.metric("held"), 1.0);
    // Every step of the load leaves an object of 128 KiB behind, and most of the written data has reached the disk.
    let (units, written) = (done.count("load-steps"), done.count("load-written"));
    assert!(units > 10, "{units}");
    let objects = written - 3 * MIB;
    assert_eq!(objects, units * (128 << 10));
    let pages = written / 4096;
    assert!(done.vmstat("nr_dirtied") >= pages);
    // vmstat also counts pages that go to swap as written.
    let files = done.vmstat("nr_written") - done.vmstat("pswpout");
    assert!(files > pages / 2, "{files} of {pages}");
}

#[test]
fn swapbench_writes_and_reads_its_share_and_zeros_as_written_reach_no_device() {
    let Some(lab) = Lab::that_runs() else { return };
    let params = "swapbench -p locked=4M -p processes=6 -p size=6M";
    let params: Vec<&str> = params.split(' ').collect();
    let done = one(&lab, &[&params[..], &["-p", "passes=2"]].concat());
    assert_eq!(done.count("pages-written"), 6 * 1536 * 2);
    assert_eq!(done.count("pages-read"), 6 * 1536 * 2);
    let rows = done.series("processes");
    assert_eq!(rows["time"].len(), 6 * 2 * 2);
    let reads: Vec<f64> = rows["time"]
        .iter()
        .zip(&rows["is-read"])
        .filter(|row| *row.1 == 1.0)
        .map(|row| *row.0)
        .collect();
    same(done.metric("read-mean"), sum(&reads) / reads.len() as f64);
    let faults = done.series("usage");
    same(done.metric("major-faults"), sum(&faults["major-faults"]));
    assert!(sum(&faults["minor-faults"]) >= f64::from(6 * 1536));
    assert!(done.count("major-faults") > 1000);
    // Almost all reclaimed memory is written to the device, except pages that were read back and not changed since.
    near(done.metric("swapped-out"), done.metric("reclaimed"), 0.02);
    near(done.metric("compressed"), 0.35, 0.1);

    let written = one(&lab, &[&params[..], &["--as-written"]].concat());
    assert_eq!(written.count("pages-written"), 6 * 1536);
    assert!(written.count("reclaimed") > 5000);
    // The remaining pages belong to the processes themselves.
    assert!(written.count("swapped-out") < written.count("reclaimed") / 50);
}

#[test]
fn copies_are_byte_identical_hurt_the_victim_and_missing_methods_are_told() {
    let Some(lab) = Lab::that_runs() else { return };
    copies(&lab, "rw-cp,direct-cp,mm-sync-cp,dontcache-cp", 3);
}

#[test]
#[ignore = "test-all"]
fn every_method_copies_and_what_is_missing_is_told_in_every_form() {
    let Some(lab) = Lab::that_runs() else { return };
    copies(&lab, "all", 13);
    let compared = "filecopy -p methods=rw-cp,dontcache-cp -p size=14M -p victim=0 --vs vm.swappiness=10 --exit-zero";
    run(&lab, &compared.split(' ').collect::<Vec<_>>());
    for format in ["table", "mail", "markdown", "json"] {
        let sides = ["base", "swappiness=10"];
        let (out, _) = lab.ends(
            0,
            [
                &["compare"],
                &sides[..],
                &["--all", "--exit-zero", "--as", format],
            ]
            .concat(),
        );
        assert!(out.contains("not on this kernel"), "{format}: {out}");
    }
}

/// Copies by these methods, `there` of which the kernel has.
fn copies(lab: &Lab, methods: &str, there: usize) {
    let params = format!("filecopy -p methods={methods} -p size=16M -p victim=9M");
    let done = one(lab, &params.split(' ').collect::<Vec<_>>());
    // 6.12 lacks RWF_DONTCACHE, which was added in 6.14, and has all other methods.
    let absent: Vec<&str> = done.record["results"]["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|metric| metric["value"]["absent"] == "not on this kernel")
        .map(|metric| metric["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        absent,
        ["time-dontcache-cp", "victim-refaults-dontcache-cp"]
    );
    let warnings = done.record["results"]["warnings"].to_string();
    assert!(warnings.contains("RWF_DONTCACHE"), "{warnings}");
    let bytes = there as u64 * 16 * MIB;
    assert_eq!(done.count("copied"), bytes);
    assert_eq!(done.count("compared"), bytes);
    let copies = done.series("copies");
    assert_eq!(copies["method"].len(), there);
    same(done.metric("copy-time"), sum(&copies["time"]));
    same(
        done.metric("victim-accesses"),
        sum(&copies["victim-accesses"]),
    );
    let refaults = |name: &str| done.count(&format!("victim-refaults-{name}"));
    assert!(refaults("rw-cp") > 0, "a copy pushes out the warm set");
    assert!(
        refaults("direct-cp") < refaults("rw-cp"),
        "a copy past the cache does not"
    );
}

#[test]
#[ignore = "test-all"]
fn usemem_writes_what_it_says_and_gives_it_back() {
    let Some(lab) = Lab::that_runs() else { return };
    let done = one(&lab, &["usemem", "-p", "processes=3", "-p", "size=12M"]);
    assert_eq!(done.count("pages-written"), 3 * 3072 * 2);
    let processes = done.series("processes");
    assert_eq!(processes["throughput"].len(), 3);
    let bytes = f64::from(3072 * 2 * 4096);
    for (throughput, time) in processes["throughput"].iter().zip(&processes["write"]) {
        near(*throughput, bytes / (time / 1e9), 1e-6);
    }
    same(done.metric("free"), sum(&processes["free"]));
    assert!(done.metric("free") > 0.0);
    let major = done.count("major-faults");
    assert!(major > 1000 && done.count("swapped-in") >= major);
    near(done.metric("compressed"), 0.35, 0.1);
}

#[test]
#[ignore = "test-all"]
fn kv_makes_its_operations_and_snapshots_every_page_while_writes_copy() {
    let Some(lab) = Lab::that_runs() else { return };
    let done = one(&lab, &["kv", "-p", "size=23M", "-p", "operations=12000"]);
    assert_eq!(done.count("operations"), 12_000);
    assert_eq!(done.histogram_count("operation"), 12_000);
    assert_eq!(done.log("access-log").len(), 12_000);
    assert_eq!(done.count("snapshot-pages"), 23 * 256);
    let during = done.count("snapshot-operations");
    assert!(during > 0 && during <= 9000 + 256, "{during}");
    assert_eq!(done.histogram_count("operation-during-snapshot"), during);
    let copies = done.count("copies");
    assert!(copies > 50, "{copies}");
    assert!(done.count("swapped-out") > 1000 && done.metric("fork") > 0.0);
    near(done.metric("compressed"), 0.35, 0.1);
}

#[test]
#[ignore = "test-all"]
fn pages_compress_on_zram_to_what_was_asked_for() {
    let Some(lab) = Lab::that_runs() else { return };
    let params = "linear -p pages=27M -p refs=500 -p content=0.1 -p content=0.5 -p content=0.65";
    let all = run(&lab, &params.split(' ').collect::<Vec<_>>());
    assert_eq!(all.len(), 3);
    for done in &all {
        near(
            done.metric("compressed"),
            done.param("content").parse().unwrap(),
            0.1,
        );
    }
}

/// For the memory of each program: the compressed size of 1,000 pages with lz4, lzo-rle and zstd, in pages, and the
/// number of pages among them that are all zeros (`docs/notes/contents.md`). Compressed data is not in the list,
/// because zram saves no memory with it.
const CONTENTS: [(&str, [f64; 3], f64); 6] = [
    ("redis", [395.0, 378.0, 253.0], 13.0),
    ("python", [304.0, 272.0, 158.0], 4.0),
    ("java", [389.0, 373.0, 249.0], 29.0),
    ("node", [285.0, 265.0, 163.0], 7.0),
    ("compiler", [319.0, 294.0, 200.0], 45.0),
    ("text", [568.0, 559.0, 401.0], 0.0),
];

/// Asserts that a scenario's pages with these contents compress in zram as well as the pages of the real programs.
fn compress_as_real(
    lab: &Lab,
    kernel: &str,
    compressor: usize,
    contents: &[(&str, [f64; 3], f64)],
) {
    let swap = ["zram:lz4", "zram:lzo-rle", "zram:zstd"][compressor];
    let names: Vec<String> = contents
        .iter()
        .map(|(name, ..)| format!("content={name}"))
        .collect();
    let mut words = vec![
        "linear",
        "-p",
        "pages=27M",
        "-p",
        "refs=500",
        "--swap",
        swap,
    ];
    for name in &names {
        words.extend(["-p", name.as_str()]);
    }
    let all = run_on(lab, kernel, &words);
    assert_eq!(all.len(), contents.len());
    for done in &all {
        let (_, sizes, zeros) = contents
            .iter()
            .find(|(name, ..)| *name == done.param("content"))
            .unwrap();
        // Since Linux 6.12, pages that are all zeros are not written to the swap device.
        let left = if done.vmstat("swpout_zero") > 0 {
            1000.0 - zeros
        } else {
            1000.0
        };
        let (found, wanted) = (done.metric("compressed"), sizes[compressor] / left);
        println!(
            "{kernel} {swap} {}: {found:.3}, {wanted:.3} of real pages",
            done.param("content")
        );
        near(found, wanted, 0.1);
    }
}

#[test]
fn pages_like_those_of_redis_compress_in_zram_as_they_do() {
    let Some(lab) = Lab::that_runs() else { return };
    compress_as_real(&lab, KERNEL, 0, &CONTENTS[..1]);
}

#[test]
#[ignore = "test-all"]
fn writes_leave_pages_of_a_mixture_as_compressible_as_they_are_and_repeat_exactly() {
    let Some(lab) = Lab::that_runs() else { return };
    let again = [
        "kv",
        "-p",
        "size=23M",
        "-p",
        "operations=3000",
        "-p",
        "reads=0.5",
        "-p",
        "content=redis",
    ];
    let first = one(&lab, &again);
    // Half of the operations write a whole page. The page's compressibility does not change.
    near(first.metric("compressed"), 0.395 / 0.987, 0.1);
    let other = Lab::new();
    let second = one(&other, &again);
    let digest = |done: &Done<'_>| done.record["digest"].as_str().unwrap().to_owned();
    assert_eq!(digest(&first), digest(&second));
}

#[test]
#[ignore = "test-all"]
fn pages_of_all_contents_compress_in_zram_as_those_of_their_programs() {
    let Some(lab) = Lab::that_runs() else { return };
    for compressor in [0, 2] {
        compress_as_real(&lab, KERNEL, compressor, &CONTENTS);
    }
    // Debian's kernels after bookworm have no LZO for zram.
    for compressor in 0..3 {
        compress_as_real(&lab, "debian:bookworm", compressor, &CONTENTS);
    }
}
