//! The tests of trials on the running kernel, in a guest with control groups of version 2: the tool runs inside, as
//! root and as a user with a delegated group.

#[path = "../../host/tests/guest/lab.rs"]
#[allow(dead_code, reason = "the tests of the crate host use the rest")]
mod lab;

use lab::{Lab, built};

/// Programs of this machine that the tests start, by their paths here and in the guest.
const PROGRAMS: [&str; 11] = [
    "/bin/sh",
    "/bin/ls",
    "/bin/sleep",
    "/usr/bin/head",
    "/usr/bin/tail",
    "/usr/bin/setsid",
    "/usr/bin/sort",
    // The tool makes the root of a program with this one, and a test makes and mounts a small disk.
    "/usr/sbin/mke2fs",
    "/usr/sbin/mkfs.ext4",
    "/bin/mount",
    "/bin/umount",
];

/// Runs tests of the program `machine` in a guest.
fn tests(who: &str, words: &[&str]) {
    let Some(lab) = Lab::new() else { return };
    let lab = lab
        .with("/deps/machine", built("deps", "machine"))
        .with("/pagetide", built("", "pagetide"));
    let add = |lab: Lab, path: &&str| lab.with(path, path.into());
    let lab = PROGRAMS.iter().fold(lab, add);
    lab.passes(
        who,
        &[&["/deps/machine", "--include-ignored"], words].concat(),
    );
}

#[test]
#[ignore = "test-all"]
fn trials_hold_with_groups_of_version_2() {
    tests("root", &["running_kernel::a", "running_kernel::what_"]);
}

#[test]
#[ignore = "test-all"]
fn all_workloads_end_and_the_rest_of_the_machine_hardly_grows_with_groups_of_version_2() {
    tests("root", &["running_kernel::the_"]);
}

#[test]
#[ignore = "test-all"]
fn trials_survive_what_others_do_with_groups_of_version_2() {
    tests("root", &["hostile::load", "hostile::a_trial"]);
}

#[test]
#[ignore = "test-all"]
fn trials_survive_hostile_programs_and_a_full_disk_with_groups_of_version_2() {
    tests("root", &["hostile::a_child", "hostile::a_full"]);
}

#[test]
#[ignore = "test-all"]
fn a_user_with_a_delegated_group_runs_all_scenarios_and_programs() {
    tests("user-with-swap", &["running_kernel::user_"]);
}
