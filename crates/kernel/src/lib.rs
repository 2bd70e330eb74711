//! Kernels: where they come from, how they are stored, and which modules they need.
//!
//! A [`KernelRef`] is what a user types after `--kernel`. [`Cache::resolve`] turns it into a [`Kernel`]: a boot image,
//! its configuration and its modules, unpacked into a folder named by their digest. Debian's kernels are fetched by the
//! machine's apt with a private state. Nothing is installed, and apt checks every signature.
//!
//! Emulators, guests, trials and records are not part of this crate. It returns paths, bytes and descriptions of
//! kernels.
//!
//! Begin with [`KernelRef`] (the forms a user may type), then `resolve.rs` (from a reference to a kernel), then
//! [`Kernel`] (the result).
//!
//! ```no_run
//! use pagetide_kernel::{Cache, Freshness, KernelRef, Need, cache_root};
//!
//! let cache = Cache::open(cache_root()?)?;
//! let reference: KernelRef = "debian:bookworm/6.12".parse()?;
//! let kernel = cache.resolve(&reference, Freshness::Pinned, &mut |step| eprintln!("{step}"))?;
//! kernel.require(Need::NullBlk)?;
//! for module in kernel.modules_for(&["null_blk"])? {
//!     println!("{} ({} bytes)", module.name, module.bytes.len());
//! }
//! # Ok::<(), pagetide_kernel::KernelError>(())
//! ```

mod apt;
mod cache;
mod changed;
mod compress;
mod config;
mod deb;
mod digest;
mod emulator;
mod error;
mod freshness;
mod image;
mod kernel;
mod kernel_ref;
mod listing;
mod local;
mod lock;
mod modinfo;
mod modules;
mod names;
mod need;
mod packages;
mod pin;
mod remote;
mod resolve;
#[cfg(test)]
#[path = "../tests/sample/mod.rs"]
mod sample;
mod scratch;
mod source_package;
mod stage;
mod step;
mod stop;
mod tree;
mod version;

pub use cache::{Cache, cache_root, named_root};
pub use changed::{ChangedCode, ChangedLine, CodePlace};
pub use config::{Config, Setting};
pub use digest::Digest;
pub use error::KernelError;
pub use freshness::Freshness;
pub use image::{BuildId, Image};
pub use kernel::{Kernel, Origin};
pub use kernel_ref::{FORMS, KernelRef, Suite, forms};
pub use listing::{KernelDetails, KernelListing};
pub use lock::Lock;
pub use modinfo::Modinfo;
pub use modules::Module;
pub use need::{MissingOption, MissingOptions, Need};
pub use packages::PackageSet;
pub use scratch::Scratch;
pub use source_package::SourcePackage;
pub use step::{OnStep, Step};
pub use stop::Stop;

/// Returns the three default kernels: Debian 12's 6.1, Debian 12's 6.12, and the newest in sid.
///
/// Suites are always fetched through a private apt state, so the name of a suite has the same meaning on every Debian
/// host.
pub fn defaults() -> [KernelRef; 3] {
    [
        KernelRef::Debian {
            suite: Suite::new("bookworm"),
            series: None,
        },
        KernelRef::Debian {
            suite: Suite::new("bookworm"),
            series: Some("6.12".into()),
        },
        KernelRef::Debian {
            suite: Suite::new("sid"),
            series: None,
        },
    ]
}

/// Returns the kernel names for shell completion: the defaults, and the releases in the cache at `cache`. A missing
/// cache is not created.
pub fn names(cache: &std::path::Path) -> Result<std::collections::BTreeSet<String>, KernelError> {
    let mut names: std::collections::BTreeSet<String> =
        defaults().iter().map(ToString::to_string).collect();
    if cache.exists() {
        let kernels = Cache::open(cache.to_owned())?.list()?;
        names.extend(kernels.into_iter().map(|kernel| kernel.release));
    }
    Ok(names)
}
