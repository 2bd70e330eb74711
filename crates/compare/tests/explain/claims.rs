//! Tests that only differences which the timed trials surely show are explained.

use pagetide_compare::explain::{
    Account, Answer, Basis, Claim, Explanation, Mechanism, ObservedPass,
};
use pagetide_probe::meaning::Part;
use pagetide_quantity::{Direction, Unit};
use pagetide_verdict::judgement::EffectKind;
use pagetide_verdict::rng::Xoshiro;
use pagetide_verdict::{Data, Family, MetricSample, Verdict, judge};

use super::account::{account, claim, claim_of_difference, copying, explain, reading, time};

/// Returns a side whose workload differs from the other side only by chance: an account with observed passes of three
/// seeds, and the times of its timed trials in nanoseconds.
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

/// Returns claims from the times of timed trials, as a comparison makes them.
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
        medians: [judged.a.unwrap().median, judged.b.unwrap().median],
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
    // One comparison in twenty has a false verdict. For a cause, the seeds must also agree, which is rarer.
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
    let times = [time(&a), time(&b)];
    let refaults = claim("refaults", Unit::Count, [2_000.0, 8_000.0]);
    let tail = claim("access-p99", Unit::Nanos, [9_000.0, 20_000.0]);
    let found = Explanation::of(&a, &b, &[refaults.clone(), tail]);
    assert_eq!(
        (found.answer, found.claim.is_none()),
        (Answer::NotSure, true)
    );
    assert!(found.findings.is_empty() && found.changed.len() == 2);
    // The claimed metric became faster, but the observed passes became slower.
    let found = Explanation::of(&a, &b, &[claim("run", Unit::Nanos, [times[1], times[0]])]);
    assert_eq!(found.answer, Answer::Contrary);
    assert!(found.findings.is_empty());
    assert!(found.leads.is_empty());
    // If the claimed metric is not primary, the mechanism of a primary count is still reported.
    let aside = Claim {
        primary: false,
        ..claim("run", Unit::Nanos, [times[1], times[0]])
    };
    let found = Explanation::of(&a, &b, &[aside, refaults.clone()]);
    assert_eq!(found.answer, Answer::Contrary);
    assert_eq!(found.leads[0].of.as_deref(), Some("refaults"));
    // The metric is a part of the explained time.
    let part = claim(
        "swap-in",
        Unit::Nanos,
        [times[0] / 2.0, times[0] / 2.0 + 9e6],
    );
    let found = Explanation::of(&a, &b, &[refaults, part.clone()]);
    assert_eq!(found.claim.as_ref(), Some(&part));
    assert!(found.is_another_time());
    // The longest access is never a part of a sum, even if it is long.
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
fn a_count_that_surely_changed_is_explained_where_no_time_is() {
    let claim = |metric: &str, means: [f64; 2]| {
        claim_of_difference(metric, Unit::Count, Verdict::Regressed, means)
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
    // Counters that changed against the claim are no evidence, and other counts have no relation to pages that were
    // read back.
    for claim in [
        claim("victim-refaults", [400.0, 0.0]),
        claim("victim-accesses", [0.0, 400.0]),
    ] {
        let found = Explanation::of(a, b, &[claim]);
        assert!(found.leads.is_empty(), "{:#?}", found.leads);
    }
}

#[test]
fn the_mean_over_seeds_is_reported_with_the_effect_of_each() {
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
    // In one seed the waits would rank first; over all three seeds the pages rank first.
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
    // Passes of a seed that only one side observed are not used. If the sides have no seed in common, passes are paired
    // by index.
    b.passes.pop();
    assert_eq!(seeds(&explain(&a, &b)), (vec![1, 2], 2));
    b.passes.iter_mut().for_each(|pass| pass.seed += 10);
    assert_eq!(seeds(&explain(&a, &b)), (vec![], 2));
}

#[test]
fn a_faster_read_back_is_attributed_to_the_layout_if_contiguity_rose() {
    let claim = |metric: &str, unit, means: [f64; 2]| {
        claim_of_difference(metric, unit, Verdict::Improved, means)
    };
    let side = |contiguity: f64| {
        let mut side = copying(400.0, 100e3);
        side.levels.insert("contiguity".into(), contiguity);
        side
    };
    let (a, b) = (side(0.93), side(0.99));
    let sooner = claim("swap-in", Unit::Nanos, [1e6, 4e5]);
    let together = claim("contiguity", Unit::Share, [0.93, 0.99]);
    let found = Explanation::of(&a, &b, &[sooner.clone(), together.clone()]);
    let [lead] = &found.leads[..] else {
        panic!("{found:#?}");
    };
    assert_eq!(lead.mechanism, Mechanism::SwapLayout);
    assert_eq!(lead.of.as_deref(), Some("swap-in"));
    assert_eq!(lead.evidence[0].name, "contiguity on the device");
    // The layout is no explanation if it does not surely differ, or if it changed in the opposite direction.
    let apart = claim("contiguity", Unit::Share, [0.99, 0.93]);
    for claims in [vec![sooner.clone()], vec![sooner, apart]] {
        let found = Explanation::of(&a, &b, &claims);
        assert!(found.leads.is_empty(), "{:#?}", found.leads);
    }
}
