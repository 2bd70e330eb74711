//! Adds what Ruby needs: its standard library, and the files that a script loads from its own folder.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Options, ends, text_of};
use crate::error::RootError;
use crate::host::{Host, Wants};
use crate::tree::Tree;

/// Options of Ruby that take an argument. Source: ruby(1).
const OPTIONS: Options<'static> = Options {
    code: &["-e"],
    module: &["-r"],
    other: &["-C", "-I", "-E"],
    is_last: false,
};

impl Host {
    /// Adds everything that Ruby needs when started as `program` with the arguments `words`.
    pub(super) fn ruby(
        &mut self,
        tree: &mut Tree,
        program: &Path,
        words: &[String],
    ) -> Result<(), RootError> {
        let prefix = program.parent().and_then(Path::parent);
        let prefix = prefix.unwrap_or(program);
        for folder in libraries(prefix) {
            self.library(tree, &folder, None, &Wants::ALL)?;
        }
        let Some(word) = OPTIONS.read(words).script else {
            return Ok(());
        };
        let Some(script) = self.script(tree, &word)? else {
            return Ok(());
        };
        // Files that the script names relative to itself may name further files relative to themselves.
        let mut left = vec![(script.here, script.inside, script.text)];
        while let Some((here, inside, text)) = left.pop() {
            for name in required(&text) {
                let file = if ends(&name, "rb") {
                    name
                } else {
                    format!("{name}.rb")
                };
                let path = here.with_file_name(&file);
                let place = inside
                    .parent()
                    .map(|folder| folder.join(file.trim_start_matches("./")));
                let (true, Some(Ok(place))) = (path.is_file(), place) else {
                    continue;
                };
                if tree.get(&place).is_none() {
                    self.file(
                        tree,
                        path.to_str().unwrap_or_default(),
                        Some(place.as_str()),
                    )?;
                    let text = text_of(&path);
                    left.push((path, place, text));
                }
            }
        }
        Ok(())
    }
}

/// Returns the names that a script's text loads with `require_relative`.
fn required(text: &str) -> Vec<String> {
    let literal = |line: &str| {
        let rest = line.trim().strip_prefix("require_relative")?.trim_start();
        let rest = rest
            .trim_start_matches('(')
            .trim_start()
            .strip_prefix(['"', '\''])?;
        Some(rest.split(['"', '\'']).next()?.to_owned())
    };
    text.lines().filter_map(literal).collect()
}

/// Returns the folders of Ruby's own library: those of each version below `prefix`, and Debian's folder for this
/// processor.
fn libraries(prefix: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for base in ["lib/ruby", "lib/x86_64-linux-gnu/ruby"] {
        let entries = fs::read_dir(prefix.join(base))
            .into_iter()
            .flatten()
            .flatten();
        for path in entries.map(|entry| entry.path()) {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            let is_version = name.starts_with(|c: char| c.is_ascii_digit());
            if is_version || name == "vendor_ruby" {
                folders.push(path);
            } else if name == "gems" {
                // Only the standard gems are added; users must give others with `--dir`.
                let of = fs::read_dir(&path).into_iter().flatten().flatten();
                folders.extend(of.map(|entry| entry.path().join("specifications/default")));
            }
        }
    }
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_required_from_beside_a_script_are_found() {
        let text = "require 'json'\nrequire_relative \"a/b\"\n  require_relative('c.rb')\n";
        assert_eq!(required(text), ["a/b", "c.rb"]);
    }
}
