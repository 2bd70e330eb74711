//! Planted causes: the change between two variants must rank first in the explanation, with the right sign. In the
//! exact arena, on a real kernel.

use std::fs;

use crate::common::{KERNEL, Lab, one_sentence};

/// Options of all trials in this file, so that one snapshot serves most of them. The number of seeds is enough to find
/// sure differences.
const fn guest<'a>(memory: &'a str, seeds: &'a str) -> [&'a str; 9] {
    [
        "--kernel",
        KERNEL,
        "--memory",
        memory,
        "--swap-size",
        "96M",
        "--seeds",
        seeds,
        "--exit-zero",
    ]
}

/// Runs two variants and returns the explanation of their difference.
fn explained(lab: &Lab, seeds: &str, what: &[&str]) -> serde_json::Value {
    lab.ends(0, [&["run"], what, &guest("16M", seeds)[..]].concat());
    explanation(lab, &[])
}

/// Returns the explanation of two sides, or of the last campaign.
fn explanation(lab: &Lab, sides: &[&str]) -> serde_json::Value {
    let (out, _) = lab.ends(0, [&["compare", "--why", "--json"], sides].concat());
    let all: serde_json::Value = serde_json::from_str(&out).unwrap();
    let explanation = all[0]["explanation"].clone();
    adds_up(&explanation);
    explanation
}

/// Asserts that the findings and the remaining difference add up to the whole difference.
fn adds_up(explanation: &serde_json::Value) {
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let findings = explanation["findings"].as_array().unwrap();
    let all = findings.iter().map(|f| number(&f["effect"])).sum::<f64>()
        + number(&explanation["minor"])
        + number(&explanation["unexplained"]);
    let time = [&explanation["time"][0], &explanation["time"][1]].map(number);
    assert!(
        (all - (time[1] - time[0])).abs() <= 1e-6 * time[0].max(time[1]),
        "{explanation:#}"
    );
    for finding in findings {
        assert!(
            !finding["evidence"].as_array().unwrap().is_empty(),
            "{finding:#}"
        );
    }
}

/// Returns the effect in nanoseconds of the first mechanism, which must be `mechanism`.
fn first(explanation: &serde_json::Value, mechanism: &str) -> f64 {
    assert_eq!(explanation["basis"]["kind"], "traced", "{explanation:#}");
    let first = &explanation["findings"][0];
    assert_eq!(first["mechanism"], mechanism, "{explanation:#}");
    first["effect"].as_f64().unwrap()
}

#[test]
#[ignore = "test-all"]
fn read_ahead_switched_on_and_a_slower_device_are_named() {
    let Some(lab) = Lab::that_runs() else { return };
    let mut what = vec!["linear", "-p", "pages=20M", "-p", "refs=2500"];
    what.extend(["--swap", "ssd:80us", "--set", "vm.page-cluster=0"]);
    what.extend(["--vs", "vm.page-cluster=3"]);
    let found = explained(&lab, "7", &what);
    assert!(first(&found, "read-ahead") < 0.0);
    // The paragraph appears below the comparison and in a mail.
    for format in ["table", "mail", "markdown"] {
        let (out, _) = lab.ends(0, ["compare", "--exit-zero", "--as", format]);
        let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("swap-in I/O and read-ahead"),
            "{format}: {out}"
        );
        assert!(out.contains("vm.page-cluster"), "{format}: {out}");
        if format == "mail" {
            // A cover letter contains the command that runs the campaign, not the one that shows it.
            assert!(out.contains("\n$ pagetide run linear"), "{out}");
            assert!(out.lines().count() < 40, "{out}");
        }
    }

    // The two campaign files differ in the swap device, which variants cannot change. All trials of the first file
    // already have records.
    for (name, swap, new) in [("fast", "ssd:80us", 0), ("slow", "ssd:2ms", 7 + 3)] {
        let before = lab.records();
        let text = format!(
            "name = \"{name}\"\nkernel = \"{KERNEL}\"\nmemory = \"16M\"\nswap = \"{swap}\"\nswap-size = \"96M\"\n\
             observe = 3\n[sampling]\nseeds = 7\n[[variant]]\nname = \"{name}\"\n\
             settings = {{ \"vm.page-cluster\" = 3 }}\n[[scenario]]\n\
             name = \"linear\"\nparams = {{ pages = \"20M\", refs = 2500 }}\n"
        );
        fs::write(lab.folder().join(format!("{name}.toml")), text).unwrap();
        lab.ends(0, ["run", &format!("{name}.toml")]);
        assert_eq!(lab.records() - before, new, "{name}");
    }
    let found = explanation(&lab, &["fast:fast", "slow:slow", "--anyway"]);
    assert!(first(&found, "device-latency") > 0.0);
    let back = explanation(&lab, &["slow:slow", "fast:fast", "--anyway"]);
    assert!(first(&back, "device-latency") < 0.0);
    is_a_regression(&lab);
}

