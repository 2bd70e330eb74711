//! Unified diffs, as `git diff`, `git format-patch` and `diff -u` write them.
//!
//! Every file name in a diff is checked before it is used, because patches come from strangers.

use crate::error::SourceError;

/// Change of one file by a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Path before the change; `None` for a new file.
    pub old: Option<String>,
    /// Path after the change; `None` for a deleted file.
    pub new: Option<String>,
    /// True if the old file is kept, because the patch copies it.
    pub keeps_old: bool,
    /// Changes to the content of the file.
    pub hunks: Vec<Hunk>,
}

/// One hunk of a diff. Each line includes its newline, except the last line of a file without a newline at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Number of the first line in the old file, from 1; 0 if the old file is empty.
    pub old_at: usize,
    /// Number of the first line in the new file, from 1; 0 if the new file is empty.
    pub new_at: usize,
    /// Lines of the hunk, in order.
    pub lines: Vec<HunkLine>,
    /// Header line of the hunk, for messages.
    pub head: String,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HunkLine {
    /// The line is in both files.
    Context(Vec<u8>),
    /// The line is only in the old file.
    Removed(Vec<u8>),
    /// The line is only in the new file.
    Added(Vec<u8>),
}

impl HunkLine {
    /// Returns the text of the line in the old file; `None` if the line was added.
    pub fn before(&self) -> Option<&[u8]> {
        match self {
            Self::Context(text) | Self::Removed(text) => Some(text),
            Self::Added(_) => None,
        }
    }

    /// Returns the text of the line in the new file; `None` if the line was removed.
    pub fn after(&self) -> Option<&[u8]> {
        match self {
            Self::Context(text) | Self::Added(text) => Some(text),
            Self::Removed(_) => None,
        }
    }

    fn text_mut(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Context(text) | Self::Removed(text) | Self::Added(text) => text,
        }
    }
}

impl FileChange {
    /// Returns the path for messages: the path after the change, or the old path of a deleted file.
    pub fn path(&self) -> &str {
        self.new
            .as_deref()
            .or(self.old.as_deref())
            .unwrap_or_default()
    }
}

/// Maximum length of a file name in a diff, in bytes.
const LONGEST: usize = 1024;

/// Converts a file name in a diff to a path relative to the top folder of the source, by removing `a/`, `b/` or the
/// first folder. Returns `None` for `/dev/null`. Fails for a name that is not allowed.
fn path(name: &str, origin: &str) -> Result<Option<String>, SourceError> {
    // In the format of `diff -u`, a tab and a date follow the name.
    let name = name.split('\t').next().unwrap_or_default().trim_end();
    if name == "/dev/null" {
        return Ok(None);
    }
    let refused = |why| {
        let path = name.chars().filter(|c| !c.is_control()).take(200).collect();
        Err(SourceError::Unsafe {
            origin: origin.to_owned(),
            path,
            why,
        })
    };
    if name.starts_with('"') {
        return refused("whose name is quoted because of odd characters");
    }
    if name.len() > LONGEST || name.chars().any(|c| c.is_control() || c == '\\') {
        return refused("which is not the name of a kernel file");
    }
    if name.starts_with('/') {
        return refused("which is an absolute path");
    }
    let Some((_, inner)) = name.split_once('/') else {
        return refused("which has no folder to strip (names begin with a/ and b/)");
    };
    check(name)
        .and_then(|()| check(inner))
        .map_or_else(refused, |()| Ok(Some(inner.to_owned())))
}

/// Fails for a path that is absolute, leads out of the source, or belongs to git's own files.
fn check(path: &str) -> Result<(), &'static str> {
    for part in path.split('/') {
        match part {
            "" | "." => return Err("which is not a plain path"),
            ".." => return Err("which leads outside of the source"),
            _ if part.eq_ignore_ascii_case(".git") => return Err("which belongs to git itself"),
            _ => {}
        }
    }
    Ok(())
}

/// Parses all changes in a text, and ignores other text before, between and after them. Returns an empty list if there
/// is no diff. Fails if a change cannot be parsed, or names a file that a patch must not change.
pub fn parse(text: &[u8], origin: &str) -> Result<Vec<FileChange>, SourceError> {
    let mut reader = Reader {
        lines: text.split_inclusive(|byte| *byte == b'\n').collect(),
        at: 0,
        origin,
    };
    let mut changes = Vec::new();
    while reader.at < reader.lines.len() {
        if let Some(change) = reader.change()? {
            changes.push(change);
        }
    }
    Ok(changes)
}

