//! Patches that the user gives as files, mailboxes and folders, in the order in which they are applied.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pagetide_kernel::Digest;
use pagetide_outside::{FileOrigin, Refusal, read, read_text};

use crate::diff::{self, FileChange};
use crate::error::SourceError;
use crate::mail;

/// One patch of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Subject without the part in brackets, or the file's name if the patch has no subject.
    pub subject: String,
    /// Path of the file that contains the patch.
    pub origin: PathBuf,
    /// First 12 digits of the digest of the patch's changes.
    pub id: String,
    /// Changes of the patch, one for each file.
    pub(crate) changes: Vec<FileChange>,
}

impl Patch {
    /// Returns the paths of the changed files, after the change.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.changes.iter().map(FileChange::path)
    }
}

/// Patches in the order in which they are applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series {
    /// The patches in this order.
    pub patches: Vec<Patch>,
}

/// Maximum size of all files of a series together, in bytes.
pub const MAX_BYTES: u64 = 32 << 20;
/// Maximum size in bytes of the file that lists a folder's patches.
const MAX_LIST_BYTES: u64 = 1 << 20;

impl Series {
    /// Reads patches from files and folders, in the order of `paths`; `-` is standard input. Fails if a path contains
    /// no patch, or a patch that cannot be parsed.
    pub fn read(paths: &[PathBuf]) -> Result<Self, SourceError> {
        let mut series = Self::default();
        let mut room = MAX_BYTES;
        for path in paths {
            let found = of_path(path, &mut room)?;
            if found.is_empty() {
                return Err(SourceError::NoPatch {
                    origin: path.display().to_string(),
                });
            }
            series.patches.extend(found);
        }
        Ok(series)
    }

    /// Returns the first 12 digits of a digest of all changes of the series. Series with the same digits make the same
    /// changes.
    pub fn id(&self) -> String {
        let ids: Vec<&str> = self.patches.iter().map(|patch| patch.id.as_str()).collect();
        Digest::of(ids.join(" ").as_bytes()).short().to_owned()
    }

    /// Returns a series of the first `count` patches.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        Self {
            patches: self.patches.iter().take(count).cloned().collect(),
        }
    }

    /// Returns the subjects of the patches in one line: the only subject, or the first one and the number of further
    /// patches; empty if there are no patches.
    pub fn subject(&self) -> String {
        match &self.patches[..] {
            [] => String::new(),
            [one] => one.subject.clone(),
            [first, rest @ ..] => format!("{} and {} more", first.subject, rest.len()),
        }
    }
}

/// Reads the patches of a file or folder. `room` is the rest of the size limit for all files together, in bytes; the
/// size of what is read is subtracted from it.
fn of_path(path: &Path, room: &mut u64) -> Result<Vec<Patch>, SourceError> {
    if !path.is_dir() {
        return of_file(path, FileOrigin::Named, room);
    }
    let mut patches = Vec::new();
    for file in files(path)? {
        patches.extend(of_file(&file, FileOrigin::Listed, room)?);
    }
    Ok(patches)
}

/// Returns the patch files in a folder: those listed in its `series` file, as in quilt, or else all patch files sorted
/// by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let list = folder.join("series");
    let listed = match read_text(&list, FileOrigin::Listed, MAX_LIST_BYTES) {
        Ok(text) => Some(text),
        Err(why) if why.kind() == io::ErrorKind::NotFound => None,
        Err(why) => return Err(SourceError::read(&list)(why)),
    };
    if let Some(text) = listed {
        let names = text
            .lines()
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| !name.starts_with('#'));
        return names
            .map(|name| {
                let inside = !name.starts_with('/') && name.split('/').all(|part| part != "..");
                if inside {
                    Ok(folder.join(name))
                } else {
                    Err(SourceError::Unsafe {
                        origin: list.display().to_string(),
                        path: name.to_owned(),
                        why: "which leads outside of the folder",
                    })
                }
            })
            .collect();
    }
    let entries = fs::read_dir(folder).map_err(SourceError::read(folder))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .and_then(|ending| ending.to_str())
                .is_some_and(|ending| ["patch", "diff", "mbox", "mbx", "eml"].contains(&ending))
        })
        .collect();
    files.sort_unstable();
    Ok(files)
}

fn of_file(path: &Path, place: FileOrigin, room: &mut u64) -> Result<Vec<Patch>, SourceError> {
    let text = read(path, place, *room).map_err(|why| match Refusal::of(&why) {
        Some(Refusal::TooLarge { .. }) => SourceError::Malformed {
            origin: path.display().to_string(),
            what: "patches of more than 32 MiB are not read: give those of a change, not those of a release"
                .to_owned(),
        },
        _ => SourceError::read(path)(why),
    })?;
    *room -= text.len() as u64;
    of_text(&text, path)
}

