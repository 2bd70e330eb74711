//! Tests of fractional designs, their effects, and Pareto fronts: known effects are found, and without effects nothing
//! is claimed.

#![allow(clippy::float_cmp, reason = "sums of signs are whole")]

use pagetide_verdict::choice::{beats, front};
use pagetide_verdict::factorial::{
    Effect, Fraction, Interaction, MAX_ACTIVE, MAX_FACTORS, active, adjust, blame, worth_choosing,
};
use pagetide_verdict::rng::Xoshiro;

const ALPHA: f64 = 0.05;

fn sign(level: bool) -> f64 {
    if level { 1.0 } else { -1.0 }
}

/// Values by run and seed: `truth` of the run, plus a random effect of each seed, plus noise.
fn simulated(
    fraction: &Fraction,
    seeds: usize,
    noise: f64,
    random: &mut Xoshiro,
    truth: impl Fn(&[bool]) -> f64,
) -> Vec<Vec<Option<f64>>> {
    let whims: Vec<f64> = (0..seeds).map(|_| random.normal()).collect();
    let runs = fraction.runs().iter();
    runs.map(|run| {
        let value = truth(run);
        let of_seed = |whim: &f64| Some(5.0 + value + whim + noise * random.normal());
        whims.iter().map(of_seed).collect()
    })
    .collect()
}

fn adjusted(mut effects: Vec<Effect>) -> Vec<Effect> {
    adjust(effects.iter_mut());
    effects
}

#[test]
fn designs_are_balanced_and_no_main_effect_is_an_interaction_of_two() {
    for factors in 1..=MAX_FACTORS {
        let fraction = Fraction::of(factors).unwrap();
        let runs = fraction.runs();
        assert_eq!(runs.len(), [2, 4, 8, 8, 16, 16, 16, 16][factors - 1]);
        assert_eq!(runs.last().unwrap(), &vec![true; factors]);
        let sum = |of: &dyn Fn(&[bool]) -> f64| runs.iter().map(|run| of(run)).sum::<f64>();
        for a in 0..factors {
            assert_eq!(sum(&|run| sign(run[a])), 0.0, "{factors}: {a} is balanced");
            for b in 0..a {
                assert_eq!(sum(&|run| sign(run[a]) * sign(run[b])), 0.0, "{a} {b}");
                for c in 0..b {
                    let product = |run: &[bool]| sign(run[a]) * sign(run[b]) * sign(run[c]);
                    assert_eq!(sum(&product), 0.0, "{factors} factors: {a} is {b} with {c}");
                }
            }
        }
        let mut rows = runs.to_vec();
        rows.sort();
        rows.dedup();
        assert_eq!(rows.len(), runs.len(), "no run stands twice");
    }
    assert!(Fraction::of(0).is_none() && Fraction::of(MAX_FACTORS + 1).is_none());
    assert_eq!(Fraction::of(3).unwrap().resolution(), None);
    assert_eq!(Fraction::of(5).unwrap().resolution(), Some(5));
}

#[test]
fn planted_main_effects_are_found_with_their_size_and_others_are_not_claimed() {
    let mut random = Xoshiro::new(3);
    let fraction = Fraction::of(6).unwrap();
    let (mut found, mut false_claims, mut covered) = (0, 0, 0);
    for _ in 0..300 {
        let truth = |run: &[bool]| 0.05 * sign(run[1]) - 0.10 * sign(run[4]);
        let values = simulated(&fraction, 5, 0.02, &mut random, truth);
        let effects = adjusted(fraction.effects(&values));
        for (factor, effect) in effects.iter().enumerate() {
            let is_claimed = effect.is_sure(ALPHA, 0.0);
            match factor {
                1 | 4 => found += usize::from(is_claimed),
                _ => false_claims += usize::from(is_claimed),
            }
        }
        let [low, high] = effects[4].interval.unwrap();
        covered += usize::from((low..=high).contains(&libm::expm1(-0.20)));
    }
    assert!(found >= 580, "{found} of 600");
    // Four factors without effect share the rest of 5 % of 300 campaigns.
    assert!(false_claims <= 30, "{false_claims}");
    assert!(
        (270..=298).contains(&covered),
        "{covered} of 300 intervals hold the truth"
    );
}

