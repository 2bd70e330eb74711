//! Errors between a patch and a kernel. Each message is one sentence: attempt, object, remedy.

use std::io;
use std::path::{Path, PathBuf};

use pagetide_kernel::KernelError;
use pagetide_outside::remedy;
use thiserror::Error;

/// Why a kernel could not be built from source.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The argument is not a kernel source.
    #[error("`{text}` is not a kernel source: {hint}")]
    UnknownSource {
        /// The argument.
        text: String,
        /// The forms that are understood.
        hint: String,
    },
    /// A file could not be read.
    #[error("reading {} stopped ({cause}): {}", path.display(), remedy(cause, None))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The cache could not be used.
    #[error("{attempt} {} stopped ({cause}): {}", path.display(), remedy(cause, Some("PAGETIDE_CACHE")))]
    Cache {
        /// The attempted operation.
        attempt: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A file or folder given as a patch contains none.
    #[error("{origin} holds no patch: give the output of `git format-patch`, `b4 am` or `diff -u`")]
    NoPatch {
        /// The file or folder.
        origin: String,
    },
    /// A patch cannot be parsed or is not supported.
    #[error("{origin} cannot be taken as a patch: {what}")]
    Malformed {
        /// The file, and the patch in it.
        origin: String,
        /// What is wrong, and the remedy.
        what: String,
    },
    /// A patch names a file that it must not change.
    #[error("{origin} was refused because it names `{path}`, {why}: do not trust this patch")]
    Unsafe {
        /// The file, and the patch in it.
        origin: String,
        /// The name it uses.
        path: String,
        /// Why that is refused.
        why: &'static str,
    },
    /// The numbers of a series are inconsistent.
    #[error("{origin} is not a complete series: {what}")]
    Incomplete {
        /// The file or folder.
        origin: String,
        /// What is missing or duplicate, and the remedy.
        what: String,
    },
    /// A patch does not fit the source.
    #[error("{patch} does not apply to {source_name}: {why}")]
    Misfit {
        /// The patch's subject or file.
        patch: String,
        /// The source.
        source_name: String,
        /// The position, the reason and the remedy.
        why: String,
    },
    /// One of two revisions must be an ancestor of the other, and is not.
    #[error(
        "{good} is no ancestor of {bad} in {}: give an ancestor, such as the last one that both have ({common})", path.display()
    )]
    NoAncestor {
        /// The revision that should be the ancestor.
        good: String,
        /// The other revision.
        bad: String,
        /// The last common commit.
        common: String,
        /// The tree.
        path: PathBuf,
    },
    /// git failed.
    #[error("git could not {attempt} ({said}): check that {} is a git tree and has that revision", path.display())]
    Git {
        /// The attempted operation.
        attempt: String,
        /// git's error message.
        said: String,
        /// The user's tree.
        path: PathBuf,
    },
    /// Something the build needs is not installed.
    #[error("building a kernel needs {missing}: {remedy}")]
    NoTools {
        /// What is missing.
        missing: String,
        /// The command that installs it.
        remedy: String,
    },
    /// Options that were asked for are not in the resulting configuration.
    #[error(
        "the configuration of {source_name} does not take {options}: add what they depend on to the file given with --config, or leave them out"
    )]
    NotTaken {
        /// The source.
        source_name: String,
        /// The options, as requested and as they are.
        options: String,
    },
    /// The configuration could not be made.
    #[error("configuring {source_name} stopped ({said}): the whole log is {}", log.display())]
    Configure {
        /// The source.
        source_name: String,
        /// The last output of make.
        said: String,
        /// The log.
        log: PathBuf,
    },
    /// A source file does not compile.
    #[error("{what} does not compile: {error}{hunk}; the whole log is {}", log.display())]
    Compile {
        /// What was built.
        what: String,
        /// The compiler's first error.
        error: String,
        /// The patch's hunk at that line; empty if there is none.
        hunk: String,
        /// The log.
        log: PathBuf,
    },
    /// The disk or memory is full, or make failed in another way.
    #[error("building {what} stopped ({said}): the whole log is {}", log.display())]
    Make {
        /// What was built.
        what: String,
        /// The last output of make.
        said: String,
        /// The log.
        log: PathBuf,
    },
    /// Fetching or storing a kernel failed.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The user stopped the build. Compiled objects are kept.
    #[error("building the kernel was stopped: the same command goes on from there")]
    Stopped,
}

impl SourceError {
    /// True if the user's input or files are wrong, as opposed to a failure of the machine.
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

    /// True if the source itself cannot be built, as opposed to a failure of the machine.
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

    /// Converts an error of reading `path`.
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Read { path, cause }
    }

    /// Converts an error of doing `attempt` on `path` in the cache.
    pub(crate) fn cache(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Cache {
            attempt,
            path,
            cause,
        }
    }
}