/// Returns the patches in a text. Leaves out messages without a diff (cover letters) and replies, and sorts numbered
/// patches.
fn of_text(text: &[u8], path: &Path) -> Result<Vec<Patch>, SourceError> {
    let name = path.display().to_string();
    let mut numbered: Vec<(Option<Number>, Patch)> = Vec::new();
    for message in mail::messages(text) {
        let (tag, subject) = subject_of(&message.subject);
        // A reply may quote a diff, or propose another one. Neither of them is a part of the series.
        if is_reply(&message.subject) {
            continue;
        }
        let origin = if subject.is_empty() {
            name.clone()
        } else {
            format!("{name} ({subject})")
        };
        let changes = diff::parse(&message.body, &origin)?;
        if changes.is_empty() {
            continue;
        }
        let subject = if subject.is_empty() {
            path.file_stem()
                .map_or_else(|| name.clone(), |stem| stem.to_string_lossy().into_owned())
        } else {
            subject
        };
        let id = Digest::of(format!("{changes:?}").as_bytes())
            .short()
            .to_owned();
        let patch = Patch {
            subject,
            origin: path.to_owned(),
            id,
            changes,
        };
        numbered.push((tag, patch));
    }
    in_order(&name, numbered)
}

/// Position of a patch in its series and length of the series, from a subject such as `[PATCH 2/5]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number {
    place: usize,
    of: usize,
}

/// Returns true if the subject is that of a reply to a mail.
fn is_reply(subject: &str) -> bool {
    let start = subject.trim_start().get(..3).unwrap_or_default();
    start.eq_ignore_ascii_case("re:") || start.eq_ignore_ascii_case("aw:")
}

