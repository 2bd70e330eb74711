//! Tests of complete profiled trials: their results equal those of the timed pass, every instruction is counted, and a
//! difference is split into lines that add up to it.

use std::collections::BTreeMap;
use std::process::Command;

use pagetide_profile::{Kind, Recorded, Run};
use pagetide_testing::program::write_program;
use pagetide_testing::{Need, skip};
use serde_json::Value;

use crate::common::trial::{Done, run_on};
use crate::common::{KERNEL, Lab, one_sentence, told};
use crate::deaths::WRITER;

/// Two variants whose times surely differ.
const SIDES: [&str; 4] = ["--set", "lru_gen/enabled=0", "--vs", "lru_gen/enabled=7"];

/// Returns the ID of the newest record, and its profile as text and as JSON.
fn newest_profile(lab: &Lab) -> (String, String, Value) {
    let json = |words: &[&str]| -> Value { serde_json::from_str(&lab.ends(0, words).0).unwrap() };
    let list = json(&["list", "records", "--json"]);
    let id = list[0]["id"].as_str().unwrap().to_owned();
    let (text, _) = lab.ends(0, ["profile", &id]);
    let profile = json(&["profile", &id, "--json"]);
    (id, text, profile)
}

/// Fails unless the text of a profile says that its results are those of the timed pass, and that no time is missing.
fn told_to_be_exact(text: &str) {
    assert!(
        text.contains("equal those of the timed pass to the bit"),
        "{text}"
    );
    assert!(
        text.contains("add up to the time to the nanosecond"),
        "{text}"
    );
}

/// Number of instructions and calls of a function in a profile; zeros if it did not run.
fn function(profile: &Value, name: &str) -> [u64; 2] {
    let all = profile["functions"].as_array().unwrap();
    let found = all.iter().find(|function| function["name"] == name);
    found.map_or([0; 2], |found| {
        ["instructions", "calls"].map(|key| found[key].as_u64().unwrap())
    })
}

/// Runs a scenario with a profiled pass under two variants, and checks properties that hold for every profile.
fn holds(lab: &Lab, scenario: &[&str]) {
    let mut arguments = vec!["run"];
    arguments.extend(scenario);
    arguments.extend(SIDES);
    arguments.extend([
        "--kernel",
        KERNEL,
        "--seeds",
        "1",
        "--observe=none",
        "--profile",
    ]);
    lab.ends(0, [&arguments[..], &["--exit-zero"]].concat());
    let (out, _) = lab.ends(0, ["list", "records", "--json"]);
    let records: Value = serde_json::from_str(&out).unwrap();
    let mut profiled = 0;
    for record in records.as_array().unwrap() {
        let id = record["id"].as_str().unwrap();
        let shown: Value = serde_json::from_str(&lab.ends(0, ["show", id, "--json"]).0).unwrap();
        // The ID of the timed record and that of the profiled record both show the profile.
        let (text, _) = lab.ends(0, ["profile", id]);
        told_to_be_exact(&text);
        if shown["subject"]["pass"] != "profiled" {
            continue;
        }
        profiled += 1;
        let profile: Value =
            serde_json::from_str(&lab.ends(0, ["profile", id, "--json"]).0).unwrap();
        let counter = |name: &str| {
            let [before, after] = [0, 1].map(|at| {
                let values = &shown["results"]["counters"]["vmstat"]["values"][name];
                values[at].as_u64().unwrap()
            });
            after - before
        };
        // The kernel's counters are read shortly before and after the scenario, so they are nearly equal to the
        // profile's counts.
        let faults = function(&profile, "handle_mm_fault")[1];
        let counted = counter("pgfault");
        assert!(
            faults.abs_diff(counted) * 10 <= counted,
            "{faults} of {counted} faults"
        );
        let blob = shown["sections"].as_array().unwrap();
        assert!(blob.iter().any(|section| section["name"] == "profile"));
        let folded = lab.ends(0, ["profile", id, "--as", "folded"]).0;
        let sum: u64 = folded
            .lines()
            .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap())
            .sum();
        let all = profile["functions"].as_array().unwrap();
        let instructions: u64 = all
            .iter()
            .map(|one| one["instructions"].as_u64().unwrap())
            .sum();
        assert_eq!(sum, instructions);
        let waits = profile["waits"].as_array().map_or(&[][..], Vec::as_slice);
        let waited: u64 = waits
            .iter()
            .map(|wait| wait["time"].as_u64().unwrap())
            .sum();
        assert_eq!(waited, profile["idle"].as_u64().unwrap());
        if scenario.contains(&"ssd") {
            // Nearly all waits are those of faults that read a page from the device.
            let reads = waits.iter().filter(|wait| {
                let stack = wait["stack"].as_array().unwrap();
                stack.iter().any(|name| name == "do_swap_page")
            });
            let reads: u64 = reads.map(|wait| wait["time"].as_u64().unwrap()).sum();
            assert!(reads * 4 > waited * 3, "{reads} of {waited}");
            assert!(text.contains("device: do_swap_page"), "{text}");
        }
        assert!(
            folded.contains("workload;user code;asm_exc_page_fault;exc_page_fault;"),
            "{folded}"
        );
    }
    assert_eq!(profiled, 2);
    let (out, _) = lab.ends(0, ["compare", "--why", "--json"]);
    let explained: Value = serde_json::from_str(&out).unwrap();
    let account = &explained[0]["account"]["account"];
    let difference = |pair: &Value| pair[1].as_i64().unwrap() - pair[0].as_i64().unwrap();
    let lines = account["lines"].as_array().unwrap();
    let sum: i64 = lines.iter().map(|line| difference(&line["time"])).sum();
    assert_eq!(sum, difference(&account["elapsed"]));
    assert!(lines.len() <= 8);
    let none = lines
        .iter()
        .find(|line| line["name"] == "not grouped")
        .unwrap();
    for side in 0..2 {
        let time = |value: &Value| value[side].as_u64().unwrap();
        assert!(
            time(&none["time"]) * 20 <= time(&account["elapsed"]),
            "{none}"
        );
    }
    let (text, _) = lab.ends(0, ["compare", "--why"]);
    assert!(
        text.contains("add up to the difference to the nanosecond"),
        "{text}"
    );
}

