//! Adds the program of a command to a root: an ELF executable, or a script with its interpreter, and everything they
//! need.

use std::fs;
use std::path::{Path, PathBuf};

use crate::WORK;
use crate::elf;
use crate::error::{RootError, io};
use crate::host::{Host, is_executable, take, text};
use crate::path::RootPath;
use crate::resident::{PATH, script};
use crate::tree::Tree;

/// Maximum number of scripts in a chain in which each is the interpreter of the one before. Source: Linux `fs/exec.c`,
/// `exec_binprm`.
const MAX_SCRIPTS: usize = 5;

/// Programs that start another program named in their arguments: name, options that take an argument, and number of
/// other arguments before the name of the program.
const CARRIERS: [(&str, &[&str], usize); 10] = [
    ("env", &["-u", "--unset", "-C", "--chdir"], 0),
    ("nice", &["-n", "--adjustment"], 0),
    ("nohup", &[], 0),
    ("setsid", &[], 0),
    ("time", &["-f", "--format", "-o", "--output"], 0),
    ("timeout", &["-k", "--kill-after", "-s", "--signal"], 1),
    ("stdbuf", &["-i", "-o", "-e"], 0),
    ("taskset", &[], 1),
    ("ionice", &["-c", "--class", "-n", "--classdata"], 0),
    (
        "xargs",
        &["-a", "-d", "-E", "-I", "-L", "-n", "-P", "-s"],
        0,
    ),
];

/// How a word of a command leads to the ELF executable that runs.
struct Chain {
    /// Path inside the root of the program that the word names.
    path: RootPath,
    /// Path on this machine of the executable, with links not resolved.
    program: PathBuf,
    /// Arguments that scripts insert before the arguments of the command.
    words: Vec<String>,
    /// Command words that start the executable directly. Used if the kernel or `env` would not find the interpreter
    /// inside the root.
    written_out: Option<Vec<String>>,
}

impl Host {
    /// Adds the program named by the first word of a command, and everything it needs to start. The program is looked
    /// up as by a shell. Returns its path inside the root, with links not resolved. Fails if the program is not found
    /// or cannot run in a guest.
    pub fn program(&mut self, tree: &mut Tree, word: &str) -> Result<RootPath, RootError> {
        Ok(self.chain(tree, word)?.path)
    }

    /// Adds the programs of a command and everything they need to start: interpreters of scripts, the interpreters'
    /// libraries, and programs that `env` and similar programs start. Returns the command to start inside the root.
    pub fn command(&mut self, tree: &mut Tree, words: &[String]) -> Result<Vec<String>, RootError> {
        let Some((word, rest)) = words.split_first() else {
            return Ok(Vec::new());
        };
        let chain = self.chain(tree, word)?;
        let mut command = match chain.written_out {
            Some(words) => words,
            None => vec![chain.path.to_string()],
        };
        if let (true, Some(before)) = (chain.words.is_empty(), carried(&chain.program, rest)) {
            command.extend_from_slice(&rest[..before]);
            command.extend(self.command(tree, &rest[before..])?);
            return Ok(command);
        }
        command.extend_from_slice(rest);
        let arguments = [&chain.words, rest].concat();
        self.runtime(tree, &chain.program, &arguments)?;
        Ok(command)
    }

    /// Adds a program that another program starts by an absolute path, and everything it needs to start.
    pub(crate) fn started(
        &mut self,
        tree: &mut Tree,
        program: &str,
        arguments: &[String],
    ) -> Result<(), RootError> {
        let chain = self.chain(tree, program)?;
        self.runtime(tree, &chain.program, &[&chain.words, arguments].concat())
    }

    fn chain(&mut self, tree: &mut Tree, word: &str) -> Result<Chain, RootError> {
        let mut at = if word.contains('/') {
            self.here.join(word)
        } else {
            self.on_path(word)?
        };
        let mut is_own = word.contains('/') && !word.starts_with('/');
        if let Some(real) = self.behind(&at)? {
            (at, is_own) = (real, false);
        }
        let path = if is_own {
            RootPath::new(word, WORK)?
        } else {
            RootPath::new(text(&at)?, "")?
        };
        let mut place = Some(path.clone());
        let (mut words, mut written_out) = (Vec::new(), None);
        for _ in 0..=MAX_SCRIPTS {
            let metadata = fs::metadata(&at).map_err(io("reading", &at))?;
            if !metadata.is_file() {
                return Err(RootError::NotAProgram { path: at });
            }
            if !is_executable(&metadata) {
                return Err(RootError::NotExecutable { path: at });
            }
            // A program given by a relative path is placed in the working folder inside. All others keep their path.
            let inside = place.take();
            let is_own = |place: &&RootPath| Path::new(place.as_str()) != at;
            let real = match inside.as_ref().filter(is_own) {
                Some(place) => {
                    tree.file(place, &at, true)?;
                    fs::canonicalize(&at).map_err(io("reading", &at))?
                }
                None => take(tree, &at)?.1,
            };
            let bytes = fs::read(&real).map_err(io("reading", &real))?;
            if elf::is_elf(&bytes) {
                self.close(tree, &real, true)?;
                merged(tree)?;
                return Ok(Chain {
                    path,
                    program: at,
                    words,
                    written_out,
                });
            }
            let Some(line) = script(&bytes) else {
                return Err(RootError::NotAProgram { path: real });
            };
            let name = inside.map_or(text(&at)?.to_owned(), |place| place.to_string());
            self.placed.insert(name.clone(), at.clone());
            words.insert(0, name);
            let (next, options, is_found) = self.interpreter(tree, &line, &real)?;
            words.splice(0..0, options);
            if !is_found {
                let whole = [text(&next)?.to_owned()].into_iter().chain(words.clone());
                written_out = Some(whole.collect());
            }
            at = next;
        }
        Err(RootError::NotAProgram { path: at })
    }

