//! Tests that ties are decided from the values: 150 data sets of integers are checked against rank tests over exact
//! fractions.

use pagetide_quantity::Direction;
use pagetide_verdict::rng::Xoshiro;
use pagetide_verdict::sample::{Scale, UnitPair};
use pagetide_verdict::{Data, Family, MetricSample, judge};

fn p_of(data: Data, unit: &str) -> f64 {
    let metric = MetricSample {
        name: "m".into(),
        unit: unit.into(),
        direction: Direction::Lower,
        primary: true,
        margin: None,
        scale: Scale::Auto,
        data,
    };
    judge(&Family::new(1, vec![metric])).unwrap()[0].p.unwrap()
}

/// Signed-rank p-value with Pratt's zeros, by enumeration of all signs, for sizes that are fractions `n / d`.
fn signed_rank(differences: &[(i128, u128, u128)]) -> f64 {
    // Each item is (sign, numerator, denominator). Ranks are doubled, and ties are found by cross-multiplication.
    let rank = |own: &(i128, u128, u128)| -> i64 {
        let (mut below, mut equal) = (0, 0);
        for other in differences {
            match (other.1 * own.2).cmp(&(own.1 * other.2)) {
                std::cmp::Ordering::Less => below += 1,
                std::cmp::Ordering::Equal => equal += 1,
                std::cmp::Ordering::Greater => {}
            }
        }
        2 * below + equal + 1
    };
    let ranks: Vec<(i64, bool)> = differences
        .iter()
        .filter(|d| d.0 != 0)
        .map(|d| (rank(d), d.0 > 0))
        .collect();
    let observed: i64 = ranks.iter().filter(|r| r.1).map(|r| r.0).sum();
    let (mut below, mut above) = (0_u64, 0_u64);
    for signs in 0..1_u64 << ranks.len() {
        let sum: i64 = ranks
            .iter()
            .enumerate()
            .filter(|(place, _)| signs >> place & 1 == 1)
            .map(|(_, r)| r.0)
            .sum();
        below += u64::from(sum <= observed);
        above += u64::from(sum >= observed);
    }
    (2.0 * below.min(above) as f64 / (1_u64 << ranks.len()) as f64).min(1.0)
}

#[test]
fn rank_tests_of_whole_numbers_are_exact_whatever_their_size() {
    let mut random = Xoshiro::new(12);
    let mut wrong = Vec::new();
    for set in 0..150_u64 {
        // A few distinct ratios over many magnitudes give ties between ratios of different numbers.
        let pairs: Vec<(u64, u64)> = (0..12)
            .map(|_| {
                let base = 1 + random.below(40) as u64;
                let scale = [1, 7, 100, 12_345, 1_000_003][random.below(5)];
                let (x, y) = (6 + random.below(4) as u64, 6 + random.below(4) as u64);
                (base * scale * x, base * scale * y)
            })
            .collect();
        let exact: Vec<(i128, u128, u128)> = pairs
            .iter()
            .map(|&(a, b)| {
                let (low, high) = (u128::from(a.min(b)), u128::from(a.max(b)));
                (i128::from(b) - i128::from(a), high, low)
            })
            .collect();
        let expected = signed_rank(&exact);
        let units = pairs
            .iter()
            .map(|&(a, b)| UnitPair {
                a: vec![a as f64],
                b: vec![b as f64],
                identical: false,
            })
            .collect();
        let found = p_of(Data::NestedPaired { units }, "count");
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().map(|&(a, b)| (a as f64, b as f64)).unzip();
        let plain = p_of(Data::paired(&a, &b), "count");
        if (found - expected).abs() > 1e-12 || (plain - expected).abs() > 1e-12 {
            wrong.push((set, expected, found, plain));
        }
    }
    assert!(wrong.is_empty(), "{} of 150: {wrong:?}", wrong.len());
}

#[test]
fn differences_of_decimal_shares_tie_where_they_are_equal() {
    // The difference is 0.1 three times, computed such that no two results are the same binary number.
    let (a, b) = (
        [0.1, 0.2, 0.7, 0.5, 0.3, 0.6],
        [0.2, 0.3, 0.8, 0.4, 0.2, 0.5],
    );
    assert!((p_of(Data::paired(&a, &b), "share") - 1.0).abs() < 1e-12);
}

#[test]
fn large_numbers_that_differ_by_one_are_no_ties() {
    let base = 1e15;
    // The values are in random order; otherwise each trial would appear to be correlated with the previous one.
    let group = |values: [f64; 4]| values.map(|value| vec![base + value]).to_vec();
    let (a, b) = (group([1.0, 3.0, 0.0, 2.0]), group([6.0, 4.0, 7.0, 5.0]));
    let p = p_of(Data::NestedUnpaired { a, b }, "count");
    assert!((p - 2.0 / 70.0).abs() < 1e-12, "{p}");
}
