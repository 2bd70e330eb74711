//! Debian's packages of kernel sources: found and fetched through apt, unpacked beside the kernels.

use std::path::{Path, PathBuf};

use crate::apt::{Archive, KernelQuery, candidates};
use crate::cache::Cache;
use crate::compress::Compression;
use crate::deb::Package;
use crate::error::KernelError;
use crate::remote::{is_stale, update};
use crate::resolve::Freshness;
use crate::step::{Step, Watch};

/// A package of kernel sources that was fetched; its signature holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePackage {
    /// The package file.
    pub file: PathBuf,
    /// Its version.
    pub version: String,
}

/// How a package of sources begins; its series follows.
const START: &str = "linux-source-";

impl Cache {
    /// The version of the newest source package of this series in a suite. Nothing is fetched but lists of packages.
    pub fn source_version(
        &self,
        suite: &str,
        series: &str,
        freshness: Freshness,
        watch: &mut Watch,
    ) -> Result<String, KernelError> {
        let mut archive = self.apt(Some(suite), watch)?;
        refreshed(&mut archive, freshness, watch)?;
        Ok(newest(&archive, series)?.version)
    }

    /// Fetches the newest source package of this series into an empty folder.
    pub fn fetch_source(
        &self,
        suite: &str,
        series: &str,
        into: &Path,
        watch: &mut Watch,
    ) -> Result<SourcePackage, KernelError> {
        let mut archive = self.apt(Some(suite), watch)?;
        refreshed(&mut archive, Freshness::Pinned, watch)?;
        let package = newest(&archive, series)?;
        watch(&Step::Fetching {
            package: package.package.clone(),
            bytes: package.size,
        });
        Ok(SourcePackage {
            file: archive.download(&package, into)?,
            version: package.version,
        })
    }

    /// Unpacks a source package into an empty folder, and returns the top of the source.
    pub fn unpack_source(
        &self,
        package: &Path,
        into: &Path,
        watch: &mut Watch,
    ) -> Result<PathBuf, KernelError> {
        let opened = Package::open(package)?;
        watch(&Step::Unpacking {
            name: opened.control.package.clone(),
        });
        let wrong = |what: &str| {
            let what = what.to_owned();
            move |cause| KernelError::decode(package, &what, cause)
        };
        let mut data = tar::Archive::new(opened.member("data.tar")?);
        for entry in data.entries().map_err(wrong("data.tar"))? {
            let entry = entry.map_err(wrong("data.tar"))?;
            let member = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let file = member.rsplit('/').next().unwrap_or_default();
            if !file.starts_with(START) || !file.contains(".tar.") {
                continue;
            }
            let is_gzip = Path::new(file)
                .extension()
                .is_some_and(|ending| ending == "gz");
            let compression = if is_gzip {
                Compression::Gzip
            } else {
                Compression::Xz
            };
            let inner = compression.reader(entry).map_err(wrong(&member))?;
            let mut source = tar::Archive::new(inner);
            let mut top = None;
            for entry in source.entries().map_err(wrong(&member))? {
                self.stop().check()?;
                let mut entry = entry.map_err(wrong(&member))?;
                let path = entry.path().map_err(wrong(&member))?.into_owned();
                // `unpack_in` writes nothing outside of its folder, whatever the names say.
                entry
                    .unpack_in(into)
                    .map_err(KernelError::cache("writing", into))?;
                top = top.or_else(|| path.components().next().map(|first| into.join(first)));
            }
            return top.ok_or_else(|| KernelError::NoSourceInside {
                path: package.to_owned(),
            });
        }
        Err(KernelError::NoSourceInside {
            path: package.to_owned(),
        })
    }
}

fn refreshed(
    archive: &mut dyn Archive,
    freshness: Freshness,
    watch: &mut Watch,
) -> Result<(), KernelError> {
    if is_stale(archive, freshness) {
        update(archive, watch)?;
    }
    Ok(())
}

/// The newest package of a series.
fn newest(archive: &dyn Archive, series: &str) -> Result<crate::deb::Control, KernelError> {
    let wanted = KernelQuery::Package(format!("{START}{series}"), None);
    let none = |hint: String| KernelError::NoPackage {
        wanted: format!("the source of Linux {series}"),
        place: archive.place(),
        hint,
    };
    match candidates(archive, &wanted) {
        Ok(mut found) if !found.is_empty() => Ok(found.remove(0)),
        Ok(_) | Err(KernelError::NoPackage { .. }) => {
            let names = archive.names(START)?;
            let there: Vec<&str> = names
                .iter()
                .filter_map(|name| name.strip_prefix(START))
                .filter(|series| series.starts_with(|c: char| c.is_ascii_digit()))
                .collect();
            Err(none(if there.is_empty() {
                "name another suite, as in `debian:trixie/6.12`, or a git tree".to_owned()
            } else {
                format!("it has {}", there.join(", "))
            }))
        }
        Err(other) => Err(other),
    }
}
