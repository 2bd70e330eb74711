//! Errors of making a root.

use std::io;
use std::path::PathBuf;

use pagetide_quantity::Bytes;

/// Why a root cannot be made or used. Shown as is.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// A file operation on this machine failed.
    #[error("{what} {}: {source}", .on.display())]
    Io {
        /// The attempted operation.
        what: &'static str,
        /// The file.
        on: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No program has this name.
    #[error("there is no program `{name}` in the folders of PATH: give its path")]
    NoProgram {
        /// The name as given.
        name: String,
    },
    /// A version manager's wrapper was given instead of the program itself.
    #[error(
        "{} is a wrapper of {manager}, which chooses a version at each start: give the path of the program itself, which `{ask}` tells",
        .path.display()
    )]
    Wrapper {
        /// Path of the wrapper.
        path: PathBuf,
        /// Name of the manager.
        manager: String,
        /// The command that prints the path of the program itself.
        ask: String,
    },
    /// A program is not in a root that has its own programs.
    #[error(
        "there is no program `{name}` in the root: look for it there, or leave --root out to take it from this machine"
    )]
    NotInRoot {
        /// The name as given, or the needed loader or interpreter.
        name: String,
    },
    /// A file is neither ELF nor a script.
    #[error(
        "cannot run {}: it is neither an ELF executable nor a script that begins with `#!`",
        .path.display()
    )]
    NotAProgram {
        /// The file.
        path: PathBuf,
    },
    /// A file is not executable.
    #[error("cannot run {}: it is not executable, `chmod +x` it", .path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// A saved image cannot be read.
    #[error(
        "cannot read the image {}: {why}; save one image with `docker save`, `podman save` or `skopeo copy … oci-archive:FILE`",
        .path.display()
    )]
    SavedImage {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A program is built for another processor.
    #[error(
        "cannot run {}: it is built for {found}, and the guest is an x86-64 machine",
        .path.display()
    )]
    OtherArchitecture {
        /// The file.
        path: PathBuf,
        /// The processor for which it is built.
        found: String,
    },
    /// An ELF file is damaged.
    #[error("cannot read the ELF file {}: {why}", .path.display())]
    Elf {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A library is not installed on this machine.
    #[error(
        "{} needs the library {library}, which is in none of the folders where the loader looks: install it, or name its folder with LD_LIBRARY_PATH",
        .by.display()
    )]
    NoLibrary {
        /// Name of the library.
        library: String,
        /// The file that needs it.
        by: PathBuf,
    },
    /// A library is not in a root that has its own libraries.
    #[error(
        "{by} needs the library {library}, which is not in the root: add it there, or leave --root out"
    )]
    NoLibraryInRoot {
        /// Name of the library.
        library: String,
        /// The file that needs it.
        by: String,
    },
    /// A path that is not allowed inside a root.
    #[error("`{path}` cannot be a path inside: {why}")]
    BadPath {
        /// The path as given.
        path: String,
        /// What is wrong with it, and the remedy.
        why: &'static str,
    },
    /// A path is used both for a folder and for a file.
    #[error("{path} cannot be both a folder and a file inside: name another path with :INSIDE")]
    Conflict {
        /// The path.
        path: String,
    },
    /// A file that is not a file, folder or link.
    #[error("{} is neither a file, a folder nor a link: leave it out", .path.display())]
    Special {
        /// The file.
        path: PathBuf,
    },
    /// A folder was given as a file, or the reverse.
    #[error("{} is {found}: give it with {option}", .path.display())]
    OtherKind {
        /// The path.
        path: PathBuf,
        /// Its type.
        found: &'static str,
        /// The right option.
        option: &'static str,
    },
    /// A file changed while it was read.
    #[error("{} changed while it was read: run again when nobody writes to it", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The files are larger than a guest can receive.
    #[error(
        "the files of the program take {size}, and at most {most} can be handed to a guest: leave out what it does not read"
    )]
    TooLarge {
        /// Size of all files.
        size: Bytes,
        /// The limit.
        most: Bytes,
    },
    /// An archive exceeds a limit for roots.
    #[error(
        "cannot unpack {}: it has {what}, more than a root may have; leave out what the program does not read",
        .path.display()
    )]
    Unbounded {
        /// The file.
        path: PathBuf,
        /// What there is too much of, and the limit.
        what: String,
    },
    /// A root has too many names.
    #[error(
        "the program's file system has more than {most}, the most that a guest can be given: leave out what it does not read"
    )]
    TooManyNames {
        /// The limit, in words.
        most: String,
    },
    /// `mke2fs` failed.
    #[error("making the program's file system: {why}; apt-get install e2fsprogs")]
    Image {
        /// The reason.
        why: String,
    },
    /// The user stopped it.
    #[error("making the program's file system was stopped: the same command starts it again")]
    Stopped,
    /// There is no root with this digest.
    #[error(
        "the root {digest} is not in the cache {}: give the program's files again, with `pagetide run … -- COMMAND`",
        .cache.display()
    )]
    Unknown {
        /// The digest.
        digest: String,
        /// The cache's folder.
        cache: PathBuf,
    },
    /// An image differs from the one that was written.
    #[error(
        "the root {digest} in the cache is damaged and was removed: give the program's files again, with `pagetide run … -- COMMAND`"
    )]
    Damaged {
        /// The digest.
        digest: String,
    },
}

/// Adds attempt and object to an I/O error.
pub(crate) fn io(
    what: &'static str,
    on: impl Into<PathBuf>,
) -> impl FnOnce(io::Error) -> RootError {
    let on = on.into();
    move |source| RootError::Io { what, on, source }
}
