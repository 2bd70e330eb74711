//! Tests of the explanation, as a paragraph under a comparison and in full.

use std::collections::BTreeMap;

use pagetide_compare::Comparison;
use pagetide_compare::explain::{
    Account, CellExplanation, Claim, CpuHolder, Explanation, ObservedPass, PassAccount,
};
use pagetide_compare::profiled::{Proof, SeedAccount};
use pagetide_probe::meaning::Part;
use pagetide_profile::{Holder, LockWait, Profile, account};
use pagetide_quantity::Unit;
use pagetide_report::draw::TextStyle;
use pagetide_report::mail;
use pagetide_report::terminal::{Options, verdicts};
use pagetide_report::why::{brief, explanations};
use pagetide_verdict::Verdict;
use pagetide_verdict::judgement::EffectKind;

/// Observed data of one side: number of pages read from swap, number of waits for these pages, and time of compaction
/// in milliseconds.
fn side(generations: &str, pages: f64, waits: f64, compaction: f64, attempts: bool) -> Account {
    let of = |pairs: &[(&str, f64)]| -> BTreeMap<String, f64> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect()
    };
    let growth = of(&[
        ("pgfault", 12_000.0 + pages),
        ("pgmajfault", waits),
        ("pswpin", pages),
        ("pgpgin", 4.0 * pages),
        ("swap_ra", pages - waits),
        ("swap_ra_hit", pages - waits),
        ("workingset_refault_anon", pages),
        ("pgsteal_anon", 8_000.0 + pages),
        ("pgsteal_direct", 4_000.0),
        ("pgsteal_kswapd", 4_000.0 + pages),
        ("pgscan_direct", 9_000.0),
        ("allocstall_movable", 120.0),
        ("compact_stall", compaction / 2.0),
        ("compact_migrate_scanned", compaction * 900.0),
        ("thp_fault_alloc", 30.0),
    ]);
    let times = BTreeMap::from([
        (Part::Compute, 75e6),
        (Part::Fault, 40e6 + pages * 9e3),
        (Part::Reclaim, 100e6),
        (Part::Compaction, compaction * 1e6),
        (Part::IoWait, waits * 85e3),
        (Part::RunQueue, 60e6 + pages * 4e3),
        (Part::Sleep, 2e9),
        (Part::Unexplained, waits * 1e3),
    ]);
    let queue = BTreeMap::from([
        (CpuHolder::Kswapd, 40e6 + pages * 4e3),
        (CpuHolder::Other, 20e6),
    ]);
    Account {
        trials: 6,
        singles: Vec::new(),
        elapsed: 900e6 + pages * 20e3,
        growth: growth.clone(),
        levels: of(&[
            ("free-at-start", 64e6),
            ("attempt-time", compaction * 1.1e6),
        ]),
        settings: BTreeMap::from([("lru_gen/enabled".to_owned(), generations.to_owned())]),
        passes: vec![ObservedPass {
            record: "5d62dccb7f476934".to_owned(),
            seed: 1,
            observed: PassAccount {
                attempts,
                times,
                queue,
                others: of(&[("kworker", 20e6)]),
                growth,
                ..PassAccount::default()
            },
        }],
    }
}

/// A comparison whose first cell is explained by these two sides. The timed trials surely differ in the time that the
/// sides show. A single observed seed is repeated as three seeds that nearly agree.
fn explained(a: &Account, b: &Account, notes: &[&str]) -> Comparison {
    let mut comparison = crate::data::mglru();
    let thrice = |side: &Account| {
        let mut side = side.clone();
        if let [pass] = side.passes.as_slice() {
            let pass = pass.clone();
            side.passes = (1..4)
                .map(|seed| {
                    let mut pass = pass.clone();
                    pass.seed = seed;
                    for time in pass.observed.times.values_mut() {
                        *time *= 1.0 + 0.001 * seed as f64;
                    }
                    pass
                })
                .collect();
        }
        side
    };
    let (a, b) = (thrice(a), thrice(b));
    let means = [&a, &b].map(|side| {
        let times: Vec<f64> = side
            .passes
            .iter()
            .map(|pass| pass.observed.active())
            .collect();
        0.95 * times.iter().sum::<f64>() / times.len() as f64
    });
    let claim = Claim {
        metric: "access-time".to_owned(),
        unit: Unit::Nanos,
        primary: true,
        verdict: if means[1] < means[0] {
            Verdict::Improved
        } else {
            Verdict::Regressed
        },
        means,
        medians: means,
        effect: means[1] / means[0],
        kind: EffectKind::Ratio,
    };
    comparison.explanations = vec![CellExplanation {
        cell: 0,
        column: 1,
        explanation: Explanation::of(&a, &b, &[claim]),
        account: None,
        notes: notes.iter().map(|&note| note.to_owned()).collect(),
    }];
    comparison
}

