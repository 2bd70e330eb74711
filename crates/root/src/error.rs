//! Why a root cannot be made.

use std::io;
use std::path::PathBuf;

use pagetide_quantity::Bytes;

/// Why a root cannot be made or taken. Shown as is.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// A file of this machine refused.
    #[error("{what} {}: {source}", .on.display())]
    Io {
        /// What was attempted.
        what: &'static str,
        /// On what.
        on: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// No program has this name.
    #[error("there is no program `{name}` in the folders of PATH: give its path")]
    NoProgram {
        /// The name as given.
        name: String,
    },
    /// A wrapper was given in the place of a program.
    #[error(
        "{} is a wrapper of {manager}, which chooses a version at each start: give the path of the program itself, which `{ask}` tells",
        .path.display()
    )]
    Wrapper {
        /// The wrapper.
        path: PathBuf,
        /// The program that it belongs to.
        manager: String,
        /// What names the program itself.
        ask: String,
    },
    /// A root that brings its own programs has not this one.
    #[error(
        "there is no program `{name}` in the root: look for it there, or leave --root out to take it from this machine"
    )]
    NotInRoot {
        /// The name as given, or the loader or interpreter that the program needs.
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
    /// A file is not marked as a program.
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
        /// What it is built for.
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
    /// A library is not on this machine.
    #[error(
        "{} needs the library {library}, which is in none of the folders where the loader looks: install it, or name its folder with LD_LIBRARY_PATH",
        .by.display()
    )]
    NoLibrary {
        /// Name of the library.
        library: String,
        /// Who needs it.
        by: PathBuf,
    },
    /// A library is nowhere in a root that brings its own.
    #[error(
        "{by} needs the library {library}, which is not in the root: add it there, or leave --root out"
    )]
    NoLibraryInRoot {
        /// Name of the library.
        library: String,
        /// Who needs it.
        by: String,
    },
    /// A path cannot stand inside.
    #[error("`{path}` cannot be a path inside: {why}")]
    BadPath {
        /// The path as given.
        path: String,
        /// What is wrong with it, and what to give instead.
        why: &'static str,
    },
    /// Two things want the same path.
    #[error("{path} cannot be both a folder and a file inside: name another path with :INSIDE")]
    Conflict {
        /// The path.
        path: String,
    },
    /// A kind of file that no root holds.
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
        /// What it is.
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
    /// More than can be handed to a guest.
    #[error(
        "the files of the program take {size}, and at most {most} can be handed to a guest: leave out what it does not read"
    )]
    TooLarge {
        /// Size of all files.
        size: Bytes,
        /// The most.
        most: Bytes,
    },
    /// An archive is larger than any root may be.
    #[error(
        "cannot unpack {}: it has {what}, more than a root may have; leave out what the program does not read",
        .path.display()
    )]
    Unbounded {
        /// The file.
        path: PathBuf,
        /// What there is too much of, with the limit.
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
    /// The image could not be made.
    #[error("making the program's file system: {why}; apt-get install e2fsprogs")]
    Image {
        /// The reason.
        why: String,
    },
    /// The user wants no more.
    #[error("making the program's file system was stopped: the same command begins it anew")]
    Stopped,
    /// There is no root of this digest.
    #[error(
        "the root {digest} is not in the cache {}: give the program's files again, with `pagetide run … -- COMMAND`",
        .cache.display()
    )]
    Unknown {
        /// The digest.
        digest: String,
        /// The folder that was looked into.
        cache: PathBuf,
    },
    /// An image is not what was written.
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
