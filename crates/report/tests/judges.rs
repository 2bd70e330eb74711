//! Tests the exchange formats with other projects' programs: the kernel's KTAP parser, kcidb-io, `duckdb` and pandas.
//!
//! If a program is not available (no network, no Debian), its test is skipped with a message. Downloads are kept in
//! cargo's folder for temporary test files and used again.

use crate::judge::{Python, Tool, Why, kunit, python};
use pagetide_compare::Values;
use pagetide_quantity::Nanos;
use pagetide_report::trace::{self, Counter, Slice, Timeline, Track};
use pagetide_report::{csv, kcidb, ktap};
use serde_json::Value;

/// Evaluates to the tool; if it is not available, prints the reason and ends the test.
macro_rules! need {
    ($tool:expr) => {
        match $tool {
            Ok(tool) => tool,
            Err(Why(why)) => {
                pagetide_testing::skip(pagetide_testing::Need::Judges, why);
                return;
            }
        }
    };
}

/// Runs KTAP through kunit_parser.py; returns the counts and the errors it found.
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
#[ignore = "test-all"]
fn the_kernels_parser_reads_ktap_without_an_error() {
    let tool = need!(kunit());
    let seen = parse(
        &tool,
        &ktap::ktap(&crate::data::mglru(), &crate::data::about()),
    );
    // Primary: 4 and 3 metrics, of which one regressed and one is inconclusive; the others pass or are skipped.
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
#[ignore = "test-all"]
fn hostile_names_forge_nothing_in_ktap() {
    let tool = need!(kunit());
    let text = ktap::ktap(&crate::data::poisoned(), &crate::data::about_poisoned());
    assert!(text.is_ascii() && text.len() < 100_000);
    let (clean, seen) = (
        parse(
            &tool,
            &ktap::ktap(&crate::data::mglru(), &crate::data::about()),
        ),
        parse(&tool, &text),
    );
    for key in ["passed", "failed", "skipped", "crashed", "errors"] {
        assert_eq!(clean[key], seen[key], "{key}: {seen}");
    }
}

#[test]
#[ignore = "test-all"]
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
    for comparison in [
        crate::data::mglru(),
        crate::data::kernels(),
        crate::data::poisoned(),
    ] {
        let text = kcidb::kcidb(&comparison, &crate::data::about_poisoned(), "pagetide");
        let seen = python.run(script, &text);
        let metrics: usize = comparison.cells.iter().map(|c| c.metrics.len()).sum();
        let tests = metrics * comparison.columns.len();
        assert_eq!(seen["tests"], tests, "{seen}");
        assert_eq!(seen["ids"], tests, "ids are unique");
    }
    let seen = python.run(
        script,
        &kcidb::kcidb(&crate::data::mglru(), &crate::data::about(), "pagetide"),
    );
    assert_eq!(
        seen["status"],
        serde_json::json!(["DONE", "ERROR", "FAIL", "PASS"])
    );
}

#[test]
#[ignore = "test-all"]
fn duckdb_reads_csv_back() {
    let python = need!(python("duckdb"));
    let comparison = crate::data::mglru();
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
    // Hostile text stays in its row and column.
    let mut bytes = Vec::new();
    csv::judgements(&mut bytes, &crate::data::poisoned()).unwrap();
    let script = "
import csv, json, sys
csv.field_size_limit(1 << 30)
rows = list(csv.reader(open(sys.argv[2], encoding='utf-8', newline='')))
print(json.dumps([len(rows), sorted({len(r) for r in rows})]))
";
    let seen = python.run(script, &String::from_utf8(bytes).unwrap());
    assert_eq!(seen, serde_json::json!([31, [30]]));
}

