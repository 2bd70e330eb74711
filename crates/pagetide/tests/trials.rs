//! Tests of complete trials in the exact arena on a real kernel; they are tiny and take seconds.

use std::fs;
use std::time::Duration;

use crate::common::{KERNEL, Lab, TINY, emulators_of, one_sentence, told};
use pagetide_testing::program::write_program;
use rustix::process::{Pid, Signal, kill_process};

/// Arguments of `run linear` with a tiny size, followed by more arguments.
fn linear<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["run", "linear", "--kernel", KERNEL];
    all.extend(TINY);
    all.extend(more);
    all
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_scenario_runs_is_resumed_shown_and_repeated_bit_for_bit() {
    let Some(lab) = Lab::that_runs() else { return };
    let (out, _) = lab.ends(0, linear(&["--seeds", "2"]));
    assert!(out.contains("Records: ") && out.contains("Next:"), "{out}");
    let records = json(&lab.ends(0, ["list", "records", "--json"]).0);
    let records = records.as_array().unwrap();
    assert_eq!(records.len(), 2);
    assert!(
        records.iter().all(|record| record["invalid"].is_null()),
        "{records:?}"
    );

    // The second time, all records exist. With one additional seed, one trial runs.
    lab.ends(0, linear(&["--seeds", "2"]));
    assert_eq!(lab.records(), 2);
    lab.ends(0, linear(&["--seeds", "3"]));
    assert_eq!(lab.records(), 3);

    let id = records[0]["id"].as_str().unwrap();
    let record = json(&lab.ends(0, ["show", id, "--json"]).0);
    assert_eq!(record["subject"]["scenario"], "linear");
    assert_eq!(record["subject"]["params"]["refs"], "5000");
    let access = &record["results"]["histograms"]["access"];
    assert_eq!(access["count"], 5_000, "every reference is timed");
    let command = record["maker"]["command"].as_str().unwrap();
    assert!(
        command.starts_with("pagetide run linear --kernel"),
        "{command}"
    );
    assert!(lab.ends(0, ["show", &id[..10]]).0.contains("linear"));

    let repeated = json(&lab.ends(0, ["repeat", id, "--times", "2", "--json"]).0);
    assert_eq!(repeated["identical"], 2, "{repeated}");
    assert_eq!(lab.records(), 3, "repetitions leave no record");
    assert_eq!(lab.leftovers(), Vec::<std::path::PathBuf>::new());

    let found = json(&lab.ends(0, ["store", "verify", "--json"]).0);
    assert_eq!(found["records"], 3);
    fs::remove_file(lab.store().join("index.sqlite")).unwrap();
    let found = json(&lab.ends(0, ["store", "rebuild", "--json"]).0);
    assert_eq!(found["records"], 3);
}

#[test]
#[ignore = "test-all"]
fn a_trial_that_is_held_up_again_and_again_comes_out_the_same() {
    let Some(lab) = Lab::that_runs() else { return };
    let digest = |lab: &Lab| {
        let records = json(&lab.ends(0, ["list", "records", "--json"]).0);
        records[0]["digest"].as_str().unwrap().to_owned()
    };
    lab.ends(0, linear(&["--seeds", "1"]));
    let other = Lab::new();
    let mut run = other.start(linear(&["--seeds", "1"]));
    // The process is stopped longer than 100 ms: after this time the emulator would resize its TLB if it used the
    // host's clock.
    let (stopped, going) = (Duration::from_millis(105), Duration::from_millis(15));
    let mut stops = 0;
    while run.try_wait().unwrap().is_none() {
        for pid in emulators_of(run.id()) {
            let pid = Pid::from_raw(pid.cast_signed()).unwrap();
            if kill_process(pid, Signal::STOP).is_ok() {
                stops += 1;
                std::thread::sleep(stopped);
                // The process may have ended in the meantime.
                let _ = kill_process(pid, Signal::CONT);
            }
        }
        std::thread::sleep(going);
    }
    assert!(run.wait().unwrap().success());
    assert!(stops > 3, "the emulator was stopped {stops} times only");
    assert_eq!(digest(&lab), digest(&other), "after {stops} stops");
}

