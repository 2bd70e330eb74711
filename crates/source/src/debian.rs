//! Sources of Debian kernels, unpacked in the cache, and configurations of Debian kernels.

use std::fs;
use std::path::{Path, PathBuf};

use pagetide_kernel::{Cache, Freshness, KernelError, Lock, Scratch};
use pagetide_outside::{FileOrigin, read_text};

use crate::config::MAX_CONFIG_BYTES;
use crate::error::SourceError;
use crate::step::{BuildStep, OnStep};
use crate::tree::write;

/// Maximum size in bytes of a file that stores the version of a source.
const MAX_PIN_BYTES: u64 = 4096;

/// Returns the folder and version of a series' source; `None` if the source is not in the cache.
pub fn here(cache: &Cache, suite: &str, series: &str) -> Option<(PathBuf, String)> {
    let sources = cache.root().join("sources");
    let pin = sources.join(format!("debian-{suite}-{series}.version"));
    let version = read_text(&pin, FileOrigin::Own, MAX_PIN_BYTES).ok()?;
    let version = version.trim();
    let folder = sources.join(format!("linux-source-{series}_{version}"));
    let is_there = folder.join("tree").is_dir();
    is_there.then(|| (folder, version.to_owned()))
}

/// Returns the folder and version of a series' source. Fetches the source if it is not in the cache, or if `freshness`
/// asks for a newer version. If apt fails, a version in the cache is used.
pub fn open(
    cache: &Cache,
    suite: &str,
    series: &str,
    freshness: Freshness,
    watch: &mut OnStep,
) -> Result<(PathBuf, String), SourceError> {
    let sources = cache.root().join("sources");
    fs::create_dir_all(&sources).map_err(SourceError::cache("making", &sources))?;
    let pin = sources.join(format!("debian-{suite}-{series}.version"));
    let of_version = |version: &str| {
        let folder = sources.join(format!("linux-source-{series}_{version}"));
        folder.join("tree").is_dir().then_some(folder)
    };
    let pinned = || self::here(cache, suite, series);
    if freshness == Freshness::Pinned
        && let Some(found) = pinned()
    {
        return Ok(found);
    }
    // Only one process unpacks at a time, because unpacking takes a minute and a gigabyte.
    let gate = sources.join("lock");
    let _gate = Lock::wait(&gate).map_err(SourceError::cache("locking", &gate))?;
    if freshness == Freshness::Pinned
        && let Some(found) = pinned()
    {
        return Ok(found);
    }
    let mut watch_kernel = |step: &pagetide_kernel::Step| watch(&BuildStep::Kernel(step.clone()));
    let version = match cache.source_version(suite, series, freshness, &mut watch_kernel) {
        Ok(version) => version,
        Err(why @ (KernelError::Apt { .. } | KernelError::NoApt { .. })) => match pinned() {
            Some((folder, version)) => {
                watch(&BuildStep::Note(format!(
                    "using the source {version} from the cache, because {why}"
                )));
                return Ok((folder, version));
            }
            None => return Err(why.into()),
        },
        Err(why) => return Err(why.into()),
    };
    let folder = if let Some(folder) = of_version(&version) {
        folder
    } else {
        fetch(cache, &sources, suite, series, &mut watch_kernel)?
    };
    write(&pin, version.as_bytes())?;
    Ok((folder, version))
}

/// Returns Debian's configuration of a series; `None` if it is not in the cache.
pub fn config_here(cache: &Cache, suite: &str, series: &str) -> Option<String> {
    read_text(
        &config_file(cache, suite, series),
        FileOrigin::Own,
        MAX_CONFIG_BYTES,
    )
    .ok()
}

fn config_file(cache: &Cache, suite: &str, series: &str) -> PathBuf {
    let name = format!("debian-{suite}-{series}.config");
    cache.root().join("sources").join(name)
}

/// Returns Debian's configuration of a series. Fetches it if it is not in the cache, or if `freshness` asks for a newer
/// version. If apt fails, the configuration in the cache is used.
pub fn config(
    cache: &Cache,
    suite: &str,
    series: &str,
    freshness: Freshness,
    watch: &mut OnStep,
) -> Result<String, SourceError> {
    let here = || config_here(cache, suite, series);
    if freshness == Freshness::Pinned
        && let Some(text) = here()
    {
        return Ok(text);
    }
    let sources = cache.root().join("sources");
    fs::create_dir_all(&sources).map_err(SourceError::cache("making", &sources))?;
    let gate = sources.join("lock");
    let _gate = Lock::wait(&gate).map_err(SourceError::cache("locking", &gate))?;
    let fresh = Scratch::new(cache.root())?;
    let mut watch_kernel = |step: &pagetide_kernel::Step| watch(&BuildStep::Kernel(step.clone()));
    let package = fresh.inner("package")?;
    match cache.fetch_config(suite, series, &package, freshness, &mut watch_kernel) {
        Ok((version, text)) => {
            let text = format!("# linux-config-{series} {version}\n{text}");
            write(&config_file(cache, suite, series), text.as_bytes())?;
            Ok(text)
        }
        Err(why @ (KernelError::Apt { .. } | KernelError::NoApt { .. })) => match here() {
            Some(text) => {
                watch(&BuildStep::Note(format!(
                    "using Debian's configuration of {series} from the cache, because {why}"
                )));
                Ok(text)
            }
            None => Err(why.into()),
        },
        Err(why) => Err(why.into()),
    }
}

fn fetch(
    cache: &Cache,
    sources: &Path,
    suite: &str,
    series: &str,
    watch: &mut pagetide_kernel::OnStep,
) -> Result<PathBuf, SourceError> {
    let fresh = Scratch::new(cache.root())?;
    let (package, unpacked) = (fresh.inner("package")?, fresh.inner("unpacked")?);
    let fetched = cache.fetch_source(suite, series, &package, watch)?;
    let top = cache.unpack_source(&fetched.file, &unpacked, watch)?;
    let folder = sources.join(format!("linux-source-{series}_{}", fetched.version));
    fs::create_dir_all(&folder).map_err(SourceError::cache("making", &folder))?;
    let tree = folder.join("tree");
    fs::rename(&top, &tree).map_err(SourceError::cache("making", &tree))?;
    Ok(folder)
}
