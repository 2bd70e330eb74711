//! Tests of forecasts: the trials, boots and time left of a campaign, and the time of a user's own program, for which
//! the arena has no estimate.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::{Diary, ScriptedArena, campaign, go};
use pagetide_campaign::{
    Basis, Campaign, CellForecast, KernelForecast, Nobody, Observe, PROGRAM, ScenarioSpec, forecast,
};
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

#[test]
fn time_left_is_estimated_from_what_the_store_knows_of_a_cell() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena {
        takes: Duration::from_millis(20),
        ..ScriptedArena::default()
    };
    let first = Diary {
        stop_after: Some(0),
        ..Diary::default()
    };
    go(&campaign(2), &arena, dir.path(), 2, false, &first).unwrap();
    // 16 trials of an assumed 20 s each, two in parallel.
    assert!((first.last.lock().unwrap().left.secs() - 160.0).abs() < 1e-9);
    go(&campaign(2), &arena, dir.path(), 2, false, &Nobody).unwrap();
    let later = Diary {
        stop_after: Some(0),
        ..Diary::default()
    };
    go(&campaign(6), &arena, dir.path(), 2, false, &later).unwrap();
    // 32 more trials of at least 20 ms each, two in parallel.
    let left = later.last.lock().unwrap().left.secs();
    assert!((0.32..3.0).contains(&left), "{left}");
}

#[test]
fn a_forecast_says_what_would_run_and_how_long_without_running_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let arena = ScriptedArena {
        takes: Duration::from_millis(20),
        ..ScriptedArena::default()
    };
    let look = |store: &Store, jobs, fresh| {
        let mut cells = Vec::new();
        let whole = forecast(&campaign(6), &arena, store, jobs, fresh, &[], &mut |cell| {
            cells.push(cell);
        });
        (whole.unwrap(), cells)
    };
    let (before, cells) = look(&store, None, false);
    assert!(arena.begun().is_empty());
    assert_eq!(
        (before.trials, before.found, before.side_by_side),
        (48, 0, 2)
    );
    assert_eq!((cells.len(), cells[0].trials), (4, 12));
    assert_eq!(cells[0].basis, Basis::Assumed);
    assert!((before.left.secs() - 480.0).abs() < 1e-9);
    go(&campaign(2), &arena, dir.path(), 2, false, &Nobody).unwrap();
    store = Store::open(store.folder()).unwrap();
    let (after, cells) = look(&store, Some(4), false);
    assert_eq!((after.trials, after.found, after.side_by_side), (48, 16, 4));
    assert_eq!((cells[3].basis, cells[3].found), (Basis::Measured, 4));
    assert!((0.16..2.0).contains(&after.left.secs()), "{}", after.left);
    assert_eq!(look(&store, None, true).0.found, 0);
}

#[test]
fn a_kernel_that_is_not_built_yet_has_no_records_and_its_build_and_boot_count() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena {
        boot: Some(Nanos::from_secs(1000)),
        ..ScriptedArena::default()
    };
    go(&campaign(6), &arena, dir.path(), 2, false, &Nobody).unwrap();
    let store = Store::open(dir.path()).unwrap();
    let look = |kernels: &[KernelForecast]| {
        forecast(
            &campaign(6),
            &arena,
            &store,
            None,
            false,
            kernels,
            &mut |_| {},
        )
        .unwrap()
    };
    let all = look(&[]);
    assert_eq!((all.found, all.boots, all.left), (all.trials, 0, Nanos(0)));
    let kernel = |is_built| KernelForecast {
        place: 1,
        variant: "b".into(),
        what: "a source + a patch".into(),
        is_built,
        build: Nanos::from_secs(if is_built { 0 } else { 100 }),
    };
    assert_eq!(look(&[kernel(true)]).left, Nanos(0));
    let unbuilt = look(&[kernel(false)]);
    // The other variant's records count. Both kinds of swap need a boot of the new kernel.
    assert_eq!((unbuilt.found, unbuilt.boots), (all.trials / 2, 2));
    assert!(
        unbuilt.left > Nanos::from_secs(100 + 2 * 15 / 2),
        "{}",
        unbuilt.left
    );
    assert!(unbuilt.head().contains("kernel of b: a source + a patch"));
    assert!(unbuilt.end().contains("the build of one kernel"));
}

#[test]
fn boots_are_in_what_is_left_until_their_guest_is_ready() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let arena = ScriptedArena {
        boot: Some(Nanos::from_secs(1000)),
        ..ScriptedArena::default()
    };
    let look = || forecast(&campaign(6), &arena, &store, None, false, &[], &mut |_| {}).unwrap();
    // 48 trials of an assumed 20 s each and two guests, two in parallel.
    let before = look();
    assert_eq!(before.boots, 2);
    assert!(
        (before.left.secs() - 1480.0).abs() < 1e-9,
        "{}",
        before.left
    );
    let diary = Diary {
        stop_after: Some(0),
        ..Diary::default()
    };
    go(&campaign(6), &arena, dir.path(), 1, false, &diary).unwrap();
    let left = diary.last.lock().unwrap().left.secs();
    assert!((left - 2960.0).abs() < 1e-9, "{left}");
    go(&campaign(6), &arena, dir.path(), 1, false, &Nobody).unwrap();
    let after = look();
    assert_eq!((after.boots, after.found), (0, 48));
    assert_eq!(after.left.0, 0);
}

#[test]
fn a_hundred_thousand_seeds_and_half_a_million_cells_are_forecast_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let arena = ScriptedArena::default();
    let (mut cells, began) = (0_u64, std::time::Instant::now());
    let seeds = campaign(100_000);
    let whole = forecast(&seeds, &arena, &store, None, false, &[], &mut |_| {
        cells += 1;
    })
    .unwrap();
    assert_eq!((whole.trials, cells), (800_000, 4));
    assert!(began.elapsed() < Duration::from_secs(1));
    let mut matrix = campaign(6);
    matrix.scenarios.truncate(1);
    matrix.scenarios[0].swap.truncate(1);
    for (name, values) in [("pages", 200), ("refs", 299)] {
        let values = (1..=values).map(|value| value.to_string()).collect();
        matrix.scenarios[0].params.insert(name.to_owned(), values);
    }
    matrix.observe = Observe::All;
    arena.prepared.store(0, Ordering::SeqCst);
    let whole = forecast(&matrix, &arena, &store, None, false, &[], &mut |_| {
        cells += 1;
    })
    .unwrap();
    assert_eq!((whole.trials, cells), (59_800 * 24, 59_804));
    // Every cell is prepared once. The only scenario on the only machine is also prepared under both variants in both
    // passes.
    assert_eq!(arena.prepared.load(Ordering::SeqCst), 59_800 + 4);
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}
