//! A source tree in the cache, and the patches that are applied to it.
//!
//! If the set of patches changes, only the files that differ are written, so that make compiles only those. Before a
//! patch changes a file for the first time, the original is saved outside the tree. So if a process is killed, the next
//! one can restore the tree.
//!
//! ```text
//! sources/KEY/tree/          the source
//! sources/KEY/pristine/      files as they were before patches
//! sources/KEY/changed.json   which files may differ from the source
//! sources/KEY/used           touched with every use
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pagetide_kernel::{Lock, Stop};
use pagetide_outside::{FileOrigin, create, read};

use crate::apply::{Misfit, apply};
use crate::diff::FileChange;
use crate::error::SourceError;
use crate::series::Patch;
use crate::step::{BuildStep, OnStep};

/// Maximum size in bytes of a metadata file of a source or a build.
pub const MAX_NOTE_BYTES: u64 = 16 << 20;
/// Maximum size of a source file in bytes; the kernel's largest file has 40 MiB.
pub const MAX_SOURCE_BYTES: u64 = 256 << 20;

/// Content of files by path, relative to the top folder of the source; `None` for a file that does not exist.
pub type Files = BTreeMap<String, Option<Vec<u8>>>;

/// A source tree that this process has locked.
#[derive(Debug)]
pub struct Tree {
    folder: PathBuf,
    /// Name of the source in messages.
    pub name: String,
    lock: Lock,
}

/// Paths of the files that may differ from the source, each with true if the source has the file.
type ChangedFiles = BTreeMap<String, bool>;

impl Tree {
    /// Locks the folder of a source for this process. Waits while another process uses it; fails if the user stops the
    /// wait.
    pub fn take(
        folder: &Path,
        name: &str,
        stop: &Stop,
        watch: &mut OnStep,
    ) -> Result<Self, SourceError> {
        fs::create_dir_all(folder).map_err(SourceError::cache("making", folder))?;
        let path = folder.join("used");
        create(&path).map_err(SourceError::cache("writing", &path))?;
        let lock = wait(folder, name, stop, watch)?;
        Ok(Self {
            folder: folder.to_owned(),
            name: name.to_owned(),
            lock,
        })
    }

    /// Returns the path of the top folder of the source.
    pub fn top(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Returns the folder that contains the tree and its metadata.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the lock on the folder, so that a child process can inherit it.
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    fn changed_path(&self) -> PathBuf {
        self.folder.join("changed.json")
    }

    /// Returns the files that may differ from the source. A list that cannot be read is an error: if the list were
    /// ignored, patched files would remain in the tree.
    fn changed(&self) -> Result<ChangedFiles, SourceError> {
        let path = self.changed_path();
        match read(&path, FileOrigin::Own, MAX_NOTE_BYTES) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|why| SourceError::cache("reading", &path)(io::Error::other(why))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ChangedFiles::new()),
            Err(error) => Err(SourceError::cache("reading", &path)(error)),
        }
    }

    fn note(&self, changed: &ChangedFiles) -> Result<(), SourceError> {
        let text = serde_json::to_vec_pretty(changed).unwrap_or_default();
        write(&self.changed_path(), &text)
    }

    /// Returns true if no component of a path is a symbolic link, so that the path stays within the tree.
    fn is_plain(&self, path: &str) -> bool {
        let mut inner = self.top();
        path.split('/').all(|part| {
            inner.push(part);
            fs::symlink_metadata(&inner).map_or(true, |data| !data.file_type().is_symlink())
        })
    }

    /// Returns the content of a file in the source without patches; `None` if the source has no such file.
    pub fn pristine(&self, path: &str) -> Result<Option<Vec<u8>>, SourceError> {
        let place = match self.changed()?.get(path) {
            Some(true) => self.folder.join("pristine").join(path),
            Some(false) => return Ok(None),
            None => self.top().join(path),
        };
        match read(&place, FileOrigin::Own, MAX_SOURCE_BYTES) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SourceError::cache("reading", &place)(error)),
        }
    }

    /// Changes the tree so that exactly the files in `wanted` differ from the source. Files that already have the
    /// wanted content are not written.
    pub fn bring_to(&self, wanted: &Files) -> Result<(), SourceError> {
        let mut changed = self.changed()?;
        let mut pristine = Files::new();
        for path in wanted.keys().chain(changed.keys()) {
            pristine.insert(path.clone(), self.pristine(path)?);
        }
        for path in wanted.keys().filter(|path| !changed.contains_key(*path)) {
            if let Some(Some(bytes)) = pristine.get(path) {
                write(&self.folder.join("pristine").join(path), bytes)?;
            }
        }
        for path in wanted.keys() {
            let is_there = pristine.get(path).is_some_and(Option::is_some);
            changed.entry(path.clone()).or_insert(is_there);
        }
        self.note(&changed)?;
        for path in changed.keys() {
            let content = wanted.get(path).or_else(|| pristine.get(path));
            let place = self.top().join(path);
            match content {
                Some(Some(bytes)) => {
                    let there = read(&place, FileOrigin::Own, MAX_SOURCE_BYTES).ok();
                    if there.as_ref() != Some(bytes) {
                        // The file's mode is kept, because scripts must stay executable.
                        let mode = fs::metadata(&place).map(|data| data.permissions());
                        write(&place, bytes)?;
                        if let Ok(mode) = mode {
                            fs::set_permissions(&place, mode)
                                .map_err(SourceError::cache("writing", &place))?;
                        }
                    }
                }
                _ => match fs::remove_file(&place) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(SourceError::cache("removing", &place)(error));
                    }
                    _ => {}
                },
            }
        }
        changed.retain(|path, _| wanted.contains_key(path));
        self.note(&changed)
    }

    /// Returns the files that these patches change, with their content after the change. Nothing is written. Fails if a
    /// patch does not fit.
    pub fn patched(&self, patches: &[Patch]) -> Result<Files, SourceError> {
        let mut files = Files::new();
        for patch in patches {
            for change in &patch.changes {
                self.change(&mut files, patch, change)?;
            }
        }
        // A file that a later patch restores to its original content is not changed.
        let mut kept = Files::new();
        for (path, content) in files {
            if self.pristine(&path)? != content {
                kept.insert(path, content);
            }
        }
        Ok(kept)
    }

    fn change(
        &self,
        files: &mut Files,
        patch: &Patch,
        change: &FileChange,
    ) -> Result<(), SourceError> {
        let misfit = |why: String| SourceError::Misfit {
            patch: patch.subject.clone(),
            source_name: self.name.clone(),
            why,
        };
        let now = |files: &Files, path: &str| match files.get(path) {
            Some(content) => Ok(content.clone()),
            None => self.pristine(path),
        };
        for path in [&change.old, &change.new].into_iter().flatten() {
            if !self.is_plain(path) {
                return Err(SourceError::Unsafe {
                    origin: patch.origin.display().to_string(),
                    path: path.clone(),
                    why: "which passes through a symbolic link",
                });
            }
        }
        let before = match &change.old {
            None => Vec::new(),
            Some(path) => now(files, path)?.ok_or_else(|| {
                misfit(format!(
                    "{path} is not there: choose the source it was made for with --source"
                ))
            })?,
        };
        if let Some(new) = &change.new
            && change.old.as_ref() != Some(new)
            && now(files, new)?.is_some()
        {
            return Err(misfit(format!(
                "it makes {new}, which is there already: choose the source it was made for with --source"
            )));
        }
        let path = change.path();
        let after = apply(&before, change).map_err(|why| misfit(in_words(path, &why)))?;
        if let Some(old) = &change.old
            && change.new.as_ref() != Some(old)
            && !change.keeps_old
        {
            if change.new.is_none() && !after.is_empty() {
                return Err(misfit(format!(
                    "it deletes {old}, which has more lines than it removes: rebase it onto this source"
                )));
            }
            files.insert(old.clone(), None);
        }
        if let Some(new) = &change.new {
            files.insert(new.clone(), Some(after));
        }
        Ok(())
    }
}

