//! Tests of scenarios with several memory groups, and of two programs beside each other, on a real kernel.

#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "what is not there fails the test, and numbers that are copied stay equal"
)]

use serde_json::Value;

use crate::common::trial::{Done, run_on};
use crate::common::{KERNEL, Lab, metric, one_sentence, text};

/// Runs scenarios on a kernel, with the command line `words`. Returns the trials in the order of the store.
fn run<'a>(lab: &'a Lab, words: &str) -> Vec<Done<'a>> {
    run_on(lab, KERNEL, &words.split_whitespace().collect::<Vec<_>>())
}

/// Runs one trial and repeats it. Returns the trial. The repetition must have the same digest.
fn one<'a>(lab: &'a Lab, words: &str) -> Done<'a> {
    let mut all = run(lab, words);
    assert_eq!(all.len(), 1, "{words}");
    let done = all.remove(0);
    let (out, _) = lab.ends(0, ["repeat", done.id()]);
    assert!(out.contains("identical"), "{out}");
    done
}

/// Growth of a counter of a group; zero if the kernel does not have it.
fn growth(done: &Done<'_>, source: &str, counter: &str) -> u64 {
    let pair = &done.record["results"]["counters"][source]["values"][counter];
    let at = |index: usize| pair[index].as_u64().unwrap_or(0);
    at(1) - at(0)
}

fn sum(column: &[f64]) -> f64 {
    column.iter().sum()
}

const NEIGHBOURS: &str =
    "neighbours -p sensitive=9M -p accesses=5000 -p hungry=22M --set lru_gen/enabled=0";

#[test]
fn memory_low_keeps_the_working_set_that_a_hungry_neighbour_takes_without_it() {
    let Some(lab) = Lab::that_runs() else { return };
    let free = one(&lab, NEIGHBOURS);
    // Each group has its own counters, and the metrics are computed from these counters.
    let refaults = |done: &Done<'_>, group: &str| {
        let source = format!("memory.stat-{group}");
        growth(done, &source, "workingset_refault_anon")
    };
    assert_eq!(
        free.count("sensitive-refaults"),
        refaults(&free, "sensitive")
    );
    assert_eq!(free.count("hungry-refaults"), refaults(&free, "hungry-1"));
    assert!(
        free.count("sensitive-refaults") > 300,
        "{}",
        free.metric("sensitive-refaults")
    );
    assert!(free.metric("slowdown") > 10.0);
    assert!(free.metric("sensitive-kept") < 0.9);
    let fairness = free.metric("fairness");
    assert!((0.5..=1.0).contains(&fairness), "{fairness}");
    let over_time = free.series("group-sensitive");
    let last = over_time["workingset_refault_anon"].last().unwrap();
    assert!(*last >= refaults(&free, "sensitive") as f64);
    assert!(
        over_time["memory"].len() >= 3,
        "{}",
        over_time["memory"].len()
    );

    let mut all = run(&lab, &format!("{NEIGHBOURS} -p low=10M"));
    let kept = all.remove(0);
    let few = free.count("sensitive-refaults") / 50;
    assert!(kept.count("sensitive-refaults") <= few);
    assert!(kept.metric("sensitive-kept") > 0.98);
    assert!(kept.metric("access-mean") < 0.05 * free.metric("access-mean"));
    assert!(kept.count("hungry-refaults") > 300, "the other group pays");
    // The same protection can be a setting of a variant.
    let set = run(&lab, &format!("{NEIGHBOURS} --set group/sensitive/low=10M")).remove(0);
    assert_eq!(
        set.record["subject"]["variant"]["settings"]["group/sensitive/low"],
        "10M"
    );
    assert_eq!(set.param("low"), "0");
    assert!(set.count("sensitive-refaults") <= few);
    assert!(set.metric("sensitive-kept") > 0.98);
}

/// Checks the metrics of launches against the counters of all groups and the series of launches.
fn check_launches(done: &Done<'_>, programs: usize, launches: usize) {
    assert_eq!(done.count("launches"), launches as u64);
    let series = done.series("launches");
    assert_eq!(series["program"].len(), programs + launches);
    for (name, counter) in [
        ("refaults-anon", "workingset_refault_anon"),
        ("refaults-file", "workingset_refault_file"),
    ] {
        let groups = (1..=programs).map(|number| format!("memory.stat-program-{number}"));
        let of_groups: u64 = groups.map(|source| growth(done, &source, counter)).sum();
        assert_eq!(done.count(name), of_groups);
        assert!(of_groups > 50, "{name}: {of_groups}");
    }
    let times = &series["time"][programs..];
    let mean = sum(times) / launches as f64;
    assert!((done.metric("launch-mean") / mean - 1.0).abs() < 1e-9);
    assert!(times.contains(&done.metric("launch-p50")));
    assert!(times.contains(&done.metric("launch-p90")));
    let reclaimed = [done.count("reclaimed-anon"), done.count("reclaimed-file")];
    assert!(reclaimed[0] <= done.vmstat("pgsteal_anon"));
    assert!(reclaimed[1] <= done.vmstat("pgsteal_file"));
    let share = reclaimed[1] as f64 / reclaimed.iter().sum::<u64>() as f64;
    assert_eq!(done.metric("reclaimed-file-share"), share);
    assert!(share > 0.0 && share < 1.0, "{share}");
    assert!(done.metric("available-min") <= done.metric("available-mean"));
}