#[test]
fn a_profiled_trial_equals_the_timed_one_and_explains_every_nanosecond() {
    let Some(lab) = Lab::that_runs() else { return };
    holds(&lab, &["swapbench", "--memory", "24M", "-p", "processes=4"]);
}

#[test]
#[ignore = "test-all"]
fn the_same_holds_on_a_disk_with_latency_and_for_other_kernels() {
    let Some(lab) = Lab::that_runs() else { return };
    holds(
        &lab,
        &[
            "random",
            "--memory",
            "24M",
            "--swap",
            "ssd",
            "-p",
            "refs=5000",
        ],
    );
}

/// An emulator that refuses plugins, like one that was built without them.
const WITHOUT_PLUGINS: &str = r#"#!/bin/sh
for word; do
  if [ "$word" = -plugin ]; then
    echo "qemu-system-x86_64: -plugin: invalid option" >&2
    exit 1
  fi
done
exec qemu-system-x86_64 "$@"
"#;

#[test]
#[ignore = "test-all"]
fn an_emulator_without_plugins_runs_the_other_passes_and_says_once_what_stays_unknown() {
    let Some(lab) = Lab::that_runs() else { return };
    let wrapper = lab.folder().join("qemu");
    write_program(&wrapper, WITHOUT_PLUGINS);
    let words = [
        "run", "linear", "--memory", "8M", "--seeds", "2", "--kernel", KERNEL,
    ];
    let asked = ["--observe=1", "--profile", "--references", "--exit-zero"];
    let mut command = lab.pagetide([&words[..], &SIDES, &asked].concat());
    let output = command.env("PAGETIDE_QEMU", &wrapper).output().unwrap();
    let (_, err) = told(&output, 0);
    let said: Vec<&str> = err
        .lines()
        .filter(|line| line.contains("cannot load plugins"))
        .collect();
    assert_eq!(said.len(), 1, "{err}");
    for part in ["without profiles", "lines of a patch", "--enable-plugins"] {
        assert!(said[0].contains(part), "{err}");
    }
    let passes = |pass: &str| {
        let records = lab.newest(100);
        let is_pass = |record: &&Value| record["subject"]["pass"] == pass;
        records.iter().filter(is_pass).count()
    };
    assert_eq!(["timed", "observed", "profiled"].map(passes), [4, 2, 0]);
}

/// Kernel on which processes that swap to zram wait for one lock: the compressor's.
const SID: &str = "debian:sid";

