//! Tests of the records that a run uses instead of running their trials again, and of the trials that it repeats.

use std::time::Duration;

use crate::common::{Diary, ScriptedArena, campaign, go};
use pagetide_arena::NoProgress;
use pagetide_campaign::{Nobody, RunError, forecast, repeat};
use pagetide_record::ArenaKind;
use pagetide_store::{Filter, Store};

#[test]
fn nothing_runs_twice_unless_asked_afresh_and_more_seeds_run_only_what_is_new() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena::default();
    go(&campaign(2), &arena, dir.path(), 2, false, &Nobody).unwrap();
    let again = go(&campaign(2), &arena, dir.path(), 2, false, &Nobody).unwrap();
    assert_eq!((again.tally.found, again.tally.ran), (16, 0));
    let mut renamed = campaign(3);
    renamed.name = "other".into();
    renamed.variants[1].name = "mglru".into();
    let more = go(&renamed, &arena, dir.path(), 2, false, &Nobody).unwrap();
    assert_eq!((more.tally.found, more.tally.ran), (16, 8));
    let fresh = go(&campaign(2), &arena, dir.path(), 2, true, &Nobody).unwrap();
    assert_eq!((fresh.tally.found, fresh.tally.ran), (0, 16));
    assert_eq!(fresh.note.id(), "quick.2");
    let after = go(&campaign(2), &arena, dir.path(), 2, false, &Nobody).unwrap();
    assert_eq!((after.tally.found, after.tally.ran), (16, 0));
    assert_eq!(after.note.id(), "quick.2");
}

#[test]
fn a_fresh_run_that_was_interrupted_goes_on_afresh() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena::default();
    go(&campaign(2), &arena, dir.path(), 1, false, &Nobody).unwrap();
    let stop = Diary {
        stop_after: Some(5),
        ..Diary::default()
    };
    let first = go(&campaign(2), &arena, dir.path(), 1, true, &stop).unwrap();
    assert!(first.stopped);
    let rest = go(&campaign(2), &arena, dir.path(), 1, false, &Nobody).unwrap();
    assert_eq!((rest.tally.found, rest.tally.ran), (5, 11));
}

#[test]
fn a_kernel_against_itself_runs_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena::default();
    let mut same = campaign(3);
    same.variants[1].settings = same.variants[0].settings.clone();
    let outcome = go(&same, &arena, dir.path(), 2, false, &Nobody).unwrap();
    assert_eq!(outcome.tally.ran, 24);
    let again = go(&same, &arena, dir.path(), 2, false, &Nobody).unwrap();
    assert_eq!((again.tally.found, again.tally.ran), (24, 0));
}

#[test]
fn with_noise_records_of_other_campaigns_do_not_count_and_a_unit_stays_in_one_piece() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena {
        kind: ArenaKind::Vm,
        takes: Duration::from_millis(1),
        ..ScriptedArena::default()
    };
    let mut first = campaign(2);
    first.arena = ArenaKind::Vm;
    first.sampling.repetitions = 3;
    let mut second = first.clone();
    second.name = "second".into();
    go(&first, &arena, dir.path(), 1, false, &Nobody).unwrap();
    for unit in arena.begun().chunks(3) {
        assert!(unit.iter().all(|t| t.unit == unit[0].unit));
        assert!(unit.iter().all(|t| t.variant == unit[0].variant));
        let repetitions: Vec<u32> = unit.iter().map(|t| t.repetition).collect();
        assert_eq!(repetitions, [0, 1, 2]);
    }
    let outcome = go(&second, &arena, dir.path(), 2, false, &Nobody).unwrap();
    assert_eq!((outcome.tally.found, outcome.tally.ran), (0, 48));
    let again = go(&second, &arena, dir.path(), 2, false, &Nobody).unwrap();
    assert_eq!((again.tally.found, again.tally.ran), (48, 0));
}

#[test]
fn another_arena_is_refused_and_its_records_answer_for_none_here() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena::default();
    go(&campaign(2), &arena, dir.path(), 1, false, &Nobody).unwrap();
    let mut other = campaign(2);
    other.arena = ArenaKind::Host;
    let error = go(&other, &arena, dir.path(), 1, false, &Nobody).unwrap_err();
    assert!(matches!(error, RunError::OtherArena { .. }), "{error}");
    let store = Store::open(dir.path()).unwrap();
    let error = forecast(&other, &arena, &store, None, false, &[], &mut |_| {}).unwrap_err();
    assert!(matches!(error, RunError::OtherArena { .. }), "{error}");
    // The same campaign in the other kind of arena does not use records of the exact arena.
    let host = ScriptedArena {
        kind: ArenaKind::Host,
        ..ScriptedArena::default()
    };
    let found = forecast(&other, &host, &store, None, false, &[], &mut |_| {}).unwrap();
    assert_eq!((found.trials, found.found), (16, 0));
}

#[test]
fn a_trial_is_repeated_from_a_store_that_can_only_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena::default();
    go(&campaign(1), &arena, dir.path(), 1, false, &Nobody).unwrap();
    // A file in place of the folder prevents writing even for root.
    let incoming = dir.path().join("incoming");
    std::fs::remove_dir(&incoming).unwrap();
    std::fs::write(&incoming, "in the way").unwrap();
    let store = Store::open(dir.path()).unwrap();
    assert!(store.is_read_only());
    let said = store.writer().err().unwrap().to_string();
    assert!(said.contains("move away what is in its place"), "{said}");
    let row = store.select(&Filter::default()).unwrap().remove(0);
    let record = store.load(&row.id).unwrap().into_record();
    let found = repeat(&store, &arena, &record, 2, &NoProgress).unwrap();
    assert_eq!(found.times, 2, "{found}");
}
