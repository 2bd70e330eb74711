//! Explanations of made-up accounts: what adds up, what ranks first, and what is not said.

// Helpers of tests may unwrap as tests do.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use pagetide_compare::explain::{
    Account, Ahead, Answer, Basis, Claim, Explanation, Mechanism, Observed, ObservedPass, Reading,
    SiteTime, Source,
};
use pagetide_probe::meaning::{Part, RowId};
use pagetide_quantity::{Direction, Unit};
use pagetide_verdict::judgement::EffectKind;
use pagetide_verdict::rng::Xoshiro;
use pagetide_verdict::{Data, Family, MetricSample, Verdict, judge};
use proptest::prelude::*;

const COUNTERS: [&str; 14] = [
    "pgfault",
    "pgmajfault",
    "pswpin",
    "pswpout",
    "pgpgin",
    "swap_ra",
    "swap_ra_hit",
    "workingset_refault_anon",
    "pgsteal_anon",
    "pgsteal_direct",
    "pgscan_direct",
    "pgsteal_kswapd",
    "allocstall_movable",
    "compact_stall",
];

/// A side with these growths and times.
fn account(growth: &[(&str, f64)], times: &[(Part, f64)]) -> Account {
    let growth: BTreeMap<String, f64> = growth
        .iter()
        .map(|(name, value)| ((*name).to_owned(), *value))
        .collect();
    let times: BTreeMap<Part, f64> = times.iter().copied().collect();
    Account {
        trials: 4,
        elapsed: times.values().sum(),
        growth: growth.clone(),
        passes: vec![ObservedPass {
            record: "0123456789abcdef".into(),
            seed: 1,
            observed: Observed {
                times,
                growth,
                ..Observed::default()
            },
        }],
        ..Account::default()
    }
}

/// What a workload of 10,000 faults does that reads back so many pages, by waits of so many pages, each so long.
fn reading(pages: f64, each: f64, wait: f64) -> Account {
    let waits = pages / each;
    account(
        &[
            ("pgfault", 10_000.0 + pages),
            ("pgmajfault", waits),
            ("pswpin", pages),
            ("pgpgin", pages * 4.0),
            ("swap_ra", pages - waits),
            ("swap_ra_hit", pages - waits),
            ("workingset_refault_anon", pages),
            ("pgsteal_anon", 5_000.0 + pages),
            ("pgsteal_kswapd", 5_000.0 + pages),
        ],
        &[
            (Part::Compute, 50e6),
            (Part::Fault, 20e6 + pages * 2e3),
            (Part::IoWait, waits * wait),
            (Part::Sleep, 1e9),
        ],
    )
}

/// The time that is explained of a side.
fn time(side: &Account) -> f64 {
    let times: Vec<f64> = side
        .passes
        .iter()
        .map(|pass| pass.observed.active())
        .collect();
    if times.is_empty() {
        side.elapsed
    } else {
        times.iter().sum::<f64>() / times.len() as f64
    }
}

/// What a comparison says whose timed trials surely differ in the time that is explained. One observed seed is taken for
/// three that agree.
fn explain(a: &Account, b: &Account) -> Explanation {
    let [a, b] = [a, b].map(|side| {
        let mut side = side.clone();
        if let [pass] = side.passes.as_slice() {
            let pass = pass.clone();
            side.passes = (1..4)
                .map(|seed| ObservedPass {
                    seed,
                    ..pass.clone()
                })
                .collect();
        }
        side.singles = vec![side.clone(); 3];
        side
    });
    let means = [time(&a), time(&b)];
    let claim = Claim {
        metric: "run".into(),
        unit: Unit::Nanos,
        primary: true,
        verdict: if means[1] < means[0] {
            Verdict::Improved
        } else {
            Verdict::Regressed
        },
        means,
        effect: means[1] / means[0],
        kind: EffectKind::Ratio,
    };
    Explanation::of(&a, &b, &[claim])
}

fn first(a: &Account, b: &Account) -> (Mechanism, f64) {
    let found = explain(a, b);
    assert_eq!(found.answer, Answer::Explained, "{found:#?}");
    (found.findings[0].mechanism, found.findings[0].effect)
}

