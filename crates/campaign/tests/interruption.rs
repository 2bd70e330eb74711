//! Tests of runs that end early: by a broken arena, by a stop, and by a kill.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Act, Diary, ScriptedArena, campaign, contents, go, verdicts};
use pagetide_campaign::Nobody;

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

#[test]
fn a_campaign_killed_ten_times_ends_with_the_same_records_and_verdicts() {
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
    for _ in 0..10 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "interruption::child_runs_the_campaign",
                "--ignored",
            ])
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
        "the campaign was over before it was killed ten times"
    );
    let arena = ScriptedArena::default();
    let last = go(&campaign(100), &arena, killed.path(), 2, false, &Nobody).unwrap();
    assert_eq!(last.tally.found, grew);
    assert_eq!(contents(killed.path()), contents(whole.path()));
    assert_eq!(verdicts(killed.path()), verdicts(whole.path()));
}
