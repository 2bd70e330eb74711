//! A user's git tree. Its files are written into the cache, with a separate index. The user's folder, index and
//! branches are never changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use pagetide_kernel::{Digest, Stop};
use pagetide_outside::{FileOrigin, read_text};
use pagetide_system::child::{self, Failure, Limits};

use crate::error::SourceError;
use crate::step::{BuildStep, OnStep};
use crate::tree::{Files, MAX_NOTE_BYTES, Tree};

/// Time limit for a git command: enough for a checkout of the kernel over a slow network file system.
const PATIENCE: Duration = Duration::from_hours(1);
/// Maximum size of git's output in bytes: enough for the hashes of six million commits.
const MAX_PRINTED: usize = 256 << 20;

/// A revision of a git tree.
#[derive(Debug, Clone)]
pub struct Revision {
    /// Path of the user's folder.
    folder: PathBuf,
    /// Path of the repository's git directory.
    git: String,
    /// Full hash of the commit.
    pub commit: String,
    /// Name for messages, made of the names of the tree and of the revision.
    pub name: String,
}

impl Revision {
    /// Finds the commit for a revision of a git tree; `None` stands for `HEAD` and notes uncommitted changes. Fails if
    /// git does not know the revision.
    pub fn find(
        folder: &Path,
        revision: Option<&str>,
        watch: &mut OnStep,
    ) -> Result<Self, SourceError> {
        let git = git(
            folder,
            &["-C", &text(folder)],
            &["rev-parse", "--absolute-git-dir"],
            "read the tree",
        )?;
        let wanted = revision.unwrap_or("HEAD");
        let commit = self::git(
            folder,
            &["--git-dir", &git],
            &[
                "rev-parse",
                "--verify",
                "--quiet",
                "--end-of-options",
                &format!("{wanted}^{{commit}}"),
            ],
            &format!("find {wanted}"),
        )?;
        if revision.is_none() {
            let status = run(
                folder,
                &["-C", &text(folder)],
                &["diff", "--quiet", "HEAD", "--"],
                None,
                &Stop::default(),
            )?;
            if status.status.code() == Some(1) {
                watch(&BuildStep::Note(format!(
                    "{} has changes that are not committed: they are left out",
                    folder.display()
                )));
            }
        }
        let short = commit.get(..12).unwrap_or(&commit);
        let tree = folder.file_name().map_or_else(
            || "git".to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
        Ok(Self {
            folder: folder.to_owned(),
            git,
            name: match revision {
                Some(revision) if !commit.starts_with(revision) => {
                    format!("{tree}@{revision} ({short})")
                }
                _ => format!("{tree}@{short}"),
            },
            commit,
        })
    }

    /// Returns the name of the tree's folder in the cache: the same for all revisions of a git tree.
    pub fn key(&self) -> String {
        format!("git-{}", Digest::of(self.git.as_bytes()).short())
    }

    /// Returns true if the source folder `place` in the cache contains the files of this revision.
    pub fn is_in(&self, place: &Path) -> bool {
        read_text(&place.join("commit"), FileOrigin::Own, MAX_NOTE_BYTES)
            .is_ok_and(|commit| commit == self.commit)
    }

    /// Writes the files of this revision into the cache. Files that do not differ are not written.
    pub fn check_out(
        &self,
        tree: &Tree,
        stop: &Stop,
        watch: &mut OnStep,
    ) -> Result<(), SourceError> {
        if self.is_in(tree.folder()) {
            return Ok(());
        }
        let marker = tree.folder().join("commit");
        watch(&BuildStep::CheckingOut {
            revision: self.name.clone(),
        });
        // Patches are removed first, because git expects the files that its index lists.
        tree.bring_to(&Files::new())?;
        let _ = fs::remove_file(&marker);
        let top = tree.top();
        fs::create_dir_all(&top).map_err(SourceError::cache("making", &top))?;
        let index = tree.folder().join("index");
        // A killed git may have left this lock file. No other process works here, because this process holds the tree's
        // lock.
        let _ = fs::remove_file(index.with_extension("lock"));
        git_with(
            &self.folder,
            &["--git-dir", &self.git, "--work-tree", &text(&top)],
            &["read-tree", "--reset", "-u", &self.commit],
            &format!("write {}", self.name),
            Some(&index),
            stop,
        )?;
        if stop.is_set() {
            return Err(SourceError::Stopped);
        }
        crate::tree::write(&marker, self.commit.as_bytes())
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Runs a git command that only reads the tree, and returns its output. `attempt` describes the command in an error.
pub(crate) fn ask(folder: &Path, arguments: &[&str], attempt: &str) -> Result<String, SourceError> {
    // The user's display settings must not change the output.
    let plain = ["-c", "log.showSignature=false", "-c", "color.ui=false"];
    let path = text(folder);
    let place = [&plain[..], &["-C", &path]].concat();
    git(folder, &place, arguments, attempt)
}

fn git(
    folder: &Path,
    place: &[&str],
    arguments: &[&str],
    attempt: &str,
) -> Result<String, SourceError> {
    git_with(folder, place, arguments, attempt, None, &Stop::default())
}

fn git_with(
    folder: &Path,
    place: &[&str],
    arguments: &[&str],
    attempt: &str,
    index: Option<&Path>,
    stop: &Stop,
) -> Result<String, SourceError> {
    let output = run(folder, place, arguments, index, stop)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(SourceError::Git {
        attempt: attempt.to_owned(),
        said: errors
            .lines()
            .next_back()
            .unwrap_or("it knows no such thing")
            .trim_start_matches("fatal: ")
            .to_owned(),
        path: folder.to_owned(),
    })
}

/// Runs git such that it takes no locks in the user's tree, runs no hooks and fetches nothing.
fn run(
    folder: &Path,
    place: &[&str],
    arguments: &[&str],
    index: Option<&Path>,
    stop: &Stop,
) -> Result<Output, SourceError> {
    let mut command = child::command("git");
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
    ] {
        command.env_remove(name);
    }
    command
        .args([
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.fsmonitor=false",
        ])
        .args(place)
        .args(arguments)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C");
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    let limits = Limits {
        time: PATIENCE,
        output: MAX_PRINTED,
        stop: &|| stop.is_set(),
    };
    child::run(&mut command, &limits).map_err(|failure| match failure {
        Failure::Stopped => SourceError::Stopped,
        failure => SourceError::Git {
            attempt: "do its work".to_owned(),
            said: format!("it {failure}"),
            path: folder.to_owned(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagetide_testing::git::git;

    fn everything(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    all.push((entry.path(), fs::read(entry.path()).unwrap()));
                }
            }
        }
        all.sort();
        all
    }

    #[test]
    fn revisions_are_written_into_the_cache_and_the_users_tree_stays_as_it_is() {
        let theirs = tempfile::tempdir().unwrap();
        let path = theirs.path();
        git(path, &["init", "-q"]);
        for (content, message) in [("one\n", "1"), ("two\n", "2")] {
            fs::write(path.join("a.c"), content).unwrap();
            fs::write(path.join("same.c"), "same\n").unwrap();
            git(path, &["add", "-A"]);
            git(path, &["commit", "-q", "-m", message]);
        }
        fs::write(path.join("a.c"), "not committed\n").unwrap();
        let before = everything(path);

        let cache = tempfile::tempdir().unwrap();
        let (stop, mut said) = (Stop::default(), Vec::new());
        let mut watch = |step: &BuildStep| said.push(step.to_string());
        let tree = Tree::take(cache.path(), "theirs", &stop, &mut watch).unwrap();
        let head = Revision::find(path, None, &mut watch).unwrap();
        head.check_out(&tree, &stop, &mut watch).unwrap();
        let read = |name: &str| fs::read_to_string(tree.top().join(name)).unwrap();
        let stamp = fs::metadata(tree.top().join("same.c"))
            .unwrap()
            .modified()
            .unwrap();
        assert_eq!(read("a.c"), "two\n");
        let first = Revision::find(path, Some("HEAD~1"), &mut watch).unwrap();
        first.check_out(&tree, &stop, &mut watch).unwrap();
        assert_eq!(read("a.c"), "one\n");
        let after = fs::metadata(tree.top().join("same.c"))
            .unwrap()
            .modified()
            .unwrap();
        assert_eq!(stamp, after, "a file that is the same was written again");
        assert_eq!(first.key(), head.key());

        assert_eq!(
            everything(path),
            before,
            "the user's tree or git's files in it were changed"
        );
        assert!(
            said.iter().any(|line| line.contains("not committed")),
            "{said:?}"
        );
    }

    #[test]
    fn a_folder_without_git_and_a_revision_that_is_not_there_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Revision::find(folder.path(), None, &mut |_| {})
            .unwrap_err()
            .to_string();
        assert!(error.contains("git tree"), "{error}");
        git(folder.path(), &["init", "-q"]);
        let error = Revision::find(folder.path(), Some("v9"), &mut |_| {})
            .unwrap_err()
            .to_string();
        assert!(error.contains("find v9"), "{error}");
    }
}