#[test]
fn each_planted_cause_of_waiting_ranks_first_with_its_sign() {
    let base = reading(8_000.0, 1.0, 100e3);
    for (changed, expected) in [
        (reading(2_000.0, 1.0, 100e3), Mechanism::EvictionChoice),
        (reading(8_000.0, 8.0, 120e3), Mechanism::ReadAhead),
    ] {
        let (mechanism, effect) = first(&base, &changed);
        assert_eq!(mechanism, expected);
        assert!(effect < 0.0);
        let (mechanism, back) = first(&changed, &base);
        assert_eq!(mechanism, expected);
        assert!((effect + back).abs() < 1.0);
    }
    let mut slow = reading(8_000.0, 1.0, 2e6);
    slow.settings.insert("swap".into(), "ssd:2ms".into());
    let (mechanism, effect) = first(&base, &slow);
    assert_eq!(mechanism, Mechanism::DeviceLatency);
    assert!((effect - 8_000.0 * 1.9e6).abs() < 1e6, "{effect}");
}

#[test]
fn longer_waits_on_one_and_the_same_device_are_its_queue_or_not_explained() {
    let of = |swap: &str, wait: f64, request: Option<f64>| {
        let mut side = reading(8_000.0, 1.0, wait);
        side.settings.insert("swap".into(), swap.into());
        side.passes[0].observed.read = request;
        side
    };
    // Nothing was read from a device that takes time, or its requests took no longer: nobody saw what the waits were for.
    for (swap, request) in [("zram", None), ("ssd:80us", Some(80e3)), ("/dev/vdb", None)] {
        let (slow, quick) = (of(swap, 9e3, request), of(swap, 4e3, request));
        assert_eq!(first(&slow, &quick).0, Mechanism::UnknownWaits, "{swap}");
    }
    let (slow, quick) = (
        of("ssd:80us", 200e3, Some(190e3)),
        of("ssd:80us", 90e3, Some(82e3)),
    );
    assert_eq!(first(&slow, &quick).0, Mechanism::DeviceQueue);
    // A real device may have become slower.
    let (slow, quick) = (
        of("/dev/vdb", 200e3, Some(190e3)),
        of("/dev/vdb", 90e3, Some(82e3)),
    );
    assert_eq!(first(&slow, &quick).0, Mechanism::DeviceLatency);
    let (slow, quick) = (
        of("ssd:160us", 200e3, Some(190e3)),
        of("ssd:80us", 90e3, Some(82e3)),
    );
    assert_eq!(first(&slow, &quick).0, Mechanism::DeviceLatency);
}

/// The mechanism's evidence as text, a name and two numbers each.
fn told(found: &Explanation, mechanism: Mechanism) -> Vec<(String, [f64; 2])> {
    let number = |reading: &Reading| match reading {
        Reading::Number(number) => *number,
        Reading::Text(_) => f64::NAN,
    };
    let mut of = found.findings.iter();
    of.find(|finding| finding.mechanism == mechanism)
        .unwrap_or_else(|| panic!("{mechanism} is not in {found:#?}"))
        .evidence
        .iter()
        .map(|piece| {
            // Means of three equal numbers differ from them in the last digit.
            let numbers = [&piece.before, &piece.after].map(|reading| number(reading).round());
            (piece.name.clone(), numbers)
        })
        .collect()
}

