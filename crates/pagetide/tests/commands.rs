//! Every command that the program suggests contains the store's location and runs as printed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Lab, program, text};

/// Commands that may be printed without store and cache: commands that need neither, and commands quoted from records
/// or documents.
const BARE: [&str; 7] = [
    "pagetide run --memory 64M -- ",
    "pagetide list scenarios",
    "pagetide ideal --policies",
    "pagetide ideal references",
    "pagetide man ",
    "pagetide doctor",
    "pagetide serve",
];

/// A laboratory whose store has a name that a shell would split. The location of the store is given only by options.
struct Place {
    lab: Lab,
    cache: PathBuf,
}

impl Place {
    fn new(lab: Lab, cache: PathBuf) -> Self {
        let bin = lab.folder().join("bin");
        fs::create_dir_all(&bin).unwrap();
        std::os::unix::fs::symlink(program(), bin.join("pagetide")).unwrap();
        fs::create_dir_all(lab.folder().join("home")).unwrap();
        Self { lab, cache }
    }

    fn store(&self) -> PathBuf {
        self.lab.folder().join("it's my store")
    }

    /// Runs a command in the laboratory's folder. No environment variable contains the store's location.
    fn run(&self, mut command: Command) -> Output {
        let folder = self.lab.folder();
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", folder.join("bin").display()))
            .env("HOME", folder.join("home"))
            .env("COLUMNS", "4000")
            .env_remove("PAGETIDE_STORE")
            .env_remove("PAGETIDE_CACHE")
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CACHE_HOME")
            .current_dir(folder);
        command.output().unwrap()
    }

    /// Runs the program with options for store, cache and ASCII; returns its output.
    fn says(&self, words: &[&str]) -> String {
        let mut command = Command::new(program());
        command.arg("--store").arg(self.store());
        command
            .arg("--cache")
            .arg(&self.cache)
            .arg("--ascii")
            .args(words);
        let output = self.run(command);
        format!("{}\n{}", text(&output.stdout), text(&output.stderr))
    }

    /// Runs a suggested command as a shell would. If the command takes long or contains placeholders, it is run with
    /// `--help` instead, which checks at least its words and options.
    fn check(&self, command: &str) {
        let is_bare = BARE.iter().any(|bare| command.starts_with(bare));
        for option in ["--store", "--cache", "--ascii"] {
            assert!(
                is_bare || command.contains(option),
                "no {option}: {command}"
            );
        }
        let is_long = ["run", "calibrate", "add", "import", "serve", "repeat"]
            .iter()
            .any(|word| command.split(' ').any(|other| other == *word));
        let names_a_kind = command
            .split(' ')
            .any(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase()));
        let mut shell = Command::new("sh");
        let help = if is_long || names_a_kind {
            " --help"
        } else {
            ""
        };
        shell.arg("-c").arg(format!("{command}{help}"));
        let output = self.run(shell);
        let code = output.status.code();
        assert!(
            matches!(code, Some(0 | 1 | 3)),
            "{command}{help}: {code:?}\n{}",
            text(&output.stderr)
        );
    }

    /// True if nothing was stored at the default location.
    fn is_clean(&self) -> bool {
        let home = fs::read_dir(self.lab.folder().join("home")).unwrap();
        home.count() == 0
    }
}

/// The commands in a text: between backquotes, on a line of their own, or in a code box of a page.
fn commands(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (number, piece) in text.split('`').enumerate() {
        if number % 2 == 1 && piece.starts_with("pagetide ") {
            all.push(piece.to_owned());
        }
    }
    // A long command continues on the next line.
    for line in text.replace(" \\\n", " ").lines() {
        let line = line.trim().trim_start_matches("$ ");
        if line.starts_with("pagetide ") {
            all.push(line.to_owned());
        }
        for box_ in line.split("<pre tabindex=\"0\">").skip(1) {
            let inside = box_.split("</pre>").next().unwrap_or_default();
            let inside = inside
                .replace("&#39;", "'")
                .replace("&quot;", "\"")
                .replace("&amp;", "&");
            if inside.starts_with("pagetide ") {
                all.push(inside);
            }
        }
    }
    all
}

