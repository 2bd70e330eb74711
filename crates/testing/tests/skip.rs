//! Tests that skips are printed and counted, and that with `PAGETIDE_TESTS=all` a skip fails if the CI machine must
//! provide what is missing. Each case is a process with a separate environment.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

use std::process::{Command, Output};

use pagetide_testing::{Need, skip};

fn run(child: &str, variables: &[(&str, &str)]) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", child, "--nocapture"])
        .env_remove("PAGETIDE_TESTS")
        .env_remove("PAGETIDE_SKIPS")
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

#[test]
#[ignore = "started by the tests below"]
fn needs_an_emulator() {
    skip(Need::Emulator, "no emulator\nhere");
}

#[test]
#[ignore = "started by the tests below"]
fn needs_root() {
    skip(Need::Root, "not root");
}

#[test]
fn a_skip_is_a_line_with_test_need_and_reason() {
    let folder = std::env::temp_dir().join(format!("pagetide-skips-{}", std::process::id()));
    let path = folder.to_str().unwrap();
    for child in ["needs_an_emulator", "needs_root"] {
        let output = run(child, &[("PAGETIDE_SKIPS", path)]);
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains("skipped: no"));
    }
    let text = std::fs::read_to_string(&folder).unwrap();
    std::fs::remove_file(&folder).unwrap();
    assert_eq!(
        text,
        "skip needs_an_emulator\temulator\tno emulator here\nskip needs_root\troot\tnot root\n"
    );
}

#[test]
fn where_all_must_run_a_skip_fails_only_for_what_the_machine_must_have() {
    let all = [("PAGETIDE_TESTS", "all")];
    assert!(run("needs_root", &all).status.success());
    let refused = run("needs_an_emulator", &all);
    assert!(!refused.status.success());
    let text = String::from_utf8_lossy(&refused.stdout) + String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("needs_an_emulator needs emulator"), "{text}");
}
