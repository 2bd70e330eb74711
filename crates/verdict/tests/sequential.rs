//! Tests of when sampling stops, and which claims are made then.

use pagetide_quantity::Direction;
use pagetide_verdict::rng::Xoshiro;
use pagetide_verdict::sample::Scale;
use pagetide_verdict::sequential::{Decision, Design, Plan, Reason};
use pagetide_verdict::{Data, Family, Margin, MetricSample, Pair, Verdict};

const CAP: u64 = 40;

fn plan() -> Plan {
    Plan::until_sure(0.05, CAP, 1, Design::Paired).expect("the cap allows looks")
}

fn family(data: Vec<Data>, margin: f64) -> Family {
    let metrics = data
        .into_iter()
        .map(|data| MetricSample {
            name: "swap-in".into(),
            unit: "nanos".into(),
            direction: Direction::Lower,
            primary: true,
            margin: Some(Margin::Relative(margin)),
            scale: Scale::Auto,
            data,
        })
        .collect();
    Family::new(1, metrics)
}

/// Pairs in which B is `effect` times A. `noise` is the relative noise of each value.
fn pairs(count: u64, effect: f64, noise: f64) -> Data {
    let mut random = Xoshiro::new(count);
    let mut draw = |level: f64| level * (1.0 + noise * random.normal());
    let pairs = (0..count)
        .map(|_| Pair::new(draw(100.0), draw(100.0 * effect)))
        .collect();
    Data::Paired { pairs }
}

#[test]
fn a_clear_effect_stops_at_the_first_look() {
    let plan = plan();
    let first = plan.looks()[0];
    let decision = plan.decide(&family(vec![pairs(first, 1.2, 0.001)], 0.01), 0);
    let Decision::Stop { why, judgements } = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(why, Reason::Sure);
    assert_eq!(judgements[0].verdict, Verdict::Regressed);
}

#[test]
fn equal_variants_stop_as_soon_as_their_interval_fits_the_margin() {
    let plan = plan();
    let first = plan.looks()[0];
    let decision = plan.decide(&family(vec![pairs(first, 1.0, 0.001)], 0.01), 0);
    let Decision::Stop { why, judgements } = decision else {
        panic!("{decision:?}")
    };
    assert_eq!(
        (why, &judgements[0].verdict),
        (Reason::Sure, &Verdict::Equivalent)
    );
}

#[test]
fn identical_records_stop_at_the_first_look() {
    let plan = plan();
    let pair = Pair {
        a: 4.0,
        b: 4.0,
        identical: true,
    };
    let count = usize::try_from(plan.looks()[0]).unwrap();
    let data = Data::Paired {
        pairs: vec![pair; count],
    };
    let Decision::Stop { judgements, .. } = plan.decide(&family(vec![data], 0.01), 0) else {
        panic!("identical records need no more")
    };
    assert_eq!(judgements[0].verdict, Verdict::Identical);
}

#[test]
fn noise_continues_to_the_cap_and_each_look_names_the_next() {
    let plan = plan();
    for (look, &n) in plan.looks().iter().enumerate() {
        let decision = plan.decide(&family(vec![pairs(n, 1.0, 0.2)], 0.001), look);
        if let Some(&following) = plan.looks().get(look + 1) {
            let Decision::Continue { next, .. } = decision else {
                panic!("{decision:?}")
            };
            assert_eq!(next, following);
        } else {
            let Decision::Stop { why, judgements } = decision else {
                panic!("the cap was passed")
            };
            assert_eq!(why, Reason::Cap);
            assert!(matches!(
                judgements[0].verdict,
                Verdict::Inconclusive { .. }
            ));
        }
    }
}

#[test]
fn one_undecided_primary_metric_keeps_a_campaign_running() {
    let plan = Plan::until_sure(0.05, CAP, 2, Design::Paired).unwrap();
    let first = plan.looks()[0];
    let both = family(vec![pairs(first, 1.2, 0.001), pairs(first, 1.0, 0.3)], 0.01);
    assert!(matches!(plan.decide(&both, 0), Decision::Continue { .. }));
}

#[test]
fn a_metric_that_cannot_be_judged_does_not_keep_a_campaign_running() {
    let plan = plan();
    let first = plan.looks()[0];
    let absent = Data::Invalid {
        reason: "this kernel has no such counter".into(),
    };
    let both = family(vec![pairs(first, 1.2, 0.001), absent], 0.01);
    assert!(matches!(
        plan.decide(&both, 0),
        Decision::Stop {
            why: Reason::Sure,
            ..
        }
    ));
}

#[test]
fn a_look_claims_less_than_a_fixed_number_of_trials_would() {
    let plan = plan();
    assert!(plan.rule(0).threshold(1) < 0.05 && plan.rule(0).level > 0.95);
    let spent: f64 = (0..plan.looks().len())
        .map(|look| plan.rule(look).threshold(1))
        .sum();
    assert!(spent <= 0.05 + 1e-12, "{spent}");
}
