//! Tests of patches on the command line: errors are reported in one sentence before anything is built; a real patch
//! leads to a verdict.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Lab, one_sentence};
use pagetide_testing::{Need, skip};
use tempfile::TempDir;

/// A git tree with one source file.
fn tree() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("mm")).unwrap();
    fs::write(
        folder.path().join("mm/vmscan.c"),
        "one\ntwo\nthree\nfour\nfive\n",
    )
    .unwrap();
    pagetide_testing::git::tree_of(folder.path());
    folder
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn what_is_wrong_with_a_patch_is_said_in_one_sentence_before_anything_is_built() {
    let lab = Lab::with_own_cache();
    let (tree, patches) = (tree(), tempfile::tempdir().unwrap());
    let source = tree.path().display().to_string();
    let head = "--- a/mm/vmscan.c\n+++ b/mm/vmscan.c\n";
    for (name, text, code, word) in [
        ("empty.patch", String::new(), 4, "holds no patch"),
        (
            "prose.patch",
            "Subject: [PATCH] x\n\nno diff\n".into(),
            4,
            "holds no patch",
        ),
        (
            "cut.patch",
            format!("{head}@@ -1,3 +1,4 @@\n one\n"),
            4,
            "cannot be taken as a patch",
        ),
        (
            "hostile.patch",
            "--- a/x/y\n+++ b/../../etc/passwd\n@@ -0,0 +1 @@\n+x\n".into(),
            4,
            "do not trust this patch",
        ),
        (
            "other.patch",
            format!("{head}@@ -7,2 +7,2 @@ int f(void)\n-seven\n+7\n eight\n"),
            2,
            "rebase it",
        ),
        (
            "fuzz.patch",
            format!("{head}@@ -1,3 +1,4 @@\n ONE\n two\n+and\n three\n"),
            2,
            "fits only if 1 line of its context may differ",
        ),
        (
            "gone.patch",
            "--- a/mm/none.c\n+++ b/mm/none.c\n@@ -1 +1 @@\n-x\n+y\n".into(),
            2,
            "mm/none.c is not there",
        ),
    ] {
        let path = file(patches.path(), name, &text);
        let (_, err) = lab.ends(
            code,
            ["run", "hot-cold", "--source", &source, "--patch", &path],
        );
        let last = err.lines().next_back().unwrap_or_default();
        if last.contains("building a kernel needs") {
            skip(Need::Builds, format!("{name}: {last}"));
            continue;
        }
        one_sentence(last, &[word]);
        // The forecast of builds and trials is shown before the build starts. For later patches the source is in the
        // cache, so they are refused before the forecast.
        if name == "other.patch" {
            assert!(
                err.contains("to build, about") && err.contains("trials, about"),
                "{err}"
            );
        }
    }
    let written = fs::read_to_string(tree.path().join("mm/vmscan.c")).unwrap();
    assert_eq!(written, "one\ntwo\nthree\nfour\nfive\n");
}

#[test]
fn a_source_a_kernel_and_a_patch_are_not_mixed_up() {
    let lab = Lab::with_own_cache();
    let patches = tempfile::tempdir().unwrap();
    let path = file(
        patches.path(),
        "p.patch",
        "--- a/m/x\n+++ b/m/x\n@@ -1 +1 @@\n-x\n+y\n",
    );
    for (arguments, word) in [
        (
            vec![
                "run",
                "hot-cold",
                "--kernel",
                "debian:sid",
                "--patch",
                &path,
            ],
            "--patch",
        ),
        (
            vec![
                "run",
                "hot-cold",
                "--source",
                "debian:sid",
                "--patch",
                &path,
            ],
            "debian:6.12",
        ),
        (
            vec!["run", "hot-cold", "--source", "/no/tree", "--patch", &path],
            "git tree",
        ),
        (vec!["run", "--patch", &path, "-p", "pages=9M"], "name one"),
        (vec!["run"], "CAMPAIGN.toml"),
    ] {
        let (_, err) = lab.ends(4, &arguments);
        assert!(err.contains(word), "{arguments:?}: {err}");
    }
}

/// A patch that reverts the change of 2008 for used-once mapped pages: with it, these pages are activated at once.
const ACTIVATE: &str = include_str!("../../../patches/used-once-2008.patch");

/// Builds a real kernel. The base takes 6 minutes of processor time, once for each cache.
#[test]
fn real_patches_go_from_their_files_to_verdicts() {
    let Some(cache) = std::env::var_os("PAGETIDE_TEST_BUILDS").map(PathBuf::from) else {
        return skip(
            Need::Builds,
            "PAGETIDE_TEST_BUILDS names no cache folder to build kernels in (6 minutes once)",
        );
    };
    let lab = Lab::with_own_cache();
    let patches = tempfile::tempdir().unwrap();
    let cache = cache.display().to_string();
    let comment = "--- a/mm/vmscan.c\n+++ b/mm/vmscan.c\n@@ -927,1 +927,1 @@\n-/* Check if a folio is dirty or under writeback */\n\
                   +/* Check if a folio is dirty or under writeback. */\n";
    let path = file(patches.path(), "comment.patch", comment);
    let (_, err) = lab.ends(0, ["run", "hot-cold", "--cache", &cache, "--patch", &path]);
    assert!(err.contains("no change in code"), "{err}");

    let fault = ACTIVATE.replace(
        "return FOLIOREF_ACTIVATE;\n+\n",
        "return NO_SUCH_THING;\n+\n",
    );
    let path = file(patches.path(), "fault.patch", &fault);
    let (_, err) = lab.ends(2, ["run", "hot-cold", "--cache", &cache, "--patch", &path]);
    assert!(
        err.contains("NO_SUCH_THING") && err.contains("@@ -905,6 +905,9 @@"),
        "{err}"
    );

    // `mm-sync-cp` copies between two mappings. Pages that are activated at once displace pages that are needed.
    let path = file(patches.path(), "activate.patch", ACTIVATE);
    let (out, err) = lab.ends(
        1,
        [
            "run",
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
            "--patch",
            &path,
        ],
    );
    assert!(
        out.contains("the patch does more than move code"),
        "{out}\n{err}"
    );
    // The change activates mapped pages that are referenced once. All of its lines ran.
    assert!(
        out.contains("\nCoverage of patched: your patch changes "),
        "{out}"
    );
    let (out, _) = lab.ends(0, ["profile", "--coverage", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(all[0]["variant"], "patched", "{out}");
    let lines = all[0]["coverage"]["lines"].as_array().unwrap();
    let line = lines.iter().find(|line| {
        line["text"]
            .as_str()
            .unwrap()
            .contains("return FOLIOREF_ACTIVATE")
    });
    let line = line.unwrap_or_else(|| panic!("{out}"));
    assert!(line["executed"].as_u64().unwrap() > 0, "{out}");
    assert_eq!(line["file"], "mm/vmscan.c");
}
