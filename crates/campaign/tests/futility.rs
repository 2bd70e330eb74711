//! Tests of invalid trials, and of campaigns that end because all their first trials are invalid.

use crate::common::{Act, Diary, ScriptedArena, campaign, go, options};
use pagetide_campaign::{Nobody, Options, run};
use pagetide_quantity::Nanos;
use pagetide_record::Invalid;
use pagetide_store::{Filter, Store};

#[test]
fn invalid_trials_are_kept_and_the_campaign_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let accident = Invalid::EmulatorDied {
        how: "signal 9".into(),
    };
    let arena = ScriptedArena {
        deeds: [
            (("off".into(), 2), Act::Invalid(Invalid::NoReclaim)),
            (("on".into(), 1), Act::Invalid(accident)),
        ]
        .into(),
        ..ScriptedArena::default()
    };
    let outcome = go(&campaign(3), &arena, dir.path(), 1, false, &Nobody).unwrap();
    assert_eq!((outcome.tally.ran, outcome.tally.invalid), (24, 8));
    let invalid = Filter {
        valid: Some(false),
        ..Filter::default()
    };
    let store = Store::open(dir.path()).unwrap();
    assert_eq!(store.count(&invalid).unwrap(), 8);
    drop(store);
    // A trial that is invalid by its own behaviour is not repeated. A trial that an accident made invalid is.
    let calm = ScriptedArena::default();
    let again = go(&campaign(3), &calm, dir.path(), 1, false, &Nobody).unwrap();
    assert_eq!((again.tally.found, again.tally.ran), (20, 4));
    assert!(
        calm.begun()
            .iter()
            .all(|t| t.seed == 1 && t.variant.name == "on")
    );
}

/// Creates an arena in which all trials of these variants with these seeds are invalid for the same reason.
fn all_do(act: &Invalid, variants: &[&str], seeds: std::ops::RangeInclusive<u64>) -> ScriptedArena {
    let deeds = variants.iter().flat_map(|variant| {
        let of = seeds.clone();
        of.map(|seed| (((*variant).to_owned(), seed), Act::Invalid(act.clone())))
    });
    ScriptedArena {
        deeds: deeds.collect(),
        ..ScriptedArena::default()
    }
}

#[test]
fn a_campaign_whose_first_trials_are_all_invalid_for_one_cause_ends_and_says_which() {
    let arena = all_do(&Invalid::NoReclaim, &["off", "on"], 1..=60);
    let both = campaign(60);
    for jobs in [1, 2] {
        let dir = tempfile::tempdir().unwrap();
        let diary = Diary::default();
        let outcome = go(&both, &arena, dir.path(), jobs, false, &diary).unwrap();
        // Eight trials have the first seed. Others may have run in parallel with the last of the eight.
        let ran = outcome.tally.ran;
        assert!(ran == 8 || (jobs > 1 && ran > 8 && ran < 480), "{ran}");
        let futile = outcome.futile.unwrap();
        assert_eq!((futile.seeds, futile.trials, futile.left), (1, 8, 472));
        let text = futile.sentence();
        assert!(text.contains("reclaimed nothing: lower --memory"), "{text}");
        assert!(text.contains("--keep-going"), "{text}");
        assert!(diary.lines.lock().unwrap().contains(&text));
        // The same command reports the same result and runs nothing more.
        let again = go(&both, &arena, dir.path(), jobs, false, &Nobody).unwrap();
        assert_eq!((again.tally.ran, again.futile), (0, Some(futile)));
    }
}

#[test]
fn it_goes_on_where_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let arena = all_do(&Invalid::NoReclaim, &["off", "on"], 1..=3);
    let mut store = Store::open(dir.path()).unwrap();
    let options = Options {
        jobs: Some(1),
        keep_going: true,
        ..options()
    };
    let outcome = run(&campaign(3), &arena, &mut store, &options, &Nobody).unwrap();
    assert_eq!((outcome.tally.ran, outcome.futile), (24, None));
}

#[test]
fn it_goes_on_where_one_variant_is_valid_or_the_causes_differ() {
    let one = all_do(&Invalid::NoReclaim, &["on"], 1..=3);
    let mut two = all_do(&Invalid::NoReclaim, &["off", "on"], 1..=3);
    let other = Invalid::Halted { times: 2 };
    two.deeds.insert(("on".into(), 1), Act::Invalid(other));
    for arena in [one, two] {
        let dir = tempfile::tempdir().unwrap();
        let outcome = go(&campaign(3), &arena, dir.path(), 1, false, &Nobody).unwrap();
        assert_eq!((outcome.tally.ran, outcome.futile), (24, None));
    }
}

#[test]
fn deaths_for_lack_of_memory_end_a_campaign_only_when_more_seeds_than_one_have_died() {
    let death = |after: u64| Invalid::OutOfMemory {
        process: format!("usemem-{after}"),
        after: Nanos(after),
    };
    // With the first seed, all trials die. With the second, one variant survives, which is a result.
    let mut arena = all_do(&death(7), &["off", "on"], 1..=6);
    arena.deeds.remove(&("on".into(), 2));
    let dir = tempfile::tempdir().unwrap();
    let outcome = go(&campaign(6), &arena, dir.path(), 1, false, &Nobody).unwrap();
    assert_eq!((outcome.tally.ran, outcome.futile), (48, None));
    // The same reason with another time and another process is still the same reason.
    let mut arena = all_do(&death(7), &["off", "on"], 1..=6);
    arena.deeds.insert(("on".into(), 2), Act::Invalid(death(9)));
    let dir = tempfile::tempdir().unwrap();
    let outcome = go(&campaign(6), &arena, dir.path(), 1, false, &Nobody).unwrap();
    assert_eq!(outcome.tally.ran, 16);
    assert_eq!(outcome.futile.unwrap().seeds, 2);
}

#[test]
fn a_campaign_that_has_run_all_its_trials_is_judged_whatever_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let arena = all_do(&Invalid::NoReclaim, &["off", "on"], 1..=1);
    let outcome = go(&campaign(1), &arena, dir.path(), 1, false, &Nobody).unwrap();
    assert!(!outcome.stopped && outcome.futile.is_none());
}
