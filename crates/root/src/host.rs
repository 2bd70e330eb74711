//! Adds programs, files and folders of this machine to a root, at their own path or another one.

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
use crate::image::MAX_SIZE;
use crate::loader;
use crate::path::RootPath;
use crate::tree::Tree;

/// Maximum number of symbolic links followed for one path. Source: Linux `include/linux/namei.h`, `MAXSYMLINKS`.
const MAX_LINKS: usize = 40;

/// This machine as a source of files for a root, with the state of adding them.
#[derive(Debug)]
pub struct Host {
    /// Working directory on this machine, to which relative paths refer.
    pub(crate) here: PathBuf,
    /// Working directory of the program inside the root, to which the program's relative paths refer.
    pub(crate) folder: String,
    /// Command lines of shells that run inside the root. They may start programs that are missing there.
    pub(crate) lines: Vec<ShellLine>,
    /// Scripts whose path inside the root differs from that on this machine: the path on this machine, by the path
    /// inside.
    pub(crate) placed: BTreeMap<String, PathBuf>,
    /// Number of nested wrapper scripts that are being read.
    pub(crate) wrapped: usize,
    /// Folders of this process's `PATH`, in order.
    pub(crate) path: Vec<PathBuf>,
    /// Folders of libraries on this machine, in the order in which they are searched.
    pub(crate) libraries: Vec<PathBuf>,
    /// True if no libraries and interpreters are added from this machine, because the root has its own.
    pub(crate) alone: bool,
    /// Paths of files whose libraries have already been added.
    pub(crate) closed: BTreeSet<PathBuf>,
    /// Folders inside the root that the loader must search in addition to its default folders.
    pub(crate) told: BTreeSet<String>,
    /// Notes for the user about the files added.
    pub(crate) notes: Vec<String>,
}

/// Selects which files of a library folder are added, and how they are changed.
pub(crate) struct Wants<'a> {
    /// Returns true if the file or folder at this path is to be added.
    pub is_wanted: &'a dyn Fn(&Path) -> bool,
    /// Returns the change to make to the file at this path.
    pub change: &'a dyn Fn(&Path) -> Change,
}

/// How a file of a library folder is changed when it is added.
pub(crate) enum Change {
    /// The file is added unmodified.
    None,
    /// The file is left out.
    Leave,
    /// The file's content is replaced by these bytes.
    Bytes(Vec<u8>),
}

impl Wants<'_> {
    /// Adds all files, unmodified.
    pub const ALL: Self = Self {
        is_wanted: &|_| true,
        change: &|_| Change::None,
    };
}

