//! What is taken from this machine: programs, files and folders, at the path where they lie here or at another.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use pagetide_quantity::Bytes;

use crate::WORK;
use crate::elf;
use crate::error::{RootError, io};
use crate::image::MOST;
use crate::libraries;
use crate::path::RootPath;
use crate::runtime::ShellLine;
use crate::tree::Tree;

/// How many links may lead to one path. Source: Linux `include/linux/namei.h`, `MAXSYMLINKS`.
const MOST_LINKS: usize = 40;

/// This machine, as the place where a root's parts come from.
#[derive(Debug)]
pub struct Host {
    /// Where relative paths begin.
    pub(crate) here: PathBuf,
    /// Where they begin inside for a program, whose working folder it is.
    pub(crate) folder: String,
    /// Lines of shells that run inside, which may name programs that are not there.
    pub(crate) lines: Vec<ShellLine>,
    /// Where the scripts are here that lie elsewhere inside, by their paths inside.
    pub(crate) placed: BTreeMap<String, PathBuf>,
    /// How many wrappers the one is within that is looked at.
    pub(crate) wrapped: usize,
    /// Folders of programs, as PATH names them.
    pub(crate) path: Vec<PathBuf>,
    /// Folders of libraries, in the order in which they are searched.
    pub(crate) libraries: Vec<PathBuf>,
    /// Whether files bring nothing along: the root has its own libraries.
    pub(crate) alone: bool,
    /// Libraries of these files are there already.
    pub(crate) closed: BTreeSet<PathBuf>,
    /// Folders inside that a loader must be told of.
    pub(crate) told: BTreeSet<String>,
    /// What a user should know.
    pub(crate) notes: Vec<String>,
}

/// What is taken of a folder of libraries.
pub(crate) struct Wants<'a> {
    /// Whether a file or folder is taken, by its path.
    pub is_wanted: &'a dyn Fn(&Path) -> bool,
    /// What is done with a file.
    pub change: &'a dyn Fn(&Path) -> Change,
}

/// What is done with a file of a folder of libraries.
pub(crate) enum Change {
    /// It is taken as it is.
    None,
    /// It is left out.
    Leave,
    /// These bytes are taken in its place.
    Bytes(Vec<u8>),
}

impl Wants<'_> {
    /// All of a folder, as it is.
    pub const ALL: Self = Self {
        is_wanted: &|_| true,
        change: &|_| Change::None,
    };
}

/// Whether anybody may execute it.
pub(crate) fn is_executable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// A path of this machine as text.
pub(crate) fn text(path: &Path) -> Result<&str, RootError> {
    path.to_str().ok_or_else(|| RootError::BadPath {
        path: path.display().to_string(),
        why: "it is not UTF-8",
    })
}

impl Host {
    /// The machine as this process sees it: its working folder, `PATH` and `LD_LIBRARY_PATH`.
    pub fn here() -> Result<Self, RootError> {
        let here = env::current_dir().map_err(io("finding", "the working folder"))?;
        let folders = |name: &str| -> Vec<PathBuf> {
            env::var_os(name)
                .map(|value| env::split_paths(&value).collect())
                .unwrap_or_default()
        };
        let mut all = folders("LD_LIBRARY_PATH");
        all.extend(libraries::configured(Path::new("/etc/ld.so.conf")));
        all.extend(libraries::DEFAULT.iter().map(PathBuf::from));
        Ok(Self {
            here,
            folder: WORK.to_owned(),
            lines: Vec::new(),
            placed: BTreeMap::new(),
            wrapped: 0,
            path: folders("PATH"),
            libraries: all,
            alone: false,
            closed: BTreeSet::new(),
            told: BTreeSet::new(),
            notes: Vec::new(),
        })
    }

    /// The same for a root that brings its own programs and libraries: nothing is added but what is named.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// The same for a program that starts in this folder inside.
    #[must_use]
    pub fn starting_in(mut self, folder: &RootPath) -> Self {
        folder.as_str().clone_into(&mut self.folder);
        self
    }

