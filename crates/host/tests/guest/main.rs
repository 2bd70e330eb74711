//! The tests of this crate in a guest with control groups of version 2, as root and as a user, and after power cuts.
#![allow(clippy::unwrap_used, reason = "tests may")]

mod lab;

use std::io::Read;
use std::thread::sleep;
use std::time::Duration;

use crate::lab::{DISK, Lab, built};

/// A guest with the tests of `tests/host` and their example; `None`, with a counted skip, if no guest can run here.
fn lab() -> Option<Lab> {
    let lab = Lab::new()?;
    let lab = lab.with("/deps/host", built("deps", "host"));
    Some(lab.with("/examples/host_trial", built("examples", "host_trial")))
}

/// Runs tests of `tests/host` in a guest.
fn tests(who: &str, arguments: &[&str]) {
    if let Some(lab) = lab() {
        lab.passes(who, &[&["/deps/host"], arguments].concat());
    }
}

#[test]
fn a_user_with_a_delegated_group_leaves_nothing_after_kills() {
    tests("user", &["killed::user_"]);
}

#[test]
#[ignore = "test-all"]
fn all_holds_with_groups_of_version_2_as_root() {
    tests("root", &["--include-ignored"]);
}

#[test]
#[ignore = "test-all"]
fn all_that_a_user_may_do_holds_with_a_delegated_group() {
    tests("user", &["--include-ignored"]);
}

/// Boots a guest in which trials run, cuts its power at this number of moments after the first trial, and boots it
/// again after each.
fn cut(moments: u32) {
    let Some(lab) = lab() else { return };
    let state = format!("{DISK}/state");
    let tool = ["/examples/host_trial", "--state", &state, "--folder", DISK];
    let settings = ["--set", "vm.page-cluster=0", "--trials", "100000"];
    let mut swept = 0;
    for moment in 0..moments {
        let mut guest = lab.start("root", &[&tool[..], &settings].concat());
        let mut out = guest.stdout.take().unwrap();
        let mut printed = Vec::new();
        while !String::from_utf8_lossy(&printed).contains("trial 0") {
            let mut some = [0; 4096];
            let read = out.read(&mut some).unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&printed));
            printed.extend(&some[..read]);
        }
        // The moments are spread over more than the duration of a trial, which takes some seconds in the guest.
        sleep(Duration::from_millis(u64::from(moment * 379 % 2000)));
        guest.kill().unwrap();
        guest.wait().unwrap();
        let told = lab.run("root", &[&tool[..], &["--sweep"]].concat());
        assert!(
            told.contains("ended with") && !told.contains("left"),
            "{told}"
        );
        swept += usize::from(told.contains("undone the folder"));
        // Nothing of the journal remains, and the next trial runs.
        let told = lab.run("root", &[&tool[..], &["--trials", "1"]].concat());
        assert!(
            told.contains("trial 0") && !told.contains("undone"),
            "{told}"
        );
    }
    assert!(
        swept > 0 || moments < 4,
        "no cut hit a trial with its folder"
    );
}

#[test]
#[ignore = "test-all"]
fn the_next_start_mends_what_ten_power_cuts_left() {
    cut(10);
}