#[test]
#[ignore = "test-all"]
fn pandas_reads_numbers_as_numbers_and_why_one_is_missing() {
    let python = need!(python("pandas"));
    let mut comparison = crate::data::mglru();
    let row = &mut comparison.cells[0].metrics[0];
    row.values[1] = Values {
        values: Vec::new(),
        absent: Some("not on this kernel".to_owned()),
    };
    row.judgements[0] = None;
    let name = row.name.clone();
    let mut bytes = Vec::new();
    csv::judgements(&mut bytes, &comparison).unwrap();
    let script = "
import json, pandas, sys
t = pandas.read_csv(sys.argv[2])
gone = t[t['median'].isna()]
silent = int(gone['missing'].isna().sum())
gone = gone[gone['metric'] == 'METRIC']
print(json.dumps({'silent': silent, 'kinds': [str(t[c].dtype) for c in ['median', 'effect', 'p', 'n']],
    'gone': gone[['metric', 'variant', 'missing', 'no_verdict']].values.tolist(),
    'both': int((t['median'].notna() & t['missing'].notna()).sum()), 'rows': len(t)}))
";
    let script = script.replace("METRIC", &name);
    let seen = python.run(&script, &String::from_utf8(bytes).unwrap());
    let why = "not on this kernel";
    assert_eq!(
        seen,
        serde_json::json!({
            "kinds": ["float64", "float64", "float64", "float64"],
            "gone": [[name, "mglru-on", why, why]],
            "both": 0,
            "silent": 0,
            "rows": 30,
        })
    );
}

/// Checks the rules of the trace-event format that Perfetto's importer enforces. Returns the number of slices and the
/// number of counter points.
fn check_trace(text: &str) -> (usize, usize) {
    let trace: Value = serde_json::from_str(text).unwrap();
    let mut open: std::collections::BTreeMap<(u64, u64), Vec<f64>> =
        std::collections::BTreeMap::new();
    let mut named = std::collections::BTreeSet::new();
    let (mut slices, mut points) = (0, 0);
    let mut last: std::collections::BTreeMap<(u64, u64), f64> = std::collections::BTreeMap::new();
    for event in trace["traceEvents"].as_array().unwrap() {
        let (pid, tid) = (
            event["pid"].as_u64().unwrap(),
            event["tid"].as_u64().unwrap(),
        );
        assert!(event["name"].is_string());
        match event["ph"].as_str().unwrap() {
            "M" => {
                assert!(event["args"]["name"].is_string());
                named.insert((pid, tid));
            }
            "X" => {
                let (start, length) = (
                    event["ts"].as_f64().unwrap(),
                    event["dur"].as_f64().unwrap(),
                );
                assert!(start >= 0.0 && length >= 0.0);
                assert!(
                    named.contains(&(pid, tid)),
                    "a slice stands on a named track"
                );
                assert!(
                    last.get(&(pid, tid)).is_none_or(|last| *last <= start),
                    "slices ascend"
                );
                last.insert((pid, tid), start);
                let stack = open.entry((pid, tid)).or_default();
                while stack.last().is_some_and(|end| *end <= start + 1e-6) {
                    stack.pop();
                }
                assert!(
                    stack.last().is_none_or(|end| start + length <= end + 1e-6),
                    "slices of a track nest"
                );
                stack.push(start + length);
                slices += 1;
            }
            "C" => {
                assert!(
                    named.contains(&(pid, 0)),
                    "a counter stands in a named group"
                );
                assert!(
                    event["args"]
                        .as_object()
                        .unwrap()
                        .values()
                        .all(Value::is_number)
                );
                points += 1;
            }
            other => panic!("{other}"),
        }
    }
    (slices, points)
}

#[test]
fn a_trace_keeps_the_rules_of_its_format() {
    // Perfetto's package in the Python index has no trace processor, so the rules of the format are checked directly.
    let mut draw = crate::data::Draw(5);
    let mut at = || Nanos(draw.below(1_000_000_000));
    let evil = crate::data::hostile();
    let trace = Timeline {
        title: evil.clone(),
        tracks: (0..3)
            .map(|track| Track {
                group: ["reclaim", "processes", evil.as_str()][track].to_owned(),
                name: evil.clone(),
                slices: (0..500)
                    .map(|_| Slice {
                        name: "direct reclaim".to_owned(),
                        start: at(),
                        duration: Nanos(at().0 / 20),
                        details: vec![("order".to_owned(), evil[..100].to_owned())],
                    })
                    .collect(),
            })
            .collect(),
        counters: vec![Counter {
            group: "vmstat".to_owned(),
            name: "pswpin".to_owned(),
            points: vec![(Nanos(1), 2.0), (Nanos(2), f64::NAN), (Nanos(3), 4.0)],
        }],
    };
    let mut out = Vec::new();
    trace::write(&mut out, &trace).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(check_trace(&text), (1500, 2));
    assert!(
        text.chars()
            .all(|c| c == '\n' || !pagetide_report::draw::clean::is_unsafe(c))
    );
}
