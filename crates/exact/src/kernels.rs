//! The kernels of trials. Each kernel is resolved once, and checked once for each combination of needs and swap.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use pagetide_arena::{ArenaError, Options, VariantSpec};
use pagetide_kernel::{Cache, Digest, Freshness, Kernel, KernelError, KernelRef, Need, Stop};
use pagetide_record::{KernelId, SwapSpec};

use crate::able;
use crate::error::{ExactError, ended};
use crate::lock::locked;
use crate::setting;

/// Receives a message for each long step.
pub(crate) type Say = dyn Fn(&str) + Send + Sync;

/// The kernels that trials have requested, and the cache from which they come.
pub(crate) struct Kernels {
    /// Folder of the cache.
    folder: PathBuf,
    /// True to query the package archive again for a kernel that was resolved before.
    refresh: bool,
    stop: Arc<AtomicBool>,
    by_name: Mutex<BTreeMap<String, Arc<Kernel>>>,
    /// Combinations of kernel (by digest), needs and swap that passed the check, so that a kernel's configuration is
    /// read once for all trials with the same needs.
    able: Mutex<HashSet<(Digest, Vec<Need>, SwapSpec)>>,
    say: Arc<Say>,
}

impl Kernels {
    /// Creates a value without kernels that uses the cache in `options`. `say` receives a message for each step of
    /// fetching a kernel.
    pub(crate) fn new(options: &Options, say: Arc<Say>) -> Self {
        Self {
            folder: options.cache.clone(),
            refresh: options.refresh,
            stop: Arc::clone(&options.stop),
            by_name: Mutex::default(),
            able: Mutex::default(),
            say,
        }
    }

    /// Opens the cache of kernels. Fetching fails early if the user asks to stop.
    pub(crate) fn cache(&self) -> Result<Cache, KernelError> {
        Ok(Cache::open(&self.folder)?.stopping_by(Stop::by(Arc::clone(&self.stop))))
    }

    /// Returns the kernel of a variant. Fails if there is no such kernel, or if one of the variant's settings is
    /// unknown.
    pub(crate) fn of(&self, spec: &VariantSpec) -> Result<Arc<Kernel>, ArenaError> {
        for (name, value) in &spec.settings {
            setting::check(name, value).map_err(ArenaError::wrong)?;
        }
        let kernel = self.named(&spec.kernel).map_err(|why| match why {
            ExactError::Kernel(KernelError::UnknownReference { .. }) => ArenaError::wrong(why),
            why => ended(ArenaError::refused)(why),
        })?;
        Ok(kernel)
    }

    /// Returns the kernel with this name, fetching it if it is not in the cache.
    fn named(&self, name: &str) -> Result<Arc<Kernel>, ExactError> {
        // The lock is held while a kernel is fetched, so that no other thread fetches the same kernel.
        let mut kernels = locked(&self.by_name);
        if let Some(kernel) = kernels.get(name) {
            return Ok(Arc::clone(kernel));
        }
        let cache = self.cache()?;
        let reference: KernelRef = name.parse()?;
        let freshness = Freshness::new(self.refresh);
        let kernel = Arc::new(cache.resolve(&reference, freshness, &mut |step| {
            (self.say)(&step.to_string());
        })?);
        kernels.insert(name.to_owned(), Arc::clone(&kernel));
        Ok(kernel)
    }

    /// Fails if the kernel lacks one of these features or a compressor or pool that the swap needs. The error suggests
    /// another kernel if one is known.
    pub(crate) fn require(
        &self,
        kernel: &Kernel,
        wanted: Vec<Need>,
        swap: SwapSpec,
    ) -> Result<(), ArenaError> {
        let asked = (kernel.digest.clone(), wanted, swap);
        if !locked(&self.able).contains(&asked) {
            able::check(kernel, &asked.1, swap).map_err(|why| {
                let cache = Cache::open(&self.folder).ok();
                match cache.and_then(|cache| able::another(&cache, &why, &asked.1, swap)) {
                    Some(kernel) => ArenaError::OtherKernel {
                        why: why.into(),
                        kernel,
                    },
                    None => ArenaError::refused(why),
                }
            })?;
            locked(&self.able).insert(asked);
        }
        Ok(())
    }
}

/// Returns what a record states about a kernel: source, release, version, build ID and digest.
pub(crate) fn kernel_id(kernel: &Kernel, source: &str) -> KernelId {
    KernelId {
        source: source.to_owned(),
        release: kernel.release.clone(),
        version: kernel.banner.clone(),
        build_id: kernel.build_id.known().map(ToOwned::to_owned),
        digest: kernel.digest.to_string(),
    }
}
