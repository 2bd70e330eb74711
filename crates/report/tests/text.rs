//! Text formats for pasting: mail, Markdown, JSON, CSV.

use std::collections::BTreeMap;

use pagetide_compare::{InvalidTrial, Values};
use pagetide_quantity::Value;
use pagetide_record::Invalid;
use pagetide_report::draw::clean::is_unsafe;
use pagetide_report::{csv, json, mail, markdown};

#[test]
fn a_mail_of_two_variants() {
    let text = mail::mail(&crate::data::mglru(), &crate::data::about(), true);
    insta::assert_snapshot!(text);
}

#[test]
fn a_mail_of_three_kernels() {
    let text = mail::mail(&crate::data::kernels(), &crate::data::about_kernels(), true);
    insta::assert_snapshot!(text);
}

#[test]
fn a_mail_is_ascii_and_75_columns_wide_whatever_it_holds() {
    for (comparison, about) in [
        (crate::data::mglru(), crate::data::about()),
        (crate::data::kernels(), crate::data::about_kernels()),
        (crate::data::poisoned(), crate::data::about_poisoned()),
    ] {
        for all in [true, false] {
            let text = mail::mail(&comparison, &about, all);
            assert!(text.chars().all(|c| c == '\n' || (' '..='~').contains(&c)));
            let widest = text.lines().map(str::len).max().unwrap();
            assert!(widest <= mail::WIDTH, "{widest}");
            assert!(text.len() < 30_000, "{}", text.len());
            assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
        }
    }
}

#[test]
fn a_mail_in_short_has_what_decides_and_counts_the_rest() {
    let comparison = crate::data::mglru();
    let [short, long] =
        [false, true].map(|all| mail::mail(&comparison, &crate::data::about(), all));
    insta::assert_snapshot!(short);
    let has = |text: &str, name: &str| {
        let is_row = |line: &str| line.split([' ', '(']).next() == Some(name);
        text.lines().any(is_row)
    };
    let mut left = 0;
    for cell in &comparison.cells {
        for row in cell.metrics.iter().filter(|row| !cell.is_scale(row)) {
            assert!(has(&long, &row.name), "{}", row.name);
            assert!(!row.primary || has(&short, &row.name), "{}", row.name);
            left += u32::from(!has(&short, &row.name));
        }
    }
    let line = short.lines().find(|line| line.ends_with("--all.")).unwrap();
    let counted = line
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|word| word.parse::<u32>().ok());
    assert_eq!(counted.sum::<u32>(), left, "{line}");
    assert!(short.lines().count() < long.lines().count());
}

#[test]
fn a_markdown_table() {
    insta::assert_snapshot!(markdown::markdown(
        &crate::data::mglru(),
        &crate::data::about()
    ));
}

#[test]
fn hostile_names_do_not_break_a_markdown_table() {
    let clean = markdown::markdown(&crate::data::mglru(), &crate::data::about());
    let text = markdown::markdown(&crate::data::poisoned(), &crate::data::about_poisoned());
    assert!(text.chars().all(|c| c == '\n' || !is_unsafe(c)));
    assert!(text.len() < 100_000, "{}", text.len());
    let bars = |text: &str| -> Vec<usize> {
        text.lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.replace("\\|", "").matches('|').count())
            .collect()
    };
    assert_eq!(bars(&clean), bars(&text));
}

#[test]
fn json_holds_the_whole_comparison() {
    let comparison = crate::data::mglru();
    let value: serde_json::Value =
        serde_json::from_str(&json::comparison(&comparison, &crate::data::about())).unwrap();
    assert_eq!(value["format"], "pagetide-comparison");
    let first = &value["cells"][0]["metrics"][0];
    let judgement = comparison.cells[0].metrics[0].judgements[0]
        .as_ref()
        .unwrap();
    assert_eq!(first["judgements"][0]["verdict"], "improved");
    assert_eq!(
        first["judgements"][0]["effect"]["estimate"].as_f64(),
        Some(judgement.effect.unwrap().estimate)
    );
    assert_eq!(value["machine"]["cpus"], 2);
}

#[test]
fn hostile_names_come_back_whole_from_json_and_steer_nothing() {
    let text = json::comparison(&crate::data::poisoned(), &crate::data::about_poisoned());
    assert!(text.chars().all(|c| c == '\n' || !is_unsafe(c)));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["title"].as_str().unwrap(), crate::data::hostile());
}

#[test]
fn a_short_mail_leaves_out_what_would_make_it_too_long() {
    let mut comparison = crate::data::mglru();
    let full = mail::mail(&comparison, &crate::data::about(), false);
    assert!(full.lines().count() < 40, "{full}");
    // With more cells there are fewer lines about each cell, but the primary metrics remain.
    let cell = comparison.cells[0].clone();
    comparison.cells.push(cell);
    let shorter = mail::mail(&comparison, &crate::data::about(), false);
    let rows = |text: &str| text.lines().filter(|line| line.contains("%) ")).count();
    let primary = comparison
        .cells
        .iter()
        .flat_map(|cell| &cell.metrics)
        .filter(|row| row.primary)
        .count();
    assert!(rows(&shorter) >= primary, "{shorter}");
    assert!(
        shorter.lines().count() < 40 || rows(&shorter) <= primary + comparison.cells.len(),
        "{shorter}"
    );
}

