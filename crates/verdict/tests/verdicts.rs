//! Tests of verdicts for given data.

use pagetide_quantity::Direction;
use pagetide_verdict::judgement::{EffectKind, Note, Shift};
use pagetide_verdict::sample::{Bin, Scale, TailPair, UnitPair};
use pagetide_verdict::{Data, Family, Judgement, Margin, MetricSample, Pair, Verdict, judge};

fn metric(name: &str, unit: &str, direction: Direction, data: Data) -> MetricSample {
    MetricSample {
        name: name.into(),
        unit: unit.into(),
        direction,
        primary: true,
        margin: None,
        scale: Scale::Auto,
        data,
    }
}

fn one(sample: MetricSample) -> Judgement {
    judge(&Family::new(1, vec![sample]))
        .expect("5 % is an error rate")
        .remove(0)
}

fn ratios(factors: &[f64]) -> Data {
    let a: Vec<f64> = (0..factors.len()).map(|i| 100.0 + 7.0 * i as f64).collect();
    let b: Vec<f64> = a.iter().zip(factors).map(|(a, f)| a * f).collect();
    Data::paired(&a, &b)
}

const SLOWER: [f64; 8] = [1.04, 1.05, 1.06, 1.045, 1.055, 1.048, 1.052, 1.051];

#[test]
fn a_clear_rise_is_a_regression_where_lower_is_better() {
    let judged = one(metric(
        "swap-in",
        "nanos",
        Direction::Lower,
        ratios(&SLOWER),
    ));
    assert_eq!(judged.verdict, Verdict::Regressed);
    assert_eq!(judged.shift, Some(Shift::Up));
    let effect = judged.effect.unwrap();
    assert_eq!(effect.kind, EffectKind::Ratio);
    assert!((effect.estimate - 1.05).abs() < 0.002);
    let interval = effect.interval.unwrap();
    assert!(interval.low > 1.04 && interval.high < 1.06 && interval.is_attained());
    assert!((judged.p.unwrap() - 2.0 / 256.0).abs() < 1e-15);
    assert!((judged.p_sign_flip.unwrap() - 2.0 / 256.0).abs() < 1e-15);
}

#[test]
fn the_same_rise_is_an_improvement_or_a_change_where_the_direction_says_so() {
    let higher = one(metric(
        "rate",
        "per-second",
        Direction::Higher,
        ratios(&SLOWER),
    ));
    assert_eq!(higher.verdict, Verdict::Improved);
    let neutral = one(metric(
        "scans",
        "count",
        Direction::Neutral,
        ratios(&SLOWER),
    ));
    assert_eq!(neutral.verdict, Verdict::Changed);
}

#[test]
fn a_small_but_certain_difference_inside_the_margin_is_equivalent_and_says_so() {
    let data = ratios(&[1.004, 1.005, 1.0045, 1.0052, 1.0048, 1.0051]);
    let judged = one(metric("swap-in", "nanos", Direction::Lower, data.clone()));
    assert_eq!(judged.verdict, Verdict::Equivalent);
    assert_eq!(judged.shift, Some(Shift::Up));
    assert!(judged.notes.contains(&Note::SmallButReal));
    let mut strict = metric("swap-in", "nanos", Direction::Lower, data);
    strict.margin = Some(Margin::Relative(0.001));
    assert_eq!(one(strict).verdict, Verdict::Regressed);
}

#[test]
fn five_pairs_are_never_sure_however_clear_they_are() {
    let judged = one(metric(
        "swap-in",
        "nanos",
        Direction::Lower,
        ratios(&SLOWER[..5]),
    ));
    assert_eq!(judged.verdict, Verdict::Inconclusive { n_needed: Some(6) });
    assert!(judged.notes.contains(&Note::TooFew { least: 6 }));
    let interval = judged.effect.unwrap().interval.unwrap();
    assert!((interval.level - 0.9375).abs() < 1e-12 && !interval.is_attained());
}

