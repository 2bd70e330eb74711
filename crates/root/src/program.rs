//! The program of a command: an ELF executable, or a script and what interprets it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::WORK;
use crate::elf;
use crate::error::{RootError, io};
use crate::host::{Host, is_executable, take};
use crate::path::RootPath;
use crate::tree::Tree;

/// How many scripts may interpret one another. Source: Linux `fs/exec.c`, `exec_binprm`.
const MOST_SCRIPTS: usize = 5;

impl Host {
    /// Adds the program that the first word of a command names, as a shell would find it, and all that it needs to start.
    /// Returns where it lies inside, by the path that was asked for.
    pub fn program(&mut self, tree: &mut Tree, word: &str) -> Result<RootPath, RootError> {
        let host = if word.contains('/') {
            self.here.join(word)
        } else {
            self.on_path(word)?
        };
        let path = if word.contains('/') && !word.starts_with('/') {
            RootPath::new(word, WORK)?
        } else {
            RootPath::new(crate::host::text(&host)?, "")?
        };
        let mut at = host;
        let mut place = Some(path.clone());
        for _ in 0..=MOST_SCRIPTS {
            let metadata = fs::metadata(&at).map_err(io("reading", &at))?;
            if !metadata.is_file() {
                return Err(RootError::NotAProgram { path: at });
            }
            if !is_executable(&metadata) {
                return Err(RootError::NotExecutable { path: at });
            }
            // A program given by a relative path lies in the working folder inside; all others where they lie here.
            let real = match place.take().filter(|place| Path::new(place.as_str()) != at) {
                Some(place) => {
                    tree.file(&place, &at, true)?;
                    fs::canonicalize(&at).map_err(io("reading", &at))?
                }
                None => take(tree, &at)?.1,
            };
            let bytes = fs::read(&real).map_err(io("reading", &real))?;
            if elf::is_elf(&bytes) {
                self.close(tree, &real, true)?;
                merged(tree)?;
                return Ok(path);
            }
            let Some(line) = script(&bytes) else {
                return Err(RootError::NotAProgram { path: real });
            };
            at = self.interpreter(tree, &line, &real)?;
        }
        Err(RootError::NotAProgram { path: at })
    }

    /// The program that interprets a script. Where the script asks `env` for it, `env` is added too.
    fn interpreter(
        &mut self,
        tree: &mut Tree,
        line: &str,
        script: &Path,
    ) -> Result<PathBuf, RootError> {
        let mut words = line.split_whitespace();
        let program = words.next().unwrap_or_default();
        if !program.starts_with('/') {
            return Err(RootError::NotAProgram {
                path: script.to_owned(),
            });
        }
        let program = PathBuf::from(program);
        if program.file_name().is_some_and(|name| name == "env") {
            // env's options and variables come before the program.
            let asked = words.find(|word| !word.starts_with('-') && !word.contains('='));
            if let Some(asked) = asked {
                let (_, real) = take(tree, &program)?;
                self.close(tree, &real, true)?;
                return self.on_path(asked);
            }
        }
        Ok(program)
    }

    /// The executable of this name in the first folder of PATH that has one.
    fn on_path(&self, name: &str) -> Result<PathBuf, RootError> {
        let found = self.path.iter().find_map(|folder| {
            let path = self.here.join(folder).join(name);
            let metadata = fs::metadata(&path).ok()?;
            (metadata.is_file() && is_executable(&metadata)).then_some(path)
        });
        found.ok_or_else(|| RootError::NoProgram {
            name: name.to_owned(),
        })
    }
}

/// Adds the links that lead from the old folders of programs to those in `/usr`, where this machine has them: programs start
/// `/bin/sh` by that name.
fn merged(tree: &mut Tree) -> Result<(), RootError> {
    for folder in ["/bin", "/sbin"] {
        let inside = RootPath::new(folder, "")?;
        if tree.get(&inside).is_none() && fs::read_link(folder).is_ok() {
            take(tree, Path::new(folder))?;
        }
    }
    Ok(())
}

/// What stands after `#!` in a script's first line.
pub(crate) fn script(bytes: &[u8]) -> Option<String> {
    let line = bytes.strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}