#[test]
#[ignore = "test-all"]
fn an_emulator_that_keeps_the_clock_of_the_machine_is_refused() {
    let Some(lab) = Lab::that_runs() else { return };
    let wrapper = lab.folder().join("qemu");
    write_program(
        &wrapper,
        "#!/bin/sh\nunset LD_PRELOAD\nexec qemu-system-x86_64 \"$@\"\n",
    );
    let output = lab
        .pagetide(linear(&["--seeds", "1"]))
        .env("PAGETIDE_QEMU", &wrapper)
        .output()
        .unwrap();
    let (_, err) = told(&output, 2);
    one_sentence(&err, &["does not take the clock", "LD_PRELOAD", "exact"]);
    assert_eq!(lab.ends(0, ["list", "records", "--json"]).0, "[]\n");
    assert_eq!(lab.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
#[ignore = "test-all"]
fn a_kernel_against_itself_is_identical_in_every_format() {
    let Some(lab) = Lab::that_runs() else { return };
    let (out, _) = lab.ends(0, linear(&["--kernel", KERNEL, "--seeds", "2"]));
    assert!(out.contains("identical"), "{out}");
    let found = json(&lab.ends(0, ["compare", "--json"]).0);
    assert_eq!(found["overall"], "identical");
    for (format, word) in [
        ("mail", "again"),
        ("csv", "identical"),
        ("samples", "linear"),
        ("markdown", "###"),
        ("ktap", "KTAP version 1"),
        ("kcidb", "\"tests\""),
        ("paper", "linear"),
    ] {
        let (out, _) = lab.ends(0, ["compare", "base", "again", "--as", format]);
        assert!(out.contains(word), "{format}: {out}");
        assert!(out.is_ascii() || format != "mail", "mail is plain text");
    }
    assert!(
        lab.ends(0, ["history", "access-time"])
            .0
            .contains("are needed to find a change")
    );
    let (_, err) = lab.ends(2, ["compare", "base", "gain"]);
    one_sentence(&err, &["gain"]);
}

#[test]
fn what_a_kernel_lacks_is_refused_before_any_trial_with_the_option() {
    let Some(lab) = Lab::that_runs() else { return };
    let kernels = json(&lab.ends(0, ["list", "kernels", "--json"]).0);
    let digest = kernels
        .as_array()
        .unwrap()
        .iter()
        .find(|kernel| {
            kernel["names"]
                .as_array()
                .unwrap()
                .iter()
                .any(|name| name == KERNEL)
        })
        .and_then(|kernel| kernel["digest"].as_str())
        .unwrap();
    let kernel = lab.cache().join("kernels").join(digest);
    let config = fs::read_to_string(kernel.join("config")).unwrap();
    let mut config = config.replace("CONFIG_LRU_GEN=y", "# CONFIG_LRU_GEN is not set");
    let others = ["DEVMEM", "VM_EVENT_COUNTERS", "ZRAM_BACKEND_LZ4"];
    for name in others {
        let set = format!("CONFIG_{name}=y");
        assert!(config.contains(&set), "{name}");
        config = config.replace(&set, &format!("# CONFIG_{name} is not set"));
    }
    fs::write(lab.folder().join("config"), config).unwrap();
    let image = format!(
        "image:{},modules:{},config:{}",
        kernel.join("image").display(),
        kernel.join("modules").display(),
        lab.folder().join("config").display()
    );
    let own = lab.folder().join("own-cache");
    let own = own.to_str().unwrap();
    let refused = |arguments: &[&str]| {
        let all = [&["run", "linear", "--cache", own], arguments].concat();
        lab.ends(2, all).1
    };
    let err = refused(&["--kernel", &image, "--set", "lru_gen/enabled=7"]);
    // All missing options are named in one error.
    one_sentence(
        &err,
        &[
            "CONFIG_DEVMEM (",
            "CONFIG_VM_EVENT_COUNTERS (",
            "CONFIG_ZRAM_BACKEND_LZ4 (",
            "CONFIG_LRU_GEN (",
        ],
    );
    fs::create_dir(lab.folder().join("no-modules")).unwrap();
    let image = format!(
        "image:{},modules:{},config:{}",
        kernel.join("image").display(),
        lab.folder().join("no-modules").display(),
        kernel.join("config").display()
    );
    let err = refused(&["--kernel", &image, "--swap", "ssd"]);
    one_sentence(&err, &["null_blk"]);
    assert_eq!(lab.ends(0, ["list", "records", "--json"]).0, "[]\n");
}

#[test]
fn too_little_memory_to_boot_is_reported_with_the_kernels_last_words() {
    let Some(lab) = Lab::that_runs() else { return };
    let arguments = [
        "run",
        "linear",
        "--kernel",
        KERNEL,
        "--memory",
        "total:16M",
        "--swap",
        "none",
        "-p",
        "pages=1M",
        "-p",
        "refs=500",
    ];
    let (_, err) = lab.ends(2, arguments);
    one_sentence(&err, &["6.12", "did not get ready", "25 MiB of memory"]);
}

#[test]
fn a_plan_says_what_would_run_and_runs_nothing() {
    let Some(lab) = Lab::that_runs() else { return };
    let mut arguments = linear(&["--seeds", "4", "--vs", "vm.swappiness=200", "--json"]);
    arguments[0] = "plan";
    let plan = json(&lab.ends(0, arguments).0);
    // Four seeds of two variants, and the first three of each again as observed trials.
    assert_eq!(plan["trials"], 14);
    assert_eq!(plan["found"], 0);
    assert_eq!(plan["variants"][1], "swappiness=200");
    assert_eq!(lab.ends(0, ["list", "records", "--json"]).0, "[]\n");
}

#[test]
#[ignore = "test-all"]
fn a_calibration_compares_with_harmless_variants_and_is_shown_under_its_cells_alone() {
    let Some(lab) = Lab::that_runs() else { return };
    let mut arguments = linear(&["--seeds", "1", "--campaigns", "2", "--json"]);
    arguments[0] = "calibrate";
    let kept = json(&lab.ends(0, arguments).0);
    let calibration = &kept["cells"][0][1];
    // Two campaigns for each of two variants without effect.
    assert_eq!(calibration["campaigns"], 4, "{kept}");
    assert_eq!(calibration["false_alarms"], 0);
    let metrics = calibration["metrics"].as_array().unwrap();
    assert!(
        metrics.iter().any(|metric| metric["identical"] == 0),
        "harmless, and yet not equal to the bit: {metrics:?}"
    );
    let (out, _) = lab.ends(0, ["compare", "--exit-zero"]);
    assert!(out.contains("0 false alarms in 4 campaigns"), "{out}");
    // This is a different cell, which was not calibrated.
    lab.ends(
        0,
        linear(&[
            "--seeds",
            "1",
            "--observe=none",
            "--swap",
            "ssd:80us",
            "--vs",
            "vm.stat_interval=2",
            "--exit-zero",
        ]),
    );
    let (out, _) = lab.ends(0, ["compare", "--exit-zero"]);
    assert!(!out.contains("Calibrated"), "{out}");
}

#[test]
#[ignore = "test-all"]
fn the_tables_of_the_papers_are_printed_by_run_and_by_compare_and_other_scenarios_refused() {
    let Some(lab) = Lab::that_runs() else { return };
    let text = format!(
        "name = \"tiny\"\nkernel = \"{KERNEL}\"\nmemory = \"24M\"\nswap = \"zram\"\nswap-size = \"64M\"\nobserve = \"first\"\n\
         [sampling]\nseeds = 2\n\
         [[variant]]\nname = \"three\"\nsettings = {{ \"vm.page-cluster\" = 3 }}\n\
         [[variant]]\nname = \"zero\"\nsettings = {{ \"vm.page-cluster\" = 0 }}\n\
         [[scenario]]\nname = \"swapbench\"\nparams = {{ locked = \"4M\", processes = 3, size = \"9M\" }}\n\
         [[scenario]]\nname = \"highalloc\"\nparams = {{ age = \"300ms\" }}\n"
    );
    fs::write(lab.folder().join("tiny.toml"), text).unwrap();
    let run = ["run", "tiny.toml", "--exit-zero", "--as", "paper"];
    let (ran, _) = lab.ends(0, run);
    let (compared, _) = lab.ends(0, ["compare", "tiny", "--exit-zero", "--as", "paper"]);
    assert_eq!(ran, compared);
    let line = |start: &str| {
        let found = ran.lines().find(|line| line.starts_with(start));
        found
            .unwrap_or_else(|| panic!("no {start} in {ran}"))
            .to_owned()
    };
    let published: Vec<String> = line("published after")
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    assert_eq!(published[4..], ["-23%", "-23%"], "{ran}");
    // One row per process: read and write of both variants, and two changes.
    assert_eq!(line("2  ").split_whitespace().count(), 7, "{ran}");
    // Traced values of the observed trials of both variants, next to the published ones.
    let scanned = line("Total pages scanned");
    let numbers: Vec<u64> = scanned
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert_eq!(numbers[2..], [4_569_928, 3_790_957], "{scanned}");
    assert!(numbers[..2].iter().all(|pages| *pages > 0), "{scanned}");
    let elapsed = line("Total Elapsed Time (seconds)");
    assert!(
        elapsed.ends_with("1853.79") && !elapsed.contains("unrun"),
        "{elapsed}"
    );
    let (out, err) = lab.ends(4, ["run", "usemem", "--as", "paper"]);
    one_sentence(&err, &["usemem", "five papers"]);
    assert_eq!(out, "");
}
