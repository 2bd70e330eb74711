//! Adds what shell scripts need: the program that a wrapper script starts. Also reports programs that a script starts
//! and that are missing inside the root.

use std::collections::{BTreeSet, VecDeque};

use super::pieces::{Piece, pieces};
use super::{MAX_SCRIPT, Options, kind};
use crate::error::RootError;
use crate::host::{Host, ShellLine, Started};
use crate::path::RootPath;
use crate::program::carried;
use crate::resident::{PATH, script};
use crate::tree::{Entry, Tree};

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
/// Actions of find(1) that start a program. The next word is the program's name.
const ACTIONS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
/// Placeholder for an argument whose value is known only when the shell runs.
const UNKNOWN: &str = "$";
/// System folders. Scripts in them are not searched for the programs that they start.
const SYSTEM: [&str; 5] = ["/usr/", "/bin/", "/sbin/", "/lib/", "/opt/"];

impl Host {
    /// Adds the program that a shell with these arguments becomes with `exec`. Records the other programs that the
    /// shell starts, for warnings.
    pub(super) fn shell(&mut self, tree: &mut Tree, words: &[String]) -> Result<(), RootError> {
        let task = OPTIONS.read(words);
        for line in &task.code {
            self.lines.push(ShellLine {
                what: "the shell line".to_owned(),
                started: started(line),
            });
        }
        let Some(word) = task.script.filter(|_| task.code.is_empty()) else {
            return Ok(());
        };
        let Some(script) = self.script(tree, &word)? else {
            return Ok(());
        };
        self.lines.push(ShellLine {
            what: format!("the shell script {}", script.inside),
            started: started(&script.text),
        });
        // These are the remaining arguments, which a wrapper script passes on.
        let own = words
            .iter()
            .position(|other| *other == word)
            .map_or(0, |place| place + 1);
        self.wrapped += 1;
        for program in handed_to(&script.text) {
            let is_there = tree.leads_to_file(&program);
            if self.wrapped <= MAX_WRAPPERS && !is_there && self.here.join(&program).is_file() {
                self.started(tree, &program, words.get(own..).unwrap_or_default())?;
            }
        }
        self.wrapped -= 1;
        Ok(())
    }

    /// Returns warnings about programs that shells start and that are missing inside the root.
    pub(crate) fn missing_in_lines(&self, tree: &Tree) -> Vec<String> {
        let lines = self.lines.iter();
        lines
            .flat_map(|line| line.missing(tree, Some(self)))
            .collect()
    }
}

/// Maximum number of wrapper scripts in a chain.
const MAX_WRAPPERS: usize = 5;

impl ShellLine {
    /// Returns the command line `command` of a root that has its own programs, with the programs that it starts.
    pub(crate) fn of(command: &[String]) -> Self {
        let mut started = Started::default();
        started.add(command);
        Self {
            what: "the command".to_owned(),
            started,
        }
    }

    /// Reads the script at a path inside the root: its interpreter and, if that is a shell, the programs that it
    /// starts. `None` if the file is not a script, is too large, or is in a system folder. If `is_read` is true, a
    /// shell reads the file even if it does not begin with `#!`.
    fn at(path: &RootPath, tree: &Tree, is_read: bool) -> Option<Self> {
        let is_system = SYSTEM
            .iter()
            .any(|folder| path.as_str().starts_with(folder));
        let Entry::File { size, .. } = tree.get(path)? else {
            return None;
        };
        if size.0 > MAX_SCRIPT || is_system {
            return None;
        }
        let bytes = tree.read(path, false)?.ok()?;
        let line = script(&bytes);
        if line.is_none() && !is_read {
            return None;
        }
        let mut found = Started::default();
        let words: Vec<String> = (line.unwrap_or_default().split_whitespace())
            .map(str::to_owned)
            .collect();
        found.add(&words);
        let is_shell = found.names.last().is_none_or(|name| is_shell(name));
        if is_shell || is_read {
            let own = started(&String::from_utf8_lossy(&bytes));
            found.names.extend(own.names);
            found.scripts.extend(own.scripts);
        }
        let kind = if is_shell { "shell script" } else { "script" };
        Some(Self {
            what: format!("the {kind} {path}"),
            started: found,
        })
    }