/// The text from the first line of the explanation to the next empty line.
fn paragraph(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.trim_start().starts_with("Why "))
        .take_while(|line| !line.trim().is_empty())
        .collect();
    lines.join("\n")
}

fn under_the_table(comparison: &Comparison, text_style: &TextStyle) -> String {
    paragraph(&verdicts(
        comparison,
        &crate::data::about(),
        Options::default(),
        text_style,
    ))
}

#[test]
fn the_paragraph_under_a_comparison() {
    let a = side("0x0000", 9_000.0, 2_000.0, 4.0, false);
    let b = side("0x0007", 16_000.0, 5_000.0, 4.0, false);
    let found = explained(
        &a,
        &b,
        &["observed record 0badc0de tells of no task's time"],
    );
    insta::assert_snapshot!(under_the_table(&found, &TextStyle::plain(100)));
    let plain = TextStyle {
        ascii: true,
        ..TextStyle::plain(60)
    };
    let text = under_the_table(&found, &plain);
    assert!(text.is_ascii(), "{text}");
    insta::assert_snapshot!("the_paragraph_in_ascii_at_60_columns", text);
    insta::assert_snapshot!(
        "the_paragraph_in_a_mail",
        paragraph(&mail::mail(&found, &crate::data::about(), true))
    );
}

#[test]
fn under_a_table_an_explanation_takes_at_most_eight_lines_whatever_the_width() {
    let a = side("0x0000", 9_000.0, 2_000.0, 60.0, false);
    let b = side("0x0007", 16_000.0, 5_000.0, 4.0, false);
    let long =
        "observed record 0badc0de tells of no task's time, and of nothing else either ".repeat(9);
    for notes in [&[][..], &[long.as_str()]] {
        let found = explained(&a, &b, notes);
        for width in [60, 72, 80, 100, 120, 200] {
            let text = under_the_table(&found, &TextStyle::plain(width));
            // A note about one side is shown together with the explanation's largest cause.
            let biggest = &found.explanations[0].explanation.findings[0];
            assert!(
                text.contains(&biggest.mechanism.to_string()),
                "{width}: {text}"
            );
            let own: Vec<&str> = text
                .lines()
                .take_while(|line| line.starts_with("  ") && !line.starts_with("  Also"))
                .collect();
            assert!(own.len() <= 8, "{width}: {text}");
        }
    }
}

/// Position of zero difference in the first waterfall of a page, and class, left end and right end of each bar.
fn waterfall(page: &str) -> (f64, Vec<(String, f64, f64)>) {
    let table = page.split("<table class=\"waterfall\">").nth(1).unwrap();
    let table = table.split("</table>").next().unwrap();
    let between = |text: &str, from: &str, to: &str| -> String {
        let rest = text.split_once(from).unwrap().1;
        rest.split_once(to).unwrap().0.to_owned()
    };
    let null = between(table, "<path class=\"null\" d=\"M", " 0V");
    let bars = table.split("<svg class=\"step ").skip(1).map(|svg| {
        let bar = between(svg, "<rect class=\"effect\" ", "/>");
        let x: f64 = between(&bar, "x=\"", "\"").parse().unwrap();
        let width: f64 = between(&bar, "width=\"", "\"").parse().unwrap();
        (svg.split('"').next().unwrap().to_owned(), x, x + width)
    });
    (null.parse().unwrap(), bars.collect())
}

