//! Errors of finding, fetching and adding kernels. Each message is one sentence with the attempt, its object and the
//! remedy.

use std::io;
use std::path::{Path, PathBuf};

use pagetide_outside::remedy;
use pagetide_quantity::command::{command, in_backticks};
use thiserror::Error;

use crate::need::MissingOptions;

/// Why a kernel could not be found, fetched, unpacked, stored or used.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The value of `--kernel` has none of the known forms.
    #[error("`{text}` names no kernel: {hint}")]
    UnknownReference {
        /// The value as the user typed it.
        text: String,
        /// Hint at the most similar known form.
        hint: String,
    },
    /// No kernel with this name is in the cache.
    #[error(
        "kernel `{name}` is not in the cache: {} shows those that are, `{}` fetches it",
        in_backticks("kernel list"), command(&["kernel", "add", name])
    )]
    Absent {
        /// The name that was not found.
        name: String,
    },
    /// Several kernels in the cache match the same name.
    #[error(
        "`{name}` names several kernels in the cache ({candidates}): give the release or the start of a digest"
    )]
    Ambiguous {
        /// The name as the user typed it.
        name: String,
        /// Release and short digest of each matching kernel.
        candidates: String,
    },
    /// A file could not be read.
    #[error("reading {} stopped ({cause}): {}", path.display(), remedy(cause, None))]
    Read {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error from the operating system.
        cause: io::Error,
    },
    /// A file ends earlier than its headers say.
    #[error("{} is truncated ({what}): fetch or copy it again", path.display())]
    Truncated {
        /// Path of the file.
        path: PathBuf,
        /// What was being read when the file ended.
        what: String,
    },
    /// A file's content violates its format.
    #[error("{} is damaged ({what}): fetch or copy it again", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// How the content violates the format.
        what: String,
    },
    /// A file given as a Debian package is not a Debian package.
    #[error("{} is not a Debian package ({what}): give a .deb file", path.display())]
    NotAPackage {
        /// Path of the file.
        path: PathBuf,
        /// Why the file is not a Debian package.
        what: String,
    },
    /// A package or image is built for another processor architecture.
    #[error("{} is built for {architecture}: choose the amd64 build", path.display())]
    OtherArchitecture {
        /// Path of the package or image.
        path: PathBuf,
        /// The architecture that the file is built for.
        architecture: String,
    },
    /// Neither the package nor the packages that it depends on contain a kernel image.
    #[error("{} holds no kernel image: choose a linux-image package{}", path.display(), parts_beside(beside))]
    NoKernelInside {
        /// Path of the package file.
        path: PathBuf,
        /// Names of the `linux-*` packages that this package depends on in the same version, and that are not in its
        /// folder.
        beside: Vec<String>,
    },
    /// A member of an archive would be written outside its folder.
    #[error("{} was refused because its member `{member}` leads outside the package: do not trust this file", path.display())]
    UnsafeMember {
        /// Path of the package file.
        path: PathBuf,
        /// Name of the member.
        member: String,
    },
    /// A file given as a kernel image is not a kernel image.
    #[error("{} is not an x86-64 Linux kernel image ({why}): give a bzImage built for x86-64", path.display())]
    NotAKernel {
        /// Path of the file.
        path: PathBuf,
        /// Why the file is not a kernel image.
        why: String,
    },
    /// A kernel image has no configuration, neither built in nor as a file.
    #[error("no configuration was found for {}: add `,config:FILE`, or build the kernel with CONFIG_IKCONFIG", path.display())]
    NoConfig {
        /// Path of the image.
        path: PathBuf,
    },
    /// A folder given as a built kernel tree contains no image.
    #[error("{} holds no built kernel (no {wanted}): run `make` there first", path.display())]
    NotBuilt {
        /// Path of the folder.
        path: PathBuf,
        /// Relative path of the first file that was missing.
        wanted: String,
    },
    /// The modules and the image come from different builds.
    #[error("the modules from {} are for {modules} but the image is {image}: give those built with it", path.display())]
    OtherRelease {
        /// Path of the modules.
        path: PathBuf,
        /// Release of the image.
        image: String,
        /// Release of the modules.
        modules: String,
    },
    /// A module is not compiled in and has no file.
    #[error("{release} has no module {module}: choose a kernel built with {option}")]
    NoModule {
        /// Release of the kernel.
        release: String,
        /// Name of the requested module.
        module: String,
        /// Kernel option that builds the module.
        option: String,
    },
    /// The kernel's zram or zswap does not support a compressor.
    #[error(
        "{of} of {release} cannot compress with {compressor}: choose a kernel built with {option}, or another compressor"
    )]
    NoCompressor {
        /// `zram` or `zswap`.
        of: &'static str,
        /// Release of the kernel.
        release: String,
        /// Name of the requested compressor.
        compressor: String,
        /// Kernel option that enables the compressor.
        option: String,
    },
    /// The kernel's zswap does not support a pool.
    #[error(
        "zswap of {release} cannot keep pages in {pool}: choose a kernel built with {option}, or another pool"
    )]
    NoPool {
        /// Release of the kernel.
        release: String,
        /// Name of the requested pool.
        pool: String,
        /// Kernel option that builds the pool.
        option: String,
    },
    /// The kernel lacks options that the trial needs.
    #[error(transparent)]
    Missing(#[from] MissingOptions),
    /// The path of the cache is not UTF-8, so it cannot be passed to the emulator.
    #[error("the cache {} has a name that is no UTF-8: name another folder with --cache or PAGETIDE_CACHE", path.display())]
    NoText {
        /// Path of the cache folder.
        path: PathBuf,
    },
    /// A file operation in the cache failed.
    #[error("{attempt} {} stopped ({cause}): {}", path.display(), remedy(cause, Some("PAGETIDE_CACHE")))]
    Cache {
        /// The operation that was attempted.
        attempt: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error from the operating system.
        cause: io::Error,
    },
    /// None of the environment variables that determine the cache folder is set.
    #[error("no place for the kernel cache is known: set PAGETIDE_CACHE or HOME")]
    NoCacheRoot,
    /// The content of a kernel in the cache does not match its digest.
    #[error("{} in the kernel cache is damaged ({what}): run again, and it is removed and fetched again", path.display())]
    CacheDamaged {
        /// Path of the kernel's folder or of a file in it.
        path: PathBuf,
        /// How the content differs from the digest.
        what: String,
    },
    /// A damaged kernel was removed from the cache and could not be fetched again.
    #[error(
        "kernel {release} in the cache was damaged ({why}) and is removed, but {reference} cannot provide it again ({cause}): add another with {}",
        in_backticks("kernel add KERNEL")
    )]
    Lost {
        /// Release of the kernel.
        release: String,
        /// How the content differed from the digest.
        why: String,
        /// The kernel reference with which the kernel was first added.
        reference: String,
        /// Why the kernel could not be fetched again.
        cause: String,
    },
    /// A kernel that was built from source is no longer in the cache.
    #[error(
        "the kernel built as {what} is no longer in the cache: run again with its source and patches, and it is built again"
    )]
    NotKept {
        /// First digits of the kernel's digest, and what the kernel was built from.
        what: String,
    },
    /// A source package contains no kernel source.
    #[error("{} holds no kernel source (no usr/src/linux-source-*.tar.xz): name another package", path.display())]
    NoSourceInside {
        /// Path of the package file.
        path: PathBuf,
    },
    /// Fetching or unpacking was stopped. Incomplete files are removed.
    #[error("fetching the kernel was stopped: the same command begins it again")]
    Stopped,
    /// apt could not be started, probably because the machine does not have it.
    #[error(
        "fetching {package} needs apt, and {program} could not be started ({cause}): give a .deb, an image or a built tree instead"
    )]
    NoApt {
        /// Name of the package that was to be fetched.
        package: String,
        /// Name of the program that could not be started.
        program: String,
        /// Error from the operating system.
        cause: io::Error,
    },
    /// An apt program failed.
    #[error(
        "apt could not {attempt} ({said}): check the network and the mirror, or give a .deb file"
    )]
    Apt {
        /// The operation that was attempted.
        attempt: String,
        /// Error message from apt.
        said: String,
    },
    /// Debian's archive keys are not installed.
    #[error(
        "Debian's archive keys were not found in {looked}: install debian-archive-keyring, so that apt can check what it fetches"
    )]
    NoKeyring {
        /// The paths that were searched, as text.
        looked: String,
    },
    /// No matching package is available.
    #[error("{wanted} is not available from {place}: {hint}")]
    NoPackage {
        /// The requested package, version or series.
        wanted: String,
        /// The suite or mirror that was searched.
        place: String,
        /// What is available instead, or another hint.
        hint: String,
    },
}

/// Returns the end of an error message that asks for missing packages; empty if `names` is empty.
fn parts_beside(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!(", or put {} beside it", names.join(", "))
    }
}

impl KernelError {
    /// Returns true if the user gave a wrong argument. Returns false for all other errors, such as those of files, apt
    /// or the network.
    pub fn is_user_error(&self) -> bool {
        matches!(
            self,
            Self::UnknownReference { .. } | Self::Absent { .. } | Self::NoText { .. }
        )
    }

    /// Returns a function that converts an I/O error from reading `path` to a [`KernelError`].
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Read { path, cause }
    }

    /// Returns a function that converts an I/O error from the operation `attempt` on `path` in the cache to a
    /// [`KernelError`].
    pub(crate) fn cache(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |cause| Self::Cache {
            attempt,
            path,
            cause,
        }
    }

    /// Converts an error from decoding `path` to [`Self::Truncated`], [`Self::Damaged`] or [`Self::Read`], depending on
    /// its kind.
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
