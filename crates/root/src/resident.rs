//! Finds the program of a command in a root that has its own programs, without adding anything to the root.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::WORK;
use crate::elf::{self, Elf};
use crate::error::{RootError, io};
use crate::path::RootPath;
use crate::tree::{Entry, Source, Tree};

/// Folders inside a root in which programs are looked up, in order; also the `PATH` of the program.
pub(crate) const PATH: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

impl Tree {
    /// Returns the path inside the root of the program named by the first word of a command. Fails if the root lacks
    /// the program, its loader or interpreter, or a library that it needs.
    pub fn program(&self, word: &str) -> Result<RootPath, RootError> {
        let absent = |name: &str| RootError::NotInRoot {
            name: name.to_owned(),
        };
        let path = if word.contains('/') {
            RootPath::new(word, WORK)?
        } else {
            let mut places = PATH.iter().map(|folder| format!("{folder}/{word}"));
            let found = places.find(|place| self.leads_to_file(place));
            RootPath::new(&found.ok_or_else(|| absent(word))?, "")?
        };
        let bytes = self.read(&path, true).ok_or_else(|| absent(word))??;
        let needed = if elf::is_elf(&bytes) {
            let elf = elf::read(path.as_str().as_ref(), &bytes)?;
            let missing = self.libraries(&path, &elf);
            let loader = elf.interpreter.filter(|loader| !self.leads_to_file(loader));
            // Without the loader, the libraries are not searched.
            return match loader {
                Some(loader) => Err(absent(&loader)),
                None => missing.map(|()| path),
            };
        } else {
            let line = script(&bytes).ok_or_else(|| RootError::NotAProgram {
                path: path.as_str().into(),
            })?;
            line.split_whitespace().next().map(str::to_owned)
        };
        match needed {
            Some(needed) if !self.leads_to_file(&needed) => Err(absent(&needed)),
            _ => Ok(path),
        }
    }

    /// Fails if a library that the program needs is nowhere in this root, so that no search path could find it.
    fn libraries(&self, program: &RootPath, elf: &Elf) -> Result<(), RootError> {
        let mut left: Vec<(RootPath, String)> = Vec::new();
        let needs = |by: &RootPath, elf: &Elf| -> Vec<(RootPath, String)> {
            let names = elf.needed.iter().filter(|name| !name.contains('/'));
            names.map(|name| (by.clone(), name.clone())).collect()
        };
        left.extend(needs(program, elf));
        let mut seen = BTreeSet::new();
        let mut by_name = BTreeMap::new();
        for (path, _) in self.entries() {
            by_name.entry(path.name()).or_insert(path);
        }
        while let Some((by, name)) = left.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            let Some(library) = by_name.get(name.as_str()).copied() else {
                return Err(RootError::NoLibraryInRoot {
                    library: name,
                    by: by.to_string(),
                });
            };
            // A library that is not ELF is left to the loader.
            if let Some(Ok(bytes)) = self.read(library, false)
                && let Ok(elf) = elf::read(library.as_str().as_ref(), &bytes)
            {
                left.extend(needs(library, &elf));
            }
        }
        Ok(())
    }

    pub(crate) fn leads_to_file(&self, path: &str) -> bool {
        let real = RootPath::new(path, "")
            .ok()
            .and_then(|path| self.follow(&path));
        real.is_some_and(|real| matches!(self.get(&real), Some(Entry::File { .. })))
    }

    /// Returns the content of a file in the root. `None` if there is no such file, or if `is_program` is true and the
    /// file is not executable.
    pub(crate) fn read(
        &self,
        path: &RootPath,
        is_program: bool,
    ) -> Option<Result<Vec<u8>, RootError>> {
        match self.get(&self.follow(path)?)? {
            Entry::File {
                source, executable, ..
            } if *executable || !is_program => Some(match source {
                Source::Bytes(bytes) => Ok(bytes.clone()),
                Source::Host(host) => fs::read(host).map_err(io("reading", host)),
            }),
            _ => None,
        }
    }
}

/// Returns the text after `#!` in a script's first line; `None` if `bytes` do not begin with `#!`.
pub(crate) fn script(bytes: &[u8]) -> Option<String> {
    let line = bytes.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}