#[test]
fn the_page_shows_the_reasons_below_the_verdicts_as_bars_that_begin_where_the_one_before_ended() {
    let a = side("0x0000", 9_000.0, 2_000.0, 60.0, false);
    let b = side("0x0007", 16_000.0, 5_000.0, 4.0, false);
    for (a, b) in [(&a, &b), (&b, &a)] {
        let comparison = explained(a, b, &[]);
        let explanation = &comparison.explanations[0].explanation;
        let page = crate::data::page(&comparison);
        let cells = page.find("id=\"cells\"").unwrap();
        assert!(page.find("<h3 id=\"why\">").unwrap() < cells);
        let (null, bars) = waterfall(&page);
        let (last, steps) = bars[1..].split_last().unwrap();
        // The longer time has the longer bar: both bars start at the same position.
        let first = &bars[0];
        assert!((first.1 - last.1).abs() < 0.3, "{first:?} {last:?}");
        let [time_a, time_b] = explanation.time;
        assert_eq!(last.2 > first.2, time_b > time_a, "{first:?} {last:?}");
        assert!((first.2 - null).abs() < 0.3 && first.2 - first.1 > 20.0);
        assert!(steps.len() >= explanation.findings.len() && steps.len() >= 2);
        let directions: Vec<&str> = steps.iter().map(|(class, ..)| class.as_str()).collect();
        assert!(
            directions.contains(&"less") && directions.contains(&"more"),
            "parts that oppose each other: {directions:?}"
        );
        let mut at = null;
        for (class, left, right) in steps {
            let rises = match class.as_str() {
                "less" => false,
                "more" => true,
                _ => (left - at).abs() < (right - at).abs(),
            };
            let (begin, end) = if rises { (left, right) } else { (right, left) };
            assert!(
                (begin - at).abs() < 0.3,
                "{class} begins at {begin}, not {at}"
            );
            at = *end;
        }
        // The bar of the other variant ends where the last step ends.
        assert!((last.2 - at).abs() < 0.3, "{last:?}");
        // The length of a step is its effect: all steps have the same scale.
        let scale = (at - null) / explanation.difference();
        for (finding, (_, left, right)) in explanation.findings.iter().zip(steps) {
            assert!((right - left - (finding.effect * scale).abs()).abs() < 0.3);
        }
    }
}

#[test]
fn what_several_seeds_say_stands_with_its_range() {
    let side = |generations: &str, pages: &[f64]| {
        let mut all = pages.iter().zip(1..).map(|(pages, seed)| {
            let mut side = side(generations, *pages, pages / 4.0, 4.0, false);
            side.passes[0].seed = seed;
            side
        });
        let mut first = all.next().unwrap();
        first.passes.extend(all.flat_map(|other| other.passes));
        first
    };
    let a = side("0x0000", &[9_000.0, 9_200.0, 8_800.0]);
    let b = side("0x0007", &[16_000.0, 14_000.0, 19_000.0]);
    let found = explained(&a, &b, &[]);
    insta::assert_snapshot!(under_the_table(&found, &TextStyle::plain(100)));
}

#[test]
fn an_explanation_in_full_tells_where_the_time_of_attempts_went() {
    let a = side("0x0007", 0.0, 0.0, 4.0, true);
    let b = side("0x0007", 0.0, 0.0, 60.0, true);
    insta::assert_snapshot!(explanations(
        &explained(&a, &b, &[]),
        &TextStyle::plain(100)
    ));
}

