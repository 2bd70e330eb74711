//! Snapshots of terminal output.

use pagetide_compare::history::{CellHistory, Change, History, HistoryValue, Order};
use pagetide_quantity::{Direction, Nanos, Unit};
use pagetide_record::ArenaKind;
use pagetide_report::draw::TextStyle;
use pagetide_report::terminal::show::Presence;
use pagetide_report::terminal::{Options, history, presence_maps, show, verdicts};

fn ascii(width: usize) -> TextStyle {
    TextStyle {
        ascii: true,
        ..TextStyle::plain(width)
    }
}

#[test]
fn two_variants_at_120_columns() {
    let text = verdicts(
        &crate::data::mglru(),
        &crate::data::about(),
        Options::default(),
        &TextStyle::plain(120),
    );
    insta::assert_snapshot!(text);
}

#[test]
fn two_variants_at_80_columns() {
    let text = verdicts(
        &crate::data::mglru(),
        &crate::data::about(),
        Options::default(),
        &TextStyle::plain(80),
    );
    insta::assert_snapshot!(text);
}

#[test]
fn two_variants_in_ascii_with_everything() {
    let options = Options {
        all: true,
        pictures: true,
    };
    let text = verdicts(
        &crate::data::mglru(),
        &crate::data::about(),
        options,
        &ascii(100),
    );
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn three_kernels_at_80_columns() {
    let text = verdicts(
        &crate::data::kernels(),
        &crate::data::about_kernels(),
        Options::default(),
        &TextStyle::plain(80),
    );
    insta::assert_snapshot!(text);
}

#[test]
fn three_kernels_at_50_columns_fold_into_panels() {
    let text = verdicts(
        &crate::data::kernels(),
        &crate::data::about_kernels(),
        Options::default(),
        &TextStyle::plain(50),
    );
    insta::assert_snapshot!(text);
}

#[test]
fn equal_records_say_identical() {
    let text = verdicts(
        &crate::data::same(),
        &crate::data::about(),
        Options::default(),
        &TextStyle::plain(100),
    );
    assert!(text.contains("identical to the bit"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_record_in_full() {
    let maps = [Presence {
        name: "pages".to_owned(),
        pages: crate::data::present(),
    }];
    insta::assert_snapshot!(show(&crate::data::record(), &maps, &TextStyle::plain(80)));
}

#[test]
fn a_record_in_full_in_ascii() {
    let maps = [Presence {
        name: "pages".to_owned(),
        pages: crate::data::present(),
    }];
    let text = show(&crate::data::record(), &maps, &ascii(80));
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn an_invalid_record_says_so_first() {
    let mut record = crate::data::record();
    record
        .results
        .invalid
        .push(pagetide_record::Invalid::NoReclaim);
    let text = show(&record, &[], &TextStyle::plain(80));
    let (invalid, metrics) = (
        text.find("Invalid:").unwrap(),
        text.find("Metrics").unwrap(),
    );
    assert!(invalid < metrics, "{text}");
    assert!(text.contains("reclaimed nothing"), "{text}");
}

#[test]
fn at_80_columns_every_metric_has_one_line_with_sign_and_interval_for_each_variant() {
    let comparison = crate::data::kernels();
    let options = Options {
        all: true,
        pictures: false,
    };
    let text = verdicts(
        &comparison,
        &crate::data::about_kernels(),
        options,
        &TextStyle::plain(80),
    );
    let others = comparison.columns.len() - 1;
    for group in &comparison.cells {
        for row in group.metrics.iter().filter(|row| !group.is_scale(row)) {
            let own = text.lines().filter(|line| {
                line.trim_start()
                    .strip_prefix(row.name.as_str())
                    .is_some_and(|rest| rest.starts_with(' '))
            });
            let told = own.filter(|line| {
                line.contains('[') && line.contains(['+', '−', '0']) || line.contains("identical")
            });
            assert!(told.count() >= others, "{}: {text}", row.name);
        }
    }
}

#[test]
fn names_of_metrics_that_differ_are_never_cut_to_the_same_text() {
    let mut comparison = crate::data::mglru();
    let group = &mut comparison.cells[0];
    let row = group.metrics[0].clone();
    for end in ["a", "b"] {
        let mut row = row.clone();
        row.name = format!("operation-during-the-snapshot-{end}");
        group.metrics.push(row);
    }
    let options = Options {
        all: true,
        pictures: false,
    };
    for width in [50, 80, 120] {
        let text = verdicts(
            &comparison,
            &crate::data::about(),
            options,
            &TextStyle::plain(width),
        );
        for end in ["a", "b"] {
            assert!(
                text.contains(&format!("operation-during-the-snapshot-{end}")),
                "{width}: {text}"
            );
        }
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let comparisons = [
        (crate::data::mglru(), crate::data::about()),
        (crate::data::kernels(), crate::data::about_kernels()),
        (crate::data::same(), crate::data::about()),
        (crate::data::poisoned(), crate::data::about_poisoned()),
    ];
    for width in [40, 50, 60, 72, 80, 100, 120, 200] {
        for text_style in [TextStyle::plain(width), ascii(width)] {
            for (comparison, about) in &comparisons {
                let options = Options {
                    all: true,
                    pictures: true,
                };
                let text = verdicts(comparison, about, options, &text_style);
                for line in text.lines() {
                    let wide = pagetide_report::draw::width(line);
                    assert!(wide <= width, "{wide} of {width}: {line}");
                }
            }
        }
    }
}

#[test]
fn hostile_names_cannot_steer_a_terminal_or_forge_a_line() {
    let text = verdicts(
        &crate::data::poisoned(),
        &crate::data::about_poisoned(),
        Options::default(),
        &TextStyle::plain(100),
    );
    assert!(
        text.chars()
            .all(|c| c == '\n' || !pagetide_report::draw::clean::is_unsafe(c)),
        "a control character got through"
    );
    assert!(text.len() < 20_000, "{} bytes", text.len());
    assert!(!text.lines().any(|line| line.starts_with("not ok")));

    let mut record = crate::data::record();
    let evil = crate::data::hostile();
    record.results.kernel_log = evil.clone();
    record.results.settings.insert(evil.clone(), evil.clone());
    record.results.facts.insert(evil.clone(), evil.clone());
    record.subject.scenario.clone_from(&evil);
    record.subject.variant.name.clone_from(&evil);
    record.maker.command.clone_from(&evil);
    record.wall.campaign.clone_from(&evil);
    for metric in &mut record.results.metrics {
        metric.name.clone_from(&evil);
    }
    let text = show(&record, &[], &TextStyle::plain(80));
    assert!(
        text.chars()
            .all(|c| c == '\n' || !pagetide_report::draw::clean::is_unsafe(c))
    );
    assert!(text.len() < 20_000, "{} bytes", text.len());
}

#[test]
fn colours_go_where_they_are_allowed_and_change_nothing_else() {
    let plain = TextStyle::plain(100);
    let coloured = TextStyle {
        colour: true,
        ..plain
    };
    let options = Options::default();
    let with = verdicts(
        &crate::data::mglru(),
        &crate::data::about(),
        options,
        &coloured,
    );
    let without = verdicts(
        &crate::data::mglru(),
        &crate::data::about(),
        options,
        &plain,
    );
    assert!(with.contains("\x1b[32m") && with.contains("\x1b[1;31m"));
    let mut stripped = String::new();
    let mut rest = with.as_str();
    while let Some((text, after)) = rest.split_once('\x1b') {
        stripped.push_str(text);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, without);
}

#[test]
fn presence_maps_stand_under_each_other_for_every_variant() {
    let map = |pages: Vec<bool>| Presence {
        name: "pages".to_owned(),
        pages,
    };
    let maps = std::collections::BTreeMap::from([
        ((0, 0), map(crate::data::present())),
        ((0, 1), map(vec![true; 100])),
    ]);
    let text = presence_maps(&crate::data::mglru(), &maps, &TextStyle::plain(80));
    assert!(text.contains("14,040 of 25,000 pages present"), "{text}");
    assert!(text.contains("100 of 100 pages present"), "{text}");
    assert_eq!(text.matches("smooth-sin-random").count(), 1, "{text}");
    assert!(
        !text.contains("swapbench"),
        "a cell without maps is not named: {text}"
    );
    insta::assert_snapshot!("presence_maps_of_two_variants", text);
    let plain = presence_maps(&crate::data::mglru(), &maps, &ascii(60));
    assert!(plain.is_ascii(), "{plain}");
    insta::assert_snapshot!("presence_maps_of_two_variants_in_ascii", plain);
}

#[test]
fn a_history_by_dates_keeps_the_time_of_day_beside_its_date() {
    let value = |session: usize| HistoryValue {
        record: format!("{session:016x}"),
        release: "6.12.117+deb12-cloud-amd64".to_owned(),
        variant: "mglru-off".to_owned(),
        seed: 1,
        started: Nanos::from_secs(1_795_207_180 + 7200 * session as u64),
        session,
        value: 1e9 + 1e8 * session as f64,
    };
    let change = Change {
        at: 1,
        effect: 1.1,
        is_ratio: true,
        p: 0.001,
    };
    let all = History {
        metric: "access-time".to_owned(),
        order: Order::Dates,
        cells: vec![CellHistory {
            label: "linear".to_owned(),
            cell: "0badc0de".to_owned(),
            arena: ArenaKind::Exact,
            unit: Unit::Nanos,
            direction: Direction::Lower,
            values: vec![value(0), value(1)],
            changes: vec![change],
            points: 2,
            left_out: 0,
        }],
    };
    for width in [120, 80, 60] {
        let text = history(&all, "access-time", &TextStyle::plain(width));
        assert!(text.contains("\n2026-11-20 20:39  "), "{width}: {text}");
        assert!(text.contains("\n2026-11-20 22:39  "), "{width}: {text}");
        let table = text.lines().skip(1).take_while(|line| !line.contains(": "));
        for line in table {
            assert!(line.chars().count() <= width, "{width}: {text}");
        }
    }
}

#[test]
fn kernels_of_suites_have_one_line_a_metric_at_80_columns_too() {
    let mut comparison = crate::data::kernels();
    let names = ["bookworm", "bookworm/6.12", "sid"];
    for (column, name) in comparison.columns.iter_mut().zip(names) {
        column.name = name.to_owned();
    }
    let options = Options {
        all: true,
        pictures: false,
    };
    let about = crate::data::about_kernels();
    let text = verdicts(&comparison, &about, options, &TextStyle::plain(80));
    let others = comparison.columns.len() - 1;
    let signs = ['✓', '✗', '≠', '≈', '?', '=', '#', '!'];
    for group in &comparison.cells {
        for row in group.metrics.iter().filter(|row| !group.is_scale(row)) {
            let own = text.lines().filter(|line| {
                let line = line.trim_start();
                let own = line.strip_prefix(row.name.as_str());
                own.is_some_and(|rest| rest.starts_with(' '))
            });
            let told = own.filter(|line| {
                let is_sure = line.contains('[') && line.contains(['+', '−', '0']);
                (is_sure || line.contains('=')) && line.contains(signs)
            });
            assert!(told.count() >= others, "{}: {text}", row.name);
        }
    }
    // A legend explains signs that have no words.
    let legend = text.lines().any(|line| line.contains("✗ regressed, "));
    assert!(legend || text.contains("✗ regressed\n"), "{text}");
    assert!(text.lines().any(|line| line.contains("bookworm/6.12")));
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}
