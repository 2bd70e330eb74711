//! Search for the first bad kernel or commit with the real program: over packaged kernels, with the search killed and
//! resumed, and over a git tree, if kernels may be built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::{Lab, one_sentence};
use pagetide_testing::git::git;
use pagetide_testing::{Need, skip};

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

/// Kills the program as soon as this number of records is in the store, which must happen within `limit`.
fn killed_after(lab: &Lab, arguments: &[&str], records: usize, limit: Duration) {
    let mut child = lab.start(arguments);
    let began = Instant::now();
    let count = || {
        let mut count = 0;
        let mut folders = vec![lab.store().join("records")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    count += 1;
                }
            }
        }
        count
    };
    while count() < records {
        assert!(began.elapsed() < limit, "{} records", count());
        assert!(child.try_wait().unwrap().is_none(), "it ended on its own");
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A workload that takes longer on 6.12 than on 6.1, because more pages are swapped.
const WRITERS: &str =
    "usemem --memory 24M --swap-size 64M -p processes=2 -p size=14M --metric write --seeds 6";

#[test]
fn two_packaged_kernels_with_none_between_are_compared_and_the_second_is_the_first_that_differs() {
    let (oldest, newer) = ("debian:bookworm", crate::common::KERNEL);
    let Some(lab) = Lab::that_runs_on(oldest) else {
        return;
    };
    let ends = ["bisect", "--good", oldest, "--bad", newer, "--json"];
    let workload = WRITERS.split(' ').chain(["--observe=none"]);
    let search = ends.into_iter().chain(workload);
    let found = json(&lab.ends(0, search).0);
    let name = found["first_bad"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("6.12."), "{name}");
    assert_eq!(found["comparison"]["columns"][1]["name"], name);
}

#[test]
#[ignore = "test-all"]
fn the_first_packaged_kernel_that_differs_is_found_by_a_search_that_was_killed() {
    let Some(lab) = Lab::that_runs() else { return };
    for kernel in ["debian:bookworm", "debian:sid"] {
        if Lab::that_runs_on(kernel).is_none() {
            return;
        }
    }
    let ends = ["bisect", "--good", "debian:bookworm", "--bad", "debian:sid"];
    let among = ["--kernel", crate::common::KERNEL, "--log", "bisect.log"];
    let workload: Vec<&str> = WRITERS.split(' ').collect();
    let search = [&ends[..], &among, &workload].concat();
    killed_after(&lab, &search, 9, Duration::from_mins(5));
    let (out, err) = lab.ends(0, [&search[..], &["--json"]].concat());
    assert!(err.contains("1 version between good and bad"), "{err}");
    assert!(err.contains("more have records"), "it began anew: {err}");
    let found = json(&out);
    let marks: Vec<(&str, &str)> = found["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| {
            let name = step["version"]["name"].as_str().unwrap();
            (name, step["mark"].as_str().unwrap())
        })
        .collect();
    assert_eq!(marks.len(), 2, "{marks:?}");
    assert!(
        marks[0].0.starts_with("7.") && marks[0].1 == "bad",
        "{marks:?}"
    );
    assert!(marks[1].0.starts_with("6.12."), "{marks:?}");
    let first = if marks[1].1 == "bad" {
        marks[1].0
    } else {
        marks[0].0
    };
    assert_eq!(found["first_bad"][0]["name"], first);
    // The two versions are compared, and their difference is explained.
    assert_eq!(found["comparison"]["columns"][1]["name"], first);
    assert!(
        !found["comparison"]["explanations"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    let log = fs::read_to_string(lab.folder().join("bisect.log")).unwrap();
    assert!(log.contains("# first bad commit: ["), "{log}");
    // All trials have records now, so the output as mail runs no trials.
    let (mail, err) = lab.ends(0, [&search[..], &["--as", "mail"]].concat());
    assert!(!err.contains("trials to run"), "{err}");
    assert!(
        mail.starts_with("The first bad version is ") && mail.is_ascii(),
        "{mail}"
    );
    assert!(mail.lines().all(|line| line.len() <= 120), "{mail}");
}

#[test]
fn what_cannot_be_searched_is_said_in_one_sentence_before_anything_runs() {
    let lab = Lab::with_own_cache();
    let tree = tempfile::tempdir().unwrap();
    fs::write(tree.path().join("a"), "a\n").unwrap();
    pagetide_testing::git::tree_of(tree.path());
    git(tree.path(), &["commit", "-q", "--allow-empty", "-m", "y"]);
    let source = tree.path().display().to_string();
    let over = |good: &str, bad: &str, more: &[&str]| {
        let words = [
            "bisect", "--source", &source, "--good", good, "--bad", bad, "linear",
        ];
        let all = [&words[..], more].concat();
        all.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let debian = over("a", "b", &[]).into_iter();
    let debian: Vec<String> = debian
        .map(|word| {
            if word == source {
                "debian:6.12".into()
            } else {
                word
            }
        })
        .collect();
    for (arguments, word) in [
        (over("HEAD", "HEAD~1", &[]), "is no ancestor"),
        (over("HEAD", "HEAD", &[]), "is no ancestor"),
        (
            over("HEAD~1", "HEAD", &["--metric", "rnu"]),
            "no metric `rnu`",
        ),
        (
            over("HEAD~1", "HEAD", &["-p", "refs=1", "-p", "refs=2"]),
            "one value",
        ),
        (
            over("HEAD~1", "HEAD", &["--vs", "vm.swappiness=1"]),
            "no --vs",
        ),
        (debian, "no history"),
    ] {
        let (_, err) = lab.ends(4, &arguments);
        one_sentence(err.lines().next_back().unwrap_or_default(), &[word]);
    }
}

/// Appends a line to a file in the tree.
fn append(tree: &Path, file: &str, line: &str) {
    let path = tree.join(file);
    let mut text = fs::read_to_string(&path).unwrap_or_default();
    text.push_str(line);
    fs::write(path, text).unwrap();
}

/// Creates 16 commits on Debian's source: comments, documents, unused functions, a commit that does not compile and its
/// correction. The eleventh commit plants a fault.
fn history(tree: &Path) {
    let unused = |number: usize| {
        format!(
            "\nint unused_{number}(int a);\nint unused_{number}(int a)\n{{\n\treturn a + {number};\n}}\n"
        )
    };
    let files = [
        "mm/swap.c",
        "mm/filemap.c",
        "mm/util.c",
        "mm/page_alloc.c",
        "mm/truncate.c",
        "mm/rmap.c",
        "mm/mmap.c",
        "mm/workingset.c",
        "",
        "mm/memory.c",
        "",
        "mm/shmem.c",
        "Documentation/mm/index.rst",
        "mm/swap_state.c",
        "mm/readahead.c",
        "mm/vmscan.c",
    ];
    for (number, file) in files.iter().enumerate() {
        let subject = match number {
            7 => {
                append(tree, file, "int broken = NO_SUCH_THING;\n");
                "does not compile"
            }
            8 => {
                let path = tree.join("mm/workingset.c");
                let text = fs::read_to_string(&path).unwrap();
                fs::write(path, text.replace("int broken = NO_SUCH_THING;\n", "")).unwrap();
                "mend the build"
            }
            10 => {
                let patch = Path::new(env!("CARGO_MANIFEST_DIR"))
                    .join("../../patches/used-once-2008.patch");
                git(
                    tree,
                    &[
                        "apply",
                        &patch.canonicalize().unwrap().display().to_string(),
                    ],
                );
                "activate mapped file folios at their first reference"
            }
            _ if number % 3 == 0 => {
                append(tree, file, &unused(number));
                "a function that nothing calls"
            }
            _ => {
                append(tree, file, "\n/* a word */\n");
                "a comment"
            }
        };
        git(
            tree,
            &["commit", "-q", "-a", "-m", &format!("{number}: {subject}")],
        );
    }
}

/// Builds a real kernel at every step. The first takes 6 minutes of processor time, once for each cache.
#[test]
fn the_commit_that_plants_a_fault_is_found_unattended() {
    let Some(cache) = std::env::var_os("PAGETIDE_TEST_BUILDS").map(PathBuf::from) else {
        return skip(
            Need::Builds,
            "PAGETIDE_TEST_BUILDS names no cache folder to build kernels in (15 minutes)",
        );
    };
    let lab = Lab::with_own_cache();
    let sources = fs::read_dir(cache.join("sources"))
        .into_iter()
        .flatten()
        .flatten();
    let is_debian = |path: &PathBuf| {
        path.join("tree/mm/vmscan.c").is_file() && path.to_string_lossy().contains("6.12")
    };
    let Some(source) = sources.map(|entry| entry.path()).find(is_debian) else {
        return skip(
            Need::Builds,
            "no source in PAGETIDE_TEST_BUILDS: run the test of patches first",
        );
    };
    let tree = lab.folder().join("linux");
    let copied = Command::new("cp")
        .arg("-a")
        .arg(source.join("tree"))
        .arg(&tree)
        .status();
    assert!(copied.unwrap().success());
    // Files left by patches in the source become part of the first commit.
    git(&tree, &["init", "-q", "-b", "main"]);
    git(&tree, &["add", "-A", "-f"]);
    git(&tree, &["commit", "-q", "-m", "base"]);
    history(&tree);
    let before = git(&tree, &["status", "--porcelain"]);
    let (cache, tree_name) = (cache.display().to_string(), tree.display().to_string());
    let search = [
        "bisect",
        "--source",
        &tree_name,
        "--good",
        "HEAD~16",
        "--bad",
        "HEAD",
        "filecopy",
        "-p",
        "methods=mm-sync-cp",
        "-p",
        "victim=0",
        "--memory",
        "16M",
        "--set",
        "lru_gen/enabled=0",
        "--cache",
        &cache,
        "--log",
        "bisect.log",
        "--json",
    ];
    // The first of these records requires a complete kernel build.
    killed_after(&lab, &search, 18, Duration::from_hours(2));
    let (out, err) = lab.ends(0, search);
    let found = json(&out);
    let subject = found["first_bad"][0]["what"].as_str().unwrap();
    assert_eq!(
        subject, "10: activate mapped file folios at their first reference",
        "{err}"
    );
    assert_eq!(
        git(&tree, &["status", "--porcelain"]),
        before,
        "the user's tree was changed"
    );
    let log = lab.folder().join("bisect.log").display().to_string();
    let replayed = git(&tree, &["bisect", "replay", &log]);
    assert!(replayed.contains("is the first bad commit"), "{replayed}");
}
