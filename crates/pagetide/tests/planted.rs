//! Tests of the verdicts on known differences, and on pairs without any difference, on a real kernel.

use std::fs;

use crate::common::{KERNEL, Lab};
use serde_json::Value;

/// One side of a comparison.
#[derive(Clone, Copy)]
struct Side {
    name: &'static str,
    pattern: &'static str,
    pages: u32,
    memory: &'static str,
    swap: &'static str,
    page_cluster: u32,
}

/// A side whose data (22 MiB) is larger than memory and is read in random order, page by page. Each additional page of
/// memory or microsecond of latency has an effect.
const RANDOM: Side = Side {
    name: "random",
    pattern: "random",
    pages: 5632,
    memory: "16M",
    swap: "ssd:80us",
    page_cluster: 0,
};
/// A side that reads its data in order, with read-ahead of eight pages.
const LINEAR: Side = Side {
    name: "linear",
    pattern: "linear",
    pages: 8192,
    page_cluster: 3,
    ..RANDOM
};

/// Runs a side as a separate campaign, in the same guest as the tests of planted causes. Returns the name by which
/// `compare` finds the side.
fn run(lab: &Lab, side: Side) -> String {
    let Side {
        name,
        pattern,
        pages,
        memory,
        swap,
        page_cluster,
    } = side;
    let text = format!(
        "name = \"{name}\"\nkernel = \"{KERNEL}\"\nmemory = \"{memory}\"\nswap = \"{swap}\"\nswap-size = \"96M\"\nobserve = \"none\"\n\
         [sampling]\nseeds = 8\n\
         [[variant]]\nname = \"{name}\"\nsettings = {{ \"vm.page-cluster\" = {page_cluster} }}\n\
         [[scenario]]\nname = \"{pattern}\"\nparams = {{ pages = {pages}, refs = 6144 }}\nprimary = [\"access-time\"]\n"
    );
    let file = format!("{name}.toml");
    fs::write(lab.folder().join(&file), text).unwrap();
    lab.ends(0, ["run", &file, "--exit-zero"]);
    format!("{name}:{name}")
}

/// The judgement of B compared with A on `metric`.
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
#[ignore = "test-all"]
fn planted_slowdowns_are_found_or_called_inconclusive_and_never_improvements() {
    let Some(lab) = Lab::that_runs() else { return };
    let bases = [RANDOM, LINEAR].map(|side| (side.pattern, run(&lab, side)));
    // Small differences move the metric by less than the margin of 1 %. All other differences are certainly found with
    // eight seeds.
    let planted = [
        (
            true,
            Side {
                name: "swap-1-percent",
                swap: "ssd:80800ns",
                ..RANDOM
            },
        ),
        (
            false,
            Side {
                name: "swap-5-percent",
                swap: "ssd:84us",
                ..RANDOM
            },
        ),
        (
            true,
            Side {
                name: "memory-1-percent",
                memory: "16220K",
                ..RANDOM
            },
        ),
        (
            false,
            Side {
                name: "page-cluster-step",
                page_cluster: 2,
                ..LINEAR
            },
        ),
    ];
    for (small, side) in planted {
        let name = side.name;
        let (_, base) = bases
            .iter()
            .find(|(pattern, _)| *pattern == side.pattern)
            .unwrap();
        let other = run(&lab, side);
        let judgement = judged(&lab, base, &other, "access-time");
        match judgement["verdict"].as_str().unwrap() {
            "regressed" => {}
            "equivalent" if small => {}
            "inconclusive" if small => {
                let needed = judgement["n_needed"].as_u64().unwrap();
                assert!(needed > 8, "{name}: {judgement}");
            }
            _ => panic!("{name}: {judgement}"),
        }
    }
}

#[test]
#[ignore = "test-all"]
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
            "96M",
            "-p",
            "pages=18M",
            "-p",
            "refs=500",
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
