//! Tests of the papers' tables, with values that give the published headlines.

use std::collections::BTreeMap;
use std::io::Read;

use pagetide_compare::{Cell, Comparison, MetricRow, Overall, Values};
use pagetide_probe::meaning::{ReclaimTable, Row, RowId, RowUnit, Section, Value as RowValue};
use pagetide_quantity::{Direction, Nanos, Series, Unit};
use pagetide_record::SwapSpec;
use pagetide_report::paper::graphs::{PageState, RunData, accesses, graphs};
use pagetide_report::paper::{CpuTime, Extras, ProcessTimes, paper, vmregress};
use pagetide_report::terminal::show::Presence;

fn row(name: &str, unit: Unit, values: &[&[f64]]) -> MetricRow {
    MetricRow {
        name: name.to_owned(),
        unit,
        direction: Direction::Lower,
        primary: false,
        values: values
            .iter()
            .map(|list| Values {
                values: list.iter().copied().enumerate().collect(),
                absent: None,
            })
            .collect(),
        judgements: vec![None],
    }
}

fn comparison(scenario: &str, metrics: Vec<MetricRow>) -> Comparison {
    let cells: Vec<Cell> = vec![crate::data::cell(scenario, &[], SwapSpec::ZRAM, metrics)];
    Comparison {
        campaign: None,
        baseline: None,
        columns: vec![
            crate::data::column("before", "2.6.29", &[]),
            crate::data::column("after", "2.6.30", &[]),
        ],
        cells,
        alpha: 0.05,
        look: None,
        overall: Overall::Improved,
        cautions: Vec::new(),
        notes: Vec::new(),
        kinds: Vec::new(),
        explanations: Vec::new(),
    }
}