#[test]
fn csv_has_a_row_for_each_cell_metric_and_variant() {
    let comparison = crate::data::mglru();
    let mut out = Vec::new();
    csv::judgements(&mut out, &comparison).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 1 + 2 * (11 + 4));
    assert!(text.starts_with("cell,scenario,"));
    assert!(text.contains(",improved,ratio,0.89"), "{text}");
}

/// The rows of a table, each as a map from column names to cells.
fn rows(bytes: &[u8]) -> Vec<BTreeMap<String, String>> {
    ::csv::Reader::from_reader(bytes)
        .deserialize()
        .map(Result::unwrap)
        .collect()
}

/// The cells of a row in these columns.
fn of<'a>(row: &'a BTreeMap<String, String>, columns: &[&str]) -> Vec<&'a str> {
    columns.iter().map(|column| row[*column].as_str()).collect()
}

#[test]
fn csv_says_why_there_is_no_value_and_no_verdict() {
    let mut comparison = crate::data::mglru();
    let absent = |why: Option<&str>| Values {
        values: Vec::new(),
        absent: why.map(str::to_owned),
    };
    let cell = &mut comparison.cells[0];
    cell.metrics[0].values[1] = absent(Some("not on this kernel"));
    cell.metrics[1].values[0] = absent(Some("no victim"));
    cell.metrics[2].values[1] = absent(None);
    for metric in &mut cell.metrics[..3] {
        metric.judgements[0] = None;
    }
    // In the second cell, all trials of one side are invalid.
    let cell = &mut comparison.cells[1];
    cell.sides[1].trials.clear();
    cell.sides[1].invalid = [(1, "a panic"), (2, "no swap"), (3, "a panic")]
        .map(|(seed, why)| InvalidTrial {
            record: String::new(),
            seed,
            why: why.to_owned(),
            died: false,
        })
        .to_vec();
    for metric in &mut cell.metrics {
        metric.values[1] = Values::default();
    }
    let mut bytes = Vec::new();
    csv::judgements(&mut bytes, &comparison).unwrap();
    let table = rows(&bytes);
    for row in &table {
        // Each row has either a number or a reason, never both.
        assert_ne!(row["median"].is_empty(), row["missing"].is_empty());
    }
    let columns = ["variant", "median", "missing", "verdict", "no_verdict"];
    let why = "not on this kernel";
    assert_eq!(of(&table[1], &columns), ["mglru-on", "", why, "", why]);
    assert_eq!(of(&table[2], &columns[1..3]), ["", "no victim"]);
    assert_eq!(table[2]["no_verdict"], "", "nothing judges the baseline");
    assert_eq!(table[3]["missing"], "");
    assert_eq!(
        table[3]["no_verdict"],
        format!("{} has no value (no victim)", table[2]["variant"])
    );
    assert_eq!(table[5]["missing"], "not measured");
    let last = table.last().unwrap();
    assert_eq!(last["missing"], "invalid: a panic; no swap");

    // If no trial of either side is valid, there is no metric, but a row with the reason.
    comparison.cells[1].metrics.clear();
    comparison.cells[1].sides[0].trials.clear();
    let mut bytes = Vec::new();
    csv::judgements(&mut bytes, &comparison).unwrap();
    let table = rows(&bytes);
    let [.., base, other] = &table[..] else {
        panic!("no rows")
    };
    assert_eq!(of(base, &["metric", "missing"]), ["", "no trial was run"]);
    assert_eq!(other["missing"], "invalid: a panic; no swap");
}

#[test]
fn samples_say_why_a_value_is_missing_and_why_a_record_is_invalid() {
    let mut lacking = crate::data::record();
    lacking.results.metrics[0].value = Value::Absent("not on this kernel".to_owned());
    let mut silent = crate::data::record();
    silent.results.metrics.clear();
    silent.results.invalid.push(Invalid::NoReclaim);
    let count = lacking.results.metrics.len();
    let mut bytes = Vec::new();
    csv::samples(&mut bytes, [&lacking, &silent]).unwrap();
    let table = rows(&bytes);
    assert_eq!(table.len(), count + 1);
    let columns = ["value", "missing", "valid", "invalid"];
    assert_eq!(
        of(&table[0], &columns),
        ["", "not on this kernel", "true", ""]
    );
    for row in &table {
        assert_ne!(row["value"].is_empty(), row["missing"].is_empty());
    }
    let why = Invalid::NoReclaim.to_string();
    assert_eq!(
        of(&table[count], &columns),
        ["", "nothing was measured", "false", &why]
    );
}
