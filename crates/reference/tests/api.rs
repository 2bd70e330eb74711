//! Behaviour that users of the crate rely on, pattern by pattern.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests may unwrap as tests do"
)]

use pagetide_reference::{Pattern, PatternError, Rng, StringError, catalogue, tally};

/// Every pattern that generates references, with defaults and with all parameters set.
const PATTERNS: [&str; 17] = [
    "linear",
    "random",
    "smooth-sin",
    "smooth-sin(as-written)",
    "smooth-sin-random",
    "smooth-sin-random(as-written)",
    "zipf05",
    "zipf",
    "zipf(0.5)",
    "zipf(1.2,scatter)",
    "zipf(0)",
    "lognormal",
    "hot-cold",
    "hot-cold(hot=0.05,share=0.8,move=37,by=1)",
    "scan-with-hot-core",
    "scan-with-hot-core(core=0.3,share=0.7)",
    "loop",
];

fn pattern(text: &str) -> Pattern {
    text.parse().unwrap()
}

fn string(text: &str, pages: u32, refs: u64, seed: u64) -> Vec<u32> {
    pattern(text)
        .references(pages, refs, seed)
        .unwrap()
        .collect()
}

#[test]
fn linear_goes_around_the_range() {
    assert_eq!(string("linear", 3, 7, 1), [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn random_passes_once_in_order_and_then_leaves_it() {
    let string = string("random", 1000, 3000, 1);
    assert!(string[..1000].iter().copied().eq(0..1000));
    assert!(!string[1000..2000].iter().copied().eq(0..1000));
}

#[test]
fn smooth_sin_has_exactly_the_references_asked_for_unless_as_written() {
    for (pages, refs) in [
        (1000, 77_000),
        (10, 1),
        (1000, 10),
        (1, 5),
        (2, 9),
        (7, 100),
    ] {
        for name in ["smooth-sin", "smooth-sin-random"] {
            let counts = pattern(name).counts(pages, refs, 1).unwrap();
            assert_eq!(
                counts.iter().map(|&c| u64::from(c)).sum::<u64>(),
                refs,
                "{name} {pages} {refs}"
            );
        }
    }
    assert_eq!(
        pattern("smooth-sin(as-written)")
            .total(1000, 77_000)
            .unwrap(),
        77_062
    );
    assert_eq!(
        string("smooth-sin(as-written)", 1000, 77_000, 1).len(),
        77_062
    );
}

#[test]
fn smooth_sin_random_holds_the_multiset_of_smooth_sin_in_another_order() {
    let mut sorted = string("smooth-sin-random", 500, 20_000, 1);
    let ordered = string("smooth-sin", 500, 20_000, 1);
    assert_ne!(sorted, ordered);
    sorted.sort_unstable();
    assert_eq!(sorted, ordered);
}

#[test]
fn a_long_random_sine_holds_a_fraction_of_what_its_string_would() {
    let pattern = pattern("smooth-sin-random");
    assert_eq!(pattern.held_bytes(50_000), 262_144);
    assert!(pattern.held_bytes(50_000) * 30 < 4 * pattern.total(50_000, 2_000_000).unwrap());
}

#[test]
fn smooth_sin_random_puts_every_page_equally_often_at_every_place() {
    // Pages 0 and 1 with counts 2 and 1 (and page 2 with none) give three orders, each with probability one third.
    let counts = pattern("smooth-sin").counts(3, 3, 0).unwrap();
    assert_eq!(counts, [2, 1, 0]);
    let mut place_of_single = [0_u32; 3];
    for seed in 0..9000 {
        let string = string("smooth-sin-random", 3, 3, seed);
        place_of_single[string.iter().position(|&page| page == 1).unwrap()] += 1;
    }
    assert!(
        place_of_single.iter().all(|n| n.abs_diff(3000) < 224),
        "{place_of_single:?}"
    );
}

#[test]
fn every_pattern_stays_in_its_range_and_gives_its_number_of_references() {
    for text in PATTERNS {
        for (pages, refs) in [(2, 50), (3, 1), (100, 5000), (4096, 5000)] {
            let pattern = pattern(text);
            let references = pattern.references(pages, refs, 3).unwrap();
            let total = pattern.total(pages, refs).unwrap();
            assert_eq!(references.left(), total);
            let string: Vec<u32> = references.collect();
            assert_eq!(string.len() as u64, total, "{text}");
            assert!(
                string.iter().all(|&page| page < pages),
                "{text} over {pages}"
            );
            assert_eq!(
                tally(string.into_iter(), pages),
                pattern.counts(pages, refs, 3).unwrap(),
                "{text}"
            );
        }
    }
}

#[test]
fn a_single_page_is_enough_where_the_formula_allows_it() {
    for text in [
        "linear",
        "random",
        "smooth-sin",
        "smooth-sin-random",
        "zipf05",
        "zipf",
        "zipf(2,scatter)",
        "loop",
    ] {
        assert_eq!(string(text, 1, 3, 1), [0, 0, 0], "{text}");
    }
    for text in ["lognormal", "hot-cold", "scan-with-hot-core"] {
        assert!(matches!(
            pattern(text).references(1, 3, 1),
            Err(StringError::TooFewPages { least: 2, .. })
        ));
    }
}

#[test]
fn impossible_sizes_are_refused() {
    for text in PATTERNS {
        let pattern = pattern(text);
        assert!(matches!(
            pattern.check(0, 1),
            Err(StringError::NoPages { .. })
        ));
        assert!(matches!(pattern.check(10, 0), Err(StringError::NoRefs)));
        assert!(matches!(
            pattern.check(u32::MAX, 1),
            Err(StringError::TooManyPages { .. })
        ));
        assert!(matches!(
            pattern.check(10, u64::MAX),
            Err(StringError::TooManyRefs { .. })
        ));
    }
}

#[test]
fn zipf_follows_its_law_at_below_and_above_exponent_one() {
    for exponent in [0.0, 0.5, 0.99, 1.0, 1.01, 1.5, 3.0] {
        let (pages, refs) = (50_u32, 200_000);
        let counts = pattern(&format!("zipf({exponent})"))
            .counts(pages, refs, 5)
            .unwrap();
        let weights: Vec<f64> = (1..=pages).map(|k| f64::from(k).powf(-exponent)).collect();
        let sum: f64 = weights.iter().sum();
        // Chi-square with 49 degrees of freedom is below 85.4 in 999 of 1000 cases.
        let mut chi = 0.0;
        for (count, weight) in counts.iter().zip(&weights) {
            let expected = weight / sum * refs as f64;
            chi += (f64::from(*count) - expected).powi(2) / expected;
        }
        assert!(chi < 85.4, "exponent {exponent}: chi-square {chi}");
    }
}

#[test]
fn scattering_zipf_permutes_its_counts() {
    let mut plain = pattern("zipf(1.1)").counts(300, 20_000, 5).unwrap();
    let mut scattered = pattern("zipf(1.1,scatter)").counts(300, 20_000, 5).unwrap();
    assert_ne!(plain, scattered);
    plain.sort_unstable();
    scattered.sort_unstable();
    assert_eq!(plain, scattered);
}

#[test]
fn zipf05_falls_as_the_square_root() {
    // r² is accepted from .0005 to 1; the first 250 pages have r² below .2505: (√.2505−√.0005)/(1−√.0005) = 0.4891.
    // Five standard deviations are 790.
    let counts = pattern("zipf05").counts(1000, 100_000, 5).unwrap();
    let low: u32 = counts[..250].iter().sum();
    assert!(low.abs_diff(48_910) < 790, "{low}");
}

#[test]
fn lognormal_keeps_off_page_zero_and_prefers_low_pages() {
    let counts = pattern("lognormal").counts(25_000, 100_000, 5).unwrap();
    assert_eq!(counts[0], 0);
    let (low, high) = counts.split_at(12_500);
    assert!(low.iter().sum::<u32>() > 2 * high.iter().sum::<u32>());
}

#[test]
fn the_hot_set_gets_its_share_and_moves() {
    let counts = pattern("hot-cold(hot=0.1,share=0.9,move=0)")
        .counts(1000, 100_000, 5)
        .unwrap();
    let mut sorted = counts.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let hottest: u32 = sorted[..100].iter().sum();
    assert!(hottest.abs_diff(90_000) < 500, "{hottest}");
    // Moved by its size every 1000 references, the window passes ten positions of 100 pages in 10,000 references.
    let counts = pattern("hot-cold(0.1,1,1000,1)")
        .counts(1000, 10_000, 5)
        .unwrap();
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}

#[test]
fn the_scan_goes_on_in_order_beside_its_core() {
    let string = string("scan-with-hot-core(core=0.1,share=0.5)", 100, 10_000, 5);
    let core = string.iter().filter(|&&page| page < 10).count();
    assert!(core.abs_diff(5000) < 250, "{core}");
    let scan: Vec<_> = string.into_iter().filter(|&page| page >= 10).collect();
    assert!(
        scan.windows(2)
            .all(|w| w[1] == if w[0] == 99 { 10 } else { w[0] + 1 })
    );
}

#[test]
fn a_loop_starts_where_the_seed_says() {
    let starts: std::collections::BTreeSet<u32> = (0..20)
        .map(|seed| string("loop", 1000, 1, seed)[0])
        .collect();
    assert!(starts.len() > 15, "{starts:?}");
}

#[test]
fn patterns_read_back_as_they_are_written() {
    for text in PATTERNS.into_iter().chain(["file:some dir/trace.txt "]) {
        let parsed = pattern(text);
        assert_eq!(pattern(&parsed.to_string()), parsed, "{text}");
        let json = serde_json::to_string(&parsed).unwrap();
        assert_eq!(
            serde_json::from_str::<Pattern>(&json).unwrap(),
            parsed,
            "{text}"
        );
    }
    for (text, written) in [
        ("smooth-sin(as-written=false)", "smooth-sin"),
        ("smooth-sin ( as-written )", "smooth-sin(as-written)"),
        ("zipf", "zipf(1)"),
        ("zipf(scatter)", "zipf(1,scatter)"),
        ("zipf(-0)", "zipf(0)"),
        (
            "hot-cold(0.2, move=5_000)",
            "hot-cold(hot=0.2,share=0.9,move=5000,by=0.1)",
        ),
        ("linear()", "linear"),
    ] {
        assert_eq!(pattern(text).to_string(), written);
    }
}

#[test]
fn the_catalogue_names_every_pattern_and_its_defaults_are_allowed() {
    assert_eq!(catalogue().len(), 12);
    for about in catalogue() {
        let name = about.name.replace("PATH", "x");
        assert_eq!(pattern(&name).about(), about);
        assert!(!about.formula.contains("  "), "{}", about.formula);
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_one_sentence_and_a_near_suggestion() {
    let message = |text: &str| text.parse::<Pattern>().unwrap_err().to_string();
    assert_eq!(
        message("smoth-sin"),
        "cannot use pattern \"smoth-sin\": did you mean \"smooth-sin\"?"
    );
    assert_eq!(
        message("Smooth_Sin_Random"),
        "cannot use pattern \"Smooth_Sin_Random\": did you mean \"smooth-sin-random\"?"
    );
    assert_eq!(
        message("sin"),
        "cannot use pattern \"sin\": the nearest of 12 are smooth-sin, smooth-sin-random, linear; \
         `pagetide list scenarios --long` shows all"
    );
    assert_eq!(
        message("hot-cold(shar=0.5)"),
        "cannot set \"shar\" of pattern hot-cold: did you mean \"share\"?"
    );
    assert_eq!(
        message("zipf(exponent=steep)"),
        "cannot set exponent of pattern zipf to \"steep\": give a number from 0 to 16"
    );
    assert_eq!(
        message("zipf(-1)"),
        "cannot set exponent of pattern zipf to -1: give a number from 0 to 16"
    );
    assert_eq!(
        message("hot-cold(move=1.5)"),
        "cannot set move of pattern hot-cold to 1.5: give a whole number from 0 to 4294967295"
    );
    assert_eq!(
        message("linear(3)"),
        "cannot use value \"3\" of pattern linear: it takes no parameters"
    );
    assert_eq!(
        message("zipf(1,exponent=2)"),
        "cannot set exponent of pattern zipf twice: keep one"
    );
    assert_eq!(message("file:"), PatternError::NoPath.to_string());
    for broken in ["zipf(1", "zipf 1)", "zipf(1)(2)", "zipf((1))", "zipf(1)x"] {
        assert!(
            message(broken).contains("write it as name or name(value"),
            "{broken}"
        );
    }
    for value in ["nan", "inf", "", "1e999"] {
        assert!(
            message(&format!("zipf(exponent={value})")).contains("give a number"),
            "{value}"
        );
    }
}

#[test]
fn parameters_set_in_code_are_held_to_the_same_bounds() {
    let pattern = Pattern::Zipf(pagetide_reference::Zipf {
        exponent: f64::NAN,
        scatter: false,
    });
    assert!(matches!(
        pattern.references(10, 10, 1),
        Err(StringError::Parameter(_))
    ));
}

#[test]
fn a_pattern_in_a_file_is_not_made_but_read() {
    let error = pattern("file:trace.txt").references(10, 10, 1).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot make the references of trace.txt: ")
    );
}

#[test]
fn the_generator_is_named() {
    assert_eq!(Rng::NAME, "xoshiro256**/1");
}