/// Returns true if any user may execute the file.
pub(crate) fn is_executable(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// Returns a path of this machine as text. Fails if it is not UTF-8.
pub(crate) fn text(path: &Path) -> Result<&str, RootError> {
    path.to_str().ok_or_else(|| RootError::BadPath {
        path: path.display().to_string(),
        why: "it is not UTF-8",
    })
}

impl Host {
    /// Reads this process's working directory, `PATH` and `LD_LIBRARY_PATH`, and the configuration of this machine's
    /// loader.
    pub fn here() -> Result<Self, RootError> {
        let here = env::current_dir().map_err(io("finding", "the working folder"))?;
        let folders = |name: &str| -> Vec<PathBuf> {
            env::var_os(name)
                .map(|value| env::split_paths(&value).collect())
                .unwrap_or_default()
        };
        let mut all = folders("LD_LIBRARY_PATH");
        all.extend(loader::configured(Path::new("/etc/ld.so.conf")));
        all.extend(loader::DEFAULT.iter().map(PathBuf::from));
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

    /// Restricts this source to explicitly named files, for a root that has its own programs and libraries.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.alone = true;
        self
    }

    /// Sets the working directory of the program inside the root.
    #[must_use]
    pub fn starting_in(mut self, folder: &RootPath) -> Self {
        folder.as_str().clone_into(&mut self.folder);
        self
    }

    /// Returns the folders inside the root that the loader does not search by default; meant for `LD_LIBRARY_PATH`.
    pub fn library_folders(&self) -> impl Iterator<Item = &str> {
        self.told.iter().map(String::as_str)
    }

    /// Returns the notes for the user about the files added.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds a file, and its libraries if it is ELF. If `inside` is `None`, an absolute path stays the same inside the
    /// root, and a relative path refers to the root's working directory [`WORK`]. Returns the path inside the root.
    /// Fails if the path is a folder, or if a library is missing.
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

    /// Adds a folder with all its content, and the libraries of its ELF files. Links are added as links. Returns the
    /// path inside the root. Fails if the path is a file.
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

    /// Adds those files of a library folder that `wants` selects, at `place` inside the root, or at the folder's own
    /// path if `place` is `None`. Targets of links are added too.
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
                    // A dangling link is left out.
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

    /// Adds the libraries of a file, if the file is ELF. Ignores libraries that are missing on this machine, because
    /// the file could not load them here either.
    pub(crate) fn close_if_elf(&mut self, tree: &mut Tree, path: &Path) -> Result<(), RootError> {
        if is_elf(path)? {
            let notes = self.notes.len();
            self.close(tree, path, false)?;
            self.notes.truncate(notes);
        }
        Ok(())
    }

    /// Returns the absolute path and the metadata of a file on this machine. For a symbolic link, the metadata is that
    /// of its target.
    pub(crate) fn look(&self, path: &str) -> Result<(PathBuf, Metadata), RootError> {
        let host = self.here.join(path);
        let metadata = fs::metadata(&host).map_err(io("reading", &host))?;
        Ok((host, metadata))
    }
}

/// Returns the path inside the root at which a file named by the user is placed; `None` if it is the same as on this
/// machine.
fn elsewhere(path: &str, inside: Option<&str>) -> Result<Option<RootPath>, RootError> {
    if inside.is_none() && path.starts_with('/') {
        return Ok(None);
    }
    RootPath::new(inside.unwrap_or(path), WORK).map(Some)
}

/// Adds the content of a folder, sorted by name, without sockets, pipes and devices. Appends the paths of ELF files to
/// `programs`.
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

/// Returns the paths of the entries of a folder, sorted by name.
fn sorted(folder: &Path) -> Result<Vec<PathBuf>, RootError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(io("reading", folder))? {
        found.push(entry.map_err(io("reading", folder))?.path());
    }
    found.sort();
    Ok(found)
}

/// Adds a file of this machine at a path inside the root. Fails if the root would become too large.
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
    // The size is checked before gigabytes are read in vain.
    let size = Bytes(tree.size().0 + metadata.len());
    if size > MAX_SIZE {
        return Err(RootError::TooLarge {
            size,
            most: MAX_SIZE,
        });
    }
    tree.file(place, host, is_executable(metadata))
}

/// Returns true if a file of this machine begins with the ELF magic number.
pub(crate) fn is_elf(path: &Path) -> Result<bool, RootError> {
    let mut start = Vec::new();
    let file = File::open(path).map_err(io("reading", path))?;
    file.take(4)
        .read_to_end(&mut start)
        .map_err(io("reading", path))?;
    Ok(elf::is_elf(&start))
}

/// Adds the file, or the folder without its content, at an absolute path of this machine at the same path inside the
/// root, with all symbolic links on the path. Returns the path inside the root and the path on this machine, both with
/// links resolved.
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
        if links > MAX_LINKS {
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

/// Returns the components of a path as text, last component first.
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

/// A command line or script that runs inside the root, and the programs that it starts.
#[derive(Clone, Debug)]
pub(crate) struct ShellLine {
    /// Description of the line or script, for messages.
    pub(crate) what: String,
    /// Programs and scripts that the line or script starts.
    pub(crate) started: Started,
}

/// Programs and scripts that a command starts. Only names that are literal words of the command are found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Started {
    /// Names of the programs, in order of occurrence.
    pub(crate) names: Vec<String>,
    /// Paths of scripts that the shell itself reads, such as with `source`.
    pub(crate) scripts: Vec<String>,
}