#[test]
#[ignore = "test-all"]
fn a_wait_for_a_lock_names_the_task_and_the_function_that_held_it() {
    let Some(lab) = Lab::that_runs_on(SID) else {
        return;
    };
    let asked = [
        "run",
        "swapbench",
        "--memory",
        "24M",
        "-p",
        "processes=4",
        "--kernel",
        SID,
        "--seeds",
        "1",
        "--observe=none",
        "--profile",
        "--exit-zero",
    ];
    lab.ends(0, asked);
    let (_, text, profile) = newest_profile(&lab);
    told_to_be_exact(&text);
    let locks = profile["locks"].as_array().unwrap();
    let is_compressor = |wait: &&Value| {
        let stack = wait["stack"].as_array().unwrap();
        stack.iter().any(|name| name == "zcomp_stream_get")
    };
    let waits: Vec<&Value> = locks.iter().filter(is_compressor).collect();
    assert!(!waits.is_empty(), "{text}");
    // The lock is taken to compress or decompress a page, and released where that ends: in zram's driver.
    for wait in waits {
        let holder = &wait["holder"];
        let function = holder["function"].as_str().unwrap();
        let executed = self::function(&profile, function);
        assert!(executed[0] > 0, "{wait}");
        assert!(
            function.starts_with("zram_")
                || function.starts_with("read_from_zspool")
                || function.starts_with("zcomp_"),
            "{wait}"
        );
        let task = holder["task"].as_str().unwrap();
        assert!(
            ["other processes", "workload", "kswapd"].contains(&task),
            "{wait}"
        );
        let [time, idle] = ["time", "idle"].map(|name| wait[name].as_u64().unwrap());
        assert!(idle <= time, "{wait}");
    }
    assert!(text.contains("waits for the lock of"), "{text}");
    // Each holder ran while another process waited, and whoever was woken by it did not run at once.
    let queue = profile["queue"].as_array().unwrap();
    let behind = |task: &str| queue.iter().any(|one| one["behind"] == task);
    assert!(behind("other processes") && behind("kswapd"), "{text}");
    assert!(text.contains("in the run queue behind"), "{text}");
}

#[test]
fn a_programs_time_is_split_into_the_functions_of_its_files() {
    let Some(lab) = Lab::that_runs() else { return };
    let numbers: Vec<String> = (0..200_000_u64)
        .map(|number| (number * 7919 % 200_003).to_string())
        .collect();
    let numbers = numbers.join("\n") + "\n";
    std::fs::write(lab.folder().join("numbers"), numbers).unwrap();
    let asked = [
        "run",
        "--memory",
        "24M",
        "--seeds",
        "1",
        "--observe=none",
        "--profile",
        "--kernel",
        KERNEL,
        "--exit-zero",
        "--file",
        "numbers",
        "--",
        "sort",
        "numbers",
    ];
    lab.ends(0, asked);
    let (_, text, profile) = newest_profile(&lab);
    told_to_be_exact(&text);
    let all = profile["functions"].as_array().unwrap();
    let number = |one: &Value| one["instructions"].as_u64().unwrap();
    let of = |keep: &dyn Fn(&Value) -> bool| -> u64 {
        all.iter().filter(|one| keep(one)).map(number).sum()
    };
    let libc = of(&|one| one["module"] == "libc.so.6" && one["is_program"] == true);
    let sort = of(&|one| one["module"] == "sort");
    let rest = of(&|one| one["name"] == "user code");
    assert!(libc > 0 && sort > 0, "{text}");
    // The guest's program started `sort` and executed instructions too, but it is in no file of the root.
    assert!(rest * 5 < libc + sort, "{rest} of {libc} and {sort}");
    // Debian's libraries have the names of the functions that they export. `sort` writes each line by one call.
    let writes = all.iter().find(|one| one["name"] == "fwrite_unlocked");
    let writes = writes.unwrap_or_else(|| panic!("{text}"));
    assert_eq!(writes["calls"], 200_000);
    assert_eq!(writes["module"], "libc.so.6");
    assert!(text.contains("are code without symbols in sort"), "{text}");
}

