//! Finds the cause of a failed build in the output of make.

use crate::series::Series;

/// The compiler's first error in a build: its position and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Path of the source file, relative to the top folder of the source.
    pub file: String,
    /// Line number, from 1.
    pub line: usize,
    /// The error line `FILE:LINE:COLUMN: error: …`, with a path relative to the top folder of the source.
    pub text: String,
}

/// Maximum number of lines of compiler output that are shown.
const SHOWN: usize = 40;

/// Returns the compiler's first error in a log; `None` if there is none. `top` is the path of the source's top folder,
/// as passed to make.
pub fn first(log: &[String], top: &str) -> Option<Fault> {
    log.iter().find_map(|line| {
        let (place, _) = line
            .split_once(": error: ")
            .or_else(|| line.split_once(": fatal error: "))?;
        let mut parts = place.split(':');
        let file = parts.next()?;
        let number = parts.next()?.parse().ok()?;
        let short = within(file, top);
        Some(Fault {
            file: short.to_owned(),
            line: number,
            text: line.replacen(file, short, 1),
        })
    })
}

/// Returns the path of a file relative to the top folder of the source. `file` begins with that folder's path `top`, or
/// with its relative path from the build folder.
fn within<'a>(file: &'a str, top: &str) -> &'a str {
    if let Some(inner) = file.strip_prefix(top) {
        return inner.trim_start_matches('/');
    }
    // Example: `../../sources/KEY/tree/mm/vmscan.c`
    match file.find("/tree/") {
        Some(at) if file.starts_with("..") => &file[at + "/tree/".len()..],
        _ => file,
    }
}

/// Returns the first [`SHOWN`] lines with messages of the compiler, the linker and make, unmodified: errors, warnings,
/// notes, and which files include the faulty one.
pub fn said(log: &[String]) -> Vec<&str> {
    let speaks = |line: &str| {
        [": error:", ": fatal error:", ": note:", "undefined reference", "In file included from", ": In function", ": warning:", " ERROR: "]
            .iter()
            .any(|mark| line.contains(mark))
            || line.starts_with("ERROR:")
            || line.starts_with("make")
            // gcc prints the source line and the marker below it with a `|`.
            || line.trim_start().split_once('|').is_some_and(|(number, _)| {
                number.trim().chars().all(|c| c.is_ascii_digit())
            })
    };
    log.iter()
        .map(String::as_str)
        .filter(|line| speaks(line) && !line.starts_with("make["))
        .take(SHOWN)
        .collect()
}

/// Returns the line of make's output that probably explains a failure without a compiler error: the last one with a
/// word such as `error`, or else the last one. Cuts it at 300 characters.
pub fn last_words(log: &[String]) -> String {
    let telling = log.iter().rev().find(|line| {
        [
            "error",
            "Error",
            "No space left",
            "Killed",
            "cannot",
            "undefined reference",
        ]
        .iter()
        .any(|word| line.contains(word))
            && !line.starts_with("make")
    });
    let last = log
        .iter()
        .rev()
        .find(|line| !line.trim().is_empty() && !line.contains(" directory '"));
    telling
        .or(last)
        .map_or("make said nothing", |line| line.trim())
        .chars()
        .take(300)
        .collect()
}

/// Returns text about the hunk whose result contains the line of the error, and its patch. If no hunk does, about the
/// first patch that changes the file; empty if no patch changes it.
pub fn hunk(series: &Series, fault: &Fault) -> String {
    for patch in &series.patches {
        for change in patch
            .changes
            .iter()
            .filter(|change| change.path() == fault.file)
        {
            for hunk in &change.hunks {
                let length = hunk
                    .lines
                    .iter()
                    .filter(|line| line.after().is_some())
                    .count();
                if (hunk.new_at..hunk.new_at + length.max(1)).contains(&fault.line) {
                    return format!(" in the hunk {} of \"{}\"", hunk.head, patch.subject);
                }
            }
        }
    }
    let touches = |file: &str| series.patches.iter().find(|p| p.files().any(|f| f == file));
    match touches(&fault.file) {
        Some(patch) => format!(" in a file that \"{}\" changes", patch.subject),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn log(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    const LOG: &str = "  CC      mm/vmscan.o\n\
        ../../sources/x/tree/mm/vmscan.c: In function 'f':\n\
        ../../sources/x/tree/mm/vmscan.c:12:9: error: 'z' undeclared\n\
        \x20  12 |  return z;\n\
        \x20     |         ^\n\
        make[4]: *** [mm/vmscan.o] Error 1\n\
        \x20 CC      mm/swap.o\n";

    #[test]
    fn a_compilers_error_is_found_with_its_file_line_and_hunk() {
        let fault = first(&log(LOG), "/c/sources/x/tree").unwrap();
        assert_eq!((fault.file.as_str(), fault.line), ("mm/vmscan.c", 12));
        assert_eq!(fault.text, "mm/vmscan.c:12:9: error: 'z' undeclared");
        let absolute = log("/c/sources/x/tree/mm/a.h:3:1: fatal error: no\n");
        assert_eq!(
            first(&absolute, "/c/sources/x/tree").unwrap().file,
            "mm/a.h"
        );

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.patch");
        let text = "Subject: [PATCH] mm: a fault\n\n--- a/mm/vmscan.c\n+++ b/mm/vmscan.c\n@@ -10,3 +10,4 @@ int f\n a\n b\n+z\n c\n";
        std::fs::write(&path, text).unwrap();
        let series = Series::read(&[PathBuf::from(&path)]).unwrap();
        let words = hunk(&series, &fault);
        assert!(
            words.contains("@@ -10,3 +10,4 @@ int f") && words.contains("mm: a fault"),
            "{words}"
        );
        let elsewhere = Fault {
            line: 99,
            ..fault.clone()
        };
        assert!(hunk(&series, &elsewhere).contains("changes"));
        let other = Fault {
            file: "mm/swap.c".into(),
            ..fault
        };
        assert_eq!(hunk(&series, &other), "");
    }

    #[test]
    fn what_the_compiler_said_is_shown_without_what_make_says_around_it() {
        let log = log(LOG);
        let shown = said(&log);
        assert_eq!(shown.len(), 4, "{shown:?}");
        assert!(shown[2].contains("return z;"));
    }

    #[test]
    fn without_a_compilers_error_the_most_telling_words_are_shown() {
        let disk = log("  CC a.o\nas: cannot write: No space left on device\nmake: *** Error 2\n");
        assert_eq!(first(&disk, "/x"), None);
        assert!(last_words(&disk).contains("No space left"));
        assert_eq!(last_words(&[]), "make said nothing");
        let rule = log(
            "make: Entering directory '/x'\nmake: *** No rule to make target 'a'.  Stop.\nmake: Leaving directory '/x'\n",
        );
        assert!(last_words(&rule).contains("No rule to make target"));
    }
}
