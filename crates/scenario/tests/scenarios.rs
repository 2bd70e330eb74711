//! Runs scenarios as real processes with small sizes, and under a memory limit if memory pressure is needed.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod arena;

use std::collections::BTreeSet;

use arena::{Pressure, Run, run};
use pagetide_quantity::{ColumnData, Series, multiples};
use pagetide_record::{Invalid, Warning};

fn ints<'a>(series: &'a Series, column: &str) -> &'a [i64] {
    match series.column(column) {
        Some(ColumnData::Int(values)) => values,
        other => panic!("{column} of {} is {other:?}", series.name),
    }
}

fn without_pressure(arguments: &[&str]) -> Run {
    let run = run(None, arguments).unwrap();
    assert_eq!(run.outcome.invalid, [], "{arguments:?}");
    run
}

#[test]
fn a_pattern_makes_exactly_its_references_and_logs_each() {
    let run = without_pressure(&["smooth-sin", "pages=700", "refs=20000", "snapshots=2"]);
    let expected = pagetide_reference::Pattern::SmoothSin { as_written: false };
    let counts = expected.counts(700, 20_000, 1).unwrap();
    let log = run.blob("access-log");
    let mut found = vec![0; 700];
    for entry in log.as_chunks::<8>().0 {
        let page = u64::from_le_bytes(*entry) >> pagetide_scenario::touch::LATENCY_BITS;
        found[usize::try_from(page).unwrap()] += 1;
    }
    assert_eq!(found, counts);
    let pages = run.series("pages-2");
    let uses: Vec<i64> = counts.iter().map(|count| i64::from(*count)).collect();
    assert_eq!(ints(&pages, "uses"), uses);
    assert!(ints(&pages, "present").iter().all(|present| *present == 1));
    assert!(run.metric("harness") <= 4.0 * 1024.0 * 1024.0);
    assert_eq!(run.outcome.histograms["access"].count, 20_000);
}

#[test]
fn the_as_written_sine_keeps_its_overshoot() {
    let run = without_pressure(&["smooth-sin", "--as-written", "pages=1000", "refs=77000"]);
    assert!((run.metric("references") - 77_062.0).abs() < 0.5);
}

#[test]
fn references_come_from_a_file_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.txt");
    std::fs::write(&path, "4\n0\n2\n2\n").unwrap();
    let run = without_pressure(&[&format!("file:{}", path.display())]);
    let pages: Vec<u64> = run
        .blob("access-log")
        .as_chunks::<8>()
        .0
        .iter()
        .map(|entry| u64::from_le_bytes(*entry) >> 36)
        .collect();
    assert_eq!(pages, [4, 0, 2, 2]);
}

#[test]
fn a_file_mapping_is_made_touched_and_seen() {
    let run = without_pressure(&[
        "random",
        "mapping=file",
        "access=mixed",
        "pages=300",
        "refs=2000",
    ]);
    assert!((run.metric("references") - 2000.0).abs() < 0.5);
}

#[test]
fn bad_parameters_are_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.txt");
    std::fs::write(&path, "4\n0\nmany\n").unwrap();
    let file = format!("file:{}", path.display());
    for (arguments, word) in [
        (vec!["linear", "pages=0"], "pages"),
        (vec!["linear", "pages=-5M"], "negative"),
        (vec!["linear", "refs=0"], "refs"),
        (vec!["linear", "pages=2.0.0"], "2.0.0"),
        (vec!["linear", "offset=3"], "spread"),
        (vec!["linear", "content=0"], "content"),
        (vec!["linear", "content=pyton"], "did you mean python?"),
        (vec!["linear", "content=zeros:2"], "from 0 to 1"),
        (vec!["linear", "pages=100G"], "swap"),
        (
            vec!["contswap", "mapping=64K", "reclaimers=17"],
            "less than a page",
        ),
        (vec!["swapbench", "locked=63M"], "lock"),
        (vec!["filecopy", "methods=rw-pc"], "rw-cp"),
        (vec!["usemem", "order=sideways"], "ascending"),
        (vec![file.as_str()], "line 3"),
        (vec![file.as_str(), "pages=3", "refs=4"], "line 1"),
        (vec!["kontswap"], "contswap"),
        (vec!["usemem", "--as-written"], "as written"),
    ] {
        let error = run(None, &arguments).unwrap_err();
        assert!(error.contains(word), "{arguments:?}: {error}");
    }
}

