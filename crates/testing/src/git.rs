//! Git repositories for tests.

use std::path::Path;
use std::process::Command;

/// Runs git with the arguments `words` in a folder and returns its standard output. Commits get a fixed author.
///
/// # Panics
///
/// If git is not installed or fails.
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

/// Makes a folder a git repository with one commit that contains all its files.
pub fn tree_of(folder: &Path) {
    git(folder, &["init", "-q"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", "x"]);
}