struct Reader<'a> {
    lines: Vec<&'a [u8]>,
    at: usize,
    origin: &'a str,
}

/// Content of the extended header that git writes for a file.
#[derive(Default)]
struct GitHead {
    from: Option<String>,
    to: Option<String>,
    is_new: bool,
    is_deleted: bool,
    is_copy: bool,
}

impl<'a> Reader<'a> {
    /// Returns the line `ahead` lines after the current one, without its newline; `None` after the end of the text.
    fn line(&self, ahead: usize) -> Option<String> {
        let line = self.lines.get(self.at + ahead)?;
        let text = String::from_utf8_lossy(line);
        Some(text.trim_end_matches(['\n', '\r']).to_owned())
    }

    fn malformed(&self, what: &str) -> SourceError {
        SourceError::Malformed {
            origin: format!("{}, line {}", self.origin, self.at + 1),
            what: what.to_owned(),
        }
    }

    /// Parses the change that begins at the current line. Returns `None` if git's header there only changes a mode, or
    /// if no change begins there; then moves on to the lines after it.
    fn change(&mut self) -> Result<Option<FileChange>, SourceError> {
        let Some(line) = self.line(0) else {
            return Ok(None);
        };
        let mut head = GitHead::default();
        let is_git = line.starts_with("diff --git ");
        if is_git {
            self.at += 1;
            self.git_head(&mut head)?;
        }
        let names = match (self.line(0), self.line(1)) {
            (Some(old), Some(new)) if old.starts_with("--- ") && new.starts_with("+++ ") => {
                let is_diff = self.line(2).is_some_and(|hunk| hunk.starts_with("@@ "));
                is_diff.then(|| (old[4..].to_owned(), new[4..].to_owned()))
            }
            _ => None,
        };
        let Some((old, new)) = names else {
            if !is_git {
                self.at += 1;
                return Ok(None);
            }
            return self.without_hunks(&line, head);
        };
        let (old, new) = (path(&old, self.origin)?, path(&new, self.origin)?);
        self.at += 2;
        let mut hunks = Vec::new();
        while self.line(0).is_some_and(|line| line.starts_with("@@ ")) {
            hunks.push(self.hunk()?);
        }
        if old.is_none() && new.is_none() {
            return Err(self.malformed("it changes /dev/null into /dev/null: make it again"));
        }
        Ok(Some(FileChange {
            old,
            new,
            keeps_old: head.is_copy,
            hunks,
        }))
    }