#[test]
fn programs_in_turn_need_again_what_was_reclaimed_of_files_and_of_memory() {
    let Some(lab) = Lab::that_runs() else { return };
    check_launches(&one(&lab, "launches -p programs=3 -p launches=3"), 3, 3);
}

#[test]
fn requests_take_what_they_ask_for_and_cost_the_group_what_is_not_cold() {
    let Some(lab) = Lab::that_runs() else { return };
    let words = "proactive -p size=8M -p sensitive=2M -p request=512K -p requests=4 -p interval=20ms \
                 --set lru_gen/enabled=0";
    let done = one(&lab, words);
    let requests = done.series("requests");
    assert_eq!(requests["asked"], [524_288.0; 4]);
    for (name, column) in [("asked", "asked"), ("taken", "taken"), ("freed", "freed")] {
        assert_eq!(done.metric(name), sum(&requests[column]), "{name}");
    }
    let overshoot = done.metric("overshoot");
    assert_eq!(overshoot, done.metric("taken") / done.metric("asked"));
    assert!((0.9..2.0).contains(&overshoot), "{overshoot}");
    assert_eq!(sum(&requests["complete"]), 4.0 - done.metric("short"));
    let mean = sum(&requests["took"]) / 4.0;
    assert!((done.metric("request-mean") / mean - 1.0).abs() < 1e-9);
    let stolen = growth(&done, "memory.stat-both-target", "pgsteal");
    assert!(stolen as f64 * 4096.0 >= done.metric("taken"));
    // 2 MiB are requested and 4 MiB are cold. If a request exceeds the cold memory, the group has to give up memory
    // that it uses.
    let more = run(&lab, &format!("{words} -p request=2M")).remove(0);
    assert!(more.count("refaults") > done.count("refaults") + 100);
    assert!(more.metric("access-mean") > done.metric("access-mean"));
}

#[test]
#[ignore = "test-all"]
fn a_request_to_the_group_around_spares_the_one_that_is_protected() {
    let Some(lab) = Lab::that_runs() else { return };
    let words = "proactive -p size=8M -p sensitive=6M -p request=1536K -p asked=both --set lru_gen/enabled=0";
    let low = run(&lab, &format!("{words} -p low=10M")).remove(0);
    let free = run(&lab, &format!("{words} -p low=0")).remove(0);
    let taken = free.count("sensitive-taken");
    assert!(taken > 100, "{taken}");
    let kept = low.count("sensitive-taken");
    assert!(kept <= taken / 10, "{kept} {taken}");
}

#[test]
fn groups_that_cannot_be_are_refused_in_one_sentence_before_a_guest_is_booted() {
    let Some(lab) = Lab::that_runs() else { return };
    let refused = |scenario: &str, option: [&str; 2], words: &[&str]| {
        let all = ["run", scenario, "--kernel", KERNEL, "--memory", "24M"];
        let (_, err) = lab.ends(4, all.into_iter().chain(option));
        one_sentence(&err, words);
        assert!(!err.contains("booting"), "{err}");
    };
    refused(
        "neighbours",
        ["-p", "low=25M"],
        &["25 MiB", "24 MiB of memory"],
    );
    refused(
        "neighbours",
        ["-p", "hungry-limits=max=8M low=9M"],
        &["hungry-1", "low of 9 MiB", "max of 8 MiB"],
    );
    refused(
        "neighbours",
        ["--set", "group/sensitive/hihg=9M"],
        &["no `hihg`", "did you mean \"high\"?"],
    );
    refused(
        "usemem",
        ["--set", "group/sensitive/low=9M"],
        &["no memory groups"],
    );
    refused(
        "proactive",
        ["-p", "size=22M"],
        &["24 MiB of memory", "lower size"],
    );
    // Debian's cloud kernels of 6.12 have no zswap.
    let words = ["run", "neighbours", "--kernel", KERNEL, "--memory", "24M"];
    let (_, err) = lab.ends(
        2,
        words
            .into_iter()
            .chain(["-p", "hungry-limits=zswap.max=4M"]),
    );
    one_sentence(&err, &["memory.zswap.max", "6.12"]);
    assert!(!err.contains("booting"), "{err}");
}

