//! Adds a kernel to the cache. Files are written to a temporary folder and hashed at the same time. Then the folder is
//! renamed to the kernel's digest.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pagetide_outside::{FileOrigin, Refusal, open, read};
use sha2::{Digest as _, Sha256};

use crate::cache::Cache;
use crate::config::Config;
use crate::digest::{Digest, hex};
use crate::error::KernelError;
use crate::image::Image;
use crate::kernel::{Kernel, MAX_CONFIG_BYTES, MAX_FILE_BYTES, Origin};
use crate::modules::Modules;
use crate::names;
use crate::scratch::Scratch;
use crate::stop::Stop;

/// A temporary folder of the cache that is being filled with the files of a kernel.
#[derive(Debug)]
pub struct Stage {
    scratch: Scratch,
    kernels: PathBuf,
    sums: BTreeMap<String, String>,
    /// Path from which the files come, for messages.
    origin: PathBuf,
    stop: Stop,
}

impl Stage {
    /// Creates an empty temporary folder inside `cache`. `origin` is the path from which the files come, for messages.
    pub fn new(cache: &Cache, origin: &Path) -> Result<Self, KernelError> {
        let root = cache.root();
        let sums = BTreeMap::new();
        Ok(Self {
            scratch: Scratch::new(root)?,
            kernels: root.join("kernels"),
            sums,
            origin: origin.to_owned(),
            stop: cache.stop().clone(),
        })
    }

    /// Returns the path of the temporary folder. Other files created in it must be removed before [`Self::finish`].
    pub fn folder(&self) -> &Path {
        self.scratch.folder()
    }

    /// Sets the source path that error messages state for files added after this call.
    pub fn reading_from(&mut self, origin: &Path) {
        origin.clone_into(&mut self.origin);
    }

    /// Returns true if a file with this name was stored.
    pub fn has(&self, name: &str) -> bool {
        self.sums.contains_key(name)
    }

    /// Stores the contents of `from` as the file `name`. `what` describes the file in messages.
    pub fn put(&mut self, name: &str, from: &mut dyn Read, what: &str) -> Result<(), KernelError> {
        let path = self.folder().join(name);
        let write_error = |e| KernelError::cache("writing", &path)(e);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(write_error)?;
        }
        let mut file = BufWriter::new(File::create(&path).map_err(write_error)?);
        let mut hasher = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            self.stop.check()?;
            let count = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(KernelError::decode(&self.origin, what, e)),
            };
            let piece = buffer.get(..count).unwrap_or_default();
            hasher.update(piece);
            file.write_all(piece).map_err(write_error)?;
        }
        file.flush().map_err(write_error)?;
        self.sums.insert(name.to_owned(), hex(&hasher.finalize()));
        Ok(())
    }

    /// Stores a copy of the file `from` as the file `name`. Fails if the file is too large.
    pub fn put_file(&mut self, name: &str, from: &Path) -> Result<(), KernelError> {
        if name == names::CONFIG {
            // The file may be a pipe, as in `config:<(zcat /proc/config.gz)`.
            let config = read(from, FileOrigin::Named, MAX_CONFIG_BYTES);
            let config = config.map_err(KernelError::read(from))?;
            return self.put(name, &mut &config[..], name);
        }
        let file = open(from, FileOrigin::Listed).map_err(KernelError::read(from))?;
        let size = file.metadata().map_err(KernelError::read(from))?.len();
        let limit = MAX_FILE_BYTES;
        if size > limit {
            return Err(KernelError::read(from)(Refusal::TooLarge { limit }.into()));
        }
        self.put(name, &mut file.take(limit), name)
    }

    /// Checks that image, configuration and modules belong together, and moves the folder into the cache. If there is
    /// no configuration file, the one built into the image is stored.
    ///
    /// If the cache already contains this kernel undamaged, that kernel is returned and the new folder is removed.
    /// Fails if there is no image or no configuration, or if the modules are for another release.
    pub fn finish(mut self, origin: Origin) -> Result<Kernel, KernelError> {
        let image =
            Image::open(&self.folder().join(names::IMAGE)).map_err(|e| self.blame_origin(e))?;
        if !self.has(names::CONFIG) {
            let config = image
                .built_in_config()
                .ok_or_else(|| KernelError::NoConfig {
                    path: self.origin.clone(),
                })?;
            self.put(
                names::CONFIG,
                &mut config.as_bytes(),
                "the built-in configuration",
            )?;
        }
        let config_path = self.folder().join(names::CONFIG);
        let config = fs::read(&config_path).map_err(KernelError::cache("reading", &config_path))?;
        if Config::parse(&String::from_utf8_lossy(&config)).is_empty() {
            return Err(KernelError::NoConfig {
                path: self.origin.clone(),
            });
        }
        let modules = Modules::scan(&self.folder().join(names::MODULES))?;
        if let Some(release) = modules
            .release()
            .filter(|release| release != image.release())
        {
            return Err(KernelError::OtherRelease {
                path: self.origin.clone(),
                image: image.release().to_owned(),
                modules: release,
            });
        }
        let digest = Digest::of_files(
            self.sums
                .iter()
                .filter(|(name, _)| name.as_str() != names::FACTS)
                .map(|(name, sum)| (name.as_str(), sum.as_str())),
        );
        let target = self.kernels.join(digest.as_str());
        if let Ok(kernel) = whole(&target) {
            return Ok(kernel);
        }
        let added = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs();
        let kernel = Kernel::new(&target, digest, &image, modules.count(), origin, added);
        let facts = kernel.to_json();
        self.put(names::FACTS, &mut facts.as_bytes(), "facts")?;
        self.sync()?;
        self.place(&target)?;
        Ok(kernel)
    }

    /// Flushes all files to disk before the folder is renamed, so that a power failure cannot leave an incomplete
    /// kernel.
    fn sync(&self) -> Result<(), KernelError> {
        let synced = File::open(self.folder()).and_then(|folder| Ok(rustix::fs::syncfs(&folder)?));
        synced.map_err(KernelError::cache("writing", self.folder()))
    }

    /// Renames the folder to `target`. If another process has added the same kernel meanwhile, its folder is kept.
    fn place(self, target: &Path) -> Result<(), KernelError> {
        fs::create_dir_all(&self.kernels).map_err(KernelError::cache("making", &self.kernels))?;
        match fs::rename(self.folder(), target) {
            Ok(()) => Ok(()),
            Err(_) if whole(target).is_ok() => Ok(()),
            Err(_) if target.exists() => {
                // The existing kernel is incomplete, which a rename never causes: replace it.
                fs::remove_dir_all(target).map_err(KernelError::cache("removing", target))?;
                fs::rename(self.folder(), target).map_err(KernelError::cache("making", target))
            }
            Err(e) => Err(KernelError::cache("making", target)(e)),
        }
    }

    /// Replaces the path of the stored image in an error by the path from which the image came.
    fn blame_origin(&self, error: KernelError) -> KernelError {
        let path = self.origin.clone();
        match error {
            KernelError::NotAKernel { why, .. } => KernelError::NotAKernel { path, why },
            KernelError::Truncated { what, .. } => KernelError::Truncated { path, what },
            KernelError::Read { cause, .. } if cause.kind() == io::ErrorKind::NotFound => {
                KernelError::NoKernelInside {
                    path,
                    beside: Vec::new(),
                }
            }
            other => other,
        }
    }
}

/// Opens the kernel in this folder of the cache. Fails if its files do not match its digest.
fn whole(folder: &Path) -> Result<Kernel, KernelError> {
    let kernel = Kernel::open(folder)?;
    kernel.verify()?;
    Ok(kernel)
}
