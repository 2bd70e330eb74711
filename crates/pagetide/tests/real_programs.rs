//! Tests of the programs of `campaigns/programs`, from Debian packages, on three kernels: each is run twice, alone and
//! with other load, and must give identical records.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::Lab;
use pagetide_testing::{Need, skip};
use serde_json::Value;

/// Environment variable with the programs to run: `all`, or names of files separated by commas.
const ASKED: &str = "PAGETIDE_TEST_PROGRAMS";

/// Paths of the campaign files, sorted.
fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns/programs");
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    files.sort();
    files
}

fn name(file: &Path) -> String {
    file.file_stem().unwrap().to_string_lossy().into_owned()
}

/// Busy processes, one for each processor, which live as long as this value. Guests then get half of the processor
/// time.
struct Load(Vec<Child>);

impl Load {
    fn new() -> Self {
        let mut spin = Command::new("sh");
        spin.args(["-c", "while :; do :; done"])
            .stdin(Stdio::null());
        let count = std::thread::available_parallelism().map_or(2, usize::from);
        Self((0..count).map(|_| spin.spawn().unwrap()).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs a campaign again with one seed and returns the digest of each variant's record. All trials must be valid.
fn digests(lab: &Lab, file: &Path) -> BTreeMap<String, String> {
    let file = file.to_str().unwrap();
    let words = [
        "run",
        file,
        "--seeds",
        "1",
        "--fresh",
        "--exit-zero",
        "--cache-limit",
        "20G",
    ];
    lab.ends(0, words);
    let (list, _) = lab.ends(0, ["list", "records", "--json", "--limit", "3"]);
    let records: Vec<Value> = serde_json::from_str(&list).unwrap();
    let digest = |record: &Value| {
        assert!(record["invalid"].is_null(), "{file}: {record}");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&record["variant"]["name"]), text(&record["digest"]))
    };
    records.iter().map(digest).collect()
}

#[test]
#[ignore = "test-all"]
fn programs_of_debian_give_the_same_records_on_three_kernels_alone_and_beside_load() {
    let Ok(asked) = std::env::var(ASKED) else {
        return skip(
            Need::Network,
            format!("{ASKED} is not set to all, or to names of campaigns/programs"),
        );
    };
    let Some(_) = Lab::that_runs() else { return };
    let wanted: Vec<&str> = asked.split(',').collect();
    let all = files();
    assert!(all.len() >= 8, "{all:?}");
    let chosen: Vec<&PathBuf> = all
        .iter()
        .filter(|file| wanted == ["all"] || wanted.contains(&name(file).as_str()))
        .collect();
    assert!(!chosen.is_empty(), "no program is called {asked}: {all:?}");
    for file in chosen {
        let lab = Lab::new();
        let alone = digests(&lab, file);
        assert_eq!(alone.len(), 3, "{alone:?}");
        let load = Load::new();
        let beside = digests(&lab, file);
        drop(load);
        assert_eq!(alone, beside, "{}", file.display());
        println!("{}: the same on {:?}", name(file), alone.keys());
    }
}
