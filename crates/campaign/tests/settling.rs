//! Tests of cells that get all their trials before the next cell, and whose results are reported early.

use crate::common::{Diary, ScriptedArena, campaign, go};
use pagetide_arena::Trial;
use pagetide_record::ArenaKind;

#[test]
fn the_cells_are_settled_one_after_the_other_and_the_first_results_are_told_early() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena {
        effect: [("on".to_owned(), 2.0)].into(),
        ..ScriptedArena::default()
    };
    let diary = Diary::default();
    go(&campaign(10), &arena, dir.path(), 1, false, &diary).unwrap();
    let later: Vec<(String, u64)> = arena.begun()[16..]
        .iter()
        .map(|trial| {
            (
                format!("{} {} {:?}", trial.scenario, trial.swap, trial.params),
                trial.seed,
            )
        })
        .collect();
    let runs = later.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len);
    assert_eq!(runs.collect::<Vec<_>>(), [16; 4], "{later:?}");
    let lines = diary.lines.lock().unwrap();
    let told = lines
        .iter()
        .filter(|line| line.contains("has all its trials: "));
    let told: Vec<&String> = told.collect();
    // The result of the last cell is in the final table, and is not reported in a separate line.
    assert_eq!(told.len(), 3, "{lines:?}");
    assert!(told[0].contains("on run regressed (+"), "{told:?}");
    let place = |text: &str| lines.iter().position(|line| line == text).unwrap();
    let first = lines.iter().position(|line| line == told[0]).unwrap();
    assert!(
        first > place("stored 31") && first < place("stored 33"),
        "{lines:?}"
    );
}

#[test]
fn nothing_is_told_early_where_there_is_one_cell_or_one_variant_or_noise() {
    let mut alone = campaign(10);
    alone.variants.truncate(1);
    let mut noisy = campaign(10);
    noisy.arena = ArenaKind::Vm;
    for (campaign, kind) in [(alone, ArenaKind::Exact), (noisy, ArenaKind::Vm)] {
        let dir = tempfile::tempdir().unwrap();
        let diary = Diary::default();
        let arena = ScriptedArena {
            kind,
            ..ScriptedArena::default()
        };
        go(&campaign, &arena, dir.path(), 1, false, &diary).unwrap();
        let cells: Vec<_> = campaign.cells().collect();
        let planned: Vec<Trial> = campaign.trials(&cells, 0..10).map(|p| p.trial).collect();
        assert_eq!(arena.begun(), planned);
        let lines = diary.lines.lock().unwrap();
        assert!(!lines.iter().any(|line| line.contains("has all its trials")));
    }
}