    /// Returns warnings about programs that this line, or a script that it starts, would start, but that are missing
    /// inside the root. `host` is the machine from which missing programs could be added; `None` if the root has its
    /// own programs.
    pub(crate) fn missing(&self, tree: &Tree, host: Option<&Host>) -> Vec<String> {
        const MAX_NOTES: usize = 5;
        let folder = host.map_or(crate::WORK, |host| &host.folder);
        let (mut notes, mut seen) = (Vec::new(), BTreeSet::new());
        let mut lines = VecDeque::from([self.clone()]);
        while let Some(line) = lines.pop_front() {
            let mut missing = Vec::new();
            for name in &line.started.names {
                match program_at(tree, name, folder) {
                    None => missing.push(line.says(name, host)),
                    Some(path) if seen.insert(path.clone()) => {
                        lines.extend(Self::at(&path, tree, false));
                    }
                    Some(_) => {}
                }
            }
            for name in &line.started.scripts {
                let path = file_at(tree, name, folder);
                if let Some(path) = path.filter(|path| seen.insert(path.clone())) {
                    lines.extend(Self::at(&path, tree, true));
                }
            }
            missing.truncate(MAX_NOTES);
            notes.append(&mut missing);
        }
        notes
    }

    /// Returns the warning that this line or script starts the missing program `name`, with a remedy.
    fn says(&self, name: &str, host: Option<&Host>) -> String {
        let remedy = match host.map(|host| host.place_of(name)) {
            Some(Some(path)) => format!("add --file {path}"),
            Some(None) => "it is not on this machine either".to_owned(),
            None => "add it there, or give it with --file".to_owned(),
        };
        format!(
            "{} starts `{name}`, which is not in its file system: {remedy}",
            self.what
        )
    }
}

/// Returns the path inside the root of the file `name`, relative to `folder`, with symbolic links resolved. `None` if
/// there is no such file.
fn file_at(tree: &Tree, name: &str, folder: &str) -> Option<RootPath> {
    let path = tree.follow(&RootPath::new(name, folder).ok()?)?;
    matches!(tree.get(&path), Some(Entry::File { .. })).then_some(path)
}

/// Returns the path inside the root of the program that a shell in `folder` starts as `name`, with symbolic links
/// resolved. `None` if there is no such program.
fn program_at(tree: &Tree, name: &str, folder: &str) -> Option<RootPath> {
    if name.contains('/') {
        return file_at(tree, name, folder);
    }
    PATH.iter()
        .find_map(|folder| file_at(tree, &format!("{folder}/{name}"), folder))
}

/// Returns true if a program of this name is a shell.
fn is_shell(name: &str) -> bool {
    matches!(
        kind(name.as_ref()),
        Some("sh" | "bash" | "dash" | "ash" | "ksh" | "mksh" | "zsh")
    )
}

impl Started {
    /// Adds the program of a command, and the programs and scripts that its arguments name.
    fn add(&mut self, command: &[String]) {
        let Some((name, words)) = command.split_first() else {
            return;
        };
        if matches!(name.as_str(), "." | "source") {
            self.scripts.extend(words.first().cloned());
            return;
        }
        self.names.push(name.clone());
        if is_shell(name) {
            let task = OPTIONS.read(words);
            for line in &task.code {
                let inner = started(line);
                self.names.extend(inner.names);
                self.scripts.extend(inner.scripts);
            }
            self.scripts
                .extend(task.script.filter(|_| task.code.is_empty()));
        } else if kind(name.as_ref()) == Some("find") {
            for (place, word) in words.iter().enumerate() {
                if ACTIONS.contains(&word.as_str()) {
                    self.add(words.get(place + 1..).unwrap_or_default());
                }
            }
        } else if let Some(place) = carried(name.as_ref(), words) {
            self.add(words.get(place..).unwrap_or_default());
        }
    }
}

