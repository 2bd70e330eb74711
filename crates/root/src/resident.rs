//! The program of a command in a root that brings its own: looked for inside, and nothing added.

use std::fs;

use crate::WORK;
use crate::elf;
use crate::error::{RootError, io};
use crate::path::RootPath;
use crate::program::script;
use crate::tree::{Entry, Source, Tree};

/// Folders of programs, in the order in which they are searched: those of the PATH that programs find.
const PATH: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

impl Tree {
    /// Where the program lies that the first word of a command names, which must be able to start in this root.
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
        let bytes = self.read(&path).ok_or_else(|| absent(word))??;
        let needed = if elf::is_elf(&bytes) {
            elf::read(path.as_str().as_ref(), &bytes)?.interpreter
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

    fn leads_to_file(&self, path: &str) -> bool {
        let real = RootPath::new(path, "")
            .ok()
            .and_then(|path| self.follow(&path));
        real.is_some_and(|real| matches!(self.get(&real), Some(Entry::File { .. })))
    }

    /// The bytes of an executable file; nothing where there is none.
    fn read(&self, path: &RootPath) -> Option<Result<Vec<u8>, RootError>> {
        match self.get(&self.follow(path)?)? {
            Entry::File {
                executable: true,
                source,
                ..
            } => Some(match source {
                Source::Bytes(bytes) => Ok(bytes.clone()),
                Source::Host(host) => fs::read(host).map_err(io("reading", host)),
            }),
            _ => None,
        }
    }
}
