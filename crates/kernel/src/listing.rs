//! Summaries and full details of the kernels in the cache.

use std::cmp::Ordering;
use std::fmt::{self, Display};

use pagetide_quantity::Bytes;
use serde::Serialize;

use crate::cache::Cache;
use crate::error::KernelError;
use crate::kernel::Kernel;
use crate::kernel_ref::KernelRef;
use crate::need::Need;
use crate::version;

/// Features that are looked for in the details of a kernel, in display order.
const NEEDS: [Need; 18] = [
    Need::Initramfs,
    Need::Devtmpfs,
    Need::PortAccess,
    Need::Proc,
    Need::Devmem,
    Need::VmEvents,
    Need::EarlyPrintk,
    Need::Swap,
    Need::Zram,
    Need::ZramLz4,
    Need::NullBlk,
    Need::Nbd,
    Need::LruGen,
    Need::Thp,
    Need::Zswap,
    Need::Ext4,
    Need::Tracing,
    Need::Packet,
];

/// Summary of a kernel in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelListing {
    /// The release, as `uname -r` prints it.
    pub release: String,
    /// Digest of the kernel, in hexadecimal.
    pub digest: String,
    /// Kernel references that are pinned to the kernel. If there are none, the reference with which it was first added.
    pub names: Vec<String>,
    /// Debian packages from which the kernel was unpacked, as `NAME=VERSION`.
    pub packages: Vec<String>,
    /// Number of loadable modules.
    pub modules: usize,
    /// Size of the kernel's files.
    pub size: Bytes,
}

/// All details of a kernel in the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct KernelDetails {
    /// The complete version line of the kernel's image.
    pub banner: String,
    /// GNU build id of the kernel; `None` if unknown.
    pub build_id: Option<String>,
    /// Summary of the kernel.
    pub kernel: KernelListing,
    /// Options that the kernel lacks, among those for common features of trials.
    pub lacks: Vec<String>,
    /// True if the kernel's files were read and match its digest.
    pub verified: bool,
}

impl Cache {
    /// Returns the kernel in the cache with this name or kernel reference. Fetches nothing: fails with
    /// [`KernelError::Absent`] if the kernel is not in the cache.
    pub fn present(&self, name: &str) -> Result<Kernel, KernelError> {
        if let Some(kernel) = self.find(name)? {
            return Ok(kernel);
        }
        let reference: KernelRef = name.parse()?;
        self.pinned(&reference).ok_or_else(|| KernelError::Absent {
            name: name.to_owned(),
        })
    }

    /// Returns the kernels of the cache from `first` to `last`, both included, in order of release; in descending order
    /// if `first` has the later release. Other kernels with the release of `first` or `last` are left out, and so are
    /// kernels that were built on this machine, because those from one source all have the same release.
    pub fn between(&self, first: &Kernel, last: &Kernel) -> Result<Vec<Kernel>, KernelError> {
        let (order, is_end) = (
            version::compare(&first.release, &last.release),
            |kernel: &Kernel| [&first.digest, &last.digest].contains(&&kernel.digest),
        );
        let (low, high) = match order {
            Ordering::Greater => (last, first),
            _ => (first, last),
        };
        let lies_between = |kernel: &Kernel| {
            version::compare(&low.release, &kernel.release) == Ordering::Less
                && version::compare(&kernel.release, &high.release) == Ordering::Less
                && !kernel.origin.reference.starts_with("built from ")
        };
        let mut all = self.list()?;
        all.retain(|kernel| !is_end(kernel) && lies_between(kernel));
        all.insert(0, low.clone());
        all.push(high.clone());
        if order == Ordering::Greater {
            all.reverse();
        }
        Ok(all)
    }

    /// Returns the summary of a kernel. Fails if its files cannot be read.
    pub fn listing(&self, kernel: &Kernel) -> Result<KernelListing, KernelError> {
        let mut names = self.references_to(&kernel.digest);
        if names.is_empty() {
            names.push(kernel.origin.reference.clone());
        }
        Ok(KernelListing {
            release: kernel.release.clone(),
            digest: kernel.digest.to_string(),
            names,
            packages: kernel.origin.packages.clone(),
            modules: kernel.modules,
            size: Bytes(kernel.size()?),
        })
    }

    /// Returns all details of a kernel. If `verify` is set, first compares the kernel's files with its digest.
    pub fn details(&self, kernel: &Kernel, verify: bool) -> Result<KernelDetails, KernelError> {
        if verify {
            self.verify(kernel)?;
        }
        let lacks = kernel.lacks(&NEEDS)?;
        Ok(KernelDetails {
            banner: kernel.banner.clone(),
            build_id: kernel.build_id.known().map(str::to_owned),
            kernel: self.listing(kernel)?,
            lacks: lacks.iter().map(ToString::to_string).collect(),
            verified: verify,
        })
    }
}

impl Display for KernelDetails {
    /// Formats the details, one per line, without a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = &self.kernel;
        let build_id = self.build_id.as_deref().unwrap_or("not in the image");
        writeln!(f, "release   {}", kernel.release)?;
        writeln!(f, "banner    {}", self.banner)?;
        writeln!(f, "build id  {build_id}")?;
        writeln!(f, "digest    {}", kernel.digest)?;
        writeln!(f, "named     {}", kernel.names.join(", "))?;
        write!(f, "size      {}, {} modules", kernel.size, kernel.modules)?;
        for package in &kernel.packages {
            write!(f, "\npackage   {package}")?;
        }
        for missing in &self.lacks {
            write!(f, "\nlacks     {missing}")?;
        }
        if self.lacks.is_empty() {
            f.write_str("\nlacks     nothing that a scenario needs")?;
        }
        if self.verified {
            f.write_str("\nverified  content and digest agree")?;
        }
        Ok(())
    }
}
