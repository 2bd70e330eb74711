//! Command lines that messages tell the user to run. They are quoted for a shell and repeat the options that the user
//! gave for the store, the cache and the output.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

/// Options that every command line contains; set once.
static CARRIED: OnceLock<Vec<String>> = OnceLock::new();

/// Sets the options that every command line contains from now on, such as `--store DIR`. Must be called before the
/// first message; later calls have no effect.
pub fn carry(options: Vec<String>) {
    let _ = CARRIED.set(options);
}

/// The command line `pagetide WORDS…`, quoted for a shell.
pub fn command<T: AsRef<str>>(words: &[T]) -> String {
    built(CARRIED.get().map_or(&[], Vec::as_slice), words)
}

/// The same for words separated by spaces that need no quotes, between backticks for use in a sentence.
pub fn told(words: &str) -> String {
    let words: Vec<&str> = words.split(' ').collect();
    format!("`{}`", command(&words))
}

fn built<T: AsRef<str>>(carried: &[String], words: &[T]) -> String {
    let mut all = vec!["pagetide"];
    all.extend(carried.iter().map(String::as_str));
    all.extend(words.iter().map(AsRef::as_ref));
    shell(&all)
}

/// Joins words to one line for a shell. Words that the shell would split or interpret are quoted. A word that is not UTF-8 is
/// written as `$'\xff'`, which bash, ksh and zsh understand.
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

/// Quotes a word that is not UTF-8.
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

#[cfg(test)]
mod tests {
    use super::*;

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