/// Runs a command with these options, and repeats the trial, which must be identical. Returns the record.
fn pair(lab: &Lab, options: &[&str], command: &[&str]) -> Value {
    let mut words = vec!["run", "--kernel", KERNEL, "--seeds", "1", "--memory", "24M"];
    words.extend(options);
    words.push("--");
    words.extend(command);
    lab.ends(0, words);
    let (out, _) = lab.ends(0, ["list", "records", "--json"]);
    let list: Value = serde_json::from_str(&out).unwrap();
    let id = list[0]["id"].as_str().unwrap().to_owned();
    lab.ends(0, ["repeat", &id]);
    serde_json::from_str(&lab.ends(0, ["show", &id, "--json"]).0).unwrap()
}

const SHELL: [&str; 2] = ["sh", "-c"];

#[test]
fn two_programs_beside_each_other_have_a_group_each_and_are_judged_each() {
    let Some(lab) = Lab::that_runs() else { return };
    let say = "read m < /sys/fs/cgroup/memory.max; read l < /sys/fs/cgroup/memory.low; echo $m $l";
    let beside = format!("sh -c '{say}; exec dd if=/dev/zero of=/dev/null bs=6M count=3'");
    let options = [
        "--file",
        "/usr/bin/dd",
        "--limit",
        "12M",
        "--low",
        "4M",
        "--beside",
        &beside,
        "--beside-limit",
        "5M",
    ];
    let record = pair(&lab, &options, &[&SHELL[..], &[say]].concat());
    let texts = &record["results"]["texts"];
    assert_eq!(texts["stdout"], "12582912 4194304\n");
    assert_eq!(texts["beside-stdout"], "5242880 0\n");
    let metric = |name| metric(&record, name);
    // The buffer of the second program does not fit into its group.
    assert!(metric("beside-peak") <= 5_242_880.0);
    assert!(metric("beside-swap-peak") > 500_000.0);
    assert!(metric("beside-refaults") > 100.0);
    assert_eq!(metric("group-refaults"), 0.0);
    assert_eq!(metric("group-swap-peak"), 0.0);
    assert!(metric("group-peak") < 4e6);
    assert!(metric("beside-elapsed") > metric("elapsed"));
    let metrics = record["results"]["metrics"].as_array().unwrap();
    let primary = metrics.iter().filter(|metric| metric["primary"] == true);
    let names: Vec<&str> = primary.map(|m| m["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["elapsed", "beside-elapsed"]);
}

#[test]
#[ignore = "test-all"]
fn a_protected_program_keeps_its_memory_beside_a_hungry_one_and_is_faster() {
    let Some(lab) = Lab::that_runs() else { return };
    // Each program fills its buffer once and then reads it repeatedly. The two buffers together do not fit into memory.
    let dd = ["dd", "if=/dev/zero", "of=/dev/null", "bs=12M", "count=6"];
    let beside = "dd if=/dev/zero of=/dev/null bs=14M count=6";
    let options = ["--set", "lru_gen/enabled=0", "--beside", beside];
    let free = pair(&lab, &options, &dd);
    let kept = pair(&lab, &[&options[..], &["--low", "16M"]].concat(), &dd);
    let both = |name| (metric(&free, name), metric(&kept, name));
    let (before, after) = both("group-refaults");
    assert!(
        before > 1000.0 && after <= before / 10.0,
        "{before} {after}"
    );
    let (before, after) = both("elapsed");
    assert!(after < before, "{before} {after}");
}

#[test]
#[ignore = "test-all"]
fn a_program_that_fails_beside_another_is_named_as_that() {
    let Some(lab) = Lab::that_runs() else { return };
    let words = ["run", "--kernel", KERNEL, "--seeds", "1", "--memory", "24M"];
    let options = [
        "--beside",
        "sh -c 'echo no >&2; exit 3'",
        "--",
        "sh",
        "-c",
        "true",
    ];
    let (_, err) = lab.ends(3, words.into_iter().chain(options));
    assert!(
        err.contains("the program ran beside one that ended with status 3"),
        "{err}"
    );
    assert!(err.contains("it said `no`"), "{err}");
}

#[test]
fn a_command_beside_another_that_is_empty_or_has_an_open_quote_is_refused() {
    let lab = Lab::new();
    for (beside, part) in [("", "it is empty"), ("sh -c 'x", "quotes do not match")] {
        let words = ["plan", "--memory", "24M", "--beside", beside, "--", "true"];
        let output = lab.pagetide(words).output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{beside}");
        let said = text(&output.stderr);
        assert!(said.contains(part), "{said}");
    }
}
