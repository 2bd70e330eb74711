//! The files that a user's program needs, as named on a command line or in a campaign file, and their assembly into a
//! root.

use std::path::{Path, PathBuf};

use pagetide_quantity::Bytes;

use crate::error::RootError;
use crate::host::{Host, ShellLine};
use crate::oci;
use crate::path::RootPath;
use crate::roots::{Root, Roots};
use crate::tree::Tree;
use crate::{MIN_SPACE, WORK};

/// Command and files of a program. Files and folders are written `PATH` or `PATH:INSIDE`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Words of the command; the first word names the program.
    pub command: Vec<String>,
    /// Words of a server's command; empty for no server.
    pub server: Vec<String>,
    /// Words of the command of a second program, which runs beside the first; empty for none.
    pub beside: Vec<String>,
    /// Folder, tar archive or saved image (`oci:FILE`) with all files of the program. If given, only explicitly named
    /// files are taken from this machine.
    pub root: Option<PathBuf>,
    /// Tar archives of Debian packages with all files of the program, added to `root` or used instead of a `root`.
    pub packages: Vec<PathBuf>,
    /// Files to add. The libraries that they need are added too, unless `root` or `packages` is given.
    pub files: Vec<String>,
    /// Folders to add, with all their content.
    pub dirs: Vec<String>,
    /// File for the program's standard input, if any, as `PATH` or `PATH:INSIDE`.
    pub input: Option<String>,
    /// Working directory of the program, as a path inside the root; `None` for [`WORK`](crate::WORK).
    pub folder: Option<String>,
    /// Free space for files that the program writes. If `None`, there is as much as the program's own files take, but
    /// at least 32 MiB.
    pub space: Option<Bytes>,
}

/// A root in the cache, with the paths of a program and its files inside the root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The root in the cache.
    pub root: Root,
    /// Words of the command, with the program's path inside the root.
    pub command: Vec<String>,
    /// Words of the server's command, with the server's path inside the root; empty for no server.
    pub server: Vec<String>,
    /// Words of the command of a second program, which runs beside the first, with its path inside the root; empty for
    /// none.
    pub beside: Vec<String>,
    /// Path inside the root of the file for standard input, if any.
    pub input: Option<RootPath>,
    /// Working directory of the program, as a path inside the root, if given.
    pub folder: Option<RootPath>,
    /// Folders inside the root with libraries, for `LD_LIBRARY_PATH`, because the loader does not search them by
    /// default.
    pub library_folders: Vec<String>,
}

impl Contents {
    /// Makes the root, or takes it from the cache. `say` receives messages about long steps, and notes for the user.
    /// Fails if a file is missing or the files are too large.
    pub fn install(&self, roots: &Roots, say: &dyn Fn(&str)) -> Result<Installation, RootError> {
        let folder = self
            .folder
            .as_deref()
            .map(|f| RootPath::new(f, WORK))
            .transpose()?;
        let mut host = Host::here()?;
        if let Some(folder) = &folder {
            host = host.starting_in(folder);
        }
        let mut tree = Tree::default();
        // Unpacked files must exist until the image is made.
        let spool = roots.spool()?;
        let is_alone = self.root.is_some() || !self.packages.is_empty();
        if is_alone {
            host = host.alone();
        }
        if let Some(root) = &self.root {
            let saved = root.to_str().and_then(oci::named);
            if let Some(image) = saved {
                tree.image(image, spool.path())?;
            } else if root.is_dir() {
                let path = root.to_str().unwrap_or_default();
                host.dir(&mut tree, path, Some("/"))?;
            } else {
                tree.archive(root, spool.path())?;
            }
        }
        tree.packages(&self.packages, spool.path())?;
        for text in &self.dirs {
            let (path, inside) = places(text);
            host.dir(&mut tree, path, inside)?;
        }
        for text in &self.files {
            let (path, inside) = places(text);
            host.file(&mut tree, path, inside)?;
            if !is_alone {
                host.runtime_of(&mut tree, path)?;
            }
        }
        let input = match &self.input {
            Some(path) => Some(host.file(&mut tree, path, None)?),
            None => None,
        };
        let (mut command, mut server) = (self.command.clone(), self.server.clone());
        let mut beside = self.beside.clone();
        for words in [&mut command, &mut server, &mut beside] {
            if !is_alone {
                *words = host.command(&mut tree, words)?;
            } else if let Some(word) = words.first_mut() {
                *word = tree.program(word)?.to_string();
            }
        }
        tree.complete()?;
        for note in host.notes() {
            say(note);
        }
        let lines = [&command, &server, &beside].map(|words| ShellLine::of(words));
        let missing =
            (lines.iter().filter(|_| is_alone)).flat_map(|line| line.missing(&tree, None));
        for text in missing.chain(host.missing_in_lines(&tree)) {
            say(&text);
        }
        let words = command.iter().chain(&server).chain(&beside);
        for text in words.filter_map(|word| absent(word, &tree)) {
            say(&text);
        }
        let space = self.space.unwrap_or(tree.size().max(MIN_SPACE));
        Ok(Installation {
            root: roots.make(&tree, space, say)?,
            command,
            server,
            beside,
            input,
            folder,
            library_folders: host.library_folders().map(str::to_owned).collect(),
        })
    }
}

/// Splits `PATH:INSIDE` into the path on this machine and the path inside the root; the second is `None` if not given.
fn places(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((path, inside)) if !path.is_empty() && !inside.is_empty() => (path, Some(inside)),
        _ => (text, None),
    }
}

/// Returns a warning if a word of a command is the path of a file or folder that exists on this machine, but not inside
/// the root. `None` for other words.
fn absent(word: &str, tree: &Tree) -> Option<String> {
    let inside = RootPath::new(word, WORK).ok()?;
    let is_there = tree
        .follow(&inside)
        .is_some_and(|path| tree.get(&path).is_some());
    let here = Path::new(word);
    (here.exists() && !is_there).then(|| {
        let option = if here.is_dir() { "--dir" } else { "--file" };
        format!("{word} exists here but not inside: add {option} {word} if the program reads it")
    })
}