#[test]
fn every_command_that_is_told_says_where_and_how_and_runs_as_it_stands() {
    let lab = Lab::new();
    let cache = lab.folder().join("my cache");
    let place = Place::new(lab, cache);
    let told = std::cell::RefCell::new(BTreeSet::new());
    let ask = |words: &[&str]| {
        let said = place.says(words);
        let found = commands(&said);
        assert!(!found.is_empty(), "{words:?}: {said}");
        told.borrow_mut().extend(found);
    };
    let check_all = || {
        for command in &*told.borrow() {
            place.check(command);
        }
    };
    // Empty store and empty cache.
    for words in [
        &["compare"][..],
        &["list", "records"],
        &["list", "campaigns"],
        &["kernel", "list"],
        &["calibrate", "--show"],
        &["ideal", "atlas"],
        &["show", "abcd"],
        &["kernel", "show", "6.99"],
    ] {
        ask(words);
    }
    // A campaign of two variants.
    place.lab.import_of_two_variants();
    ask(&["import", "csv", "r.csv", "--name", "r-1"]);
    ask(&["compare", "nowhere"]);
    ask(&["compare", "nothing", "nowhere"]);
    ask(&["history", "time"]);
    ask(&["compare", "r-1", "--as", "mail"]);
    ask(&["compare", "r-1:old", "r-1:new", "--as", "markdown"]);
    ask(&["report", "r-1", "-o", "-"]);
    ask(&["report", "r-1:old", "r-1:new", "-o", "-"]);
    assert!(told.borrow().len() >= 12, "{told:#?}");
    check_all();
    // A record that is damaged.
    told.borrow_mut().clear();
    let folder = place.store().join("records");
    let mut left = vec![folder];
    while let Some(next) = left.pop() {
        if next.is_dir() {
            left.extend(
                fs::read_dir(&next)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else {
            let bytes = fs::read(&next).unwrap();
            fs::write(&next, &bytes[..bytes.len() / 2]).unwrap();
            let name = next.file_stem().unwrap().to_string_lossy().into_owned();
            ask(&["show", &name]);
            break;
        }
    }
    check_all();
    assert!(place.is_clean());
}

#[test]
fn what_a_run_says_to_do_next_says_where_and_how_and_runs_as_it_stands() {
    let Some(lab) = Lab::that_runs() else { return };
    let cache = lab.cache().to_owned();
    let place = Place::new(lab, cache);
    let small = "--memory 24M --swap-size 64M --seeds 1 --observe=none -p pages=500";
    let one: Vec<&str> = ["run", "linear", "--name", "one"]
        .into_iter()
        .chain(small.split(' '))
        .collect();
    let two: Vec<&str> = ["run", "linear", "--name", "two", "--vs", "vm.swappiness=1"]
        .into_iter()
        .chain(small.split(' '))
        .collect();
    let mut told = Vec::new();
    for words in [&one, &two] {
        let said = place.says(words);
        let (_, next) = said
            .split_once("\nNext:\n")
            .unwrap_or_else(|| panic!("{said}"));
        let found = commands(next);
        assert!(found.len() >= 2, "{said}");
        told.extend(found);
    }
    for command in &told {
        place.check(command);
    }
    assert!(place.is_clean());
}

/// Appends the paths of all source files below a folder to `all`.
fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push(path);
        }
    }
}

#[test]
fn no_source_writes_a_command_by_hand() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let src = entry.unwrap().path().join("src");
        if src.is_dir() {
            sources(&src, &mut all);
        }
    }
    let mut found = Vec::new();
    for path in all {
        let source = fs::read_to_string(&path).unwrap();
        // The code of unit tests may contain the expected commands.
        let own = source.split("#[cfg(test)]").next().unwrap_or_default();
        for line in own.lines() {
            let line = line.trim_start();
            let is_comment = line.starts_with("//");
            for (at, _) in line.match_indices("`pagetide ").filter(|_| !is_comment) {
                let command = &line[at + 1..];
                // Documents and help do not depend on a store.
                let is_document = ["reference.rs", "guide.rs", "command/run.rs"]
                    .iter()
                    .any(|name| path.ends_with(name));
                let is_pattern = command.contains('…');
                let is_bare = BARE.iter().any(|bare| command.starts_with(bare));
                if !is_document && !is_pattern && !is_bare {
                    found.push(format!("{}: {line}", path.display()));
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "build these with `command` or `told`: {found:#?}"
    );
}