    /// Parses git's header lines between `diff --git` and `---`.
    fn git_head(&mut self, head: &mut GitHead) -> Result<(), SourceError> {
        while let Some(line) = self.line(0) {
            let named = |name: &str| path(&format!("a/{name}"), self.origin);
            if let Some(mode) = [
                "old mode ",
                "new mode ",
                "new file mode ",
                "deleted file mode ",
            ]
            .iter()
            .find_map(|start| line.strip_prefix(start))
            {
                if !mode.starts_with("100") {
                    let why = if mode.starts_with("120") {
                        "it makes or changes a symbolic link, which is refused: leave that file out"
                    } else {
                        "it changes something other than a plain file: leave that out"
                    };
                    return Err(self.malformed(why));
                }
                head.is_new |= line.starts_with("new file");
                head.is_deleted |= line.starts_with("deleted");
            } else if let Some(name) = line.strip_prefix("rename from ") {
                head.from = named(name)?;
            } else if let Some(name) = line.strip_prefix("rename to ") {
                head.to = named(name)?;
            } else if let Some(name) = line.strip_prefix("copy from ") {
                head.from = named(name)?;
                head.is_copy = true;
            } else if let Some(name) = line.strip_prefix("copy to ") {
                head.to = named(name)?;
            } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
                return Err(self.malformed("it changes a binary file: leave that file out"));
            } else if !["index ", "similarity index ", "dissimilarity index "]
                .iter()
                .any(|start| line.starts_with(start))
            {
                return Ok(());
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Returns a change that git writes without hunks: a new or deleted empty file, a rename, or a copy. `None` if only
    /// the mode of a file changes.
    fn without_hunks(&self, line: &str, head: GitHead) -> Result<Option<FileChange>, SourceError> {
        if head.from.is_some() || head.to.is_some() {
            return Ok(Some(FileChange {
                old: head.from,
                new: head.to,
                keeps_old: head.is_copy,
                hunks: Vec::new(),
            }));
        }
        if !head.is_new && !head.is_deleted {
            return Ok(None);
        }
        // Both names in the line are equal. They contain no spaces, because no kernel file name does.
        let name = line.rsplit(' ').next().unwrap_or_default();
        let name = path(name, self.origin)?;
        let (old, new) = if head.is_new {
            (None, name)
        } else {
            (name, None)
        };
        Ok(Some(FileChange {
            old,
            new,
            keeps_old: false,
            hunks: Vec::new(),
        }))
    }

    fn hunk(&mut self) -> Result<Hunk, SourceError> {
        let head = self.line(0).unwrap_or_default();
        let Some(((old_at, mut old), (new_at, mut new))) = ranges(&head) else {
            return Err(self.malformed("its hunk has no line numbers: make the patch again"));
        };
        self.at += 1;
        let mut lines: Vec<HunkLine> = Vec::new();
        while old > 0 || new > 0 {
            let cut = || self.malformed("it ends within a hunk: copy the patch whole");
            let line: &'a [u8] = self.lines.get(self.at).copied().ok_or_else(cut)?;
            let (kind, text) = line.split_first().ok_or_else(cut)?;
            let take = |left: &mut usize| {
                *left = left.checked_sub(1).ok_or_else(|| {
                    self.malformed(
                        "its hunk is longer than its numbers say: copy the patch unchanged",
                    )
                })?;
                Ok::<(), SourceError>(())
            };
            match kind {
                b' ' => {
                    take(&mut old)?;
                    take(&mut new)?;
                    lines.push(HunkLine::Context(text.to_vec()));
                }
                // Mail programs remove the space of an empty context line.
                b'\n' | b'\r' => {
                    take(&mut old)?;
                    take(&mut new)?;
                    lines.push(HunkLine::Context(line.to_vec()));
                }
                b'-' => {
                    take(&mut old)?;
                    lines.push(HunkLine::Removed(text.to_vec()));
                }
                b'+' => {
                    take(&mut new)?;
                    lines.push(HunkLine::Added(text.to_vec()));
                }
                b'\\' => without_end(&mut lines),
                _ => {
                    return Err(self.malformed(
                        "its hunk is cut short or its lines were wrapped: copy the patch unchanged",
                    ));
                }
            }
            self.at += 1;
        }
        if self.line(0).is_some_and(|line| line.starts_with("\\ ")) {
            without_end(&mut lines);
            self.at += 1;
        }
        Ok(Hunk {
            old_at,
            new_at,
            lines,
            head,
        })
    }
}

/// Removes the newline of the last line of a hunk.
fn without_end(lines: &mut [HunkLine]) {
    if let Some(line) = lines.last_mut()
        && line.text_mut().last() == Some(&b'\n')
    {
        line.text_mut().pop();
    }
}

/// First line of a range and its number of lines.
type Range = (usize, usize);

/// Parses the old and the new range of lines in `@@ -l,s +l,s @@`; a missing number of lines is 1. `None` if the line
/// has another form.
fn ranges(head: &str) -> Option<(Range, Range)> {
    let inner = head.strip_prefix("@@ ")?.split(" @@").next()?;
    let (old, new) = inner.split_once(' ')?;
    let range = |text: &str, sign: char| {
        let text = text.strip_prefix(sign)?;
        let (at, size) = text.split_once(',').unwrap_or((text, "1"));
        let (at, size) = (at.parse().ok()?, size.parse().ok()?);
        // Larger numbers are refused, because no kernel file has as many lines.
        (at < 1 << 24 && size < 1 << 24).then_some((at, size))
    };
    Some((range(old, '-')?, range(new, '+')?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: &str = "--- a/mm/vmscan.c\t2024\n+++ b/mm/vmscan.c\t2024\n@@ -1,2 +1,3 @@ static int x\n one\n+and\n two\n";

    fn parsed(text: &str) -> Result<Vec<FileChange>, SourceError> {
        parse(text.as_bytes(), "my.patch")
    }

    #[test]
    fn a_diff_amid_prose_is_found_and_read() {
        let text = format!("A subject\n---\n mm/vmscan.c | 1 +\n\n{PLAIN}-- \n2.47\n");
        let changes = parsed(&text).unwrap();
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].path(), "mm/vmscan.c");
        assert_eq!(changes[0].hunks[0].lines.len(), 3);
        assert_eq!(
            changes[0].hunks[0].lines[1],
            HunkLine::Added(b"and\n".to_vec())
        );
    }

    #[test]
    fn new_deleted_renamed_and_copied_files_are_told_apart() {
        let text = "diff --git a/mm/n.c b/mm/n.c\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/mm/n.c\n@@ -0,0 +1 @@\n+x\n\
                    diff --git a/mm/o.c b/mm/o.c\ndeleted file mode 100644\nindex 1..0\n--- a/mm/o.c\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
                    diff --git a/mm/p.c b/mm/q.c\nsimilarity index 100%\nrename from mm/p.c\nrename to mm/q.c\n\
                    diff --git a/mm/e.h b/mm/e.h\nnew file mode 100644\nindex 0..0\n";
        let changes = parsed(text).unwrap();
        let names: Vec<_> = changes
            .iter()
            .map(|c| (c.old.as_deref(), c.new.as_deref()))
            .collect();
        assert_eq!(
            names,
            [
                (None, Some("mm/n.c")),
                (Some("mm/o.c"), None),
                (Some("mm/p.c"), Some("mm/q.c")),
                (None, Some("mm/e.h")),
            ]
        );
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in [
            "a/../../etc/passwd",
            "/etc/passwd",
            "a//etc/passwd",
            "a/.git/hooks/post-checkout",
            "a/.GIT/config",
            "a/mm/./x",
            "\"a/mm/\\303\"",
            "passwd",
            "../x/mm/vmscan.c",
        ] {
            for (old, new) in [(name, "b/mm/x.c"), ("a/mm/x.c", name), ("/dev/null", name)] {
                let text = format!("--- {old}\n+++ {new}\n@@ -1 +1 @@\n-x\n+y\n");
                let error = parsed(&text).unwrap_err();
                assert!(
                    matches!(error, SourceError::Unsafe { .. }),
                    "{name}: {error}"
                );
            }
        }
        let text =
            "diff --git a/x/p b/x/q\nsimilarity index 100%\nrename from x/p\nrename to ../q\n";
        assert!(matches!(parsed(text), Err(SourceError::Unsafe { .. })));
    }

    #[test]
    fn links_binaries_and_wrapped_lines_are_refused_with_what_to_do() {
        for (text, word) in [
            (
                "diff --git a/x b/x\nnew file mode 120000\n",
                "symbolic link",
            ),
            (
                "diff --git a/m/x b/m/x\nindex 1..2\nGIT binary patch\n",
                "binary",
            ),
            (
                "--- a/m/x\n+++ b/m/x\n@@ -1,2 +1,2 @@\n one\nwrapped\n",
                "wrapped",
            ),
            (
                "--- a/m/x\n+++ b/m/x\n@@ -1,9 +1,9 @@\n one\n",
                "ends within a hunk",
            ),
            (
                "--- a/m/x\n+++ b/m/x\n@@ -1 +1,2 @@\n one\n two\n",
                "longer than its numbers",
            ),
            (
                "--- a/m/x\n+++ b/m/x\n@@ what @@\n one\n",
                "no line numbers",
            ),
        ] {
            let error = parsed(text).unwrap_err().to_string();
            assert!(
                error.contains(word) && error.contains("my.patch"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_last_line_without_an_end_is_kept_so() {
        let text = "--- a/m/x\n+++ b/m/x\n@@ -1 +1 @@\n-one\n\\ No newline at end of file\n+two\n\\ No newline at end of file\n";
        let hunk = &parsed(text).unwrap()[0].hunks[0];
        assert_eq!(
            hunk.lines,
            [
                HunkLine::Removed(b"one".to_vec()),
                HunkLine::Added(b"two".to_vec())
            ]
        );
    }

    proptest! {
        #[test]
        fn whatever_is_read_never_names_a_file_outside(name in "[a-z./\\\\-]{1,12}", line in "[ +-]?[a-z]{0,3}") {
            let text = format!("--- {name}\n+++ b/{name}\n@@ -1 +1 @@\n{line}\n{line}\n");
            if let Ok(changes) = parsed(&text) {
                for path in changes.iter().flat_map(|c| [&c.old, &c.new]).flatten() {
                    prop_assert!(!path.starts_with('/') && path.split('/').all(|part| part != ".." && !part.is_empty()));
                }
            }
        }
    }
}
