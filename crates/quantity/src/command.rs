//! Command lines that messages tell the user to run. The command lines are quoted for a shell and repeat the options
//! that the user gave for the store, the cache and the output.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

/// Options that are added to every command line; set once by [`carry`].
static CARRIED: OnceLock<Vec<String>> = OnceLock::new();

/// Sets the options that are added to every command line from now on, such as `--store DIR`. Must be called before the
/// first message; later calls have no effect.
pub fn carry(options: Vec<String>) {
    let _ = CARRIED.set(options);
}

/// Returns the command line `pagetide WORDS…` with the options set by [`carry`], quoted for a shell.
pub fn command<T: AsRef<str>>(words: &[T]) -> String {
    built(CARRIED.get().map_or(&[], Vec::as_slice), words)
}

/// Returns the command line like [`command`], between backticks for use in a sentence. `words` is split at every
/// space, so no word of it can contain a space.
pub fn in_backticks(words: &str) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    format!("`{}`", command(&words))
}

fn built<T: AsRef<str>>(carried: &[String], words: &[T]) -> String {
    let mut all = vec!["pagetide"];
    all.extend(carried.iter().map(String::as_str));
    all.extend(words.iter().map(AsRef::as_ref));
    shell(&all)
}

/// Joins words to one command line for a shell. Words that the shell could split or interpret are quoted, as are empty
/// words. A word that is not UTF-8 is written as `$'\xff'`, which bash, ksh and zsh understand.
pub fn shell<T: AsRef<OsStr>>(words: &[T]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| {
            let Some(word) = word.as_ref().to_str() else {
                return bytes(word.as_ref().as_bytes());
            };
            let is_plain = !word.is_empty()
                && word
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c));
            if is_plain {
                word.to_owned()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        })
        .collect();
    quoted.join(" ")
}

/// Quotes a word that is not UTF-8, in the form `$'\xff'`.
fn bytes(word: &[u8]) -> String {
    let mut quoted = String::from("$'");
    for byte in word {
        match byte {
            b'\'' | b'\\' => {
                let _ = write!(quoted, "\\{}", char::from(*byte));
            }
            b' '..=b'~' => quoted.push(char::from(*byte)),
            _ => {
                let _ = write!(quoted, "\\x{byte:02x}");
            }
        }
    }
    quoted.push('\'');
    quoted
}

/// Minimum width of the lines of a broken command line, in characters; a smaller width is raised to it.
const NARROW: usize = 8;

/// Breaks a command line into lines of at most `width` characters; widths below [`NARROW`] count as [`NARROW`]. Each
/// line but the last ends in a backslash. Lines end between words if possible, otherwise within a word.
pub fn continued(line: &str, width: usize) -> Vec<String> {
    // A line needs three characters for a space, a backslash, and a closing quote before the backslash.
    let room = width.max(NARROW) - 3;
    let (mut is_quoted, mut is_escaped) = (false, false);
    let mut lines = Vec::new();
    let (mut current, mut word) = (String::new(), String::new());
    let length = |text: &str| text.chars().count();
    for c in line.chars() {
        if c == ' ' && !is_quoted && !is_escaped {
            if !current.is_empty() && length(&current) + length(&word) + 1 > room {
                lines.push(format!("{current} \\"));
                current.clear();
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(&word);
            word.clear();
            continue;
        }
        if length(&word) >= room && !is_escaped {
            // The word fits into no line. The text before it gets its own line; the shell removes the joints of the word.
            if !current.is_empty() {
                lines.push(format!("{current} \\"));
                current.clear();
            }
            let joint = if is_quoted { "'" } else { "" };
            lines.push(format!("{word}{joint}\\"));
            joint.clone_into(&mut word);
        }
        is_quoted ^= c == '\'' && !is_escaped;
        is_escaped = c == '\\' && !is_quoted && !is_escaped;
        word.push(c);
    }
    if !current.is_empty() && length(&current) + length(&word) + 1 > width.max(NARROW) {
        lines.push(format!("{current} \\"));
        current.clear();
    }
    if !current.is_empty() {
        current.push(' ');
    }
    lines.push(current + &word);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words that a shell reads from these lines. A backslash at the end of a line continues it.
    fn words_of(lines: &[String]) -> Vec<String> {
        let script = format!("printf '%s\\n' {}\n", lines.join("\n"));
        let output = std::process::Command::new("sh")
            .arg("-c")
            .arg(script)
            .output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_long_command_goes_on_in_the_next_line_and_is_the_same_command() {
        let long = "a very long 'quoted' word ".repeat(9);
        let words = [
            "pagetide",
            "--store",
            "it's my store",
            "run",
            "x.toml",
            long.trim(),
            &"y".repeat(200),
        ];
        let line = shell(&words);
        for width in [8, 20, 30, 75, 1000] {
            let lines = continued(&line, width);
            assert!(
                lines.iter().all(|line| line.chars().count() <= width),
                "{lines:?}"
            );
            assert_eq!(words_of(&lines), words, "{width}");
        }
        assert_eq!(continued("a b c", 75), ["a b c"]);
        assert_eq!(
            continued("pagetide run x.toml", 12),
            ["pagetide \\", "run x.toml"]
        );
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_split_or_obey_them() {
        let words = ["pages=2 * memory", "vm.swappiness=10", "it's"];
        assert_eq!(
            shell(&words),
            r"'pages=2 * memory' vm.swappiness=10 'it'\''s'"
        );
        let no_text = OsStr::from_bytes(b"a'\\ \xff\n");
        assert_eq!(shell(&[no_text]), r"$'a\'\\ \xff\x0a'");
    }

    #[test]
    fn a_command_carries_what_was_given_before_its_own_words() {
        let carried = ["--store", "/a b", "--ascii"].map(str::to_owned);
        assert_eq!(
            built(&carried, &["compare", "x:a", "x:b"]),
            "pagetide --store '/a b' --ascii compare x:a x:b"
        );
    }
}
