//! Adds what shell scripts need: the program that a wrapper script starts. Also reports programs in command lines that
//! are missing inside the root.

use std::collections::BTreeSet;

use super::Options;
use super::pieces::{Piece, pieces};
use crate::error::RootError;
use crate::host::{Host, ShellLine};
use crate::path::RootPath;
use crate::resident::PATH;
use crate::tree::Tree;

/// Options of shells that take an argument.
const OPTIONS: Options<'static> = Options {
    code: &["-c"],
    module: &[],
    other: &["-o", "-O", "--rcfile", "--init-file"],
    is_last: false,
};

/// Builtin commands and reserved words of shells. Sources: POSIX.1-2017, XCU 2.4, 2.9 and 2.14; bash(1).
const OWN: &str = ". : [ [[ ]] ! { } alias bg bind break builtin caller case cd command compgen complete continue coproc declare dirs \
                   disown do done echo elif else enable esac eval exec exit export false fc fg fi for function getopts hash help history if \
                   in jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return select set shift shopt \
                   source suspend test then time times trap true type typeset ulimit umask unalias unset until wait while";
/// Words of a shell command after which another command begins.
const BEFORE: &str = "! { if then elif else while until do time exec command builtin eval nohup";

impl Host {
    /// Adds the program by which a shell with these arguments replaces itself. Records the other programs that the
    /// shell starts.
    pub(super) fn shell(&mut self, tree: &mut Tree, words: &[String]) -> Result<(), RootError> {
        let task = OPTIONS.read(words);
        for line in &task.code {
            self.lines.push(ShellLine::new("the shell line", line));
        }
        let Some(word) = task.script.filter(|_| task.code.is_empty()) else {
            return Ok(());
        };
        let Some(script) = self.script(tree, &word)? else {
            return Ok(());
        };
        let what = format!("the shell script {}", script.inside);
        self.lines.push(ShellLine::new(&what, &script.text));
        // The remaining arguments, which a wrapper script passes on.
        let own = words
            .iter()
            .position(|other| *other == word)
            .map_or(0, |place| place + 1);
        self.wrapped += 1;
        for program in handed_to(&script.text) {
            let is_there = tree.leads_to_file(&program);
            if self.wrapped <= MOST_WRAPPERS && !is_there && self.here.join(&program).is_file() {
                self.started(tree, &program, words.get(own..).unwrap_or_default())?;
            }
        }
        self.wrapped -= 1;
        Ok(())
    }

    /// Warnings about programs that shells start but that are missing inside the root.
    pub(crate) fn missing_in_lines(&self, tree: &Tree) -> Vec<String> {
        let lines = self.lines.iter();
        lines
            .flat_map(|line| line.missing(tree, Some(self)))
            .collect()
    }
}

/// Most wrapper scripts in a chain of wrappers.
const MOST_WRAPPERS: usize = 5;

impl ShellLine {
    fn new(what: &str, text: &str) -> Self {
        let names = started(text);
        Self {
            what: what.to_owned(),
            names,
        }
    }

    /// The command line in a command, if the command is a shell with `-c`; else `None`.
    pub(crate) fn of(command: &[String]) -> Option<Self> {
        let (program, words) = command.split_first()?;
        let is_shell = matches!(
            super::kind(program.as_ref()),
            Some("sh" | "bash" | "dash" | "ash" | "ksh" | "mksh" | "zsh")
        );
        let task = is_shell.then(|| OPTIONS.read(words))?;
        let line = task.code.first()?;
        Some(Self::new("the shell line", line))
    }

    /// Warnings about programs of this line that are missing inside the root. `host` is the machine from which they
    /// could be taken; `None` if the root has its own programs.
    pub(crate) fn missing(&self, tree: &Tree, host: Option<&Host>) -> Vec<String> {
        const MOST_NOTES: usize = 5;
        let is_there = |name: &str| {
            if name.contains('/') {
                let folder = host.map_or(crate::WORK, |host| &host.folder);
                return RootPath::new(name, folder)
                    .is_ok_and(|path| tree.leads_to_file(path.as_str()));
            }
            PATH.iter()
                .any(|folder| tree.leads_to_file(&format!("{folder}/{name}")))
        };
        let missing = self.names.iter().filter(|name| !is_there(name));
        let say = |name: &String| {
            let remedy = match host.map(|host| host.place_of(name)) {
                Some(Some(path)) => format!("add --file {path}"),
                Some(None) => "it is not on this machine either".to_owned(),
                None => "add it there, or give it with --file".to_owned(),
            };
            format!(
                "{} starts `{name}`, which is not in its file system: {remedy}",
                self.what
            )
        };
        missing.take(MOST_NOTES).map(say).collect()
    }
}

impl Host {
    /// Path, in the form of `--file`, of the program that a shell on this machine starts by this name. For a version
    /// manager's wrapper, the path of the program itself. `None` if there is no such program.
    fn place_of(&self, name: &str) -> Option<String> {
        let path = if name.contains('/') {
            Some(self.here.join(name)).filter(|path| path.is_file())
        } else {
            self.on_path(name).ok()
        };
        let path = path?;
        let real = self.behind(&path).ok().flatten();
        let is_relative = real.is_none() && name.contains('/') && !name.starts_with('/');
        if is_relative {
            return Some(name.to_owned());
        }
        let path = real.unwrap_or(path);
        let is_found = path
            .parent()
            .and_then(|folder| folder.to_str())
            .is_some_and(|folder| PATH.contains(&folder));
        let path = path.display().to_string();
        // A program from another folder is placed in a folder of `PATH` inside the root.
        Some(if is_found || name.contains('/') {
            path
        } else {
            format!("{path}:/usr/local/bin/{name}")
        })
    }
}

