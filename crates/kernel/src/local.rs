//! Kernels from files on this machine: packages, images, built trees.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::Cache;
use crate::deb::Package;
use crate::digest::Digest;
use crate::error::KernelError;
use crate::freshness::Freshness;
use crate::kernel::{Kernel, Origin};
use crate::kernel_ref::KernelRef;
use crate::names;
use crate::stage::Stage;
use crate::step::{OnStep, Step};
use crate::tree::{TreeFiles, stamp_of};

/// A kernel given as files on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Path of a package file. The `linux-*` packages that it depends on in the same version are expected in the same
    /// folder.
    Package(PathBuf),
    /// Path of a built kernel tree.
    Tree(PathBuf),
    /// An image with its modules and configuration, given by the user or found next to it.
    Image {
        /// Path of the boot image (bzImage).
        image: PathBuf,
        /// Folder of the modules; `None` to search the usual paths.
        modules: Option<PathBuf>,
        /// Path of the configuration; `None` to search the usual paths.
        config: Option<PathBuf>,
    },
}

impl Source {
    /// Determines the kind of source at this path. Fails if the path does not exist.
    pub fn at(path: &Path) -> Result<Self, KernelError> {
        // The canonical path makes the reference the same, however the file is named.
        let path = fs::canonicalize(path).map_err(KernelError::read(path))?;
        Ok(if path.is_dir() {
            Self::Tree(path)
        } else if path
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("deb"))
        {
            Self::Package(path)
        } else {
            Self::Image {
                image: path,
                modules: None,
                config: None,
            }
        })
    }

    /// Returns the kernel reference under which the kernel is pinned.
    fn reference(&self) -> String {
        match self {
            Self::Package(path) | Self::Tree(path) => path.display().to_string(),
            Self::Image {
                image,
                modules,
                config,
            } => {
                let (image, modules, config) = (image.clone(), modules.clone(), config.clone());
                KernelRef::Image {
                    image,
                    modules,
                    config,
                }
                .to_string()
            }
        }
    }

    /// Returns the path of the source, for messages.
    fn path(&self) -> &Path {
        match self {
            Self::Package(path) | Self::Tree(path) | Self::Image { image: path, .. } => path,
        }
    }
}

/// The paths of a source's files. The files are not read yet.
enum SourceFiles {
    Packages {
        files: Vec<PathBuf>,
        absent: Vec<String>,
    },
    Files(TreeFiles),
}

impl SourceFiles {
    fn of(source: &Source) -> Result<Self, KernelError> {
        match source {
            Source::Package(path) => {
                let (files, absent) = with_parts_beside(path)?;
                Ok(Self::Packages { files, absent })
            }
            Source::Tree(path) => Ok(Self::Files(TreeFiles::from_tree(path)?)),
            Source::Image {
                image,
                modules,
                config,
            } => {
                let gathered = TreeFiles::from_image(image, modules.as_deref(), config.as_deref())?;
                Ok(Self::Files(gathered))
            }
        }
    }

    /// Returns a fingerprint of the files: their sizes, times, devices and inodes. It shows that files changed without
    /// reading their contents.
    fn stamp(&self) -> Result<String, KernelError> {
        match self {
            Self::Packages { files, .. } => {
                let mut text = String::new();
                for path in files {
                    let data = fs::metadata(path).map_err(KernelError::read(path))?;
                    // Writing to a String cannot fail.
                    let _ = writeln!(text, "{}", stamp_of(&data));
                }
                Ok(Digest::of(text.as_bytes()).to_string())
            }
            Self::Files(gathered) => gathered.stamp(),
        }
    }
}

impl Cache {
    pub(crate) fn resolve_local(
        &self,
        source: &Source,
        freshness: Freshness,
        watch: &mut OnStep,
    ) -> Result<Kernel, KernelError> {
        let reference = source.reference();
        let found = SourceFiles::of(source)?;
        let stamp = found.stamp()?;
        let unchanged = self.pins().get(&reference).filter(|pin| pin.stamp == stamp);
        if let (Freshness::Pinned, Some(pin)) = (freshness, unchanged)
            && let Some(kernel) = self.proven(&pin.digest, watch)
        {
            return Ok(kernel);
        }
        let mut stage = Stage::new(self, source.path())?;
        let packages = match &found {
            SourceFiles::Packages { files, .. } => unpack_all(files, &mut stage, watch)?,
            SourceFiles::Files(gathered) => {
                watch(&Step::Unpacking {
                    name: source.path().display().to_string(),
                });
                gathered.store(&mut stage)?;
                Vec::new()
            }
        };
        stage.reading_from(source.path());
        if let SourceFiles::Packages { absent, .. } = found
            && !stage.has(names::IMAGE)
        {
            let path = source.path().to_owned();
            return Err(KernelError::NoKernelInside {
                path,
                beside: absent,
            });
        }
        let kernel = stage.finish(Origin {
            reference: reference.clone(),
            packages,
        })?;
        self.pins().set(&reference, &kernel.digest, &stamp)?;
        Ok(kernel)
    }
}

impl Cache {
    /// Adds the kernel built in `tree` to the cache. `made_from` states what it was built from. Fails if a file of the
    /// build is missing.
    pub fn take_built(
        &self,
        tree: &Path,
        made_from: &str,
        watch: &mut OnStep,
    ) -> Result<Kernel, KernelError> {
        watch(&Step::Unpacking {
            name: made_from.to_owned(),
        });
        let files = TreeFiles::from_tree(tree)?;
        let mut stage = Stage::new(self, tree)?;
        files.store(&mut stage)?;
        stage.finish(Origin {
            reference: made_from.to_owned(),
            packages: Vec::new(),
        })
    }
}

/// Unpacks package files into `stage`. Returns the packages as `NAME=VERSION`.
pub fn unpack_all(
    files: &[PathBuf],
    stage: &mut Stage,
    watch: &mut OnStep,
) -> Result<Vec<String>, KernelError> {
    let mut ids = Vec::new();
    for path in files {
        let package = Package::open(path)?;
        watch(&Step::Unpacking {
            name: package.control.package.clone(),
        });
        stage.reading_from(path);
        package.unpack(stage)?;
        ids.push(package.control.id());
    }
    Ok(ids)
}

/// Returns the path of a package file and of the packages split off from it that are in the same folder, and the names
/// of those that are missing there.
fn with_parts_beside(path: &Path) -> Result<(Vec<PathBuf>, Vec<String>), KernelError> {
    let control = Package::open(path)?.control;
    let mut files = vec![path.to_owned()];
    let mut wanted = control.parts();
    let mut absent = Vec::new();
    if wanted.is_empty() {
        return Ok((files, absent));
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).map_err(KernelError::read(folder))?;
    let mut beside: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    beside.sort_unstable();
    let mut at = 0;
    while let Some(part) = wanted.get(at).cloned() {
        at += 1;
        // File names omit the epoch of a version and escape colons.
        let version = control
            .version
            .split_once(':')
            .map_or(control.version.as_str(), |(_, version)| version);
        let start = format!("{part}_{version}_");
        match beside.iter().find(|name| name.starts_with(&start)) {
            Some(name) => {
                let file = folder.join(name);
                let more = Package::open(&file)?.control.parts();
                wanted.extend(
                    more.into_iter()
                        .filter(|part| !wanted.contains(part))
                        .collect::<Vec<_>>(),
                );
                files.push(file);
            }
            None => absent.push(part),
        }
    }
    Ok((files, absent))
}