#[test]
fn a_few_long_waits_beside_thousands_of_swap_ins_are_told_as_what_they_are() {
    // On zram a swap-in does not sleep. Seven tasks slept on something else, on one side longer than on the other.
    let of = |pages: f64, slept: f64, longest: f64| {
        let mut side = reading(pages, 1.0, 0.0);
        let observed = &mut side.passes[0].observed;
        observed.times.insert(Part::IoWait, slept);
        observed.waits.insert(Part::IoWait, 7.0);
        observed.longest.insert(Part::IoWait, longest);
        side.settings.insert("swap".into(), "zram".into());
        side
    };
    let found = explain(&of(6_000.0, 14e6, 3e6), &of(6_776.0, 154e6, 40e6));
    let waits = told(&found, Mechanism::UnknownWaits);
    assert!((found.findings[0].effect - 140e6).abs() < 1.0, "{found:#?}");
    let expected = [
        ("time blocked outside reclaim", [14e6, 154e6]),
        ("waits", [7.0, 7.0]),
        ("time a wait", [2e6, 22e6]),
        ("the longest", [3e6, 40e6]),
    ];
    assert_eq!(waits, expected.map(|(name, both)| (name.to_owned(), both)));
    // Stacks name the place, if they do on both sides and for all of that time.
    let with = |mut side: Account, sites: &[(&str, f64, f64)]| {
        let of = |(site, count, time): &(&str, f64, f64)| SiteTime {
            part: Part::IoWait,
            site: (*site).to_owned(),
            count: *count,
            time: *time,
        };
        side.passes[0].observed.sites = sites.iter().map(of).collect();
        side
    };
    let lock = "__mutex_lock in zcomp_stream_get (a mutex)";
    let quick = || of(6_000.0, 14e6, 3e6);
    let slow = || of(6_776.0, 154e6, 40e6);
    let a = with(quick(), &[(lock, 4.0, 10e6), ("other", 3.0, 4e6)]);
    let b = with(slow(), &[("other", 3.0, 3e6), (lock, 4.0, 151e6)]);
    let named = told(&explain(&a, &b), Mechanism::SeenWaits);
    assert_eq!(named[0], (format!("asleep in {lock}"), [10e6, 151e6]));
    assert_eq!(named[1], ("waits there".to_owned(), [4.0, 4.0]));
    assert_eq!(named[2], ("time a wait there".to_owned(), [2.5e6, 37.75e6]));
    assert!(
        named.iter().all(|(name, _)| !name.contains("other")),
        "{named:?}"
    );
    let partly = with(slow(), &[(lock, 1.0, 15e6)]);
    assert_eq!(first(&a, &partly).0, Mechanism::UnknownWaits);
    assert_eq!(first(&quick(), &b).0, Mechanism::UnknownWaits);
    // Where each swap-in sleeps, more of them are why.
    let sleeping = |pages: f64| {
        let mut side = reading(pages, 1.0, 100e3);
        side.passes[0].observed.waits.insert(Part::IoWait, pages);
        side
    };
    let found = explain(&sleeping(6_000.0), &sleeping(9_000.0));
    assert_eq!(found.findings[0].mechanism, Mechanism::EvictionChoice);
    // One side alone that does not sleep has another device, and is no case of its own.
    let mut quick = of(6_000.0, 1e3, 1e3);
    quick.passes[0].observed.waits.insert(Part::IoWait, 1.0);
    let mut slow = sleeping(6_000.0);
    slow.settings.insert("swap".into(), "ssd:80us".into());
    assert_eq!(first(&quick, &slow).0, Mechanism::DeviceLatency);
}

#[test]
fn waits_within_reclaim_are_write_back_only_as_far_as_the_kernel_throttled() {
    let of = |wait: f64, throttled: f64| {
        let mut side = account(
            &[
                ("pgfault", 10_000.0),
                ("pgsteal_anon", 8_000.0),
                ("pswpout", 8_000.0 + wait / 1e6),
            ],
            &[(Part::Compute, 50e6), (Part::ReclaimWait, wait)],
        );
        let waits = &mut side.passes[0].observed.waits;
        waits.insert(Part::ReclaimWait, 50.0);
        let rows = &mut side.passes[0].observed.rows;
        rows.insert(RowId::TimeThrottled, throttled);
        side
    };
    assert_eq!(
        first(&of(10e6, 0.0), &of(477e6, 0.0)).0,
        Mechanism::ReclaimWaits
    );
    let unknown = explain(&of(10e6, 0.0), &of(477e6, 0.0));
    let waits = told(&unknown, Mechanism::ReclaimWaits);
    assert!(waits.contains(&("waits".into(), [50.0; 2])), "{waits:?}");
    assert!(
        waits.contains(&("time a wait".into(), [200e3, 9.54e6])),
        "{waits:?}"
    );
    assert_eq!(
        first(&of(10e6, 5e6), &of(477e6, 460e6)).0,
        Mechanism::WriteBack
    );
    let half = explain(&of(10e6, 0.0), &of(410e6, 200e6));
    let effect = |mechanism| {
        let mut of = half
            .findings
            .iter()
            .filter(|finding| finding.mechanism == mechanism);
        of.next().unwrap().effect
    };
    assert!(
        (effect(Mechanism::WriteBack) - 200e6).abs() < 1e6,
        "{half:#?}"
    );
    assert!(
        (effect(Mechanism::ReclaimWaits) - 200e6).abs() < 1e6,
        "{half:#?}"
    );
}