#[test]
fn the_locks_whose_waits_changed_stand_under_the_account_and_on_the_page_in_the_same_words() {
    let profile = |time: u64, count: u64| Profile {
        elapsed: 1_000,
        locks: vec![LockWait {
            stack: ["workload", "zcomp_stream_get", "__mutex_lock", "schedule"]
                .map(str::to_owned)
                .into(),
            holder: Some(Holder {
                task: "kswapd".to_owned(),
                function: "zram_submit_bio".to_owned(),
                was_in: "run queue: irqentry_exit".to_owned(),
            }),
            count,
            time,
            idle: 0,
        }],
        ..Profile::new()
    };
    let a = side("0x0000", 9_000.0, 2_000.0, 60.0, false);
    let b = side("0x0007", 16_000.0, 5_000.0, 4.0, false);
    let proof = || Proof {
        digest: "d".to_owned(),
        timed: Some("d".to_owned()),
        gap: 0,
    };
    let texts = |sides: [Profile; 2]| {
        let mut comparison = explained(&a, &b, &[]);
        comparison.explanations[0].account = Some(SeedAccount {
            seed: 1,
            records: ["a", "b"].map(str::to_owned),
            account: account(&sides[0], &sides[1]),
            proofs: [proof(), proof()],
            each: Vec::new(),
        });
        let terminal = explanations(&comparison, &TextStyle::plain(200));
        [terminal, crate::data::page(&comparison)]
    };
    let row =
        "zcomp_stream_get, held by kswapd in zram_submit_bio: 2.000 ms → 1.500 ms, 9 → 4 waits";
    let is_told = |text: &String| text.contains("waits for locks") && text.contains(row);
    let [terminal, page] = texts([profile(2_000_000, 9), profile(1_500_000, 4)]);
    assert!(is_told(&terminal), "{terminal}");
    assert!(is_told(&page));
    for text in texts([profile(2_000_000, 9), profile(2_000_000, 4)]) {
        assert!(!text.contains("waits for locks"), "{text}");
    }
}

#[test]
fn a_difference_without_a_cause_is_not_explained() {
    let a = side("0x0007", 9_000.0, 2_000.0, 4.0, false);
    let mut b = a.clone();
    let times = &mut b.passes[0].observed.times;
    times.insert(Part::Unexplained, 700e6);
    insta::assert_snapshot!(under_the_table(
        &explained(&a, &b, &[]),
        &TextStyle::plain(100)
    ));
}

#[test]
fn small_sure_causes_are_not_listed_under_the_words_no_sure_cause_found() {
    let a = side("0x0007", 9_000.0, 2_000.0, 4.0, false);
    let mut b = side("0x0007", 9_000.0, 2_000.0, 44.0, false);
    b.passes[0].observed.times.insert(Part::Unexplained, 700e6);
    let found = explained(&a, &b, &[]);
    let text = under_the_table(&found, &TextStyle::plain(400));
    assert!(text.contains("\n    1. compaction"), "{text}");
    let full = explanations(&found, &TextStyle::plain(400));
    let mail = brief(&found, &found.explanations[0], 2);
    for text in [&text, &full, &mail] {
        assert!(!text.contains("no sure cause"), "{text}");
        let small = "only small sure causes, each below a tenth: ";
        assert!(text.contains(small), "{text}");
    }
    assert!(
        mail.contains("tenth: compaction and fragmentation, 40"),
        "{mail}"
    );
}

#[test]
fn nothing_is_ranked_where_no_time_surely_differs() {
    let a = side("0x0000", 9_000.0, 2_000.0, 4.0, false);
    let b = side("0x0007", 16_000.0, 5_000.0, 4.0, false);
    let mut comparison = crate::data::mglru();
    let refaults = Claim {
        metric: "refaults".to_owned(),
        unit: Unit::Count,
        primary: false,
        verdict: Verdict::Regressed,
        means: [9_000.0, 16_000.0],
        medians: [9_000.0, 16_000.0],
        effect: 16.0 / 9.0,
        kind: EffectKind::Ratio,
    };
    comparison.explanations = vec![CellExplanation {
        cell: 0,
        column: 1,
        explanation: Explanation::of(&a, &b, &[refaults]),
        account: None,
        notes: Vec::new(),
    }];
    insta::assert_snapshot!(under_the_table(&comparison, &TextStyle::plain(100)));
}

