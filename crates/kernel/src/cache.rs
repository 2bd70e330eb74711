//! The cache: the folder that contains the unpacked kernels. Other crates add folders of their own.
//!
//! ```text
//! kernels/DIGEST/   image, config, modules/, kernel.json
//! pins/             for each kernel reference, the kernel to which it was last resolved
//! packages/DIGEST/  contents of packages for roots: one uncompressed tar archive per package
//! emulators/        unpacked emulators, each in a folder named after its version
//! apt/SUITE/        private apt state: package lists and sources
//! tmp/              kernels being added; each folder is locked by the process that fills it
//! lock              held while a folder in tmp/ is created
//! ```

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::digest::Digest;
use crate::error::KernelError;
use crate::kernel::Kernel;
use crate::lock::Lock;
use crate::modules::files_under;
use crate::pin::Pins;
use crate::scratch::Scratch;
use crate::step::{OnStep, Step};
use crate::stop::Stop;
use crate::version;

/// Returns the cache folder as an absolute path: `named` if it is given, else [`cache_root`].
///
/// # Errors
///
/// If no cache folder is known, or if the path is not UTF-8, because the emulator receives it in JSON.
pub fn named_root(named: Option<&Path>) -> Result<PathBuf, KernelError> {
    let folder = named.map_or_else(cache_root, |named| Ok(named.to_owned()))?;
    let folder = std::path::absolute(&folder).map_err(KernelError::cache("finding", &folder))?;
    match folder.to_str() {
        Some(_) => Ok(folder),
        None => Err(KernelError::NoText { path: folder }),
    }
}

/// Returns the folder of the cache: `PAGETIDE_CACHE`, else `$XDG_CACHE_HOME/pagetide`, else `~/.cache/pagetide`. Fails
/// if none of these variables is set.
pub fn cache_root() -> Result<PathBuf, KernelError> {
    root_from(|name| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    })
}

fn root_from(var: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, KernelError> {
    let absolute = |name: &str| var(name).filter(|path| path.is_absolute());
    // Relative XDG folders are invalid and to be ignored (XDG Base Directory Specification).
    var("PAGETIDE_CACHE")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|folder| folder.join("pagetide")))
        .or_else(|| var("HOME").map(|folder| folder.join(".cache/pagetide")))
        .ok_or(KernelError::NoCacheRoot)
}

/// The cache of kernels on this machine: one folder for each kernel.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
    stop: Stop,
}

