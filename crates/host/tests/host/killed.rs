//! Tests that kill the tool, its guardian or both at any moment. Afterwards the machine must be as before.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use pagetide_host::journal::Content;

use crate::common::{
    Tool, is_all_undone, is_user, kill, lasting_differences, quiet_state, run, text, turn,
    turn_of_groups, usual, wait_until,
};

/// Settings that the trials of these tests change: a plain one, one that changes others, one that raises watermarks.
const SETTINGS: [&str; 6] = [
    "--set",
    "vm.page-cluster=0",
    "--set",
    "vm.dirty_bytes=67108864",
    "--set",
    "thp/enabled=always",
];

/// Latest moment of a kill, in milliseconds after the start: the duration of about two trials.
const SPAN: u64 = 1_600;

/// The process that is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Tool,
    Guardian,
    Both,
}

/// Returns random moments at which to kill a process. Half of them are in the first tenth of the time, in which most
/// changes are made.
fn moments(seed: u64, count: u32) -> Vec<Duration> {
    let mut state = seed;
    let mut next = move || {
        // Knuth's MMIX generator.
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        state >> 33
    };
    (0..count)
        .map(|at| {
            let span = if at % 2 == 0 { SPAN / 10 } else { SPAN };
            Duration::from_micros(next() % (span * 1000))
        })
        .collect()
}

/// Kills processes of campaigns at these moments. After each, the machine must be as before.
fn killed(victim: Victim, swap: &str, moments: &[Duration]) {
    let turn = if is_user() { turn_of_groups() } else { turn() };
    let Some(_turn) = turn else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path();
    let mut arguments = vec!["--trials", "3"];
    if is_user() {
        arguments.extend(usual());
    } else {
        arguments.extend(["--trace", "--swap", swap]);
        arguments.extend(SETTINGS);
    }
    // The first run makes the folder of journals, and the kernel's lists of trace events.
    text(&run(folder, &arguments));
    let before = quiet_state(folder);
    for moment in moments {
        let mut tool = Tool::start(folder, &arguments);
        let guardian = (victim != Victim::Tool).then(|| tool.guardian());
        sleep(*moment);
        match (victim, guardian) {
            (Victim::Tool, _) | (_, None) => tool.kill(),
            (Victim::Guardian, Some(guardian)) => {
                kill(guardian);
                let rest = tool.rest();
                assert!(rest.contains("trial 2") && !rest.contains("left"), "{rest}");
            }
            (Victim::Both, Some(guardian)) => {
                kill(guardian);
                tool.kill();
                let swept = text(&run(folder, &["--sweep"]));
                assert!(!swept.contains("left"), "{swept}");
            }
        }
        wait_until("end of the guardian", || is_all_undone(folder));
        let changed = lasting_differences(&before, folder);
        assert!(
            changed.is_empty(),
            "{victim:?} after {moment:?}: {changed:#?}"
        );
    }
}

#[test]
fn user_a_killed_tool_leaves_the_machine_as_it_was() {
    killed(Victim::Tool, "loop", &moments(1, 4));
}

#[test]
fn user_a_killed_guardian_is_replaced_and_nothing_is_left() {
    killed(Victim::Guardian, "loop", &moments(2, 1));
}

#[test]
fn user_the_next_start_undoes_what_a_killed_tool_with_its_guardian_left() {
    killed(Victim::Both, "loop", &moments(3, 3));
}

#[test]
#[ignore = "test-all"]
fn user_fifty_kills_of_the_tool_ten_of_the_guardian_and_ten_of_both_leave_nothing() {
    killed(Victim::Tool, "loop", &moments(4, 25));
    killed(Victim::Guardian, "loop", &moments(5, 5));
    killed(Victim::Both, "loop", &moments(6, 5));
    if is_user() {
        killed(Victim::Tool, "none", &moments(7, 25));
        killed(Victim::Guardian, "none", &moments(8, 5));
        killed(Victim::Both, "none", &moments(9, 5));
    } else if has_free_zram() {
        killed(Victim::Tool, "zram", &moments(7, 25));
        killed(Victim::Guardian, "zram", &moments(8, 5));
        killed(Victim::Both, "zram", &moments(9, 5));
    }
}

fn has_free_zram() -> bool {
    let state = std::fs::read_to_string("/sys/block/zram0/initstate").unwrap_or_default();
    let is_free = state.trim() == "0";
    if !is_free {
        pagetide_testing::skip(pagetide_testing::Need::Swap, "no zram device is free");
    }
    is_free
}

#[test]
fn zram_is_reset_after_a_kill() {
    if !is_user() && has_free_zram() {
        killed(Victim::Tool, "zram", &moments(10, 2));
    }
}

#[test]
fn a_start_while_another_tool_runs_leaves_its_changes_alone() {
    let Some(_turn) = turn_of_groups() else {
        return;
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path();
    let mut tool = Tool::start(folder, &[usual(), &["--trials", "2"]].concat());
    tool.line("running");
    let swept = text(&run(folder, &["--sweep"]));
    assert_eq!(swept, "");
    let rest = tool.rest();
    assert!(rest.contains("trial 1") && !rest.contains("left"), "{rest}");
}

#[test]
fn after_a_power_cut_only_what_is_on_disks_is_undone() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path();
    let mut tool = Tool::start(folder, &["--trials", "100", "--set", "vm.page-cluster=0"]);
    let guardian = tool.guardian();
    tool.line("running");
    kill(guardian);
    let journal = journal(folder);
    tool.kill();
    // The same journal, but with the identity of another boot, as after a reboot.
    let text_ = std::fs::read_to_string(&journal).unwrap();
    let boot = Content::read(&journal).unwrap().header.boot;
    let old = folder.join("state/1-1-0.journal");
    std::fs::write(&old, text_.replace(&boot, "another-boot")).unwrap();
    let kept = folder.join("kept");
    std::fs::rename(&journal, &kept).unwrap();
    let swept = text(&run(folder, &["--sweep"]));
    assert!(swept.contains("undone the folder"), "{swept}");
    assert_eq!(swept.lines().count(), 1, "{swept}");
    assert!(!old.exists());
    // The other changes are still in effect, and belong to this boot.
    std::fs::rename(&kept, &journal).unwrap();
    let swept = text(&run(folder, &["--sweep"]));
    for word in ["swap on", "the setting", "the control group"] {
        assert!(swept.contains(word), "{swept}");
    }
}

/// Path of the only journal.
fn journal(folder: &Path) -> std::path::PathBuf {
    let state = pagetide_host::StateFolder::at(folder.join("state"));
    let journals = state.journals();
    assert_eq!(journals.len(), 1);
    journals[0].clone()
}

#[test]
fn a_setting_that_somebody_else_changed_in_the_meantime_is_left_alone() {
    let Some(_turn) = turn() else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = "/proc/sys/vm/page-cluster";
    let old = std::fs::read_to_string(path).unwrap();
    let mut tool = Tool::start(folder.path(), &["--set", "vm.page-cluster=0"]);
    tool.line("running");
    std::fs::write(path, "5").unwrap();
    let rest = tool.rest();
    let found = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, &old).unwrap();
    assert_eq!(found.trim(), "5", "{rest}");
}
