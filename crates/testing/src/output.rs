//! Blocks of command output in documents: which command produced each, and whether it would still produce the same.
//!
//! A comment precedes each block. Its first line states how many minutes the commands take, a digest of the guest
//! program's sources that the output came from, and a seal (a digest over commands, sources and output). Then come the
//! commands, and the changes made to the output of the last command:
//!
//! ```text
//! <!-- output of 1 minute, sources 0123456789ab, seal ba9876543210
//! with numbers 600000
//! pagetide run --memory 16M --file numbers -- sort numbers
//! cut "Records:" to "" as "[…]"
//! -->
//! ```
//!
//! `with numbers` first creates a file of that name with this many lines. `with prompt` shows the last command above
//! its output. A cut removes the lines from the first that begins with one text (or from the start) up to the next that
//! begins with another (or to the end), and inserts a text instead. A block that no command can reproduce has a comment
//! with the reason: `<!-- by hand: … -->`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Maximum minutes of a block that is reproduced in every test run. A block that takes longer is reproduced on demand
/// only, and may come from older guest sources.
pub const LONG_MINUTES: u32 = 1;
/// Stands in place of the digest of the guest sources if the output does not depend on a guest.
pub const NO_GUEST: &str = "none";
/// The crates that are compiled into the guest program, on which the results of every exact trial depend.
const GUEST: [&str; 9] = [
    "guest",
    "harness",
    "probe",
    "quantity",
    "record",
    "reference",
    "scenario",
    "system",
    "workload",
];
/// Number of hexadecimal digits of a digest in a comment.
const DIGITS: usize = 12;
const BEGIN: &str = "<!-- output of ";
const BY_HAND: &str = "<!-- by hand: ";

/// Lines of an output that are replaced by a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Beginning of the first removed line; empty to remove from the first line of the output.
    pub from: String,
    /// Beginning of the first line after the removed ones; empty to remove up to the end of the output.
    pub to: String,
    /// Text inserted instead of the removed lines; empty to insert nothing.
    pub text: String,
}

/// A block of command output in a document, with the content of its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Line number of the block's comment, from 1.
    pub line: usize,
    /// Time that the commands take, in minutes.
    pub minutes: u32,
    /// Digest of the guest sources that the output came from, or [`NO_GUEST`].
    pub sources: String,
    /// Seal stated in the comment.
    pub seal: String,
    /// Number of lines of the file `numbers` that the commands read; `None` if there is no such file.
    pub numbers: Option<u32>,
    /// True if the last command is shown above its output.
    pub has_prompt: bool,
    /// Commands in the comment; the block shows the output of the last command.
    pub commands: Vec<String>,
    /// Lines removed from the output.
    pub cuts: Vec<Cut>,
    /// Text of the block between the fences.
    pub text: String,
    /// The word after the opening fence.
    language: String,
    /// Byte range of the comment and the block in the document.
    place: Range<usize>,
}

impl Block {
    /// Returns the seal for the block's current commands, cuts, sources and output. It differs from the seal in the
    /// comment if one of these was edited by hand.
    pub fn right_seal(&self) -> String {
        digest(&[&self.commands_and_cuts(), &self.sources, &self.text])
    }

    /// Returns true if the output came from guest sources with a digest other than `sources`.
    pub fn is_stale(&self, sources: &str) -> bool {
        self.sources != NO_GUEST && self.sources != sources
    }

    /// Returns true if the block is reproduced on demand only.
    pub fn is_long(&self) -> bool {
        self.minutes > LONG_MINUTES
    }

    /// Applies the cuts to the output of the last command, and puts the prompt before it if the block has one. Returns
    /// the text for the document. Fails if a cut matches no line.
    pub fn shown(&self, output: &str) -> Result<String, String> {
        let mut lines: Vec<&str> = output.trim_end().lines().map(str::trim_end).collect();
        for cut in &self.cuts {
            let begins = |line: &&str, with: &str| line.trim_start().starts_with(with);
            let from = match cut.from.as_str() {
                "" => Some(0),
                from => lines.iter().position(|line| begins(line, from)),
            };
            let from = from.ok_or_else(|| format!("no line begins with `{}`", cut.from))?;
            let to = match cut.to.as_str() {
                "" => lines.len(),
                to => {
                    let after = lines[from..].iter().position(|line| begins(line, to));
                    from + after.ok_or_else(|| format!("no line after it begins with `{to}`"))?
                }
            };
            let instead = Some(cut.text.as_str()).filter(|text| !text.is_empty());
            lines.splice(from..to, instead);
        }
        let mut text = String::new();
        if let (true, Some(last)) = (self.has_prompt, self.commands.last()) {
            let _ = writeln!(text, "$ {last}");
        }
        for line in lines {
            let _ = writeln!(text, "{line}");
        }
        Ok(text.trim_end().to_owned() + "\n")
    }

