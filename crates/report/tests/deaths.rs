//! Tests of deaths for lack of memory in every output format: deaths are compared as a result, and are shown first if
//! the sides surely differ.

use pagetide_compare::notes::{ColumnNotes, Deaths};
use pagetide_compare::{Comparison, InvalidTrial, Values};
use pagetide_report::draw::TextStyle;
use pagetide_report::terminal::{Options, verdicts};
use pagetide_report::{ktap, mail, markdown};
use pagetide_verdict::Verdict;

const WHY: &str =
    "the kernel killed dd after 314 ms with memory to spare, 6.97 MiB of file pages reclaimable";

/// A comparison with deaths in the first cell: all trials of the second variant died, so metrics have no values in this
/// cell. `verdict` is the verdict on the deaths.
fn dead(verdict: Verdict) -> Comparison {
    let mut comparison = crate::data::mglru();
    comparison.cells.truncate(1);
    let cell = &mut comparison.cells[0];
    cell.sides[1].trials.clear();
    cell.sides[1].invalid = (1..=8)
        .map(|seed| InvalidTrial {
            record: "0badc0de".to_owned(),
            seed,
            why: WHY.to_owned(),
            died: true,
        })
        .collect();
    for metric in &mut cell.metrics {
        metric.values[1] = Values::default();
        metric.judgements = vec![None];
    }
    comparison.columns[1].valid = 0;
    comparison.columns[1].invalid = 8;
    comparison.notes = vec![ColumnNotes {
        cell: 0,
        column: 1,
        deaths: Some(Deaths {
            died: [0, 8],
            trials: [8, 8],
            early: [0, 8],
            p: 1.6e-4,
            p_adjusted: 1.6e-4,
            verdict,
            reclaim: [None, Some("102066 pages scanned, 151 reclaimed".to_owned())],
            ..Deaths::default()
        }),
        ..ColumnNotes::default()
    }];
    comparison
}

/// Name and text of five output formats that show deaths.
fn texts(comparison: &Comparison) -> [(&'static str, String); 5] {
    let about = crate::data::about();
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let table = verdicts(
        comparison,
        &about,
        Options::default(),
        &TextStyle::plain(100),
    );
    [
        ("terminal", words(table)),
        ("mail", words(mail::mail(comparison, &about, false))),
        ("markdown", markdown::markdown(comparison, &about)),
        ("ktap", ktap::ktap(comparison, &about)),
        ("page", crate::data::page(comparison)),
    ]
}

#[test]
fn every_format_compares_deaths_and_none_says_that_nothing_could_be_compared() {
    for (format, text) in texts(&dead(Verdict::Regressed)) {
        assert!(text.contains("8 of 8"), "{format}: {text}");
        assert!(text.contains("regressed"), "{format}: {text}");
        assert!(
            !text.to_lowercase().contains("nothing could be"),
            "{format}: {text}"
        );
        assert!(!text.contains("invalid and not used"), "{format}: {text}");
        assert!(!text.contains("Invalid, not used"), "{format}: {text}");
        let died = ["which is a result", "# died "];
        assert!(
            died.iter().any(|words| text.contains(words)),
            "{format}: {text}"
        );
        match format {
            "ktap" => assert!(text.contains("not ok 1 deaths"), "{text}"),
            "page" => assert!(text.contains("Dies more often."), "{text}"),
            _ => {
                assert!(
                    text.contains("was killed with memory to spare in 0 of 8"),
                    "{text}"
                );
                assert!(text.contains("102066 pages scanned"), "{format}: {text}");
            }
        }
    }
}

#[test]
fn deaths_that_surely_differ_come_before_the_table_and_others_after_it() {
    let place = |verdict: Verdict| {
        let text = &texts(&dead(verdict))[0].1;
        let [deaths, table] =
            ["Fisher's exact test", "metric"].map(|words| text.find(words).unwrap());
        deaths < table
    };
    assert!(place(Verdict::Regressed));
    assert!(!place(Verdict::Inconclusive { n_needed: None }));
}

#[test]
fn deaths_that_are_not_sure_neither_pass_nor_fail() {
    let texts = texts(&dead(Verdict::Inconclusive { n_needed: None }));
    let ktap = &texts[3].1;
    assert!(
        ktap.contains("ok 1 deaths # SKIP inconclusive 8 of 8 against 0 of 8"),
        "{ktap}"
    );
    assert!(!ktap.contains("not ok"), "{ktap}");
    assert!(!texts[4].1.contains("Dies more often"));
}
