//! Tests of journals that were truncated, are damaged, or cannot be written.

use std::process::Command;

use pagetide_host::journal::{Content, Journal, Unusable};
use pagetide_host::{Change, StateFolder, sweep};
use pagetide_testing::{Need, skip};

use crate::common::example;

/// A journal with two folders that were made, one of which is undone, and its text.
fn sample(folder: &std::path::Path) -> (StateFolder, std::path::PathBuf, Vec<u8>) {
    let state = StateFolder::at(folder.join("state"));
    let journal = Journal::create(&state).unwrap();
    let change = |name: &str| Change::Folder {
        path: folder.join(name),
    };
    for name in ["a", "b"] {
        let make = || {
            std::fs::create_dir(folder.join(name)).unwrap();
            Ok(())
        };
        let (entry, ()) = journal.make(change(name), make).unwrap();
        if name == "a" {
            assert!(journal.undo(&[entry]).is_empty());
        }
    }
    let path = journal.path();
    let text = std::fs::read(&path).unwrap();
    (state, path, text)
}

#[test]
fn a_journal_that_was_cut_anywhere_is_read_up_to_its_last_whole_line() {
    let folder = tempfile::tempdir().unwrap();
    let (_, _, text) = sample(folder.path());
    let whole = Content::parse(&text).unwrap();
    assert_eq!(whole.standing.len(), 1);
    let mut most = 0;
    for length in 0..text.len() {
        match Content::parse(&text[..length]) {
            Ok(content) => {
                assert!(content.standing.len() <= 1);
                most = most.max(content.standing.len());
            }
            Err(why) => assert!(matches!(why, Unusable::Empty), "{length}: {why}"),
        }
        // A file system may have allocated the end of the file without writing it.
        let mut zeros = text[..length].to_vec();
        zeros.resize(text.len(), 0);
        let _ = Content::parse(&zeros);
    }
    assert_eq!(most, 1);
}

#[test]
fn a_journal_of_another_version_or_with_a_damaged_line_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (state, path, text) = sample(folder.path());
    let text = String::from_utf8(text).unwrap();
    let dead = text.replace(
        &format!("\"pid\":{}", std::process::id()),
        "\"pid\":4194304",
    );
    for (bad, words) in [
        (dead.replace("\"version\":1", "\"version\":9"), "format 9"),
        (dead.replacen("{\"change\"", "{\"chance\"", 1), "line 2"),
        (dead.replacen("\"version\"", "\"vers", 1), "line 1"),
    ] {
        std::fs::write(&path, &bad).unwrap();
        let swept = sweep(&state).unwrap();
        let (found, why) = &swept.untouched[0];
        assert!(*found == path && why.contains(words), "{why}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), bad);
    }
    std::fs::write(&path, dead).unwrap();
    let swept = sweep(&state).unwrap();
    assert_eq!(swept.undone.len(), 1, "{swept:?}");
    assert!(!path.exists() && !folder.path().join("b").exists());
}

#[test]
#[ignore = "test-all"]
fn a_journal_stays_small_over_many_trials() {
    let folder = tempfile::tempdir().unwrap();
    let state = StateFolder::at(folder.path().join("state"));
    let journal = Journal::create(&state).unwrap();
    let change = |number: u32| Change::File {
        path: folder.path().join(format!("never-made-{number:0200}")),
    };
    let kept = journal.record(change(0)).unwrap();
    for number in 1..2000 {
        let entry = journal.record(change(number)).unwrap();
        assert!(journal.undo(&[entry]).is_empty());
    }
    let size = std::fs::metadata(journal.path()).unwrap().len();
    assert!(size < 300_000, "{size}");
    let content = Content::read(&journal.path()).unwrap();
    assert_eq!(content.standing.len(), 1);
    assert!(journal.undo(&[kept]).is_empty());
    assert!(journal.undo_all().is_empty() && !journal.path().exists());
}

#[test]
fn with_a_full_disk_nothing_is_changed_and_the_disk_is_named() {
    let Some(_turn) = crate::common::turn() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let before = crate::common::quiet_state(folder.path());
    let script = "mount -t tmpfs -o size=8k none \"$0\" && mkdir \"$0/state\" \
        && { cat /dev/zero > \"$0/state/lock\" 2>/dev/null; exec \"$@\"; }";
    let tool = example(folder.path());
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", script])
        .arg(folder.path())
        .arg(tool.get_program())
        .args(tool.get_args());
    let Ok(output) = command.output() else {
        return skip(Need::Root, "no program `unshare`");
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(errors.contains("writing the journal"), "{errors}");
    assert!(errors.contains("No space left"), "{errors}");
    let changed = crate::common::lasting_differences(&before, folder.path());
    assert!(changed.is_empty(), "{changed:?}");
}