impl Cache {
    /// Opens the cache at `root`, creating it if needed. Removes incomplete files left behind by interrupted runs.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, KernelError> {
        let root = root.into();
        // apt runs in another working directory, where a relative path would point elsewhere.
        let root = std::path::absolute(&root).map_err(KernelError::cache("making", &root))?;
        for folder in ["kernels", "pins", "tmp"] {
            let path = root.join(folder);
            fs::create_dir_all(&path).map_err(KernelError::cache("making", &path))?;
        }
        // Errors are ignored here; the next write reports them.
        if let Ok(Some(_gate)) = Lock::try_existing(&root.join("lock")) {
            Pins::of(&root).clean();
            Scratch::clean(&root);
        }
        let stop = Stop::default();
        Ok(Self { root, stop })
    }

    /// Returns this cache with `stop` as its stop flag: once it is set, fetching and unpacking fail with
    /// [`KernelError::Stopped`].
    #[must_use]
    pub fn stopping_by(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    /// Returns the flag that stops fetching and unpacking.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Returns the root folder of the cache.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn pins(&self) -> Pins {
        Pins::of(&self.root)
    }

    /// Returns the kernel with this digest. Fails if the kernel is not in the cache or its folder is damaged.
    pub fn get(&self, digest: &Digest) -> Result<Kernel, KernelError> {
        Kernel::open(&self.folder_of(digest))
    }

    fn folder_of(&self, digest: &Digest) -> PathBuf {
        self.root.join("kernels").join(digest.as_str())
    }

    /// Returns all kernels in the cache, oldest release first. Damaged kernels are left out.
    pub fn list(&self) -> Result<Vec<Kernel>, KernelError> {
        let folder = self.root.join("kernels");
        let entries = fs::read_dir(&folder).map_err(KernelError::cache("reading", &folder))?;
        let mut kernels: Vec<Kernel> = entries
            .flatten()
            .filter_map(|entry| Kernel::open(&entry.path()).ok())
            .collect();
        kernels.sort_by(|a, b| {
            version::compare(&a.release, &b.release).then_with(|| a.digest.cmp(&b.digest))
        });
        Ok(kernels)
    }

    /// Finds a kernel in the cache by release, label, digest (at least the first 6 digits) or series, tried in this
    /// order. Returns `None` if no kernel matches. Fails if several kernels match in the same way.
    pub fn find(&self, name: &str) -> Result<Option<Kernel>, KernelError> {
        let kernels = self.list()?;
        let by_digest = name.len() >= 6 && name.bytes().all(|c| c.is_ascii_hexdigit());
        let tests: [&dyn Fn(&Kernel) -> bool; 4] = [
            &|kernel| kernel.release == name,
            &|kernel| kernel.label() == name,
            &|kernel| by_digest && kernel.digest.as_str().starts_with(name),
            &|kernel| kernel.series() == name,
        ];
        for test in tests {
            let mut found: Vec<&Kernel> = kernels.iter().filter(|kernel| test(kernel)).collect();
            if found.len() > 1 {
                let names: Vec<String> = found
                    .iter()
                    .map(|kernel| format!("{} {}", kernel.release, kernel.digest.short()))
                    .collect();
                return Err(KernelError::Ambiguous {
                    name: name.to_owned(),
                    candidates: names.join(", "),
                });
            }
            if let Some(kernel) = found.pop() {
                return Ok(Some(kernel.clone()));
            }
        }
        Ok(None)
    }

    /// Returns the kernel references that are pinned to this kernel, sorted.
    pub fn references_to(&self, digest: &Digest) -> Vec<String> {
        let mut references: Vec<String> = self
            .pins()
            .all()
            .into_iter()
            .filter(|pin| pin.digest == *digest)
            .map(|pin| pin.reference)
            .collect();
        references.sort_unstable();
        references
    }

    /// Removes a kernel and all pins to it.
    pub fn remove(&self, digest: &Digest) -> Result<(), KernelError> {
        self.put_away(digest)?;
        self.pins().forget(digest)
    }

    /// Removes the files of a kernel. Its pins are kept, because it may be fetched again.
    fn put_away(&self, digest: &Digest) -> Result<(), KernelError> {
        let folder = self.folder_of(digest);
        // One rename hides the kernel at once. If the removal is interrupted, the next start removes the rest.
        let scratch = Scratch::new(&self.root)?;
        let gone = scratch.folder().join("removed");
        fs::rename(&folder, &gone).map_err(KernelError::cache("removing", &folder))?;
        fs::remove_dir_all(&gone).map_err(KernelError::cache("removing", &folder))
    }

    /// Returns the size of all files in the cache in bytes, including package lists.
    pub fn size(&self) -> Result<u64, KernelError> {
        let mut bytes = 0;
        for path in files_under(&self.root)? {
            // Other processes may remove files at the same time.
            bytes += fs::metadata(&path).map_or(0, |data| data.len());
        }
        Ok(bytes)
    }

    /// Reads all files of a kernel and compares them with its digest. Fails with [`KernelError::CacheDamaged`] if they
    /// differ.
    pub fn verify(&self, kernel: &Kernel) -> Result<(), KernelError> {
        kernel.verify()
    }

    /// Returns the kernel with this digest, if it is in the cache and its files match the digest. A damaged kernel is
    /// reported to `watch` and removed, and `None` is returned.
    pub(crate) fn proven(&self, digest: &Digest, watch: &mut OnStep) -> Option<Kernel> {
        if !self.folder_of(digest).exists() {
            return None;
        }
        let opened = self.get(digest);
        let name = opened
            .as_ref()
            .map_or_else(|_| digest.short().to_owned(), |k| k.release.clone());
        match opened.and_then(|kernel| kernel.verify().map(|()| kernel)) {
            Ok(kernel) => Some(kernel),
            Err(error) => {
                let why = match error {
                    KernelError::CacheDamaged { what, .. } => what,
                    other => other.to_string(),
                };
                watch(&Step::Damaged { kernel: name, why });
                // If the removal fails, adding the kernel again fails too and reports the error.
                let _ = self.put_away(digest);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(vars: &[(&str, &str)]) -> Option<PathBuf> {
        let var = |name: &str| {
            vars.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| PathBuf::from(value))
        };
        root_from(var).ok()
    }

    #[test]
    fn the_root_follows_our_own_variable_then_xdg_then_home() {
        let all = [
            ("PAGETIDE_CACHE", "/own"),
            ("XDG_CACHE_HOME", "/xdg"),
            ("HOME", "/home/me"),
        ];
        assert_eq!(root(&all), Some("/own".into()));
        assert_eq!(root(&all[1..]), Some("/xdg/pagetide".into()));
        assert_eq!(root(&all[2..]), Some("/home/me/.cache/pagetide".into()));
        assert_eq!(
            root(&[("XDG_CACHE_HOME", "relative"), ("HOME", "/h")]),
            Some("/h/.cache/pagetide".into())
        );
        assert_eq!(root(&[]), None);
    }

    #[test]
    fn a_file_in_place_of_the_cache_folder_is_named_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        fs::write(&path, "in the way").unwrap();
        let text = Cache::open(&path).unwrap_err().to_string();
        assert!(
            text.contains(&path.display().to_string()) && text.contains("PAGETIDE_CACHE"),
            "{text}"
        );
    }
}
