//! Tests of imports from other tools: real files are read, damaged files are refused in one sentence, and runs are
//! pairs unless a tool ran a variant several times in a row.

#![allow(clippy::float_cmp, reason = "values are those that the file has")]

use std::fs;
use std::path::{Path, PathBuf};

use pagetide_quantity::{Direction, Unit, Value};
use pagetide_record::Record;
use pagetide_report::import::format::{FORMATS, Format};
use pagetide_report::import::{Batch, Claims, ImportError, Source, note};

/// The real files, each with the name of its format. Results of LKP are folders and not among them.
pub const FILES: [(&str, &str); 9] = [
    ("hyperfine", "hyperfine-1.15.0.json"),
    ("fio", "fio-3.33.json"),
    ("stress-ng", "stress-ng-0.15.06.yaml"),
    ("perf", "perf-6.1.187.csv"),
    ("perf", "perf-6.1.187.json"),
    ("pgbench", "pgbench-15.20.txt"),
    ("pgbench", "pgbench-15.20-rate.txt"),
    ("ycsb", "ycsb-0.18.0.txt"),
    ("phoronix", "phoronix-10.8.6.xml"),
];

/// Path of a real file.
pub fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/imports")
        .join(file)
}

/// Reads paths as results of a format, without names of variants from the user.
pub fn read(format: &str, paths: &[&Path]) -> Result<Batch, ImportError> {
    let sources: Vec<Source> = paths
        .iter()
        .map(|path| Source {
            variant: None,
            path: path.to_path_buf(),
        })
        .collect();
    Format::named(format).unwrap().import(&sources, None)
}

/// Reads a text as a file of a format.
fn text(format: &str, text: &str) -> Result<Batch, ImportError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(if format == "lkp" {
        "matrix.json"
    } else {
        "file"
    });
    fs::write(&path, text).unwrap();
    read(format, &[&path])
}

fn number(record: &Record, metric: &str) -> f64 {
    let found = record.metric(metric);
    let found = found.unwrap_or_else(|| panic!("{metric}: {:?}", record.results.metrics));
    found.value.number().unwrap()
}

fn kind(record: &Record, metric: &str) -> (Unit, Direction, bool) {
    let metric = record.metric(metric).unwrap();
    (metric.unit, metric.direction, metric.primary)
}

#[track_caller]
fn near(found: f64, wanted: f64) {
    assert!(
        (found / wanted - 1.0).abs() < 1e-9,
        "{found} is not {wanted}"
    );
}

#[test]
fn the_format_of_every_real_file_is_told_from_its_content() {
    for (format, file) in FILES {
        assert_eq!(Format::of(&data(file)).unwrap().tool.name, format, "{file}");
    }
    assert_eq!(Format::of(&data("lkp")).unwrap().tool.name, "lkp");
    assert_eq!(Format::of(&data("lkp/old")).unwrap().tool.name, "lkp");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("any");
    for unknown in ["", "{}", "<a/>", "hello, world\n", "1,2,3\n"] {
        fs::write(&path, unknown).unwrap();
        let error = Format::of(&path).unwrap_err().to_string();
        assert!(error.contains("name the format"), "{unknown}: {error}");
    }
    let names: Vec<_> = FORMATS.iter().map(|format| format.tool.name).collect();
    assert!(names.is_sorted(), "{names:?}");
}

#[test]
fn commands_of_one_hyperfine_file_are_variants_and_of_several_files_workloads() {
    let file = data("hyperfine-1.15.0.json");
    let records = read("hyperfine", &[&file]).unwrap().records;
    assert_eq!(records.len(), 6);
    assert_eq!(records[0].subject.variant.name, "true");
    assert_eq!(records[5].subject.variant.name, "sleep 0.01");
    assert_eq!(records[0].subject.cell(), records[5].subject.cell());
    near(number(&records[5], "time"), 11_940_558.0);
    assert_eq!(
        kind(&records[5], "time"),
        (Unit::Nanos, Direction::Lower, true)
    );
    let dir = tempfile::tempdir().unwrap();
    let other = dir.path().join("other.json");
    fs::copy(&file, &other).unwrap();
    let records = read("hyperfine", &[&file, &other]).unwrap().records;
    assert_eq!(records.len(), 12);
    assert_eq!(records[0].subject.variant.name, "hyperfine-1.15.0");
    assert_eq!(records[6].subject.variant.name, "other");
    assert_eq!(records[0].subject.cell(), records[6].subject.cell());
    assert_ne!(records[0].subject.cell(), records[5].subject.cell());
    let failed = r#"{"results":[{"command":"false","times":[1.0,2.0],"exit_codes":[1,null]}]}"#;
    let records = text("hyperfine", failed).unwrap().records;
    assert!(records.iter().all(|record| !record.is_valid()));
}