#[test]
fn all_copies_are_byte_identical_and_missing_methods_are_said_to_be_missing() {
    let run = without_pressure(&[
        "filecopy",
        "methods=all",
        "size=3M",
        "victim=256K",
        "forget=own",
        "pause=100us",
    ]);
    let missing = run
        .outcome
        .warnings
        .iter()
        .filter(|warning| matches!(warning, Warning::NotOnThisKernel { .. }))
        .count();
    let copied = 14.0 - missing as f64;
    assert!(copied >= 8.0, "{:?}", run.outcome.warnings);
    assert!((run.metric("compared") - copied * 3.0 * 1024.0 * 1024.0).abs() < 0.5);
    let absent = run.outcome.metrics.iter().filter(|metric| {
        metric.name.starts_with("time-")
            && metric.value == pagetide_quantity::Value::Absent("not on this kernel".to_owned())
    });
    assert_eq!(absent.count(), missing);
}

#[test]
#[ignore = "test-all"]
fn two_hundred_runs_with_128_reclaimers_all_end() {
    for seed in 0..200 {
        let seed = seed.to_string();
        let run = without_pressure(&[
            "contswap",
            "mapping=1M",
            "reclaimers=128",
            "hold=1ms",
            "--seed",
            &seed,
        ]);
        assert!((run.metric("pages-touched") - 512.0).abs() < 0.5);
    }
}

#[test]
fn processes_of_swapbench_and_usemem_do_exactly_their_share() {
    let run = without_pressure(&[
        "swapbench",
        "locked=1M",
        "processes=7",
        "size=1M",
        "passes=2",
        "order=random",
    ]);
    assert!((run.metric("pages-written") - 7.0 * 256.0 * 2.0).abs() < 0.5);
    assert_eq!(run.series("processes").rows(), 7 * 2 * 2);
    assert_eq!(run.series("usage").rows(), 7);
    let run = without_pressure(&["usemem", "processes=3", "size=2M", "passes=3"]);
    assert!((run.metric("pages-written") - 3.0 * 512.0 * 3.0).abs() < 0.5);
}

#[test]
fn every_floor_writes_every_page_once() {
    let run = without_pressure(&["fault", "--memory", "4M", "passes=2"]);
    assert_eq!(run.series("passes").rows(), 8);
    let run = without_pressure(&["alloc", "--memory", "4M", "floor=zero", "passes=3"]);
    assert!((run.metric("allocated") - 3.0 * 1024.0).abs() < 0.5);
    let names: BTreeSet<_> = run
        .outcome
        .metrics
        .iter()
        .map(|metric| metric.name.as_str())
        .collect();
    assert!(
        !names.contains("pages-fast"),
        "floors that were not asked for are left out"
    );
}

#[test]
fn a_store_makes_its_operations_and_its_snapshot_holds_every_page() {
    let run = without_pressure(&["kv", "size=4M", "operations=20000"]);
    assert!((run.metric("operations") - 20_000.0).abs() < 0.5);
    assert!((run.metric("snapshot-pages") - 1024.0).abs() < 0.5);
    let run = without_pressure(&["kv", "size=1M", "operations=500", "snapshot=false"]);
    let absent = run
        .outcome
        .metrics
        .iter()
        .find(|metric| metric.name == "fork")
        .unwrap();
    assert_eq!(absent.value.number(), None);
}

#[test]
fn three_passes_of_blocks_are_asked_for_and_each_attempt_is_recorded() {
    let arguments = [
        "age=50ms",
        "rest=1ms",
        "rate=2G",
        "share=0.25",
        "load=2M",
        "pause=1ms",
        "--memory",
        "16M",
    ];
    let run = without_pressure(&[&["highalloc"], &arguments[..]].concat());
    if run
        .outcome
        .warnings
        .iter()
        .any(|warning| matches!(warning, Warning::NotOnThisKernel { .. }))
    {
        pagetide_testing::skip(
            pagetide_testing::Need::HugePages,
            "no transparent huge pages here",
        );
        return;
    }
    let attempts = run.series("attempts");
    assert_eq!(attempts.rows(), 3 * 2);
    let got = ints(&attempts, "success").iter().sum::<i64>();
    assert!((run.metric("success") * 6.0 - got as f64).abs() < 1e-9);
    assert!(run.series("fragmentation-before-rest").rows() > 10);
    assert!(run.metric("load-steps") > 0.0 && run.metric("load-written") > 0.0);
}

