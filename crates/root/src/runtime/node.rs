//! Adds what Node needs: files that its executable reads, and the files and packages that a script loads by name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Options, text_of};
use crate::error::{RootError, io};
use crate::host::{Host, Wants, take, text};
use crate::path::RootPath;
use crate::tree::Tree;

/// Options of Node that take an argument. Source: `node --help`.
const OPTIONS: Options<'static> = Options {
    code: &["-pe", "-e", "--eval", "-p", "--print"],
    module: &["-r", "--require", "--import"],
    other: &["-C", "--conditions"],
    is_last: false,
};

/// Folder in which Debian stores those modules that are built into Node elsewhere.
const OUTSIDE: &[u8] = b"/usr/share/nodejs/";
/// Suffixes that Node tries for a file loaded by name.
const ENDINGS: [&str; 7] = ["", ".js", ".mjs", ".cjs", ".json", ".node", "/index.js"];

/// State of adding a script's files to a tree.
struct Loading<'a> {
    host: &'a mut Host,
    tree: &'a mut Tree,
    /// Working directory on this machine, and its path inside the root. `None` if the script is given by an absolute
    /// path.
    base: Option<(PathBuf, RootPath)>,
    seen: BTreeSet<PathBuf>,
    left: Vec<PathBuf>,
}

impl Host {
    /// Adds everything that Node needs when started as `program` with the arguments `words`.
    pub(super) fn node(
        &mut self,
        tree: &mut Tree,
        program: &Path,
        words: &[String],
    ) -> Result<(), RootError> {
        for path in outside(program)? {
            take(tree, &path)?;
        }
        let task = OPTIONS.read(words);
        let (here, folder) = (self.here.clone(), self.folder.clone());
        let mut base = Some((here.clone(), RootPath::new(&folder, "")?));
        let mut named: Vec<(PathBuf, String)> = Vec::new();
        for code in &task.code {
            named.extend(loaded(code).into_iter().map(|name| (here.clone(), name)));
        }
        named.extend(task.modules.into_iter().map(|name| (here.clone(), name)));
        if let Some(word) = &task.script {
            let Some(script) = self.script(tree, word)? else {
                return Ok(());
            };
            if word.starts_with('/') {
                base = None;
            }
            let folder = script.here.parent().unwrap_or(&here).to_owned();
            named.extend(
                loaded(&script.text)
                    .into_iter()
                    .map(|name| (folder.clone(), name)),
            );
            named.push((folder, "./package.json".to_owned()));
        }
        let mut loading = Loading {
            host: self,
            tree,
            base,
            seen: BTreeSet::new(),
            left: Vec::new(),
        };
        for (folder, name) in named {
            loading.name(&folder, &name)?;
        }
        while let Some(file) = loading.left.pop() {
            let folder = file.parent().unwrap_or(&file).to_owned();
            for name in loaded(&text_of(&file)) {
                loading.name(&folder, &name)?;
            }
        }
        Ok(())
    }
}

