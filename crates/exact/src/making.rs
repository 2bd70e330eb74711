//! Programs that make file systems inside the guest: their packages, arguments and files.

use std::path::{Path, PathBuf};

use pagetide_guest::spec::{MAKER_FOLDER, MAKER_LOADER, MakerSpec};
use pagetide_kernel::{Cache, Freshness, KernelError, PackageSet};
use pagetide_quantity::Bytes;
use pagetide_record::FileSystem;
use pagetide_root::{Roots, Tool};
use sha2::{Digest, Sha256};

use crate::error::ExactError;

/// A program that makes a file system inside the guest.
#[derive(Clone, Debug)]
pub struct Maker {
    /// Arguments of the program and size of the file system, for the guest.
    pub spec: MakerSpec,
    /// Paths in the cache of the tar archives with the program's packages.
    archives: Vec<PathBuf>,
}

/// Returns the names of the package and of the program that makes a file system; `None` if the file system needs no
/// program.
fn program(system: FileSystem) -> Option<(&'static str, &'static str)> {
    match system {
        FileSystem::Xfs => Some(("xfsprogs", "mkfs.xfs")),
        FileSystem::Btrfs => Some(("btrfs-progs", "mkfs.btrfs")),
        FileSystem::Ext4 | FileSystem::Tmpfs => None,
    }
}

/// Returns the command that makes a file system of this size, with fixed identifiers and without discard. Empty if no
/// program is needed.
fn words(system: FileSystem, size: Bytes) -> Vec<String> {
    const UUID: &str = "70616765-7469-6465-2d65-786163740000";
    let bytes = size.0;
    let text = match system {
        FileSystem::Xfs => {
            format!("mkfs.xfs -f -q -K -m uuid={UUID} -l size=16m -d size={bytes}")
        }
        FileSystem::Btrfs => {
            format!("mkfs.btrfs -f -q -K -U {UUID} -m single -d single -b {bytes}")
        }
        FileSystem::Ext4 | FileSystem::Tmpfs => String::new(),
    };
    text.split_whitespace().map(str::to_owned).collect()
}

impl Maker {
    /// Returns the program that makes a file system of this size; `None` for a file system that needs no program. The
    /// program comes from Debian 12, so that it is the same on every machine. If its package is not in the cache, it is
    /// fetched. `cache` opens the cache.
    pub fn of(
        system: FileSystem,
        size: Bytes,
        cache: impl FnOnce() -> Result<Cache, KernelError>,
        say: &dyn Fn(&str),
    ) -> Result<Option<Self>, ExactError> {
        let Some((package, name)) = program(system) else {
            return Ok(None);
        };
        let cache = cache()?;
        let absent = |why: String| ExactError::NoMaker {
            system: system.name(),
            program: name,
            package,
            why,
        };
        let archives = PackageSet::parse(&format!("deb:{package}/bookworm"))
            .and_then(|set| {
                cache.packages(&set, Freshness::Pinned, &mut |step| say(&step.to_string()))
            })
            .map_err(|why| absent(why.to_string()))?;
        let names: Vec<&str> = archives.iter().filter_map(|path| stem(path)).collect();
        let own = names
            .iter()
            .find(|name| name.split('_').next() == Some(package));
        let own = own.ok_or_else(|| absent("it is not among what was fetched".to_owned()))?;
        let sum = Sha256::digest(names.join("\n"));
        Ok(Some(Self {
            spec: MakerSpec {
                package: own.replacen('_', " ", 1).replace("_amd64", ""),
                digest: pagetide_record::subject::hex(&sum[..8]),
                words: words(system, size),
            },
            archives,
        }))
    }

    /// Returns the names and contents of the files that the guest needs to run the program.
    pub fn files(&self, roots: &Roots) -> Result<Vec<(String, Vec<u8>)>, ExactError> {
        let name = self.spec.words.first().map_or("", String::as_str);
        let spool = roots.spool()?;
        let tool = Tool::of(&self.archives, name, spool.path())?;
        let loader = (MAKER_LOADER.to_owned(), tool.loader);
        let all = [loader].into_iter().chain(tool.files);
        Ok(all
            .map(|(name, bytes)| (format!("{MAKER_FOLDER}/{name}"), bytes))
            .collect())
    }
}

fn stem(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()
}