#[test]
fn root_under_pressure_contswap_swaps_and_its_original_does_not() {
    let Some(pressure) = Pressure::new(16) else {
        return;
    };
    let arguments = ["contswap", "--memory", "15M", "reclaimers=16", "hold=20ms"];
    let repaired = run(Some(&pressure), &arguments).unwrap();
    assert_eq!(repaired.outcome.invalid, []);
    assert!(repaired.metric("swapped") > 100.0);
    assert!(repaired.metric("swap-in-major-faults") > 0.0);
    let contiguity = repaired.metric("contiguity");
    assert!(contiguity > 0.0 && contiguity < 1.0, "{contiguity}");
    let offsets = repaired.series("swap-offsets");
    let swapped = ints(&offsets, "offset")
        .iter()
        .filter(|offset| **offset >= 0)
        .count();
    assert!((repaired.metric("swapped") - swapped as f64).abs() < 0.5);

    let written = run(
        Some(&pressure),
        &[&arguments[..], &["--as-written"]].concat(),
    )
    .unwrap();
    assert!(
        written.metric("swapped") < 0.5,
        "reads map the shared zero page"
    );
}

#[test]
fn root_under_pressure_patterns_fault_and_so_does_the_original_whose_references_fill_them() {
    let Some(pressure) = Pressure::new(16) else {
        return;
    };
    let repaired = run(
        Some(&pressure),
        &["smooth-sin-random", "--memory", "14M", "refs=20000"],
    )
    .unwrap();
    assert!(repaired.metric("major-faults") > 1000.0);
    let present = repaired.metric("present");
    assert!(present > 0.1 && present < 0.9, "{present}");
    let written = run(
        Some(&pressure),
        &[
            "smooth-sin-random",
            "--memory",
            "14M",
            "refs=20000",
            "--as-written",
        ],
    )
    .unwrap();
    // The references write whole pages of data, including first touches.
    assert!(written.metric("major-faults") > 1000.0);
}

#[test]
fn root_a_victim_refaults_during_a_copy_larger_than_its_memory() {
    let Some(pressure) = Pressure::new(16) else {
        return;
    };
    let run = run(
        Some(&pressure),
        &[
            "filecopy",
            "--memory",
            "15M",
            "methods=mm-sync-cp",
            "size=40M",
            "forget=own",
        ],
    )
    .unwrap();
    assert_eq!(run.outcome.invalid, []);
    assert!(run.metric("victim-refaults") > 10.0);
}

#[test]
fn root_a_process_killed_for_lack_of_memory_invalidates_the_trial() {
    let Some(pressure) = Pressure::without_swap(12) else {
        return;
    };
    let run = run(
        Some(&pressure),
        &["usemem", "--memory", "40M", "processes=2", "size=20M"],
    );
    // The kernel may also kill the parent. Then there is no outcome.
    if let Ok(run) = run {
        assert!(
            run.outcome
                .invalid
                .iter()
                .any(|invalid| matches!(invalid, Invalid::OutOfMemory { .. })),
            "{:?}",
            run.outcome.invalid
        );
    }
}

#[test]
fn metrics_that_are_multiples_of_others_are_declared_beside_them_and_are_so_when_they_are_measured()
{
    for (multiple, of) in multiples() {
        let declared = pagetide_scenario::list().iter().any(|scenario| {
            let find = |name: &str| scenario.metrics.iter().find(|metric| metric.name == name);
            let both = find(multiple).zip(find(of));
            both.is_some_and(|(multiple, of)| multiple.direction == of.direction)
        });
        assert!(declared, "{multiple} of {of}");
    }
    let run = without_pressure(&["linear", "pages=500", "refs=2000"]);
    let found = run.metric("access-time") / run.metric("access-mean");
    assert!((found / 2000.0 - 1.0).abs() < 1e-6, "{found}");
}
