//! Tests that imported results become records, and that invalid input is refused with its position.

use std::fs;
use std::io::Write;
use std::path::Path;

use pagetide_quantity::{Unit, Value};
use pagetide_record::{ArenaKind, Record, RecordReader, RecordWriter};
use pagetide_report::import::{Claims, csv, mmtests};

/// Output of run-mmtests.sh for one test.
fn stamps(test: &str, elapsed: f64, swapped: u64) -> String {
    format!(
        "start :: 1700000000\ntest begin :: {test} 1700000010\nfile start :: /proc/vmstat\nnr_free_pages 1000\npswpin 100\npswpout 7\n\
         allocstall_normal 1\nfile start :: /proc/zoneinfo\nNode 0, zone DMA\n  pages free 1\nfile end :: /proc/vmstat\nnr_free_pages \
         900\npswpin {}\npswpout 9\nallocstall_normal 5\nfile end :: /proc/zoneinfo\ntest end :: {test} 1700000100\ntime :: {test} 12.50 \
         user 3.25 system {elapsed} elapsed\nfinish :: 1700000100\n",
        100 + swapped
    )
}

#[test]
fn mmtests_runs_become_records_that_can_be_stored() {
    let dir = tempfile::tempdir().unwrap();
    for (run, base) in [("6.1-vanilla", 90.0), ("6.12-patched", 80.0)] {
        for iteration in 0..2_u32 {
            let path = dir.path().join(format!("work/log/{run}/iter-{iteration}"));
            fs::create_dir_all(&path).unwrap();
            let text = stamps("stutter", base + f64::from(iteration), 500);
            if iteration == 0 {
                fs::write(path.join("tests-timestamp"), text).unwrap();
            } else {
                let file = fs::File::create(path.join("tests-timestamp.gz")).unwrap();
                let mut gz = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
                gz.write_all(text.as_bytes()).unwrap();
                gz.finish().unwrap();
            }
        }
    }
    let records = mmtests::import(dir.path()).unwrap().records;
    assert_eq!(records.len(), 4);
    let first = &records[0];
    assert_eq!(first.subject.scenario, "stutter");
    assert_eq!(first.subject.variant.name, "6.1-vanilla");
    assert_eq!(first.subject.seed, 0);
    assert_eq!(first.subject.arena.kind, ArenaKind::Host);
    assert_eq!(first.metric("elapsed").unwrap().value.number(), Some(90e9));
    assert_eq!(first.metric("system").unwrap().value.number(), Some(3.25e9));
    assert_eq!(
        first.metric("swap-ins").unwrap().value.number(),
        Some(500.0)
    );
    assert_eq!(
        first.metric("direct-reclaims").unwrap().value.number(),
        Some(4.0)
    );
    assert_eq!(first.subject.cell(), records[3].subject.cell());
    assert_eq!(records[3].subject.seed, 1);
    assert_eq!(
        records[3].metric("elapsed").unwrap().value.number(),
        Some(81e9)
    );

    let mut record = records[0].clone();
    let path = RecordWriter::create(dir.path())
        .unwrap()
        .finish(&mut record)
        .unwrap();
    let back = RecordReader::open(&path).unwrap();
    back.verify().unwrap();
    assert_eq!(back.record(), &record);

    // Importing the folder of a single run gives the same records.
    let one = mmtests::import(&dir.path().join("work/log/6.12-patched"))
        .unwrap()
        .records;
    assert_eq!(one.len(), 2);
}

#[test]
fn a_test_that_ended_with_an_error_is_invalid() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("iter-3");
    fs::create_dir_all(&path).unwrap();
    let text = format!("{}test exit :: stutter 2\n", stamps("stutter", 1.0, 0));
    fs::write(path.join("tests-timestamp"), text).unwrap();
    let records = mmtests::import(dir.path()).unwrap().records;
    assert!(!records[0].is_valid());
    assert_eq!(records[0].subject.seed, 3);
}

#[test]
fn a_folder_without_results_is_refused_with_what_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let error = mmtests::import(dir.path()).unwrap_err().to_string();
    assert!(error.contains("work/log"), "{error}");
    let error = mmtests::import(Path::new("/no/such/folder"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("/no/such/folder"), "{error}");
}

