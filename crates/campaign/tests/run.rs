//! Tests of the run loop in a scripted arena: order, resumption, stopping and errors.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

use pagetide_compare::{Overall, compare_campaign};

use crate::common::{Act, Diary, ScriptedArena, campaign, go};
use pagetide_arena::{NoProgress, Trial, VariantSpec};
use pagetide_campaign::{
    Basis, Campaign, KernelForecast, Nobody, Observe, Options, RunError, Until, forecast, repeat,
    run,
};
use pagetide_quantity::Nanos;
use pagetide_record::{ArenaKind, Invalid, Maker};
use pagetide_store::Filter;
use pagetide_store::Store;

/// Identity of the trial and digest of every record, sorted.
fn contents(folder: &Path) -> Vec<(String, String)> {
    let store = Store::open(folder).unwrap();
    let mut all: Vec<_> = store
        .select(&Filter::default())
        .unwrap()
        .into_iter()
        .map(|row| (row.key, row.digest))
        .collect();
    all.sort_unstable();
    all
}

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
    // After two blocks, the cells run one after the other.
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
    // The result of the last cell is in the final table, not in a line of its own.
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

/// An arena with variants in four cells, in which all trials of these variants and seeds are invalid for this reason.
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
        fresh: false,
        keep_going: true,
        shard: None,
        elsewhere: None,
        command: String::new(),
        maker: &|_| Maker::default(),
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
fn a_broken_arena_ends_the_run_with_its_reason_and_keeps_what_is_stored() {
    // With two in parallel, one trial may be stopped together with the failing one, or finish before it.
    for (jobs, kept) in [(1, 8..=8), (2, 7..=31)] {
        let dir = tempfile::tempdir().unwrap();
        let arena = ScriptedArena {
            takes: Duration::from_millis(2),
            deeds: [(
                ("on".into(), 2),
                Act::Break("QEMU is gone: install it".into()),
            )]
            .into(),
            ..ScriptedArena::default()
        };
        let error = go(&campaign(4), &arena, dir.path(), jobs, false, &Nobody).unwrap_err();
        assert_eq!(error.to_string(), "QEMU is gone: install it");
        let stored = contents(dir.path()).len();
        assert!(kept.contains(&stored), "{jobs} jobs: {stored}");
        let calm = ScriptedArena::default();
        let rest = go(&campaign(4), &calm, dir.path(), jobs, false, &Nobody).unwrap();
        assert_eq!((rest.tally.found, rest.tally.ran), (stored, 32 - stored));
    }
}

#[test]
fn stopping_ends_running_trials_and_leaves_no_half_record() {
    let dir = tempfile::tempdir().unwrap();
    let arena = ScriptedArena {
        deeds: [(("on".into(), 3), Act::WaitForStop)].into(),
        ..ScriptedArena::default()
    };
    let stop = Diary {
        stop_after: Some(16),
        ..Diary::default()
    };
    let outcome = go(&campaign(4), &arena, dir.path(), 2, false, &stop).unwrap();
    assert!(outcome.stopped);
    assert!(outcome.tally.ran < 32);
    assert_eq!(contents(dir.path()).len(), outcome.tally.ran);
    let left = std::fs::read_dir(dir.path().join("incoming"))
        .unwrap()
        .count();
    assert_eq!(left, 0);
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
    // Every cell is prepared once, and the only scenario on the only machine once more under both variants in both
    // passes.
    assert_eq!(arena.prepared.load(Ordering::SeqCst), 59_800 + 4);
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
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

/// The body of the process that the test below kills.
#[test]
#[ignore = "run as a child by another test"]
fn child_runs_the_campaign() {
    let folder = std::env::var("PAGETIDE_TEST_STORE").unwrap();
    let arena = ScriptedArena {
        takes: Duration::from_millis(8),
        ..ScriptedArena::default()
    };
    go(
        &campaign(100),
        &arena,
        Path::new(&folder),
        2,
        false,
        &Nobody,
    )
    .unwrap();
}

/// All judgements of the last campaign, without the identities of their records.
fn verdicts(folder: &Path) -> Vec<String> {
    let store = Store::open(folder).unwrap();
    let comparison = compare_campaign(&store, None).unwrap();
    assert_eq!(comparison.cells.len(), 4);
    comparison
        .cells
        .iter()
        .flat_map(|cell| &cell.metrics)
        .flat_map(|metric| &metric.judgements)
        .map(|judgement| serde_json::to_string(judgement).unwrap())
        .collect()
}

#[test]
fn a_campaign_killed_thirty_times_ends_with_the_same_records_and_verdicts() {
    let whole = tempfile::tempdir().unwrap();
    go(
        &campaign(100),
        &ScriptedArena::default(),
        whole.path(),
        2,
        false,
        &Nobody,
    )
    .unwrap();
    let killed = tempfile::tempdir().unwrap();
    let mut random = 7_u64;
    let mut grew = 0;
    for _ in 0..30 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "run::child_runs_the_campaign", "--ignored"])
            .env("PAGETIDE_TEST_STORE", killed.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        std::thread::sleep(Duration::from_millis(15 + (random >> 33) % 50));
        child.kill().unwrap();
        child.wait().unwrap();
        let now = contents(killed.path()).len();
        assert!(now >= grew, "records were lost");
        grew = now;
    }
    assert!(
        grew < 800,
        "the campaign was over before it was killed thirty times"
    );
    let arena = ScriptedArena::default();
    let last = go(&campaign(100), &arena, killed.path(), 2, false, &Nobody).unwrap();
    assert_eq!(last.tally.found, grew);
    assert_eq!(contents(killed.path()), contents(whole.path()));
    assert_eq!(verdicts(killed.path()), verdicts(whole.path()));
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
