//! Tests of observing more seeds if the first three do not explain a difference: which seeds, and at most how many.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::trace::Told;
use crate::common::{Diary, ScriptedArena, campaign, go};
use pagetide_arena::Trial;
use pagetide_campaign::{Campaign, MAX_OBSERVED, Observe};
use pagetide_record::Pass;

/// An arena in which each variant takes the given multiple of the time of `off`, with the given trace.
fn arena(variants: &[(&str, f64, Told)]) -> ScriptedArena {
    ScriptedArena {
        effect: variants
            .iter()
            .map(|(name, effect, _)| ((*name).to_owned(), *effect))
            .collect(),
        tells: variants
            .iter()
            .map(|(name, _, told)| ((*name).to_owned(), *told))
            .collect(),
        ..ScriptedArena::default()
    }
}

/// A campaign of `off` and these variants, observed by default.
fn observed(variants: &[&str]) -> Campaign {
    let mut campaign = campaign(8);
    let off = campaign.variants[0].clone();
    campaign.variants = variants
        .iter()
        .map(|name| {
            let mut variant = off.clone();
            (*name).clone_into(&mut variant.name);
            let value = variant.settings.values_mut().next().unwrap();
            (*name).clone_into(value);
            variant
        })
        .collect();
    campaign.observe = Observe::FEW;
    campaign
}

/// Runs the campaign. Returns how many trials of each variant were observed, and the messages about observing more.
fn run(
    campaign: &Campaign,
    arena: &ScriptedArena,
    folder: &Path,
) -> (BTreeMap<String, usize>, Vec<String>) {
    let before = arena.begun().len();
    let diary = Diary::default();
    go(campaign, arena, folder, 1, false, &diary).unwrap();
    let mut counts = BTreeMap::new();
    let begun = arena.begun();
    let is_observed = |trial: &&Trial| trial.pass == Pass::Observed;
    for trial in begun[before..].iter().filter(is_observed) {
        *counts.entry(trial.variant.name.clone()).or_default() += 1;
    }
    let mut lines = diary.lines.lock().unwrap().clone();
    lines.retain(|line| line.starts_with("deepened"));
    (counts, lines)
}

fn counts(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
    of.iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

#[test]
fn where_three_observed_seeds_do_not_tell_why_six_are_observed_and_no_more() {
    assert_eq!(MAX_OBSERVED, 6);
    let dir = tempfile::tempdir().unwrap();
    let arena = arena(&[
        ("off", 1.0, Told::Nothing(1_000_000_000)),
        ("on", 1.3, Told::Nothing(1_300_000_000)),
    ]);
    let campaign = observed(&["off", "on"]);
    let (seen, said) = run(&campaign, &arena, dir.path());
    // There are four cells with six seeds each. Six seeds explain nothing either, and no more are observed.
    assert_eq!(seen, counts(&[("off", 24), ("on", 24)]));
    assert_eq!(said, ["deepened from 3 to 6"]);
    let timed = |trial: &Trial| trial.pass == Pass::Timed;
    assert_eq!(
        arena.begun().iter().filter(|trial| timed(trial)).count(),
        64
    );
    let begun = arena.begun();
    let mut keys: Vec<String> = begun
        .iter()
        .map(|t| {
            format!(
                "{} {} {} {} {}",
                t.scenario, t.swap, t.variant.name, t.seed, t.pass
            )
        })
        .collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), begun.len(), "a trial ran twice");
    // A second run has nothing left to do.
    let (seen, _) = run(&campaign, &arena, dir.path());
    assert_eq!(seen, BTreeMap::new());
}

#[test]
fn only_variants_whose_time_surely_differs_without_a_sure_cause_are_observed_again() {
    let dir = tempfile::tempdir().unwrap();
    let arena = arena(&[
        ("off", 1.0, Told::Blocked(100_000_000)),
        // This variant is blocked longer, which explains the difference.
        ("told", 1.3, Told::Blocked(400_000_000)),
        // This variant is equally slow, but its trace explains nothing.
        ("untold", 1.3, Told::Nothing(1_300_000_000)),
        // This variant does not differ.
        ("same", 1.0, Told::Blocked(100_000_000)),
    ]);
    let mut campaign = observed(&["off", "told", "untold", "same"]);
    campaign.scenarios.truncate(1);
    campaign.scenarios[0].swap.truncate(1);
    let (seen, said) = run(&campaign, &arena, dir.path());
    assert_eq!(
        seen,
        counts(&[("off", 6), ("told", 3), ("untold", 6), ("same", 3)])
    );
    assert_eq!(said, ["deepened from 3 to 6"]);
}

#[test]
fn another_number_of_observed_seeds_stays_as_it_was_chosen() {
    let tells = [
        ("off", 1.0, Told::Nothing(1_000_000_000)),
        ("on", 1.3, Told::Nothing(1_300_000_000)),
    ];
    for (observe, each) in [
        (Observe::None, 0),
        (Observe::Seeds(2), 8),
        (Observe::Seeds(4), 16),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut campaign = observed(&["off", "on"]);
        campaign.observe = observe;
        let (seen, said) = run(&campaign, &arena(&tells), dir.path());
        let mut expected = counts(&[("off", each), ("on", each)]);
        expected.retain(|_, count| *count > 0);
        assert_eq!((seen, said), (expected, Vec::new()), "{observe:?}");
    }
}
