//! The example commands in help texts, README and docs: each run can be planned, and short ones finish with their
//! defaults. Parsing is tested in `definition.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Lab, text};
use pagetide_testing::output::{self, Block};
use pagetide_testing::program::write_program;
use pagetide_testing::{Need, documents, skip};

/// Texts in examples that need something that tests do not have: a kernel tree, a root, another release of Python, a
/// program that few machines have, a variable of the shell.
const NOT_HERE: [&str; 6] = ["~/", ".tar", "/usr/lib/python", "https://", "numactl", "$"];

/// A patch that fits any source; it replaces the reader's own patches.
const ANY_PATCH: &str = "--- /dev/null\n+++ b/mm/any.h\n@@ -0,0 +1 @@\n+/* any */\n";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// All examples without the program's name and without repetitions: from the help of every command, and from code
/// blocks in the documents.
fn examples(lab: &Lab) -> Vec<Vec<String>> {
    let (help, _) = lab.ends(0, ["--help"]);
    // A line with a command is indented by two spaces; its description may continue on further lines.
    let lines = help.lines().take_while(|line| *line != "Options:");
    let commands = lines.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let mut lines: Vec<String> = Vec::new();
    for command in commands.filter(|command| !command.is_empty()) {
        let (help, _) = lab.ends(0, [command, "--help"]);
        let examples = help
            .lines()
            .skip_while(|line| !line.starts_with("Examples:"));
        let examples = examples.skip(1).take_while(|line| !line.is_empty());
        lines.extend(examples.map(|line| line.trim().to_owned()));
    }
    let root = repository();
    for document in documents::all(&root).unwrap() {
        let text = fs::read_to_string(root.join(document)).unwrap();
        let shown = documents::shell_lines(&text).into_iter();
        lines.extend(shown.map(|(_, line)| line));
    }
    lines.extend(blocks().into_iter().flat_map(|(_, block)| block.commands));
    let mut all: Vec<Vec<String>> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("pagetide "))
        .map(documents::words)
        .collect();
    all.sort();
    all.dedup();
    all
}

/// The blocks of output in the documents, each with its place.
fn blocks() -> Vec<(String, Block)> {
    let mut all = Vec::new();
    for document in documents::all(&repository()).unwrap() {
        let text = fs::read_to_string(repository().join(&document)).unwrap();
        let found = output::blocks(&text);
        let found = found.unwrap_or_else(|faults| panic!("{document}:{}", faults.join("\n")));
        all.extend(
            found
                .into_iter()
                .map(|block| (format!("{document}:{}", block.line), block)),
        );
    }
    all
}

/// Inserts options into an example. If the example runs the user's own program, they precede its command line.
fn with(example: &[String], options: &[&str]) -> Vec<String> {
    let end = example
        .iter()
        .position(|word| word == "--")
        .unwrap_or(example.len());
    let (before, after) = example.split_at(end);
    let options = options.iter().map(|option| (*option).to_owned());
    before
        .iter()
        .cloned()
        .chain(options)
        .chain(after.iter().cloned())
        .collect()
}

/// The examples of `run` that tests can run: they need nothing that is missing in tests.
fn runs(lab: &Lab) -> Vec<Vec<String>> {
    let here = |example: &Vec<String>| {
        !example
            .iter()
            .any(|word| NOT_HERE.iter().any(|part| word.contains(part)))
    };
    let runs = examples(lab)
        .into_iter()
        .filter(|example| example[0] == "run");
    runs.filter(here).collect()
}

/// Creates a laboratory with everything that examples name: campaigns, patches, and a file of numbers.
fn prepared() -> Lab {
    let lab = Lab::new();
    for folder in ["campaigns", "patches"] {
        let theirs = repository().join(folder);
        std::os::unix::fs::symlink(theirs, lab.folder().join(folder)).unwrap();
    }
    for name in ["my.patch", "a.patch", "b.patch"] {
        fs::write(lab.folder().join(name), ANY_PATCH).unwrap();
    }
    // A program in the current folder that prints a number as a case in C does.
    write_program(&lab.folder().join("case"), "#!/bin/sh\necho time 5\n");
    fs::write(lab.folder().join("numbers"), output::numbers(20_000)).unwrap();
    lab
}

