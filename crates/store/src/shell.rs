//! Quoting of command lines in campaign files, records and messages.

/// Joins words to one line for a shell. Words that the shell would split or interpret are quoted.
pub fn shell<T: AsRef<str>>(words: &[T]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| {
            let word = word.as_ref();
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
    }
}