#[test]
fn noise_in_the_place_of_results_is_no_panic() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("iter-0");
    fs::create_dir_all(&path).unwrap();
    let mut noise: Vec<u8> = (0..100_000_u32)
        .map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()[3])
        .collect();
    noise.extend(b"\ntest begin :: x soon\ntime :: y a user b system c elapsed\ntime :: z NaN user 1 system inf elapsed\n");
    noise.extend(crate::data::hostile().as_bytes());
    fs::write(path.join("tests-timestamp"), &noise).unwrap();
    let records = mmtests::import(dir.path()).unwrap().records;
    assert!(
        records
            .iter()
            .all(|record| record.metric("elapsed").unwrap().value.number().is_none()),
        "what is no number is absent"
    );
    fs::write(path.join("timestamp.gz"), &noise).unwrap();
    let error = mmtests::import(dir.path()).unwrap_err().to_string();
    assert!(error.contains("timestamp.gz"), "{error}");
}

#[test]
fn exported_samples_come_back_as_they_were() {
    let mut second = crate::data::record();
    second.subject.seed = u64::MAX;
    second.subject.variant.name = "=mglru".to_owned();
    second
        .results
        .invalid
        .push(pagetide_record::Invalid::NoReclaim);
    let mut first = crate::data::record();
    first.results.metrics[0].value = Value::Absent("not on this kernel".to_owned());
    let mut silent = crate::data::record();
    silent.subject.seed = 77;
    silent.results.metrics.clear();
    silent
        .results
        .invalid
        .push(pagetide_record::Invalid::NoReclaim);
    let records = [first, second, silent];
    let mut bytes = Vec::new();
    pagetide_report::csv::samples(&mut bytes, &records).unwrap();
    let back = csv::read(Path::new("samples.csv"), bytes.as_slice(), None)
        .unwrap()
        .records;
    assert_eq!(back.len(), 3);
    assert!(back[2].results.metrics.is_empty());
    for (a, b) in records.iter().zip(&back) {
        assert_eq!(a.subject.scenario, b.subject.scenario);
        assert_eq!(a.subject.params, b.subject.params);
        assert_eq!(a.subject.memory, b.subject.memory);
        assert_eq!(a.subject.swap, b.subject.swap);
        assert_eq!(a.subject.seed, b.subject.seed);
        assert_eq!(a.subject.variant.name, b.subject.variant.name);
        assert_eq!(a.is_valid(), b.is_valid());
        let why = |record: &Record| record.results.invalid.first().map(ToString::to_string);
        assert_eq!(
            why(a).is_some_and(|a| why(b).unwrap().contains(&a)),
            !a.is_valid()
        );
        for metric in &a.results.metrics {
            let other = b.metric(&metric.name).unwrap();
            assert_eq!(metric.value, other.value);
            assert_eq!(
                (metric.unit, metric.direction),
                (other.unit, other.direction)
            );
        }
    }
}

#[test]
fn a_short_csv_is_enough() {
    let text = "metric,value,unit,variant,scenario\nread,1.5,ms,old,bench\nread,1.25,ms,old,bench\nread,1,ms,new,bench\n";
    let records = csv::read(Path::new("x.csv"), text.as_bytes(), None)
        .unwrap()
        .records;
    assert_eq!(records.len(), 3);
    assert_eq!(records[1].subject.seed, 2);
    let metric = records[1].metric("read").unwrap();
    assert_eq!(
        (metric.unit, metric.value.number()),
        (Unit::Nanos, Some(1_250_000.0))
    );
}