#[test]
fn what_is_decided_is_not_said_to_rest_on_too_few() {
    // Two primary metrics: with six pairs no difference can pass the correction, but equivalence can still be claimed.
    let close: Vec<f64> = (0..6).map(|n| 1.0 + 1e-4 * f64::from(n % 3 - 1)).collect();
    let samples = [("near", &close[..]), ("far", &SLOWER[..6])]
        .map(|(name, of)| metric(name, "nanos", Direction::Lower, ratios(of)));
    let judged = judge(&Family::new(1, samples.to_vec())).unwrap();
    assert_eq!(judged[0].verdict, Verdict::Equivalent);
    assert!(!judged[0].notes.contains(&Note::TooFew { least: 7 }));
    assert!(matches!(judged[1].verdict, Verdict::Inconclusive { .. }));
    assert!(judged[1].notes.contains(&Note::TooFew { least: 7 }));
}

#[test]
fn five_equal_pairs_that_are_not_equal_to_the_bit_are_not_yet_equivalent() {
    let judged = one(metric(
        "faults",
        "count",
        Direction::Lower,
        ratios(&[1.0; 5]),
    ));
    assert_eq!(judged.verdict, Verdict::Inconclusive { n_needed: Some(6) });
}

#[test]
fn one_pair_gives_an_estimate_without_an_interval_and_asks_for_more() {
    let judged = one(metric("swap-in", "nanos", Direction::Lower, ratios(&[1.2])));
    assert_eq!(judged.verdict, Verdict::Inconclusive { n_needed: Some(6) });
    assert!(judged.effect.unwrap().interval.is_none());
}

#[test]
fn pairs_equal_to_the_bit_are_identical_whatever_their_number() {
    for count in [1, 3, 8] {
        let pairs = (0..count)
            .map(|i| Pair {
                a: 5.0 + f64::from(i),
                b: 5.0 + f64::from(i),
                identical: true,
            })
            .collect();
        let judged = one(metric(
            "faults",
            "count",
            Direction::Lower,
            Data::Paired { pairs },
        ));
        assert_eq!(judged.verdict, Verdict::Identical);
        assert_eq!(judged.identical_pairs, Some(judged.n));
    }
}

#[test]
fn a_pair_called_identical_whose_values_differ_is_named() {
    let mut pairs = vec![
        Pair {
            a: 1.0,
            b: 1.0,
            identical: true
        };
        7
    ];
    pairs[3].b = 1.5;
    let judged = one(metric(
        "faults",
        "count",
        Direction::Lower,
        Data::Paired { pairs },
    ));
    assert_ne!(judged.verdict, Verdict::Identical);
    assert!(judged.notes.contains(&Note::ContradictoryPair { index: 3 }));
}

#[test]
fn noise_without_an_effect_is_inconclusive_and_says_how_many_would_do() {
    let data = ratios(&[1.05, 0.96, 1.02, 0.97, 1.04, 0.95, 1.01, 0.99]);
    let judged = one(metric("swap-in", "nanos", Direction::Lower, data));
    let Verdict::Inconclusive {
        n_needed: Some(n), ..
    } = judged.verdict
    else {
        panic!("{:?}", judged.verdict)
    };
    assert!((50..2_000).contains(&n), "{n}");
}

#[test]
fn counts_that_reach_zero_are_compared_as_differences() {
    let a = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    let b = [12.0, 15.0, 9.0, 14.0, 11.0, 13.0, 10.0, 16.0];
    let judged = one(metric(
        "direct-reclaims",
        "count",
        Direction::Lower,
        Data::paired(&a, &b),
    ));
    assert_eq!(judged.verdict, Verdict::Regressed);
    assert_eq!(judged.effect.unwrap().kind, EffectKind::Difference);
    assert!(judged.notes.contains(&Note::NotPositive));
}

