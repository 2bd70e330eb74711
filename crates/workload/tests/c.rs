//! Tests of the C form: it compiles without a warning, and behaves as the workload describes.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use pagetide_quantity::Bytes;
use pagetide_workload::{CaseMachine, Segment, Workload, c_file};

/// Every phase except `pause` and `reclaim`, every kind of segment and every pattern.
const ALL: &str = r#"
time-limit = "20s"
[[group]]
name = "apps"
each = true
max = "50%"
swap-max = "0"

[[process]]
name = "server"
segment = [
  { name = "heap", size = "1M", pages = "huge" },
  { name = "log", kind = "file", size = "1M", empty = true },
  { name = "note", kind = "tmpfs", size = "64K" },
  { name = "common", kind = "tmpfs", size = "64K", file = "common" },
  { name = "board", kind = "shared", size = "64K" },
  { name = "held", size = "16K", locked = true },
]
phase = [
  { do = "fill", segment = "heap" },
  { do = "fill", segment = "log", by = "call" },
  { do = "mark", name = "ready" },
  { do = "fork", count = 2, phases = [
    { do = "copy", from = "heap", to = "log" },
    { do = "access", segment = "board", writes = 1.0, count = 10 },
  ] },
  { do = "repeat", times = 3, phases = [
    { do = "access", segment = "heap", pattern = "random", writes = 0.5, count = "0.5x" },
  ] },
  { do = "join" },
  { do = "sync", segment = "log" },
  { do = "advise", segment = "heap", advice = "cold", part = [0.5, 1.0] },
  { do = "advise", segment = "heap", advice = "free", part = [0.0, 0.5] },
  { do = "advise", segment = "log", advice = "drop-cache" },
  { do = "access", segment = "note", by = "call", amount = "page", writes = 1.0 },
  { do = "access", segment = "common", amount = "page" },
]

[[process]]
name = "reader"
count = 2
group = "apps"
stagger = "1ms"
turn = "seen"
segment = [
  { name = "data", kind = "file", size = "128K", file = "data" },
  { name = "own", kind = "file", size = "64K" },
  { name = "common", kind = "tmpfs", size = "64K", file = "common" },
]
phase = [
  { do = "wait", for = "ready" },
  { do = "mark", name = "seen" },
  { do = "access", segment = "data", by = "call", count = 40, pause = "1ms", every = 20 },
  { do = "access", segment = "own", pattern = "zipf(0.9,scatter)", count = 10 },
  { do = "access", segment = "own", pattern = "zipf05", count = 10 },
  { do = "access", segment = "own", pattern = "lognormal", count = 10 },
  { do = "access", segment = "own", pattern = "hot-cold(0.3,move=5)", count = 10 },
  { do = "access", segment = "own", pattern = "cold-first(0.3)", count = 10 },
  { do = "access", segment = "own", pattern = "scan-with-hot-core", count = 10 },
  { do = "access", segment = "own", pattern = "smooth-sin", count = 10 },
  { do = "access", segment = "own", pattern = "smooth-sin-random", count = 10 },
  { do = "access", segment = "own", pattern = "loop", count = 10 },
  { do = "access", segment = "common", count = 100000000, until = "server" },
]
"#;

/// Compiles a C file with warnings as errors, and returns false if this machine has no compiler.
fn compile(text: &str, folder: &Path) -> bool {
    let source = folder.join("case.c");
    std::fs::write(&source, text).unwrap();
    let Ok(output) = Command::new("cc")
        .args(["-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(folder.join("case"))
        .arg(&source)
        .output()
    else {
        return false;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    true
}

/// Runs the compiled C file with its files in the folder, and returns its output.
fn said(folder: &Path) -> String {
    let case = folder.join("case");
    let output = Command::new(case).arg(folder).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn machine() -> CaseMachine {
    CaseMachine {
        name: "all".to_owned(),
        about: "Every phase of the language.\nNothing else */ here.".to_owned(),
        memory: Bytes::from_mib(16),
        swap: "zram".to_owned(),
        ..CaseMachine::default()
    }
}

#[test]
fn the_c_file_makes_every_access_of_the_workload() {
    let folder = tempfile::tempdir().unwrap();
    let text = ALL.replace("count = 100000000, until = \"server\"", "count = 16");
    let workload = Workload::from_toml(&text).unwrap();
    if !compile(&c_file(&workload, &machine(), &|_| 0.35), folder.path()) {
        return;
    }
    let output = Command::new(folder.path().join("case"))
        .arg("--no-groups")
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let accesses = 2 * 10 + 3 * 128 + 2 * 16 + 2 * (40 + 9 * 10 + 16);
    assert!(said.contains(&format!("accesses {accesses}\n")), "{said}");
    assert!(said.contains("killed 0\nunfinished 0\n"), "{said}");
}

#[test]
fn a_workload_without_end_is_ended_at_its_time_limit_in_c_too() {
    let folder = tempfile::tempdir().unwrap();
    let text = "time-limit = \"200ms\"\n[[process]]\nname = \"endless\"\ncount = 2\nphase = [\n\
                { do = \"fork\", phases = [{ do = \"pause\", time = \"500s\" }] }, { do = \"join\" }]\n";
    let workload = Workload::from_toml(text).unwrap();
    if !compile(&c_file(&workload, &machine(), &|_| 0.35), folder.path()) {
        return;
    }
    let said = said(folder.path());
    assert!(said.contains("unfinished 4\n"), "{said}");
}

#[test]
fn every_case_of_the_zoo_compiles_without_a_warning() {
    let zoo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns/zoo");
    let mut cases = 0;
    for entry in std::fs::read_dir(zoo).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        if let Some(workload) = Workload::from_campaign(&text).unwrap() {
            let folder = tempfile::tempdir().unwrap();
            if !compile(&c_file(&workload, &machine(), &|_| 0.35), folder.path()) {
                return;
            }
            cases += 1;
        }
    }
    assert!(cases >= 9, "only {cases} cases");
}

#[test]
fn parts_of_segments_have_the_same_pages_in_c() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "[[process]]\nname = \"p\"\nsegment = [\n".to_owned();
    let parts = [
        [0.3, 0.4],
        [0.0, 0.29],
        [0.29, 1.0],
        [0.999_999, 1.0],
        [0.0, 0.000_001],
    ];
    let sizes = [1, 4, 100, 257];
    for pages in sizes {
        writeln!(
            text,
            "  {{ name = \"s{pages}\", kind = \"file\", size = \"{}K\" }},",
            4 * pages
        )
        .unwrap();
    }
    text += "]\nphase = [\n";
    let mut expected = 0;
    for pages in sizes {
        for part in parts {
            let [begin, end] = Segment::part_of(pages, Some(part));
            expected += end - begin;
            let on = format!(
                "segment = \"s{pages}\", part = [{:?}, {:?}]",
                part[0], part[1]
            );
            writeln!(
                text,
                "  {{ do = \"advise\", advice = \"drop-cache\", {on} }},"
            )
            .unwrap();
            writeln!(
                text,
                "  {{ do = \"access\", pattern = \"linear\", count = \"1x\", {on} }},"
            )
            .unwrap();
        }
    }
    text += "]\n";
    let workload = Workload::from_toml(&text).unwrap();
    if !compile(&c_file(&workload, &machine(), &|_| 0.35), folder.path()) {
        return;
    }
    let said = said(folder.path());
    assert!(
        said.contains(&format!("accesses {expected}\n")),
        "{said}, not {expected}"
    );
    assert!(said.contains("killed 0\nunfinished 0\n"), "{said}");
}