fn in_words(path: &str, why: &Misfit) -> String {
    match why {
        Misfit::NotThere { line, head } => format!(
            "{path} does not have the lines of its hunk at line {line} ({}): rebase it onto this source, or choose another with --source",
            head.trim_start_matches("@@ ").trim()
        ),
        Misfit::Fuzz { line, ignored } => format!(
            "its hunk at line {line} of {path} fits only if {ignored} {} of its context may differ: rebase it, so that it is \
             judged where it belongs",
            if *ignored == 1 { "line" } else { "lines" }
        ),
        Misfit::Done { line } => format!(
            "what its hunk at line {line} makes of {path} is there already: choose a source without it"
        ),
    }
}

/// Waits for the lock of a folder. Fails if the user stops the wait.
pub fn wait(
    folder: &Path,
    name: &str,
    stop: &Stop,
    watch: &mut OnStep,
) -> Result<Lock, SourceError> {
    let mut told = false;
    loop {
        let lock = Lock::try_existing(folder).map_err(SourceError::cache("locking", folder))?;
        if let Some(lock) = lock {
            return Ok(lock);
        }
        if !told {
            told = true;
            watch(&BuildStep::Waiting {
                what: name.to_owned(),
            });
        }
        if stop.is_set() {
            return Err(SourceError::Stopped);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Writes a file atomically. Creates its parent folders if needed.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), SourceError> {
    let fault = |error| SourceError::cache("writing", path)(error);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(fault)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".pagetide-new");
    let fresh = path.with_file_name(name);
    let mut file = create(&fresh).map_err(fault)?;
    file.write_all(bytes).map_err(fault)?;
    drop(file);
    fs::rename(&fresh, path).map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Series;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            write(&folder.path().join("tree").join(path), text.as_bytes()).unwrap();
        }
        let tree = Tree::take(folder.path(), "test", &Stop::default(), &mut |_| {}).unwrap();
        (folder, tree)
    }

    fn series(text: &str) -> Vec<Patch> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my.patch");
        fs::write(&path, text).unwrap();
        Series::read(&[path]).unwrap().patches
    }

    fn content(tree: &Tree, path: &str) -> Option<String> {
        fs::read_to_string(tree.top().join(path)).ok()
    }

    const CHANGE: &str = "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1,2 +1,3 @@\n one\n+and\n two\n";
    const NEW: &str = "--- /dev/null\n+++ b/mm/new/n.c\n@@ -0,0 +1 @@\n+n\n";
    const GONE: &str = "--- a/mm/b.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n";

    #[test]
    fn a_tree_goes_from_patch_to_patch_and_back_and_writes_only_what_differs() {
        let (_folder, tree) = tree(&[
            ("mm/a.c", "one\ntwo\n"),
            ("mm/b.c", "b\n"),
            ("mm/c.c", "c\n"),
        ]);
        let patched = tree
            .patched(&series(&format!("{CHANGE}{NEW}{GONE}")))
            .unwrap();
        tree.bring_to(&patched).unwrap();
        assert_eq!(content(&tree, "mm/a.c").unwrap(), "one\nand\ntwo\n");
        assert_eq!(content(&tree, "mm/new/n.c").unwrap(), "n\n");
        assert_eq!(content(&tree, "mm/b.c"), None);
        let stamp = |path: &str| {
            fs::metadata(tree.top().join(path))
                .unwrap()
                .modified()
                .unwrap()
        };
        let (kept, before) = (stamp("mm/a.c"), tree.pristine("mm/a.c").unwrap().unwrap());
        assert_eq!(before, b"one\ntwo\n");
        tree.bring_to(&tree.patched(&series(CHANGE)).unwrap())
            .unwrap();
        assert_eq!(stamp("mm/a.c"), kept, "an unchanged file was written");
        assert_eq!(content(&tree, "mm/new/n.c"), None);
        assert_eq!(content(&tree, "mm/b.c").unwrap(), "b\n");
        tree.bring_to(&Files::new()).unwrap();
        assert_eq!(content(&tree, "mm/a.c").unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_kill_between_two_writes_is_put_right_by_the_next_user() {
        let (_folder, tree) = tree(&[("mm/a.c", "one\ntwo\n")]);
        tree.bring_to(&tree.patched(&series(CHANGE)).unwrap())
            .unwrap();
        // The tree looks as if a process was killed after it noted its changes, and before it finished them.
        fs::write(tree.top().join("mm/a.c"), "half").unwrap();
        assert_eq!(tree.pristine("mm/a.c").unwrap().unwrap(), b"one\ntwo\n");
        tree.bring_to(&Files::new()).unwrap();
        assert_eq!(content(&tree, "mm/a.c").unwrap(), "one\ntwo\n");
    }

    #[test]
    fn nothing_is_written_where_a_later_patch_does_not_fit() {
        let (_folder, tree) = tree(&[("mm/a.c", "one\ntwo\n")]);
        let error = tree
            .patched(&series(&format!("{CHANGE}{GONE}")))
            .unwrap_err()
            .to_string();
        assert!(error.contains("mm/b.c is not there"), "{error}");
        assert_eq!(content(&tree, "mm/a.c").unwrap(), "one\ntwo\n");
    }

    #[test]
    fn each_way_not_to_fit_has_its_own_words() {
        let (_folder, tree) = tree(&[
            ("mm/a.c", "one\nand\ntwo\n"),
            ("mm/n.c", "n\n"),
            ("mm/b.c", "b\nmore\n"),
        ]);
        for (text, word) in [
            (CHANGE, "there already"),
            (
                "--- /dev/null\n+++ b/mm/n.c\n@@ -0,0 +1 @@\n+n\n",
                "is there already",
            ),
            (GONE, "more lines"),
            (
                "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1,2 +1,1 @@ f\n-x\n y\n",
                "rebase",
            ),
        ] {
            let error = tree.patched(&series(text)).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("test"), "{error}");
        }
    }

    #[test]
    fn a_series_that_takes_itself_back_changes_nothing() {
        let (_folder, tree) = tree(&[("mm/a.c", "one\ntwo\n")]);
        let back = "--- a/mm/a.c\n+++ b/mm/a.c\n@@ -1,3 +1,2 @@\n one\n-and\n two\n";
        assert!(
            tree.patched(&series(&format!("{CHANGE}{back}")))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_link_in_the_tree_leads_no_patch_outside() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("a.c"), "one\ntwo\n").unwrap();
        let (_folder, tree) = tree(&[("mm/x.c", "x\n")]);
        std::os::unix::fs::symlink(outside.path(), tree.top().join("link")).unwrap();
        let text = CHANGE.replace("mm/a.c", "link/a.c");
        let error = tree.patched(&series(&text)).unwrap_err();
        assert!(matches!(error, SourceError::Unsafe { .. }), "{error}");
    }

    #[test]
    fn a_tree_in_use_is_waited_for_until_it_shall_stop() {
        let (folder, _tree) = tree(&[("mm/x.c", "x\n")]);
        let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
        let mut steps = Vec::new();
        let taken = Tree::take(folder.path(), "test", &Stop::by(flag), &mut |step| {
            steps.push(step.to_string());
        });
        assert!(matches!(taken, Err(SourceError::Stopped)));
        assert_eq!(steps, ["waiting for another pagetide that works on test"]);
    }
}
