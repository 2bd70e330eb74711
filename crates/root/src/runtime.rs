//! Adds everything an interpreter needs besides its executable's libraries: its standard library, the script, and the
//! files that the script loads.
//!
//! Nothing is executed to find these files: scripts are searched for the names that they load. Names that are computed
//! at run time are not found, so users must give such files with `--dir` or `--file`.

mod imports;
mod java;
mod node;
mod perl;
mod pieces;
mod python;
mod ruby;
mod shell;

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::RootError;
use crate::host::{Host, ShellLine, is_elf, is_executable};
use crate::path::RootPath;
use crate::tree::{Entry, Tree};

/// Maximum size in bytes of a script that is searched for names.
const MAX_SCRIPT: u64 = 4 << 20;

/// A script that an interpreter runs.
struct Script {
    /// Path of the script inside the root.
    inside: RootPath,
    /// Path of the script on this machine.
    here: PathBuf,
    /// Text of the script; empty for a folder, and for a file larger than [`MAX_SCRIPT`].
    text: String,
}

impl Host {
    /// Adds everything that an interpreter needs when it is started with the arguments `words`. Does nothing if
    /// `program` is not a known interpreter.
    pub(crate) fn runtime(
        &mut self,
        tree: &mut Tree,
        program: &Path,
        words: &[String],
    ) -> Result<(), RootError> {
        let real = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
        let kind = kind(program).or_else(|| kind(&real));
        match kind {
            Some("python") => self.python(tree, program, words),
            Some("perl") => self.perl(tree, &real, words),
            Some("node" | "nodejs") => self.node(tree, &real, words),
            Some("ruby") => self.ruby(tree, &real, words),
            Some("java") => self.java(tree, &real, words),
            Some("sh" | "bash" | "dash" | "ash" | "ksh" | "mksh" | "zsh") => {
                self.shell(tree, words)
            }
            Some("find") => {
                let words = [&["find".to_owned()], words].concat();
                self.lines.push(ShellLine::of(&words));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// If the program at `path` is a known interpreter, adds everything it needs to run scripts inside the root. `path`
    /// is a path on this machine.
    pub(crate) fn runtime_of(&mut self, tree: &mut Tree, path: &str) -> Result<(), RootError> {
        let program = self.here.join(path);
        let is_executable = fs::metadata(&program).is_ok_and(|about| is_executable(&about));
        if is_executable && is_elf(&program)? {
            self.runtime(tree, &program, &[])?;
        }
        Ok(())
    }

    /// Adds the script named by a word, unless it was added before, and returns it. `None` if the script exists neither
    /// on this machine nor inside the root.
    fn script(&mut self, tree: &mut Tree, word: &str) -> Result<Option<Script>, RootError> {
        let inside = RootPath::new(word, &self.folder)?;
        let placed = self.placed.get(word).cloned();
        let here = placed.unwrap_or_else(|| self.here.join(word));
        let there = |tree: &Tree| {
            tree.follow(&inside)
                .is_some_and(|at| tree.get(&at).is_some())
        };
        if !there(tree) {
            match fs::metadata(&here) {
                Ok(metadata) if metadata.is_dir() => {
                    self.dir(tree, word, Some(inside.as_str()))?;
                }
                Ok(metadata) if metadata.is_file() => {
                    self.file(tree, word, Some(inside.as_str()))?;
                }
                Ok(_) | Err(_) => return Ok(None),
            }
        }
        // An archive may be large and is not searched for names.
        let real = tree.follow(&inside);
        let is_short = match real.and_then(|real| tree.get(&real)) {
            Some(Entry::File { size, .. }) => size.0 <= MAX_SCRIPT,
            _ => false,
        };
        let bytes = is_short.then(|| tree.read(&inside, false)).flatten();
        let text = String::from_utf8_lossy(&bytes.transpose()?.unwrap_or_default()).into_owned();
        Ok(Some(Script { inside, here, text }))
    }
}

/// Returns the name of a program without its version, such as `python` for `python3.11`; `None` if the name is not
/// UTF-8.
fn kind(program: &Path) -> Option<&str> {
    let name = program.file_name()?.to_str()?;
    Some(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
}

/// Returns true if a file name has the extension `ending`. Case matters.
fn ends(name: &str, ending: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, own)| own == ending)
}

/// Returns the text of a file of this machine that may name other files. Empty if the file cannot be read or is larger
/// than [`MAX_SCRIPT`].
fn text_of(path: &Path) -> String {
    let is_short = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_SCRIPT);
    let bytes = if is_short {
        fs::read(path).unwrap_or_default()
    } else {
        Vec::new()
    };
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What an interpreter runs according to its arguments.
#[derive(Debug, Default, PartialEq, Eq)]
struct Task {
    /// Code given in the arguments.
    code: Vec<String>,
    /// Names of modules given by options.
    modules: Vec<String>,
    /// Argument that names the script; `None` if there is none.
    script: Option<String>,
}

/// Options of an interpreter that take an argument.
struct Options<'a> {
    /// Options whose argument is code.
    code: &'a [&'a str],
    /// Options whose argument names a module.
    module: &'a [&'a str],
    /// Options with any other argument.
    other: &'a [&'a str],
    /// True if all arguments after code or after a module belong to the program, not to the interpreter.
    is_last: bool,
}

