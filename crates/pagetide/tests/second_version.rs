//! The tests of trials on the running kernel, in a guest with control groups of version 2: the tool runs inside, as
//! root and as a user with a delegated group.

#[path = "../../host/tests/guest/lab.rs"]
#[allow(dead_code, reason = "the tests of the crate host use the rest")]
mod lab;

use lab::{Lab, built};

/// Programs of this machine that the tests start, by their paths here and in the guest.
const PROGRAMS: [&str; 7] = [
    "/bin/sh",
    "/bin/ls",
    "/bin/sleep",
    "/usr/bin/head",
    "/usr/bin/tail",
    "/usr/bin/setsid",
    "/usr/bin/sort",
];

/// Runs tests of the program `command` in a guest.
fn tests(who: &str, words: &[&str]) {
    let Some(lab) = Lab::new() else { return };
    let lab = lab
        .with("/deps/command", built("deps", "command"))
        .with("/pagetide", built("", "pagetide"));
    let add = |lab: Lab, path: &&str| lab.with(path, path.into());
    let lab = PROGRAMS.iter().fold(lab, add);
    lab.passes(
        who,
        &[&["/deps/command", "--include-ignored"], words].concat(),
    );
}

#[test]
#[ignore = "test-all"]
fn trials_hold_and_survive_hostile_events_with_groups_of_version_2() {
    tests("root", &["running_kernel::", "hostile::"]);
}

#[test]
#[ignore = "test-all"]
fn a_user_with_a_delegated_group_runs_all_scenarios() {
    tests("user-with-swap", &["running_kernel::user_"]);
}
