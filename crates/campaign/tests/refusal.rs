//! Tests of campaigns that are refused before any trial runs.

use std::sync::atomic::Ordering;

use crate::common::{Diary, ScriptedArena, campaign, contents, go};
use pagetide_arena::VariantSpec;
use pagetide_campaign::{Campaign, Nobody, Observe, RunError, forecast};
use pagetide_record::Pass;
use pagetide_store::Store;

#[test]
fn a_variant_that_cannot_run_is_refused_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena {
        refuses: Some("5.10".into()),
        ..ScriptedArena::default()
    };
    let mut with_old = campaign(3);
    with_old.variants[1].kernel = "5.10".into();
    let error = go(&with_old, &arena, dir.path(), 2, false, &Nobody).unwrap_err();
    assert!(matches!(error, RunError::Refused { .. }));
    let text = error.to_string();
    assert!(
        text.contains("variant on") && text.contains("CONFIG_SWAP"),
        "{text}"
    );
    assert!(arena.begun().is_empty());
    assert!(contents(dir.path()).is_empty());
}

#[test]
fn an_arena_without_profiles_runs_all_other_passes_and_says_so_once() {
    let dir = tempfile::tempdir().unwrap();
    let why = "no plugins: install them";
    let arena = ScriptedArena {
        lacks_profiles: Some(why.into()),
        ..ScriptedArena::default()
    };
    let mut asked = campaign(2);
    asked.observe = Observe::Seeds(1);
    let passes = |arena: &ScriptedArena, pass: Pass| {
        let begun = arena.begun();
        begun.iter().filter(|trial| trial.pass == pass).count()
    };
    for (profile, times) in [(Observe::None, 0), (Observe::Seeds(2), 1)] {
        asked.profile = profile;
        asked.references = times > 0;
        let diary = Diary::default();
        let outcome = go(&asked, &arena, dir.path(), 2, true, &diary).unwrap();
        assert!(!outcome.stopped);
        let said = diary.lines.lock().unwrap();
        assert_eq!(said.iter().filter(|line| *line == why).count(), times);
    }
    // Two variants in four cells, twice: two seeds timed, one observed.
    assert_eq!(passes(&arena, Pass::Timed), 2 * 16);
    assert_eq!(passes(&arena, Pass::Observed), 2 * 8);
    assert_eq!(passes(&arena, Pass::Profiled), 0);
    let able = ScriptedArena::default();
    go(&asked, &able, dir.path(), 2, true, &Nobody).unwrap();
    assert_eq!(passes(&able, Pass::Profiled), 16);
}

#[test]
fn a_campaign_without_trials_is_refused_saying_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena::default();
    let mut none = campaign(0);
    let mut told = Vec::new();
    for _ in 0..3 {
        let error = go(&none, &arena, dir.path(), 1, false, &Nobody).unwrap_err();
        told.push(error.to_string());
        if none.scenarios.is_empty() {
            none.variants.clear();
        }
        none.scenarios.clear();
    }
    assert_eq!(
        told,
        [
            "campaign quick has no seed: give at least one",
            "campaign quick has no scenario: give at least one",
            "campaign quick has no variant: give at least one"
        ]
    );
}

#[test]
fn two_runs_of_one_campaign_at_once_are_refused_but_two_campaigns_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let _running = store.lock_campaign("quick").unwrap();
    let arena = ScriptedArena::default();
    let error = go(&campaign(1), &arena, dir.path(), 1, false, &Nobody).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("campaign quick is being run by process")
    );
    let mut other = campaign(1);
    other.name = "other".into();
    go(&other, &arena, dir.path(), 1, false, &Nobody).unwrap();
}

#[test]
fn a_cell_that_stands_twice_under_two_names_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena::default();
    let mut twice = campaign(2);
    let again = twice.scenarios[0].clone();
    twice.scenarios.push(again);
    let error = go(&twice, &arena, dir.path(), 1, false, &Nobody).unwrap_err();
    assert!(matches!(error, RunError::SameCell { .. }), "{error}");
    assert!(arena.begun().is_empty());
}

#[test]
fn more_variants_machines_or_cells_than_anybody_runs_are_refused_with_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let arena = ScriptedArena::default();
    let said = |campaign: &Campaign| {
        let told = forecast(campaign, &arena, &store, None, false, &[], &mut |_| ());
        told.unwrap_err().to_string()
    };
    let mut machines = campaign(1);
    machines.scenarios[0].memory = (1..=1_001)
        .map(|mib| format!("{mib}M").parse().unwrap())
        .collect();
    assert!(said(&machines).contains("more than 1000 are not planned"));
    let mut cells = campaign(1);
    for name in ["pages", "refs"] {
        let values = (1..=1_001).map(|value| value.to_string()).collect();
        cells.scenarios[0].params.insert(name.to_owned(), values);
    }
    let text = said(&cells);
    assert!(text.contains("more than 1000000 are not planned"), "{text}");
    let mut variants = campaign(1);
    variants.variants = (0..=1_000)
        .map(|number| VariantSpec {
            name: number.to_string(),
            ..VariantSpec::default()
        })
        .collect();
    assert!(said(&variants).contains("1001 variants"));
    assert_eq!(arena.prepared.load(Ordering::SeqCst), 0);
}
