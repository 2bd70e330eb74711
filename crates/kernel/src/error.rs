//! What can go wrong between a kernel argument and a kernel. Each message is one sentence: attempt, object, remedy.

use std::io;
use std::path::{Path, PathBuf};

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
        /// The nearest known form, as advice.
        hint: String,
    },
    /// No kernel of this name is in the cache.
    #[error(
        "kernel `{name}` is not in the cache: `pagetide kernel list` shows those that are, `pagetide kernel add {name}` \
         fetches it"
    )]
    Absent {
        /// The name.
        name: String,
    },
    /// Several kernels in the cache answer to the same name.
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
    #[error("reading {} stopped ({cause}): check that it is there and readable", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A file ends before what it announces.
    #[error("{} is truncated ({what}): fetch or copy it again", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// What was being read when it ended.
        what: String,
    },
    /// A file's content contradicts its format.
    #[error("{} is damaged ({what}): fetch or copy it again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What contradicts the format.
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
    /// A package holds no kernel image, and neither do those it depends on.
    #[error("{} holds no kernel image: choose a linux-image package{}", path.display(), parts_beside(beside))]
    NoKernelInside {
        /// The package file.
        path: PathBuf,
        /// Split-off packages it depends on which do not lie beside it.
        beside: Vec<String>,
    },
    /// A member of an archive would land outside its folder.
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
    /// A kernel image comes without its configuration.
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
    /// Modules and image come from different builds.
    #[error("the modules from {} are for {modules} but the image is {image}: give those built with it", path.display())]
    OtherRelease {
        /// Where the modules come from.
        path: PathBuf,
        /// The image's release.
        image: String,
        /// The modules' release.
        modules: String,
    },
    /// A module is neither built in nor there to load.
    #[error("{release} has no module {module}: choose a kernel built with {option}")]
    NoModule {
        /// The kernel's release.
        release: String,
        /// The module asked for.
        module: String,
        /// The option that builds it.
        option: String,
    },
    /// A kernel's zram or zswap does not know a compressor.
    #[error(
        "{of} of {release} cannot compress with {compressor}: choose a kernel built with {option}, or another compressor"
    )]
    NoCompressor {
        /// Whose: zram or zswap.
        of: &'static str,
        /// The kernel's release.
        release: String,
        /// The compressor asked for.
        compressor: String,
        /// The option that builds it in.
        option: String,
    },
    /// A kernel's zswap does not know a pool.
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
    /// A kernel lacks options something needs.
    #[error(transparent)]
    Missing(#[from] MissingOptions),
    /// The cache could not be used.
    #[error("{attempt} {} stopped ({cause}): {}", path.display(), remedy(cause))]
    Cache {
        /// What was being done.
        attempt: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Neither a cache folder nor a home folder is known.
    #[error("no place for the kernel cache is known: set PAGETIDE_CACHE or HOME")]
    NoCacheRoot,
    /// A kernel in the cache is not what its folder name says.
    #[error("{} in the kernel cache is damaged ({what}): run again, and it is removed and fetched again", path.display())]
    CacheDamaged {
        /// The kernel's folder or a file in it.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// A kernel in the cache was damaged and is removed, and it cannot be fetched again from where it came from.
    #[error(
        "kernel {release} in the cache was damaged ({why}) and is removed, but {reference} cannot provide it again ({cause}): add another with `pagetide kernel add`"
    )]
    Lost {
        /// The kernel's release.
        release: String,
        /// What did not fit.
        why: String,
        /// Where it came from.
        reference: String,
        /// Why it is not available there.
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
    /// A source package holds no source.
    #[error("{} holds no kernel source (no usr/src/linux-source-*.tar.xz): name another package", path.display())]
    NoSourceInside {
        /// The package file.
        path: PathBuf,
    },
    /// It was told to stop; what was half fetched or unpacked is gone.
    #[error("fetching the kernel was stopped: the same command begins it again")]
    Stopped,
    /// The machine has no apt.
    #[error(
        "fetching {package} needs apt, and {program} could not be started ({cause}): give a .deb, an image or a built tree instead"
    )]
    NoApt {
        /// What was to be fetched.
        package: String,
        /// The program that could not be started.
        program: String,
        /// What the system said.
        cause: io::Error,
    },
    /// apt ran and did not do it.
    #[error(
        "apt could not {attempt} ({said}): check the network and the mirror, or give a .deb file"
    )]
    Apt {
        /// What it was asked to do.
        attempt: String,
        /// Its own words.
        said: String,
    },
    /// Debian's archive keys are not installed.
    #[error(
        "Debian's archive keys were not found in {looked}: install debian-archive-keyring, so that apt can check what it fetches"
    )]
    NoKeyring {
        /// Where they were looked for.
        looked: String,
    },
    /// No package of that name, version or series is available.
    #[error("{wanted} is not available from {place}: {hint}")]
    NoPackage {
        /// The package, version or series.
        wanted: String,
        /// The suite or mirror asked.
        place: String,
        /// What is available instead.
        hint: String,
    },
}

/// Advice on a split package whose other parts are not beside it.
fn parts_beside(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!(", or put {} beside it", names.join(", "))
    }
}

/// What to do about a cache that does not take what is written.
fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, remove kernels no longer needed, or set PAGETIDE_CACHE to a folder on another disk"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "make it writable, or set PAGETIDE_CACHE to a folder that is"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a file stands where a folder is needed; move it away, or set PAGETIDE_CACHE to another folder"
        }
        _ => "set PAGETIDE_CACHE to a folder that works",
    }
}

impl KernelError {
    /// Whether a user's words were wrong, rather than that the machine could not.
    pub fn is_by_words(&self) -> bool {
        matches!(self, Self::UnknownReference { .. } | Self::Absent { .. })
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

    /// Sorts an error that came up while decoding `path` into truncated, damaged or unreadable.
    pub(crate) fn decode(path: &Path, what: &str, source: io::Error) -> Self {
        // What a decoder says may quote the file: control characters would break the one line of the message.
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
