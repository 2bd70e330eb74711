//! A kernel in the cache: its description, its files, and the features and modules that it has.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use pagetide_outside::{FileOrigin, read};
use serde::{Deserialize, Serialize};

use crate::config::{Config, Setting};
use crate::digest::Digest;
use crate::error::KernelError;
use crate::image::{BuildId, Image};
use crate::modules::{Module, Modules, files_under};
use crate::names;
use crate::need::{MissingOption, MissingOptions, Need, option_of_module};

/// Maximum number of bytes read from a kernel's description.
const MAX_FACTS_BYTES: u64 = 1 << 20;
/// Maximum number of bytes read from a configuration. Debian's configuration has 300 KB.
pub(crate) const MAX_CONFIG_BYTES: u64 = 16 << 20;
/// Maximum number of bytes read from an image or a module.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 30;

/// Origin of a kernel in the cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The kernel reference with which the kernel was first added. For a kernel that was built on this machine, `built
    /// from` and its source.
    pub reference: String,
    /// Debian packages from which the kernel was unpacked, as `NAME=VERSION`. Empty for images and trees.
    pub packages: Vec<String>,
}

/// A kernel in the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    /// Digest of image, configuration and modules. It is the kernel's name in the cache.
    pub digest: Digest,
    /// Release of the kernel, as `uname -r` prints it.
    pub release: String,
    /// The complete version line of the kernel's image, with builder and build date.
    pub banner: String,
    /// GNU build id of the kernel, or the reason why it is unknown.
    pub build_id: BuildId,
    /// Origin of the kernel.
    pub origin: Origin,
    /// Time at which the kernel was added to the cache, in seconds since 1970.
    pub added: u64,
    /// Number of loadable modules.
    pub modules: usize,
    #[serde(skip)]
    folder: PathBuf,
}

/// Content of the file `kernel.json` with a kernel's description. The kernel's digest does not cover this file, so it
/// contains a digest of the description.
#[derive(Serialize, Deserialize)]
struct Facts {
    kernel: Kernel,
    sum: Digest,
}

impl Kernel {
    pub(crate) fn new(
        folder: &Path,
        digest: Digest,
        image: &Image,
        modules: usize,
        origin: Origin,
        added: u64,
    ) -> Self {
        Self {
            digest,
            release: image.release().to_owned(),
            banner: image.banner.clone(),
            build_id: image.build_id(),
            origin,
            added,
            modules,
            folder: folder.to_owned(),
        }
    }

    /// Opens the kernel in this folder of the cache. Fails if the description is missing or damaged, or if there is no
    /// image. Only the description is read.
    pub(crate) fn open(folder: &Path) -> Result<Self, KernelError> {
        let facts = folder.join(names::FACTS);
        let text = read(&facts, FileOrigin::Own, MAX_FACTS_BYTES);
        let text = text.map_err(KernelError::cache("reading", &facts))?;
        let damaged = |what: String| KernelError::CacheDamaged {
            path: folder.to_owned(),
            what,
        };
        let mut kernel = match serde_json::from_slice::<Facts>(&text) {
            Ok(facts) if facts.sum == facts.kernel.sum() => facts.kernel,
            Ok(_) => return Err(damaged(format!("{} was changed", names::FACTS))),
            // Caches of earlier versions hold the description without a digest.
            Err(why) => serde_json::from_slice::<Self>(&text)
                .map_err(|_| damaged(format!("{}: {why}", names::FACTS)))?,
        };
        if folder.file_name().and_then(|name| name.to_str()) != Some(kernel.digest.as_str()) {
            return Err(damaged(
                "the folder's name is not the kernel's digest".into(),
            ));
        }
        folder.clone_into(&mut kernel.folder);
        if !kernel.image().is_file() {
            return Err(damaged("the image is gone".into()));
        }
        Ok(kernel)
    }

    pub(crate) fn to_json(&self) -> String {
        let facts = Facts {
            kernel: self.clone(),
            sum: self.sum(),
        };
        serde_json::to_string_pretty(&facts).unwrap_or_default() + "\n"
    }

    /// Returns a digest of the description, by which later changes of the description are detected.
    fn sum(&self) -> Digest {
        Digest::of(&serde_json::to_vec(self).unwrap_or_default())
    }

    /// Returns the path of the boot image, for a boot loader or emulator.
    pub fn image(&self) -> PathBuf {
        self.folder.join(names::IMAGE)
    }

    /// Returns the kernel's folder in the cache, with all its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns a short name for tables: the release without architecture, flavour and distribution, such as `6.12.117`.
    pub fn label(&self) -> &str {
        label(&self.release)
    }

    /// Returns the series: the first two numbers of the release, such as `6.12`.
    pub fn series(&self) -> &str {
        series(&self.release)
    }

