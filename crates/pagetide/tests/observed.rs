//! Tests of complete observed trials: the trace agrees with the kernel's counters, the parts of time add up, and
//! observed trials are exactly repeatable too.

use crate::common::{KERNEL, Lab, TINY};
use serde_json::Value;

/// One kernel of each generation.
const KERNELS: [&str; 3] = ["debian:bookworm", "debian:bookworm/6.12", "debian:sid"];

/// Runs a scenario once timed and once observed; returns the IDs of both records.
fn observe(lab: &Lab, kernel: &str, scenario: &[&str]) -> [String; 2] {
    let mut arguments = vec!["run"];
    arguments.extend(scenario);
    arguments.extend(["--kernel", kernel, "--seeds", "1", "--observe"]);
    lab.ends(0, arguments);
    let (out, _) = lab.ends(0, ["list", "records", "--json"]);
    let records: Value = serde_json::from_str(&out).unwrap();
    let of_pass = |pass: &str| {
        records
            .as_array()
            .unwrap()
            .iter()
            .map(|record| record["id"].as_str().unwrap().to_owned())
            .find(|id| record(lab, id)["subject"]["pass"] == pass)
            .unwrap()
    };
    [of_pass("timed"), of_pass("observed")]
}

fn record(lab: &Lab, id: &str) -> Value {
    serde_json::from_str(&lab.ends(0, ["show", id, "--json"]).0).unwrap()
}

fn seen(lab: &Lab, id: &str) -> Value {
    serde_json::from_str(&lab.ends(0, ["show", id, "--reclaim", "--json"]).0).unwrap()
}

fn row<'a>(seen: &'a Value, id: &str) -> &'a Value {
    let rows = seen["table"]["rows"].as_array().unwrap();
    rows.iter().find(|row| row["id"] == id).unwrap()
}

/// Asserts that a row agrees with its counter within one percent, or that the row states that the kernel has no event
/// for it.
fn agrees(seen: &Value, id: &str, kernel: &str) {
    let row = row(seen, id);
    let check = &row["check"];
    if check.is_null() {
        let told = row["value"]["kind"] == "not-on-this-kernel" || !row["note"].is_null();
        assert!(
            told,
            "{kernel}: {id} is neither checked nor explained: {row}"
        );
        return;
    }
    // A difference of a few pages is within the delay of vmstat's counters.
    let gap = check["counter"]
        .as_u64()
        .unwrap()
        .abs_diff(check["traced"].as_u64().unwrap());
    let within = check["disagrees"] == false || gap <= 16;
    assert!(within, "{kernel}: {id}: {row}");
}

/// Checks the properties that every observed trial must have, and returns the observation.
fn holds(lab: &Lab, kernel: &str, [timed, observed]: &[String; 2]) -> Value {
    let seen_of = seen(lab, observed);
    assert_eq!(
        seen(lab, timed),
        seen_of,
        "a timed record leads to its observed partner"
    );
    let losses = &seen_of["table"]["losses"];
    assert_eq!(losses["events"], 0, "{kernel}: {losses}");
    assert_eq!(losses["gaps_unknown"], 0, "{kernel}: {losses}");
    for id in [
        "total-scanned",
        "total-reclaimed",
        "all-scanned",
        "all-reclaimed",
        "swap-ins",
        "swap-outs",
        "all-migrated",
    ] {
        agrees(&seen_of, id, kernel);
    }
    let tasks = seen_of["tasks"].as_array().unwrap();
    assert!(!tasks.is_empty());
    for task in tasks {
        let elapsed = task["elapsed"].as_u64().unwrap();
        let parts = task["parts"].as_array().unwrap();
        let parts: Vec<u64> = parts.iter().map(|part| part.as_u64().unwrap()).collect();
        assert_eq!(parts.iter().sum::<u64>(), elapsed, "{kernel}: {task}");
        // The last part is the unexplained time.
        let unexplained = parts[parts.len() - 1];
        assert!(
            unexplained * 50 <= elapsed,
            "{kernel}: {unexplained} of {task}"
        );
    }
    let main = tasks[0]["elapsed"].as_u64().unwrap();
    let elapsed = seen_of["elapsed"].as_u64().unwrap();
    assert!(
        main.abs_diff(elapsed) * 50 <= elapsed,
        "{kernel}: {main} of {elapsed}"
    );
    assert!(seen_of["timed_elapsed"].as_u64().unwrap() > 0);
    // Both passes had the same free memory at the start.
    let free = |id: &String| {
        let free = &record(lab, id)["results"]["facts"]["free-at-start"];
        free.as_str().unwrap().parse::<u64>().unwrap()
    };
    assert!(
        free(timed).abs_diff(free(observed)) <= 512 << 10,
        "{kernel}"
    );
    let (out, _) = lab.ends(0, ["repeat", observed]);
    assert!(
        out.contains("1 of 1 repetitions are identical"),
        "{kernel}: {out}"
    );
    seen_of
}

