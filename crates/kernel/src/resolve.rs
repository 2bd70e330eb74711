//! The way from a reference to a kernel: pin, cache, apt or files, in that order of haste.

use std::fmt::{self, Display};
use std::fs;
use std::path::{Path, PathBuf};

use crate::apt::{Apt, Archive, Choice, Programs, Sites, Wanted, choose};
use crate::cache::Cache;
use crate::deb::Package;
use crate::error::KernelError;
use crate::kernel::{Kernel, Origin};
use crate::kernel_ref::{EXAMPLES, KernelRef, Suite};
use crate::stage::{Stage, names};
use crate::suggest::nearest;
use crate::tree::{Gathered, stamp_of};

/// Whether what a reference stood for last time will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// The kernel it stood for last time, if it is still there; no network is needed then.
    Pinned,
    /// Ask the archive again, or read the files again.
    Refresh,
}

/// What is being done, for a progress display; [`Display`] makes a line of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The list of packages is being fetched.
    Updating {
        /// The suite.
        place: String,
    },
    /// A package is being fetched.
    Fetching {
        /// Its name.
        package: String,
        /// Its size in bytes, if known.
        bytes: Option<u64>,
    },
    /// A package or other source is being unpacked or copied.
    Unpacking {
        /// Its name.
        name: String,
    },
    /// The archive could not be asked, so the kernel of last time is used.
    KeptPinned {
        /// The kernel's release.
        release: String,
        /// Why the archive could not be asked.
        reason: String,
    },
}

impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Updating { place } => write!(f, "updating the list of packages in {place}"),
            Self::Fetching {
                package,
                bytes: Some(bytes),
            } => {
                write!(f, "fetching {package} ({} MB)", bytes.div_ceil(1_000_000))
            }
            Self::Fetching {
                package,
                bytes: None,
            } => write!(f, "fetching {package}"),
            Self::Unpacking { name } => write!(f, "unpacking {name}"),
            Self::KeptPinned { release, reason } => {
                write!(f, "using {release} from the cache, because {reason}")
            }
        }
    }
}

/// Lists older than this many seconds are fetched again before they are asked.
const DAY: u64 = 24 * 60 * 60;

/// Where the machine's apt sources lie.
const ETC_APT: &str = "/etc/apt";

/// Told of each step as it begins.
pub type Watch<'a> = dyn FnMut(&Step) + 'a;

impl Cache {
    /// The kernel a reference stands for, fetched and unpacked if it is not here yet.
    ///
    /// The result is pinned: next time the same reference gives the same kernel at once, without network or apt, until
    /// it is refreshed, or the local files it was made from change.
    pub fn resolve(
        &self,
        reference: &KernelRef,
        freshness: Freshness,
        watch: &mut Watch,
    ) -> Result<Kernel, KernelError> {
        match reference {
            KernelRef::Cached(name) => self.resolve_name(name, freshness, watch),
            KernelRef::Path(path) => self.resolve_path(path, freshness, watch),
            KernelRef::Image {
                image,
                modules,
                config,
            } => {
                let gathered =
                    || Gathered::from_image(image, modules.as_deref(), config.as_deref());
                self.resolve_files(reference, image, gathered, freshness, watch)
            }
            KernelRef::Debian { suite, series } => {
                let wanted = series.clone().map_or(Wanted::Default, Wanted::Series);
                self.resolve_remote(reference, &wanted, freshness, watch, || {
                    self.apt(Some(suite.as_str()))
                })
            }
            KernelRef::Package {
                name,
                version,
                suite,
            } => {
                let wanted = Wanted::Package(name.clone(), version.clone());
                let suite = suite.as_ref().map(Suite::as_str);
                self.resolve_remote(reference, &wanted, freshness, watch, || self.apt(suite))
            }
        }
    }

    /// The kernel a reference was pinned to, if both are still here.
    pub fn pinned(&self, reference: &KernelRef) -> Option<Kernel> {
        let pin = self.pins().get(&reference.to_string())?;
        self.get(&pin.digest).ok()
    }