#[test]
fn what_moved_against_an_effect_is_no_evidence_of_it() {
    // Fewer pages came back, and yet more of them counted as refaults.
    let (a, mut b) = (reading(8_000.0, 1.0, 100e3), reading(6_000.0, 1.0, 100e3));
    b.passes[0]
        .observed
        .growth
        .insert("workingset_refault_anon".into(), 9_000.0);
    let found = explain(&a, &b);
    let refaults = &found.findings[0];
    assert_eq!(refaults.mechanism, Mechanism::EvictionChoice);
    assert!(refaults.effect < 0.0);
    let names: Vec<&str> = refaults
        .evidence
        .iter()
        .map(|piece| piece.name.as_str())
        .collect();
    assert!(
        names.contains(&"pswpin") && !names.contains(&"workingset_refault_anon"),
        "{names:?}"
    );
    for finding in &found.findings {
        for piece in &finding.evidence {
            assert_ne!(piece.source, Source::Timed, "{piece:?}");
        }
    }
    // The timed trials of all seeds are another matter: here they moved the other way.
    let (mut a, mut b) = (reading(2_000.0, 1.0, 100e3), reading(8_000.0, 1.0, 100e3));
    std::mem::swap(&mut a.growth, &mut b.growth);
    let found = explain(&a, &b);
    let refaults = found.findings[0]
        .evidence
        .iter()
        .find(|e| e.name == "workingset_refault_anon");
    assert_eq!(
        (&refaults.unwrap().before, &refaults.unwrap().after),
        (&Reading::Number(2_000.0), &Reading::Number(8_000.0))
    );
}

/// Trials of a workload of a machine on which nothing differs but chance: timed ones, and the observed ones of three seeds.
fn by_chance(random: &mut Xoshiro) -> (Account, Vec<f64>) {
    let mut draw = || {
        let near = |level: f64, random: &mut Xoshiro| level * (0.1 * random.normal()).exp();
        let (pages, wait) = (near(8_000.0, random), near(100e3, random));
        reading(pages, near(2.0, random).max(1.0), wait)
    };
    let mut side = draw();
    side.passes.extend((1..3).map(|_| draw().passes[0].clone()));
    for (pass, seed) in side.passes.iter_mut().zip(1..) {
        pass.seed = seed;
    }
    let timed: Vec<f64> = (0..8).map(|_| time(&draw())).collect();
    (side, timed)
}

/// Claims of timed trials, as a comparison makes them.
fn claims(a: &[f64], b: &[f64]) -> Vec<Claim> {
    let sample = MetricSample {
        name: "run".into(),
        unit: "nanos".into(),
        direction: Direction::Lower,
        primary: true,
        margin: None,
        scale: pagetide_verdict::sample::Scale::Auto,
        data: Data::paired(a, b),
    };
    let judged = judge(&Family::new(1, vec![sample])).unwrap().remove(0);
    if !judged.verdict.is_difference() {
        return Vec::new();
    }
    vec![Claim {
        metric: "run".into(),
        unit: Unit::Nanos,
        primary: true,
        verdict: judged.verdict,
        means: [judged.a.unwrap().mean, judged.b.unwrap().mean],
        effect: judged.effect.unwrap().estimate,
        kind: EffectKind::Ratio,
    }]
}

#[test]
fn comparisons_in_which_nothing_differs_get_no_cause() {
    let mut random = Xoshiro::new(77);
    let (mut causes, mut unsure) = (0, 0);
    for _ in 0..200 {
        let ((a, timed_a), (b, timed_b)) = (by_chance(&mut random), by_chance(&mut random));
        let found = Explanation::of(&a, &b, &claims(&timed_a, &timed_b));
        causes += usize::from(!found.findings.is_empty());
        unsure += usize::from(found.answer == Answer::NotSure);
    }
    // A false verdict comes in one comparison of twenty, and a cause needs that and seeds that agree besides.
    assert!(causes <= 4 && unsure >= 180, "{causes} {unsure}");
}

#[test]
fn an_effect_that_seeds_do_not_agree_on_is_counted_with_the_others() {
    let of = |waits: [f64; 3]| {
        let mut sides = waits.map(|wait| reading(8_000.0, 1.0, wait)).into_iter();
        let mut side = sides.next().unwrap();
        side.passes
            .extend(sides.map(|other| other.passes[0].clone()));
        for (pass, seed) in side.passes.iter_mut().zip(1..) {
            pass.seed = seed;
            pass.observed.levels.insert("free-at-start".into(), 64e6);
        }
        side.settings.insert("swap".into(), "zram".into());
        side
    };
    let found = explain(&of([100e3; 3]), &of([300e3, 90e3, 101e3]));
    assert_eq!(found.answer, Answer::NotFound, "{found:#?}");
    assert!(
        found.findings.is_empty() && found.minor > 100e6,
        "{found:#?}"
    );
    let found = explain(&of([100e3; 3]), &of([300e3, 290e3, 310e3]));
    assert_eq!(found.answer, Answer::Explained);
    let [low, high] = found.findings[0].interval;
    assert!(low > 0.0 && low < found.findings[0].effect && found.findings[0].effect < high);
}

