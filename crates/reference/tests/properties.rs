//! Tests of properties that hold for every pattern, range, length and seed.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests may unwrap as tests do"
)]

use pagetide_reference::{ColdFirst, HotCold, Pattern, Rng, ScanWithHotCore, Zipf, tally};
use proptest::prelude::*;

fn patterns() -> impl Strategy<Value = Pattern> {
    let share = || prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0];
    prop_oneof![
        Just(Pattern::Linear),
        Just(Pattern::Random),
        any::<bool>().prop_map(|as_written| Pattern::SmoothSin { as_written }),
        any::<bool>().prop_map(|as_written| Pattern::SmoothSinRandom { as_written }),
        Just(Pattern::Zipf05),
        (0.0..=16.0, any::<bool>())
            .prop_map(|(exponent, scatter)| Pattern::Zipf(Zipf { exponent, scatter })),
        Just(Pattern::Lognormal),
        (share(), share(), 0..100_u64, share()).prop_map(|(hot, share, move_every, by)| {
            Pattern::HotCold(HotCold {
                hot,
                share,
                move_every,
                by,
            })
        }),
        share().prop_map(|cold| Pattern::ColdFirst(ColdFirst { cold })),
        (share(), share())
            .prop_map(|(core, share)| Pattern::ScanWithHotCore(ScanWithHotCore { core, share })),
        Just(Pattern::Loop),
    ]
}

fn string(pattern: &Pattern, pages: u32, refs: u64, seed: u64) -> Vec<u32> {
    pattern.references(pages, refs, seed).unwrap().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn references_keep_to_their_range_and_number(
        pattern in patterns(), pages in 2..3000_u32, refs in 1..6000_u64, seed: u64,
    ) {
        let string = string(&pattern, pages, refs, seed);
        prop_assert_eq!(string.len() as u64, pattern.total(pages, refs).unwrap());
        prop_assert!(string.iter().all(|&page| page < pages));
        prop_assert_eq!(tally(string.into_iter(), pages), pattern.counts(pages, refs, seed).unwrap());
    }

    #[test]
    fn the_same_seed_gives_the_same_string(
        pattern in patterns(), pages in 2..1000_u32, refs in 1..2000_u64, seed: u64,
    ) {
        prop_assert_eq!(string(&pattern, pages, refs, seed), string(&pattern, pages, refs, seed));
    }

    #[test]
    fn another_seed_gives_another_order_of_a_random_pattern(seed: u64, other: u64) {
        prop_assume!(seed != other);
        for text in ["random", "smooth-sin-random", "zipf05", "zipf", "lognormal", "hot-cold", "scan-with-hot-core"] {
            let pattern: Pattern = text.parse().unwrap();
            prop_assert_ne!(
                string(&pattern, 500, 3000, seed),
                string(&pattern, 500, 3000, other),
                "{}", text
            );
        }
    }

    #[test]
    fn batches_and_single_references_give_the_same_string_in_any_mixture(
        pattern in patterns(),
        pages in 2..500_u32,
        refs in 1..3000_u64,
        takes in prop::collection::vec(prop_oneof![Just(0_usize), 1..400_usize], 1..20),
    ) {
        let mut mixed = Vec::new();
        let mut references = pattern.references(pages, refs, 9).unwrap();
        for take in takes {
            if take == 0 {
                mixed.extend(references.next());
            } else {
                let mut batch = vec![0; take];
                let filled = references.fill(&mut batch);
                mixed.extend(&batch[..filled]);
            }
        }
        mixed.extend(references);
        prop_assert_eq!(mixed, string(&pattern, pages, refs, 9));
    }

    #[test]
    fn a_longer_string_begins_with_the_shorter_one_where_the_length_is_no_part_of_the_pattern(
        pattern in patterns(), pages in 2..500_u32, refs in 1..1000_u64, more in 1..1000_u64, seed: u64,
    ) {
        let sine = matches!(pattern, Pattern::SmoothSin { .. } | Pattern::SmoothSinRandom { .. });
        prop_assume!(!sine);
        let long = string(&pattern, pages, refs + more, seed);
        prop_assert!(long.starts_with(&string(&pattern, pages, refs, seed)));
    }

    #[test]
    fn the_exact_sine_differs_from_the_original_by_at_most_two_a_page(
        pages in 1..2000_u32, refs in 1..50_000_u64,
    ) {
        let counts = |as_written| Pattern::SmoothSin { as_written }.counts(pages, refs, 0).unwrap();
        let (exact, original) = (counts(false), counts(true));
        prop_assert_eq!(exact.iter().map(|&count| u64::from(count)).sum::<u64>(), refs);
        for (exact, original) in exact.iter().zip(&original) {
            prop_assert!(exact <= original && original - exact <= 2);
        }
    }

    #[test]
    fn patterns_read_back_from_their_own_text(pattern in patterns()) {
        prop_assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
    }

    #[test]
    fn arbitrary_text_is_a_pattern_or_an_error_but_never_a_panic(text in "\\PC{0,40}|[a-z0-5-]{0,20}\\([a-z0-9=.,() -]{0,20}\\)?") {
        if let Ok(pattern) = text.parse::<Pattern>() {
            prop_assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
        }
    }

    #[test]
    fn bounded_numbers_keep_to_their_bound(seed: u64, bound in 1_u64.., narrow in 1_u32..) {
        let mut rng = Rng::new(seed);
        prop_assert!(rng.below(bound) < bound);
        prop_assert!(rng.below_u32(narrow) < narrow);
        prop_assert!((0.0..1.0).contains(&rng.unit_f64()));
    }

    #[test]
    fn shuffling_keeps_every_item(seed: u64, items in prop::collection::vec(any::<u16>(), 0..100)) {
        let mut shuffled = items.clone();
        Rng::new(seed).shuffle(&mut shuffled);
        let sorted = |mut items: Vec<u16>| {
            items.sort_unstable();
            items
        };
        prop_assert_eq!(sorted(shuffled), sorted(items));
    }
}
