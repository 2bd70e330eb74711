//! Kernels from Debian's archive, fetched with apt.

use std::fs;
use std::path::Path;

use crate::apt::{Apt, Archive, Choice, KernelQuery, Programs, Sites, candidates, with_parts};
use crate::cache::Cache;
use crate::error::KernelError;
use crate::freshness::Freshness;
use crate::kernel::{Kernel, Origin};
use crate::local::unpack_all;
use crate::names;
use crate::stage::Stage;
use crate::step::{OnStep, Step};

/// A request for a kernel from Debian's archive.
#[derive(Debug, Clone)]
pub struct Request {
    /// The kernel reference under which the resulting kernel is pinned.
    pub reference: String,
    /// The kernel to look for.
    pub wanted: KernelQuery,
    /// Whether the pinned kernel may be used without asking the archive.
    pub freshness: Freshness,
}

/// Age in seconds above which package lists are fetched again before use.
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Maximum number of packages that are tried if a mirror lacks files that it lists.
const TRIES: usize = 4;

impl Cache {
    /// Opens the private apt state for a suite, or, if `suite` is `None`, for the suites that the machine uses.
    pub(crate) fn apt(&self, suite: Option<&str>, watch: &mut OnStep) -> Result<Apt, KernelError> {
        let programs = Programs::stopping_by(self.stop().clone());
        let sites = Sites::of_machine(&programs, None)?;
        let (name, sources) = match suite {
            Some(suite) => (suite, sites.list_of(suite)),
            None => ("machine", sites.list_of_machine()),
        };
        let place = suite.map_or_else(
            || "this machine's own suites".to_owned(),
            |suite| format!("Debian {suite}"),
        );
        let folder = self.root().join("apt").join(name);
        if Apt::is_held(&folder) {
            watch(&Step::Waiting {
                place: place.clone(),
            });
        }
        Apt::open(&folder, &place, &sources, programs)
    }

    /// Resolves a request to a kernel. `open` opens the archive; it is not called if the pinned kernel may be used. If
    /// apt fails, the pinned kernel is used even if a refresh was requested.
    pub(crate) fn resolve_remote<A: Archive>(
        &self,
        request: &Request,
        watch: &mut OnStep,
        open: impl FnOnce(&mut OnStep) -> Result<A, KernelError>,
    ) -> Result<Kernel, KernelError> {
        let pinned = self.pinned_as(&request.reference, watch);
        if let (Freshness::Pinned, Some(kernel)) = (request.freshness, &pinned) {
            return Ok(kernel.clone());
        }
        let fetched = open(watch).and_then(|mut archive| {
            // Another process may have fetched the kernel while this one waited for the archive.
            let meanwhile = self.pinned_as(&request.reference, watch);
            match meanwhile.filter(|_| request.freshness == Freshness::Pinned) {
                Some(kernel) => Ok(kernel),
                None => self.fetch(&mut archive, request, watch),
            }
        });
        match (fetched, pinned) {
            (Ok(kernel), _) => {
                self.pins().set(&request.reference, &kernel.digest, "")?;
                Ok(kernel)
            }
            (Err(reason), Some(kernel)) if is_archive_trouble(&reason) => {
                let (release, reason) = (kernel.release.clone(), reason.to_string());
                watch(&Step::KeptPinned { release, reason });
                Ok(kernel)
            }
            (Err(error), _) => Err(error),
        }
    }

    fn fetch(
        &self,
        archive: &mut dyn Archive,
        request: &Request,
        watch: &mut OnStep,
    ) -> Result<Kernel, KernelError> {
        let stale = is_stale(archive, request.freshness);
        if stale {
            update(archive, watch)?;
        } else {
            // A name that is not in lists of the last day is probably wrong, so it is refused without fetching newer
            // lists.
            candidates(archive, &request.wanted).map_err(of_today)?;
        }
        // Lists that are some hours old may name packages that the mirror has replaced since. Newer lists show that.
        match self.take_best(archive, request, if stale { TRIES } else { 1 }, watch) {
            Err(KernelError::NoPackage { .. } | KernelError::Apt { .. }) if !stale => {
                update(archive, watch)?;
                self.take_best(archive, request, TRIES, watch)
            }
            done => done,
        }
    }