impl Host {
    /// Returns the path, as a value of `--file`, of the program that a shell on this machine starts by this name. For a
    /// version manager's wrapper, returns the path of the program itself. `None` if there is no such program.
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

/// Returns the absolute paths of programs that a script becomes with `exec`.
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

/// Returns the programs and scripts that a shell command starts; each program is listed once. Builtin commands,
/// functions that the text defines, and names that contain variables or other expansions are left out.
fn started(text: &str) -> Started {
    let own = |word: &str| OWN.split_whitespace().any(|own| own == word);
    let before = |word: &str| BEFORE.split_whitespace().any(|before| before == word);
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut functions = BTreeSet::new();
    let (mut is_command, mut in_patterns, mut last) = (true, false, None::<String>);
    // Index in `commands` of the command whose arguments are being read.
    let mut current = None::<usize>;
    // For each open parenthesis, the state before it: whether a command was expected, and the index of the current
    // command.
    let mut outer = Vec::new();
    let mut pieces = pieces(text).into_iter().peekable();
    while let Some(piece) = pieces.next() {
        match piece {
            Piece::End => (is_command, current) = (true, None),
            Piece::Open => {
                // `name()` defines a function.
                if pieces.peek() == Some(&Piece::Close) {
                    functions.extend(last.take());
                    pieces.next();
                } else {
                    outer.push((is_command, current));
                }
                (is_command, current) = (true, None);
            }
            Piece::Close if in_patterns => (is_command, in_patterns) = (true, false),
            Piece::Close => (is_command, current) = outer.pop().unwrap_or((true, None)),
            Piece::Redirection => {
                pieces.next();
            }
            Piece::Unknown => {
                is_command = false;
                if let Some(command) = current {
                    commands[command].push(UNKNOWN.to_owned());
                }
            }
            Piece::Word(word) if in_patterns => {
                in_patterns = word != "esac";
                is_command = false;
                last = Some(word);
            }
            Piece::Word(word) if is_command => {
                let is_option =
                    word.starts_with('-') && matches!(last.as_deref(), Some("time" | "nohup"));
                if is_option {
                    continue;
                }
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
                    word if is_assignment(word) || before(word) => {}
                    word if own(word) && !matches!(word, "." | "source") => is_command = false,
                    word => {
                        is_command = false;
                        current = Some(commands.len());
                        commands.push(vec![word.to_owned()]);
                    }
                }
            }
            Piece::Word(word) => {
                if let Some(command) = current {
                    commands[command].push(word.clone());
                }
                last = Some(word);
            }
        }
    }
    let mut found = Started::default();
    for command in &commands {
        found.add(command);
    }
    let mut seen = BTreeSet::new();
    // A word with other characters was probably not meant as a program's name.
    let is_name = |name: &String| {
        name.chars()
            .all(|c| c.is_alphanumeric() || "/._+-[".contains(c))
            && !name.starts_with('-')
    };
    found.names.retain(|name| {
        is_name(name) && !functions.contains(name) && !own(name) && seen.insert(name.clone())
    });
    found.scripts.retain(is_name);
    found
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
            (
                "x=\"$(seq 3 | wc -l) and $(du \"$y\")\"; echo \"it's $(uname)\"; ls",
                &["seq", "wc", "du", "uname", "ls"],
            ),
            (
                "time -p env A=b nice -n 3 sort x | xargs -n 1 stat; timeout 5 $x; find . -name y -exec cmp {} z \\;",
                &[
                    "env", "nice", "sort", "xargs", "stat", "timeout", "find", "cmp",
                ],
            ),
            (
                "bash -c 'tail x | uniq' y; env sh -ec \"tac\"",
                &["bash", "tail", "uniq", "env", "sh", "tac"],
            ),
        ] {
            assert_eq!(started(line).names, names, "{line}");
        }
    }

    #[test]
    fn files_that_a_shell_reads_are_scripts_of_a_line() {
        let found = started(". ./lib.sh; source $x; sh -e job.sh arg; bash -c 'echo' name");
        assert_eq!(found.scripts, ["./lib.sh", "job.sh"]);
        assert_eq!(found.names, ["sh", "bash"]);
    }

    #[test]
    fn what_a_wrapper_hands_its_place_to_is_found() {
        let text = "#! /nix/store/x/bin/bash -e\nexport A=b\nexec -a \"$0\" \"/nix/store/y/bin/.p-wrapped\"  \"$@\"\nexec $B\n";
        assert_eq!(handed_to(text), ["/nix/store/y/bin/.p-wrapped"]);
    }
}