#[test]
fn only_a_time_that_surely_differs_is_explained_and_only_its_own_way() {
    let (mut a, mut b) = (reading(2_000.0, 1.0, 100e3), reading(8_000.0, 1.0, 100e3));
    for side in [&mut a, &mut b] {
        let pass = side.passes[0].clone();
        side.passes = (1..4)
            .map(|seed| ObservedPass {
                seed,
                ..pass.clone()
            })
            .collect();
    }
    let claim = |metric: &str, unit: Unit, means: [f64; 2]| Claim {
        metric: metric.into(),
        unit,
        primary: true,
        verdict: if means[1] < means[0] {
            Verdict::Improved
        } else {
            Verdict::Regressed
        },
        means,
        effect: means[1] / means[0],
        kind: EffectKind::Ratio,
    };
    let times = [time(&a), time(&b)];
    let refaults = claim("refaults", Unit::Count, [2_000.0, 8_000.0]);
    let tail = claim("access-p99", Unit::Nanos, [9_000.0, 20_000.0]);
    let found = Explanation::of(&a, &b, &[refaults.clone(), tail]);
    assert_eq!(
        (found.answer, found.claim.is_none()),
        (Answer::NotSure, true)
    );
    assert!(found.findings.is_empty() && found.changed.len() == 2);
    // What is judged got faster, and the observed passes got slower.
    let found = Explanation::of(&a, &b, &[claim("run", Unit::Nanos, [times[1], times[0]])]);
    assert_eq!(found.answer, Answer::Contrary);
    assert!(found.findings.is_empty());
    // The metric is a part of the time that is explained.
    let part = claim(
        "swap-in",
        Unit::Nanos,
        [times[0] / 2.0, times[0] / 2.0 + 9e6],
    );
    let found = Explanation::of(&a, &b, &[refaults, part.clone()]);
    assert_eq!(found.claim.as_ref(), Some(&part));
    assert!(found.is_another_time());
    // The longest access is no part of it that anything adds up to, however long.
    let longest = claim("access-max", Unit::Nanos, [times[0] / 2.0, times[1] / 2.0]);
    let found = Explanation::of(&a, &b, std::slice::from_ref(&longest));
    assert_eq!((found.answer, found.claim), (Answer::NotSure, None));
    let found = Explanation::of(&a, &b, &[longest, part.clone()]);
    assert_eq!(found.claim.as_ref(), Some(&part));
    let found = Explanation::of(&a, &b, &[part, claim("run", Unit::Nanos, times)]);
    assert_eq!(found.claim.as_ref().unwrap().metric, "run");
    assert!(!found.is_another_time());
}

#[test]
fn shares_are_not_told_where_effects_oppose_each_other() {
    // Fewer pages come back, each of which takes longer.
    let mut a = reading(8_000.0, 1.0, 100e3);
    let mut b = reading(2_000.0, 1.0, 150e3);
    a.settings.insert("swap".into(), "ssd:80us".into());
    b.settings.insert("swap".into(), "ssd:120us".into());
    let found = explain(&a, &b);
    assert_eq!(found.findings.len(), 2, "{found:#?}");
    assert!(found.findings[0].effect < found.difference());
    assert!(found.findings.iter().all(|finding| finding.share.is_none()));
    let found = explain(&a, &reading(2_000.0, 1.0, 100e3));
    assert!(
        found
            .findings
            .iter()
            .all(|f| f.share.is_some_and(|share| share <= 1.0)),
        "{found:#?}"
    );
}

#[test]
fn a_few_ticks_are_no_computing() {
    let of = |user: f64| {
        account(
            &[("pgfault", 10_000.0)],
            &[(Part::Compute, user), (Part::Fault, 280e6)],
        )
    };
    let found = explain(&of(20e6), &of(0.0));
    assert!(
        found
            .findings
            .iter()
            .all(|finding| finding.mechanism != Mechanism::Compute),
        "{found:#?}"
    );
    let found = explain(&of(150e6), &of(10e6));
    assert_eq!(
        found.findings[0].mechanism,
        Mechanism::Compute,
        "{found:#?}"
    );
}

#[test]
fn less_free_memory_is_named_before_the_choice_of_victims() {
    let mut a = reading(2_000.0, 1.0, 100e3);
    let mut b = reading(8_000.0, 1.0, 100e3);
    a.levels.insert("free-at-start".into(), 24e6);
    b.levels.insert("free-at-start".into(), 19e6);
    assert_eq!(first(&a, &b).0, Mechanism::SharedMemory);
    b.levels.insert("free-at-start".into(), 24e6 + 4096.0);
    assert_eq!(first(&a, &b).0, Mechanism::EvictionChoice);
}

