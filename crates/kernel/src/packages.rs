//! Debian packages of programs. apt fetches the packages with all their dependencies, and they are unpacked without
//! dpkg. Nothing is installed, and no script of a package runs.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use crate::apt::{Apt, Archive};
use crate::cache::Cache;
use crate::deb::Package;
use crate::digest::hex;
use crate::error::KernelError;
use crate::freshness::Freshness;
use crate::kernel_ref::Suite;
use crate::lock::Lock;
use crate::remote::{is_stale, update};
use crate::scratch::Scratch;
use crate::step::{OnStep, Step};
use pagetide_quantity::nearest;

/// Prefix of a package set as a user types it: `deb:PACKAGE[,PACKAGE…][/SUITE]`.
const SCHEME: &str = "deb:";

/// A set of packages from one suite, or from the suites that the machine uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSet {
    /// The packages, each as `NAME` or `NAME=VERSION`.
    pub names: Vec<String>,
    /// The suite; `None` stands for the suites that the machine uses.
    pub suite: Option<Suite>,
}

impl PackageSet {
    /// Returns true if a string has the prefix of a package set.
    pub fn is_one(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Parses `deb:PACKAGE[,PACKAGE…][/SUITE]`. Fails if a name or the suite is not valid.
    pub fn parse(text: &str) -> Result<Self, KernelError> {
        let wrong = |hint: &str| KernelError::UnknownReference {
            text: text.to_owned(),
            hint: hint.to_owned(),
        };
        let rest = text.strip_prefix(SCHEME).unwrap_or(text);
        let (names, suite) = match rest.split_once('/') {
            Some((names, suite)) => (names, Some(Suite::parse(suite, text)?)),
            None => (rest, None),
        };
        let names: Vec<String> = names.split(',').map(str::to_owned).collect();
        if let Some(name) = names.iter().find(|name| !is_name(name)) {
            return Err(wrong(&format!(
                "`{name}` is no name of a package; write deb:PACKAGE[,PACKAGE…][/SUITE], such as deb:sqlite3 or \
                 deb:redis-server,redis-tools/bookworm"
            )));
        }
        Ok(Self { names, suite })
    }

    /// Returns the name of the set's folder in the cache. It depends only on the packages and the suite.
    fn key(&self) -> String {
        let suite = self.suite.as_ref().map_or("", Suite::as_str);
        let text = format!("{suite}\n{}", self.names.join("\n"));
        hex(&Sha256::digest(text)[..12])
    }
}

/// Returns true if a string is a Debian package name (Policy 5.6.1), optionally with a version. A trailing `-` is
/// refused, because it tells apt to remove the package.
fn is_name(text: &str) -> bool {
    let (name, version) = text.split_once('=').unwrap_or((text, "0"));
    let of = |text: &str, more: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    name.len() > 1 && of(name, "+-.") && !name.ends_with('-') && of(version, ".+-~:")
}

impl Cache {
    /// Returns the paths of the contents of the packages and of all their dependencies: one uncompressed tar archive
    /// per package, sorted by file name. Packages are fetched only once, unless `freshness` asks for newer ones.
    pub fn packages(
        &self,
        set: &PackageSet,
        freshness: Freshness,
        watch: &mut OnStep,
    ) -> Result<Vec<PathBuf>, KernelError> {
        let all = self.root().join("packages");
        fs::create_dir_all(&all).map_err(KernelError::cache("making", &all))?;
        let gate = all.join("lock");
        let _gate = Lock::wait(&gate).map_err(KernelError::cache("locking", &gate))?;
        let folder = all.join(set.key());
        if freshness == Freshness::Pinned && folder.is_dir() {
            // The time of the last use decides when the folder is removed.
            if let Ok(opened) = File::open(&folder) {
                let _ = opened.set_modified(SystemTime::now());
            }
            return contents(&folder);
        }
        let fresh = Scratch::new(self.root())?;
        let (debs, tars) = (fresh.inner("debs")?, fresh.inner("tars")?);
        fresh.inner("debs/partial")?;
        let mut apt = self.apt(set.suite.as_ref().map(Suite::as_str), watch)?;
        if is_stale(&apt, freshness) {
            update(&mut apt, watch)?;
        }
        watch(&Step::Fetching {
            package: format!("{} and what they depend on", set.names.join(", ")),
            bytes: None,
        });
        fetch(&apt, &set.names, &debs)?;
        for file in sorted(&debs, "deb")? {
            self.stop().check()?;
            take_out(&file, &tars, MAX_DATA)?;
        }
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&tars, &folder).map_err(KernelError::cache("making", &folder))?;
        contents(&folder)
    }
}

/// Fetches packages with all their dependencies into `into`, using apt. If apt does not know a package, the error names
/// the package and suggests a similar name.
pub(crate) fn fetch(apt: &Apt, names: &[String], into: &Path) -> Result<(), KernelError> {
    apt.fetch_with_dependencies(names, into).map_err(|why| {
        let KernelError::Apt { said, .. } = &why else {
            return why;
        };
        let unknown = names.iter().find(|name| {
            let plain = name.split('=').next().unwrap_or_default();
            said.contains(&format!("locate package {plain}"))
                || said.contains(&format!("'{plain}' has no installation candidate"))
                || said.contains(&format!("for '{plain}' was not found"))
        });
        let Some(name) = unknown else { return why };
        let start: String = name.chars().take(2).collect();
        let known = apt.names(&start).unwrap_or_default();
        let near = nearest(name, known.iter().map(String::as_str));
        KernelError::NoPackage {
            wanted: name.clone(),
            place: apt.place(),
            hint: near.map_or_else(
                || "name another suite, as in `deb:NAME/sid`".to_owned(),
                |near| format!("did you mean `{near}`?"),
            ),
        }
    })
}