impl Loading<'_> {
    /// Adds the file or package that code in `folder` loads by the name `name`.
    fn name(&mut self, folder: &Path, name: &str) -> Result<(), RootError> {
        if name.starts_with('.') || name.starts_with('/') {
            let tried = ENDINGS
                .iter()
                .map(|ending| folder.join(format!("{name}{ending}")));
            let found = tried.into_iter().find(|path| path.is_file());
            let found = found.and_then(|path| fs::canonicalize(path).ok());
            if let Some(path) = found.filter(|path| self.seen.insert(path.clone())) {
                let inside = self.inside(&path)?;
                if self.tree.get(&inside).is_none() {
                    self.host
                        .file(self.tree, text(&path)?, Some(inside.as_str()))?;
                }
                self.left.push(path);
            }
            return Ok(());
        }
        // Names have the form `package/part` or `@scope/package/part`.
        let parts = if name.starts_with('@') { 2 } else { 1 };
        let package: Vec<&str> = name.split('/').take(parts).collect();
        self.package(folder, &package.join("/"))
    }

    /// Adds a package and its dependencies, from the nearest `node_modules` folder at or above `folder` that contains
    /// it.
    fn package(&mut self, folder: &Path, package: &str) -> Result<(), RootError> {
        let mut left = vec![(folder.to_owned(), package.to_owned())];
        while let Some((folder, package)) = left.pop() {
            let mut folders = folder
                .ancestors()
                .map(|above| above.join("node_modules").join(&package));
            let Some(path) = folders.find(|path| path.is_dir()) else {
                continue;
            };
            let Ok(real) = fs::canonicalize(&path) else {
                continue;
            };
            if path != real && self.seen.insert(path.clone()) {
                let target = relative(&path, &real);
                let inside = self.inside(&path)?;
                self.tree.link(&inside, &target)?;
            }
            if !self.seen.insert(real.clone()) {
                continue;
            }
            let inside = self.inside(&real)?;
            self.host
                .library(self.tree, &real, Some(&inside), &Wants::ALL)?;
            let about: Value =
                serde_json::from_str(&text_of(&real.join("package.json"))).unwrap_or_default();
            for kind in ["dependencies", "optionalDependencies", "peerDependencies"] {
                let names = about[kind].as_object().into_iter().flatten();
                left.extend(names.map(|(name, _)| (real.clone(), name.clone())));
            }
        }
        Ok(())
    }

    /// Returns the path inside the root for a path on this machine.
    fn inside(&self, path: &Path) -> Result<RootPath, RootError> {
        if let Some((here, place)) = &self.base
            && let Ok(rest) = path.strip_prefix(here)
        {
            return place.join(text(rest)?);
        }
        RootPath::new(text(path)?, "")
    }
}

/// Returns the path of the file `real` relative to the folder that contains `link`.
fn relative(link: &Path, real: &Path) -> String {
    let from: Vec<_> = link.parent().unwrap_or(link).components().collect();
    let to: Vec<_> = real.components().collect();
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - same);
    let down = to[same..]
        .iter()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<String>>().join("/")
}

/// Returns the names of the files and packages that code loads. Text that only looks like a name either matches no file
/// or adds an unneeded file.
fn loaded(code: &str) -> Vec<String> {
    let mut names = Vec::new();
    for call in [
        "require(", "import(", "from ", "from\"", "from'", "import ", "import\"", "import'",
    ] {
        for (at, _) in code.match_indices(call) {
            let rest = code[at..].trim_start_matches(|c: char| c.is_ascii_alphabetic());
            let rest = rest.trim_start_matches(['(', ' ']);
            let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
                continue;
            };
            let name = rest[1..].split(quote).next().unwrap_or_default();
            if !name.is_empty()
                && name.len() < 256
                && !name.contains(['\n', ' '])
                && !name.starts_with("node:")
            {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// Returns the existing files in the folder [`OUTSIDE`] whose paths occur as text in the executable of Node or in its
/// shared library `libnode`.
fn outside(program: &Path) -> Result<Vec<PathBuf>, RootError> {
    let mut files = BTreeSet::new();
    let mut bytes = fs::read(program).map_err(io("reading", program))?;
    let library = crate::elf::read(program, &bytes)
        .map(|elf| elf.needed)
        .unwrap_or_default();
    if let Some(library) = library.iter().find(|name| name.starts_with("libnode.")) {
        let path = Path::new("/usr/lib/x86_64-linux-gnu").join(library);
        bytes.extend(fs::read(path).unwrap_or_default());
    }
    let mut rest = bytes.as_slice();
    while let Some(at) = rest
        .windows(OUTSIDE.len())
        .position(|window| window == OUTSIDE)
    {
        rest = &rest[at..];
        let is_of_path = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'');
        let length = rest
            .iter()
            .take(1024)
            .take_while(|byte| is_of_path(byte))
            .count();
        let path = PathBuf::from(String::from_utf8_lossy(&rest[..length]).into_owned());
        if path.is_file() {
            files.insert(path);
        }
        rest = &rest[OUTSIDE.len()..];
    }
    Ok(files.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_code_loads_are_found_in_all_their_forms() {
        let code = "const a = require('a'); import b from \"./b.js\";\nimport 'c'; const d = await import( '@s/d/e' );\n\
                    require(name); import fs from 'node:fs'; export * from './f'";
        assert_eq!(loaded(code), ["a", "@s/d/e", "./b.js", "./f", "c"]);
        let way = relative(
            Path::new("/p/node_modules/x"),
            Path::new("/p/node_modules/.s/x/node_modules/x"),
        );
        assert_eq!(way, ".s/x/node_modules/x");
    }
}