#[test]
fn recorded_references_are_those_of_the_touch_loop_and_change_no_result() {
    let Some(lab) = Lab::that_runs() else { return };
    let scenario = ["random", "-p", "refs=6000", "-p", "access=read"];
    let asked = ["--observe=none", "--references", "--exit-zero"];
    let all = run_on(&lab, KERNEL, &[&scenario[..], &asked].concat());
    let is_profiled = |done: &&Done<'_>| done.record["subject"]["pass"] == "profiled";
    let done = all.iter().find(is_profiled).unwrap();
    let (text, _) = lab.ends(0, ["profile", done.id()]);
    told_to_be_exact(&text);
    let bytes = done.blob("references");
    let mut runs: Vec<Run> = Vec::new();
    let recorded = Recorded::new(&*bytes).unwrap();
    let header = recorded.each(|run| runs.push(run)).unwrap();
    assert!(!header.is_cut());
    // The fill only writes the pages, and the touch loop only reads them, one word for each entry of its log. The
    // mapping begins at the lowest page of the range that the fill wrote.
    let log = done.log("access-log");
    let pages: u64 = done.param("pages").parse().unwrap();
    let mut written: BTreeMap<u64, u64> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.kind == Kind::Write) {
        *written.entry(run.page).or_default() += run.times;
    }
    let is_start = |page: &&u64| {
        written.range(**page..**page + pages).count() as u64 == pages
            && !written.contains_key(&(**page - 1))
    };
    let base = written.keys().find(is_start).copied().unwrap();
    let own = |run: &&Run| run.kind == Kind::Read && (base..base + pages).contains(&run.page);
    let read: Vec<u64> = runs
        .iter()
        .filter(own)
        .flat_map(|run| (0..run.times).map(|_| run.page - base))
        .collect();
    assert!(read == log, "{} of {} references", read.len(), log.len());
    // The tables, and what the oracle makes of it.
    let (text, _) = lab.ends(0, ["profile", done.id(), "--references"]);
    assert!(text.contains("working set"), "{text}");
    // What the kernel did with the pages is what its own counters say.
    let (json, _) = lab.ends(0, ["profile", done.id(), "--references", "--json"]);
    let mut summary: Value = serde_json::from_str(&json).unwrap();
    // Nearly all pages have a name: those of the scenario are anonymous, and code is in no mapping without a file.
    let count = |name: &str| summary[name].as_u64().unwrap();
    assert!(count("nameless") * 50 <= count("pages"), "{text}");
    let ranges = summary["ranges"].as_array().unwrap();
    let has_base = |range: &&Value| {
        let [first, pages] = ["first", "pages"].map(|name| range[name].as_u64().unwrap());
        (first..first + pages).contains(&base)
    };
    let mapping = ranges.iter().find(has_base).unwrap()["mapping"]
        .as_u64()
        .unwrap();
    let mapping = &summary["mappings"][usize::try_from(mapping).unwrap()];
    assert_eq!(
        (&mapping["name"], mapping["first"].as_u64()),
        (&Value::from(""), Some(base))
    );
    assert!(mapping["pages"].as_u64() >= Some(pages), "{mapping}");
    assert!(text.contains("[stack]"), "{text}");
    let paging = summary["paging"].take();
    let number = |part: &str, name: &str| paging[part][name].as_u64().unwrap();
    let evictions = |name| number("evictions", name);
    let ends = evictions("not_again") + evictions("right") + evictions("wrong");
    assert!(
        evictions("wrong") > 0 && evictions("judged") == ends,
        "{paging}"
    );
    let known = evictions("judged") as f64 / (evictions("judged") + evictions("unknown")) as f64;
    assert!(known > 0.9, "{paging}");
    // The kernel's counters also have what was done just before and after the scenario.
    let (read, majors) = (number("faults", "read"), done.vmstat("pgmajfault"));
    assert!(
        read <= majors && read * 50 >= majors * 49,
        "{majors}: {paging}"
    );
    let ideal = [
        "ideal",
        done.id(),
        "--recorded",
        "--policy",
        "lru,opt",
        "--json",
    ];
    let answer: Value = serde_json::from_str(&lab.ends(0, ideal).0).unwrap();
    let lines = answer["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2);
    assert!(lines[0]["faults"].as_u64() >= Some(pages), "{answer}");
    // The trial runs again for an annotation, which adds up.
    let (text, said) = lab.ends(0, ["profile", done.id(), "--annotate", "handle_mm_fault"]);
    assert!(text.contains("add up to this number"), "{text}");
    assert!(!said.contains("differ"), "{said}");
}