    /// Returns the document with this block's text replaced, its sources updated and a new seal.
    pub fn replaced(&self, document: &str, text: String, sources: &str) -> String {
        let mut new = self.clone();
        new.text = text;
        if new.sources != NO_GUEST {
            new.sources = sources.to_owned();
        }
        new.seal = new.right_seal();
        let mut out = document.to_owned();
        out.replace_range(self.place.clone(), &new.written());
        out
    }

    /// Returns the text of the commands and cuts, as written in the comment.
    fn commands_and_cuts(&self) -> String {
        let mut out = String::new();
        if let Some(numbers) = self.numbers {
            let _ = writeln!(out, "with numbers {numbers}");
        }
        if self.has_prompt {
            out.push_str("with prompt\n");
        }
        for command in &self.commands {
            let _ = writeln!(out, "{command}");
        }
        for Cut { from, to, text } in &self.cuts {
            let _ = writeln!(out, "cut \"{from}\" to \"{to}\" as \"{text}\"");
        }
        out
    }

    fn written(&self) -> String {
        let unit = if self.minutes == 1 {
            "minute"
        } else {
            "minutes"
        };
        format!(
            "{BEGIN}{} {unit}, sources {}, seal {}\n{}-->\n```{}\n{}```\n",
            self.minutes,
            self.sources,
            self.seal,
            self.commands_and_cuts(),
            self.language,
            self.text
        )
    }
}

