//! Control groups in a trial: processes are killed at the limit, the group is removed, or a process leaves the group.

use std::time::Duration;

use pagetide_host::{Group, Hierarchy, Journal, Limits, StateFolder};
use pagetide_quantity::Bytes;

use crate::common::{Tool, is_user, run, text, turn_of_groups, usual};

#[test]
fn user_limits_are_read_back_and_the_group_is_gone_when_it_is_dropped() {
    let Some(_turn) = turn_of_groups() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::create(&StateFolder::at(folder.path())).unwrap();
    let hierarchy = Hierarchy::find().unwrap();
    let limits = Limits {
        swap_max: Some(Bytes::from_mib(8)),
        ..Limits::of(Bytes::from_mib(16))
    };
    let group = Group::make(&journal, &hierarchy, &limits).unwrap();
    // The new limits are first smaller, then larger than the old ones. Version 1 needs another order of writes for
    // each.
    for mib in [8, 64] {
        group.limit(&Limits::of(Bytes::from_mib(mib))).unwrap();
        group
            .limit(&Limits {
                max: Bytes::from_mib(mib),
                ..limits
            })
            .unwrap();
    }
    let usage = group.usage().unwrap();
    assert_eq!((usage.oom_kills, usage.swap), (0, Bytes(0)));
    let why = group.set("cgroup.procs", "x").unwrap_err().to_string();
    assert!(why.contains("cgroup.procs"), "{why}");
    let path = group.path().to_owned();
    assert!(path.is_dir());
    drop(group);
    assert!(!path.exists());
    assert!(journal.standing().is_empty() || hierarchy.name() != "v1");
    assert!(journal.undo_all().is_empty());
}

#[test]
fn user_a_group_that_exceeds_its_limit_is_killed_inside_and_counted() {
    let Some(_turn) = turn_of_groups() else {
        return;
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let told = text(&run(folder.path(), &["--swap", "none"]));
    let kills = told.lines().find_map(|line| line.split_once(" kills "));
    let kills: u32 = kills.unwrap().1.parse().unwrap();
    assert!(kills >= 1, "{told}");
    assert!(told.contains("signal: 9"), "{told}");
    assert!(told.contains("trial 0") && !told.contains("left"), "{told}");
}

#[test]
fn user_a_daemon_that_the_workload_leaves_is_found_in_the_group_and_killed() {
    let Some(_turn) = turn_of_groups() else {
        return;
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let told = text(&run(folder.path(), usual()));
    // The first is the daemon with a session of its own, the second the child that outlives its parent.
    assert!(told.contains("members 2"), "{told}");
    assert!(!told.contains("left"), "{told}");
}

#[test]
fn user_a_group_that_somebody_removes_makes_the_trial_invalid_and_the_next_one_runs() {
    let Some(_turn) = turn_of_groups() else {
        return;
    };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut tool = Tool::start(folder.path(), &[usual(), &["--trials", "2"]].concat());
    let pid = tool.id();
    tool.line("running");
    let name = format!("pagetide-{pid}-");
    // The tool has moved this process into a group beside its own, if it has no rights for the root.
    let root = Hierarchy::find().unwrap().root().to_owned();
    let root = if is_user() {
        root.parent().unwrap().to_owned()
    } else {
        root
    };
    let entries = std::fs::read_dir(&root).unwrap();
    let group = entries
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            let own = path.file_name().unwrap().to_string_lossy();
            own.starts_with(&name) && !own.ends_with("others")
        })
        .unwrap();
    while pagetide_host::group_files::empty(&group, Duration::from_secs(30)) > 0
        || std::fs::remove_dir(&group).is_err()
    {
        assert!(group.exists());
    }
    let rest = tool.rest();
    assert!(
        rest.contains("invalid the memory group was removed"),
        "{rest}"
    );
    assert!(rest.contains("trial 1") && !rest.contains("left"), "{rest}");
}