#[test]
#[ignore = "test-all"]
fn code_that_a_jit_compiler_made_is_counted_and_said_to_have_no_names() {
    let Some(lab) = Lab::that_runs() else { return };
    if Command::new("node").arg("--version").output().is_err() {
        return skip(Need::Runtimes, "node is not installed".to_owned());
    }
    let rounds = 20_000_000;
    let code = format!(
        "let x = 1; for (let i = 0; i < {rounds}; i++) x = (x * 31 + i) | 0; console.log(x)"
    );
    let asked = [
        "run",
        "--memory",
        "128M",
        "--seeds",
        "1",
        "--observe=none",
        "--profile",
    ];
    let command = ["--kernel", KERNEL, "--exit-zero", "--", "node", "-e", &code];
    lab.ends(0, [&asked[..], &command].concat());
    let (_, text, profile) = newest_profile(&lab);
    told_to_be_exact(&text);
    let all = profile["functions"].as_array().unwrap();
    let sum = |keep: &dyn Fn(&Value) -> bool| -> u64 {
        let kept = all.iter().filter(|one| keep(one));
        kept.map(|one| one["instructions"].as_u64().unwrap()).sum()
    };
    // The loop is compiled soon, and takes at least an addition, a multiplication, a comparison and a jump.
    let made = sum(&|one| one["name"] == "user code");
    assert!(made > 4 * rounds, "{made} instructions: {text}");
    assert!(sum(&|one| one["module"] == "node") > 0, "{text}");
    assert!(text.contains("made by a JIT compiler"), "{text}");
}

#[test]
#[ignore = "test-all"]
fn a_trial_that_dies_has_no_profile_and_says_why_and_the_rest_of_its_record_stands() {
    let Some(lab) = Lab::that_runs() else { return };
    let asked = ["run", "--seeds", "1", "--profile"];
    let (_, err) = lab.ends(3, asked.into_iter().chain(WRITER));
    assert!(err.contains("with memory to spare"), "{err}");
    let records = lab.newest(2);
    let of = |pass: &str| {
        let is_pass = |record: &&Value| record["subject"]["pass"] == pass;
        records.iter().find(is_pass).unwrap()
    };
    let (timed, profiled) = (of("timed"), of("profiled"));
    assert_eq!(profiled["results"]["invalid"][0]["kind"], "gave-up");
    // The death is the same one, at the same instruction.
    assert_eq!(timed["results"], profiled["results"]);
    let sections = profiled["sections"].as_array().unwrap();
    assert!(sections.iter().all(|section| section["name"] != "profile"));
    let list: Value = serde_json::from_str(&lab.ends(0, ["list", "records", "--json"]).0).unwrap();
    for row in list.as_array().unwrap() {
        let id = row["id"].as_str().unwrap();
        let (_, err) = lab.ends(4, ["profile", id]);
        one_sentence(&err, &["did not end", "has no counts", "show"]);
        let (shown, _) = lab.ends(0, ["show", id]);
        assert!(shown.contains("killed"), "{shown}");
    }
}

#[test]
#[ignore = "test-all"]
fn a_kernel_that_does_not_tell_its_functions_is_profiled_without_names_and_the_sums_hold() {
    let Some(lab) = Lab::that_runs() else { return };
    // Hides all addresses in the list, so that no function is known, as without CONFIG_KALLSYMS.
    let hidden = ["--boot", "sysctl.kernel.kptr_restrict=2"];
    let words = ["run", "linear", "--memory", "24M", "--kernel", KERNEL];
    let asked = ["--seeds", "1", "--observe=none", "--profile", "--exit-zero"];
    lab.ends(0, [&words[..], &hidden, &asked].concat());
    let (id, text, profile) = newest_profile(&lab);
    assert!(text.contains("equal those of the timed pass"), "{text}");
    assert!(text.contains("no list of its functions"), "{text}");
    let number = |key: &str| profile[key].as_u64().unwrap();
    let functions = profile["functions"].as_array().unwrap();
    let counted: u64 = functions
        .iter()
        .map(|one| one["instructions"].as_u64().unwrap())
        .sum();
    let gap = (counted + number("idle")).abs_diff(number("elapsed"));
    // A fault of the last instruction of a block is not seen, so each page fault may be one instruction too many.
    let faults = lab.newest(1)[0]["results"]["counters"]["vmstat"]["values"]["pgfault"].clone();
    let faults = faults[1].as_u64().unwrap() - faults[0].as_u64().unwrap();
    assert!(gap <= faults, "{gap} of {faults} page faults");
    for other in ["folded", "flame", "speedscope", "pprof", "perf-script"] {
        lab.ends(0, ["profile", &id, "--as", other]);
    }
}