#[test]
fn scattered_swap_is_named_where_read_ahead_is_set_alike() {
    let mut a = reading(8_000.0, 8.0, 100e3);
    let mut b = reading(8_000.0, 2.0, 100e3);
    a.levels.insert("contiguity".into(), 0.95);
    b.levels.insert("contiguity".into(), 0.3);
    assert_eq!(first(&a, &b).0, Mechanism::SwapLayout);
    a.settings.insert("vm.page-cluster".into(), "3".into());
    b.settings.insert("vm.page-cluster".into(), "1".into());
    assert_eq!(first(&a, &b).0, Mechanism::ReadAhead);
}

#[test]
fn compressed_swap_without_waits_still_tells_refaults_by_the_faults_and_the_reclaim_they_cost() {
    let of = |pages: f64| {
        account(
            &[
                ("pgfault", 10_000.0 + pages),
                ("pgmajfault", pages),
                ("pswpin", pages),
                ("pgpgin", pages * 4.0),
                ("workingset_refault_anon", pages),
                ("pgsteal_anon", 5_000.0 + pages),
                ("pgsteal_direct", 5_000.0 + pages),
                ("pgscan_direct", 10_000.0 + 2.0 * pages),
                ("allocstall_movable", 100.0 + pages / 50.0),
            ],
            &[
                (Part::Compute, 50e6),
                (Part::Fault, 20e6 + pages * 20e3),
                (Part::Reclaim, (5_000.0 + pages) * 30e3),
            ],
        )
    };
    let found = explain(&of(2_000.0), &of(9_000.0));
    assert_eq!(found.findings[0].mechanism, Mechanism::EvictionChoice);
    assert!(found.findings[0].share.unwrap() > 0.95, "{found:#?}");
}

#[test]
fn without_observed_passes_only_waiting_is_attributed_and_the_rest_are_leads() {
    let bare = |account: Account, system: f64| {
        let mut account = account;
        account.passes.clear();
        account.levels.insert("user".into(), 50e6);
        account.levels.insert("system".into(), system);
        account.elapsed -= 20e6;
        account.elapsed += system;
        account
            .settings
            .insert("swap".into(), format!("ssd:{}us", system / 1e6));
        account
    };
    let a = bare(reading(8_000.0, 1.0, 100e3), 20e6);
    let mut b = bare(reading(8_000.0, 1.0, 300e3), 90e6);
    b.growth.insert("compact_stall".into(), 70.0);
    let mut a = a;
    a.growth.insert("compact_stall".into(), 10.0);
    let found = explain(&a, &b);
    assert_eq!(found.basis, Basis::Counters);
    assert_eq!(found.findings[0].mechanism, Mechanism::DeviceLatency);
    // Nobody can tell what the kernel did with its time.
    assert!((found.unexplained - 70e6).abs() < 1e6, "{found:#?}");
    assert!(
        found
            .leads
            .iter()
            .any(|lead| lead.mechanism == Mechanism::Compaction)
    );
    assert!(
        found
            .findings
            .iter()
            .all(|finding| finding.mechanism != Mechanism::Compaction)
    );
}

#[test]
fn a_difference_that_no_counter_speaks_for_is_not_explained() {
    let a = reading(8_000.0, 1.0, 100e3);
    let mut b = a.clone();
    let times = &mut b.passes[0].observed.times;
    times.insert(Part::Unexplained, 500e6);
    let found = explain(&a, &b);
    assert_eq!(found.answer, Answer::NotFound);
    assert!(found.findings.is_empty());
    assert!((found.unexplained - 500e6).abs() < 1.0);
}

#[test]
fn lines_that_all_go_the_other_way_are_no_reason() {
    let a = reading(8_000.0, 1.0, 100e3);
    let mut b = reading(9_000.0, 1.0, 100e3);
    // Faster by what no counter speaks for, although more pages came back.
    let mut slower = a.clone();
    slower.passes[0]
        .observed
        .times
        .insert(Part::Unexplained, 900e6);
    b.passes[0].observed.times.insert(Part::Unexplained, 0.0);
    let found = explain(&slower, &b);
    assert_eq!(found.answer, Answer::NotFound, "{found:#?}");
    assert!(found.findings.is_empty());
    assert!((found.minor + found.unexplained - found.difference()).abs() < 1.0);
}

