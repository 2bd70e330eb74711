//! Debian's packages of kernel sources and of kernel configurations, fetched with apt and unpacked outside the kernel
//! cache.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::apt::{Archive, KernelQuery, candidates};
use crate::cache::Cache;
use crate::compress::Compression;
use crate::deb::Package;
use crate::error::KernelError;
use crate::freshness::Freshness;
use crate::remote::{is_stale, update};
use crate::step::{OnStep, Step};

/// A fetched package of kernel sources. apt has checked its signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePackage {
    /// Path of the package file.
    pub file: PathBuf,
    /// Version of the package.
    pub version: String,
}

/// Prefix of the names of source packages. The rest of the name is the series.
const START: &str = "linux-source-";
/// Prefix of the names of configuration packages. The rest of the name is the series.
const CONFIG_START: &str = "linux-config-";
/// File name of the cloud kernels' configuration. Other commands use cloud kernels by default.
const CONFIG_FILE: &str = "config.amd64_none_cloud-amd64.xz";
/// Maximum number of bytes read from a configuration, as a protection against hostile packages. A few hundred kilobytes
/// are usual.
const MAX_CONFIG_BYTES: u64 = 16 << 20;

impl Cache {
    /// Returns the version of the newest source package of this series in a suite. Fetches nothing but package lists.
    /// Fails if the suite has none.
    pub fn source_version(
        &self,
        suite: &str,
        series: &str,
        freshness: Freshness,
        watch: &mut OnStep,
    ) -> Result<String, KernelError> {
        let mut archive = self.apt(Some(suite), watch)?;
        refreshed(&mut archive, freshness, watch)?;
        Ok(newest(&archive, START, series)?.version)
    }

    /// Fetches the newest source package of this series from a suite into `into`, which must be empty. Fails if the
    /// suite has none.
    pub fn fetch_source(
        &self,
        suite: &str,
        series: &str,
        into: &Path,
        watch: &mut OnStep,
    ) -> Result<SourcePackage, KernelError> {
        let mut archive = self.apt(Some(suite), watch)?;
        refreshed(&mut archive, Freshness::Pinned, watch)?;
        let package = newest(&archive, START, series)?;
        watch(&Step::Fetching {
            package: package.package.clone(),
            bytes: package.size,
        });
        Ok(SourcePackage {
            file: archive.download(&package, into)?,
            version: package.version,
        })
    }

    /// Fetches the configuration of the newest cloud kernel of this series in a suite into `into`, which must be empty.
    /// Returns the version of the package and the text of the configuration. Fails if the suite has none.
    pub fn fetch_config(
        &self,
        suite: &str,
        series: &str,
        into: &Path,
        freshness: Freshness,
        watch: &mut OnStep,
    ) -> Result<(String, String), KernelError> {
        let mut archive = self.apt(Some(suite), watch)?;
        refreshed(&mut archive, freshness, watch)?;
        let package = newest(&archive, CONFIG_START, series)?;
        watch(&Step::Fetching {
            package: package.package.clone(),
            bytes: package.size,
        });
        let file = archive.download(&package, into)?;
        Ok((package.version, config_in(&file)?))
    }

    /// Unpacks a source package into `into`, which must be empty. Returns the path of the source's top folder. Fails if
    /// the package contains no kernel source.
    pub fn unpack_source(
        &self,
        package: &Path,
        into: &Path,
        watch: &mut OnStep,
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
                // `unpack_in` never writes outside its folder, whatever the names in the archive are.
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
    watch: &mut OnStep,
) -> Result<(), KernelError> {
    if is_stale(archive, freshness) {
        update(archive, watch)?;
    }
    Ok(())
}

/// Returns the text of the cloud kernels' configuration, from a configuration package. Fails if the package has none.
fn config_in(package: &Path) -> Result<String, KernelError> {
    let opened = Package::open(package)?;
    let wrong = |cause| KernelError::decode(package, CONFIG_FILE, cause);
    let mut data = tar::Archive::new(opened.member("data.tar")?);
    for entry in data.entries().map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        if !entry.path_bytes().ends_with(CONFIG_FILE.as_bytes()) {
            continue;
        }
        let mut text = String::new();
        let plain = Compression::Xz.reader(entry).map_err(wrong)?;
        plain
            .take(MAX_CONFIG_BYTES)
            .read_to_string(&mut text)
            .map_err(wrong)?;
        return Ok(text);
    }
    Err(KernelError::NotAPackage {
        path: package.to_owned(),
        what: format!("it has no {CONFIG_FILE}"),
    })
}

/// Returns the newest package of a series. Its name is `start` followed by the series. Fails if there is none.
fn newest(
    archive: &dyn Archive,
    start: &str,
    series: &str,
) -> Result<crate::deb::Control, KernelError> {
    let wanted = KernelQuery::Package(format!("{start}{series}"), None);
    let none = |hint: String| KernelError::NoPackage {
        wanted: match start {
            CONFIG_START => format!("the configuration of Linux {series}"),
            _ => format!("the source of Linux {series}"),
        },
        place: archive.place(),
        hint,
    };
    match candidates(archive, &wanted) {
        Ok(mut found) if !found.is_empty() => Ok(found.remove(0)),
        Ok(_) | Err(KernelError::NoPackage { .. }) => {
            let names = archive.names(start)?;
            let there: Vec<&str> = names
                .iter()
                .filter_map(|name| name.strip_prefix(start))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Deb, packed};

    #[test]
    fn the_cloud_kernels_configuration_is_read_from_its_package_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let place = "./usr/src/linux-config-6.12";
        let mut deb = Deb::new("linux-config-6.12", "6.12.1-1", "");
        let member =
            |name: &str, text: &str| (format!("{place}/{name}"), packed(".xz", text.as_bytes()));
        deb.files = vec![member("config.amd64_none_amd64.xz", "CONFIG_DRM=m\n")];
        let refused = config_in(&deb.write(folder.path()))
            .unwrap_err()
            .to_string();
        assert!(refused.contains(CONFIG_FILE), "{refused}");
        deb.files.push(member(CONFIG_FILE, "CONFIG_PSI=y\n"));
        let text = config_in(&deb.write(folder.path())).unwrap();
        assert_eq!(text, "CONFIG_PSI=y\n");
    }
}
