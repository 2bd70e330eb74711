//! The program of a command: an ELF executable, or a script and what interprets it, and what each of them needs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::WORK;
use crate::elf;
use crate::error::{RootError, io};
use crate::host::{Host, is_executable, take, text};
use crate::path::RootPath;
use crate::resident::PATH;
use crate::tree::Tree;

/// How many scripts may interpret one another. Source: Linux `fs/exec.c`, `exec_binprm`.
const MOST_SCRIPTS: usize = 5;

/// Programs that start the program that their words name: options of theirs with a word of its own, and how many words come before it.
const CARRIERS: [(&str, &[&str], usize); 9] = [
    ("env", &["-u", "--unset", "-C", "--chdir"], 0),
    ("nice", &["-n", "--adjustment"], 0),
    ("nohup", &[], 0),
    ("setsid", &[], 0),
    ("time", &["-f", "--format", "-o", "--output"], 0),
    ("timeout", &["-k", "--kill-after", "-s", "--signal"], 1),
    ("stdbuf", &["-i", "-o", "-e"], 0),
    ("taskset", &[], 1),
    ("ionice", &["-c", "--class", "-n", "--classdata"], 0),
];

/// The way from a word of a command to the ELF executable that runs.
struct Chain {
    /// Where it begins inside, by the path that was asked for.
    path: RootPath,
    /// The executable, by the path by which it is started here.
    program: PathBuf,
    /// Its words before those of the command: what the scripts on the way add.
    words: Vec<String>,
    /// The executable and these words, where the kernel and `env` would not find the way inside.
    written_out: Option<Vec<String>>,
}

impl Host {
    /// Adds the program that the first word of a command names, as a shell would find it, and all that it needs to start.
    /// Returns where it lies inside, by the path that was asked for.
    pub fn program(&mut self, tree: &mut Tree, word: &str) -> Result<RootPath, RootError> {
        Ok(self.chain(tree, word)?.path)
    }

    /// Adds the programs that a command names with all that they need to start: what interprets a script, what an interpreter needs of
    /// its own library, what `env` and its like are to start. Returns the command as it is to be started inside.
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

    /// Adds a program that another one starts by its absolute path, with all that it needs to start.
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
        for _ in 0..=MOST_SCRIPTS {
            let metadata = fs::metadata(&at).map_err(io("reading", &at))?;
            if !metadata.is_file() {
                return Err(RootError::NotAProgram { path: at });
            }
            if !is_executable(&metadata) {
                return Err(RootError::NotExecutable { path: at });
            }
            // A program given by a relative path lies in the working folder inside; all others where they lie here.
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

    /// The program that interprets a script, its options, and whether it is found inside as it is here. Where the script asks `env` for
    /// it, `env` is added too.
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
            // env's options and variables come before the program.
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

    /// The executable of this name in the first folder of PATH that has one.
    pub(crate) fn on_path(&self, name: &str) -> Result<PathBuf, RootError> {
        self.on_path_without(name, None)
    }

    /// The same, without what lies in a folder.
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

/// How many words of a program come before the one that names the program that it starts; `None` where it starts none.
fn carried(program: &Path, words: &[String]) -> Option<usize> {
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
