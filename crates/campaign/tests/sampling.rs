//! Tests of sampling until all primary verdicts are certain.

use crate::common::{Diary, ScriptedArena, campaign, contents, go, verdicts};
use pagetide_campaign::{Nobody, Until};
use pagetide_compare::{Overall, compare_campaign};
use pagetide_store::Store;

#[test]
fn a_clear_effect_ends_sampling_at_the_first_look_and_none_runs_to_the_cap() {
    let dir = tempfile::tempdir().unwrap();
    let mut sure = campaign(0);
    sure.sampling.until = Until::Sure {
        cap: 40,
        looks: Vec::new(),
    };
    let clear = ScriptedArena {
        effect: [("on".to_owned(), 1.5)].into(),
        ..ScriptedArena::default()
    };
    let diary = Diary::default();
    go(&sure, &clear, dir.path(), 2, false, &diary).unwrap();
    let store = Store::open(dir.path()).unwrap();
    let note = store.latest_of("quick").unwrap().unwrap();
    let first = note.looks[0];
    assert!(
        (6..20).contains(&first) && note.looks.last() == Some(&40),
        "{:?}",
        note.looks
    );
    assert_eq!(clear.begun().len() as u64, first * 8);
    let comparison = compare_campaign(&store, None).unwrap();
    assert_eq!(comparison.overall, Overall::Regressed);
    assert_eq!(comparison.look.unwrap().units, first);
    let lines = diary.lines.lock().unwrap();
    let looked = format!("looked after {first}: 4 of 4, next None");
    assert_eq!(lines.last(), Some(&looked));
    drop(store);

    // There is no effect and the margin is too narrow for any interval, so nothing is ever decided.
    let murky = tempfile::tempdir().unwrap();
    sure.sampling.until = Until::Sure {
        cap: 12,
        looks: vec![6, 12],
    };
    for scenario in &mut sure.scenarios {
        scenario.margins = [("run".to_owned(), 0.0000001)].into();
    }
    let same = ScriptedArena::default();
    go(&sure, &same, murky.path(), 2, false, &Nobody).unwrap();
    assert_eq!(same.begun().len(), 12 * 8, "no look was sure of nothing");
}

#[test]
fn going_on_until_sure_never_rests_on_fewer_trials_than_there_are() {
    let dir = tempfile::tempdir().unwrap();
    let clear = ScriptedArena {
        effect: [("on".to_owned(), 1.5)].into(),
        ..ScriptedArena::default()
    };
    let mut campaign = campaign(0);
    campaign.sampling.until = Until::Blocks(19);
    go(&campaign, &clear, dir.path(), 2, false, &Nobody).unwrap();
    campaign.sampling.until = Until::Sure {
        cap: 40,
        looks: Vec::new(),
    };
    go(&campaign, &clear, dir.path(), 2, false, &Nobody).unwrap();
    let store = Store::open(dir.path()).unwrap();
    let note = store.latest_of("quick").unwrap().unwrap();
    assert!(note.looks[0] >= 19, "{:?}", note.looks);
    let comparison = compare_campaign(&store, None).unwrap();
    assert_eq!(comparison.overall, Overall::Regressed);
    assert_eq!(comparison.look.unwrap().units, note.looks[0]);
}

#[test]
fn sampling_that_was_interrupted_goes_on_to_the_same_end() {
    let mut sure = campaign(0);
    sure.sampling.until = Until::Sure {
        cap: 30,
        looks: Vec::new(),
    };
    let arena = || ScriptedArena {
        effect: [("on".to_owned(), 0.99)].into(),
        ..ScriptedArena::default()
    };
    let whole = tempfile::tempdir().unwrap();
    go(&sure, &arena(), whole.path(), 1, false, &Nobody).unwrap();
    let parts = tempfile::tempdir().unwrap();
    let mut stops = 0;
    loop {
        let stop = Diary {
            stop_after: Some(13),
            ..Diary::default()
        };
        if !go(&sure, &arena(), parts.path(), 1, false, &stop)
            .unwrap()
            .stopped
        {
            break;
        }
        stops += 1;
    }
    assert!(stops > 2);
    assert_eq!(contents(parts.path()), contents(whole.path()));
    assert_eq!(verdicts(parts.path()), verdicts(whole.path()));
}
