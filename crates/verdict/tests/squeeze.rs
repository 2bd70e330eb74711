//! Tests of the search for the smallest size that is enough, on curves with a known answer.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of tests are small and positive"
)]

use pagetide_verdict::rng::Xoshiro;
use pagetide_verdict::squeeze::{Answer, Design, Fit, Outcome, Search, knee};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

fn design(plenty: u64) -> Design {
    Design {
        plenty,
        least: plenty / 16,
        step: 64 << 10,
        within: 0.05,
        seeds: 3,
        runs: 14,
        resolution: 0.02,
    }
}

/// Runs a search to its end. `cost` returns the outcome for a size and a seed.
fn search(design: Design, mut cost: impl FnMut(u64, u32) -> Outcome) -> Search {
    let mut search = Search::new(design);
    while let Some(step) = search.next() {
        assert!(!step.seeds.is_empty());
        assert!((design.least..=design.plenty).contains(&step.size));
        assert_eq!(step.size % design.step, 0);
        for seed in step.seeds {
            search.add(step.size, seed, cost(step.size, seed));
        }
        assert!(search.made() <= design.runs, "{}", search.made());
    }
    search
}

fn ends(search: &Search) -> (u64, u64) {
    match search.answer() {
        Answer::Between { too_small, enough } => (too_small.size, enough.size),
        other => panic!("{other:?} from {:?}", search.curve()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn a_step_is_found_to_the_resolution_and_both_ends_are_sure(
        plenty in 32_u64..4096, at in 0.08_f64..0.97, base in 1e3_f64..1e12, factor in 1.2_f64..50.0,
    ) {
        let design = design(plenty * MIB);
        let truth = (design.plenty as f64 * at) as u64;
        let found = search(design, |size, seed| {
            let noise = 1.0 + 0.001 * f64::from(seed);
            Outcome::Cost(base * noise * if size < truth { factor } else { 1.0 })
        });
        let (small, enough) = ends(&found);
        prop_assert!(small < truth && truth <= enough, "{small} {truth} {enough}");
        let gap = (enough - small) as f64;
        prop_assert!(gap <= enough as f64 * 0.045 + design.step as f64, "{small} {enough}");
    }

    #[test]
    fn what_follows_a_step_is_known_ahead_if_the_step_is_clear(
        plenty in 32_u64..4096, at in 0.08_f64..0.97, factor in 1.2_f64..50.0,
    ) {
        let design = design(plenty * MIB);
        let truth = (design.plenty as f64 * at) as u64;
        let mut search = Search::new(design);
        let mut last = None;
        while let Some(step) = search.next() {
            let ahead = last.replace(search.ahead(&step));
            let is_known = ahead.is_none_or(|ahead| ahead.is_empty() || ahead.contains(&step));
            prop_assert!(is_known, "{step:?}");
            prop_assert!(last.as_ref().is_some_and(|ahead| ahead.len() <= 2));
            for seed in step.seeds {
                let cost = if step.size < truth { factor } else { 1.0 };
                search.add(step.size, seed, Outcome::Cost(cost));
            }
        }
    }

    #[test]
    fn a_smooth_curve_is_cut_where_it_crosses_the_share(
        at in 0.1_f64..0.8, power in 1.0_f64..8.0, within in 0.02_f64..0.5,
    ) {
        let design = Design { within, ..design(1024 * MIB) };
        // At the true size the slowdown against plenty is exactly `within`.
        let (plenty, truth) = (design.plenty as f64, design.plenty as f64 * at);
        let raw = |size: f64| (truth / size).powf(power);
        let scale = within / ((raw(truth) - raw(plenty)) - within * raw(plenty)).max(1e-9);
        prop_assume!(scale < 10.0);
        let found = search(design, |size, _| Outcome::Cost(1.0 + scale * raw(size as f64)));
        let (small, enough) = ends(&found);
        prop_assert!(small as f64 <= truth * 1.001 && truth <= enough as f64 * 1.001, "{small} {truth} {enough}");
        prop_assert!(enough as f64 / small as f64 <= 1.05, "{small} {enough}");
    }

    #[test]
    fn whatever_the_curve_the_ends_are_what_their_own_seeds_say(costs in prop::collection::vec(prop::option::weighted(0.9, 0.5_f64..9.0), 64)) {
        let design = design(64 * MIB);
        let found = search(design, |size, seed| {
            let place = (size / MIB + u64::from(seed) * 7) as usize % 64;
            match costs[place] {
                Some(cost) => Outcome::Cost(cost),
                None => Outcome::Died("of hunger".into()),
            }
        });
        let curve = found.curve();
        let at = |size| curve.iter().find(|point| point.size == size).unwrap();
        match found.answer() {
            Answer::Between { too_small, enough } => {
                prop_assert!(too_small.size < enough.size);
                prop_assert!(matches!(at(too_small.size).fit, Fit::TooSlow | Fit::Died));
                prop_assert_eq!(at(enough.size).fit, Fit::Within);
                prop_assert_eq!(too_small.is_sure, at(too_small.size).is_full);
                // No tried size above the answer may be too slow.
                let larger = curve.iter().filter(|point| point.size > enough.size);
                prop_assert!(larger.clone().all(|point| !matches!(point.fit, Fit::TooSlow | Fit::Died)));
            }
            Answer::Never { enough } | Answer::AtMost { enough } => prop_assert_eq!(at(enough.size).fit, Fit::Within),
            Answer::PlentyDied { .. } => prop_assert_eq!(at(design.plenty).fit, Fit::Died),
            Answer::NothingTried => prop_assert!(false, "something was tried"),
        }
    }
}

#[test]
fn with_noise_the_answer_covers_the_truth_and_stays_narrow() {
    let (mut covered, mut narrow) = (0, 0);
    for round in 0..300 {
        let mut random = Xoshiro::new(round);
        let design = design(256 * MIB);
        let truth = 60.0 + random.normal().abs() * 20.0;
        let found = search(design, |size, _| {
            let size = size as f64 / MIB as f64;
            let slowdown = 0.05 * (truth / size).powi(6);
            Outcome::Cost((1.0 + slowdown) * (1.0 + 0.003 * random.normal()))
        });
        let (small, enough) = match found.answer() {
            Answer::AtMost { enough } => (0, enough.size),
            _ => ends(&found),
        };
        let (small, enough) = (small as f64 / MIB as f64, enough as f64 / MIB as f64);
        covered += u32::from(small <= truth && truth <= enough);
        narrow += u32::from(enough / small < 1.3);
    }
    // Each end has a confidence of 95 %, and the first seed also chose the sizes.
    assert!(covered >= 245, "{covered} of 300");
    assert!(narrow >= 240, "{narrow} of 300");
}

#[test]
fn a_size_at_which_it_dies_is_too_small_and_needs_no_second_seed() {
    let found = search(design(64 * MIB), |size, _| {
        if size < 20 * MIB {
            Outcome::Died("killed at its limit".into())
        } else {
            Outcome::Cost(1.0)
        }
    });
    let Answer::Between { too_small, enough } = found.answer() else {
        panic!("{:?}", found.answer());
    };
    assert_eq!(too_small.died.as_deref(), Some("killed at its limit"));
    assert!(too_small.is_sure && enough.is_sure);
    assert!(too_small.size < 20 * MIB && enough.size >= 20 * MIB);
    let curve = found.curve();
    let dead = curve.iter().filter(|point| point.fit == Fit::Died);
    assert!(dead.clone().count() > 0 && dead.clone().all(|point| point.seeds == 1));
}

#[test]
fn where_memory_never_matters_the_smallest_size_says_so_with_all_seeds() {
    let design = design(64 * MIB);
    let found = search(design, |_, _| Outcome::Cost(3.0));
    let Answer::Never { enough } = found.answer() else {
        panic!("{:?}", found.answer());
    };
    assert!(enough.is_sure);
    assert!((4 * MIB..5 * MIB).contains(&enough.size), "{enough:?}");
    assert!(found.made() <= 12, "{}", found.made());
}

#[test]
fn where_even_plenty_dies_nothing_else_runs() {
    let found = search(design(64 * MIB), |_, _| {
        Outcome::Died("no such file".into())
    });
    assert_eq!(
        found.answer(),
        Answer::PlentyDied {
            why: "no such file".into()
        }
    );
    assert_eq!(found.made(), 3);
}

#[test]
fn a_search_resumes_from_its_runs_in_any_order() {
    let design = design(64 * MIB);
    let cost = |size: u64, seed: u32| {
        Outcome::Cost(1.0 + 0.002 * f64::from(seed) + 30.0 / (size / MIB) as f64)
    };
    let whole = search(design, cost);
    let mut again = Search::new(design);
    while let Some(step) = again.next() {
        // The search is interrupted in the middle of each step.
        let seed = *step.seeds.last().unwrap();
        again.add(step.size, seed, cost(step.size, seed));
    }
    assert_eq!(whole.answer(), again.answer());
    assert_eq!(whole.curve(), again.curve());
}

#[test]
fn a_hint_is_tried_first_and_a_single_seed_is_provisional() {
    let design = Design {
        seeds: 1,
        ..design(1024 * MIB)
    };
    let cost = |size: u64| Outcome::Cost(if size < 30 * MIB { 9.0 } else { 1.0 });
    let mut found = Search::new(Design {
        least: MIB,
        ..design
    });
    found.hint(31 * MIB);
    while let Some(step) = found.next() {
        found.add(step.size, 0, cost(step.size));
    }
    let (small, enough) = ends(&found);
    assert!(small < 30 * MIB && (30 * MIB..=31 * MIB).contains(&enough));
    assert!(found.made() <= 10, "{}", found.made());
    assert!(found.curve().iter().all(|point| point.interval.is_none()));
}

#[test]
fn the_knee_is_where_the_curve_bends_and_a_flat_one_has_none() {
    let design = design(64 * MIB);
    let found = search(design, |size, _| {
        let lack = (24.0 - size as f64 / MIB as f64).max(0.0);
        Outcome::Cost(1.0 + lack)
    });
    let at = knee(&found.curve()).unwrap();
    assert!((23 * MIB..=26 * MIB).contains(&at), "{at}");
    let flat = search(design, |_, _| Outcome::Cost(1.0));
    assert_eq!(knee(&flat.curve()), None);
}
