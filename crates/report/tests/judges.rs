//! The exchange formats, judged by others' own programs: the kernel's KTAP parser, kcidb-io, promtool, pandas' peers.
//!
//! A program that cannot be had (no network, no Debian) is named and its test is passed over with the reason. What was
//! fetched lies in cargo's folder for tests' files and is used again.

mod data;
mod judge;

use judge::{Python, Tool, Why, have, kunit, promtool, python};
use pagetide_record::Nanos;
use pagetide_report::{csv, kcidb, ktap, openmetrics};
use serde_json::Value;

/// The tool, or the test ends here, saying why.
macro_rules! need {
    ($tool:expr) => {
        match $tool {
            Ok(tool) => tool,
            Err(Why(why)) => {
                println!("skipped: {why}");
                return;
            }
        }
    };
}

/// Runs KTAP through kunit_parser.py; gives counts and the errors it found.
fn parse(tool: &Tool, text: &str) -> Value {
    let script = "
import io, json, sys, contextlib
sys.path.insert(0, sys.argv[1])
out = io.StringIO()
with contextlib.redirect_stdout(out):
    import kunit_parser
    lines = kunit_parser.extract_tap_lines(open(sys.argv[2], encoding='utf-8').read().split('\\n'))
    try:
        test = kunit_parser.parse_run_tests(lines)
    except TypeError:
        from kunit_printer import stdout
        test = kunit_parser.parse_run_tests(lines, stdout)
def walk(t):
    return {'name': t.name, 'status': t.status.name, 'tests': [walk(s) for s in t.subtests]}
c = test.counts
print(json.dumps({'passed': c.passed, 'failed': c.failed, 'skipped': c.skipped, 'crashed': c.crashed,
                  'errors': c.errors, 'tree': walk(test)}))
";
    tool.python(script, text)
}

#[test]
fn the_kernels_parser_reads_ktap_without_an_error() {
    let tool = need!(kunit());
    let seen = parse(&tool, &ktap::ktap(&data::mglru(), &data::about()));
    // Primary: 4 and 3 metrics, of which one regressed and one is inconclusive; the rest is passed or skipped.
    assert_eq!(seen["errors"], 0, "{seen}");
    assert_eq!(seen["crashed"], 0, "{seen}");
    assert_eq!(seen["failed"], 1, "{seen}");
    let total: i64 = ["passed", "failed", "skipped"]
        .iter()
        .map(|key| seen[key].as_i64().unwrap())
        .sum();
    assert_eq!(total, 15, "{seen}");
    assert_eq!(seen["tree"]["tests"][0]["status"], "SUCCESS", "{seen}");
    assert_eq!(seen["tree"]["tests"][1]["status"], "FAILURE", "{seen}");
    assert_eq!(
        seen["tree"]["tests"][1]["tests"][0]["name"], "read-mean",
        "{seen}"
    );
}

#[test]
fn hostile_names_forge_nothing_in_ktap() {
    let tool = need!(kunit());
    let text = ktap::ktap(&data::poisoned(), &data::about_poisoned());
    assert!(text.is_ascii() && text.len() < 100_000);
    let (clean, seen) = (
        parse(&tool, &ktap::ktap(&data::mglru(), &data::about())),
        parse(&tool, &text),
    );
    for key in ["passed", "failed", "skipped", "crashed", "errors"] {
        assert_eq!(clean[key], seen[key], "{key}: {seen}");
    }
}

#[test]
fn kcidb_io_accepts_the_report() {
    let python: Python = need!(python("kcidb-io"));
    let script = "
import json, sys
from kcidb_io.schema import V5_3
data = json.load(open(sys.argv[2], encoding='utf-8'))
V5_3.validate(data)
V5_3.validate_exactly(data)
print(json.dumps({'tests': len(data['tests']),
                  'status': sorted({t['status'] for t in data['tests']}),
                  'ids': len({t['id'] for t in data['tests']})}))
";
    for comparison in [data::mglru(), data::kernels(), data::poisoned()] {
        let text = kcidb::kcidb(&comparison, &data::about_poisoned(), "pagetide");
        let seen = python.run(script, &text);
        let metrics: usize = comparison.cells.iter().map(|c| c.metrics.len()).sum();
        let tests = metrics * comparison.columns.len();
        assert_eq!(seen["tests"], tests, "{seen}");
        assert_eq!(seen["ids"], tests, "ids are unique");
    }
    let seen = python.run(
        script,
        &kcidb::kcidb(&data::mglru(), &data::about(), "pagetide"),
    );
    assert_eq!(
        seen["status"],
        serde_json::json!(["DONE", "ERROR", "FAIL", "PASS"])
    );
}

