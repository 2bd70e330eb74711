//! Extracts a program with its loader and libraries from packages, for a guest that runs it during boot.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::elf;
use crate::error::{RootError, io};
use crate::loader::DEFAULT;
use crate::path::RootPath;
use crate::tree::{Entry, Source, Tree};

/// A program with its loader and its libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Content of the loader.
    pub loader: Vec<u8>,
    /// The program and its libraries: for each, the name under which the loader searches for it, and the content.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Tool {
    /// Extracts the program `name` from Debian packages, given as tar archives of their contents. `spool` is an empty
    /// folder for temporary files. Fails if the packages lack the program, its loader or a library.
    pub fn of(archives: &[PathBuf], name: &str, spool: &Path) -> Result<Self, RootError> {
        let mut tree = Tree::default();
        tree.packages(archives, spool)?;
        let absent = |name: &str| RootError::NotInRoot {
            name: name.to_owned(),
        };
        let program = bytes(&tree, &tree.program(name)?)?.ok_or_else(|| absent(name))?;
        let start = elf::read(Path::new(name), &program)?;
        let loader = start.interpreter.as_deref().unwrap_or_default();
        let loader = bytes(&tree, &RootPath::new(loader, "")?)?.ok_or_else(|| absent(loader))?;
        let mut files = vec![(name.to_owned(), program)];
        let mut seen = BTreeSet::new();
        let mut left = start.needed;
        while let Some(library) = left.pop() {
            // The loader was added already, so it is skipped where libraries depend on it.
            if library.starts_with("ld-linux") || !seen.insert(library.clone()) {
                continue;
            }
            let mut found = None;
            for folder in DEFAULT {
                let path = RootPath::new(&format!("{folder}/{library}"), "")?;
                found = bytes(&tree, &path)?;
                if found.is_some() {
                    break;
                }
            }
            let found = found.ok_or_else(|| RootError::NoLibrary {
                library: library.clone(),
                by: PathBuf::from(name),
            })?;
            left.extend(elf::read(Path::new(&library), &found)?.needed);
            files.push((library, found));
        }
        files[1..].sort();
        Ok(Self { loader, files })
    }
}

/// Returns the content of a file in the tree, following links; `None` if the file does not exist.
fn bytes(tree: &Tree, path: &RootPath) -> Result<Option<Vec<u8>>, RootError> {
    let real = tree.follow(path);
    Ok(match real.and_then(|real| tree.get(&real)) {
        Some(Entry::File { source, .. }) => Some(match source {
            Source::Bytes(bytes) => bytes.clone(),
            Source::Host(host) => fs::read(host).map_err(io("reading", host))?,
        }),
        _ => None,
    })
}
