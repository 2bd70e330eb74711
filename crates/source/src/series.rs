//! Patches as they are given: files, mailboxes and folders, in the order in which they apply.

use std::fs;
use std::path::{Path, PathBuf};

use pagetide_kernel::Digest;

use crate::diff::{self, FileChange};
use crate::error::SourceError;
use crate::mail;

/// One patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Its subject without what stands in brackets, or the file's name where it has none.
    pub subject: String,
    /// The file it was read from.
    pub origin: PathBuf,
    /// Digest of what it changes: its first 12 digits.
    pub id: String,
    /// What it changes, file by file.
    pub(crate) changes: Vec<FileChange>,
}

impl Patch {
    /// The files it changes, by their names afterwards.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.changes.iter().map(FileChange::path)
    }
}

/// Patches in the order in which they apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Series {
    /// The patches.
    pub patches: Vec<Patch>,
}

/// Most bytes of one file with patches.
const MOST_BYTES: u64 = 64 << 20;

impl Series {
    /// Reads files and folders with patches, one after the other.
    pub fn read(paths: &[PathBuf]) -> Result<Self, SourceError> {
        let mut series = Self::default();
        for path in paths {
            let found = of_path(path)?;
            if found.is_empty() {
                return Err(SourceError::NoPatch {
                    origin: path.display().to_string(),
                });
            }
            series.patches.extend(found);
        }
        Ok(series)
    }

    /// What stands for all of it: equal ids, equal changes.
    pub fn id(&self) -> String {
        let ids: Vec<&str> = self.patches.iter().map(|patch| patch.id.as_str()).collect();
        Digest::of(ids.join(" ").as_bytes()).short().to_owned()
    }

    /// The first so many patches.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        Self {
            patches: self.patches.iter().take(count).cloned().collect(),
        }
    }

    /// Its subjects in one line: the only one, or the first and how many follow.
    pub fn subject(&self) -> String {
        match &self.patches[..] {
            [] => String::new(),
            [one] => one.subject.clone(),
            [first, rest @ ..] => format!("{} and {} more", first.subject, rest.len()),
        }
    }
}

fn of_path(path: &Path) -> Result<Vec<Patch>, SourceError> {
    let data = fs::metadata(path).map_err(SourceError::read(path))?;
    if !data.is_dir() {
        return of_file(path);
    }
    let mut patches = Vec::new();
    for file in files(path)? {
        patches.extend(of_file(&file)?);
    }
    Ok(patches)
}

/// The patches in a folder: those its `series` lists, as quilt does, else all by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let list = folder.join("series");
    if let Ok(text) = fs::read_to_string(&list) {
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

fn of_file(path: &Path) -> Result<Vec<Patch>, SourceError> {
    let size = fs::metadata(path).map_err(SourceError::read(path))?.len();
    if size > MOST_BYTES {
        return Err(SourceError::Malformed {
            origin: path.display().to_string(),
            what: "it is larger than 64 MB: give the patches of a change, not those of a release"
                .to_owned(),
        });
    }
    let text = fs::read(path).map_err(SourceError::read(path))?;
    of_text(&text, path)
}

/// The patches in a text: messages without a diff (cover letters, replies) are left out, numbered ones are put in order.
fn of_text(text: &[u8], path: &Path) -> Result<Vec<Patch>, SourceError> {
    let name = path.display().to_string();
    let mut numbered: Vec<(Option<Number>, Patch)> = Vec::new();
    for message in mail::messages(text) {
        let (tag, subject) = subject_of(&message.subject);
        // A reply may quote a diff, or propose another; neither is the patch.
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

/// The place of a patch in its series: `2/5` in its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Number {
    place: usize,
    of: usize,
}

/// Whether a subject is that of a reply.
fn is_reply(subject: &str) -> bool {
    let start = subject.trim_start().get(..3).unwrap_or_default();
    start.eq_ignore_ascii_case("re:") || start.eq_ignore_ascii_case("aw:")
}

/// A subject without what stands in brackets before it, and the number that stands there.
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

/// Numbered patches by their numbers, all of which must be there once; others as they come.
fn in_order(
    origin: &str,
    mut patches: Vec<(Option<Number>, Patch)>,
) -> Result<Vec<Patch>, SourceError> {
    let numbers: Vec<Number> = patches.iter().filter_map(|(number, _)| *number).collect();
    // A file of its own for each patch is ordered by its name.
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
        for place in 1..=of {
            let count = numbers
                .iter()
                .filter(|number| number.place == place)
                .count();
            if count > 1 {
                return incomplete(format!(
                    "patch {place}/{of} is there {count} times: choose one version, as `b4 am` does"
                ));
            }
            if count == 0 {
                return incomplete(format!("patch {place}/{of} is missing: fetch all of it"));
            }
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