    /// The folders that a loader inside does not search by itself, for `LD_LIBRARY_PATH`.
    pub fn library_folders(&self) -> impl Iterator<Item = &str> {
        self.told.iter().map(String::as_str)
    }

    /// What a user should know of what was taken.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds a file, with the libraries that it needs if it is ELF. Without a path `inside`, a relative path lies below the working
    /// folder inside, and an absolute one where it lies here.
    pub fn file(
        &mut self,
        tree: &mut Tree,
        path: &str,
        inside: Option<&str>,
    ) -> Result<RootPath, RootError> {
        let (host, metadata) = self.look(path)?;
        if metadata.is_dir() {
            return Err(RootError::OtherKind {
                path: host,
                found: "a folder",
                option: "--dir",
            });
        }
        let (place, real) = match elsewhere(path, inside)? {
            None => take(tree, &host)?,
            Some(place) => (add(tree, &place, &host, &metadata)?, host),
        };
        if is_elf(&real)? {
            self.close(tree, &real, true)?;
        }
        Ok(place)
    }

    /// Adds a folder with all that it holds, links as links.
    pub fn dir(
        &mut self,
        tree: &mut Tree,
        path: &str,
        inside: Option<&str>,
    ) -> Result<RootPath, RootError> {
        let (host, metadata) = self.look(path)?;
        if !metadata.is_dir() {
            return Err(RootError::OtherKind {
                path: host,
                found: "a file",
                option: "--file",
            });
        }
        let (place, real) = match elsewhere(path, inside)? {
            None => take(tree, &host)?,
            Some(place) => (tree.folder(&place)?, host),
        };
        let mut programs = Vec::new();
        below(tree, &real, &place, &mut programs)?;
        for program in programs {
            self.close(tree, &program, false)?;
        }
        Ok(place)
    }

