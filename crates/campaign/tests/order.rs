//! Tests of the order in which trials run, side by side or one after the other.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::{Diary, ScriptedArena, campaign, contents, go};
use pagetide_arena::Trial;
use pagetide_campaign::{Campaign, Nobody};
use pagetide_quantity::Nanos;
use pagetide_record::ArenaKind;
use pagetide_store::{Filter, Store};

#[test]
fn trials_run_in_the_order_of_the_plan_and_every_one_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let (campaign, arena) = (campaign(5), ScriptedArena::default());
    let diary = Diary::default();
    let outcome = go(&campaign, &arena, dir.path(), 1, false, &diary).unwrap();
    let cells: Vec<_> = campaign.cells().collect();
    let planned: Vec<Trial> = campaign
        .trials(&cells, 0..5)
        .map(|planned| planned.trial)
        .collect();
    // After two blocks, the cells run one after another.
    let begun = arena.begun();
    assert_eq!(begun[..16], planned[..16]);
    assert!(begun.len() == planned.len() && planned.iter().all(|trial| begun.contains(trial)));
    assert_eq!(
        arena.prepared.load(Ordering::SeqCst),
        planned.len(),
        "every trial is prepared once"
    );
    assert_eq!(outcome.note.id(), "quick");
    assert!(!outcome.stopped);
    assert_eq!((outcome.tally.total, outcome.tally.ran), (40, 40));
    assert_eq!(outcome.tally.left.0, 0);
    let rows = Store::open(dir.path())
        .unwrap()
        .select(&Filter::default())
        .unwrap();
    assert_eq!(rows.len(), 40);
    assert!(
        rows.iter()
            .all(|row| &*row.campaign == "quick" && row.wall.0 > 0)
    );
    let lines = diary.lines.lock().unwrap();
    assert_eq!(lines[..3], ["planned 40 of 40", "started 0", "stored 0"]);
}

#[test]
fn the_two_sides_of_a_pair_run_next_to_each_other_and_neither_always_first() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena::default();
    go(&campaign(12), &arena, dir.path(), 1, false, &Nobody).unwrap();
    let mut off_first = 0;
    for pair in arena.begun().chunks(2) {
        assert_eq!(pair[0].seed, pair[1].seed);
        assert_eq!(pair[0].scenario, pair[1].scenario);
        assert_ne!(pair[0].variant.name, pair[1].variant.name);
        off_first += usize::from(pair[0].variant.name == "off");
    }
    // There are 48 pairs. The chance that all have the same order is 2 in 2^48.
    assert!((10..39).contains(&off_first), "{off_first}");
}

#[test]
fn as_many_trials_as_asked_for_run_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena {
        takes: Duration::from_millis(50),
        ..ScriptedArena::default()
    };
    go(&campaign(3), &arena, dir.path(), 4, false, &Nobody).unwrap();
    assert_eq!(arena.most.load(Ordering::SeqCst), 4);
    assert_eq!(contents(dir.path()).len(), 24);
}

#[test]
fn trials_that_boot_a_guest_come_first_so_that_guests_boot_side_by_side() {
    let first = |kind| {
        let dir = tempfile::tempdir().unwrap();
        let arena = ScriptedArena {
            boot: Some(Nanos::from_secs(1000)),
            kind,
            ..ScriptedArena::default()
        };
        let campaign = Campaign {
            arena: kind,
            ..campaign(6)
        };
        go(&campaign, &arena, dir.path(), 1, false, &Nobody).unwrap();
        let ran = arena.log.lock().unwrap();
        assert_eq!(ran.len(), 48);
        [ran[0].swap, ran[1].swap]
    };
    let [a, b] = first(ArenaKind::Exact);
    assert_ne!(a, b, "the second trial waits for the guest of the first");
    // If results have noise, all trials of a cell and block run next to each other.
    let [a, b] = first(ArenaKind::Host);
    assert_eq!(a, b);
}

#[test]
fn a_run_of_any_length_makes_only_its_next_trials_ready() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena::default();
    let diary = Diary {
        stop_after: Some(1),
        ..Diary::default()
    };
    let outcome = go(&campaign(2_000), &arena, dir.path(), 1, false, &diary).unwrap();
    assert!(outcome.stopped);
    assert_eq!((outcome.tally.total, outcome.tally.ran), (16_000, 1));
    assert_eq!(outcome.note.entries.len(), 16_000);
    let prepared = arena.prepared.load(Ordering::SeqCst);
    assert!((1_000..1_100).contains(&prepared), "{prepared}");
}