#[test]
fn promtool_reads_openmetrics_and_its_linter_is_content() {
    let tool = need!(promtool());
    for comparison in [data::mglru(), data::kernels(), data::poisoned()] {
        let text = openmetrics::openmetrics(&comparison, None);
        let (ok, said) = tool.run(&["check", "metrics"], Some(&text));
        assert!(ok && said.trim().is_empty(), "{said}");
        // The true OpenMetrics parser stands behind backfilling, which wants moments.
        let text = openmetrics::openmetrics(&comparison, Some(Nanos::from_secs(1_795_207_180)));
        let file = tool.file("samples.om", &text);
        let blocks = tool.folder("blocks");
        let (ok, said) = tool.run(
            &["tsdb", "create-blocks-from", "openmetrics", &file, &blocks],
            None,
        );
        assert!(ok, "{said}");
        let samples = text.lines().filter(|line| !line.starts_with('#')).count();
        // Dumping wants a write-ahead log, be it an empty one.
        std::fs::create_dir(format!("{blocks}/wal")).unwrap();
        let (ok, dump) = tool.run(&["tsdb", "dump", &blocks], None);
        assert!(ok, "{dump}");
        assert_eq!(dump.lines().filter(|l| l.starts_with('{')).count(), samples);
    }
}

#[test]
fn a_cut_openmetrics_text_is_refused_by_promtool() {
    // The judge itself is judged: it must be able to say no.
    let tool = need!(promtool());
    let text = openmetrics::openmetrics(&data::mglru(), Some(Nanos::from_secs(1_795_207_180)));
    let file = tool.file("cut.om", text.trim_end_matches("# EOF\n"));
    let blocks = tool.folder("cut-blocks");
    let (ok, _) = tool.run(
        &["tsdb", "create-blocks-from", "openmetrics", &file, &blocks],
        None,
    );
    assert!(!ok);
}

#[test]
fn duckdb_reads_csv_back() {
    let python = need!(python("duckdb"));
    let comparison = data::mglru();
    let mut bytes = Vec::new();
    csv::judgements(&mut bytes, &comparison).unwrap();
    let script = "
import duckdb, json, sys
rows = duckdb.sql(f\"\"\"select metric, variant, median, verdict, effect, low, high, p from
    read_csv('{sys.argv[2]}', header=true) order by cell, metric, variant\"\"\").fetchall()
print(json.dumps(rows))
";
    let rows = python.run(script, &String::from_utf8(bytes).unwrap());
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 30);
    for group in &comparison.cells {
        for row in &group.metrics {
            let judgement = row.judgements[0].as_ref().unwrap();
            let seen = rows
                .iter()
                .find(|seen| seen[0] == row.name.as_str() && seen[1] == "mglru-on")
                .unwrap();
            assert_eq!(seen[2].as_f64(), judgement.b.map(|b| b.median));
            assert_eq!(seen[3], judgement.verdict.to_string());
            assert_eq!(seen[4].as_f64(), judgement.effect.map(|e| e.estimate));
            assert_eq!(seen[7].as_f64(), judgement.p);
        }
    }
    // Hostile text keeps its row and column.
    let mut bytes = Vec::new();
    csv::judgements(&mut bytes, &data::poisoned()).unwrap();
    let script = "
import csv, json, sys
csv.field_size_limit(1 << 30)
rows = list(csv.reader(open(sys.argv[2], encoding='utf-8', newline='')))
print(json.dumps([len(rows), sorted({len(r) for r in rows})]))
";
    let seen = python.run(script, &String::from_utf8(bytes).unwrap());
    assert_eq!(seen, serde_json::json!([31, [28]]));
}

#[test]
fn the_tools_that_are_missing_are_named() {
    // Not a check of a format: says once, in every run's output, which judges sat.
    for (name, found) in have() {
        println!("{name}: {found}");
    }
}