#[test]
fn what_a_pattern_does_is_observed_as_the_kernel_counts_it() {
    observes_a_pattern(&[KERNEL]);
}

#[test]
#[ignore = "test-all"]
fn what_a_pattern_does_is_observed_on_every_kernel() {
    observes_a_pattern(&KERNELS);
}

fn observes_a_pattern(kernels: &[&str]) {
    for kernel in kernels {
        let Some(lab) = Lab::that_runs_on(kernel) else {
            continue;
        };
        let scenario = [
            "smooth-sin-random",
            "--memory",
            "24M",
            "--swap-size",
            "64M",
            "--swap",
            "ssd:80us",
            "-p",
            "pages=30M",
            "-p",
            "refs=5000",
        ];
        let ids = observe(&lab, kernel, &scenario);
        let seen = holds(&lab, kernel, &ids);
        assert!(
            row(&seen, "all-reclaimed")["value"]["value"]
                .as_u64()
                .unwrap()
                > 0
        );
        // The swap device is an SSD with 80 microseconds. The process waits for swap-in, and the requests are traced.
        let device = &seen["blocks"]["devices"][0];
        assert!(
            device["sums"]["reads"]["requests"].as_u64().unwrap() > 0,
            "{kernel}"
        );
        let wait = seen["tasks"][0]["parts"][6].as_u64().unwrap();
        assert!(wait > 0, "{kernel}: nothing waited for the SSD");
        names_what_was_slept_on(&lab, kernel, &ids[1], &seen);
        let phases: Vec<&str> = seen["phases"]
            .as_array()
            .unwrap()
            .iter()
            .map(|phase| phase["name"].as_str().unwrap())
            .collect();
        assert!(
            phases.contains(&"fill") && phases.contains(&"references"),
            "{phases:?}"
        );
        let (shown, _) = lab.ends(0, ["show", &ids[0], "--reclaim"]);
        for words in [
            "Direct reclaim pages scanned",
            "%age total pages scanned/reclaimed",
            "Percentage Time kswapd Awake",
            "observing changed",
        ] {
            assert!(shown.contains(words), "no `{words}` in:\n{shown}");
        }
        let (series, _) = lab.ends(0, ["show", &ids[1], "--series", "vmstat"]);
        assert!(
            series.starts_with("time (nanos),") && series.lines().count() > 4,
            "{series}"
        );
    }
}

