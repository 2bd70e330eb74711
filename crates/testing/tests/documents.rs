//! Tests that all links, anchors and make targets in the documents exist, and that the documents stay short.

#![allow(clippy::unwrap_used, reason = "what cannot be read fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use pagetide_testing::documents::{all, anchors, code_spans, links, shell_lines, words};

/// Maximum number of lines of README.md.
const README_LINES: usize = 100;
/// Maximum number of lines of a page about a task.
const PAGE_LINES: usize = 200;
/// Paths of generated pages, whose length is not limited.
const MADE: [&str; 2] = ["docs/campaigns.md", "docs/scenarios.md"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

#[test]
fn every_relative_link_leads_to_a_file_and_every_anchor_to_a_heading() {
    let (mut faults, mut seen) = (Vec::new(), 0);
    let others = ["ARCHITECTURE.md", "CHANGELOG.md"].map(str::to_owned);
    for document in all(&repository()).unwrap().into_iter().chain(others) {
        for (line, target) in links(&read(&document)) {
            if target.contains("://") {
                continue;
            }
            seen += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let folder = Path::new(&document).parent().unwrap();
            let path = match file {
                "" => PathBuf::from(&document),
                file => folder.join(file),
            };
            if !repository().join(&path).exists() {
                faults.push(format!("{document}:{line}: {target}: no such file"));
            } else if !anchor.is_empty() && !anchors(&read(&path)).contains(&anchor.to_owned()) {
                faults.push(format!("{document}:{line}: {target}: no such heading"));
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(seen > 50, "only {seen}");
}

#[test]
fn every_target_of_make_that_the_documents_name_is_in_the_makefile() {
    let makefile = read("Makefile");
    let rules = makefile.lines().filter_map(|line| line.split_once(':'));
    let targets: Vec<&str> = rules.flat_map(|(names, _)| names.split(' ')).collect();
    let (mut faults, mut seen) = (Vec::new(), 0);
    for document in all(&repository()).unwrap() {
        let text = read(&document);
        for (line, command) in [shell_lines(&text), code_spans(&text)].concat() {
            let command = words(&command);
            if command.first().is_none_or(|word| word != "make") {
                continue;
            }
            let named = command[1..].iter().filter(|word| !word.contains('='));
            for target in named {
                seen += 1;
                if !targets.contains(&target.as_str()) {
                    faults.push(format!("{document}:{line}: make {target}"));
                }
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(seen > 5, "only {seen}");
}

#[test]
fn every_document_is_short_and_in_the_index() {
    let index = links(&read("docs/README.md"));
    for document in all(&repository()).unwrap() {
        let lines = read(&document).lines().count();
        let most = match document.as_str() {
            "README.md" => README_LINES,
            name if MADE.contains(&name) || name.starts_with("docs/notes/") => usize::MAX,
            _ => PAGE_LINES,
        };
        assert!(lines <= most, "{document}: {lines} lines, at most {most}");
        let Some(name) = document.strip_prefix("docs/") else {
            continue;
        };
        let is_listed = index.iter().any(|(_, target)| target == name);
        assert!(
            is_listed || name == "README.md",
            "{document} is not in docs/README.md"
        );
    }
}
