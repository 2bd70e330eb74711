//! Tests of the comparison of waiting rates with known true rates. Noise or the shape of a curve never gives a
//! difference, and a real difference is found.

use pagetide_verdict::rng::Xoshiro;
use pagetide_verdict::waiting::{Incomparable, RateConclusion, RateRatio, WaitingRun, compare};

/// A side with the runs that a search makes: some sizes with the first seed only, and two sizes near 5 % with three
/// seeds.
struct Side {
    /// Rate at low pressure: log slowdown divided by log waiting.
    rate: f64,
    /// Relative increase of the rate per unit of waiting.
    bend: f64,
    /// Noise of a seed's slowdown, as a fraction of the slowdown.
    noise: f64,
    /// Waiting of the side at each size, divided by the value in [`WAITING`].
    shift: f64,
}

/// Waiting at each size, as a fraction, in the order of a search. The last two sizes have all seeds.
const WAITING: [f64; 6] = [0.30, 0.16, 0.09, 0.01, 0.06, 0.03];

fn runs(side: &Side, random: &mut Xoshiro) -> Vec<WaitingRun> {
    let mut runs = Vec::new();
    // A seed is faster or slower by the same factor at all sizes of a side.
    let own: Vec<f64> = (0..3).map(|_| side.noise * random.normal()).collect();
    for (place, waiting) in WAITING.iter().enumerate() {
        let seeds = if place < WAITING.len() - 2 { 1 } else { 3 };
        for seed in 0..seeds {
            let waited = waiting * side.shift;
            let noise = own[seed as usize] + 0.3 * side.noise * random.normal();
            let rate = side.rate * (1.0 + side.bend * waited) * (1.0 + noise);
            runs.push(WaitingRun {
                size: 100 - place as u64,
                seed,
                share: 1.0 - (-waited).exp(),
                slowdown: (rate * waited).exp() - 1.0,
            });
        }
    }
    // With plenty of memory, nothing waits.
    runs.extend((0..3).map(|seed| WaitingRun {
        size: 1000,
        seed,
        share: 0.0,
        slowdown: 0.0,
    }));
    runs
}

/// Number of pairs of simulated searches that give the wanted finding.
fn counted(a: &Side, b: &Side, wanted: RateConclusion) -> usize {
    let mut random = Xoshiro::new(7);
    (0..1000)
        .filter(|_| {
            let (a, b) = (runs(a, &mut random), runs(b, &mut random));
            compare(&a, &b, 2).is_ok_and(|found| found.finding == wanted)
        })
        .count()
}

#[test]
fn equal_rates_are_never_reported_to_differ_for_any_noise_shape_and_sizes() {
    for noise in [0.0, 0.001, 0.02, 0.1, 0.4] {
        for bend in [0.0, 1.0, 4.0, -1.5] {
            for shift in [1.0, 0.7, 1.6] {
                let side = |shift| Side {
                    rate: 1.2,
                    bend,
                    noise,
                    shift,
                };
                let false_alarms = counted(&side(1.0), &side(shift), RateConclusion::Differ);
                assert!(false_alarms <= 25, "{noise} {bend} {shift}: {false_alarms}");
            }
        }
    }
}

#[test]
fn a_planted_difference_is_found_and_its_interval_covers_it() {
    let side = |rate| Side {
        rate,
        bend: 0.5,
        noise: 0.01,
        shift: 1.0,
    };
    let found = counted(&side(1.2), &side(1.8), RateConclusion::Differ);
    assert!(found >= 950, "{found}");
    let mut random = Xoshiro::new(3);
    let covered = (0..1000)
        .filter(|_| {
            let (a, b) = (runs(&side(1.2), &mut random), runs(&side(1.8), &mut random));
            let RateRatio { interval, .. } = compare(&a, &b, 2).unwrap();
            interval[0] <= 1.5 && 1.5 <= interval[1]
        })
        .count();
    assert!(covered >= 950, "{covered}");
    // The data are too noisy to decide: the result is left open, not called the same.
    let loud = |rate| Side {
        noise: 0.3,
        ..side(rate)
    };
    let same = counted(&loud(1.2), &loud(1.8), RateConclusion::Same);
    assert_eq!(same, 0);
}

#[test]
fn the_same_runs_twice_differ_by_nothing() {
    let side = Side {
        rate: 1.2,
        bend: 0.0,
        noise: 0.05,
        shift: 1.0,
    };
    let all = runs(&side, &mut Xoshiro::new(1));
    let found = compare(&all, &all, 2).unwrap();
    assert!((found.ratio - 1.0).abs() < 1e-12);
    assert_ne!(found.finding, RateConclusion::Differ);
    assert!(found.interval[0] <= 1.0 && 1.0 <= found.interval[1]);
}

#[test]
fn what_cannot_be_compared_says_why() {
    let side = Side {
        rate: 1.2,
        bend: 0.0,
        noise: 0.01,
        shift: 1.0,
    };
    let all = runs(&side, &mut Xoshiro::new(1));
    let one: Vec<WaitingRun> = all.iter().filter(|run| run.seed == 0).copied().collect();
    assert_eq!(compare(&one, &all, 2), Err(Incomparable::Seeds));
    assert_eq!(compare(&[], &all, 2), Err(Incomparable::Seeds));
    let idle: Vec<WaitingRun> = all
        .iter()
        .map(|run| WaitingRun {
            share: 0.0,
            slowdown: 0.0,
            ..*run
        })
        .collect();
    assert_eq!(compare(&all, &idle, 2), Err(Incomparable::NoPressure));
    // One of three seeds is faster under pressure.
    let odd: Vec<WaitingRun> = all
        .iter()
        .map(|run| WaitingRun {
            slowdown: if run.seed == 1 { -0.001 } else { run.slowdown },
            ..*run
        })
        .collect();
    assert_eq!(compare(&all, &odd, 2), Err(Incomparable::NotSlower));
}
