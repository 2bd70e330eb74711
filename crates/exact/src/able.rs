//! Finds a kernel that can run a trial: checks the configuration of the requested kernel, and suggests another kernel
//! if a feature is missing.

use pagetide_kernel::{Cache, Kernel, KernelError, Need};
use pagetide_record::{Compressor, SwapSpec, SwapTiers};

/// Name of a Debian kernel that is known to have zswap. Debian's cloud kernels of 6.1 and 6.12 do not have zswap.
const WITH_ZSWAP: &str = "debian:sid";

/// Fails if the kernel lacks one of these features, or a compressor or pool that this kind of swap needs.
pub(crate) fn check(kernel: &Kernel, wanted: &[Need], swap: SwapSpec) -> Result<(), KernelError> {
    kernel.require_all(wanted)?;
    let compressor = swap.compressor().name();
    match swap {
        SwapSpec::Zram(Some(_)) => kernel.require_of_zram(compressor),
        SwapSpec::Zswap(zswap) => kernel.require_of_zswap(compressor, zswap.pool().name()),
        SwapSpec::Tiers(tiers) => require_of_tiers(kernel, tiers),
        _ => Ok(()),
    }
}

/// Returns the names of the compressors of all zram devices, including those for recompression.
pub(crate) fn compressors(tiers: &SwapTiers) -> impl Iterator<Item = &'static str> {
    tiers.zrams().flat_map(|zram| {
        let first = zram.compressor.unwrap_or_default().name();
        [Some(first), zram.recompress.map(Compressor::name)]
            .into_iter()
            .flatten()
    })
}

/// Fails if the kernel lacks a compressor or pool that swap on several devices needs.
fn require_of_tiers(kernel: &Kernel, tiers: &SwapTiers) -> Result<(), KernelError> {
    if let Some(front) = tiers.zswap {
        let compressor = front.compressor.unwrap_or_default().name();
        kernel.require_of_zswap(compressor, front.pool().name())?;
    }
    compressors(tiers).try_for_each(|compressor| kernel.require_of_zram(compressor))
}

/// Returns the name of a kernel to suggest after [`check`] has failed with `why`: the latest Debian kernel in the cache
/// that passes the check. If there is none and only zswap was missing, a Debian kernel that is known to have zswap.
/// Otherwise `None`.
pub(crate) fn another(
    cache: &Cache,
    why: &KernelError,
    wanted: &[Need],
    swap: SwapSpec,
) -> Option<String> {
    let mut able: Vec<Kernel> = cache.list().ok()?;
    able.retain(|kernel| check(kernel, wanted, swap).is_ok());
    let names = able.iter().rev().flat_map(|kernel| {
        let names = cache.listing(kernel).map(|listing| listing.names);
        names.unwrap_or_default()
    });
    let in_cache = names.into_iter().find(|name| name.starts_with("deb"));
    in_cache.or_else(|| match why {
        KernelError::Missing(missing) => {
            let is_zswap = missing.0.iter().all(|one| one.need == Need::Zswap);
            is_zswap.then(|| WITH_ZSWAP.to_owned())
        }
        _ => None,
    })
}
