//! Tests that the structure is as ARCHITECTURE.md describes it: imports between crates, the path of a trial, and the
//! files to change for additions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Maximum number of hops on the path of a trial.
const HOPS: usize = 15;
/// Maximum number of files that a new arena changes outside its own folder.
const ARENA_FILES: usize = 8;

/// Maximum number of lines in the sources of the binary: arguments, calls and printing.
const BINARY_LINES: usize = 5_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn architecture() -> String {
    fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap()
}

/// The text below a heading, up to the next heading.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text
        .split_once(&format!("\n## {heading}\n"))
        .unwrap_or_else(|| panic!("ARCHITECTURE.md has no section {heading}"));
    rest.split("\n## ").next().unwrap()
}

/// The rows of the table in a section, without its header.
fn rows(section: &str) -> Vec<Vec<&str>> {
    let lines = section.lines().filter(|line| line.starts_with('|'));
    let cells = |line: &'_ str| line.trim_matches('|').split('|').count();
    let all: Vec<&str> = lines.collect();
    assert!(all.iter().all(|line| cells(line) == cells(all[0])));
    all[2..]
        .iter()
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// The texts in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// A text without its code blocks.
fn without_code(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Imports of each crate, without tests. Crates have their names in ARCHITECTURE.md.
fn imports() -> BTreeMap<String, Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let short = |name: &serde_json::Value| {
        let name = name.as_str().unwrap();
        name.strip_prefix("pagetide-").unwrap_or(name).to_owned()
    };
    let packages = metadata["packages"].as_array().unwrap();
    let names: Vec<String> = packages
        .iter()
        .map(|package| short(&package["name"]))
        .collect();
    let of = |package: &serde_json::Value| {
        let dependencies = package["dependencies"].as_array().unwrap();
        let mut own: Vec<String> = dependencies
            .iter()
            .filter(|dependency| dependency["kind"] != "dev")
            .map(|dependency| short(&dependency["name"]))
            .filter(|name| names.contains(name))
            .collect();
        own.sort_unstable();
        own.dedup();
        own
    };
    names.iter().cloned().zip(packages.iter().map(of)).collect()
}

#[test]
fn crates_import_only_what_the_table_of_the_house_allows() {
    let text = architecture();
    let table = rows(section(&text, "The house"));
    let mut above: Vec<&str> = Vec::new();
    let mut imports = imports();
    for row in &table {
        let name = quoted(row[0])[0];
        let allowed = quoted(row[3]);
        for other in &allowed {
            assert!(
                above.contains(other),
                "`{name}` imports `{other}`, which stands below it: the table goes from the lowest crate to the highest"
            );
        }
        let found = imports.remove(name).unwrap_or_else(|| {
            panic!("ARCHITECTURE.md names the crate `{name}`, which is not there")
        });
        assert_eq!(
            found, allowed,
            "`{name}` imports the crates on the left, ARCHITECTURE.md allows those on the right: ask whether it may know \
             them, then change one of the two"
        );
        above.push(name);
    }
    assert!(
        imports.is_empty(),
        "ARCHITECTURE.md does not name the crates {:?}",
        imports.keys()
    );
}

#[test]
fn every_file_that_architecture_names_is_there() {
    let text = architecture();
    let mut seen = 0;
    for name in quoted(&without_code(&text)) {
        let is_file = name.contains('/')
            && [".rs", ".md", ".toml"]
                .iter()
                .any(|end| name.ends_with(end));
        let is_folder = name.ends_with('/') && name.contains("src/");
        if is_file || is_folder {
            let here = [root().join(name), root().join("crates").join(name)];
            assert!(here.iter().any(|path| path.exists()), "{name} is not there");
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen} files are named");
}

#[test]
fn the_way_of_a_trial_has_few_hops_and_each_is_where_it_says() {
    let text = architecture();
    let hops = rows(section(
        &text,
        "The way of a trial from the command line to the verdict",
    ));
    assert!(hops.len() <= HOPS, "{} hops", hops.len());
    for hop in hops {
        let (file, function) = (quoted(hop[1])[0], quoted(hop[2])[0]);
        let source = fs::read_to_string(root().join("crates").join(file))
            .unwrap_or_else(|why| panic!("hop {}: {file}: {why}", hop[0]));
        let is_defined = ["(", "<"]
            .iter()
            .any(|next| source.contains(&format!("fn {function}{next}")));
        assert!(
            is_defined,
            "hop {}: {file} has no function {function}",
            hop[0]
        );
    }
}

#[test]
fn an_arena_needs_few_files_outside_its_own_folder() {
    let text = architecture();
    let table = rows(section(&text, "To add a …"));
    let arena = table.iter().find(|row| row[0] == "arena").unwrap();
    // The table of crates in ARCHITECTURE.md is one more file to change.
    let files = quoted(arena[2]).len() + 1;
    assert!(files <= ARENA_FILES, "{files} files");
    for kind in ["scenario", "probe", "trace row", "counter", "format"] {
        assert!(
            table.iter().any(|row| row[0] == kind),
            "no row for a {kind}"
        );
    }
}

/// Number of lines in all sources below a folder.
fn lines_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap();
    let lines = entries.map(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            lines_below(&path)
        } else {
            fs::read_to_string(path).unwrap().lines().count()
        }
    });
    lines.sum()
}

#[test]
fn the_binary_is_thin() {
    let lines = lines_below(&root().join("crates/pagetide/src"));
    assert!(
        lines < BINARY_LINES,
        "the binary has {lines} lines, and {BINARY_LINES} are too many: move logic to the crate whose noun it is"
    );
}

/// Adds the Rust files of a folder to `files`.
fn sources_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources_below(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
}

/// `make test-all` finds its tests by the beginning of their mark. A test with another mark runs nowhere, unless another
/// test starts it.
#[test]
fn every_test_that_is_left_out_runs_in_test_all_or_is_started_by_another() {
    let mut files = Vec::new();
    sources_below(&root().join("crates"), &mut files);
    let (mark, mut marks) = ("#[ignore", 0);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        for rest in text
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix(mark))
        {
            let reason = rest.strip_prefix(" = \"").unwrap_or_default();
            let known = ["test-all", "run as a child by", "started by", "makes "];
            let is_known = known.iter().any(|start| reason.starts_with(start));
            assert!(is_known, "{}: {rest}", path.display());
            marks += 1;
        }
    }
    assert!(marks > 50, "{marks}");
}
