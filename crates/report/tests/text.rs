//! The formats people paste: mail, Markdown, JSON, CSV.

mod data;

use pagetide_report::draw::clean::is_unsafe;
use pagetide_report::{csv, json, mail, markdown};

#[test]
fn a_mail_of_two_variants() {
    let text = mail::mail(&data::mglru(), &data::about());
    insta::assert_snapshot!(text);
}

#[test]
fn a_mail_of_three_kernels() {
    let text = mail::mail(&data::kernels(), &data::about_kernels());
    insta::assert_snapshot!(text);
}

#[test]
fn a_mail_is_ascii_and_75_columns_wide_whatever_it_holds() {
    for (comparison, about) in [
        (data::mglru(), data::about()),
        (data::kernels(), data::about_kernels()),
        (data::poisoned(), data::about_poisoned()),
    ] {
        let text = mail::mail(&comparison, &about);
        assert!(text.chars().all(|c| c == '\n' || (' '..='~').contains(&c)));
        let widest = text.lines().map(str::len).max().unwrap();
        assert!(widest <= mail::WIDTH, "{widest}");
        assert!(text.len() < 30_000, "{}", text.len());
        assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    }
}

#[test]
fn a_markdown_table() {
    insta::assert_snapshot!(markdown::markdown(&data::mglru(), &data::about()));
}

#[test]
fn hostile_names_do_not_break_a_markdown_table() {
    let clean = markdown::markdown(&data::mglru(), &data::about());
    let text = markdown::markdown(&data::poisoned(), &data::about_poisoned());
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
    let comparison = data::mglru();
    let value: serde_json::Value =
        serde_json::from_str(&json::comparison(&comparison, &data::about())).unwrap();
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
    let text = json::comparison(&data::poisoned(), &data::about_poisoned());
    assert!(text.chars().all(|c| c == '\n' || !is_unsafe(c)));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["title"].as_str().unwrap(), data::hostile());
}

#[test]
fn csv_has_a_row_for_each_cell_metric_and_variant() {
    let comparison = data::mglru();
    let mut out = Vec::new();
    csv::judgements(&mut out, &comparison).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count(), 1 + 2 * (11 + 4));
    assert!(text.starts_with("cell,scenario,"));
    assert!(text.contains(",improved,ratio,0.89"), "{text}");
}
