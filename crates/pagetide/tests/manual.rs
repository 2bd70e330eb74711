//! Tests of lists, help, man pages and completions, which come from the same definitions; also of reference strings.

use std::fs;

use crate::common::{Lab, one_sentence};

#[test]
fn every_scenario_is_listed_with_its_parameters_and_metrics() {
    let lab = Lab::new();
    let (json, _) = lab.ends(0, ["list", "scenarios", "--json"]);
    let scenarios: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let (long, _) = lab.ends(0, ["list", "scenarios", "--long"]);
    assert!(scenarios.len() > 10);
    for scenario in &scenarios {
        let name = scenario["name"].as_str().unwrap();
        assert!(long.lines().any(|line| line == name), "{name}");
        for what in ["params", "metrics"] {
            for one in scenario[what].as_array().unwrap() {
                let one = one["name"].as_str().unwrap();
                assert!(long.contains(&format!("    {one} (")), "{name}: {one}");
            }
        }
    }
}

#[test]
fn man_pages_and_completions_know_every_command() {
    let lab = Lab::new();
    let commands = [
        "run",
        "compare",
        "report",
        "serve",
        "show",
        "repeat",
        "plan",
        "list",
        "kernel",
        "doctor",
        "ideal",
        "history",
        "calibrate",
        "import",
        "store",
        "man",
        "completions",
    ];
    let (man, _) = lab.ends(0, ["man"]);
    let all = completed(&lab, &[""]);
    lab.ends(0, ["man", "--into", "pages"]);
    for command in commands {
        assert!(man.contains(command), "{command}");
        assert!(all.iter().any(|word| word == command), "{command}");
        let page = lab
            .folder()
            .join(format!("pages/man1/pagetide-{command}.1"));
        assert!(page.exists(), "{}", page.display());
    }
    let (scenarios, _) = lab.ends(0, ["man", "scenarios"]);
    let files = fs::read_to_string(lab.folder().join("pages/man5/pagetide-campaign.5")).unwrap();
    assert_eq!(files, lab.ends(0, ["man", "campaign"]).0);
    let page = fs::read_to_string(lab.folder().join("pages/man7/pagetide-scenarios.7")).unwrap();
    assert!(page == scenarios && page.contains(".SH CONTSWAP"));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (script, _) = lab.ends(0, ["completions", shell]);
        assert!(
            script.contains("COMPLETE") && script.contains("pagetide"),
            "{script}"
        );
    }
}