/// Returns the first 12 hexadecimal digits of a SHA-256 over all parts and the length of each part.
pub fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    let mut out = String::new();
    for byte in hash.finalize().iter().take(DIGITS / 2) {
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// Returns a digest of the guest program's sources without comments and empty lines. It is the same on every machine,
/// unlike a digest of the compiled program, which also depends on the C library.
pub fn sources(repository: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    for name in GUEST {
        collect(
            &repository.join("crates").join(name).join("src"),
            &mut files,
        )?;
    }
    files.sort();
    let mut code = String::new();
    for file in files {
        let text = fs::read_to_string(&file)?;
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with("//")) {
            code.push_str(line);
            code.push('\n');
        }
    }
    Ok(digest(&[&code]))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the content of the file `numbers` that commands in documents read: `lines` lines with numbers that look
/// random.
pub fn numbers(lines: u32) -> String {
    let mut text = String::new();
    for n in 0..lines {
        let _ = writeln!(text, "{}", n.wrapping_mul(2_654_435_761));
    }
    text
}

/// Returns the output blocks of a document, in order. Each error is one line with line number and reason.
pub fn blocks(document: &str) -> Result<Vec<Block>, Vec<String>> {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    let lines: Vec<&str> = document.split_inclusive('\n').collect();
    let starts: Vec<usize> = lines
        .iter()
        .scan(0, |at, line| {
            let start = *at;
            *at += line.len();
            Some(start)
        })
        .collect();
    let end_of = |line: usize| starts.get(line).copied().unwrap_or(document.len());
    let mut at = 0;
    let mut is_by_hand = false;
    while at < lines.len() {
        let line = lines[at];
        if line.starts_with(BEGIN) {
            let end = (at..lines.len()).find(|place| lines[*place].trim_end() == "-->");
            let fence = end.map_or(lines.len(), |end| end + 1);
            let close = (fence + 1..lines.len()).find(|place| lines[*place].trim_end() == "```");
            let opens = lines
                .get(fence)
                .and_then(|line| line.trim_end().strip_prefix("```"));
            let (Some(language), Some(close)) = (opens, close) else {
                faults.push(format!(
                    "{}: no block stands right after this comment",
                    at + 1
                ));
                at += 1;
                continue;
            };
            let text: String = lines[fence + 1..close].concat();
            match marker(&lines[at..fence - 1]) {
                Ok(marker) => found.push(Block {
                    line: at + 1,
                    text,
                    language: language.to_owned(),
                    place: starts[at]..end_of(close + 1),
                    ..marker
                }),
                Err(what) => faults.push(format!("{}: {what}", at + 1)),
            }
            at = close + 1;
            continue;
        }
        if let Some(language) = line.trim_end().strip_prefix("```") {
            if ["", "text"].contains(&language) && !is_by_hand {
                let what = "no comment says which command made this block, or why none can";
                faults.push(format!("{}: {what}", at + 1));
            }
            let close = (at + 1..lines.len()).find(|place| lines[*place].trim_end() == "```");
            at = close.unwrap_or(lines.len());
        }
        is_by_hand = line.starts_with(BY_HAND) && line.trim_end().ends_with("-->");
        at += 1;
    }
    if faults.is_empty() {
        Ok(found)
    } else {
        Err(faults)
    }
}

/// Parses the comment of a block. `lines` contains the lines of the comment without the last one. Fails if a line has
/// another form, or if there is no command.
fn marker(lines: &[&str]) -> Result<Block, String> {
    let wrong =
        || "the comment begins `output of N minutes, sources DIGEST, seal DIGEST`".to_owned();
    let (head, rest) = lines.split_first().ok_or_else(wrong)?;
    let mut parts = head.trim_end().trim_start_matches(BEGIN).split(", ");
    let minutes = parts
        .next()
        .and_then(|part| part.split(' ').next()?.parse().ok());
    let mut named = |name: &str| {
        parts
            .next()
            .and_then(|part| part.strip_prefix(name)?.strip_prefix(' '))
    };
    let (sources, seal) = (named("sources"), named("seal"));
    let (Some(minutes), Some(sources), Some(seal)) = (minutes, sources, seal) else {
        return Err(wrong());
    };
    let mut block = Block {
        line: 0,
        minutes,
        sources: sources.to_owned(),
        seal: seal.to_owned(),
        numbers: None,
        has_prompt: false,
        commands: Vec::new(),
        cuts: Vec::new(),
        text: String::new(),
        language: String::new(),
        place: 0..0,
    };
    for line in rest.iter().map(|line| line.trim_end()) {
        if let Some(count) = line.strip_prefix("with numbers ") {
            let count = count
                .parse()
                .map_err(|_| format!("`{count}` is no number of lines"))?;
            block.numbers = Some(count);
        } else if line == "with prompt" {
            block.has_prompt = true;
        } else if line.starts_with("pagetide ") {
            block.commands.push(line.to_owned());
        } else if let Some(cut) = line.strip_prefix("cut ") {
            block.cuts.push(cut_of(cut).ok_or_else(|| {
                format!("`{line}` is not of the form cut \"FROM\" to \"TO\" as \"TEXT\"")
            })?);
        } else {
            return Err(format!(
                "`{line}` is neither a command of pagetide, a cut, `with numbers N` nor `with prompt`"
            ));
        }
    }
    if block.commands.is_empty() {
        return Err("the comment names no command".to_owned());
    }
    Ok(block)
}

fn cut_of(text: &str) -> Option<Cut> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    let (from, rest) = inside.split_once("\" to \"")?;
    let (to, text) = rest.split_once("\" as \"")?;
    let [from, to, text] = [from, to, text].map(str::to_owned);
    Some(Cut { from, to, text })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const DOCUMENT: &str = "Before.\n\n<!-- output of 1 minute, sources old, seal new\nwith prompt\npagetide ideal zipf\n\
        cut \"2\" to \"5\" as \"[…]\"\n-->\n```text\nanything\n```\n\nAfter.\n";

    fn sealed(sources: &str) -> String {
        let block = &blocks(DOCUMENT).unwrap()[0];
        let shown = block.shown("1 a\n 2 b\n3 c\n5 e\n\n").unwrap();
        block.replaced(DOCUMENT, shown, sources)
    }

    #[test]
    fn what_a_command_wrote_replaces_the_block_with_its_cuts_and_is_sealed() {
        let document = sealed("now");
        assert!(
            document
                .contains("\n-->\n```text\n$ pagetide ideal zipf\n1 a\n[…]\n5 e\n```\n\nAfter.\n")
        );
        assert!(document.starts_with("Before.\n\n<!-- output of 1 minute, sources now, seal "));
        let block = &blocks(&document).unwrap()[0];
        assert_eq!(block.seal, block.right_seal());
        assert!(!block.is_stale("now") && block.is_stale("later"));
        assert_eq!(
            block.shown("1\n"),
            Err("no line begins with `2`".to_owned())
        );
    }

    #[test]
    fn a_change_by_hand_of_block_command_or_sources_breaks_the_seal() {
        let good = sealed("now");
        for (from, to) in [
            ("1 a", "1 b"),
            ("zipf\ncut", "zipf05\ncut"),
            ("sources now", "sources then"),
            ("as \"[…]\"", "as \"\""),
        ] {
            let changed = good.replace(from, to);
            assert_ne!(changed, good);
            let block = &blocks(&changed).unwrap()[0];
            assert_ne!(block.seal, block.right_seal(), "{from}");
        }
    }

    #[test]
    fn comments_without_block_blocks_without_comment_and_unknown_words_are_told_with_their_line() {
        let faults = |text: &str| blocks(text).unwrap_err().join("\n");
        let no_block = DOCUMENT.replace("```text\nanything\n```\n", "");
        assert!(faults(&no_block).starts_with("3: no block"));
        assert!(faults("\n```text\nx\n```\n").starts_with("2: no comment says"));
        assert!(
            blocks("<!-- by hand: it needs a tree -->\n```\nx\n```\n")
                .unwrap()
                .is_empty()
        );
        assert!(
            blocks("```sh\npagetide run linear\n```\n")
                .unwrap()
                .is_empty()
        );
        for (from, to, what) in [
            ("pagetide ideal", "rm -r", "neither a command"),
            ("seal new", "sealed", "the comment begins"),
            ("of 1", "of some", "the comment begins"),
            ("as \"[…]\"", "as nothing", "not of the form"),
            ("pagetide ideal zipf\n", "", "names no command"),
        ] {
            assert!(faults(&DOCUMENT.replace(from, to)).contains(what), "{to}");
        }
    }
}