/// Returns the paths of the files in a folder that have the extension `ending`, sorted by name.
pub(crate) fn sorted(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, KernelError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(KernelError::cache("reading", folder))? {
        let path = entry.map_err(KernelError::cache("reading", folder))?.path();
        if path.extension().is_some_and(|e| e == ending) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn contents(folder: &Path) -> Result<Vec<PathBuf>, KernelError> {
    sorted(folder, "tar")
}

/// Maximum size of an unpacked package in bytes. It is four times what fits into a guest, but far less than a small
/// malicious package can unpack to.
const MAX_DATA: u64 = 4 << 30;

/// Writes the contents of a package to an uncompressed tar archive in `folder`. Fails if it has more than `most` bytes.
/// Paths inside the archive are not interpreted.
fn take_out(package: &Path, folder: &Path, most: u64) -> Result<(), KernelError> {
    let opened = Package::open(package)?;
    let name = package.file_stem().unwrap_or_default();
    let to = folder.join(name).with_added_extension("tar");
    let mut file = File::create_new(&to).map_err(KernelError::cache("making", &to))?;
    let mut data = opened.member("data.tar")?.take(most.saturating_add(1));
    let copied = io::copy(&mut data, &mut file);
    if copied.map_err(|cause| KernelError::decode(package, "data.tar", cause))? > most {
        return Err(KernelError::Damaged {
            path: package.to_owned(),
            what: format!("its data.tar unpacks to more than {most} bytes"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Deb;

    /// Takes out the contents of a package with these bytes. Returns the result, and the paths of the files in the
    /// output folder.
    fn taken(bytes: &[u8], most: u64) -> (Result<(), KernelError>, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("hostile_1_amd64.deb");
        fs::write(&package, bytes).unwrap();
        let tars = folder.path().join("tars");
        fs::create_dir(&tars).unwrap();
        let done = take_out(&package, &tars, most);
        (done, contents(&tars).unwrap())
    }

    fn hostile(ending: &'static str) -> Deb {
        let mut deb = Deb::new("hostile", "1", "libc6");
        deb.ending = ending;
        deb.files = ["../../evil", "/etc/evil", "./usr/../../evil", "./usr/bin/x"]
            .map(|name| (name.to_owned(), vec![7; 5000]))
            .into();
        deb
    }

    #[test]
    fn a_hostile_package_becomes_one_archive_of_ours_or_an_error_that_names_it() {
        for ending in ["", ".gz", ".xz", ".zst"] {
            let whole = hostile(ending).build();
            let (done, found) = taken(&whole, MAX_DATA);
            done.unwrap();
            // The names inside an archive are not checked here; they are checked when the guest's root is built, which
            // refuses bad ones.
            assert_eq!(found.len(), 1);
            assert!(found[0].ends_with("hostile_1_amd64.tar"), "{found:?}");
            for length in (0..whole.len() - 1).step_by(41) {
                let why = taken(&whole[..length], MAX_DATA).0.unwrap_err();
                let why = why.to_string();
                assert!(
                    why.contains("hostile_1_amd64.deb") && !why.contains('\n'),
                    "{length}: {why}"
                );
            }
            for place in (0..whole.len()).step_by(23) {
                let mut damaged = whole.clone();
                damaged[place] ^= 0x55;
                if let (Err(why), _) = taken(&damaged, MAX_DATA) {
                    let why = why.to_string();
                    assert!(
                        why.contains("hostile_1_amd64.deb") && !why.contains('\n'),
                        "{place}: {why}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_small_package_that_unpacks_to_very_much_is_refused_before_it_is_all_written() {
        let mut bomb = hostile(".xz");
        bomb.files.push(("./usr/zeros".into(), vec![0; 8 << 20]));
        let bytes = bomb.build();
        assert!(bytes.len() < 100_000, "it is small: {}", bytes.len());
        let why = taken(&bytes, 1 << 20).0.unwrap_err().to_string();
        assert!(why.contains("more than 1048576 bytes"), "{why}");
        assert!(taken(&bytes, 16 << 20).0.is_ok());
    }

    #[test]
    fn packages_are_named_with_and_without_a_suite_and_slips_are_refused() {
        let set = PackageSet::parse("deb:redis-server,redis-tools/bookworm").unwrap();
        assert_eq!(set.names, ["redis-server", "redis-tools"]);
        assert_eq!(set.suite, Some(Suite::new("bookworm")));
        let set = PackageSet::parse("deb:g++=4:12.2.0-3").unwrap();
        assert_eq!((set.names.len(), set.suite), (1, None));
        for wrong in [
            "deb:",
            "deb:a,,b",
            "deb:gzip-",
            "deb:-o",
            "deb:a b",
            "deb:../x",
            "deb:x/bookwrm",
            "deb:x;y/sid",
        ] {
            let why = PackageSet::parse(wrong).unwrap_err().to_string();
            assert!(!why.contains('\n') && !why.is_empty(), "{why}");
        }
    }

    #[test]
    fn another_suite_or_another_package_is_another_set() {
        let key = |text: &str| PackageSet::parse(text).unwrap().key();
        assert_ne!(key("deb:sqlite3"), key("deb:sqlite3/sid"));
        assert_ne!(key("deb:sqlite3"), key("deb:sqlite"));
        assert_eq!(key("deb:sqlite3"), key("deb:sqlite3"));
    }
}
