//! Errors of finding, fetching and adding kernels. Each message is one sentence: attempt, object, remedy.

use std::io;
use std::path::{Path, PathBuf};

use pagetide_outside::remedy;
use pagetide_quantity::command::{command, told};
use thiserror::Error;

use crate::need::MissingOptions;

/// Why a kernel could not be found, fetched, unpacked, kept or used.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The argument has none of the known forms.
    #[error("`{text}` names no kernel: {hint}")]
    UnknownReference {
        /// What the user typed.
        text: String,
        /// The nearest known form, as a hint.
        hint: String,
    },
    /// No kernel of this name is in the cache.
    #[error(
        "kernel `{name}` is not in the cache: {} shows those that are, `{}` fetches it",
        told("kernel list"), command(&["kernel", "add", name])
    )]
    Absent {
        /// The name.
        name: String,
    },
    /// Several kernels in the cache match the same name.
    #[error(
        "`{name}` names several kernels in the cache ({candidates}): give the release or the start of a digest"
    )]
    Ambiguous {
        /// What the user typed.
        name: String,
        /// Release and short digest of each.
        candidates: String,
    },
    /// A file could not be read.
    #[error("reading {} stopped ({cause}): {}", path.display(), remedy(cause, None))]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A file ends earlier than its headers say.
    #[error("{} is truncated ({what}): fetch or copy it again", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What was being read when it ended.
        what: String,
    },
    /// A file's content violates its format.
    #[error("{} is damaged ({what}): fetch or copy it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The violation.
        what: String,
    },
    /// A file given as a Debian package is not one.
    #[error("{} is not a Debian package ({what}): give a .deb file", path.display())]
    NotAPackage {
        /// The file.
        path: PathBuf,
        /// What is missing.
        what: String,
    },
    /// A package or image is built for another processor.
    #[error("{} is built for {architecture}: choose the amd64 build", path.display())]
    OtherArchitecture {
        /// The file.
        path: PathBuf,
        /// The architecture it names.
        architecture: String,
    },
    /// Neither a package nor the packages it depends on contain a kernel image.
    #[error("{} holds no kernel image: choose a linux-image package{}", path.display(), parts_beside(beside))]
    NoKernelInside {
        /// The package file.
        path: PathBuf,
        /// Split-off packages that it depends on and that are not in the same folder.
        beside: Vec<String>,
    },
    /// A member of an archive would be written outside its folder.
    #[error("{} was refused because its member `{member}` leads outside the package: do not trust this file", path.display())]
    UnsafeMember {
        /// The package file.
        path: PathBuf,
        /// The member's name.
        member: String,
    },
    /// A file given as a kernel image is not one.
    #[error("{} is not an x86-64 Linux kernel image ({why}): give a bzImage built for x86-64", path.display())]
    NotAKernel {
        /// The file.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// A kernel image without a configuration, built in or as a file.
    #[error("no configuration was found for {}: add `,config:FILE`, or build the kernel with CONFIG_IKCONFIG", path.display())]
    NoConfig {
        /// The image file.
        path: PathBuf,
    },
    /// A folder given as a built kernel tree has no image in it.
    #[error("{} holds no built kernel (no {wanted}): run `make` there first", path.display())]
    NotBuilt {
        /// The folder.
        path: PathBuf,
        /// The first file looked for.
        wanted: String,
    },
    /// The modules and the image come from different builds.
    #[error("the modules from {} are for {modules} but the image is {image}: give those built with it", path.display())]
    OtherRelease {
        /// Where the modules come from.
        path: PathBuf,
        /// The image's release.
        image: String,
        /// The modules' release.
        modules: String,
    },
    /// A module is neither compiled in nor available as a file.
    #[error("{release} has no module {module}: choose a kernel built with {option}")]
    NoModule {
        /// The kernel's release.
        release: String,
        /// The module asked for.
        module: String,
        /// The option that builds it.
        option: String,
    },
    /// The kernel's zram or zswap does not support a compressor.
    #[error(
        "{of} of {release} cannot compress with {compressor}: choose a kernel built with {option}, or another compressor"
    )]
    NoCompressor {
        /// `zram` or `zswap`.
        of: &'static str,
        /// The kernel's release.
        release: String,
        /// The compressor asked for.
        compressor: String,
        /// The option that builds it in.
        option: String,
    },
    /// The kernel's zswap does not support a pool.
    #[error(
        "zswap of {release} cannot keep pages in {pool}: choose a kernel built with {option}, or another pool"
    )]
    NoPool {
        /// The kernel's release.
        release: String,
        /// The pool asked for.
        pool: String,
        /// The option that builds it.
        option: String,
    },
    /// The kernel lacks options that are needed.
    #[error(transparent)]
    Missing(#[from] MissingOptions),
    /// The cache has a name that cannot be handed on.
    #[error("the cache {} has a name that is no UTF-8: name another folder with --cache or PAGETIDE_CACHE", path.display())]
    NoText {
        /// The folder.
        path: PathBuf,
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
    /// Neither a cache folder nor a home folder is set.
    #[error("no place for the kernel cache is known: set PAGETIDE_CACHE or HOME")]
    NoCacheRoot,
    /// The content of a kernel in the cache does not match its digest.
    #[error("{} in the kernel cache is damaged ({what}): run again, and it is removed and fetched again", path.display())]
    CacheDamaged {
        /// The kernel's folder or a file in it.
        path: PathBuf,
        /// The mismatch.
        what: String,
    },
    /// A damaged kernel was removed from the cache and cannot be fetched again from its origin.
    #[error(
        "kernel {release} in the cache was damaged ({why}) and is removed, but {reference} cannot provide it again ({cause}): add another with {}",
        told("kernel add KERNEL")
    )]
    Lost {
        /// The kernel's release.
        release: String,
        /// The mismatch.
        why: String,
        /// The reference it came from.
        reference: String,
        /// Why it could not be fetched again.
        cause: String,
    },
    /// A kernel that was built from source is no longer in the cache.
    #[error(
        "the kernel built as {what} is no longer in the cache: run again with its source and patches, and it is built again"
    )]
    NotKept {
        /// Its digest and what it was built from.
        what: String,
    },
    /// A source package contains no kernel source.
    #[error("{} holds no kernel source (no usr/src/linux-source-*.tar.xz): name another package", path.display())]
    NoSourceInside {
        /// The package file.
        path: PathBuf,
    },
    /// Fetching or unpacking was stopped; partial files are removed.
    #[error("fetching the kernel was stopped: the same command begins it again")]
    Stopped,
    /// The machine has no apt.
    #[error(
        "fetching {package} needs apt, and {program} could not be started ({cause}): give a .deb, an image or a built tree instead"
    )]
    NoApt {
        /// The package to be fetched.
        package: String,
        /// The program that could not be started.
        program: String,
        /// The system's error.
        cause: io::Error,
    },
    /// apt failed.
    #[error(
        "apt could not {attempt} ({said}): check the network and the mirror, or give a .deb file"
    )]
    Apt {
        /// The attempted operation.
        attempt: String,
        /// apt's error message.
        said: String,
    },
    /// Debian's archive keys are not installed.
    #[error(
        "Debian's archive keys were not found in {looked}: install debian-archive-keyring, so that apt can check what it fetches"
    )]
    NoKeyring {
        /// The paths that were searched.
        looked: String,
    },
    /// No package with this name, version or series is available.
    #[error("{wanted} is not available from {place}: {hint}")]
    NoPackage {
        /// The package, version or series.
        wanted: String,
        /// The suite or mirror that was asked.
        place: String,
        /// What is available instead.
        hint: String,
    },
}

