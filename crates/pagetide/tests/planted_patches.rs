//! Patches to Debian's 6.12 with known effects: four faults, two improvements, three without effect, and a race between
//! CPUs. The tool must find the planted effects with their directions and causes, and claim nothing for the others. The
//! header of each patch states the expected result, derived from the kernel's code (`planted-patches/`).
//!
//! The patched kernels for a fault and a comment are built if the tests' cache already has a built base. All are built
//! if `PAGETIDE_TEST_BUILDS` names a folder to build in (about 6 minutes of processor time for the base, once, and 13
//! for all patches).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::Lab;
use pagetide_testing::{Need, skip};
use serde_json::Value;

/// A patch with an effect on a workload.
#[derive(Clone, Copy)]
struct Planted {
    /// Name of the patch's file.
    name: &'static str,
    /// Arguments of `run`: the scenario with its options.
    run: &'static [&'static str],
    /// Additional options.
    more: &'static [&'static str],
    /// The metric that must change.
    metric: &'static str,
    /// The expected verdict on this metric.
    verdict: &'static str,
    /// The mechanism that should rank first.
    cause: &'static str,
}

/// Scenario that allocates huge pages in memory that was fragmented before, while nothing else runs.
const FRAGMENTED: &[&str] = &[
    "highalloc",
    "-p",
    "age=1s",
    "-p",
    "rest=1s",
    "-p",
    "jobs=0",
    "-p",
    "share=0.5",
    "-p",
    "fragment=0.1",
    "--memory",
    "48M",
];

const SWAP: Planted = Planted {
    name: "fault-swap",
    run: &["linear", "--memory", "24M", "--swap", "ssd"],
    more: &[],
    metric: "access-time",
    verdict: "regressed",
    cause: "read-ahead",
};

const PLANTED: [Planted; 6] = [
    Planted {
        name: "fault-reclaim",
        run: &["hot-cold", "--memory", "24M", "--swap", "ssd"],
        more: &[],
        metric: "access-time",
        verdict: "regressed",
        cause: "eviction-choice",
    },
    SWAP,
    Planted {
        name: "fault-compaction",
        run: FRAGMENTED,
        more: &[],
        metric: "success",
        verdict: "regressed",
        cause: "compaction",
    },
    Planted {
        name: "fault-writeback",
        run: &[
            "filecopy",
            "-p",
            "methods=rw-cp",
            "-p",
            "victim=0",
            "--memory",
            "24M",
        ],
        more: &[],
        metric: "copy-time",
        verdict: "regressed",
        cause: "dirty-limits",
    },
    Planted {
        name: "better-read-ahead",
        verdict: "improved",
        ..SWAP
    },
    Planted {
        name: "better-compaction",
        more: &["-p", "rate=8M", "--swap-size", "64M"],
        run: FRAGMENTED,
        metric: "success",
        verdict: "improved",
        cause: "compaction",
    },
];

/// Name of the patch that only changes a comment.
const COMMENT: &str = "nothing-comment";
/// Names of patches that move code but do not change what the kernel does.
const NOTHING: [&str; 2] = ["nothing-nop", "nothing-function"];

/// Name of the patch that leaves out a lock.
const RACE: &str = "race-steal";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/planted-patches")
}

fn file(name: &str) -> String {
    folder().join(format!("{name}.patch")).display().to_string()
}

/// State of the kernel without patches in a cache, according to `plan`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Base {
    /// The source of the kernel is not in the cache.
    Nothing,
    /// The source of the kernel is in the cache, but the kernel is not built.
    Source,
    /// The kernel is built.
    Built,
}

fn base(lab: &Lab) -> Base {
    let plan = [
        "plan",
        "linear",
        "--source",
        "debian:6.12",
        "--memory",
        "24M",
    ];
    let output = lab.pagetide(plan).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    match text.lines().find(|line| line.starts_with("kernel of ")) {
        Some(line) if line.ends_with("in the cache") => Base::Built,
        Some(line) if line.contains(": to be built") => Base::Source,
        _ => Base::Nothing,
    }
}