/// What a copy of 8,000 pages does beside a process of which so many pages come back from swap.
fn copying(swapped: f64, request: f64) -> Account {
    let mut side = account(
        &[
            ("pgfault", 9_000.0 + swapped),
            ("pgmajfault", swapped),
            ("pswpin", swapped),
            ("pgpgin", (8_000.0 + swapped) * 4.0),
            ("workingset_refault_anon", swapped),
        ],
        // Thirty pages of the file a request.
        &[
            (Part::Compute, 50e6),
            (Part::IoWait, (swapped + 8_000.0 / 30.0) * request),
        ],
    );
    side.passes[0].observed.read = Some(request);
    side
}

#[test]
fn swap_in_beside_a_stream_of_files_is_no_slower_device() {
    let (mechanism, effect) = first(&copying(0.0, 100e3), &copying(400.0, 105e3));
    assert_eq!(mechanism, Mechanism::EvictionChoice);
    assert!(effect > 40e6, "{effect}");
    // The same pages from a slower device are its doing.
    let (mechanism, effect) = first(&copying(400.0, 100e3), &copying(400.0, 300e3));
    assert_eq!(mechanism, Mechanism::DeviceLatency);
    assert!(effect > 100e6, "{effect}");
}

#[test]
fn a_count_that_surely_changed_is_explained_where_no_time_is() {
    let claim = |metric: &str, means: [f64; 2]| Claim {
        metric: metric.into(),
        unit: Unit::Count,
        primary: true,
        verdict: Verdict::Regressed,
        means,
        effect: means[1] - means[0],
        kind: EffectKind::Difference,
    };
    let (a, mut b) = (copying(0.0, 100e3), copying(400.0, 100e3));
    b.settings.insert("vm.swappiness".into(), "200".into());
    let mut sides = [a, b];
    sides[0].settings.insert("vm.swappiness".into(), "0".into());
    let [a, b] = &sides;
    let found = Explanation::of(a, b, &[claim("victim-refaults", [0.0, 400.0])]);
    assert!(found.findings.is_empty() && found.claim.is_none());
    let [lead] = &found.leads[..] else {
        panic!("{found:#?}");
    };
    assert_eq!(lead.mechanism, Mechanism::EvictionChoice);
    assert_eq!(lead.of.as_deref(), Some("victim-refaults"));
    let named: Vec<&str> = lead
        .evidence
        .iter()
        .map(|piece| piece.name.as_str())
        .collect();
    assert!(named.contains(&"vm.swappiness"), "{named:?}");
    let blocks = |stalls: f64| account(&[("compact_stall", stalls)], &[(Part::Compute, 50e6)]);
    let success = Claim {
        unit: Unit::Share,
        ..claim("success", [0.9, 0.7])
    };
    for stalls in [[9.0, 0.0], [0.0, 9.0]] {
        let [a, b] = stalls.map(blocks);
        let found = Explanation::of(&a, &b, std::slice::from_ref(&success));
        assert_eq!(found.leads[0].mechanism, Mechanism::Compaction);
    }
    let [a_alike, b_alike] = [blocks(9.0), blocks(9.0)];
    assert!(
        Explanation::of(&a_alike, &b_alike, &[success])
            .leads
            .is_empty()
    );
    // Counters that went the other way speak for nothing, and another count is no matter of pages that came back.
    for claim in [
        claim("victim-refaults", [400.0, 0.0]),
        claim("victim-accesses", [0.0, 400.0]),
    ] {
        let found = Explanation::of(a, b, &[claim]);
        assert!(found.leads.is_empty(), "{:#?}", found.leads);
    }
}

#[test]
fn waiting_for_kcompactd_counts_as_compaction() {
    let of = |time: f64, stalls: f64| {
        let mut side = account(
            &[("pgfault", 1_000.0), ("compact_stall", stalls)],
            &[(Part::Compute, 50e6), (Part::RunQueue, time)],
        );
        let queue = &mut side.passes[0].observed.queue;
        queue.insert(Ahead::Kcompactd, time);
        side
    };
    let (mechanism, effect) = first(&of(1e6, 3.0), &of(41e6, 9.0));
    assert_eq!(mechanism, Mechanism::Compaction);
    assert!((effect - 40e6).abs() < 2e6, "{effect}");
}