/// The part of a message that asks for the missing parts of a split package; empty if there are none.
fn parts_beside(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!(", or put {} beside it", names.join(", "))
    }
}

impl KernelError {
    /// Whether the user's input was wrong, as opposed to a failure of the machine.
    pub fn is_user_error(&self) -> bool {
        matches!(
            self,
            Self::UnknownReference { .. } | Self::Absent { .. } | Self::NoText { .. }
        )
    }

    /// Wraps an error of reading `path`.
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Read { path, cause }
    }

    /// Wraps an error of the operation `attempt` on `path` inside the cache.
    pub(crate) fn cache(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Cache {
            attempt,
            path,
            cause,
        }
    }

    /// Turns an error of decoding `path` into [`Self::Truncated`], [`Self::Damaged`] or [`Self::Read`], by its kind.
    pub(crate) fn decode(path: &Path, what: &str, source: io::Error) -> Self {
        // A decoder's message may quote the file; control characters would break the one-line message.
        let what: String = format!("{what}: {source}")
            .chars()
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect();
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated {
                path: path.to_owned(),
                what,
            },
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
                Self::Damaged {
                    path: path.to_owned(),
                    what,
                }
            }
            _ => Self::Read {
                path: path.to_owned(),
                cause: source,
            },
        }
    }
}
