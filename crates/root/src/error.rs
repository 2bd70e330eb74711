//! Errors in making or using a root.

use std::io;
use std::path::PathBuf;

use pagetide_quantity::Bytes;

/// Why a root cannot be made or used. The user sees this message unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// A file operation on this machine failed.
    #[error("{what} {}: {source}", .on.display())]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// Path of the file or folder that the operation was applied to.
        on: PathBuf,
        /// Error from the operating system.
        source: io::Error,
    },
    /// No program with this name is in the folders of `PATH` on this machine.
    #[error("there is no program `{name}` in the folders of PATH: give its path")]
    NoProgram {
        /// Name of the program as given.
        name: String,
    },
    /// The program is a wrapper of a version manager, not the program itself.
    #[error(
        "{} is a wrapper of {manager}, which chooses a version at each start: give the path of the program itself, which `{ask}` tells",
        .path.display()
    )]
    Wrapper {
        /// Path of the wrapper.
        path: PathBuf,
        /// Name of the version manager.
        manager: String,
        /// The command that prints the path of the program itself.
        ask: String,
    },
    /// The program is not in the root, which has its own programs.
    #[error(
        "there is no program `{name}` in the root: look for it there, or leave --root out to take it from this machine"
    )]
    NotInRoot {
        /// Name of the program as given, or name of the loader or interpreter that it needs.
        name: String,
    },
    /// The program is neither an ELF file nor a script.
    #[error(
        "cannot run {}: it is neither an ELF executable nor a script that begins with `#!`",
        .path.display()
    )]
    NotAProgram {
        /// Path of the program.
        path: PathBuf,
    },
    /// The program's file is not executable.
    #[error("cannot run {}: it is not executable, `chmod +x` it", .path.display())]
    NotExecutable {
        /// Path of the program.
        path: PathBuf,
    },
    /// A saved container image cannot be read.
    #[error(
        "cannot read the image {}: {why}; save one image with `docker save`, `podman save` or `skopeo copy … oci-archive:FILE`",
        .path.display()
    )]
    SavedImage {
        /// Path of the saved image.
        path: PathBuf,
        /// What is wrong with the image.
        why: String,
    },
    /// The program is built for another processor than the guest's.
    #[error(
        "cannot run {}: it is built for {found}, and the guest is an x86-64 machine",
        .path.display()
    )]
    OtherArchitecture {
        /// Path of the program.
        path: PathBuf,
        /// Name of the processor for which the program is built.
        found: String,
    },
    /// An ELF file is damaged or has an unknown form.
    #[error("cannot read the ELF file {}: {why}", .path.display())]
    Elf {
        /// Path of the ELF file.
        path: PathBuf,
        /// What is wrong with the file.
        why: String,
    },
    /// A library that a file needs is not installed on this machine.
    #[error(
        "{} needs the library {library}, which is in none of the folders where the loader looks: install it, or name its folder with LD_LIBRARY_PATH",
        .by.display()
    )]
    NoLibrary {
        /// Name of the missing library.
        library: String,
        /// Path on this machine of the file that needs the library.
        by: PathBuf,
    },
    /// A root that has its own libraries lacks a library.
    #[error(
        "{by} needs the library {library}, which is not in the root: add it there, or leave --root out"
    )]
    NoLibraryInRoot {
        /// Name of the missing library.
        library: String,
        /// Path inside the root of the file that needs the library.
        by: String,
    },
    /// The path is not allowed inside a root.
    #[error("`{path}` cannot be a path inside: {why}")]
    BadPath {
        /// Path as given.
        path: String,
        /// What is wrong with the path, and the remedy.
        why: &'static str,
    },
    /// A path inside the root is used both for a folder and for a file.
    #[error("{path} cannot be both a folder and a file inside: name another path with :INSIDE")]
    Conflict {
        /// Path inside the root.
        path: String,
    },
    /// The path names something that is not a file, folder or link.
    #[error("{} is neither a file, a folder nor a link: leave it out", .path.display())]
    Special {
        /// Path on this machine.
        path: PathBuf,
    },
    /// A folder was given with the option for files, or a file with the option for folders.
    #[error("{} is {found}: give it with {option}", .path.display())]
    OtherKind {
        /// Path on this machine.
        path: PathBuf,
        /// Type of what was found at the path.
        found: &'static str,
        /// Name of the option to use instead.
        option: &'static str,
    },
    /// A file of this machine changed while it was read.
    #[error("{} changed while it was read: run again when nobody writes to it", .path.display())]
    Changed {
        /// Path of the file.
        path: PathBuf,
    },
    /// The program's files are larger than a guest can receive.
    #[error(
        "the files of the program take {size}, and at most {most} can be handed to a guest: leave out what it does not read"
    )]
    TooLarge {
        /// Size of all files.
        size: Bytes,
        /// Maximum size that a guest can receive.
        most: Bytes,
    },
    /// An archive exceeds a limit of roots.
    #[error(
        "cannot unpack {}: it has {what}, more than a root may have; leave out what the program does not read",
        .path.display()
    )]
    Unbounded {
        /// Path of the archive.
        path: PathBuf,
        /// What exceeds the limit, with the limit.
        what: String,
    },
    /// The root has too many files, folders and links, or the total length of their paths and link targets is too
    /// large.
    #[error(
        "the program's file system has more than {most}, the most that a guest can be given: leave out what it does not read"
    )]
    TooManyNames {
        /// The limit that was exceeded, in words.
        most: String,
    },
    /// Making the image with `mke2fs` failed.
    #[error("making the program's file system: {why}; apt-get install e2fsprogs")]
    Image {
        /// Reason why making the image failed.
        why: String,
    },
    /// The user asked to stop.
    #[error("making the program's file system was stopped: the same command starts it again")]
    Stopped,
    /// The cache has no root with this digest.
    #[error(
        "the root {digest} is not in the cache {}: give the program's files again, with `pagetide run … -- COMMAND`",
        .cache.display()
    )]
    Unknown {
        /// Digest of the root.
        digest: String,
        /// Folder of the cache.
        cache: PathBuf,
    },
    /// An image in the cache differs from the one that was written there.
    #[error(
        "the root {digest} in the cache is damaged and was removed: give the program's files again, with `pagetide run … -- COMMAND`"
    )]
    Damaged {
        /// Digest of the root.
        digest: String,
    },
}

/// Returns a function that converts an I/O error to [`RootError::Io`], with the operation that failed and its path.
pub(crate) fn io(
    what: &'static str,
    on: impl Into<PathBuf>,
) -> impl FnOnce(io::Error) -> RootError {
    let on = on.into();
    move |source| RootError::Io { what, on, source }
}
