//! Errors in building a kernel from source. Each message is one sentence: attempt, object, remedy.

use std::io;
use std::path::{Path, PathBuf};

use pagetide_kernel::KernelError;
use pagetide_outside::remedy;
use thiserror::Error;

/// Why a kernel could not be built from source.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The text does not name a kernel source.
    #[error("`{text}` is not a kernel source: {hint}")]
    UnknownSource {
        /// The text as the user typed it.
        text: String,
        /// The accepted forms.
        hint: String,
    },
    /// A file could not be read.
    #[error("reading {} stopped ({cause}): {}", path.display(), remedy(cause, None))]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error from the operating system.
        cause: io::Error,
    },
    /// A file or folder of the cache could not be read or written.
    #[error("{attempt} {} stopped ({cause}): {}", path.display(), remedy(cause, Some("PAGETIDE_CACHE")))]
    Cache {
        /// The attempted operation, such as "reading".
        attempt: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error from the operating system.
        cause: io::Error,
    },
    /// A file or folder given as a patch contains no patch.
    #[error("{origin} holds no patch: give the output of `git format-patch`, `b4 am` or `diff -u`")]
    NoPatch {
        /// The given file or folder.
        origin: String,
    },
    /// A patch cannot be parsed or is not supported.
    #[error("{origin} cannot be taken as a patch: {what}")]
    Malformed {
        /// Name of the file, and the patch in it.
        origin: String,
        /// What is wrong with the patch, and the remedy.
        what: String,
    },
    /// A patch names a file that it must not change.
    #[error("{origin} was refused because it names `{path}`, {why}: do not trust this patch")]
    Unsafe {
        /// Name of the file, and the patch in it.
        origin: String,
        /// The forbidden name in the patch.
        path: String,
        /// Why the name is forbidden.
        why: &'static str,
    },
    /// A patch of a numbered series is missing or duplicate, or patches of several series are mixed.
    #[error("{origin} is not a complete series: {what}")]
    Incomplete {
        /// The given file or folder.
        origin: String,
        /// Which patch is missing or duplicate, and the remedy.
        what: String,
    },
    /// A patch cannot be applied to the source.
    #[error("{patch} does not apply to {source_name}: {why}")]
    Misfit {
        /// Subject of the patch, or its file.
        patch: String,
        /// Name of the source.
        source_name: String,
        /// The position in the source, the reason and the remedy.
        why: String,
    },
    /// The first revision must be an ancestor of the second one, but is not.
    #[error(
        "{good} is no ancestor of {bad} in {}: give an ancestor, such as the last one that both have ({common})", path.display()
    )]
    NoAncestor {
        /// The revision that should be the ancestor.
        good: String,
        /// The revision that should be the descendant.
        bad: String,
        /// The newest common commit of both revisions.
        common: String,
        /// Path of the git tree.
        path: PathBuf,
    },
    /// A git command failed.
    #[error("git could not {attempt} ({said}): check that {} is a git tree and has that revision", path.display())]
    Git {
        /// The attempted operation.
        attempt: String,
        /// Error message from git.
        said: String,
        /// Path of the user's git tree.
        path: PathBuf,
    },
    /// A program or library that the build needs is not installed.
    #[error("building a kernel needs {missing}: {remedy}")]
    NoTools {
        /// Names of the missing programs and libraries.
        missing: String,
        /// The command that installs them.
        remedy: String,
    },
    /// Options that the user asked for are not in the resulting configuration.
    #[error(
        "the configuration of {source_name} does not take {options}: add what they depend on to the file given with --config, or leave them out"
    )]
    NotTaken {
        /// Name of the source.
        source_name: String,
        /// The options, each with its requested and, if set, its actual value.
        options: String,
    },
    /// Configuring the kernel failed.
    #[error("configuring {source_name} stopped ({said}): the whole log is {}", log.display())]
    Configure {
        /// Name of the source.
        source_name: String,
        /// The lines of make's output that explain the failure.
        said: String,
        /// Path of the log.
        log: PathBuf,
    },
    /// A source file does not compile.
    #[error("{what} does not compile: {error}{hunk}; the whole log is {}", log.display())]
    Compile {
        /// Description of the kernel that was built.
        what: String,
        /// The compiler's first error, with its position.
        error: String,
        /// The hunk that contains the line of the error, or else the patch that changes the file; empty if no patch
        /// changes the file.
        hunk: String,
        /// Path of the log.
        log: PathBuf,
    },
    /// make failed for another reason, such as a full disk or too little memory.
    #[error("building {what} stopped ({said}): the whole log is {}", log.display())]
    Make {
        /// Description of the kernel that was built.
        what: String,
        /// The lines of make's output that explain the failure.
        said: String,
        /// Path of the log.
        log: PathBuf,
    },
    /// Fetching or storing a kernel failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The user stopped the build. Objects that were already compiled are kept.
    #[error("building the kernel was stopped: the same command goes on from there")]
    Stopped,
}

impl SourceError {
    /// Returns true if the user's arguments or files are wrong, false if anything else failed.
    pub fn is_user_error(&self) -> bool {
        matches!(
            self,
            Self::UnknownSource { .. }
                | Self::NoPatch { .. }
                | Self::Malformed { .. }
                | Self::Unsafe { .. }
                | Self::Incomplete { .. }
                | Self::NotTaken { .. }
                | Self::NoAncestor { .. }
        )
    }

    /// Returns true if patching, configuring, compiling or linking this source failed. The cause may also be the
    /// machine, such as a full disk. Returns false for all other failures.
    pub fn is_by_source(&self) -> bool {
        matches!(
            self,
            Self::Misfit { .. }
                | Self::NotTaken { .. }
                | Self::Configure { .. }
                | Self::Compile { .. }
                | Self::Make { .. }
        )
    }

    /// Returns a function that converts an I/O error from reading `path` to a [`SourceError`].
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Read { path, cause }
    }

    /// Returns a function that converts an I/O error from the operation `attempt` on `path` in the cache to a
    /// [`SourceError`].
    pub(crate) fn cache(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Cache {
            attempt,
            path,
            cause,
        }
    }
}