#[test]
fn a_job_of_fio_has_rates_latencies_and_the_options_that_make_its_load() {
    let records = read("fio", &[&data("fio-3.33.json")]).unwrap().records;
    let [record] = &*records else {
        panic!("{}", records.len())
    };
    assert_eq!(record.subject.scenario, "fio read");
    assert_eq!(record.subject.params["rw"], "randread");
    assert!(!record.subject.params.contains_key("filename"));
    near(number(record, "read-iops"), 13_473.684_211);
    near(number(record, "read-bandwidth"), 55_188_210.0);
    near(number(record, "read-latency"), 70_123.523_438);
    near(number(record, "read-latency-p99"), 122_368.0);
    assert_eq!(
        kind(record, "read-iops"),
        (Unit::PerSecond, Direction::Higher, true)
    );
    assert_eq!(kind(record, "read-latency").1, Direction::Lower);
    assert!(record.metric("write-iops").is_none(), "nothing was written");
    assert_eq!(record.wall.started.0 / 1_000_000, 1_795_833_867_482 - 18);
}

#[test]
fn stress_ng_perf_pgbench_and_ycsb_keep_their_numbers_in_one_unit() {
    let records = read("stress-ng", &[&data("stress-ng-0.15.06.yaml")])
        .unwrap()
        .records;
    let record = &records[0];
    assert_eq!(record.subject.scenario, "stress-ng vm");
    assert_eq!(record.subject.variant.kernel.release, "6.18.44-fc-v669");
    near(number(record, "bogo-ops-per-second"), 75_304.807_327);
    near(number(record, "peak-memory"), 20_576.0 * 1024.0);
    near(number(record, "system"), 310_113_000.0);

    let csv = read("perf", &[&data("perf-6.1.187.csv")]).unwrap().records;
    let json = read("perf", &[&data("perf-6.1.187.json")]).unwrap().records;
    near(number(&csv[0], "task-clock"), 510_000.0);
    near(number(&json[0], "task-clock"), 515_636.0);
    near(number(&csv[0], "elapsed"), 1_240_131.0);
    near(number(&json[0], "page-faults"), 47.0);
    assert_eq!(csv[0].wall.started.0, 1_795_833_868_000_000_000);
    assert_eq!(kind(&csv[0], "elapsed"), kind(&json[0], "elapsed"));

    let one = fs::read_to_string(data("pgbench-15.20.txt")).unwrap();
    let records = text("pgbench", &one.repeat(2)).unwrap().records;
    assert_eq!(records.len(), 2, "two runs after one another");
    near(number(&records[1], "tps"), 824.691_256);
    near(number(&records[1], "latency"), 2_425_000.0);
    assert_eq!(records[0].subject.params["clients"], "2");
    let rate = read("pgbench", &[&data("pgbench-15.20-rate.txt")])
        .unwrap()
        .records;
    near(number(&rate[0], "late"), 3.0);
    let old = "transaction type: <builtin: TPC-B (sort of)>\ntps = 80.5 (including connections establishing)\ntps = 90.25 (excluding \
               connections establishing)\n";
    near(
        number(&text("pgbench", old).unwrap().records[0], "tps"),
        90.25,
    );

    let records = read("ycsb", &[&data("ycsb-0.18.0.txt")]).unwrap().records;
    let record = &records[0];
    near(number(record, "throughput"), 26_315.789_473_684_21);
    near(number(record, "read-latency-max"), 315_000.0);
    assert_eq!(number(record, "read-latency-p99"), 0.0);
    assert_eq!(record.subject.params["workload"], "workloada");
    let nan = "[OVERALL], Throughput(ops/sec), 5\n[READ], AverageLatency(us), NaN\n[READ], Return=ERROR, 3\n";
    let records = text("ycsb", nan).unwrap().records;
    let absent = &records[0].metric("read-latency").unwrap().value;
    assert!(matches!(absent, Value::Absent(_)), "{absent:?}");
    assert_eq!(kind(&records[0], "read-return-error").1, Direction::Lower);
}