    /// Returns the build configuration of the kernel. Fails if the file cannot be read.
    pub fn config(&self) -> Result<Config, KernelError> {
        let path = self.folder.join(names::CONFIG);
        let bytes = read(&path, FileOrigin::Own, MAX_CONFIG_BYTES);
        let bytes = bytes.map_err(KernelError::cache("reading", &path))?;
        Ok(Config::parse(&String::from_utf8_lossy(&bytes)))
    }

    /// Checks that the kernel has a feature. If not, fails with [`KernelError::Missing`], which names the option.
    pub fn require(&self, need: Need) -> Result<(), KernelError> {
        self.require_all(&[need])
    }

    /// Checks that the kernel has several features. If not, fails with [`KernelError::Missing`], which names all
    /// missing options.
    pub fn require_all(&self, needs: &[Need]) -> Result<(), KernelError> {
        let lacks = self.lacks(needs)?;
        if lacks.is_empty() {
            return Ok(());
        }
        Err(MissingOptions(lacks).into())
    }

    /// Returns the options that the kernel lacks for these needs. Fails if the configuration cannot be read.
    pub fn lacks(&self, needs: &[Need]) -> Result<Vec<MissingOption>, KernelError> {
        let config = self.config()?;
        Ok(needs
            .iter()
            .filter_map(|need| need.check(&self.release, &config).err())
            .collect())
    }

    /// Returns the named modules and all their dependencies, uncompressed, in an order in which they can be loaded.
    ///
    /// `-` and `_` in names are equivalent. Modules that are compiled in are left out. Fails with
    /// [`KernelError::NoModule`] for a name that is neither a module nor compiled in.
    pub fn modules_for(&self, wanted: &[&str]) -> Result<Vec<Module>, KernelError> {
        let modules = Modules::scan(&self.folder.join(names::MODULES))?;
        let config = self.config()?;
        // If the list of built-in modules is missing, the configuration answers instead.
        let built_in = |name: &str| config.get(&option_of_module(name)) == Setting::Yes;
        let wanted: Vec<&str> = wanted
            .iter()
            .copied()
            .filter(|name| modules.contains(name) || !built_in(name))
            .collect();
        modules.in_order(&wanted, |name| KernelError::NoModule {
            release: self.release.clone(),
            module: name.to_owned(),
            option: option_of_module(name),
        })
    }

    /// Checks that the kernel's zram supports a compressor. If not, the error names the kernel option.
    ///
    /// Up to 6.11 zram uses the crypto API; from 6.12 on it has its own compressors (CONFIG_ZRAM_BACKEND_*).
    pub fn require_of_zram(&self, compressor: &str) -> Result<(), KernelError> {
        self.require(Need::Zram)?;
        let config = self.config()?;
        let option = if brings_its_own(&config) {
            backend_option(compressor)
        } else {
            option_of_module(compressor)
        };
        self.compresses("zram", compressor, &config, option)
    }

    /// Checks that the kernel's zswap supports a compressor and a pool. If not, the error names the kernel option.
    /// zswap uses the compressors of the crypto API.
    pub fn require_of_zswap(&self, compressor: &str, pool: &str) -> Result<(), KernelError> {
        self.require(Need::Zswap)?;
        let config = self.config()?;
        self.compresses("zswap", compressor, &config, option_of_module(compressor))?;
        let option = option_of_module(pool);
        if config.get(&option).is_on() {
            return Ok(());
        }
        Err(KernelError::NoPool {
            release: self.release.clone(),
            pool: pool.to_owned(),
            option,
        })
    }

    fn compresses(
        &self,
        of: &'static str,
        compressor: &str,
        config: &Config,
        option: String,
    ) -> Result<(), KernelError> {
        if config.get(&option).is_on() {
            return Ok(());
        }
        Err(KernelError::NoCompressor {
            of,
            release: self.release.clone(),
            compressor: compressor.to_owned(),
            option,
        })
    }

    /// Returns the modules needed for a zram device with this compressor, in loading order. `None` stands for the
    /// kernel's default compressor. The result includes modules of the crypto API, although zram does not declare them
    /// as dependencies. Fails if the kernel lacks zram or the compressor.
    pub fn zram_modules(&self, compressor: Option<&str>) -> Result<Vec<Module>, KernelError> {
        let config = self.config()?;
        match compressor {
            Some(compressor) => self.require_of_zram(compressor)?,
            None => self.require(Need::Zram)?,
        }
        if brings_its_own(&config) {
            return self.modules_for(&["zram"]);
        }
        let default = match config.get("CONFIG_ZRAM_DEF_COMP") {
            Setting::Value(name) => name,
            _ => "lzo-rle".to_owned(),
        };
        self.modules_for(&[compressor.unwrap_or(&default), "zram"])
    }