#[test]
fn bad_csv_is_refused_with_line_and_column() {
    let head = "scenario,variant,seed,metric,value,unit\n";
    for (text, wanted) in [
        ("scenario,variant,value\n".to_owned(), "no column `metric`"),
        (
            format!("{head}a,b,1,m,fast,ns\n"),
            "line 2: `fast` in column `value`",
        ),
        (
            format!("{head}a,b,1,m,1,ns\na,b,2,m,1,furlongs\n"),
            "line 3: `furlongs` in column `unit`",
        ),
        (
            format!("{head}a,b,1,m,1,ns\na,b,1,m,2,ns\n"),
            "line 3: metric m",
        ),
        (format!("{head}a,b,x,m,1,ns\n"), "column `seed`"),
        (format!("{head}a,b,1,m,inf,ns\n"), "column `value`"),
        // The values are finite in seconds, but not in nanoseconds, the unit in which they would be stored.
        (
            format!("{head}a,b,1,m,1e308,s\n"),
            "`1e308` in column `value`",
        ),
        (format!("{head}a,b,1,m,-1e22,s\n"), "column `value`"),
        (format!("{head}a,b,1,m\n"), "not readable as CSV"),
        (head.to_owned(), "no lines of results"),
    ] {
        let error = csv::read(Path::new("x.csv"), text.as_bytes(), None)
            .unwrap_err()
            .to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn imported_results_are_compared_by_the_same_rules() {
    let lines: Vec<String> = (0..12_u32)
        .map(|seed| {
            let noise = f64::from(seed * 7919 % 101) / 1000.0;
            let (old, new, scanned) = (10.0 + noise, 8.0 + noise, 1000 + seed);
            format!(
                "bench,old,{seed},read,{old},ms\nbench,new,{seed},read,{new},ms\n\
                 bench,old,{seed},scanned,{scanned},count\nbench,new,{seed},scanned,{scanned},count\n"
            )
        })
        .collect();
    let text = format!(
        "scenario,variant,seed,metric,value,unit\n{}",
        lines.concat()
    );
    let mut batch = csv::read(Path::new("x.csv"), text.as_bytes(), None).unwrap();
    let note = pagetide_report::import::note("theirs", 1, &mut batch, Claims::default()).unwrap();
    assert_eq!(note.variants, ["old", "new"]);
    assert_eq!((note.cells.len(), note.entries.len()), (1, 24));
    let dir = tempfile::tempdir().unwrap();
    let mut store = pagetide_store::Store::open(dir.path()).unwrap();
    for record in &mut batch.records {
        let writer = store.writer().unwrap();
        store.add(writer, record).unwrap();
    }
    store.note(&note).unwrap();
    for mut comparison in [
        pagetide_compare::compare_campaign(&store, Some("theirs")).unwrap(),
        pagetide_compare::compare_two(&store, "theirs:old", "theirs:new", false).unwrap(),
    ] {
        let row = &comparison.cells[0].metrics[0];
        assert_eq!(row.name, "read");
        let judgement = row.judgements[0].as_ref().unwrap();
        assert_eq!(judgement.verdict.to_string(), "improved", "{judgement:?}");
        let ratio = judgement.effect.unwrap().estimate;
        assert!((ratio - 0.8).abs() < 0.01, "{ratio}");
        let about = pagetide_report::About::default();
        let text_style = pagetide_report::TextStyle::plain(100);
        let options = pagetide_report::terminal::Options::default();
        comparison.explanations = pagetide_compare::explain::explain(&store, &comparison).unwrap();
        let shown = pagetide_report::terminal::verdicts(&comparison, &about, options, &text_style);
        assert!(shown.contains("improved"), "{shown}");
        // Memory, swap and causes are unknown, so they are not mentioned.
        assert!(shown.contains("imported results do not tell"), "{shown}");
        for unknown in ["total:0", "surely changed", "no sure difference"] {
            assert!(!shown.contains(unknown), "{shown}");
        }
        assert!(
            !shown.contains("one nanosecond"),
            "host times are real: {shown}"
        );
    }
}

#[test]
fn a_table_is_read_in_proportion_to_its_size_and_refused_beyond_its_limits() {
    let head = "scenario,variant,metric,value,seed\n";
    let read = |lines: &dyn Fn(usize) -> String, count: usize| {
        let lines: String = (0..count).map(lines).collect();
        csv::read(
            Path::new("x.csv"),
            format!("{head}{lines}").as_bytes(),
            None,
        )
    };
    // A search in all metrics of the record for each metric would take 10,000,000,000 steps.
    let batch = read(&|n| format!("a,b,m{n},1,1\n"), 100_000).unwrap();
    assert_eq!(batch.records[0].results.metrics.len(), 100_000);
    let mut batch = read(&|n| format!("s{n},b,m,1,1\n"), 20_000).unwrap();
    let note = pagetide_report::import::note("x", 1, &mut batch, Claims::default()).unwrap();
    assert_eq!(note.cells.len(), 20_000);
    let mut batch = read(&|n| format!("a,v{n},m,1,1\n"), 1_001).unwrap();
    let said = pagetide_report::import::note("x", 1, &mut batch, Claims::default());
    let said = said.unwrap_err().to_string();
    assert!(said.contains("more than 1000 variants"), "{said}");
}

#[test]
fn an_endless_table_is_read_to_its_limit() {
    let said = csv::import(Path::new("/dev/zero"), None).unwrap_err();
    assert!(said.to_string().contains("larger than 64 MiB"), "{said}");
}
