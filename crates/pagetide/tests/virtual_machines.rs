//! Tests of the arena vm: it is refused where KVM does not work, and tried in plain emulation, which every table
//! states.

use std::path::Path;

use crate::common::{KERNEL, Lab, TINY, metric};

/// Command that runs a small trial in the arena vm.
fn on_vm(more: &[&str]) -> Vec<String> {
    let run = ["run", "smooth-sin-random", "--on", "vm", "--kernel", KERNEL];
    let words = [&run[..], &TINY, &["--seeds", "1", "--exit-zero"], more].concat();
    words.into_iter().map(str::to_owned).collect()
}

#[test]
fn where_kvm_does_not_work_the_arena_is_refused_with_the_reason() {
    let Some(lab) = Lab::that_runs() else { return };
    let output = lab.pagetide(on_vm(&[])).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() {
        // KVM works on this machine, and no table may say that its times mean nothing.
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(!out.contains("no measure of time"), "{out}");
        return;
    }
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("the arena vm needs KVM"), "{err}");
    assert!(err.contains("--emulated"), "{err}");
    if Path::new("/sys/module/kvm_pvm").exists() {
        assert!(err.contains("kvm_pvm"), "{err}");
    }
    assert_eq!(lab.records(), 0);
}

#[test]
fn with_emulated_two_cpus_run_a_trial_and_tables_say_that_times_mean_nothing() {
    let Some(lab) = Lab::that_runs() else { return };
    let words = on_vm(&["--emulated", "--cpus", "2", "--observe=none"]);
    let (out, err) = lab.ends(0, words);
    assert!(out.contains("emulated: no measure of time"), "{out}{err}");
    let record = &lab.newest(1)[0];
    let subject = &record["subject"];
    assert_eq!(subject["arena"]["kind"], "vm", "{subject}");
    let invalid = &record["results"]["invalid"];
    assert!(invalid.as_array().is_none_or(Vec::is_empty), "{invalid}");
    assert!(metric(record, "major-faults") > 100.0);
    let facts = record["results"]["facts"].to_string();
    println!("{facts}");
    // `show` states this too.
    let list = lab.ends(0, ["list", "records", "--json"]).0;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let (text, _) = lab.ends(0, ["show", list[0]["id"].as_str().unwrap()]);
    assert!(text.contains("emulated: no measure of time"), "{text}");
}

#[test]
fn instructions_are_counted_in_the_exact_arena_only() {
    let Some(lab) = Lab::that_runs() else { return };
    let words = on_vm(&["--emulated", "--profile"]);
    let output = lab.pagetide(words).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{err}");
    assert!(err.contains("--profile counts instructions"), "{err}");
}
