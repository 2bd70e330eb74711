//! Kernels of the cache as lists show them, and all there is to say of one.

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

/// What a scenario or variant may need of a kernel, in the order shown.
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

/// A kernel of the cache in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelListing {
    /// What `uname -r` prints when it runs.
    pub release: String,
    /// Its digest.
    pub digest: String,
    /// References that stand for it; the one it was added by where there are none.
    pub names: Vec<String>,
    /// Debian packages it was unpacked from.
    pub packages: Vec<String>,
    /// How many modules there are to load.
    pub modules: usize,
    /// What it takes in the cache.
    pub size: Bytes,
}

/// All there is to say of a kernel of the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct KernelPortrait {
    /// The whole version line of its image.
    pub banner: String,
    /// The GNU build id, if known.
    pub build_id: Option<String>,
    /// What lists say of it.
    pub kernel: KernelListing,
    /// What a scenario or variant may need and it lacks.
    pub lacks: Vec<String>,
    /// Whether all of it was read again and agrees with its digest.
    pub verified: bool,
}

impl Cache {
    /// The kernel of a name, which must be in the cache already.
    pub fn present(&self, name: &str) -> Result<Kernel, KernelError> {
        if let Some(kernel) = self.find(name)? {
            return Ok(kernel);
        }
        let reference: KernelRef = name.parse()?;
        self.pinned(&reference).ok_or_else(|| KernelError::Absent {
            name: name.to_owned(),
        })
    }

    /// The kernels of the cache from one to another, both included, by their releases; the other way round where the first is
    /// the later one. What was built here from source is left out unless it is one of the two: the releases of one source with
    /// this and that patch are all the same.
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

    /// A kernel as lists show it.
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

    /// All there is to say of a kernel; with `verify` all of it is read again first and compared with its digest.
    pub fn portrait(&self, kernel: &Kernel, verify: bool) -> Result<KernelPortrait, KernelError> {
        if verify {
            self.verify(kernel)?;
        }
        let lacks = kernel.lacks(&NEEDS)?;
        Ok(KernelPortrait {
            banner: kernel.banner.clone(),
            build_id: kernel.build_id.known().map(str::to_owned),
            kernel: self.listing(kernel)?,
            lacks: lacks.iter().map(ToString::to_string).collect(),
            verified: verify,
        })
    }
}

impl Display for KernelPortrait {
    /// A line for each thing, the last without its end.
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
