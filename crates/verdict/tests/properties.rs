//! Tests of properties that must hold for any data.

use pagetide_quantity::Direction;
use pagetide_verdict::change::{Search, change_points};
use pagetide_verdict::sample::{Bin, Scale, TailPair};
use pagetide_verdict::signed_rank::Zeros;
use pagetide_verdict::{
    Data, Family, Judgement, MetricSample, Pair, Verdict, judge, rank_sum, sign_flip, signed_rank,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn one(direction: Direction, data: Data) -> Judgement {
    let sample = MetricSample {
        name: "x".into(),
        unit: "nanos".into(),
        direction,
        primary: true,
        margin: None,
        scale: Scale::Auto,
        data,
    };
    let mut family = Family::new(3, vec![sample]);
    family.resamples = 199;
    judge(&family).expect("5 % is an error rate").remove(0)
}

/// Values with many ties: small integers.
fn tied(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    vec((-6_i32..7).prop_map(f64::from), count)
}

/// Any finite values, including the smallest and the largest.
fn any_finite(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    let edges = prop_oneof![
        Just(0.0),
        Just(-0.0),
        Just(f64::MAX),
        Just(f64::MIN),
        Just(5e-324),
        Just(f64::MIN_POSITIVE)
    ];
    let any = any::<f64>().prop_filter("finite", |x| x.is_finite());
    vec(prop_oneof![4 => any, 1 => edges], count)
}

proptest! {
    // A failure is fixed and gets a test of its own, so no file of failing seeds is kept.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_p_value_is_a_probability_above_zero_and_the_same_for_both_directions(d in tied(1..70)) {
        let negated: Vec<f64> = d.iter().map(|x| -x).collect();
        for (p, mirrored) in [
            (signed_rank::test(&d, Zeros::Pratt).unwrap().p, signed_rank::test(&negated, Zeros::Pratt).unwrap().p),
            (signed_rank::test(&d, Zeros::Drop).unwrap().p, signed_rank::test(&negated, Zeros::Drop).unwrap().p),
            (sign_flip::test(&d, 99, 1).unwrap().p, sign_flip::test(&negated, 99, 1).unwrap().p),
        ] {
            prop_assert!(p > 0.0 && p <= 1.0);
            prop_assert!((p - mirrored).abs() < 1e-12);
        }
    }

    #[test]
    fn rank_sums_do_not_care_which_group_is_called_a(a in tied(1..40), b in tied(1..40)) {
        let (p, swapped) = (rank_sum::test(&a, &b).unwrap().p, rank_sum::test(&b, &a).unwrap().p);
        prop_assert!(p > 0.0 && p <= 1.0);
        prop_assert!((p - swapped).abs() < 1e-9 * p);
        let (up, down) = (rank_sum::estimate(&a, &b, 0.95).unwrap(), rank_sum::estimate(&b, &a, 0.95).unwrap());
        prop_assert!((up.value + down.value).abs() < 1e-12);
        if let (Some(up), Some(down)) = (up.interval, down.interval) {
            prop_assert!((up.low + down.high).abs() < 1e-12 && (up.high + down.low).abs() < 1e-12);
        }
    }

    #[test]
    fn an_interval_contains_its_estimate_and_widens_with_its_level(d in any_finite(2..60)) {
        let wide = signed_rank::estimate(&d, 0.99).unwrap();
        let narrow = signed_rank::estimate(&d, 0.9).unwrap();
        let (wide, narrow, value) = (wide.interval.unwrap(), narrow.interval.unwrap(), narrow.value);
        prop_assert!(narrow.contains(value) && wide.contains(value));
        prop_assert!(wide.low <= narrow.low && narrow.high <= wide.high);
    }

    #[test]
    fn the_interval_holds_every_shift_that_the_exact_test_accepts(d in tied(6..14), shift in -8_i32..9) {
        // The data have ties or not. For a shift that the interval excludes, the conditional test must reject or have
        // too few levels to decide.
        let theta = f64::from(shift) + 0.25;
        let interval = signed_rank::estimate(&d, 0.95).unwrap().interval.unwrap();
        let moved: Vec<f64> = d.iter().map(|x| x - theta).collect();
        let p = signed_rank::test(&moved, Zeros::Pratt).unwrap().p;
        if p > 0.12 {
            prop_assert!(interval.contains(theta), "{interval:?} lacks {theta} with p {p}");
        }
    }

    #[test]
    fn swapping_the_variants_turns_improved_into_regressed(
        a in vec(1.0_f64..1000.0, 6..20),
        factor in 0.8_f64..1.25,
    ) {
        let b: Vec<f64> = a.iter().enumerate().map(|(i, x)| x * (factor + 0.001 * (i % 3) as f64)).collect();
        let forth = one(Direction::Lower, Data::paired(&a, &b));
        let back = one(Direction::Lower, Data::paired(&b, &a));
        let expected = match forth.verdict {
            Verdict::Improved => Verdict::Regressed,
            Verdict::Regressed => Verdict::Improved,
            ref other => other.clone(),
        };
        prop_assert_eq!(&back.verdict, &expected);
        let (x, y) = (forth.effect.unwrap().estimate, back.effect.unwrap().estimate);
        prop_assert!((x * y - 1.0).abs() < 1e-12);
    }

    #[test]
    fn no_finite_data_make_the_judge_panic_or_claim_a_number_that_is_none(
        a in any_finite(0..30),
        b in any_finite(0..30),
    ) {
        let single = |x: &f64| vec![Bin { value: *x, count: 3 }];
        let shapes = [
            Data::paired(&a, &b),
            Data::Unpaired { a: a.clone(), b: b.clone() },
            Data::NestedUnpaired { a: a.chunks(3).map(<[f64]>::to_vec).collect(), b: b.chunks(2).map(<[f64]>::to_vec).collect() },
            Data::PairedTails {
                quantile: 0.9,
                pairs: a.iter().zip(&b).map(|(x, y)| TailPair { a: single(x), b: single(y), identical: false }).collect(),
            },
            Data::UnpairedTails { quantile: 0.5, a: a.iter().take(5).map(single).collect(), b: b.iter().take(4).map(single).collect() },
        ];
        for data in shapes {
            let judged = one(Direction::Lower, data);
            if let Some(effect) = judged.effect {
                prop_assert!(effect.estimate.is_finite(), "{judged:?}");
                if let Some(interval) = effect.interval {
                    prop_assert!(interval.low.is_finite() && interval.high.is_finite(), "{judged:?}");
                    prop_assert!(interval.low <= effect.estimate && effect.estimate <= interval.high, "{judged:?}");
                }
                let p = judged.p.unwrap();
                prop_assert!(p > 0.0 && p <= 1.0 && judged.p_adjusted.unwrap() >= p * 0.999_999, "{judged:?}");
            } else {
                let invalid = matches!(judged.verdict, Verdict::Invalid { .. });
                prop_assert!(invalid, "{judged:?}");
            }
        }
    }

    #[test]
    fn fewer_than_six_pairs_never_claim_anything(pairs in vec((1.0_f64..100.0, 1.0_f64..100.0), 1..6)) {
        let pairs: Vec<Pair> = pairs.into_iter().map(|(a, b)| Pair::new(a, b)).collect();
        let judged = one(Direction::Lower, Data::Paired { pairs });
        // If the noise is enormous, no realistic number of trials is enough, and none is suggested.
        let told = matches!(judged.verdict, Verdict::Inconclusive { n_needed } if n_needed.is_none_or(|n| n >= 6));
        prop_assert!(told, "{judged:?}");
    }

    #[test]
    fn change_points_are_inside_the_series_and_apart(values in any_finite(0..40)) {
        let search = Search { permutations: 99, ..Search::default() };
        let found = change_points(&values, &search).unwrap();
        let mut last = 0;
        for point in found {
            prop_assert!(point.at >= last + search.least && point.at + search.least <= values.len());
            prop_assert!(point.p <= search.alpha && point.statistic.is_finite());
            last = point.at;
        }
    }
}

