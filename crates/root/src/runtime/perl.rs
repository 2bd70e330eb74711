//! Adds what Perl needs: the modules that a script loads by name, with their libraries.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Options, ends, text_of};
use crate::elf;
use crate::error::{RootError, io};
use crate::host::{Host, Wants, take};
use crate::tree::Tree;

/// Options of Perl that take an argument. Source: perlrun(1).
const OPTIONS: Options<'static> = Options {
    code: &["-e", "-E"],
    module: &["-M", "-m"],
    other: &["-I"],
    is_last: false,
};

/// Modules that need a folder of tables: name of the module's file, and the folder.
const TABLES: [(&str, &str); 3] = [
    ("charnames.pm", "unicore"),
    ("_charnames.pm", "unicore"),
    ("Unicode/UCD.pm", "unicore"),
];

impl Host {
    /// Adds everything that Perl needs when started as `program` with the arguments `words`.
    pub(super) fn perl(
        &mut self,
        tree: &mut Tree,
        program: &Path,
        words: &[String],
    ) -> Result<(), RootError> {
        let task = OPTIONS.read(words);
        let mut left: Vec<String> = task.code.iter().flat_map(|code| used(code)).collect();
        // Options may have forms such as `-MX=a,b` and `-M-X`.
        let named = task.modules.iter();
        let named = named.filter_map(|name| name.trim_start_matches('-').split('=').next());
        left.extend(named.map(file_of));
        if let Some(word) = &task.script
            && let Some(script) = self.script(tree, word)?
        {
            left.extend(used(&script.text));
        }
        if left.is_empty() {
            return Ok(());
        }
        let folders = folders(program)?;
        let mut seen = BTreeSet::new();
        while let Some(file) = left.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            let Some(folder) = folders.iter().find(|folder| folder.join(&file).is_file()) else {
                continue;
            };
            let path = folder.join(&file);
            let (_, real) = take(tree, &path)?;
            left.extend(used(&text_of(&real)));
            // For the module: its library, its tables, and its autoloaded functions.
            let auto = folder.join("auto").join(file.trim_end_matches(".pm"));
            let tables = TABLES.iter().find(|(module, _)| *module == file);
            let tables = tables.map(|(_, tables)| folder.join(tables));
            let heavy = path.with_file_name(format!(
                "{}_heavy.pl",
                path.file_stem()
                    .and_then(|stem| stem.to_str())
                    .unwrap_or_default()
            ));
            if heavy.is_file() {
                take(tree, &heavy)?;
                left.extend(used(&text_of(&heavy)));
            }
            for path in [Some(auto), tables].into_iter().flatten() {
                if path.is_dir() {
                    self.library(tree, &path, None, &Wants::ALL)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the file of a module, relative to a library folder: `A/B.pm` for `A::B`.
fn file_of(module: &str) -> String {
    format!("{}.pm", module.replace("::", "/"))
}

/// Returns the files of the modules that code loads by name. Text that only looks like a module either matches no file
/// or adds an unneeded file.
fn used(code: &str) -> Vec<String> {
    let mut files = Vec::new();
    let end = code.find("\n__END__").unwrap_or(code.len());
    let is_module = |name: &str| {
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        starts
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
    };
    for statement in code[..end].split([';', '{', '}', '\n']) {
        let mut words = statement.split_whitespace();
        if !matches!(words.next(), Some("use" | "no" | "require")) {
            continue;
        }
        let Some(name) = words.next() else { continue };
        let name = name.trim_matches(['"', '\'', '(', ')', ',']);
        if ends(name, "pl") || ends(name, "pm") {
            files.push(name.to_owned());
        } else if is_module(name) {
            files.push(file_of(name));
            if matches!(name, "parent" | "base") {
                let bases = words.map(|word| word.trim_matches(['"', '\'', '(', ')', ',']));
                let bases =
                    bases.map(|word| word.trim_start_matches("qw").trim_matches(['(', ')', '/']));
                files.extend(bases.filter(|word| is_module(word)).map(file_of));
            }
        }
    }
    files
}

/// Returns the folders in which this Perl searches for modules, in the order in which its executable or library
/// contains their names.
fn folders(program: &Path) -> Result<Vec<PathBuf>, RootError> {
    let bytes = fs::read(program).map_err(io("reading", program))?;
    let mut folders = named_in(&bytes);
    let needed = elf::read(program, &bytes)
        .map(|elf| elf.needed)
        .unwrap_or_default();
    if let Some(library) = needed.iter().find(|name| name.starts_with("libperl.")) {
        let path = Path::new("/usr/lib/x86_64-linux-gnu").join(library);
        folders.extend(named_in(&fs::read(path).unwrap_or_default()));
    }
    Ok(folders)
}

/// Returns the existing folders whose paths occur in these bytes and contain "perl". Such folders may contain Perl
/// modules.
fn named_in(bytes: &[u8]) -> Vec<PathBuf> {
    let texts = bytes.split(|byte| *byte == 0);
    let texts = texts.filter(|text| text.starts_with(b"/") && text.len() < 256);
    let texts = texts.filter_map(|text| std::str::from_utf8(text).ok());
    let mut folders: Vec<PathBuf> = Vec::new();
    for path in texts
        .filter(|text| text.contains("perl"))
        .map(PathBuf::from)
    {
        if !folders.contains(&path) && path.is_dir() {
            folders.push(path);
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_code_loads_are_found_by_their_files() {
        let code = "use strict; use warnings;\nuse List::Util qw(sum);\n  require Carp;\nuse parent qw(A::B C);\nuse 5.010;\n\
                    eval { require Time::HiRes }; no integer;\n__END__\nuse Never;";
        assert_eq!(
            used(code),
            [
                "strict.pm",
                "warnings.pm",
                "List/Util.pm",
                "Carp.pm",
                "parent.pm",
                "A/B.pm",
                "C.pm",
                "Time/HiRes.pm",
                "integer.pm"
            ]
        );
    }
}