/// Completions that a shell offers for the last of these words.
fn completed(lab: &Lab, words: &[&str]) -> Vec<String> {
    let output = lab
        .pagetide([&["--", "pagetide"], words].concat())
        .env("COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_else(|why| panic!("the program cannot be started: {why}"))
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_shell_completes_names_of_scenarios_settings_kernels_campaigns_variants_and_records() {
    let lab = Lab::new();
    assert_eq!(completed(&lab, &["compare", "r"]), [""; 0]);
    assert!(!lab.store().exists(), "completing made a store");
    lab.import_of_two_variants();
    assert_eq!(completed(&lab, &["run", "swapb"]), ["swapbench"]);
    assert_eq!(
        completed(&lab, &["run", "linear", "--set", "vm.sw"]),
        ["vm.swappiness="]
    );
    let kernels = completed(&lab, &["run", "linear", "--kernel", "debian:"]);
    assert!(
        kernels.contains(&"debian:bookworm/6.12".to_owned()),
        "{kernels:?}"
    );
    for words in [
        &["compare", "r"][..],
        &["report", "r"],
        &["list", "records", "--campaign", ""],
        &["store", "remove", "r"],
    ] {
        assert_eq!(completed(&lab, words), ["r"], "{words:?}");
    }
    assert_eq!(
        completed(&lab, &["history", "time", "--variant", ""]),
        ["new", "old"]
    );
    let records = completed(&lab, &["show", ""]);
    let (list, _) = lab.ends(0, ["list", "records"]);
    let ids: Vec<&String> = records
        .iter()
        .filter(|word| !word.starts_with('-'))
        .collect();
    assert_eq!(ids.len(), 16, "{records:?}");
    assert!(ids.iter().all(|id| list.contains(*id)), "{list}");
    // A campaign file is completed as a path.
    fs::create_dir(lab.folder().join("campaigns")).unwrap();
    fs::write(lab.folder().join("campaigns/mine.toml"), "").unwrap();
    let files = completed(&lab, &["run", "campaigns/m"]);
    assert_eq!(files, ["campaigns/mine.toml"]);
}

#[test]
fn references_survive_each_form_and_keep_the_counts_of_the_formula() {
    let lab = Lab::new();
    let pattern = [
        "ideal",
        "references",
        "smooth-sin-random",
        "--pages",
        "500",
        "--refs",
        "20000",
    ];
    let with = |more: &[&'static str]| [&pattern[..], more].concat();
    let (text, _) = lab.ends(0, with(&["--text"]));
    assert_eq!(text.lines().count(), 20_000);
    let (again, _) = lab.ends(0, with(&["--text"]));
    assert_eq!(text, again, "the same seed gives the same string");
    let (other, _) = lab.ends(0, with(&["--text", "--seed", "2"]));
    assert_ne!(text, other);
    lab.ends(0, with(&["-o", "s.refs"]));
    fs::write(lab.folder().join("s.txt"), &text).unwrap();
    let (counts, _) = lab.ends(0, with(&["--counts"]));
    for file in ["file:s.refs", "file:s.txt"] {
        assert_eq!(
            lab.ends(0, ["ideal", "references", file, "--text"]).0,
            text,
            "{file}"
        );
        let (back, _) = lab.ends(
            0,
            ["ideal", "references", file, "--counts", "--pages", "500"],
        );
        assert_eq!(back, counts, "{file}");
    }
    let (facts, _) = lab.ends(0, ["ideal", "references", "file:s.refs", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&facts).unwrap();
    assert_eq!(facts["refs"], 20_000);
    assert_eq!(facts["form"], "binary");
}

#[test]
fn references_that_cannot_be_are_refused_with_their_line() {
    let lab = Lab::new();
    fs::write(lab.folder().join("bad.txt"), "1\n2\nthree\n").unwrap();
    let (_, err) = lab.ends(2, ["ideal", "references", "file:bad.txt", "--text"]);
    one_sentence(&err, &["bad.txt", "line 3"]);
    fs::write(lab.folder().join("far.txt"), "1\n99\n").unwrap();
    let (_, err) = lab.ends(2, ["ideal", "references", "file:far.txt", "--pages", "10"]);
    one_sentence(&err, &["far.txt", "line 2", "99"]);
    let (_, err) = lab.ends(
        4,
        [
            "ideal",
            "references",
            "linear",
            "--pages",
            "0",
            "--refs",
            "5",
        ],
    );
    one_sentence(&err, &[]);
    let (_, err) = lab.ends(4, ["ideal", "references", "linear", "--refs", "5"]);
    one_sentence(&err, &["--pages"]);
}

#[test]
fn empty_stores_say_what_to_do() {
    let lab = Lab::with_own_cache();
    assert!(lab.ends(0, ["list", "records"]).0.contains("pagetide run"));
    assert!(
        lab.ends(0, ["list", "campaigns"])
            .0
            .contains("pagetide run")
    );
    assert!(
        lab.ends(0, ["list", "kernels"])
            .0
            .contains("pagetide kernel add")
    );
    assert_eq!(lab.ends(0, ["list", "records", "--json"]).0, "[]\n");
    assert!(lab.ends(0, ["store", "verify"]).0.contains("0 records"));
}

#[test]
fn power_answers_for_an_assumed_noise() {
    let lab = Lab::new();
    let needed = |noise: &str| {
        let arguments = ["plan", "power", "--noise", noise, "--effect", "2", "--json"];
        let (json, _) = lab.ends(0, arguments);
        let rows: serde_json::Value = serde_json::from_str(&json).unwrap();
        rows[0]["needed"].as_u64().unwrap()
    };
    assert!(needed("0.5") < needed("2"), "more noise needs more seeds");
}

#[test]
fn results_of_others_are_imported_listed_and_compared() {
    let lab = Lab::new();
    let json = lab.import_of_two_variants();
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["records"], 16);
    let (list, _) = lab.ends(0, ["list", "records", "--variant", "new"]);
    assert_eq!(list.lines().count(), 9, "a head and eight records: {list}");
    lab.ends(0, ["store", "verify"]);
    let (table, _) = lab.ends(0, ["compare", "r"]);
    assert!(table.contains("improved"), "{table}");
    let (page, _) = lab.ends(0, ["compare", "--as", "html"]);
    assert!(
        page.contains("<html") && page.trim_end().ends_with("</html>"),
        "{page:.200}"
    );
    fs::write(lab.folder().join("bad.csv"), "scenario,variant\n").unwrap();
    let (_, err) = lab.ends(2, ["import", "csv", "bad.csv"]);
    one_sentence(&err, &["bad.csv", "metric"]);
    let (_, err) = lab.ends(2, ["import", "mmtests", "nowhere"]);
    one_sentence(&err, &["nowhere"]);
}