#[test]
fn an_explained_time_is_related_to_the_judged_one() {
    // A process next to the copy became nearly five times slower, but it has only a small part of the total time.
    let a = side("0x0000", 9_000.0, 2_000.0, 4.0, false);
    let b = side("0x0000", 16_000.0, 5_000.0, 4.0, false);
    let whole = |side: &Account| side.passes[0].observed.active();
    let victim = |means: [f64; 2]| Claim {
        metric: "victim-time".to_owned(),
        unit: Unit::Nanos,
        primary: true,
        verdict: Verdict::Regressed,
        means,
        medians: means,
        effect: means[1] / means[0],
        kind: EffectKind::Ratio,
    };
    let text = |a: &Account, b: &Account, claim: Claim| {
        let mut comparison = explained(a, b, &[]);
        let passes = |side: &Account| {
            let mut side = side.clone();
            side.passes = vec![side.passes[0].clone(); 3];
            side
        };
        comparison.explanations[0].explanation = Explanation::of(&passes(a), &passes(b), &[claim]);
        let text = under_the_table(&comparison, &TextStyle::plain(400));
        text.lines().next().unwrap().to_owned()
    };
    let small = text(&a, &b, victim([0.01 * whole(&a), 0.0483 * whole(&a)]));
    assert!(
        small.contains("no sure difference in a whole time to explain"),
        "{small}"
    );
    let part = text(&a, &b, victim([0.3 * whole(&a), 0.32 * whole(&a)]));
    assert!(
        part.contains("victim-time regressed") && part.contains("not the same time"),
        "{part}"
    );
    // The judged time became longer, but the total time became shorter.
    let against = text(&b, &a, victim([0.3 * whole(&a), 1.45 * whole(&a)]));
    assert!(
        against.contains("differ the other way, so they explain nothing"),
        "{against}"
    );
    let same = text(&a, &b, victim([whole(&a), whole(&b)]));
    assert!(
        !same.contains("not the same time") && same.contains("in all processes' time"),
        "{same}"
    );
}

#[test]
fn waits_of_an_unknown_cause_are_told_with_their_number_and_time() {
    let of = |time: f64, longest: f64| {
        let mut side = side("0x0000", 9_000.0, 9_000.0, 4.0, false);
        let observed = &mut side.passes[0].observed;
        observed.times.insert(Part::IoWait, time);
        observed.waits.insert(Part::IoWait, 7.0);
        observed.longest.insert(Part::IoWait, longest);
        side.settings.insert("swap".to_owned(), "zram".to_owned());
        side
    };
    let found = explained(&of(14e6, 3e6), &of(714e6, 200e6), &[]);
    let text = under_the_table(&found, &TextStyle::plain(400));
    assert!(
        text.contains("1. waits outside reclaim, cause not recorded: 701.4 ms more"),
        "{text}"
    );
    assert!(text.contains("waits 7 → 7; time a wait"), "{text}");
}

#[test]
fn shares_beyond_the_whole_are_not_printed() {
    let mut a = side("0x0000", 9_000.0, 9_000.0, 4.0, false);
    let mut b = side("0x0000", 4_000.0, 4_000.0, 4.0, false);
    for (side, wait, swap) in [(&mut a, 85e3, "ssd:80us"), (&mut b, 140e3, "ssd:130us")] {
        side.settings.insert("swap".to_owned(), swap.to_owned());
        for pass in &mut side.passes {
            let waits = pass.observed.growth["pgmajfault"];
            pass.observed.times.insert(Part::IoWait, waits * wait);
        }
    }
    let text = under_the_table(&explained(&a, &b, &[]), &TextStyle::plain(100));
    assert!(
        text.contains("against the rest") && !text.contains("% of it"),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn no_part_is_called_a_part_of_a_whole_that_is_smaller() {
    // More pages come back, but half a second of compaction is saved.
    let a = side("0x0007", 9_000.0, 2_000.0, 600.0, false);
    let b = side("0x0007", 16_000.0, 5_000.0, 4.0, false);
    let found = explained(&a, &b, &[]);
    let explanation = &found.explanations[0].explanation;
    let whole = explanation.difference();
    assert!(explanation.findings[0].effect.abs() > whole.abs());
    let mail = brief(&found, &found.explanations[0], 2);
    assert!(mail.contains("compaction and fragmentation, 59"), "{mail}");
    assert!(mail.contains("; all together "), "{mail}");
    assert!(!mail.contains("ms of "), "{mail}");
    // If all effects have the same sign, each is reported as a part of the whole.
    let b = side("0x0007", 9_000.0, 2_000.0, 4.0, false);
    let found = explained(&a, &b, &[]);
    let mail = brief(&found, &found.explanations[0], 2);
    assert!(mail.contains(" ms of "), "{mail}");
    assert!(!mail.contains("all together"), "{mail}");
}