/// Asserts that a slower device is a regression, and that its exit code is 0 only on request. Asserts that sides that
/// cannot be compared are refused.
fn is_a_regression(lab: &Lab) {
    let sides = ["compare", "fast:fast", "slow:slow"];
    let (_, err) = lab.ends(2, sides);
    one_sentence(&err, &["swap", "ssd:80us", "ssd:2ms", "--anyway"]);
    let with = |more: &[&'static str]| [&sides[..], &["--anyway"], more].concat();
    let (out, _) = lab.ends(1, with(&[]));
    assert!(out.contains("regressed"), "{out}");
    lab.ends(1, with(&["--fail-on", "regressed"]));
    lab.ends(0, with(&["--exit-zero"]));
    let (power, _) = lab.ends(2, ["plan", "power", "fast"]);
    assert_eq!(power, "");
}

#[test]
#[ignore = "test-all"]
fn a_fifth_of_the_memory_taken_is_named() {
    let Some(lab) = Lab::that_runs() else { return };
    // Two huge pages of 2 MiB in the pool take 4 of 20 MiB.
    let mut what = vec!["run", "random", "-p", "pages=28M", "-p", "refs=10000"];
    what.extend(["--swap", "ssd:80us", "--set", "vm.nr_hugepages=0"]);
    what.extend(["--vs", "vm.nr_hugepages=2", "--observe=3"]);
    what.extend(guest("20M", "7"));
    lab.ends(0, what);
    assert!(first(&explanation(&lab, &[]), "shared-memory") > 0.0);
}

#[test]
#[ignore = "test-all"]
fn another_kind_of_lru_is_named_by_the_refaults_it_makes() {
    let Some(lab) = Lab::that_runs() else { return };
    // With read-ahead, the two kinds of LRU lists also differ in how they scatter swap, which has a similar effect.
    let found = explained(
        &lab,
        "10",
        &[
            "scan-with-hot-core",
            "-p",
            "pages=32M",
            "-p",
            "refs=16000",
            // The device is so slow that refaults dominate all other differences between the two kinds.
            "--swap",
            "ssd:400us",
            "--set",
            "vm.page-cluster=0",
            "--set",
            "lru_gen/enabled=0",
            "--vs",
            "lru_gen/enabled=7",
            // Refaults differ between seeds, so more observed seeds make the cause more certain.
            "--observe=10",
        ],
    );
    // Which kind is better depends on the kernel: the sign must follow the refaults.
    let effect = first(&found, "eviction-choice");
    let refaults = &found["findings"][0]["evidence"][0];
    assert_eq!(refaults["name"], "workingset_refault_anon", "{found:#}");
    let more = refaults["after"].as_f64().unwrap() > refaults["before"].as_f64().unwrap();
    assert_eq!(effect > 0.0, more, "{found:#}");
}

#[test]
#[ignore = "test-all"]
fn swappiness_is_named_by_the_refaults_of_a_process_beside_a_stream_of_files() {
    let Some(lab) = Lab::that_runs() else { return };
    // The copied pages are not read again. The process next to the copy uses its own memory, so swapping that memory
    // out is the worse choice.
    let mut what = vec!["filecopy", "-p", "methods=rw-cp", "-p", "verify=false"];
    what.extend(["-p", "size=16M", "-p", "victim=10M"]);
    what.extend(["-p", "victim-mapping=anon", "--swap", "ssd:400us"]);
    what.extend(["--set", "vm.swappiness=0", "--vs", "vm.swappiness=200"]);
    // The process has most of the memory. If it had half of the memory, so little would be swapped in some seeds that
    // no difference would be sure.
    what.push("--observe=6");
    let found = explained(&lab, "7", &what);
    assert!(first(&found, "eviction-choice") > 0.0);
    let evidence = &found["findings"][0]["evidence"];
    let refaults = &evidence[0];
    assert_eq!(refaults["name"], "workingset_refault_anon", "{found:#}");
    assert!(refaults["after"].as_f64() > refaults["before"].as_f64());
    let settings = evidence.as_array().unwrap();
    assert!(
        settings
            .iter()
            .any(|piece| piece["name"] == "vm.swappiness")
    );
}

/// Runs a campaign that allocates huge pages, with a variant without proactive compaction and the variants in `more`.
/// Before that, the share `fragment` of memory is fragmented. Smaller guests are not conclusive: with 24M a pass gets
/// only 5 blocks. Then a single compaction of the whole zone dominates, whose effect depends on the positions of its
/// scanners.
fn huge_pages(lab: &Lab, name: &str, fragment: &str, more: &str) {
    let text = format!(
        "name = \"{name}\"\nkernel = \"{KERNEL}\"\nmemory = \"48M\"\nswap-size = \"64M\"\nobserve = 3\n\
         [sampling]\nseeds = 7\n[[variant]]\nname = \"at-ease\"\nsettings = {{ \"vm.compaction_proactiveness\" = \"0\" }}\n\
         {more}[[scenario]]\nname = \"highalloc\"\nparams = {{ fragment = \"{fragment}\", jobs = \"0\", share = \"0.5\", \
         age = \"250ms\", rest = \"250ms\", rate = \"8M\" }}\n"
    );
    fs::write(lab.folder().join(format!("{name}.toml")), text).unwrap();
    lab.ends(0, ["run", &format!("{name}.toml"), "--exit-zero"]);
}

#[test]
#[ignore = "test-all"]
fn fragmented_memory_and_proactive_compaction_are_named() {
    let Some(lab) = Lab::that_runs() else { return };
    huge_pages(&lab, "whole", "0", "");
    let proactive = "[[variant]]\nname = \"proactive\"\nsettings = { \"vm.compaction_proactiveness\" = \"90\" }\n";
    huge_pages(&lab, "pieces", "0.1", proactive);
    let found = explanation(&lab, &["whole:at-ease", "pieces:at-ease", "--anyway"]);
    assert!(first(&found, "compaction") > 0.0);
    // The explained time is that of the attempts, without the fragmentation before them.
    assert_eq!(found["basis"]["attempts"], true, "{found:#}");
    let back = explanation(&lab, &["pieces:at-ease", "whole:at-ease", "--anyway"]);
    assert!(first(&back, "compaction") < 0.0);
    // Attempts every 250 ms leave enough time for kcompactd, which checks every 500 ms, to work ahead.
    let found = explanation(&lab, &["pieces:at-ease", "pieces:proactive"]);
    assert!(first(&found, "compaction") < 0.0);
    let (out, _) = lab.ends(
        0,
        ["compare", "--why", "pieces:at-ease", "pieces:proactive"],
    );
    // Lines are broken at any space, so the text is compared word by word.
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("in the attempts' time of the observed passes of 3 seeds"),
        "{out}"
    );
    assert!(out.contains("vm.compaction_proactiveness 0 → 90"), "{out}");
}

#[test]
#[ignore = "test-all"]
fn a_variant_does_not_differ_from_itself() {
    let Some(lab) = Lab::that_runs() else { return };
    // Results that are identical in eight seeds are also identical in the first seed.
    let mut what = vec!["run", "linear", "-p", "pages=24M", "-p", "refs=3000"];
    what.extend(["--kernel", KERNEL, "--observe=1"]);
    what.extend(guest("16M", "2"));
    lab.ends(0, what);
    let found = explanation(&lab, &[]);
    assert_eq!(found["answer"], "identical");
    assert_eq!(found["findings"].as_array().unwrap().len(), 0);
    assert!(
        lab.ends(0, ["compare", "--why"])
            .0
            .contains("no difference")
    );
    assert!(lab.ends(0, ["compare"]).0.contains("no difference"));
}