    fn resolve_name(
        &self,
        name: &str,
        freshness: Freshness,
        watch: &mut Watch,
    ) -> Result<Kernel, KernelError> {
        if let Some(kernel) = self.find(name)? {
            return Ok(kernel);
        }
        if Path::new(name).exists() {
            return self.resolve_path(Path::new(name), freshness, watch);
        }
        let kernels = self.list()?;
        let known = kernels
            .iter()
            .flat_map(|kernel| [kernel.release.as_str(), kernel.label()])
            .chain(EXAMPLES);
        let hint = match nearest(name, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "try {}, a .deb file, an image, a built kernel tree, or one in the cache",
                EXAMPLES.join(", ")
            ),
        };
        Err(KernelError::UnknownReference {
            text: name.to_owned(),
            hint,
        })
    }

    fn resolve_path(
        &self,
        path: &Path,
        freshness: Freshness,
        watch: &mut Watch,
    ) -> Result<Kernel, KernelError> {
        // The same file is the same reference from wherever it is named.
        let path = fs::canonicalize(path).map_err(KernelError::read(path))?;
        let reference = KernelRef::Path(path.clone());
        if path.is_dir() {
            return self.resolve_files(
                &reference,
                &path,
                || Gathered::from_tree(&path),
                freshness,
                watch,
            );
        }
        if is_deb(&path) {
            return self.resolve_deb(&reference, &path, freshness, watch);
        }
        self.resolve_files(
            &reference,
            &path,
            || Gathered::from_image(&path, None, None),
            freshness,
            watch,
        )
    }

    fn resolve_files(
        &self,
        reference: &KernelRef,
        origin: &Path,
        gathered: impl FnOnce() -> Result<Gathered, KernelError>,
        freshness: Freshness,
        watch: &mut Watch,
    ) -> Result<Kernel, KernelError> {
        let gathered = gathered()?;
        let stamp = gathered.stamp()?;
        if let Some(kernel) = self.unchanged(reference, &stamp, freshness) {
            return Ok(kernel);
        }
        watch(&Step::Unpacking {
            name: origin.display().to_string(),
        });
        let mut stage = Stage::new(self.root(), origin)?;
        gathered.store(&mut stage)?;
        let kernel = stage.finish(Origin {
            reference: reference.to_string(),
            packages: Vec::new(),
        })?;
        self.pins()
            .set(&reference.to_string(), &kernel.digest, &stamp)?;
        Ok(kernel)
    }

    fn unchanged(
        &self,
        reference: &KernelRef,
        stamp: &str,
        freshness: Freshness,
    ) -> Option<Kernel> {
        let pin = self.pins().get(&reference.to_string())?;
        if freshness == Freshness::Refresh || pin.stamp != stamp {
            return None;
        }
        self.get(&pin.digest).ok()
    }

    fn resolve_deb(
        &self,
        reference: &KernelRef,
        path: &Path,
        freshness: Freshness,
        watch: &mut Watch,
    ) -> Result<Kernel, KernelError> {
        let stamp = stamp_of(&fs::metadata(path).map_err(KernelError::read(path))?);
        if let Some(kernel) = self.unchanged(reference, &stamp, freshness) {
            return Ok(kernel);
        }
        let (files, absent) = with_parts_beside(path)?;
        let mut stage = Stage::new(self.root(), path)?;
        let packages = unpack_all(&files, &mut stage, watch)?;
        if !stage.has(names::IMAGE) {
            return Err(KernelError::NoKernelInside {
                path: path.to_owned(),
                beside: absent,
            });
        }
        let kernel = stage.finish(Origin {
            reference: reference.to_string(),
            packages,
        })?;
        self.pins()
            .set(&reference.to_string(), &kernel.digest, &stamp)?;
        Ok(kernel)
    }

    /// apt for a suite, or for the machine's own.
    fn apt(&self, suite: Option<&str>) -> Result<Apt, KernelError> {
        let sites = Sites::of_machine(Path::new(ETC_APT))?;
        let (name, sources) = match suite {
            Some(suite) => (suite, sites.list_of(suite)),
            None => ("machine", sites.list_of_machine()),
        };
        let place = suite.map_or_else(
            || "this machine's own suites".to_owned(),
            |suite| format!("Debian {suite}"),
        );
        Apt::open(
            &self.root().join("apt").join(name),
            &place,
            &sources,
            Programs::default(),
        )
    }

    fn resolve_remote<A: Archive>(
        &self,
        reference: &KernelRef,
        wanted: &Wanted,
        freshness: Freshness,
        watch: &mut Watch,
        open: impl FnOnce() -> Result<A, KernelError>,
    ) -> Result<Kernel, KernelError> {
        let pinned = self.pinned(reference);
        if let (Freshness::Pinned, Some(kernel)) = (freshness, &pinned) {
            return Ok(kernel.clone());
        }
        let fetched = open().and_then(|mut archive| {
            // While the archive was busy, another process may have done the same.
            match self
                .pinned(reference)
                .filter(|_| freshness == Freshness::Pinned)
            {
                Some(kernel) => Ok(kernel),
                None => self.fetch(&mut archive, reference, wanted, freshness, watch),
            }
        });
        match (fetched, pinned) {
            (Ok(kernel), _) => {
                self.pins()
                    .set(&reference.to_string(), &kernel.digest, "")?;
                Ok(kernel)
            }
            (
                Err(
                    reason @ (KernelError::Apt { .. }
                    | KernelError::NoApt { .. }
                    | KernelError::NoKeyring { .. }),
                ),
                Some(kernel),
            ) => {
                watch(&Step::KeptPinned {
                    release: kernel.release.clone(),
                    reason: reason.to_string(),
                });
                Ok(kernel)
            }
            (Err(error), _) => Err(error),
        }
    }

    fn fetch(
        &self,
        archive: &mut dyn Archive,
        reference: &KernelRef,
        wanted: &Wanted,
        freshness: Freshness,
        watch: &mut Watch,
    ) -> Result<Kernel, KernelError> {
        let stale = freshness == Freshness::Refresh || archive.age().is_none_or(|age| age > DAY);
        if stale {
            watch(&Step::Updating {
                place: archive.place(),
            });
            archive.update()?;
        }
        let attempt = |archive: &dyn Archive, watch: &mut Watch| {
            let choice = choose(archive, wanted)?;
            self.take(archive, reference, &choice, watch)
        };
        match attempt(archive, watch) {
            // Lists of this morning may name packages the mirror has replaced since.
            Err(KernelError::NoPackage { .. } | KernelError::Apt { .. }) if !stale => {
                watch(&Step::Updating {
                    place: archive.place(),
                });
                archive.update()?;
                attempt(archive, watch)
            }
            done => done,
        }
    }

    fn take(
        &self,
        archive: &dyn Archive,
        reference: &KernelRef,
        choice: &Choice,
        watch: &mut Watch,
    ) -> Result<Kernel, KernelError> {
        let packages = choice.ids();
        if let Some(kernel) = self
            .list()?
            .into_iter()
            .find(|kernel| kernel.origin.packages == packages)
        {
            return Ok(kernel);
        }
        let mut stage = Stage::new(self.root(), Path::new(&packages.join(" ")))?;
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
        if !stage.has(names::IMAGE) {
            let path = PathBuf::from(packages.join(" "));
            return Err(KernelError::NoKernelInside {
                path,
                beside: Vec::new(),
            });
        }
        stage.finish(Origin {
            reference: reference.to_string(),
            packages,
        })
    }
}