    /// Adds what is wanted of a folder of libraries, at `place` or else where it lies here; links with the files that they lead to.
    pub(crate) fn library(
        &mut self,
        tree: &mut Tree,
        folder: &Path,
        place: Option<&RootPath>,
        wants: &Wants<'_>,
    ) -> Result<(), RootError> {
        let (place, real) = match place {
            Some(place) => (tree.folder(place)?, folder.to_owned()),
            None => take(tree, folder)?,
        };
        let mut folders = vec![(real, place)];
        while let Some((folder, place)) = folders.pop() {
            for path in sorted(&folder)? {
                if !(wants.is_wanted)(&path) {
                    continue;
                }
                let metadata = fs::symlink_metadata(&path).map_err(io("reading", &path))?;
                let inside = place.join(text(path.file_name().map_or(&path, Path::new))?)?;
                if metadata.is_symlink() {
                    // What leads nowhere here leads nowhere inside.
                    if fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
                        let (_, real) = take(tree, &path)?;
                        self.close_if_elf(tree, &real)?;
                    }
                } else if metadata.is_dir() {
                    let inside = tree.folder(&inside)?;
                    folders.push((path, inside));
                } else if metadata.is_file() {
                    match (wants.change)(&path) {
                        Change::None => {
                            add(tree, &inside, &path, &metadata)?;
                            self.close_if_elf(tree, &path)?;
                        }
                        Change::Leave => {}
                        Change::Bytes(bytes) => {
                            tree.bytes(&inside, &bytes)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds the libraries that a file of a library needs, if it is ELF. One that is not here is not loaded here either.
    pub(crate) fn close_if_elf(&mut self, tree: &mut Tree, path: &Path) -> Result<(), RootError> {
        if is_elf(path)? {
            let notes = self.notes.len();
            self.close(tree, path, false)?;
            self.notes.truncate(notes);
        }
        Ok(())
    }

    /// What a path leads to on this machine.
    pub(crate) fn look(&self, path: &str) -> Result<(PathBuf, Metadata), RootError> {
        let host = self.here.join(path);
        let metadata = fs::metadata(&host).map_err(io("reading", &host))?;
        Ok((host, metadata))
    }
}

/// Where inside something named lies, unless it lies where it does here.
fn elsewhere(path: &str, inside: Option<&str>) -> Result<Option<RootPath>, RootError> {
    if inside.is_none() && path.starts_with('/') {
        return Ok(None);
    }
    RootPath::new(inside.unwrap_or(path), WORK).map(Some)
}

/// Adds what a folder holds, in the order of names; sockets, pipes and devices are left out. Puts ELF files into `programs`.
fn below(
    tree: &mut Tree,
    host: &Path,
    place: &RootPath,
    programs: &mut Vec<PathBuf>,
) -> Result<(), RootError> {
    for path in sorted(host)? {
        let name = path.file_name().map_or(path.as_path(), Path::new);
        let inside = place.join(text(name)?)?;
        let metadata = fs::symlink_metadata(&path).map_err(io("reading", &path))?;
        if metadata.is_symlink() {
            let target = fs::read_link(&path).map_err(io("reading", &path))?;
            tree.link(&inside, text(&target)?)?;
        } else if metadata.is_dir() {
            let inside = tree.folder(&inside)?;
            below(tree, &path, &inside, programs)?;
        } else if metadata.is_file() {
            add(tree, &inside, &path, &metadata)?;
            if is_elf(&path)? {
                programs.push(path);
            }
        }
    }
    Ok(())
}

/// What a folder holds, in the order of names.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>, RootError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(io("reading", folder))? {
        found.push(entry.map_err(io("reading", folder))?.path());
    }
    found.sort();
    Ok(found)
}

/// Adds a file of this machine at a path inside.
pub(crate) fn add(
    tree: &mut Tree,
    place: &RootPath,
    host: &Path,
    metadata: &Metadata,
) -> Result<RootPath, RootError> {
    if !metadata.is_file() {
        return Err(RootError::Special {
            path: host.to_owned(),
        });
    }
    // Before gigabytes are read for nothing.
    let size = Bytes(tree.size().0 + metadata.len());
    if size > MOST {
        return Err(RootError::TooLarge { size, most: MOST });
    }
    tree.file(place, host, is_executable(metadata))
}

/// Whether a file begins as ELF does.
fn is_elf(path: &Path) -> Result<bool, RootError> {
    let mut start = Vec::new();
    let file = File::open(path).map_err(io("reading", path))?;
    file.take(4)
        .read_to_end(&mut start)
        .map_err(io("reading", path))?;
    Ok(elf::is_elf(&start))
}

/// Adds what stands at an absolute path of this machine at the same path inside, with every link on the way. Returns where it
/// really lies, inside and here.
pub(crate) fn take(tree: &mut Tree, path: &Path) -> Result<(RootPath, PathBuf), RootError> {
    let mut left: Vec<String> = parts(path)?;
    let mut at = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        let next = at.join(&part);
        let metadata = fs::symlink_metadata(&next).map_err(io("reading", &next))?;
        if !metadata.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            let why = std::io::Error::other("its links lead in circles");
            return Err(io("reading", path)(why));
        }
        let target = fs::read_link(&next).map_err(io("reading", &next))?;
        tree.link(&RootPath::new(text(&next)?, "")?, text(&target)?)?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        left.extend(parts(&target)?);
    }
    let inside = RootPath::new(text(&at)?, "")?;
    let metadata = fs::metadata(&at).map_err(io("reading", &at))?;
    let inside = if metadata.is_dir() {
        tree.folder(&inside)?
    } else {
        add(tree, &inside, &at, &metadata)?
    };
    Ok((inside, at))
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Result<Vec<String>, RootError> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(text(Path::new(part))?.to_owned()),
            Component::ParentDir => parts.push("..".to_owned()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    parts.reverse();
    Ok(parts)
}
