//! The project's documents, for tests: their paths, and the commands, links and headings in them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Returns the paths of the documents relative to the repository: README.md, then all Markdown files below `docs` in
/// sorted order.
pub fn all(repository: &Path) -> io::Result<Vec<String>> {
    let mut found = vec![PathBuf::from("README.md")];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(repository.join(&folder))? {
            let path = folder.join(entry?.file_name());
            if repository.join(&path).is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path);
            }
        }
    }
    found[1..].sort();
    let names = found.into_iter();
    Ok(names.map(|path| path.display().to_string()).collect())
}

/// Returns the lines of a document's `sh` blocks, each with its line number, counted from one. A line that ends with a
/// backslash is joined with the next line.
pub fn shell_lines(document: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut is_shell, mut continues) = (false, false);
    for (nth, line) in document.lines().enumerate() {
        if line.starts_with("```") {
            (is_shell, continues) = (line == "```sh", false);
            continue;
        }
        if !is_shell {
            continue;
        }
        let part = line.strip_suffix('\\').unwrap_or(line);
        match found.last_mut().filter(|_| continues) {
            Some((_, whole)) => whole.push_str(part),
            None => found.push((nth + 1, part.to_owned())),
        }
        continues = line.ends_with('\\');
    }
    found
}

/// Returns the texts between backticks in a document's prose, each with its line number.
pub fn code_spans(document: &str) -> Vec<(usize, String)> {
    let lines = prose(document);
    let spans = lines.into_iter().flat_map(|(nth, line)| {
        let spans = line.split('`').skip(1).step_by(2);
        spans.map(move |span| (nth, span.to_owned()))
    });
    spans.collect()
}

/// Returns the words of a shell command, without quotes. The command ends at a pipe, a redirection, the next command or
/// a comment.
pub fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | '>' | '<' | '&' | ';') => break,
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Returns the targets of a document's links and pictures, each with its line number.
pub fn links(document: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (nth, line) in prose(document) {
        let without_code: String = line.split('`').step_by(2).collect();
        for rest in without_code.split("](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                found.push((nth, target.to_owned()));
            }
        }
    }
    found
}

/// Returns the anchors of a document's headings, as GitHub forms them: lower-case letters, digits, underscores and
/// hyphens. Spaces become hyphens; other characters are left out.
pub fn anchors(document: &str) -> Vec<String> {
    let lines = prose(document).into_iter();
    let headings = lines.filter_map(|(_, line)| {
        let heading = line.trim_start_matches('#');
        (heading.len() < line.len()).then(|| heading.strip_prefix(' ').map(str::to_owned))?
    });
    let anchor = |heading: String| {
        let kept = heading.chars().filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            c if c.is_alphanumeric() => Some(c),
            _ => None,
        });
        kept.flat_map(char::to_lowercase).collect()
    };
    headings.map(anchor).collect()
}

/// Returns the lines of a document outside code blocks, each with its line number.
fn prose(document: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let lines = document.lines().enumerate();
    let outside = lines.filter(|(_, line)| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_fence && !is_code
    });
    outside.map(|(nth, line)| (nth + 1, line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "# What `--set` does?\n\nSee [a](b.md#c-d) and ![p](p.png), not `[x](y)`.\n\n```sh\n\
        pagetide run a \\\n  -- b   # why\nmake run\n```\n\n```text\n[no](link)\npagetide no\n```\n## Two-fold_one\nSay `make test`.\n";

    #[test]
    fn commands_links_spans_and_anchors_are_found_where_they_are_and_nowhere_else() {
        let own = |(line, text): (usize, &str)| (line, text.to_owned());
        let shell = [(6, "pagetide run a   -- b   # why"), (8, "make run")].map(own);
        assert_eq!(shell_lines(DOCUMENT), shell);
        assert_eq!(links(DOCUMENT), [(3, "b.md#c-d"), (3, "p.png")].map(own));
        assert_eq!(anchors(DOCUMENT), ["what---set-does", "two-fold_one"]);
        let spans = [(1, "--set"), (3, "[x](y)"), (16, "make test")].map(own);
        assert_eq!(code_spans(DOCUMENT), spans);
    }

    #[test]
    fn words_end_where_the_shell_ends_them_and_not_within_quotes() {
        assert_eq!(
            words("a 'b | c' \"d>e\" f  # g"),
            ["a", "b | c", "d>e", "f"]
        );
        assert_eq!(words("a b > c"), ["a", "b"]);
        assert_eq!(words("a '' b && c"), ["a", "", "b"]);
    }
}