#[test]
fn a_ratio_asked_for_by_name_refuses_zeros() {
    let mut sample = metric(
        "faults",
        "count",
        Direction::Lower,
        Data::paired(&[1.0, 2.0], &[1.0, 0.0]),
    );
    sample.scale = Scale::Ratio;
    let Verdict::Invalid { reason } = one(sample).verdict else {
        panic!("zeros were divided")
    };
    assert!(reason.contains("value 1 of B is 0"), "{reason}");
}

#[test]
fn a_value_that_is_not_finite_makes_the_metric_invalid_and_spares_the_others() {
    let broken = metric(
        "broken",
        "nanos",
        Direction::Lower,
        Data::paired(&[1.0, f64::NAN], &[1.0, 2.0]),
    );
    let sound = metric("sound", "nanos", Direction::Lower, ratios(&SLOWER));
    let judged = judge(&Family::new(1, vec![broken, sound])).unwrap();
    let Verdict::Invalid { reason } = &judged[0].verdict else {
        panic!("NaN was judged")
    };
    assert!(reason.contains("value 1 of A"), "{reason}");
    assert_eq!(judged[1].verdict, Verdict::Regressed);
    assert!((judged[1].p_adjusted.unwrap() - judged[1].p.unwrap()).abs() < 1e-15);
}

#[test]
fn an_empty_metric_is_invalid() {
    for data in [
        Data::paired(&[], &[]),
        Data::Unpaired {
            a: vec![],
            b: vec![1.0],
        },
        Data::PairedTails {
            quantile: 0.99,
            pairs: vec![],
        },
        Data::NestedPaired { units: vec![] },
        Data::Invalid {
            reason: "the guest ran out of memory".into(),
        },
    ] {
        let judged = one(metric("x", "nanos", Direction::Lower, data));
        assert!(
            matches!(judged.verdict, Verdict::Invalid { .. }),
            "{judged:?}"
        );
    }
}

#[test]
fn primary_metrics_share_the_error_rate_and_the_others_do_not_add_to_it() {
    let mut metrics: Vec<MetricSample> = (0..7)
        .map(|i| metric(&format!("m{i}"), "nanos", Direction::Lower, ratios(&SLOWER)))
        .collect();
    // 7 × 2/256 exceeds 5 %: with eight seeds nothing can be claimed about seven primary metrics at once.
    let judged = judge(&Family::new(1, metrics.clone())).unwrap();
    assert!(
        judged
            .iter()
            .all(|j| matches!(j.verdict, Verdict::Inconclusive { n_needed: Some(9) }))
    );
    for metric in &mut metrics[1..] {
        metric.primary = false;
    }
    let judged = judge(&Family::new(1, metrics)).unwrap();
    assert!(judged.iter().all(|j| j.verdict == Verdict::Regressed));
}

#[test]
fn identical_metrics_take_nothing_from_the_others_error_rate() {
    let mut metrics = vec![metric(
        "swap-in",
        "nanos",
        Direction::Lower,
        ratios(&SLOWER),
    )];
    for i in 0..20 {
        let pairs = vec![
            Pair {
                a: 3.0,
                b: 3.0,
                identical: true
            };
            8
        ];
        metrics.push(metric(
            &format!("same{i}"),
            "count",
            Direction::Lower,
            Data::Paired { pairs },
        ));
    }
    let judged = judge(&Family::new(1, metrics)).unwrap();
    assert_eq!(judged[0].verdict, Verdict::Regressed);
    assert!(judged[1..].iter().all(|j| j.verdict == Verdict::Identical));
}

#[test]
fn unpaired_groups_are_judged_by_rank_sums() {
    let a = vec![10.0, 10.5, 9.8, 10.1, 10.2, 9.9];
    let b = vec![11.0, 11.5, 10.9, 11.2, 11.1, 12.0];
    let judged = one(metric(
        "copy",
        "nanos",
        Direction::Lower,
        Data::Unpaired { a, b },
    ));
    assert_eq!(judged.verdict, Verdict::Regressed);
    assert_eq!((judged.n, judged.n_b), (6, Some(6)));
    assert!((judged.p.unwrap() - 2.0 / 924.0).abs() < 1e-15);
}

