//! Tests of forecasts of a user's own program, for which the arena has no estimate.

use std::path::Path;
use std::time::Duration;

use crate::common::{Diary, ScriptedArena, campaign, go};
use pagetide_campaign::{Basis, Campaign, CellForecast, Nobody, PROGRAM, ScenarioSpec, forecast};
use pagetide_quantity::{Bytes, Nanos};
use pagetide_record::MemorySpec;
use pagetide_store::Store;

/// A campaign with this command, four trials and a stated duration if any.
fn program(command: &str, memory: u64, takes: Option<Nanos>) -> Campaign {
    let scenario = ScenarioSpec {
        name: PROGRAM.to_owned(),
        params: [("command".to_owned(), vec![command.to_owned()])].into(),
        memory: vec![MemorySpec::Free(Bytes::from_mib(memory))],
        takes,
        ..ScenarioSpec::default()
    };
    Campaign {
        scenarios: vec![scenario],
        ..campaign(2)
    }
}

/// The forecast of the campaign's only cell, and the time until the end.
fn look(campaign: &Campaign, arena: &ScriptedArena, folder: &Path) -> (CellForecast, Nanos) {
    let store = Store::open(folder).unwrap();
    let mut cells = Vec::new();
    let whole = forecast(campaign, arena, &store, Some(2), false, &[], &mut |cell| {
        cells.push(cell);
    });
    assert_eq!(cells.len(), 1);
    (cells.remove(0), whole.unwrap().left)
}

#[test]
fn what_a_program_is_said_to_take_is_scaled_by_this_machine_and_is_no_part_of_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena {
        takes: Duration::from_millis(20),
        slower: 3,
        ..ScriptedArena::default()
    };
    let silent = program("sort a", 64, None);
    let told = program("sort a", 64, Some(Nanos::from_secs(7)));
    let (cell, left) = look(&silent, &arena, dir.path());
    assert_eq!((cell.basis, left), (Basis::Assumed, Nanos::from_secs(40)));
    let (cell, left) = look(&told, &arena, dir.path());
    assert_eq!((cell.basis, left), (Basis::Reckoned, Nanos::from_secs(42)));
    // A run predicts the same duration as the plan.
    let first = Diary {
        stop_after: Some(0),
        ..Diary::default()
    };
    go(&told, &arena, dir.path(), 2, false, &first).unwrap();
    assert_eq!(first.last.lock().unwrap().left, Nanos::from_secs(42));
    // Records of either campaign count for both, and measurements outweigh the stated duration.
    go(&silent, &arena, dir.path(), 2, false, &Nobody).unwrap();
    let (cell, left) = look(&told, &arena, dir.path());
    assert_eq!((cell.found, cell.basis), (4, Basis::Measured));
    assert_eq!(left, Nanos(0));
}

#[test]
fn a_program_is_not_forecast_by_another_but_by_itself_at_another_size() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena {
        takes: Duration::from_millis(20),
        ..ScriptedArena::default()
    };
    go(
        &program("sort a", 64, None),
        &arena,
        dir.path(),
        2,
        false,
        &Nobody,
    )
    .unwrap();
    let (cell, left) = look(&program("gcc a.c", 64, None), &arena, dir.path());
    assert_eq!((cell.basis, left), (Basis::Assumed, Nanos::from_secs(40)));
    let (cell, left) = look(&program("sort a", 48, None), &arena, dir.path());
    assert_eq!((cell.found, cell.basis), (0, Basis::Reckoned));
    assert!((0.04..4.0).contains(&left.secs()), "{left}");
    // The stated duration outweighs measurements at another size.
    let told = program("sort a", 48, Some(Nanos::from_secs(5)));
    assert_eq!(look(&told, &arena, dir.path()).1, Nanos::from_secs(10));
}