#[test]
fn each_planted_patch_says_what_must_come_of_it_and_is_tried() {
    let there: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let tried: BTreeSet<String> = PLANTED
        .iter()
        .map(|planted| planted.name)
        .chain(NOTHING)
        .chain([COMMENT, RACE])
        .map(str::to_owned)
        .collect();
    assert_eq!(there, tried);
    let header = |name: &str| {
        let text = fs::read_to_string(file(name)).unwrap();
        let (header, diff) = text.split_once("\n---\n").unwrap();
        assert!(diff.starts_with("diff --git a/mm/"), "{name}");
        header.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for planted in PLANTED {
        let way = match planted.verdict {
            "improved" => "better",
            _ => "worse",
        };
        let scenario = planted.run[0];
        let said = format!("Must get {way}: {} of {scenario}", planted.metric);
        let header = header(planted.name);
        assert!(header.contains(&said), "{}: {said}\n{header}", planted.name);
    }
    for name in NOTHING {
        assert!(header(name).contains("nothing may be claimed"), "{name}");
    }
    assert!(header(COMMENT).contains("Must give the same image"));
    assert!(header(RACE).contains("Must lose counts on several CPUs and none on one"));
}

#[test]
fn planted_patches_fit_the_source() {
    let lab = Lab::new();
    if base(&lab) == Base::Nothing {
        return skip(
            Need::Builds,
            "the tests' cache has no linux-source-6.12, which a build fetches",
        );
    }
    for planted in PLANTED {
        let path = file(planted.name);
        lab.ends(0, ["plan", "linear", "--memory", "24M", "--patch", &path]);
    }
    for name in NOTHING.into_iter().chain([COMMENT, RACE]) {
        lab.ends(
            0,
            ["plan", "linear", "--memory", "24M", "--patch", &file(name)],
        );
    }
    // Faults for hunts, which must find a workload that shows them.
    let hunted = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hunted-patches");
    for entry in fs::read_dir(hunted).unwrap() {
        let path = entry.unwrap().path().display().to_string();
        lab.ends(0, ["plan", "linear", "--memory", "24M", "--patch", &path]);
    }
    // A comparison of patches profiles the first seed by default, but not on several CPUs.
    let race = file(RACE);
    let words = ["plan", "linear", "--memory", "24M", "--cpus", "4"];
    lab.ends(0, [&words[..], &["--patch", &race]].concat());
}

/// Runs a patch with 8 seeds and returns the comparison.
fn run(lab: &Lab, what: &[&str], name: &str, cache: &str) -> Value {
    let path = file(name);
    let rest = [
        "--patch",
        &path,
        "--no-control",
        "--seeds",
        "8",
        "--name",
        name,
        "--cache",
        cache,
        "--exit-zero",
        "--json",
    ];
    let (out, err) = lab.ends(0, [&["run"], what, &rest[..]].concat());
    serde_json::from_str(&out).unwrap_or_else(|_| panic!("{name}: {out}{err}"))
}

/// The primary metrics of a comparison with their verdicts.
fn verdicts(found: &Value) -> Vec<(String, String)> {
    let metrics = found["cells"][0]["metrics"].as_array().unwrap();
    let judged = metrics.iter().filter(|row| row["primary"] == true);
    judged
        .filter_map(|row| {
            let judgement = row["judgements"].as_array()?.last()?;
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            Some((text(&row["name"]), text(&judgement["verdict"])))
        })
        .collect()
}

/// Runs a planted patch and asserts that the sign is as planted. Returns true if the first cause is as planted too.
fn tried(lab: &Lab, planted: Planted, cache: &str) -> bool {
    let Planted {
        name,
        run: what,
        more,
        metric,
        verdict,
        cause,
    } = planted;
    let found = run(lab, &[what, more].concat(), name, cache);
    let judged = verdicts(&found);
    assert!(
        judged.contains(&(metric.to_owned(), verdict.to_owned())),
        "{name}: {metric} should be {verdict}: {judged:?}"
    );
    let (out, _) = lab.ends(0, ["compare", "--why", "--json", name]);
    let all: Value = serde_json::from_str(&out).unwrap();
    let explanation = &all[0]["explanation"];
    let first = &explanation["findings"][0]["mechanism"];
    if first != cause {
        eprintln!("{name}: {first} comes before {cause}: {explanation:#}");
    }
    first == cause
}

#[test]
fn a_planted_fault_is_found_and_a_comment_is_no_change() {
    let lab = Lab::new();
    if base(&lab) != Base::Built {
        return skip(
            Need::Builds,
            "the tests' cache has no kernel built of debian:6.12 (6 minutes once: `pagetide run linear --source debian:6.12`)",
        );
    }
    let cache = lab.cache().display().to_string();
    let path = file(COMMENT);
    let (_, err) = lab.ends(0, ["run", "hot-cold", "--cache", &cache, "--patch", &path]);
    assert!(err.contains("no change in code"), "{err}");
    assert!(tried(&lab, SWAP, &cache));
}

#[test]
#[ignore = "test-all"]
fn planted_patches_are_told_from_harmless_ones_with_their_signs_and_causes() {
    let Some(cache) = std::env::var_os("PAGETIDE_TEST_BUILDS") else {
        return skip(
            Need::Builds,
            "PAGETIDE_TEST_BUILDS names no cache folder to build kernels in (6 minutes once)",
        );
    };
    let lab = Lab::new();
    let cache = cache.display().to_string();
    let (_, err) = lab.ends(
        0,
        [
            "run",
            "hot-cold",
            "--cache",
            &cache,
            "--patch",
            &file(COMMENT),
        ],
    );
    assert!(err.contains("no change in code"), "{err}");
    for name in NOTHING {
        let found = run(&lab, PLANTED[0].run, name, &cache);
        let claimed = ["regressed", "improved"];
        let judged = verdicts(&found);
        assert!(
            judged
                .iter()
                .all(|(_, verdict)| !claimed.contains(&verdict.as_str())),
            "{name}: {judged:?}"
        );
    }
    let causes = PLANTED
        .into_iter()
        .filter(|planted| tried(&lab, *planted, &cache))
        .count();
    assert!(causes >= 5, "the first cause is right in {causes} of 6");
}

/// Pages that a record's counters by kind of page have and those by reclaimer have not.
fn uncounted(record: &Value) -> u64 {
    let grew = |name: &str| {
        let values = &record["results"]["counters"]["vmstat"]["values"][name];
        let at = |index: usize| values[index].as_u64().unwrap_or_else(|| panic!("{name}"));
        at(1) - at(0)
    };
    let by_kind = grew("pgsteal_anon") + grew("pgsteal_file");
    let by_reclaimer = ["pgsteal_kswapd", "pgsteal_direct", "pgsteal_khugepaged"].map(grew);
    assert!(by_kind > 1000, "{by_kind}");
    by_kind - by_reclaimer.iter().sum::<u64>()
}

#[test]
#[ignore = "test-all: builds a kernel if its base is built, and boots four guests"]
fn a_lock_that_is_left_out_shows_on_four_cpus_and_not_on_one() {
    let lab = Lab::new();
    if base(&lab) != Base::Built {
        return skip(
            Need::Builds,
            "the tests' cache has no kernel built of debian:6.12 (6 minutes once: `pagetide run linear --source debian:6.12`)",
        );
    }
    let patch = file(RACE);
    let fixed = [
        "run",
        "contswap",
        "--no-control",
        "--seeds",
        "1",
        "--exit-zero",
    ];
    let sizes = [
        "--memory",
        "32M",
        "-p",
        "reclaimers=16",
        "-p",
        "hold=200ms",
        "--observe=none",
        "--profile=none",
    ];
    for (cpus, loses) in [("1", false), ("4", true)] {
        let more = ["--patch", &patch, "--cpus", cpus];
        lab.ends(0, [&fixed[..], &sizes, &more].concat());
        for record in lab.newest(2) {
            let variant = record["subject"]["variant"]["name"].as_str().unwrap();
            let lost = uncounted(&record);
            eprintln!("{variant} on {cpus} CPUs: {lost} pages not counted");
            let may = loses && variant == "patched";
            assert_eq!(lost > 0, may, "{lost} of {variant} on {cpus} CPUs");
        }
    }
}