#[test]
fn without_any_effect_a_campaign_makes_a_claim_in_at_most_five_of_a_hundred() {
    let mut random = Xoshiro::new(17);
    for (factors, seeds) in [(4, 3), (4, 5), (8, 5)] {
        let fraction = Fraction::of(factors).unwrap();
        let campaigns = 2_000;
        let claims = (0..campaigns)
            .filter(|_| {
                // Three kinds of swap form one family. The noise differs between runs; the first has by far the most.
                let mut all: Vec<Effect> = (0..3)
                    .flat_map(|_| {
                        let mut values = simulated(&fraction, seeds, 0.02, &mut random, |_| 0.0);
                        for value in values[0].iter_mut().flatten() {
                            *value += 0.3 * random.normal();
                        }
                        fraction.effects(&values)
                    })
                    .collect();
                adjust(all.iter_mut());
                all.iter().any(|effect| effect.is_sure(ALPHA, 0.0))
            })
            .count();
        // The expected 100, plus four standard errors.
        assert!(
            claims <= 140,
            "{factors} factors, {seeds} seeds: {claims} of {campaigns}"
        );
    }
}

#[test]
fn factors_that_act_only_together_make_no_false_main_effect() {
    let mut random = Xoshiro::new(29);
    for factors in 4..=MAX_FACTORS {
        let fraction = Fraction::of(factors).unwrap();
        for (a, b) in [(0, 1), (1, factors - 1), (2, 3)] {
            let together = |run: &[bool]| 0.5 * sign(run[a]) * sign(run[b]);
            let values = simulated(&fraction, 4, 0.0, &mut random, together);
            for (factor, effect) in fraction.effects(&values).iter().enumerate() {
                let share = effect.share.unwrap();
                assert!(
                    share.abs() < 1e-9,
                    "{factors} factors, {a} with {b}: {factor} has {share}"
                );
            }
        }
    }
}

#[test]
fn a_seed_with_a_missing_run_is_left_out_and_a_run_that_always_died_leaves_no_effect() {
    let mut random = Xoshiro::new(5);
    let fraction = Fraction::of(4).unwrap();
    let truth = |run: &[bool]| 0.2 * sign(run[2]);
    let whole = simulated(&fraction, 5, 0.01, &mut random, truth);
    let mut holed = whole.clone();
    holed[3][1] = None;
    holed[6][1] = None;
    holed[0][4] = Some(f64::NAN);
    let (all, rest) = (fraction.effects(&whole), fraction.effects(&holed));
    for (all, rest) in all.iter().zip(&rest) {
        let kept: Vec<f64> = [0, 2, 3].iter().map(|seed| all.by_seed[*seed]).collect();
        assert_eq!(rest.by_seed, kept);
    }
    assert!(adjusted(rest)[2].is_sure(ALPHA, 0.01));
    // Runs at the second level of the second factor fail.
    let died: Vec<bool> = fraction.runs().iter().map(|run| run[1]).collect();
    for (run, _) in died.iter().enumerate().filter(|(_, died)| **died) {
        holed[run] = vec![None; 5];
    }
    for effect in adjusted(fraction.effects(&holed)) {
        assert_eq!(
            (effect.share, effect.p, effect.adjusted),
            (None, None, None)
        );
        assert!(!effect.is_sure(ALPHA, 0.0));
    }
    assert_eq!(blame(&fraction, &died), [(1, true)]);
    assert_eq!(blame(&fraction, &[false; 8]), []);
    assert_eq!(blame(&fraction, &[true; 8]), [], "it is no level's fault");
    // One seed is too few for an interval, and no values give no effect.
    let one: Vec<_> = whole.iter().map(|run| run[..1].to_vec()).collect();
    let effect = &adjusted(fraction.effects(&one))[2];
    assert!(effect.share.is_some() && effect.interval.is_none() && !effect.is_sure(ALPHA, 0.0));
    assert!(fraction.effects(&[])[0].share.is_none());
}