#[test]
fn repetitions_inside_a_boot_do_not_count_as_evidence() {
    // There are three boots of ten repetitions each, all slower: thirty values, but n is three.
    let units: Vec<UnitPair> = (0..3)
        .map(|boot| {
            let a: Vec<f64> = (0..10)
                .map(|i| 100.0 + f64::from(boot * 3) + 0.1 * f64::from(i))
                .collect();
            let b = a.iter().map(|x| x * 1.1).collect();
            UnitPair {
                a,
                b,
                identical: false,
            }
        })
        .collect();
    let judged = one(metric(
        "copy",
        "nanos",
        Direction::Lower,
        Data::NestedPaired { units },
    ));
    assert_eq!(judged.n, 3);
    assert_eq!(judged.verdict, Verdict::Inconclusive { n_needed: Some(6) });
    let components = judged.components.unwrap();
    assert!(components.between > 9.0 * components.within);
}

#[test]
fn nested_units_enough_in_number_are_judged() {
    let units = |factor: f64| -> Vec<Vec<f64>> {
        (0..6)
            .map(|boot| {
                (0..4)
                    .map(|i| factor * (50.0 + f64::from(boot) + 0.2 * f64::from(i)))
                    .collect()
            })
            .collect()
    };
    let data = Data::NestedUnpaired {
        a: units(1.0),
        b: units(1.5),
    };
    let judged = one(metric("copy", "nanos", Direction::Lower, data));
    assert_eq!(judged.verdict, Verdict::Regressed);
    assert!((judged.effect.unwrap().estimate - 1.5).abs() < 0.05);
}

#[test]
fn sessions_that_drift_are_worth_fewer_trials_and_say_so() {
    // Both sides drift by the same 7 %. B is 7 % higher, which the drift could explain, or 30 %, which it could not.
    let session =
        |level: f64| -> Vec<f64> { (0..8).map(|i| level * (100.0 + f64::from(i))).collect() };
    let judged = |factor: f64| {
        let (a, b) = (session(1.0), session(factor));
        one(metric(
            "copy",
            "nanos",
            Direction::Lower,
            Data::Unpaired { a, b },
        ))
    };
    for (factor, regressed) in [(1.07, false), (1.3, true)] {
        let found = judged(factor);
        assert_eq!(found.verdict == Verdict::Regressed, regressed, "{found:?}");
        assert!(found.notes.iter().any(|note| matches!(
            note,
            Note::Dependent { correlation, worth } if *correlation > 0.9 && *worth < 2.0
        )));
        assert!(found.methods.interval.contains("widened"));
    }
    // These are the same values, in an order without drift.
    let mixed = |level: f64| -> Vec<f64> {
        [3, 7, 0, 5, 2, 6, 1, 4]
            .map(|i| level * (100.0 + f64::from(i)))
            .to_vec()
    };
    let (a, b) = (mixed(1.0), mixed(1.07));
    let found = one(metric(
        "copy",
        "nanos",
        Direction::Lower,
        Data::Unpaired { a, b },
    ));
    assert_eq!(found.verdict, Verdict::Regressed);
    assert!(!found.methods.interval.contains("widened"));
}

#[test]
fn a_longer_tail_is_found_by_resampling_trials() {
    let bins = |slow: f64| {
        vec![
            Bin {
                value: 100.0,
                count: 9_800,
            },
            Bin {
                value: slow,
                count: 200,
            },
        ]
    };
    let pairs = (0..8)
        .map(|i| TailPair {
            a: bins(1000.0 + f64::from(i)),
            b: bins(1500.0 + f64::from(i)),
            identical: false,
        })
        .collect();
    let data = Data::PairedTails {
        quantile: 0.99,
        pairs,
    };
    let judged = one(metric("read-p99", "nanos", Direction::Lower, data));
    assert_eq!(judged.verdict, Verdict::Regressed);
    assert!(judged.methods.interval.contains("over trials"));
}

