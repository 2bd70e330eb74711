//! Applies a patch's change to the content of a file.
//!
//! As with `git apply`, lines may have moved, but they must not differ. A patch that fits only if context lines are
//! ignored is refused, because nobody has checked that its change is right there.

use crate::diff::{FileChange, Hunk};

/// Why a change cannot be applied to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misfit {
    /// The file does not contain the lines of a hunk.
    NotThere {
        /// Line number of the hunk in the old file, from 1.
        line: usize,
        /// Header line of the hunk (`@@ … @@`).
        head: String,
    },
    /// The hunk fits only if some of its context lines are ignored.
    Fuzz {
        /// Line number of the hunk in the old file, from 1.
        line: usize,
        /// Number of context lines that must be ignored at the end of the hunk that has more of them.
        ignored: usize,
    },
    /// The file already contains the result of the hunk.
    Done {
        /// Line number of the hunk in the new file, from 1.
        line: usize,
    },
}

/// Maximum number of context lines ignored at an end when searching for a near fit, as in `patch`.
const FUZZ: usize = 2;

/// Returns the content of a file after a change. If the change does not fit, returns the reason.
pub fn apply(content: &[u8], change: &FileChange) -> Result<Vec<u8>, Misfit> {
    let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    let mut out: Vec<u8> = Vec::with_capacity(content.len());
    // `done`: index of the first line that is not written yet. `moved`: number of lines by which the last hunk was
    // found below its stated position.
    let (mut done, mut moved) = (0_usize, 0_isize);
    for hunk in &change.hunks {
        let wanted: Vec<&[u8]> = hunk.lines.iter().filter_map(|line| line.before()).collect();
        // The position of an empty range is the line before the range.
        let said = if wanted.is_empty() {
            hunk.old_at
        } else {
            hunk.old_at.saturating_sub(1)
        };
        let near = said.saturating_add_signed(moved);
        let Some(at) = find(&lines, &wanted, near, done) else {
            return Err(misfit(&lines, hunk, near, done));
        };
        moved = at.cast_signed() - said.cast_signed();
        for line in lines.get(done..at).unwrap_or_default() {
            out.extend_from_slice(line);
        }
        for line in hunk.lines.iter().filter_map(|line| line.after()) {
            out.extend_from_slice(line);
        }
        done = at + wanted.len();
    }
    for line in lines.get(done..).unwrap_or_default() {
        out.extend_from_slice(line);
    }
    Ok(out)
}

/// Returns the index, at least `from`, at which the lines `wanted` begin; `None` if they do not occur there. If they
/// occur several times, the index nearest to `near`.
fn find(lines: &[&[u8]], wanted: &[&[u8]], near: usize, from: usize) -> Option<usize> {
    let last = lines.len().checked_sub(wanted.len())?;
    let fits =
        |at: usize| (from..=last).contains(&at) && lines.get(at..at + wanted.len()) == Some(wanted);
    (0..=lines.len().max(near))
        .flat_map(|away| [near.checked_add(away), near.checked_sub(away)])
        .flatten()
        .find(|at| fits(*at))
}

/// Finds the reason why a hunk does not fit.
fn misfit(lines: &[&[u8]], hunk: &Hunk, near: usize, from: usize) -> Misfit {
    let after: Vec<&[u8]> = hunk.lines.iter().filter_map(|line| line.after()).collect();
    let before: Vec<&[u8]> = hunk.lines.iter().filter_map(|line| line.before()).collect();
    if !after.is_empty() && find(lines, &after, near, 0).is_some() {
        return Misfit::Done { line: hunk.new_at };
    }
    let is_context =
        |line: &crate::diff::HunkLine| line.before().is_some() && line.after().is_some();
    let head = hunk
        .lines
        .iter()
        .take_while(|line| is_context(line))
        .count();
    let tail = hunk
        .lines
        .iter()
        .rev()
        .take_while(|line| is_context(line))
        .count();
    for ignored in 1..=FUZZ {
        // Context is reduced first on its longer side, as in `patch`.
        let longer = head.max(tail);
        let start = (ignored + head).saturating_sub(longer).min(head);
        let end = before.len() - (ignored + tail).saturating_sub(longer).min(tail);
        if let Some(core) = before.get(start..end)
            && core.len() > 1
            && find(lines, core, near + start, from).is_some()
        {
            return Misfit::Fuzz {
                line: hunk.old_at,
                ignored,
            };
        }
    }
    Misfit::NotThere {
        line: hunk.old_at,
        head: hunk.head.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::parse;

    fn change(hunks: &str) -> FileChange {
        let text = format!("--- a/m/x.c\n+++ b/m/x.c\n{hunks}");
        parse(text.as_bytes(), "p").unwrap().remove(0)
    }

    fn applied(content: &str, hunks: &str) -> Result<String, Misfit> {
        apply(content.as_bytes(), &change(hunks)).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    const HUNK: &str = "@@ -2,3 +2,4 @@ f\n b\n c\n+new\n d\n";

    #[test]
    fn a_hunk_is_applied_where_it_says_or_where_its_lines_have_moved() {
        assert_eq!(
            applied("a\nb\nc\nd\ne\n", HUNK).unwrap(),
            "a\nb\nc\nnew\nd\ne\n"
        );
        assert_eq!(
            applied("x\nx\nx\na\nb\nc\nd\n", HUNK).unwrap(),
            "x\nx\nx\na\nb\nc\nnew\nd\n"
        );
    }

    #[test]
    fn of_two_places_the_nearer_is_taken_and_hunks_stay_in_order() {
        let content = "b\nc\nd\n--\nb\nc\nd\n";
        let two = "@@ -5,3 +5,3 @@\n b\n-c\n+C\n d\n";
        assert_eq!(applied(content, two).unwrap(), "b\nc\nd\n--\nb\nC\nd\n");
        let both = "@@ -1,3 +1,3 @@\n b\n-c\n+1\n d\n@@ -5,3 +5,3 @@\n b\n-c\n+2\n d\n";
        assert_eq!(applied(content, both).unwrap(), "b\n1\nd\n--\nb\n2\nd\n");
    }

    #[test]
    fn lines_that_differ_are_told_from_context_that_differs_and_from_a_patch_applied_already() {
        assert!(matches!(
            applied("a\nq\nr\ns\n", HUNK),
            Err(Misfit::NotThere { line: 2, .. })
        ));
        assert_eq!(
            applied("a\nB\nc\nd\ne\n", HUNK),
            Err(Misfit::Fuzz {
                line: 2,
                ignored: 1
            })
        );
        assert_eq!(
            applied("a\nb\nc\nnew\nd\n", HUNK),
            Err(Misfit::Done { line: 2 })
        );
    }

    #[test]
    fn files_without_a_last_line_end_and_empty_files_are_right_to_the_byte() {
        let hunk = "@@ -1 +1,2 @@\n one\n+two\n\\ No newline at end of file\n";
        assert_eq!(applied("one\n", hunk).unwrap(), "one\ntwo");
        assert_eq!(applied("", "@@ -0,0 +1,2 @@\n+a\n+b\n").unwrap(), "a\nb\n");
        assert_eq!(applied("a\nb\n", "@@ -1,2 +0,0 @@\n-a\n-b\n").unwrap(), "");
        assert_eq!(
            applied("a\nb\n", "@@ -1,0 +2 @@\n+x\n").unwrap(),
            "a\nx\nb\n"
        );
    }
}
