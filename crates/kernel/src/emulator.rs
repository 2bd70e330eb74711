//! Debian's emulator, unpacked into the cache with its loader, libraries and firmware. Nothing is installed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cache::Cache;
use crate::deb::Package;
use crate::error::KernelError;
use crate::freshness::Freshness;
use crate::kernel_ref::Suite;
use crate::packages::{fetch, sorted};
use crate::remote::{is_stale, update};
use crate::scratch::Scratch;
use crate::step::{OnStep, Step};

/// Name of Debian's package with the emulator.
const PACKAGE: &str = "qemu-system-x86";
/// Folder of the cache that contains a folder for each emulator.
const FOLDER: &str = "emulators";
/// Common prefix of the folders from which an emulator needs no files, except for [`DATA`].
const SHARED: &str = "usr/share/";
/// Folders with firmware.
const DATA: [&str; 2] = ["usr/share/qemu/", "usr/share/seabios/"];

impl Cache {
    /// Fetches the emulator of a Debian suite with all its dependencies, and unpacks it into the cache. Returns its
    /// folder, which is named after the emulator's version. An emulator of the same version is replaced.
    pub fn add_emulator(&self, suite: &str, watch: &mut OnStep) -> Result<PathBuf, KernelError> {
        let suite = Suite::parse(suite, suite)?;
        let all = self.root().join(FOLDER);
        fs::create_dir_all(&all).map_err(KernelError::cache("making", &all))?;
        let fresh = Scratch::new(self.root())?;
        let (debs, files) = (fresh.inner("debs")?, fresh.inner("files")?);
        fresh.inner("debs/partial")?;
        let mut apt = self.apt(Some(suite.as_str()), watch)?;
        if is_stale(&apt, Freshness::Pinned) {
            update(&mut apt, watch)?;
        }
        watch(&Step::Fetching {
            package: format!("{PACKAGE} and what it depends on"),
            bytes: None,
        });
        fetch(&apt, &[PACKAGE.to_owned()], &debs)?;
        drop(apt);
        watch(&Step::Unpacking {
            name: PACKAGE.to_owned(),
        });
        let mut version = None;
        for path in sorted(&debs, "deb")? {
            self.stop().check()?;
            let package = Package::open(&path)?;
            unpack(&package, &path, &files)?;
            if package.control.package == PACKAGE {
                version = Some(package.control.version.clone());
            }
        }
        let version = version.unwrap_or_default();
        // An epoch as in `1:10.0.2` is no part of the emulator's own version.
        let name = version.rsplit(':').next().unwrap_or_default();
        let folder = all.join(name);
        if folder.exists() {
            let old = fresh.folder().join("old");
            fs::rename(&folder, old).map_err(KernelError::cache("replacing", &folder))?;
        }
        fs::rename(&files, &folder).map_err(KernelError::cache("making", &folder))?;
        Ok(folder)
    }

    /// Returns the folders of the emulators in the cache, sorted by name.
    pub fn emulators(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root().join(FOLDER));
        let mut folders: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        folders.sort();
        folders
    }
}

/// Writes those files of a package that an emulator may need into `folder`. Fails if a file would be written outside of
/// the folder.
fn unpack(package: &Package, path: &Path, folder: &Path) -> Result<(), KernelError> {
    let wrong = |why: io::Error| KernelError::decode(path, "data.tar", why);
    let mut data = package.member("data.tar")?;
    let mut archive = tar::Archive::new(&mut data);
    for entry in archive.entries().map_err(wrong)? {
        let mut entry = entry.map_err(wrong)?;
        let member = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let inner = member.strip_prefix("./").unwrap_or(&member);
        if inner.starts_with(SHARED) && !DATA.iter().any(|data| inner.starts_with(data)) {
            continue;
        }
        // Refuses paths that lead outside, also through links.
        if !entry.unpack_in(folder).map_err(wrong)? {
            return Err(KernelError::UnsafeMember {
                path: path.to_owned(),
                member,
            });
        }
    }
    io::copy(&mut data, &mut io::sink()).map_err(wrong)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Deb;

    /// Unpacks a package that contains these files; returns the result and the folder.
    fn unpacked(files: &[&str]) -> (Result<(), KernelError>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("emulator.deb");
        let mut deb = Deb::new(PACKAGE, "1:10.0", "libc6");
        deb.files = files
            .iter()
            .map(|name| ((*name).to_owned(), vec![7; 10]))
            .collect();
        fs::write(&path, deb.build()).unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let done = Package::open(&path).and_then(|package| unpack(&package, &path, &inner));
        (done, folder)
    }

    #[test]
    fn an_emulator_is_unpacked_with_its_firmware_and_without_documents() {
        let (done, folder) = unpacked(&[
            "./usr/bin/qemu-system-x86_64",
            "./usr/share/qemu/linuxboot.bin",
            "./usr/share/doc/qemu/README",
        ]);
        done.unwrap();
        let has = |name: &str| folder.path().join("inner/usr").join(name).exists();
        assert!(has("bin/qemu-system-x86_64") && has("share/qemu/linuxboot.bin"));
        assert!(!has("share/doc"));
    }

    #[test]
    fn a_package_that_writes_outside_its_folder_is_refused_by_name() {
        let (done, folder) = unpacked(&["./usr/../../evil"]);
        let why = done.unwrap_err().to_string();
        assert!(
            why.contains("emulator.deb") && why.contains("evil"),
            "{why}"
        );
        assert!(!folder.path().join("evil").exists());
    }
}
