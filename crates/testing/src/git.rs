//! Git trees for tests.

use std::path::Path;
use std::process::Command;

/// What git says to these words in a folder; the author is somebody. Panics where it fails.
///
/// # Panics
///
/// Where git is missing or refuses.
pub fn git(folder: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(words)
        .output()
        .unwrap_or_else(|why| panic!("git {words:?}: {why}"));
    assert!(output.status.success(), "git {words:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Makes a git tree of a folder, with all that is in it as its only commit.
pub fn tree_of(folder: &Path) {
    git(folder, &["init", "-q"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "x"]);
}
