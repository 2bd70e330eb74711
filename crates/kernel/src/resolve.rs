//! Resolves a kernel reference to a kernel: the pinned kernel if there is one, otherwise a kernel from files
//! (`local.rs`) or from an archive (`remote.rs`).

use std::collections::BTreeSet;
use std::path::Path;

use crate::apt::KernelQuery;
use crate::cache::Cache;
use crate::error::KernelError;
use crate::freshness::Freshness;
use crate::kernel::Kernel;
use crate::kernel_ref::{EXAMPLES, KernelRef, Suite};
use crate::local;
use crate::remote::Request;
use crate::step::{OnStep, Step};
use pagetide_quantity::command::in_backticks;
use pagetide_quantity::{choices, nearest};

impl Cache {
    /// Resolves a kernel reference to a kernel, which is fetched and unpacked if it is not in the cache.
    ///
    /// The result is pinned: the next call with the same reference returns the same kernel without network or apt,
    /// until a refresh is requested or the local files from which it was made change. Fails if no kernel matches, or if
    /// it cannot be fetched.
    pub fn resolve(
        &self,
        reference: &KernelRef,
        freshness: Freshness,
        watch: &mut OnStep,
    ) -> Result<Kernel, KernelError> {
        let remote = |wanted: KernelQuery, suite: Option<&Suite>, watch: &mut OnStep| {
            let request = Request {
                reference: reference.to_string(),
                wanted,
                freshness,
            };
            self.resolve_remote(&request, watch, |watch| {
                self.apt(suite.map(Suite::as_str), watch)
            })
        };
        match reference {
            KernelRef::Cached(name) => self.resolve_name(name, freshness, watch),
            KernelRef::Built(rest) => self.resolve_built(rest, watch),
            KernelRef::Path(path) => {
                self.resolve_local(&local::Source::at(path)?, freshness, watch)
            }
            KernelRef::Image {
                image,
                modules,
                config,
            } => {
                let source = local::Source::Image {
                    image: image.clone(),
                    modules: modules.clone(),
                    config: config.clone(),
                };
                self.resolve_local(&source, freshness, watch)
            }
            KernelRef::Debian { suite, series } => {
                let wanted = series
                    .clone()
                    .map_or(KernelQuery::Default, KernelQuery::Series);
                remote(wanted, Some(suite), watch)
            }
            KernelRef::Package {
                name,
                version,
                suite,
            } => remote(
                KernelQuery::Package(name.clone(), version.clone()),
                suite.as_ref(),
                watch,
            ),
        }
    }

    /// Resolves several kernel references. Returns the kernels that were found, and the references that could not be
    /// resolved, each with the reason. Stops early when the cache's [`Stop`](crate::Stop) is set.
    pub fn resolve_all(
        &self,
        references: Vec<KernelRef>,
        freshness: Freshness,
        watch: &mut OnStep,
    ) -> (Vec<Kernel>, Vec<(KernelRef, KernelError)>) {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for reference in references {
            match self.resolve(&reference, freshness, watch) {
                Ok(kernel) => found.push(kernel),
                Err(why) => {
                    let is_stopped = matches!(why, KernelError::Stopped);
                    missing.push((reference, why));
                    if is_stopped {
                        break;
                    }
                }
            }
        }
        (found, missing)
    }

    /// Returns the kernel to which a kernel reference is pinned. `None` if there is no pin or the kernel is not in the
    /// cache. The kernel's files are not verified.
    pub fn pinned(&self, reference: &KernelRef) -> Option<Kernel> {
        let pin = self.pins().get(&reference.to_string())?;
        self.get(&pin.digest).ok()
    }

    /// Returns the kernel to which a kernel reference is pinned. `None` if there is no pin, the kernel is not in the
    /// cache, or its files do not match its digest.
    pub(crate) fn pinned_as(&self, reference: &str, watch: &mut OnStep) -> Option<Kernel> {
        let pin = self.pins().get(reference)?;
        self.proven(&pin.digest, watch)
    }

    /// Verifies a kernel of the cache and returns it. A damaged kernel is fetched or unpacked again; fails with
    /// [`KernelError::Lost`] if this is not possible.
    fn named(&self, kernel: Kernel, watch: &mut OnStep) -> Result<Kernel, KernelError> {
        let mut why = String::new();
        let proven = self.proven(&kernel.digest, &mut |step| {
            if let Step::Damaged { why: what, .. } = step {
                why.clone_from(what);
            }
            watch(step);
        });
        if let Some(kernel) = proven {
            return Ok(kernel);
        }
        let reference = kernel.origin.reference;
        let again = match reference.parse::<KernelRef>() {
            // The reference is the name of a kernel in the cache, which no longer exists.
            Ok(KernelRef::Cached(name)) if !Path::new(&name).exists() => {
                Err("it is no longer known".to_owned())
            }
            Ok(parsed) => self
                .resolve(&parsed, Freshness::Pinned, watch)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let cause = match again {
            Ok(found) if found.digest == kernel.digest => return Ok(found),
            Ok(found) => format!("it stands for {} today", found.release),
            Err(cause) => cause,
        };
        Err(KernelError::Lost {
            release: kernel.release,
            why,
            reference,
            cause,
        })
    }

    /// Returns the kernel of the cache for a `built:` reference. Fails with [`KernelError::NotKept`] if it is not in
    /// the cache.
    fn resolve_built(&self, rest: &str, watch: &mut OnStep) -> Result<Kernel, KernelError> {
        let digest = rest.split(' ').next().unwrap_or_default();
        match self.find(digest)? {
            Some(kernel) => self.named(kernel, watch),
            None => Err(KernelError::NotKept {
                what: rest.to_owned(),
            }),
        }
    }

    fn resolve_name(
        &self,
        name: &str,
        freshness: Freshness,
        watch: &mut OnStep,
    ) -> Result<Kernel, KernelError> {
        if let Some(kernel) = self.find(name)? {
            return self.named(kernel, watch);
        }
        if Path::new(name).exists() {
            return self.resolve_local(&local::Source::at(Path::new(name))?, freshness, watch);
        }
        let kernels = self.list()?;
        let known = kernels
            .iter()
            .flat_map(|kernel| [kernel.release.as_str(), kernel.label()])
            .chain(EXAMPLES);
        let hint = if let Some(near) = nearest(name, known) {
            format!("did you mean `{near}`?")
        } else if kernels.is_empty() {
            format!(
                "the cache is empty; try {}, a .deb file, an image or a built tree",
                EXAMPLES.join(", ")
            )
        } else {
            let labels: BTreeSet<&str> = kernels.iter().map(Kernel::label).collect();
            format!(
                "{}; or try {}",
                choices(
                    name,
                    labels,
                    &format!("{} shows all", in_backticks("kernel list"))
                ),
                EXAMPLES.join(", ")
            )
        };
        Err(KernelError::UnknownReference {
            text: name.to_owned(),
            hint,
        })
    }
}