#[test]
fn holm_multiplies_by_what_is_left_and_never_lets_a_larger_p_be_surer() {
    let effect = |p| Effect {
        p,
        ..Effect::default()
    };
    let mut family = [
        effect(Some(0.03)),
        effect(None),
        effect(Some(0.01)),
        effect(Some(0.02)),
    ];
    adjust(family.iter_mut());
    let adjusted: Vec<Option<f64>> = family.iter().map(|effect| effect.adjusted).collect();
    // Expected values from R: p.adjust(c(0.03, 0.01, 0.02), "holm")
    for (found, wanted) in adjusted
        .iter()
        .zip([Some(0.04), None, Some(0.03), Some(0.04)])
    {
        match (found, wanted) {
            (Some(found), Some(wanted)) => assert!((found - wanted).abs() < 1e-12, "{found}"),
            (found, wanted) => assert_eq!(*found, wanted),
        }
    }
}

#[test]
fn a_choice_is_on_the_front_unless_another_is_surely_better_in_something_and_worse_in_nothing() {
    let fast = vec![vec![1.0, 1.1, 0.9], vec![5.0, 5.0, 5.0]];
    let slow = vec![vec![2.0, 2.1, 1.9], vec![5.0, 5.0, 5.0]];
    let lean = vec![vec![2.0, 2.1, 1.9], vec![1.0, 1.1, 1.0]];
    let noisy = vec![vec![0.5, 3.9, 1.0], vec![5.0, 5.0, 5.0]];
    assert!(beats(&fast, &slow) && !beats(&slow, &fast));
    assert!(beats(&lean, &slow) && !beats(&fast, &lean) && !beats(&lean, &fast));
    assert!(
        !beats(&fast, &noisy),
        "that the noisy one is slower is not sure"
    );
    assert!(!beats(&fast, &fast.clone()), "nothing beats its equal");
    assert_eq!(
        front(&[fast.clone(), slow.clone(), lean.clone()]),
        [true, false, true]
    );
    // A difference of half a percent is ignored, however significant.
    let near = vec![vec![0.995, 1.095, 0.895], vec![5.0, 5.0, 5.0]];
    assert_eq!(front(&[fast, near]), [true, true]);
    // If only one choice has a cost, the cost is ignored.
    let unmeasured = vec![vec![0.5, 0.6, 0.4], Vec::new()];
    assert!(beats(&unmeasured, &slow));
    assert_eq!(front(&[]), [] as [bool; 0]);
}

#[test]
fn every_pair_of_factors_stands_in_one_interaction_and_designs_of_resolution_five_tell_all_apart() {
    for factors in 1..=MAX_FACTORS {
        let fraction = Fraction::of(factors).unwrap();
        let values = vec![vec![Some(1.0); 3]; fraction.runs().len()];
        let interactions = fraction.interactions(&values);
        let mut pairs: Vec<[usize; 2]> =
            interactions.iter().flat_map(|i| i.pairs.clone()).collect();
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), factors * (factors - 1) / 2);
        let is_apart = interactions.iter().all(|i| i.pairs.len() == 1);
        assert_eq!(is_apart, [1, 2, 3, 5].contains(&factors), "{factors}");
    }
}

