//! What can go wrong between a patch and a kernel. Each message is one sentence: attempt, object, remedy.

use std::io;
use std::path::{Path, PathBuf};

use pagetide_kernel::KernelError;
use pagetide_outside::remedy;
use thiserror::Error;

/// Why a kernel could not be built from source.
#[derive(Debug, Error)]
pub enum SourceError {
    /// The argument names no source.
    #[error("`{text}` names no kernel source: {hint}")]
    UnknownSource {
        /// What the user typed.
        text: String,
        /// What is understood.
        hint: String,
    },
    /// A file could not be read.
    #[error("reading {} stopped ({cause}): {}", path.display(), remedy(cause, None))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The cache could not be used.
    #[error("{attempt} {} stopped ({cause}): {}", path.display(), remedy(cause, Some("PAGETIDE_CACHE")))]
    Cache {
        /// What was being done.
        attempt: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A file or folder given as a patch holds none.
    #[error("{origin} holds no patch: give the output of `git format-patch`, `b4 am` or `diff -u`")]
    NoPatch {
        /// The file or folder.
        origin: String,
    },
    /// A patch is no patch that can be taken.
    #[error("{origin} cannot be taken as a patch: {what}")]
    Malformed {
        /// The file, and the patch in it.
        origin: String,
        /// What is wrong and what to do.
        what: String,
    },
    /// A patch names a file that it must not touch.
    #[error("{origin} was refused because it names `{path}`, {why}: do not trust this patch")]
    Unsafe {
        /// The file, and the patch in it.
        origin: String,
        /// The name it uses.
        path: String,
        /// Why that is refused.
        why: &'static str,
    },
    /// Numbers of a series do not go together.
    #[error("{origin} is no whole series: {what}")]
    Incomplete {
        /// The file or folder.
        origin: String,
        /// What is missing or double, and what to do.
        what: String,
    },
    /// A patch does not fit the source.
    #[error("{patch} does not apply to {source_name}: {why}")]
    Misfit {
        /// The patch's subject or file.
        patch: String,
        /// The source.
        source_name: String,
        /// Where and why, and what to do.
        why: String,
    },
    /// Of two revisions the one is no ancestor of the other.
    #[error(
        "{good} is no ancestor of {bad} in {}: give an ancestor, such as the last one that both have ({common})", path.display()
    )]
    NoAncestor {
        /// The revision that should be the ancestor.
        good: String,
        /// The other.
        bad: String,
        /// The last commit that both have.
        common: String,
        /// The tree.
        path: PathBuf,
    },
    /// git could not do its work.
    #[error("git could not {attempt} ({said}): check that {} is a git tree and has that revision", path.display())]
    Git {
        /// What it was asked to do.
        attempt: String,
        /// Its own words.
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
        /// The options, as asked for and as they came out.
        options: String,
    },
    /// The configuration could not be made.
    #[error("configuring {source_name} stopped ({said}): the whole log is {}", log.display())]
    Configure {
        /// The source.
        source_name: String,
        /// The last words of make.
        said: String,
        /// The log.
        log: PathBuf,
    },
    /// Something does not compile.
    #[error("{what} does not compile: {error}{hunk}; the whole log is {}", log.display())]
    Compile {
        /// What was built.
        what: String,
        /// The first error of the compiler.
        error: String,
        /// The patch's hunk it lies in, if it lies in one.
        hunk: String,
        /// The log.
        log: PathBuf,
    },
    /// The disk or memory ran out, or make failed in another way.
    #[error("building {what} stopped ({said}): the whole log is {}", log.display())]
    Make {
        /// What was built.
        what: String,
        /// Its last words.
        said: String,
        /// The log.
        log: PathBuf,
    },
    /// The kernel crate could not do its part.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// It was told to stop. What is compiled stays compiled.
    #[error("building the kernel was stopped: the same command goes on from there")]
    Stopped,
}

impl SourceError {
    /// Whether a user's words or files are wrong, rather than that the machine could not.
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

    /// Whether the source itself cannot be built, rather than that the machine could not.
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

    /// Wraps an error from reading `path`.
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Read { path, cause }
    }

    /// Wraps an error from doing `attempt` on `path` inside the cache.
    pub(crate) fn cache(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Cache {
            attempt,
            path,
            cause,
        }
    }
}