/// Returns the patch number in the brackets at the start of a subject, if there is one, and the subject without the
/// brackets.
fn subject_of(subject: &str) -> (Option<Number>, String) {
    let mut rest = subject.trim();
    let mut number = None;
    while let Some((tag, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        for word in tag.split_whitespace() {
            if let Some((place, of)) = word.split_once('/')
                && let (Ok(place), Ok(of)) = (place.parse(), of.parse())
            {
                number = Some(Number { place, of });
            }
        }
        rest = after.trim_start();
    }
    let words: Vec<&str> = rest.split_whitespace().collect();
    (number, words.join(" "))
}

/// Sorts patches by number if there are several and all have one; otherwise keeps their order. Fails if a number is
/// missing or occurs twice, or if patches belong to series of different lengths.
fn in_order(
    origin: &str,
    mut patches: Vec<(Option<Number>, Patch)>,
) -> Result<Vec<Patch>, SourceError> {
    let numbers: Vec<Number> = patches.iter().filter_map(|(number, _)| *number).collect();
    // If each patch has its own file, the files' names determine the order.
    if patches.len() > 1 && numbers.len() == patches.len() {
        let incomplete = |what: String| {
            Err(SourceError::Incomplete {
                origin: origin.to_owned(),
                what,
            })
        };
        let of = numbers[0].of;
        if numbers.iter().any(|number| number.of != of) {
            return incomplete(
                "it mixes series of different lengths: give one at a time".to_owned(),
            );
        }
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for number in &numbers {
            *counts.entry(number.place).or_default() += 1;
        }
        if let Some((place, count)) = counts.iter().find(|(_, count)| **count > 1) {
            return incomplete(format!(
                "patch {place}/{of} is there {count} times: choose one version, as `b4 am` does"
            ));
        }
        // The number 0 is that of a cover letter, which is not a patch.
        let missing = (1..=of).find(|place| !counts.contains_key(place));
        if let Some(place) = missing {
            return incomplete(format!("patch {place}/{of} is missing: fetch all of it"));
        }
        patches.sort_by_key(|(number, _)| number.map(|number| number.place));
    }
    Ok(patches.into_iter().map(|(_, patch)| patch).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(file: &str, added: &str) -> String {
        format!(
            "---\n x | 1 +\n\n--- a/mm/{file}\n+++ b/mm/{file}\n@@ -1 +1,2 @@\n one\n+{added}\n-- \n2.47\n\n"
        )
    }

    fn mbox(messages: &[(&str, String)]) -> String {
        let mut text = String::new();
        for (subject, body) in messages {
            text.push_str("From m@z Thu Jan  1 00:00:00 1970\nFrom: A <a@b>\nSubject: ");
            text += subject;
            text += "\n\n";
            text += body;
        }
        text
    }

    fn read(text: &str) -> Result<Vec<Patch>, SourceError> {
        of_text(text.as_bytes(), Path::new("s.mbox"))
    }

    fn subjects(patches: &[Patch]) -> Vec<&str> {
        patches.iter().map(|patch| patch.subject.as_str()).collect()
    }

    #[test]
    fn a_thread_gives_its_patches_in_order_without_cover_letter_and_replies() {
        let text = mbox(&[
            ("[PATCH v3 0/2] mm: two things", "Hello\n\n".into()),
            ("[PATCH v3 2/2] mm: second", diff("b.c", "b")),
            ("Re: [PATCH v3 2/2] mm: second", diff("z.c", "z")),
            ("[PATCH v3 1/2] mm:\n first", diff("a.c", "a")),
        ]);
        let patches = read(&text).unwrap();
        assert_eq!(subjects(&patches), ["mm: first", "mm: second"]);
        assert_eq!(patches[0].files().collect::<Vec<_>>(), ["mm/a.c"]);
    }

    #[test]
    fn a_series_with_a_hole_or_two_versions_is_refused() {
        let one = |subject| (subject, diff("a.c", "a"));
        for (subjects, word) in [
            (["[PATCH 1/3] a", "[PATCH 3/3] c"], "2/3 is missing"),
            (
                ["[PATCH 1/2] a", "[PATCH v2 1/2] a"],
                "1/2 is there 2 times",
            ),
            (["[PATCH 1/2] a", "[PATCH 2/4] a"], "different lengths"),
        ] {
            let error = read(&mbox(&subjects.map(one))).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn a_folder_is_taken_by_name_or_as_its_series_lists_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write(
            "0000-cover-letter.patch",
            "Subject: [PATCH 0/2] all\n\nhello\n",
        );
        write(
            "0002-b.patch",
            &format!("Subject: [PATCH 2/2] b\n\n{}", diff("b.c", "b")),
        );
        write(
            "0001-a.patch",
            &format!("Subject: [PATCH 1/2] a\n\n{}", diff("a.c", "a")),
        );
        write("notes.txt", &diff("n.c", "n"));
        let all = [folder.path().to_owned()];
        assert_eq!(subjects(&Series::read(&all).unwrap().patches), ["a", "b"]);
        write("series", "# order\n0002-b.patch -p1\n");
        assert_eq!(subjects(&Series::read(&all).unwrap().patches), ["b"]);
        write("series", "../0001-a.patch\n");
        assert!(matches!(
            Series::read(&all),
            Err(SourceError::Unsafe { .. })
        ));
    }

    #[test]
    fn a_patch_without_end_is_read_to_a_limit() {
        let error = Series::read(&["/dev/zero".into()]).unwrap_err().to_string();
        assert!(
            error.contains("/dev/zero") && error.contains("32 MiB"),
            "{error}"
        );
        // The limit applies to all files of a series together, not to each file.
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.patch", "b.patch"] {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_len(MAX_BYTES / 2 + 1).unwrap();
        }
        let error = Series::read(&[folder.path().to_owned()]).unwrap_err();
        assert!(error.to_string().contains("b.patch"), "{error}");
    }

    #[test]
    fn a_pipe_among_the_patches_of_a_folder_is_refused_and_one_that_is_named_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("a.patch");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let error = Series::read(&[folder.path().to_owned()]).unwrap_err();
        assert!(error.to_string().contains("a named pipe"), "{error}");
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::write(pipe, diff("a.c", "a"))
        });
        // A plan reads the pipe first, and the build reads it again.
        for _ in 0..2 {
            let series = Series::read(std::slice::from_ref(&pipe)).unwrap();
            assert_eq!(series.patches.len(), 1);
        }
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn a_series_of_a_hundred_thousand_patches_is_put_in_order() {
        // A search for each number among all patches would take 10,000,000,000 steps.
        let count = 100_000;
        let patch = |place| {
            let number = Number { place, of: count };
            let patch = Patch {
                subject: place.to_string(),
                origin: PathBuf::new(),
                id: String::new(),
                changes: Vec::new(),
            };
            (Some(number), patch)
        };
        let reversed = (1..=count).rev().map(patch).collect();
        let patches = in_order("s.mbox", reversed).unwrap();
        assert_eq!((patches[0].subject.as_str(), patches.len()), ("1", count));
    }

    #[test]
    fn a_file_without_a_patch_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty.patch");
        fs::write(&path, "").unwrap();
        let error = Series::read(std::slice::from_ref(&path)).unwrap_err();
        assert!(
            error.to_string().contains("empty.patch holds no patch"),
            "{error}"
        );
        let error = Series::read(&[folder.path().join("none")]).unwrap_err();
        assert!(matches!(error, SourceError::Read { .. }));
    }

    #[test]
    fn the_same_change_has_the_same_id_whatever_is_said_of_it() {
        let of = |text: String| read(&text).unwrap().remove(0).id;
        let one = of(mbox(&[("[PATCH] one", diff("a.c", "a"))]));
        assert_eq!(
            one,
            of(mbox(&[("[PATCH v2] other words", diff("a.c", "a"))]))
        );
        assert_ne!(one, of(mbox(&[("[PATCH] one", diff("a.c", "b"))])));
    }

    #[test]
    fn the_patches_that_stand_in_the_tree_are_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../patches");
        let patches = Series::read(&[folder]).unwrap().patches;
        let first = "mm: vmscan: activate mapped file folios at their first reference";
        assert!(
            subjects(&patches).contains(&first),
            "{:?}",
            subjects(&patches)
        );
        assert!(
            patches
                .iter()
                .flat_map(Patch::files)
                .all(|file| file.starts_with("mm/"))
        );
    }
}