/// Unpacks package files, and gives them as `NAME=VERSION`.
fn unpack_all(
    files: &[PathBuf],
    stage: &mut Stage,
    watch: &mut Watch,
) -> Result<Vec<String>, KernelError> {
    let mut ids = Vec::new();
    for path in files {
        let package = Package::open(path)?;
        watch(&Step::Unpacking {
            name: package.control.package.clone(),
        });
        stage.reading_from(path);
        package.unpack(stage)?;
        ids.push(format!(
            "{}={}",
            package.control.package, package.control.version
        ));
    }
    Ok(ids)
}

/// A package file and those split off from it that lie in the same folder; and the names of those that do not.
fn with_parts_beside(path: &Path) -> Result<(Vec<PathBuf>, Vec<String>), KernelError> {
    let mut files = vec![path.to_owned()];
    let mut wanted = Package::open(path)?.control.parts();
    let mut absent = Vec::new();
    let folder = path.parent().unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).map_err(KernelError::read(folder))?;
    let names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let mut at = 0;
    while let Some(part) = wanted.get(at).cloned() {
        at += 1;
        let start = format!("{part}_");
        let beside = names
            .iter()
            .find(|name| name.starts_with(&start) && is_deb(Path::new(name)));
        let Some(name) = beside else {
            absent.push(part);
            continue;
        };
        let file = folder.join(name);
        for more in Package::open(&file)?.control.parts() {
            if !wanted.contains(&more) {
                wanted.push(more);
            }
        }
        files.push(file);
    }
    Ok((files, absent))
}

/// Whether a file is named as a package.
fn is_deb(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("deb"))
}
