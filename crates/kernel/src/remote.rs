//! Kernels from Debian's archive, fetched with apt.

use std::fs;
use std::path::Path;

use crate::apt::{Apt, Archive, Choice, KernelQuery, Programs, Sites, candidates, with_parts};
use crate::cache::Cache;
use crate::error::KernelError;
use crate::kernel::{Kernel, Origin};
use crate::local::unpack_all;
use crate::resolve::Freshness;
use crate::stage::{Stage, names};
use crate::step::{Step, Watch};

/// What is asked of the archive.
#[derive(Debug, Clone)]
pub struct Request {
    /// The reference, under which the answer is pinned.
    pub reference: String,
    /// What to look for.
    pub wanted: KernelQuery,
    /// Whether last time's answer will do.
    pub freshness: Freshness,
}

/// Lists older than this many seconds are fetched again before they are asked.
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// How many packages are tried when a mirror lists what it does not have.
const TRIES: usize = 4;

impl Cache {
    /// apt for a suite, or for the machine's own.
    pub(crate) fn apt(&self, suite: Option<&str>, watch: &mut Watch) -> Result<Apt, KernelError> {
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

    /// The kernel a request stands for; `open` opens the archive, if it must be asked at all.
    pub(crate) fn resolve_remote<A: Archive>(
        &self,
        request: &Request,
        watch: &mut Watch,
        open: impl FnOnce(&mut Watch) -> Result<A, KernelError>,
    ) -> Result<Kernel, KernelError> {
        let pinned = self.pinned_as(&request.reference, watch);
        if let (Freshness::Pinned, Some(kernel)) = (request.freshness, &pinned) {
            return Ok(kernel.clone());
        }
        let fetched = open(watch).and_then(|mut archive| {
            // While the archive was busy, another process may have fetched the same.
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
        watch: &mut Watch,
    ) -> Result<Kernel, KernelError> {
        let stale = is_stale(archive, request.freshness);
        if stale {
            update(archive, watch)?;
        } else {
            // A name that lists of today do not have is probably a wrong one: it is answered at once.
            candidates(archive, &request.wanted).map_err(of_today)?;
        }
        // Lists that are some hours old may name packages that the mirror has replaced since; newer lists show that.
        match self.take_best(archive, request, if stale { TRIES } else { 1 }, watch) {
            Err(KernelError::NoPackage { .. } | KernelError::Apt { .. }) if !stale => {
                update(archive, watch)?;
                self.take_best(archive, request, TRIES, watch)
            }
            done => done,
        }
    }

    /// Takes the best of the packages that fit. A mirror in the middle of a change may list what it does not have; then
    /// the next best is taken, which is reported and stands in the kernel's origin.
    fn take_best(
        &self,
        archive: &dyn Archive,
        request: &Request,
        tries: usize,
        watch: &mut Watch,
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

    /// Takes a choice unless a kernel from just these packages is here already.
    fn take_once(
        &self,
        archive: &dyn Archive,
        choice: &Choice,
        reference: &str,
        watch: &mut Watch,
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
        watch: &mut Watch,
    ) -> Result<Kernel, KernelError> {
        let packages = choice.ids();
        let all = packages.join(" ");
        let mut stage = Stage::new(self, Path::new(&all))?;
        for package in &choice.packages {
            watch(&Step::Fetching {
                package: package.package.clone(),
                bytes: package.size,
            });
            // Each in a folder of its own, removed as soon as it is unpacked.
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

/// Whether the lists are to be fetched anew: that was asked for, or they are older than a day.
pub(crate) fn is_stale(archive: &dyn Archive, freshness: Freshness) -> bool {
    freshness == Freshness::Refresh || archive.age().is_none_or(|age| age > DAY_SECONDS)
}

/// Fetches the lists anew, and says which suites are not among them.
pub(crate) fn update(archive: &mut dyn Archive, watch: &mut Watch) -> Result<(), KernelError> {
    watch(&Step::Updating {
        place: archive.place(),
    });
    let suites = archive.update()?;
    if !suites.is_empty() {
        watch(&Step::Without { suites });
    }
    Ok(())
}

/// An answer from lists that were not fetched for it says so.
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

/// Whether a package is listed but not there.
fn is_gone(error: &KernelError) -> bool {
    match error {
        KernelError::Apt { said, .. } => said.contains("404"),
        KernelError::NoPackage { .. } => true,
        _ => false,
    }
}

/// Whether the archive could not be reached, rather than having no such kernel.
fn is_archive_trouble(error: &KernelError) -> bool {
    matches!(
        error,
        KernelError::Apt { .. } | KernelError::NoApt { .. } | KernelError::NoKeyring { .. }
    )
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
