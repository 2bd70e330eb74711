//! Tests of `pagetide hunt` with real kernels.

use std::fs;

use crate::common::{KERNEL, Lab};
use serde_json::Value;

/// A space around a writer to a slow disk, which 6.12 kills although most of memory is page cache.
const WRITER: &str = r#"
memory = ["10M"]
swap = ["zram"]
files-on = ["disk:8ms,20MB/s"]
processes = 1
copies = 1
groups = 0
segments = 1
length = 2
kinds = ["file"]
sizes = ["200%"]
contents = ["0.35"]
phases = ["fill", "sync"]
patterns = ["linear"]

[settings]

[[start]]
process = [{ name = "writer", segment = [{ name = "file", kind = "file", size = "200%", empty = true }], phase = [{ do = "fill", segment = "file", by = "call" }] }]
"#;

fn hunt<'a>(space: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec![
        "hunt", "--kernel", KERNEL, "--goal", "killed", "--space", space, "--output", "cases",
    ];
    all.extend(more);
    all
}

#[test]
fn a_short_hunt_ends_with_files_that_stand_alone_and_the_same_again_from_the_records() {
    let Some(lab) = Lab::that_runs() else { return };
    let space = lab.folder().join("space.toml");
    fs::write(&space, WRITER).unwrap();
    let space = space.to_str().unwrap();
    let more = ["--budget", "10", "--cases", "1", "--json"];
    let (out, _) = lab.ends(1, hunt(space, &more));
    let hunted: Value = serde_json::from_str(&out).unwrap();
    let find = &hunted["account"]["found"][0];
    assert!(find["seeds"]["holds"].as_u64().unwrap() >= 6, "{find}");
    assert_eq!(find["seeds"]["tried"], 8, "{find}");
    assert_eq!(find["is_smallest"], false, "the budget ends before");
    let folder = lab.folder().join("cases").join("killed-1");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let mail = read("mail.txt");
    assert!(
        mail.contains("kills although memory could be reclaimed"),
        "{mail}"
    );
    assert!(mail.contains("oom_kill"), "{mail}");
    assert!(read("case.c").contains("int main("));
    // The same command needs no trial and gives the same, whatever runs at the same time.
    let before = lab.ends(0, ["list", "records", "--json"]).0;
    let again = ["--budget", "10", "--cases", "1", "--json", "--jobs", "1"];
    assert_eq!(lab.ends(1, hunt(space, &again)).0, out);
    assert_eq!(lab.ends(0, ["list", "records", "--json"]).0, before);
    // The case runs by itself.
    let case = folder.join("case.toml");
    let plan = lab.ends(0, ["plan", case.to_str().unwrap()]).0;
    assert!(plan.contains("killed-1"), "{plan}");
}