    /// Returns the modules that zswap needs for this compressor and this pool, in loading order. Fails if the kernel
    /// lacks zswap, the compressor or the pool.
    pub fn zswap_modules(&self, compressor: &str, pool: &str) -> Result<Vec<Module>, KernelError> {
        self.require_of_zswap(compressor, pool)?;
        self.modules_for(&[compressor, pool])
    }

    /// Reads all files of the kernel in parallel and compares them with the digest. Fails with
    /// [`KernelError::CacheDamaged`] if they differ.
    pub fn verify(&self) -> Result<(), KernelError> {
        let damaged = |what: String| KernelError::CacheDamaged {
            path: self.folder.clone(),
            what,
        };
        let mut files: Vec<(String, PathBuf)> = files_under(&self.folder)?
            .into_iter()
            .map(|path| {
                let inner = path.strip_prefix(&self.folder).unwrap_or(&path);
                (inner.to_string_lossy().into_owned(), path)
            })
            .collect();
        // Earlier versions also stored symbol addresses, which the digest does not cover.
        files.retain(|(name, _)| {
            ![names::FACTS, names::CHANGED, "System.map"].contains(&name.as_str())
        });
        let sums = Mutex::new(Vec::with_capacity(files.len()));
        let next = AtomicUsize::new(0);
        let work = || -> Result<(), KernelError> {
            while let Some((name, path)) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                let bytes = read(path, FileOrigin::Own, MAX_FILE_BYTES);
                let bytes = bytes.map_err(|why| damaged(format!("{name}: {why}")))?;
                let sum = (name.as_str(), Digest::of(&bytes));
                sums.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(sum);
            }
            Ok(())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let own = work();
            others
                .into_iter()
                .map(|other| other.join().unwrap_or(Ok(())))
                .fold(own, Result::and)
        })?;
        let sums = sums.into_inner().unwrap_or_else(PoisonError::into_inner);
        let found = Digest::of_files(sums.iter().map(|(name, sum)| (*name, sum.as_str())));
        if found == self.digest {
            Ok(())
        } else {
            Err(damaged(format!("its content has digest {}", found.short())))
        }
    }

    /// Returns the size of the kernel's files in bytes.
    pub fn size(&self) -> Result<u64, KernelError> {
        let mut bytes = 0;
        for path in files_under(&self.folder)? {
            bytes += fs::metadata(&path).map_err(KernelError::read(&path))?.len();
        }
        Ok(bytes)
    }
}

/// Names (as in sysfs) of the compressors that are part of zram from 6.12 on (drivers/block/zram/Kconfig).
const BACKENDS: [&str; 6] = ["lzo", "lz4", "lz4hc", "zstd", "deflate", "842"];

/// Returns true if zram has its own compressors, as from 6.12 on.
fn brings_its_own(config: &Config) -> bool {
    BACKENDS
        .iter()
        .any(|name| config.get(&backend_option(name)).is_on())
}

/// Returns the kernel option that builds a compressor into zram. `lzo` and `lzo-rle` have the same option.
fn backend_option(compressor: &str) -> String {
    let name = if compressor == "lzo-rle" {
        "lzo"
    } else {
        compressor
    };
    format!("CONFIG_ZRAM_BACKEND_{}", name.to_uppercase())
}

/// Returns the first two numbers of a release.
pub fn series(release: &str) -> &str {
    let mut dots = 0;
    let end = release.find(|c: char| {
        dots += u32::from(c == '.');
        dots == 2 || !(c.is_ascii_digit() || c == '.')
    });
    release
        .get(..end.unwrap_or(release.len()))
        .unwrap_or(release)
}

/// Returns a release without the suffixes that are common to all kernels of a distribution.
fn label(release: &str) -> &str {
    let mut label = release;
    for ending in ["-amd64", "-cloud"] {
        label = label.strip_suffix(ending).unwrap_or(label);
    }
    match label.split_once("+deb") {
        Some((upstream, rest)) if rest.bytes().all(|c| c.is_ascii_digit() || c == b'.') => upstream,
        _ => label,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_drop_what_all_debian_kernels_share_and_keep_a_developers_own() {
        assert_eq!(label("6.1.0-56-cloud-amd64"), "6.1.0-56");
        assert_eq!(label("6.12.117+deb12-cloud-amd64"), "6.12.117");
        assert_eq!(label("6.12.115+deb13.1-cloud-amd64"), "6.12.115");
        assert_eq!(
            label("6.19.0-rc3-00012-gdeadbeef"),
            "6.19.0-rc3-00012-gdeadbeef"
        );
    }

    #[test]
    fn the_series_is_the_first_two_numbers() {
        assert_eq!(series("6.12.117+deb12-cloud-amd64"), "6.12");
        assert_eq!(series("7.2-rc1"), "7.2");
        assert_eq!(series("6.1"), "6.1");
        assert_eq!(series("odd"), "");
    }
}