/// Searches in the same way as `matrix`: the fractional design, then all combinations of the active factors, then the
/// sets worth choosing. Returns the claimed interactions and the levels of all factors in the cheapest set.
fn searched(
    factors: usize,
    noise: f64,
    random: &mut Xoshiro,
    cost: impl Fn(&[bool]) -> f64,
) -> (Vec<Interaction>, Vec<bool>) {
    let is_sure = |effect: &Effect| effect.is_sure(ALPHA, 0.01);
    let fraction = Fraction::of(factors).unwrap();
    let values = simulated(&fraction, 4, noise, random, &cost);
    let mut effects = fraction.effects(&values);
    let mut interactions = fraction.interactions(&values);
    adjust(
        effects
            .iter_mut()
            .chain(interactions.iter_mut().map(|i| &mut i.effect)),
    );
    let found = active(&effects, &interactions, is_sure);
    let wide = |row: &[bool]| {
        let mut levels = vec![false; factors];
        for (place, level) in found.iter().zip(row) {
            levels[*place] = *level;
        }
        levels
    };
    let Some(whole) = Fraction::whole(found.len()) else {
        return (Vec::new(), vec![false; factors]);
    };
    let values = simulated(&whole, 4, noise, random, |row| cost(&wide(row)));
    let mut together = whole.interactions(&values);
    adjust(together.iter_mut().map(|i| &mut i.effect));
    for pair in together.iter_mut().flat_map(|i| &mut i.pairs) {
        *pair = pair.map(|place| found[place]);
    }
    together.retain(|i| is_sure(&i.effect));
    let costs: Vec<Option<f64>> = values
        .iter()
        .map(|seeds| Some(seeds.iter().flatten().sum::<f64>() / seeds.len() as f64))
        .collect();
    let choices = worth_choosing(whole.runs(), &costs, &vec![false; found.len()], 0.01);
    let choices = choices.iter().map(|row| wide(row));
    let all = choices.chain(std::iter::once(vec![false; factors]));
    // Sets are ranked as a confirmation with other seeds would rank them. Of equal sets, the one with the fewest
    // changes comes first.
    let changes = |levels: &[bool]| levels.iter().filter(|level| **level).count();
    let best = all.min_by(|a, b| {
        let rounded = |levels: &[bool]| (cost(levels) * 100.0).round();
        rounded(a)
            .total_cmp(&rounded(b))
            .then(changes(a).cmp(&changes(b)))
    });
    (together, best.unwrap())
}

#[test]
fn planted_interactions_are_named_and_what_is_chosen_is_the_true_best() {
    type Cost = fn(&[bool]) -> f64;
    // Each case costs time unless its levels are right. The best set has the fewest changes among those without extra
    // cost.
    let planted: [(&str, Cost); 6] = [
        ("equal", |x| if x[0] == x[1] { 0.35 } else { 0.0 }),
        ("unequal", |x| if x[0] == x[1] { 0.0 } else { 0.35 }),
        ("both", |x| if x[0] && x[1] { 0.0 } else { 0.35 }),
        ("either", |x| if x[0] || x[1] { 0.0 } else { 0.35 }),
        ("neither", |x| if x[0] || x[1] { 0.35 } else { 0.0 }),
        ("three", |x| {
            let last = x.len() - 1;
            if x[0] && x[1] && x[last] { 0.0 } else { 0.35 }
        }),
    ];
    let mut random = Xoshiro::new(71);
    for factors in 2..=5 {
        for (name, cost) in planted {
            let mut right = 0;
            for _ in 0..20 {
                let (together, chosen) = searched(factors, 0.01, &mut random, cost);
                let least = Fraction::of(2).map(|_| cost(&chosen));
                let changes = chosen.iter().filter(|level| **level).count();
                let wanted = match name {
                    "unequal" | "neither" => 0,
                    "equal" | "either" => 1,
                    "both" => 2,
                    _ => 3.min(factors),
                };
                let is_best = least == Some(0.0) && changes == wanted;
                let is_named = together.iter().any(|i| i.pairs == [[0, 1]]);
                right += usize::from(is_best && is_named);
            }
            assert_eq!(right, 20, "{name} of {factors}");
        }
        for _ in 0..20 {
            let (together, chosen) = searched(factors, 0.0, &mut random, |_| 0.0);
            assert!(together.is_empty() && chosen.iter().all(|level| !level));
        }
    }
    assert!(Fraction::whole(0).is_none() && Fraction::whole(MAX_ACTIVE + 1).is_none());
}