#[test]
fn the_mean_of_all_seeds_is_told_with_what_each_says() {
    let of = |seeds: &[(f64, f64)]| {
        let mut sides = seeds
            .iter()
            .map(|(pages, wait)| reading(*pages, 1.0, *wait));
        let mut side = sides.next().unwrap();
        side.passes
            .extend(sides.map(|other| other.passes[0].clone()));
        for (pass, seed) in side.passes.iter_mut().zip(1..) {
            pass.seed = seed;
        }
        side
    };
    // In a seed alone waits would rank first; over all three the pages do.
    let a = of(&[(8_000.0, 100e3), (8_000.0, 100e3), (8_000.0, 100e3)]);
    let mut b = of(&[(11_400.0, 120e3), (12_000.0, 100e3), (11_000.0, 101e3)]);
    let alone = explain(&of(&[(8_000.0, 100e3)]), &of(&[(8_400.0, 120e3)]));
    assert_eq!(alone.findings[0].mechanism, Mechanism::UnknownWaits);
    let found = explain(&a, &b);
    let pages = &found.findings[0];
    assert_eq!(pages.mechanism, Mechanism::EvictionChoice);
    assert_eq!(pages.each.len(), 3);
    assert!(pages.each[2] < pages.each[0] && pages.each[0] < pages.each[1]);
    let mean = pages.each.iter().sum::<f64>() / 3.0;
    assert!((pages.effect - mean).abs() < 1.0, "{pages:#?}");
    let seeds = |found: &Explanation| match &found.basis {
        Basis::Traced { seeds, records, .. } => (seeds.clone(), records[1].len()),
        Basis::Counters => panic!("{found:#?}"),
    };
    assert_eq!(seeds(&found), (vec![1, 2, 3], 3));
    // What one side lacks is not used of the other, and other seeds have none in common.
    b.passes.pop();
    assert_eq!(seeds(&explain(&a, &b)), (vec![1, 2], 2));
    b.passes.iter_mut().for_each(|pass| pass.seed += 10);
    assert_eq!(seeds(&explain(&a, &b)), (vec![], 2));
}

fn any_account() -> impl Strategy<Value = Account> {
    proptest::collection::vec(any_seed(), 1..4).prop_map(|seeds| {
        let mut seeds = seeds.into_iter();
        let mut account = seeds.next().unwrap();
        account.passes.extend(seeds.flat_map(|other| other.passes));
        account
    })
}

fn any_seed() -> impl Strategy<Value = Account> {
    let counts = proptest::array::uniform14(0.0..1e5_f64);
    let times = proptest::array::uniform10(0.0..1e9_f64);
    (counts, times, 0.0..1e5_f64, any::<[bool; 3]>()).prop_map(|(counts, times, sleeps, flags)| {
        let growth: Vec<(&str, f64)> = COUNTERS.into_iter().zip(counts).collect();
        let times: Vec<(Part, f64)> = Part::ALL.into_iter().zip(times).collect();
        let mut account = account(&growth, &times);
        let observed = &mut account.passes[0].observed;
        observed.waits.insert(Part::IoWait, sleeps);
        let queue = observed.time(Part::RunQueue);
        observed.queue.insert(Ahead::Kswapd, queue * 0.6);
        if flags[1] {
            observed.queue.insert(Ahead::Kcompactd, queue * 0.2);
        }
        // The same device with another queue, or another device.
        observed.read = flags[0].then(|| 80e3 + observed.growth["pswpin"]);
        if flags[0] {
            observed.rows.insert(RowId::TimeKswapdAwake, 3e8);
        }
        let generations = if flags[2] { "0x0007" } else { "0x0000" };
        account
            .settings
            .insert("lru_gen/enabled".into(), generations.into());
        account
    })
}

proptest! {
    #[test]
    fn all_lines_add_up_to_the_difference_and_swapping_the_sides_flips_their_signs(
        a in any_account(),
        b in any_account(),
    ) {
        let found = explain(&a, &b);
        let all = found.findings.iter().map(|finding| finding.effect).sum::<f64>()
            + found.minor
            + found.unexplained;
        let scale = found.time[0].max(found.time[1]);
        prop_assert!((all - found.difference()).abs() <= 1e-6 * scale, "{all} {}", found.difference());
        prop_assert!(found.findings.iter().all(|finding| !finding.evidence.is_empty()));
        prop_assert!(found.findings.is_sorted_by(|x, y| x.effect.abs() >= y.effect.abs()));

        let back = explain(&b, &a);
        prop_assert_eq!(back.findings.len(), found.findings.len());
        for finding in &found.findings {
            let same = back.findings.iter().find(|other| other.mechanism == finding.mechanism);
            let other = same.map_or(f64::NAN, |other| other.effect);
            prop_assert!((finding.effect + other).abs() <= 1e-6 * scale, "{finding:?} {other}");
        }
    }

    #[test]
    fn a_side_does_not_differ_from_itself(a in any_account()) {
        let found = Explanation::of(&a, &a, &[]);
        prop_assert_eq!(found.answer, Answer::NotSure);
        prop_assert!(found.findings.is_empty());
    }
}