/// Absolute paths of the programs by which a script replaces itself with `exec`.
fn handed_to(text: &str) -> Vec<String> {
    let program = |line: &str| {
        let mut words = line.trim().strip_prefix("exec ")?.split_whitespace();
        let mut word = words.next()?;
        while word.starts_with('-') {
            // `exec -a NAME` only sets the name that the program sees.
            if word == "-a" {
                words.next();
            }
            word = words.next()?;
        }
        let word = word.trim_matches(['"', '\'']);
        (word.starts_with('/') && !word.contains('$')).then(|| word.to_owned())
    };
    text.lines().filter_map(program).collect()
}

/// Names of the programs that a shell command's text starts, without duplicates. Names that are not literal are left
/// out.
fn started(text: &str) -> Vec<String> {
    let own = |word: &str| OWN.split_whitespace().any(|own| own == word);
    let mut names = Vec::new();
    let mut functions = BTreeSet::new();
    let (mut is_command, mut in_patterns, mut last) = (true, false, None::<String>);
    // For each open parenthesis, true if a command was expected before it.
    let mut outer = Vec::new();
    let mut pieces = pieces(text).into_iter().peekable();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::End => is_command = true,
            Piece::Open => {
                // `name()` defines a function.
                if pieces.peek() == Some(&Piece::Close) {
                    functions.extend(last.take());
                    pieces.next();
                } else {
                    outer.push(is_command);
                }
                is_command = true;
            }
            Piece::Close if in_patterns => (is_command, in_patterns) = (true, false),
            Piece::Close => is_command = outer.pop().unwrap_or(true),
            Piece::Redirection => {
                pieces.next();
            }
            Piece::Unknown => is_command = false,
            Piece::Word(word) if in_patterns => {
                in_patterns = word != "esac";
                is_command = false;
                last = Some(word);
            }
            Piece::Word(word) if is_command => {
                last = Some(word.clone());
                match word.as_str() {
                    "case" | "for" | "select" => {
                        // The words up to `in` are the subject. Neither the words of a loop nor the patterns of a
                        // `case` are commands.
                        let is_case = word == "case";
                        while let Some(piece) = pieces.peek() {
                            let is_end = *piece == Piece::End && !is_case;
                            let is_in = *piece == Piece::Word("in".to_owned());
                            if is_end {
                                break;
                            }
                            pieces.next();
                            if is_in && is_case {
                                in_patterns = true;
                                break;
                            }
                        }
                    }
                    "function" => is_command = false,
                    word if is_assignment(word) => {}
                    word if BEFORE.split_whitespace().any(|before| before == word) => {}
                    word if own(word) => is_command = false,
                    word => {
                        names.push(word.to_owned());
                        is_command = false;
                    }
                }
            }
            Piece::Word(word) => last = Some(word),
        }
    }
    let mut seen = BTreeSet::new();
    // A word with other characters was probably not meant as a program's name.
    let is_name = |name: &String| {
        name.chars()
            .all(|c| c.is_alphanumeric() || "/._+-[".contains(c))
            && !name.starts_with('-')
    };
    names.retain(|name| is_name(name) && !functions.contains(name) && seen.insert(name.clone()));
    names
}

fn is_assignment(word: &str) -> bool {
    let name = word
        .split_once('=')
        .map(|(name, _)| name.trim_end_matches('+'));
    name.is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_that_a_line_starts_are_told_from_what_it_says_and_does_itself() {
        for (line, names) in [
            ("sort numbers | head -n 3 > out", &["sort", "head"][..]),
            ("x=1; echo $x; A=b awk '{ print; ls }' f 2>&1", &["awk"]),
            ("for f in a b c; do wc -l $f; done && ls", &["wc", "ls"]),
            (
                "case $1 in a|b) cat x;; *) exit 1;; esac; od y",
                &["cat", "od"],
            ),
            (
                "if grep -q a b; then :; else sleep 1; fi",
                &["grep", "sleep"],
            ),
            ("f() { tail x; }; f; (cd /; du)", &["tail", "du"]),
            ("x=$(seq 3) y=`nproc`; echo $((1 + ls))", &["seq", "nproc"]),
            (
                "cat <<EOF\nrm -rf\nEOF\nstat x # not this\n",
                &["cat", "stat"],
            ),
            (
                "echo \"a; ls\" 'b | ls'; $prog x; ./own -v; ! cmp a b",
                &["./own", "cmp"],
            ),
            (
                "while read a; do [ -d $a ] || echo $a; done < /dev/null",
                &[],
            ),
            (
                "printf \"\\033[31mseed 1\\n\"; pwd; export -p; echo /*; echo > /work/x && echo written; echo > /x || true",
                &[],
            ),
            (
                "while read name value; do case $name in Sig[BI]*) echo \"$name\";; esac; done < /proc/self/status;\n[ -n \"$a\" ] && echo random",
                &[],
            ),
            ("exec 3<>/dev/null; exec >&-; exec sort x", &["sort"]),
            ("kill -SEGV $$; (while :; do :; done) & exit 0", &[]),
            ("x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done", &[]),
        ] {
            assert_eq!(started(line), names, "{line}");
        }
    }

    #[test]
    fn what_a_wrapper_hands_its_place_to_is_found() {
        let text = "#! /nix/store/x/bin/bash -e\nexport A=b\nexec -a \"$0\" \"/nix/store/y/bin/.p-wrapped\"  \"$@\"\nexec $B\n";
        assert_eq!(handed_to(text), ["/nix/store/y/bin/.p-wrapped"]);
    }
}