#[test]
fn contswap_shows_mean_and_deviation_of_four_times() {
    let spread = |mean: f64, deviation: f64| [mean - deviation, mean, mean + deviation];
    let (a, b) = (spread(44.97e9, 0.38e9), spread(25.26e9, 0.68e9));
    let (c, d) = (spread(172.66e9, 1.0e9), spread(165.93e9, 2.0e9));
    let shares: [&[f64]; 2] = [&[0.412], &[0.873]];
    let comparison = comparison(
        "contswap",
        vec![
            row("swap-in", Unit::Nanos, &[&a, &b]),
            row("total", Unit::Nanos, &[&c, &d]),
            row("contiguity", Unit::Share, &shares),
            row("user", Unit::Nanos, &[&[], &[0.5e9, 0.6e9]]),
        ],
    );
    let cpu = |user: u64, system: u64| CpuTime {
        user: Nanos(user * 10_000_000),
        system: Nanos(system * 10_000_000),
    };
    let extras = Extras {
        cpu: BTreeMap::from([((0, 0), vec![cpu(52, 2_900), cpu(54, 2_910)])]),
        ..Extras::default()
    };
    let text = paper(&comparison, &extras).unwrap();
    // The deviation divides by the number of runs minus one: 0.38 s for values 0.38 s below, at and above the mean.
    assert!(text.contains("44.97s (0.38s)"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn swapbench_shows_averages_and_the_relative_change() {
    let (a, b): ([&[f64]; 2], [&[f64]; 2]) = (
        [&[560_072_000.0], &[433_929_000.0]],
        [&[560_866_000.0], &[430_475_000.0]],
    );
    let comparison = comparison(
        "swapbench",
        vec![
            row("read-mean", Unit::Nanos, &a),
            row("write-mean", Unit::Nanos, &b),
        ],
    );
    let times = |read: f64, write: f64| ProcessTimes {
        read: Some(read * 1e9),
        write: Some(write * 1e9),
    };
    let extras = Extras {
        processes: BTreeMap::from([
            ((0, 0), vec![times(0.5, 0.4), times(0.75, 0.8)]),
            ((0, 1), vec![times(0.25, 0.5)]),
        ]),
        ..Extras::default()
    };
    let text = paper(&comparison, &extras).unwrap();
    assert!(
        text.contains("0.560072") && text.contains("0.433929"),
        "{text}"
    );
    assert!(text.contains("-23%"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn filecopy_shows_six_ways_with_their_ratio_and_what_came_later() {
    let times = [
        ("time-mm-sync-cp", 69.97, 61.68),
        ("time-rw-cp", 59.32, 58.60),
        ("time-rw-fadv-cp", 57.96, 57.96),
        ("time-mm-sync-madv-cp", 69.41, 62.54),
        ("time-mw-cp", 61.69, 63.11),
        ("time-splice-cp", 60.0, 30.0),
    ];
    let metrics = times
        .iter()
        .map(|(name, a, b)| {
            let values: [&[f64]; 2] = [&[a * 1e9], &[b * 1e9]];
            row(name, Unit::Nanos, &values)
        })
        .collect();
    let mut comparison = comparison("filecopy", metrics);
    // If a kernel does not support a way, the reason is one word.
    let lacking = comparison.cells[0].metrics.last_mut().unwrap();
    lacking.values[1] = Values {
        values: Vec::new(),
        absent: Some("not on this kernel".to_owned()),
    };
    let text = paper(&comparison, &Extras::default()).unwrap();
    // These are the published ratios of the headline.
    assert!(text.contains("88.15%") && text.contains("90.10%"), "{text}");
    insta::assert_snapshot!(text);
}

/// Some rows of the reclaim table: one row for each kind of value.
fn reclaim() -> ReclaimTable {
    let row = |id, section, name: &str, unit, value| Row {
        id,
        section,
        name: name.to_owned(),
        unit,
        value,
        check: None,
        note: None,
    };
    ReclaimTable {
        rows: vec![
            row(
                RowId::DirectReclaims,
                Section::Reclaim,
                "direct reclaims (Direct reclaims)",
                RowUnit::Events,
                RowValue::Count(941),
            ),
            row(
                RowId::TimeStalled,
                Section::Reclaim,
                "time stalled in direct reclaim (Time stalled direct reclaim (seconds))",
                RowUnit::Time,
                RowValue::Time(pagetide_quantity::Nanos(12_345_678)),
            ),
            row(
                RowId::CompactionSuccess,
                Section::Compaction,
                "Compaction success",
                RowUnit::Events,
                RowValue::NotOnThisKernel("no such event".to_owned()),
            ),
        ],
        pairs: Vec::new(),
        tasks: Vec::new(),
        memcgs: Vec::new(),
        losses: pagetide_probe::trace::Losses::default(),
        undecoded: 0,
        multi_generational: false,
    }
}

#[test]
fn highalloc_shows_whole_percents_and_points() {
    let shares = |a: f64, b: f64| -> [Vec<f64>; 2] { [vec![a], vec![b]] };
    let metrics = [
        ("success-1", shares(0.9047, 0.8999)),
        ("success-2", shares(0.9187, 0.9101)),
        ("success-rest", shares(0.9401, 0.9499)),
    ];
    let mut rows: Vec<MetricRow> = metrics
        .iter()
        .map(|(name, [a, b])| row(name, Unit::Share, &[a.as_slice(), b.as_slice()]))
        .collect();
    let latency = |name, a: &[f64], b: &[f64]| row(name, Unit::Nanos, &[a, b]);
    rows.push(latency("success-mean", &[2.5e6, 3.5e6], &[1e6]));
    rows.push(latency("success-deviation", &[0.5e6], &[0.25e6]));
    let (user, system): ([&[f64]; 2], [&[f64]; 2]) =
        ([&[3000e9], &[2900e9]], [&[245.43e9], &[180.0e9]]);
    rows.push(row("user", Unit::Nanos, &user));
    rows.push(row("system", Unit::Nanos, &system));
    let extras = Extras {
        reclaim: BTreeMap::from([((0, 1), reclaim())]),
        elapsed: BTreeMap::from([
            (
                (0, 0),
                vec![Nanos(2_050_000_000_000), Nanos(2_054_000_000_000)],
            ),
            ((0, 1), vec![Nanos(1_854_000_000_000)]),
        ]),
        ..Extras::default()
    };
    let text = paper(&comparison("highalloc", rows), &extras).unwrap();
    assert!(
        text.contains("90.00 ( 0.00%)") && text.contains("89.00 (-1.00%)"),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn vmregress_reports_one_run_with_its_zones_and_pages() {
    let mut record = crate::data::record();
    let zone = |free: u32| {
        format!(
            "Node 0, zone      DMA\n  per-node stats\n      nr_inactive_anon 5\n  pages free     {free}\n        boost    0\n        \
             min      12\n        low      15\n        high     18\n        spanned  4095\n        present  3998\nNode 0, zone  Movable\n  \
             pages free     0\n        min      0\n        spanned  0\n"
        )
    };
    let texts = &mut record.results.texts;
    texts.insert("zoneinfo-before".to_owned(), zone(3000));
    texts.insert("zoneinfo-after".to_owned(), zone(17));
    let maps = [Presence {
        name: "pages".to_owned(),
        pages: crate::data::present(),
    }];
    let text = vmregress::report(&record, &maps);
    assert!(text.is_ascii());
    assert!(!text.contains("Movable"), "{text}");
    insta::assert_snapshot!(text);
}

/// A cell of VM Regress over `pages` pages, with the total time of accesses under both variants, in seconds.
fn sine(scenario: &str, pages: u64, a: f64, b: f64) -> Cell {
    let values: [&[f64]; 2] = [&[a * 1e9], &[b * 1e9]];
    let metrics = vec![row("access-time", Unit::Nanos, &values)];
    let pages = pages.to_string();
    crate::data::cell(
        scenario,
        &[("pages", pages.as_str())],
        SwapSpec::ZRAM,
        metrics,
    )
}

#[test]
fn vmregress_shows_the_four_tests_in_the_originals_order_whatever_order_they_ran_in() {
    let mut comparison = comparison("smooth-sin", Vec::new());
    comparison.cells = vec![
        sine("smooth-sin-random", 50_000, 900.0, 300.0),
        sine("smooth-sin", 50_000, 30.0, 31.0),
        sine("smooth-sin", 25_000, 5.0, 5.25),
        sine("linear", 50_000, 1.0, 1.0),
    ];
    let text = paper(&comparison, &Extras::default()).unwrap();
    let line = |number: usize| {
        let start = format!("Test {number}: ");
        let mut lines = text.lines().filter(|line| line.starts_with(&start));
        lines
            .next()
            .unwrap()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        line(1),
        "Test 1: in page order, 25000 pages 5.00 s 5.25 s +0.25 s equal"
    );
    assert_eq!(line(2), "Test 2: at random, 25000 pages unrun unrun equal");
    assert_eq!(
        line(3),
        "Test 3: in page order, 50000 pages 30.00 s 31.00 s +1.00 s about equal; rmap keeps the used pages"
    );
    assert_eq!(
        line(4),
        "Test 4: at random, 50000 pages 900.00 s 300.00 s -600.00 s rmap faster by almost 10 minutes"
    );
    assert_eq!(text.matches("the four tests").count(), 1, "{text}");
}

#[test]
fn a_scenario_of_no_paper_is_one_error_that_names_it() {
    let why = paper(&comparison("usemem", Vec::new()), &Extras::default()).unwrap_err();
    assert!(why.to_string().contains("usemem"), "{why}");
}

#[test]
fn hostile_names_stay_text_in_the_originals_tables() {
    let mut poisoned = crate::data::poisoned();
    // The hostile names come from no paper, and the error that says so must be clean too.
    let why = paper(&poisoned, &Extras::default())
        .unwrap_err()
        .to_string();
    assert!(why.is_ascii() && !why.contains('\u{1b}') && why.len() < 1_000);
    for cell in &mut poisoned.cells {
        if let Some(subject) = &mut cell.subject {
            subject.scenario = "swapbench".to_owned();
        }
    }
    let text = paper(&poisoned, &Extras::default()).unwrap();
    assert!(text.is_ascii() && !text.contains('\u{1b}') && text.len() < 5_000);
}

/// Data of a run of VM Regress.
fn run() -> RunData {
    // There are 600 pages, and the first half is present. Page n is used n / 100 + 1 times. References go upwards
    // through all pages twice.
    let pages = (0..600_u32)
        .map(|page| PageState {
            present: page < 300,
            age: f64::from(600 - page),
            uses: f64::from(page / 100 + 1),
        })
        .collect();
    let log: Vec<u8> = (0..1200_u64)
        .flat_map(|number| {
            let page = number % 600;
            // Accesses to absent pages take 80 µs, other accesses 200 ns.
            let time = if page < 300 { 200 } else { 80_000 };
            (page << 36 | time).to_le_bytes()
        })
        .collect();
    let samples = 0..11_i64;
    RunData {
        accesses: accesses(log.as_slice(), 1200).unwrap(),
        pages,
        vmstat: Some(
            Series::new("vmstat")
                .int("time", Unit::Nanos, samples.clone().map(|n| n * 1_000_000))
                .int(
                    "nr_free_pages",
                    Unit::Pages,
                    samples.clone().map(|n| 1000 - 90 * n),
                )
                .int(
                    "pswpin",
                    Unit::Pages,
                    samples.map(|n| if n < 8 { 0 } else { 50 * n }),
                ),
        ),
    }
}

#[test]
fn five_graphs_are_drawn_and_each_shows_what_is_there() {
    let text = graphs(&run());
    assert!(text.is_ascii(), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn of_what_is_not_there_a_line_says_why() {
    let text = graphs(&RunData::default());
    for words in [
        "no log of every access",
        "state of pages",
        "run with --observe",
    ] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    assert!(!text.contains('|'), "{text}");
    // A log that is shorter than its stated size is an error: no picture of a part is drawn.
    assert!(accesses([0; 12].as_slice(), 2).is_err());
}

#[test]
fn of_a_long_log_every_so_manyth_access_is_drawn_at_its_own_time() {
    let entries = 1_u64 << 21;
    let endless = std::io::repeat(0).take(entries * 8);
    let drawn = accesses(endless, entries).unwrap();
    assert_eq!(drawn.len(), 1 << 20);
    assert_eq!(drawn[1].number, 2);
}
