//! Tests of `pagetide matrix`: which settings matter to a program, and which to choose.

use std::fmt::Write;
use std::fs;

use crate::common::{KERNEL, Lab, one_sentence};
use serde_json::Value;

fn matrix<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["matrix", "--kernel", KERNEL];
    all.extend(options);
    if !command.is_empty() {
        all.push("--");
        all.extend(command);
    }
    all
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Pages are read from swap in order on a disk; there, reading eight pages at a time saves waiting. The overcommit ratio
/// affects no workload here, and no kernel has the last setting.
const FACTORS: [&str; 11] = [
    "--swap",
    "ssd:80us",
    "--seeds",
    "3",
    "--only",
    "--vary",
    "vm.page-cluster=0,3",
    "--vary",
    "vm.overcommit_ratio=40,60",
    "--vary",
    "lru_gen/no-such=1,2",
];

#[test]
fn a_setting_that_matters_to_a_scenario_is_found_and_one_that_cannot_or_is_not_there_is_not() {
    let Some(lab) = Lab::that_runs() else { return };
    let linear = "linear --memory 24M --swap-size 64M -p pages=28M -p refs=2000";
    let linear: Vec<&str> = linear.split(' ').collect();
    finds_the_setting_that_matters(&lab, |more| {
        [&["matrix", "--kernel", KERNEL], &linear[..], &FACTORS, more].concat()
    });
}

#[test]
#[ignore = "test-all"]
fn a_setting_that_matters_to_a_program_is_found() {
    let Some(lab) = Lab::that_runs() else { return };
    let prime = 150_001_u64;
    let mut text = String::new();
    for number in 1..prime {
        writeln!(text, "{:012}", number * 7919 % prime).unwrap();
    }
    fs::write(lab.folder().join("numbers"), text).unwrap();
    // By default, sort uses a buffer that fits into the memory that it sees.
    let sort = ["sort", "-S", "40M", "numbers"];
    let options = [&["--memory", "10M", "--file", "numbers"], &FACTORS[..]].concat();
    finds_the_setting_that_matters(&lab, |more| matrix(&[&options[..], more].concat(), &sort));
}

/// Runs `matrix` with [`FACTORS`] and a workload, to which only the first factor matters. `words` makes the arguments from
/// further options.
fn finds_the_setting_that_matters<'a>(lab: &Lab, words: impl Fn(&[&'a str]) -> Vec<&'a str>) {
    let asked = || lab.ends(0, words(&["--json"])).0;
    let out = asked();
    let found = json(&out);
    let keys: Vec<&str> = found["factors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| f["key"].as_str().unwrap())
        .collect();
    assert_eq!(keys, ["vm.page-cluster", "vm.overcommit_ratio"]);
    assert!(
        found["left_out"][0]
            .as_str()
            .unwrap()
            .contains("lru_gen/no-such"),
        "{found}"
    );
    let effects = found["kinds"][0]["effects"].as_array().unwrap();
    let share = |place: usize| effects[place]["share"].as_f64().unwrap();
    assert!(share(0).abs() > 0.02, "{effects:?}");
    assert!(share(1).abs() < 0.5 * share(0).abs(), "{effects:?}");
    assert_eq!(effects[0]["by_seed"].as_array().unwrap().len(), 3);
    // The design has 4 runs, and the choices are run too, each with three seeds; the choices have new seeds. The better
    // level is the kernel's default, so the recommendation is to keep the defaults.
    assert!(share(0) < 0.0, "{effects:?}");
    let choices = found["choices"].as_array().unwrap();
    assert!((1..=2).contains(&choices.len()), "{choices:?}");
    let names = |choice: &Value| choice["settings"].to_string();
    assert!(choices.iter().all(|c| !names(c).contains("page-cluster")));
    assert_eq!(choices[0]["settings"].as_array().unwrap().len(), 0);
    assert_eq!(found["trials"], 12 + 3 * choices.len());
    assert!(choices.iter().any(|choice| choice["is_on_front"] == true));
    // The answer to the same command comes from the records and has exactly the same output.
    let before = lab.ends(0, ["list", "records", "--json"]).0;
    assert_eq!(asked(), out);
    assert_eq!(lab.ends(0, ["list", "records", "--json"]).0, before);
    let (text, _) = lab.ends(0, words(&[]));
    for words in [
        "Left out: lru_gen/no-such",
        "vm.page-cluster",
        "all combinations",
        "What to choose",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
#[ignore = "test-all"]
fn a_kind_of_swap_that_the_kernel_lacks_is_left_out_and_the_others_answer() {
    let Some(lab) = Lab::that_runs() else { return };
    // The default kinds of swap; cloud kernels of this series have no zswap.
    let options = [
        "--memory",
        "12M",
        "--swap-size",
        "36M",
        "--seeds",
        "3",
        "--only",
        "--vary",
        "vm.overcommit_ratio=40,60",
        "--json",
    ];
    let found = json(&lab.ends(0, matrix(&options, &["true"])).0);
    let kinds: Vec<&str> = found["kinds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind["swap"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["zram", "ssd"], "{found}");
    let left_out = found["left_out"].as_array().unwrap();
    assert_eq!(left_out.len(), 1, "{found}");
    let why = left_out[0].as_str().unwrap();
    assert!(
        why.starts_with("swap on zswap: ") && why.contains("CONFIG_ZSWAP"),
        "{why}"
    );
}

#[test]
fn what_no_design_answers_is_refused_before_anything_runs() {
    let lab = Lab::new();
    let refused = |options: &[&str], words: &[&str]| {
        let (_, err) = lab.ends(4, matrix(options, &["true"]));
        one_sentence(&err, words);
    };
    refused(&["--vs", "vm.swappiness=1"], &["2 variants", "--vary"]);
    refused(&["--vary", "vm.swappiness=1,2,3"], &["far apart"]);
    refused(&["--vary", "swap=zram,tape"], &["tape"]);
    refused(&["--seeds", "2"], &["--seeds 3"]);
    refused(&["--until-sure"], &["--until-sure"]);
    refused(
        &["--set", "vm.swappiness=1", "--vary", "vm.swappiness=1,2"],
        &["leave out one"],
    );
    let (_, err) = lab.ends(4, matrix(&["--vary", "vm.swappiness=1"], &["true"]));
    assert!(err.contains("KEY=V1,V2"), "{err}");
}