#[test]
fn every_output_in_the_documents_is_what_its_command_wrote_with_the_guest_of_these_sources() {
    let sources = output::sources(&repository()).unwrap();
    let mut faults = Vec::new();
    for (place, block) in blocks() {
        if block.seal != block.right_seal() {
            faults.push(format!("{place}: changed by hand: run `make docs`"));
        } else if block.is_stale(&sources) && !block.is_long() {
            faults.push(format!("{place}: stale, of another guest: run `make docs`"));
        } else if block.is_stale(&sources) {
            println!("{place}: of an older guest: `make docs DOCS=all`");
        }
    }
    assert_eq!(faults, Vec::<String>::new());
}

#[test]
fn outputs_that_need_no_guest_are_what_the_program_writes_today() {
    let lab = prepared();
    let mut seen = 0;
    let here = blocks().into_iter();
    for (place, block) in here.filter(|(_, block)| block.sources == output::NO_GUEST) {
        let mut out = String::new();
        for command in &block.commands {
            out = lab.ends(0, &documents::words(command)[1..]).0;
        }
        assert_eq!(
            block.shown(&out),
            Ok(block.text),
            "{place}: run `make docs`"
        );
        seen += 1;
    }
    assert!(seen >= 2, "only {seen}");
}

#[test]
#[ignore = "test-all"]
fn every_run_among_the_examples_can_be_planned() {
    let lab = prepared();
    let runs = runs(&lab);
    assert!(runs.len() > 10, "only {runs:?}");
    for example in &runs {
        let mut plan = example.clone();
        "plan".clone_into(&mut plan[0]);
        // Options for the table at the end and for the exit status do not affect the plan.
        plan.retain(|word| word != "--exit-zero");
        while let Some(at) = plan.iter().position(|word| word == "--as") {
            plan.drain(at..at + 2);
        }
        let output = lab.pagetide(&plan).output().unwrap();
        let said = text(&output.stderr);
        if said.contains("cannot be had") || said.contains("is not to be had") {
            skip(Need::Kernels, said);
            continue;
        }
        if said.contains("there is no program") {
            skip(Need::Runtimes, said);
            continue;
        }
        assert!(output.status.success(), "{plan:?}: {said}");
    }
}

#[test]
#[ignore = "test-all"]
fn runs_among_the_examples_end_alive_at_their_defaults() {
    let Some(_) = Lab::that_runs() else { return };
    let lab = prepared();
    let mut ran = 0;
    for example in runs(&lab) {
        // Campaigns and machines of the papers' sizes take minutes to hours, and trials on the running kernel need a quiet
        // machine; they have their own tests. Other kernels may not be available.
        let long = |word: &String| {
            let words = ["--kernel", "--sizes", "--patch", "host"];
            word.contains(".toml") || word.starts_with("total:") || words.contains(&word.as_str())
        };
        if example.iter().any(long) {
            continue;
        }
        let mut one = example.clone();
        one.retain(|word| !word.starts_with("--observe") && word != "--exit-zero");
        one = with(
            &one,
            &["--first-seed", "1", "--observe=none", "--exit-zero"],
        );
        match one.iter().position(|word| word == "--seeds") {
            Some(at) => "1".clone_into(&mut one[at + 1]),
            None => one = with(&one, &["--seeds", "1"]),
        }
        let (out, err) = lab.ends(0, &one);
        assert!(
            !out.contains("ran out of memory"),
            "{example:?}: {out}{err}"
        );
        ran += 1;
    }
    assert!(ran >= 4, "only {ran}");
    let (list, _) = lab.ends(0, ["list", "records", "--json"]);
    let records: Vec<serde_json::Value> = serde_json::from_str(&list).unwrap();
    for record in &records {
        assert!(record["invalid"].is_null(), "{record}");
    }
}