impl Options<'_> {
    /// Parses the arguments of an interpreter, up to the name of the script.
    fn read(&self, words: &[String]) -> Task {
        let mut task = Task::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                task.script = Some(word.clone());
                break;
            }
            if word == "-" || word == "--" {
                if word == "--" {
                    task.script = words.next().cloned();
                }
                break;
            }
            let kinds = [self.code, self.module, self.other];
            // The argument follows as the next word or is part of the same word. Short options may be combined, as in
            // `-uc`.
            let is = |options: &&[&str]| options.contains(&word.as_str());
            let joined = |options: &&[&str]| {
                let mut rests = options
                    .iter()
                    .filter_map(|option| word.strip_prefix(option));
                let rest = rests.find(|rest| !rest.is_empty())?;
                Some(rest.trim_start_matches('=').to_owned())
            };
            let is_cluster = word[1..].chars().all(|c| c.is_ascii_alphanumeric());
            let ends = |options: &&[&str]| {
                let mut short = options.iter().filter(|option| option.len() == 2);
                is_cluster && short.any(|option| word.ends_with(&option[1..]))
            };
            let exact = kinds.iter().position(is).map(|kind| (kind, None));
            let one = || {
                let mut kinds = kinds.iter().enumerate();
                kinds.find_map(|(kind, options)| Some((kind, Some(joined(options)?))))
            };
            let run_together = || Some((kinds.iter().position(ends)?, None));
            let Some((kind, own)) = exact.or_else(one).or_else(run_together) else {
                continue;
            };
            let value = own.or_else(|| words.next().cloned());
            match kind {
                0 => task.code.extend(value),
                1 => task.modules.extend(value),
                _ => continue,
            }
            if self.is_last {
                break;
            }
        }
        task
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_of_an_interpreter_is_told_from_its_options_and_code() {
        let options = Options {
            code: &["-c", "--eval"],
            module: &["-m"],
            other: &["-W", "-X"],
            is_last: true,
        };
        let task = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            options.read(&words)
        };
        let script = |words| task(words).script;
        assert_eq!(
            script("-u -W ignore job.py -c x").as_deref(),
            Some("job.py")
        );
        assert_eq!(script("-- -job.py").as_deref(), Some("-job.py"));
        assert_eq!(task("-uc code job.py").code, ["code"]);
        assert_eq!(task("-ccode job.py").code, ["code"]);
        assert_eq!(script("-c code job.py"), None);
        assert_eq!(task("-m pkg.run job.py").modules, ["pkg.run"]);
        assert_eq!(task("--eval code job.py").code, ["code"]);
        assert_eq!(task("-"), Task::default());
        let perl = Options {
            code: &["-e"],
            module: &["-M", "-m"],
            other: &["-I"],
            is_last: false,
        };
        let words = "-Mfeature -MList::Util=sum -Ilib -lane code job.pl";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let task = perl.read(&words);
        assert_eq!(task.modules, ["feature", "List::Util=sum"]);
        assert_eq!(
            (task.code, task.script),
            (vec!["code".to_owned()], Some("job.pl".to_owned()))
        );
    }
}