#[test]
fn nan_and_infinity_are_refused_everywhere_by_position() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let values = [1.0, 2.0, bad, 4.0];
        let message = signed_rank::test(&values, Zeros::Pratt)
            .unwrap_err()
            .to_string();
        assert!(message.contains("value 2"), "{message}");
        assert!(signed_rank::estimate(&values, 0.95).is_err());
        assert!(sign_flip::test(&values, 9, 0).is_err());
        assert!(rank_sum::test(&values, &[1.0]).is_err());
        assert!(rank_sum::estimate(&[1.0], &values, 0.95).is_err());
        assert!(change_points(&values, &Search::default()).is_err());
        let bins = vec![Bin {
            value: bad,
            count: 1,
        }];
        assert!(pagetide_verdict::tail::pooled_quantile(&[bins], 0.5).is_err());
    }
}

#[test]
fn a_confidence_level_outside_zero_and_one_is_refused() {
    for level in [0.0, 1.0, 95.0, -1.0, f64::NAN] {
        assert!(signed_rank::estimate(&[1.0, 2.0], level).is_err());
        assert!(rank_sum::estimate(&[1.0], &[2.0], level).is_err());
    }
}

#[test]
fn ten_thousand_pairs_are_judged_without_all_their_averages_in_memory() {
    let mut random = pagetide_verdict::rng::Xoshiro::new(5);
    let a: Vec<f64> = (0..10_000).map(|_| 100.0 + random.normal()).collect();
    let b: Vec<f64> = a.iter().map(|x| x * 1.03 + 0.5 * random.normal()).collect();
    let judged = one(Direction::Lower, Data::paired(&a, &b));
    assert_eq!(judged.verdict, Verdict::Regressed);
    let interval = judged.effect.unwrap().interval.unwrap();
    assert!(interval.contains(1.03) && interval.half_width() < 0.001);
}