/// Asserts that at least 99 % of the waits of the pattern's process have a known place in the kernel, and that most are
/// waits for a page.
fn names_what_was_slept_on(lab: &Lab, kernel: &str, observed: &str, seen: &Value) {
    let task = &seen["tasks"][0];
    let slept = task["slept"].as_array().unwrap();
    let (mut named, mut all) = (0, 0);
    for slept in slept {
        let count = slept["count"].as_u64().unwrap();
        all += count;
        named += count * u64::from(!slept["site"].is_null());
    }
    assert!(named > 0 && named * 100 >= all * 99, "{kernel}: {slept:?}");
    let waits = task["waits"].as_object().unwrap();
    let counted: u64 = waits
        .values()
        .map(|waits| waits["count"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, all, "{kernel}: {task}");
    // Most waits are for a page that is read from swap.
    let most = slept
        .iter()
        .max_by_key(|slept| slept["count"].as_u64())
        .unwrap();
    let function = most["site"]["function"].as_str().unwrap();
    assert!(
        ["folio_wait_bit_common", "swap_readpage"].contains(&function),
        "{kernel}: {most}"
    );
    let (shown, _) = lab.ends(0, ["show", observed, "--reclaim"]);
    assert!(
        shown.contains(&format!("in {function} in ")),
        "{kernel}: {shown}"
    );
    assert!(!shown.contains("not recorded"), "{kernel}: {shown}");
    let (timeline, _) = lab.ends(0, ["show", observed, "--timeline"]);
    assert!(
        timeline.contains(function),
        "{kernel}: no {function} in the timeline"
    );
}

#[test]
#[ignore = "test-all"]
fn a_trial_without_waits_names_no_places() {
    let Some(lab) = Lab::that_runs() else { return };
    let small =
        "run linear --memory 24M --swap-size 64M -p pages=4M -p refs=12000 --seeds 1 --observe";
    let small = small.split(' ').chain(["--kernel", KERNEL]);
    // Nothing is reclaimed, so the trial cannot be used for a comparison, but its trace is still correct.
    lab.ends(3, small);
    let (out, _) = lab.ends(0, ["list", "records", "--json"]);
    let records: Vec<Value> = serde_json::from_str(&out).unwrap();
    let is_observed = |listed: &&Value| listed["cell"]["subject"]["pass"] == "observed";
    let observed = records.iter().find(is_observed).unwrap()["id"]
        .as_str()
        .unwrap();
    for task in seen(&lab, observed)["tasks"].as_array().unwrap() {
        assert_eq!(task["slept"], serde_json::json!([]), "{task}");
    }
    let (shown, _) = lab.ends(0, ["show", observed, "--reclaim"]);
    assert!(!shown.contains(" waits, "), "{shown}");
}

#[test]
#[ignore = "test-all"]
fn every_process_of_swapbench_is_accounted_for() {
    for kernel in KERNELS {
        let Some(lab) = Lab::that_runs_on(kernel) else {
            continue;
        };
        let scenario = [
            "swapbench",
            "--memory",
            "24M",
            "--swap-size",
            "64M",
            "-p",
            "processes=4",
        ];
        let seen = holds(&lab, kernel, &observe(&lab, kernel, &scenario));
        assert_eq!(
            seen["tasks"].as_array().unwrap().len(),
            5,
            "{kernel}: the parent and four"
        );
    }
}

#[test]
#[ignore = "test-all"]
fn compaction_of_highalloc_is_observed_as_the_kernel_counts_it() {
    for kernel in KERNELS {
        let Some(lab) = Lab::that_runs_on(kernel) else {
            continue;
        };
        let scenario = "highalloc --memory 24M --swap-size 64M -p share=0.5 -p age=100ms -p rest=50ms -p rate=64M";
        let scenario: Vec<&str> = scenario.split(' ').collect();
        let seen = holds(&lab, kernel, &observe(&lab, kernel, &scenario));
        agrees(&seen, "all-migrated", kernel);
        // 6.1's free scanner takes some pages off the lists in its fast search, which has no tracepoint. The row must
        // state this.
        let check = &row(&seen, "isolated")["check"];
        let told = check["reason"]
            .as_str()
            .is_some_and(|reason| reason.starts_with("this kernel has no event"));
        if !told {
            agrees(&seen, "isolated", kernel);
        }
        assert!(
            row(&seen, "all-migrated")["value"]["value"]
                .as_u64()
                .unwrap()
                > 0,
            "{kernel}"
        );
    }
}

#[test]
#[ignore = "test-all"]
fn written_pages_of_huge_folios_are_counted_as_the_kernel_counts_them() {
    for kernel in KERNELS {
        let Some(lab) = Lab::that_runs_on(kernel) else {
            continue;
        };
        let scenario = "usemem --memory 24M --swap-size 64M --swap ssd:80us -p page-size=huge -p processes=2 -p size=16M \
                        -p passes=1 --set lru_gen/enabled=0";
        let scenario: Vec<&str> = scenario.split_whitespace().collect();
        let seen = holds(&lab, kernel, &observe(&lab, kernel, &scenario));
        agrees(&seen, "all-written", kernel);
        let number = |id| row(&seen, id)["value"]["value"].as_f64().unwrap();
        assert!(
            number("huge-swap-outs") > 0.0,
            "{kernel}: no huge page was swapped"
        );
        let (pages, folios) = (number("all-written"), number("all-folios-written"));
        assert!(
            pages >= folios + 511.0 * number("huge-swap-outs"),
            "{kernel}: {pages} pages in {folios} folios"
        );
        // The ratio must be the one computed from vmstat.
        let check = |id| row(&seen, id)["check"]["counter"].as_f64().unwrap();
        let by_vmstat = 100.0 * check("all-written") / check("total-scanned");
        let shown = number("written-of-scanned");
        assert!(
            (shown - by_vmstat).abs() <= 0.02 * by_vmstat,
            "{kernel}: {shown} % against {by_vmstat} %"
        );
    }
}

#[test]
#[ignore = "test-all"]
fn a_record_without_an_observed_partner_is_refused_with_a_remedy() {
    let Some(lab) = Lab::that_runs() else { return };
    let mut arguments = vec![
        "run",
        "linear",
        "--kernel",
        crate::common::KERNEL,
        "--seeds",
        "1",
    ];
    arguments.extend(crate::common::TINY);
    lab.ends(0, arguments);
    let (out, _) = lab.ends(0, ["list", "records", "--json"]);
    let records: Value = serde_json::from_str(&out).unwrap();
    let id = records[0]["id"].as_str().unwrap();
    let (_, err) = lab.ends(4, ["show", id, "--reclaim"]);
    crate::common::one_sentence(&err, &["--observe"]);
}

#[test]
#[ignore = "test-all"]
fn a_trace_that_does_not_fit_makes_its_record_invalid_and_explains_nothing() {
    let Some(lab) = Lab::that_runs() else { return };
    let run = |more: &[&str]| {
        let run = ["run", "random", "--kernel", KERNEL, "--seeds", "1"];
        let two = ["--vs", "vm.swappiness=200", "--observe", "--exit-zero"];
        lab.ends(0, [&run, &TINY[..], &two, more].concat())
    };
    let (_, said) = run(&["--trace-limit", "256K"]);
    assert!(said.contains("trace events were lost"), "{said}");
    let (out, _) = lab.ends(0, ["list", "records", "--json"]);
    let records: Vec<Value> = serde_json::from_str(&out).unwrap();
    for listed in &records {
        let observed = listed["cell"]["subject"]["pass"] == "observed";
        assert_eq!(!listed["invalid"].is_null(), observed, "{listed}");
    }
    let (explained, _) = lab.ends(0, ["compare", "--why", "--json"]);
    assert!(explained.contains("was left out"), "{explained}");
    assert!(explained.contains("trace events were lost"), "{explained}");
    // Without the limit, the same trials continue from the same guest and lose nothing.
    let (_, said) = run(&["--fresh"]);
    assert!(!said.contains("booting"), "{said}");
    assert!(!said.contains("lost"), "{said}");
}

#[test]
#[ignore = "test-all"]
fn a_ring_that_is_too_small_loses_events_and_its_pass_explains_nothing() {
    let Some(lab) = Lab::that_runs() else { return };
    let run = |more: &[&str]| {
        let run = ["run", "random", "--kernel", KERNEL, "--seeds", "1"];
        let two = ["--vs", "vm.page-cluster=0", "--observe", "--exit-zero"];
        lab.ends(0, [&run, &TINY[..], &two, more].concat())
    };
    run(&["--trace-ring", "16K"]);
    let (out, _) = lab.ends(0, ["list", "records", "--json"]);
    let records: Vec<Value> = serde_json::from_str(&out).unwrap();
    let of_pass = |pass: &str| {
        let of_pass = |listed: &&Value| listed["cell"]["subject"]["pass"] == pass;
        records.iter().filter(of_pass).cloned().collect::<Vec<_>>()
    };
    assert_eq!(of_pass("observed").len(), 2);
    for listed in of_pass("observed") {
        assert_eq!(listed["cell"]["subject"]["trace_ring"], "16K", "{listed}");
        let why = listed["invalid"].as_str().unwrap_or_default();
        assert!(
            why.contains("trace events were lost") && why.contains("--trace-ring"),
            "{listed}"
        );
        // The kernel's ring buffer was full, which the trace itself records.
        let id = listed["id"].as_str().unwrap();
        let losses = &seen(&lab, id)["table"]["losses"];
        assert!(losses["events"].as_u64().unwrap() > 0, "{losses}");
    }
    for listed in of_pass("timed") {
        assert!(listed["invalid"].is_null(), "{listed}");
        assert!(
            listed["cell"]["subject"]["trace_ring"].is_null(),
            "{listed}"
        );
    }
    let (explained, _) = lab.ends(0, ["compare", "--why"]);
    for words in ["was left out", "trace events were lost", "--trace-ring"] {
        assert!(explained.contains(words), "no `{words}` in:\n{explained}");
    }
    // The same trials with the default ring: only the observed ones run again, and they lose nothing.
    let (out, said) = run(&[]);
    assert!(!said.contains("lost"), "{said}{out}");
    assert_eq!(lab.records(), records.len() + 2);
    let (explained, _) = lab.ends(0, ["compare", "--why"]);
    assert!(!explained.contains("was left out"), "{explained}");
}
