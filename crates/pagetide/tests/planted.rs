//! Differences planted by hand, and none at all: what the verdicts make of them on a real kernel.

#![allow(clippy::unwrap_used, reason = "what cannot be prepared fails the test")]

mod common;

use std::fs;

use common::{KERNEL, Lab};
use serde_json::Value;

/// Runs one side of a comparison, as a campaign of its own, and gives the name by which `compare` knows it.
fn side(lab: &Lab, name: &str, memory: &str, swap: &str, page_cluster: u32) -> String {
    let text = format!(
        "name = \"{name}\"\nkernel = \"{KERNEL}\"\nmemory = \"{memory}\"\nswap = \"{swap}\"\nswap-size = \"64M\"\nobserve = \"none\"\n\
         [sampling]\nseeds = 8\n\
         [[variant]]\nname = \"{name}\"\nsettings = {{ \"vm.page-cluster\" = {page_cluster} }}\n\
         [[scenario]]\nname = \"linear\"\nparams = {{ pages = 8192, refs = 16384 }}\nprimary = [\"access-time\"]\n"
    );
    let file = format!("{name}.toml");
    fs::write(lab.folder().join(&file), text).unwrap();
    lab.ends(0, ["run", &file, "--exit-zero"]);
    format!("{name}:{name}")
}

/// The judgement on `metric` of B against A.
fn judged(lab: &Lab, a: &str, b: &str, metric: &str) -> Value {
    let (out, _) = lab.ends(0, ["compare", a, b, "--anyway", "--exit-zero", "--json"]);
    let found: Value = serde_json::from_str(&out).unwrap();
    let row = found["cells"][0]["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == metric)
        .unwrap_or_else(|| panic!("no {metric} in {out}"));
    row["judgements"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .clone()
}

#[test]
fn planted_slowdowns_are_found_or_called_inconclusive_and_never_improvements() {
    let Some(lab) = Lab::that_runs() else { return };
    let base = side(&lab, "base", "16M", "ssd:80us", 3);
    let planted = [
        ("swap-1-percent", "16M", "ssd:80800ns", 3, false),
        ("swap-5-percent", "16M", "ssd:84us", 3, false),
        ("memory-1-percent", "16220K", "ssd:80us", 3, false),
        ("page-cluster-step", "16M", "ssd:80us", 2, true),
    ];
    for (name, memory, swap, page_cluster, found) in planted {
        let other = side(&lab, name, memory, swap, page_cluster);
        let judgement = judged(&lab, &base, &other, "access-time");
        let verdict = judgement["verdict"].as_str().unwrap();
        match verdict {
            "regressed" => {}
            "inconclusive" if !found => {
                let needed = judgement["n_needed"].as_u64().unwrap();
                assert!(needed > 8, "{name}: {judgement}");
            }
            _ => panic!("{name}: {judgement}"),
        }
    }
}

#[test]
fn twenty_campaigns_of_a_kernel_against_itself_are_identical_every_time() {
    let Some(lab) = Lab::that_runs() else { return };
    let scenarios = ["linear", "random", "smooth-sin-random", "zipf05"];
    for campaign in 0..20 {
        let seed = (1 + 100 * campaign).to_string();
        let name = format!("self-{campaign}");
        let swap = if campaign % 2 == 0 {
            "zram"
        } else {
            "ssd:80us"
        };
        let run = [
            "run",
            scenarios[campaign / 5],
            "--name",
            &name,
            "--kernel",
            KERNEL,
            "--kernel",
            KERNEL,
            "--memory",
            "16M",
            "--swap",
            swap,
            "--swap-size",
            "64M",
            "-p",
            "pages=20M",
            "-p",
            "refs=6000",
            "--seeds",
            "1",
            "--first-seed",
            &seed,
            "--observe=none",
            "--json",
        ];
        let (out, err) = lab.ends(0, run);
        let found: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{out}{err}"));
        assert_eq!(found["overall"], "identical", "{name}: {out}");
    }
}