    /// Adds the best matching package that can be downloaded, out of at most `tries`. During an update, a mirror may
    /// list packages that it does not have yet; then the next best package is tried, and `watch` is told. The kernel's
    /// origin names the package that was used.
    fn take_best(
        &self,
        archive: &dyn Archive,
        request: &Request,
        tries: usize,
        watch: &mut OnStep,
    ) -> Result<Kernel, KernelError> {
        let mut fitting = candidates(archive, &request.wanted)?;
        fitting.truncate(tries);
        let mut first_error = None;
        for package in fitting {
            let name = package.package.clone();
            let taken = with_parts(archive, package)
                .and_then(|choice| self.take_once(archive, &choice, &request.reference, watch));
            match taken {
                Err(error) if is_gone(&error) => {
                    watch(&Step::Passed { package: name });
                    first_error.get_or_insert(error);
                }
                done => return done,
            }
        }
        Err(first_error.unwrap_or_else(|| KernelError::NoPackage {
            wanted: request.reference.clone(),
            place: archive.place(),
            hint: "name another suite, such as `debian:trixie`".to_owned(),
        }))
    }

    /// Adds the chosen packages to the cache, unless it already contains an undamaged kernel from the same packages.
    fn take_once(
        &self,
        archive: &dyn Archive,
        choice: &Choice,
        reference: &str,
        watch: &mut OnStep,
    ) -> Result<Kernel, KernelError> {
        let packages = choice.ids();
        let here = self
            .list()?
            .into_iter()
            .find(|kernel| kernel.origin.packages == packages);
        match here.and_then(|kernel| self.proven(&kernel.digest, watch)) {
            Some(kernel) => Ok(kernel),
            None => self.take(archive, choice, reference, watch),
        }
    }

    fn take(
        &self,
        archive: &dyn Archive,
        choice: &Choice,
        reference: &str,
        watch: &mut OnStep,
    ) -> Result<Kernel, KernelError> {
        let packages = choice.ids();
        let all = packages.join(" ");
        let mut stage = Stage::new(self, Path::new(&all))?;
        for package in &choice.packages {
            watch(&Step::Fetching {
                package: package.package.clone(),
                bytes: package.size,
            });
            // Each package has its own folder, which is removed as soon as it is unpacked.
            let folder = stage.folder().join("download");
            fs::create_dir_all(&folder).map_err(KernelError::cache("making", &folder))?;
            let file = archive.download(package, &folder)?;
            unpack_all(&[file], &mut stage, watch)?;
            fs::remove_dir_all(&folder).map_err(KernelError::cache("removing", &folder))?;
        }
        stage.reading_from(Path::new(&all));
        if !stage.has(names::IMAGE) {
            return Err(KernelError::NoKernelInside {
                path: all.into(),
                beside: Vec::new(),
            });
        }
        stage.finish(Origin {
            reference: reference.to_owned(),
            packages,
        })
    }
}

/// Returns true if package lists must be fetched, because the user requested it or the lists are older than a day.
pub(crate) fn is_stale(archive: &dyn Archive, freshness: Freshness) -> bool {
    freshness == Freshness::Refresh || archive.age().is_none_or(|age| age > DAY_SECONDS)
}

/// Fetches the package lists. Reports the suites that could not be fetched to `watch`.
pub(crate) fn update(archive: &mut dyn Archive, watch: &mut OnStep) -> Result<(), KernelError> {
    watch(&Step::Updating {
        place: archive.place(),
    });
    let suites = archive.update()?;
    if !suites.is_empty() {
        watch(&Step::Without { suites });
    }
    Ok(())
}

/// Adds to the message of a [`KernelError::NoPackage`] that the package lists were not fetched for this request.
fn of_today(error: KernelError) -> KernelError {
    match error {
        KernelError::NoPackage {
            wanted,
            place,
            hint,
        } => KernelError::NoPackage {
            wanted,
            place,
            hint: format!("{hint} (by lists of the last day; --refresh fetches newer ones)"),
        },
        other => other,
    }
}

/// Returns true if the error means that a package is listed but cannot be downloaded.
fn is_gone(error: &KernelError) -> bool {
    match error {
        KernelError::Apt { said, .. } => said.contains("404"),
        KernelError::NoPackage { .. } => true,
        _ => false,
    }
}

/// Returns true if apt failed, could not be started, or lacks Debian's archive keys. A pinned kernel is then used
/// without an update. Returns false for other errors, such as a kernel that the archive does not have.
fn is_archive_trouble(error: &KernelError) -> bool {
    matches!(
        error,
        KernelError::Apt { .. } | KernelError::NoApt { .. } | KernelError::NoKeyring { .. }
    )
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