#[test]
fn a_phoronix_result_has_its_systems_as_variants_and_every_repetition() {
    let batch = read("phoronix", &[&data("phoronix-10.8.6.xml")]).unwrap();
    let records = &batch.records;
    assert_eq!(
        records.len(),
        18,
        "three workloads, two systems, three repetitions"
    );
    assert_eq!(records[0].subject.variant.name, "one");
    assert_eq!(records[0].subject.params["description"], "Block Size: 4K");
    near(number(&records[0], "bandwidth"), 347e6);
    assert_eq!(kind(&records[0], "bandwidth").1, Direction::Higher);
    let count: Vec<_> = records
        .iter()
        .filter(|record| record.subject.scenario == "local/count-1.0.0")
        .collect();
    near(number(count[0], "time"), 625_580_873.0);
    assert_eq!(
        kind(count[0], "time"),
        (Unit::Nanos, Direction::Lower, true)
    );
    assert!(records.iter().all(|record| record.wall.started.0 > 0));
    assert_eq!(batch.paired_by, None);
}

#[test]
fn a_matrix_of_lkp_has_a_column_for_each_run_of_a_commit() {
    let batch = read("lkp", &[&data("lkp")]).unwrap();
    let records = &batch.records;
    assert_eq!(records.len(), 6);
    let old: Vec<_> = records
        .iter()
        .filter(|record| record.subject.variant.name == "a".repeat(40))
        .collect();
    assert_eq!(old[0].subject.scenario, "vm-scalability");
    assert_eq!(old[0].subject.params["params"], "300s-anon-w-rand");
    assert_eq!(old[0].subject.params["machine"], "lkp-box");
    near(number(old[1], "vm-scalability.throughput"), 1_010_000.0);
    assert!(kind(old[1], "vm-scalability.throughput").2);
    assert_eq!(
        number(old[2], "proc-vmstat.pgmajfault"),
        0.0,
        "a missing end is zeros"
    );
    assert!(old[1].is_valid() && !old[2].is_valid(), "an incomplete run");
    assert!(
        old[0]
            .metric("perf-profile.children.cycles-pp.do_user_addr_fault")
            .is_none()
    );

    // If the folder of one run is given, the statistics are read, but the series is not.
    let dir = tempfile::tempdir().unwrap();
    let commit = "c".repeat(40);
    let run = dir
        .path()
        .join(format!("result/aim7/p/box/root/config/gcc/{commit}/0"));
    fs::create_dir_all(&run).unwrap();
    fs::write(run.join("stats.json"), r#"{"aim7.jobs-per-min": 12.5}"#).unwrap();
    fs::write(
        run.join("matrix.json"),
        r#"{"aim7.jobs-per-min": [1, 2, 3]}"#,
    )
    .unwrap();
    let records = read("lkp", &[dir.path()]).unwrap().records;
    assert_eq!(
        (records.len(), &*records[0].subject.variant.name),
        (1, &*commit)
    );
    near(number(&records[0], "aim7.jobs-per-min"), 12.5);
}

#[test]
fn a_file_cut_at_any_line_is_refused_or_was_whole() {
    for (format, file) in FILES {
        let whole = fs::read_to_string(data(file)).unwrap();
        let count = |text: &str| self::text(format, text).map(|batch| batch.records.len());
        let all = count(&whole).unwrap();
        let lines: Vec<&str> = whole.split_inclusive('\n').collect();
        let mut accepted = 0;
        for end in 0..lines.len() {
            match count(&lines[..end].concat()) {
                Ok(records) => {
                    assert_eq!(records, all, "{file} cut after line {end}");
                    accepted += 1;
                }
                Err(error) => one_line(&error),
            }
        }
        // JSON, XML and YAML show where a document ends; plain lines do not.
        let has_end = !["pgbench", "ycsb"].contains(&format) && !file.starts_with("perf");
        assert!(
            !has_end || accepted == 0,
            "{file}: {accepted} cuts were accepted"
        );
    }
}

#[track_caller]
fn one_line(error: &ImportError) {
    let text = error.to_string();
    assert!(!text.contains('\n') && text.len() > 20, "{text:?}");
}

#[test]
fn numbers_that_are_not_finite_in_our_units_are_refused() {
    for (format, before, after) in [
        ("hyperfine", "        0.012153524,", "1e300,"),
        ("hyperfine", "        0.012153524,", "1e999,"),
        ("hyperfine", "        0.012153524,", "NaN,"),
        ("hyperfine", "        0.012153524,", "-1.0,"),
        ("hyperfine", "        0.012153524,", "\"fast\","),
        ("fio", "13473.684211", "1e999"),
        ("fio", "13473.684211", "\"13473\""),
        ("fio", "13473.684211", "null"),
        ("stress-ng", "0.310113", "1e305"),
        ("stress-ng", "0.310113", "inf"),
        ("stress-ng", "0.310113", "much"),
        ("stress-ng", "1795833868", "soon"),
        ("perf", "0.51,msec", "1e305,msec"),
        ("perf", "0.51,msec", "nan,msec"),
        ("perf", "0.51,msec", "fast,msec"),
        ("perf", "Sat Nov 28", "Sat Foo 28"),
        ("pgbench", "824.691256", "inf"),
        ("pgbench", "2.425 ms", "1e308 ms"),
        ("pgbench", "2.425 ms", "2.425 s"),
        ("pgbench", "824.691256", "many"),
        ("ycsb", "26315.78947368421", "inf"),
        ("ycsb", "RunTime(ms), 76", "RunTime(ms), 1e304"),
        ("ycsb", "RunTime(ms), 76", "RunTime(ms), x"),
        ("phoronix", "347:317", "inf:317"),
        ("phoronix", "347:317", "1e305:317"),
        ("phoronix", "347:317", "a:317"),
        ("phoronix", "LIB", "MAYBE"),
    ] {
        let (_, file) = FILES.iter().find(|(name, _)| *name == format).unwrap();
        let whole = fs::read_to_string(data(file)).unwrap();
        assert!(whole.contains(before), "{file}: {before}");
        let Err(error) = text(format, &whole.replacen(before, after, 1)) else {
            panic!("{format}: {after} was accepted");
        };
        one_line(&error);
        assert!(
            error.to_string().contains("cannot be read as results of"),
            "{error}"
        );
    }
    for wrong in [
        r#"{"stats_source":["a/stats.json"],"x.throughput":[1e999]}"#,
        r#"{"stats_source":["a/stats.json"],"x.throughput":["1"]}"#,
        r#"{"stats_source":["a/stats.json"],"x.throughput":[1,2]}"#,
        r#"{"stats_source":[7],"x.throughput":[1]}"#,
        r#"{"stats_source":["a/stats.json"],"fio.read_bw_MBps":[1e308]}"#,
        r#"{"stats_source":["a/stats.json"],"x.throughput":[1],"x.throughput":[2]}"#,
        r#"{"stats_source":["a/stats.json"]}"#,
        "[1,2]",
        "{\"a\":",
    ] {
        one_line(&text("lkp", wrong).unwrap_err());
    }
    let csv = "scenario,variant,metric,value,unit\na,b,m,1e305,s\n";
    let error = text("csv", csv).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn what_is_there_twice_is_refused() {
    let whole = |file| fs::read_to_string(data(file)).unwrap();
    let fio = whole("fio-3.33.json");
    let job = &fio[fio.find("    {\n      \"jobname\"").unwrap()..fio.find("\n  ],").unwrap()];
    let stress = whole("stress-ng-0.15.06.yaml");
    let metrics = &stress[stress.find("    - stressor").unwrap()..stress.find("\n...").unwrap()];
    let phoronix = whole("phoronix-10.8.6.xml");
    let result = &phoronix
        [phoronix.find("  <Result>").unwrap()..phoronix.find("</PhoronixTestSuite>").unwrap()];
    let perf = whole("perf-6.1.187.csv");
    let counter = perf.lines().nth(2).unwrap();
    for (format, twice) in [
        ("fio", fio.replacen(job, &format!("{job},{job}"), 1)),
        (
            "stress-ng",
            stress.replacen(metrics, &format!("{metrics}{metrics}"), 1),
        ),
        (
            "phoronix",
            phoronix.replacen(result, &format!("{result}{result}"), 1),
        ),
        (
            "perf",
            perf.replacen(counter, &format!("{counter}\n{counter}"), 1),
        ),
        ("ycsb", whole("ycsb-0.18.0.txt").repeat(2)),
        (
            "hyperfine",
            whole("hyperfine-1.15.0.json").replace("sleep 0.01", "true"),
        ),
        (
            "pgbench",
            whole("pgbench-15.20.txt").replace("tps =", "tps = 1.5 (x)\ntps ="),
        ),
    ] {
        let Err(error) = text(format, &twice) else {
            panic!("{format} was accepted with something twice");
        };
        one_line(&error);
        assert!(error.to_string().contains("twice"), "{error}");
    }
}

#[test]
fn parts_of_a_run_and_other_documents_are_refused() {
    for (format, wrong) in [
        (
            "perf",
            "     1.000,0.51,msec,task-clock,512942,100.00,0.4,CPUs utilized\n",
        ),
        ("perf", "CPU0,0.51,msec,task-clock,512942,100.00,,\n"),
        (
            "perf",
            r#"{"interval" : 1.0, "counter-value" : "1.0", "unit" : "", "event" : "page-faults"}"#,
        ),
        ("stress-ng", "---\nmetrics:\n  - [a, b]\n...\n"),
        (
            "stress-ng",
            "---\nmetrics: &x\n    - stressor: vm\n      <<: *x\n...\n",
        ),
        ("stress-ng", "metrics:\n...\n"),
        (
            "phoronix",
            "<!DOCTYPE x [<!ENTITY a \"b\">]><PhoronixTestSuite></PhoronixTestSuite>",
        ),
        ("phoronix", "<PhoronixTestSuite></PhoronixTestSuite>"),
        ("hyperfine", "{\"results\":[]}"),
        ("fio", "{\"jobs\":[]}"),
        ("pgbench", "pgbench: error: connection refused\n"),
        ("ycsb", "nothing\n"),
    ] {
        match text(format, wrong) {
            Ok(_) => panic!("{format} accepted {wrong}"),
            Err(error) => one_line(&error),
        }
    }
}

#[test]
fn more_runs_or_bytes_than_anything_sensible_are_refused() {
    let times = vec!["1"; 100_001].join(",");
    let file = format!("{{\"results\":[{{\"command\":\"a\",\"times\":[{times}]}}]}}");
    let error = text("hyperfine", &file).unwrap_err().to_string();
    assert!(error.contains("more than 100000 runs"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("large");
    // The file consists of a hole, which takes no space on the disk.
    fs::File::create(&path)
        .unwrap()
        .set_len((64 << 20) + 1)
        .unwrap();
    let error = read("fio", &[&path]).unwrap_err().to_string();
    assert!(error.contains("larger than 64 MiB"), "{error}");
}

/// Writes files of fio with one run each, in a folder for each variant, and returns the folders. The numbers are the
/// end times in seconds.
fn sessions(dir: &Path, variants: &[(&str, &[u64])]) -> Vec<PathBuf> {
    let whole = fs::read_to_string(data("fio-3.33.json")).unwrap();
    let of_variant = |(name, ends): &(&str, &[u64])| {
        let folder = dir.join(name);
        fs::create_dir(&folder).unwrap();
        for (place, end) in ends.iter().enumerate() {
            let text = whole.replace("1795833867482", &format!("{}", end * 1000));
            fs::write(folder.join(format!("run{place}.json")), text).unwrap();
        }
        folder
    };
    variants.iter().map(of_variant).collect()
}

#[test]
fn runs_are_numbered_by_their_starts_and_pairs_only_where_none_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    // The order of the files' names differs from the order of their times.
    let folders = sessions(
        dir.path(),
        &[("old", &[900, 100, 500]), ("new", &[200, 600, 1000])],
    );
    let paths: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    let mut batch = read("fio", &paths).unwrap();
    let order: Vec<_> = batch
        .records
        .iter()
        .map(|record| (&*record.subject.variant.name, record.subject.seed))
        .collect();
    let wanted = [
        ("old", 1),
        ("new", 1),
        ("old", 2),
        ("new", 2),
        ("old", 3),
        ("new", 3),
    ];
    assert_eq!(order, wanted);
    assert!(batch.paired_by.is_some() && !batch.lasting);
    let note = note("fio", 1, &mut batch, Claims::default()).unwrap();
    assert_eq!(note.variants, ["old", "new"]);
    assert_eq!(note.entries[0].unit, note.entries[1].unit);
    fs::remove_file(folders[1].join("run1.json")).unwrap();
    assert_eq!(
        read("fio", &paths).unwrap().paired_by,
        None,
        "a run is missing"
    );
}

#[test]
fn turns_cannot_be_claimed_for_runs_that_one_tool_made_in_a_row() {
    let claims = Claims {
        interleaved: true,
        ..Claims::default()
    };
    for (format, file) in [
        ("hyperfine", "hyperfine-1.15.0.json"),
        ("phoronix", "phoronix-10.8.6.xml"),
    ] {
        let mut batch = read(format, &[&data(file)]).unwrap();
        let error = note("x", 1, &mut batch, claims).unwrap_err();
        one_line(&error);
        assert!(error.to_string().contains("--interleaved"), "{error}");
        assert!(error.is_user_error());
        note("x", 1, &mut batch, Claims::default()).unwrap();
    }
}

#[test]
fn one_metric_in_two_units_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fs::read_to_string(data("perf-6.1.187.csv")).unwrap();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    fs::write(&a, &whole).unwrap();
    fs::write(&b, whole.replace("50,,page-faults", "50,KiB,page-faults")).unwrap();
    let mut batch = read("perf", &[&a, &b]).unwrap();
    let error = note("x", 1, &mut batch, Claims::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("page-faults") && error.contains("units"),
        "{error}"
    );
    // Times in different units are converted to one unit.
    fs::write(&b, whole.replace("0.51,msec", "510000,ns")).unwrap();
    let batch = read("perf", &[&a, &b]).unwrap();
    near(
        number(&batch.records[0], "task-clock"),
        number(&batch.records[1], "task-clock"),
    );
}

#[test]
fn a_variant_is_named_by_the_user_or_the_file_or_the_path() {
    let named = |variant: Option<&str>, file: &str| Source {
        variant: variant.map(str::to_owned),
        path: data(file),
    };
    let fio = Format::named("fio").unwrap();
    let file = "fio-3.33.json";
    let batch = fio
        .import(&[named(Some("a"), file), named(Some("a"), file)], None)
        .unwrap();
    assert_eq!(batch.records[1].subject.seed, 2, "two runs of one variant");
    let phoronix = Format::named("phoronix").unwrap();
    let error = phoronix
        .import(&[named(Some("a"), "phoronix-10.8.6.xml")], None)
        .unwrap_err();
    assert!(error.to_string().contains("leave out `a=`"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let folders = sessions(dir.path(), &[("x", &[1]), ("y", &[2])]);
    let files: Vec<PathBuf> = folders
        .iter()
        .map(|folder| folder.join("run0.json"))
        .collect();
    let error = read("fio", &[&files[0], &files[1]])
        .unwrap_err()
        .to_string();
    assert!(error.contains("OTHER="), "{error}");
}