#[test]
fn an_outlier_is_labelled_and_still_counts() {
    let mut factors = vec![1.0, 1.001, 0.999, 1.0005, 0.9995, 1.0002, 0.9998];
    factors.push(1.5);
    let judged = one(metric(
        "swap-in",
        "nanos",
        Direction::Lower,
        ratios(&factors),
    ));
    assert!(judged.outliers.iter().any(|outlier| outlier.index == 7));
    assert_eq!(judged.n, 8);
    assert!((judged.b.unwrap().mean / judged.a.unwrap().mean) > 1.05);
}

#[test]
fn a_judgement_survives_a_json_round_trip() {
    let judged = one(metric(
        "swap-in",
        "nanos",
        Direction::Lower,
        ratios(&SLOWER[..7]),
    ));
    let text = serde_json::to_string(&judged).unwrap();
    assert!(text.contains(r#""verdict":"regressed""#), "{text}");
    assert_eq!(serde_json::from_str::<Judgement>(&text).unwrap(), judged);
}

#[test]
fn enormous_and_tiny_values_are_judged_like_any_others() {
    for scale in [1e-300, 1e-9, 1e300] {
        let a: Vec<f64> = (1..=8).map(|i| scale * f64::from(i)).collect();
        let b: Vec<f64> = a.iter().map(|x| x * 1.1).collect();
        let judged = one(metric("x", "nanos", Direction::Lower, Data::paired(&a, &b)));
        assert_eq!(judged.verdict, Verdict::Regressed);
        assert!((judged.effect.unwrap().estimate - 1.1).abs() < 1e-9);
    }
}

#[test]
fn the_same_seed_gives_the_same_judgement_to_the_bit() {
    let mut random = pagetide_verdict::rng::Xoshiro::new(2);
    let a: Vec<f64> = (0..40).map(|_| 10.0 + random.normal()).collect();
    let b: Vec<f64> = (0..40).map(|_| 10.0 + random.normal()).collect();
    let sample = metric("x", "nanos", Direction::Lower, Data::paired(&a, &b));
    assert_eq!(one(sample.clone()), one(sample));
}

#[test]
fn where_the_adjustment_alone_keeps_a_row_from_a_claim_it_says_how_many_agree_and_how_many_would_do()
 {
    let flat = ratios(&[1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.01]);
    let clear = ratios(&SLOWER[..7]);
    let family = |others: usize, data: &Data| {
        let mut metrics = vec![MetricSample {
            primary: false,
            ..metric("access-p90", "nanos", Direction::Lower, data.clone())
        }];
        for other in 0..others {
            metrics.push(MetricSample {
                primary: false,
                ..metric(
                    &format!("other-{other}"),
                    "nanos",
                    Direction::Lower,
                    flat.clone(),
                )
            });
        }
        judge(&Family::new(1, metrics)).unwrap().remove(0)
    };
    // Judged alone, the metric is significant. Among eight metrics, 2/128 is too large, but 2/512 would be small
    // enough.
    assert_eq!(family(0, &clear).verdict, Verdict::Regressed);
    let open = family(7, &clear);
    assert!(
        open.notes.contains(&Note::AllAgree { n: 7, least: 9 }),
        "{open:?}"
    );
    let Verdict::Inconclusive { n_needed: Some(n) } = open.verdict else {
        panic!("{open:?}");
    };
    assert!(n >= 9);
    // Nine agreeing pairs are significant among the same other metrics.
    let nine: Vec<f64> = SLOWER.iter().copied().chain([1.047]).collect();
    assert_eq!(family(7, &ratios(&nine)).verdict, Verdict::Regressed);
    // If one pair has the other direction, the pairs do not agree.
    let mut mixed = SLOWER[..7].to_vec();
    mixed[3] = 0.999;
    let mixed = family(7, &ratios(&mixed));
    assert!(
        !mixed
            .notes
            .iter()
            .any(|note| matches!(note, Note::AllAgree { .. }))
    );
}