    /// Adds the interpreter of a script. Returns its path, its options, and true if it is found inside the root under
    /// the name in the script. `line` is the text after `#!`. If the script uses `env`, `env` is added too.
    fn interpreter(
        &mut self,
        tree: &mut Tree,
        line: &str,
        script: &Path,
    ) -> Result<(PathBuf, Vec<String>, bool), RootError> {
        let mut words = line.split_whitespace();
        let program = words.next().unwrap_or_default();
        if !program.starts_with('/') {
            return Err(RootError::NotAProgram {
                path: script.to_owned(),
            });
        }
        let program = PathBuf::from(program);
        let own = |words: std::str::SplitWhitespace<'_>| words.map(str::to_owned).collect();
        if program.file_name().is_some_and(|name| name == "env") {
            // Options and variables of `env` come before the name of the program.
            let asked = words.find(|word| !word.starts_with('-') && !word.contains('='));
            if let Some(asked) = asked {
                let (_, real) = take(tree, &program)?;
                self.close(tree, &real, true)?;
                let found = self.on_path(asked)?;
                let found = self.behind(&found)?.unwrap_or(found);
                let folder = found.parent().and_then(Path::to_str);
                let is_found = folder.is_some_and(|folder| PATH.contains(&folder));
                return Ok((found, own(words), is_found));
            }
        }
        match self.behind(&program)? {
            Some(real) => Ok((real, own(words), false)),
            None => Ok((program, own(words), true)),
        }
    }

    /// Returns the path on this machine of the executable `name`, in the first folder of `PATH` that contains it. Fails
    /// if there is none.
    pub(crate) fn on_path(&self, name: &str) -> Result<PathBuf, RootError> {
        self.on_path_without(name, None)
    }

    /// Returns the path on this machine of the executable `name`, in the first folder of `PATH` that contains it,
    /// except the folder `without`. Fails if there is none.
    pub(crate) fn on_path_without(
        &self,
        name: &str,
        without: Option<&Path>,
    ) -> Result<PathBuf, RootError> {
        let found = self.path.iter().find_map(|folder| {
            let folder = self.here.join(folder);
            if Some(folder.as_path()) == without {
                return None;
            }
            let path = folder.join(name);
            let metadata = fs::metadata(&path).ok()?;
            (metadata.is_file() && is_executable(&metadata)).then_some(path)
        });
        found.ok_or_else(|| RootError::NoProgram {
            name: name.to_owned(),
        })
    }
}

/// Returns the number of arguments before the one that names the program to start. `None` if `program` is not known to
/// start another program, or if the arguments name none.
pub(crate) fn carried(program: &Path, words: &[String]) -> Option<usize> {
    let name = program.file_name()?.to_str()?;
    let (_, valued, before) = CARRIERS.iter().find(|(carrier, ..)| *carrier == name)?;
    let mut positional = *before;
    let mut place = 0;
    while let Some(word) = words.get(place) {
        if valued.contains(&word.as_str()) {
            place += 2;
        } else if word.starts_with('-') || name == "env" && word.contains('=') {
            place += 1;
        } else if positional > 0 {
            positional -= 1;
            place += 1;
        } else {
            return Some(place);
        }
    }
    None
}

/// Adds links such as `/bin` that lead to the folders in `/usr`, if this machine has them. Programs use paths such as
/// `/bin/sh`.
fn merged(tree: &mut Tree) -> Result<(), RootError> {
    for folder in ["/bin", "/sbin"] {
        let inside = RootPath::new(folder, "")?;
        if tree.get(&inside).is_none() && fs::read_link(folder).is_ok() {
            take(tree, Path::new(folder))?;
        }
    }
    Ok(())
}
