//! Debian packages of programs: found with all that they depend on and fetched by apt, unpacked by us. Nothing is installed, and no
//! script of a package runs.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};

use crate::apt::{Apt, Archive};
use crate::cache::Cache;
use crate::deb::Package;
use crate::digest::hex;
use crate::error::KernelError;
use crate::kernel_ref::Suite;
use crate::lock::Lock;
use crate::remote::{is_stale, update};
use crate::resolve::Freshness;
use crate::step::{Step, Watch};
use pagetide_quantity::nearest;

/// How a set of packages is named: `deb:PACKAGE[,PACKAGE…][/SUITE]`.
const SCHEME: &str = "deb:";

/// Packages of a suite, or of the machine's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSet {
    /// Names, or `NAME=VERSION`.
    pub names: Vec<String>,
    /// The suite.
    pub suite: Option<Suite>,
}

impl PackageSet {
    /// Whether a text is meant to name packages.
    pub fn is_one(text: &str) -> bool {
        text.starts_with(SCHEME)
    }

    /// Reads `deb:PACKAGE[,PACKAGE…][/SUITE]`.
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

    /// The folder of the set in the cache: the same packages of the same suite have one.
    fn key(&self) -> String {
        let suite = self.suite.as_ref().map_or("", Suite::as_str);
        let text = format!("{suite}\n{}", self.names.join("\n"));
        hex(&Sha256::digest(text)[..12])
    }
}

/// A name as Debian has them (Policy 5.6.1), with a version behind it perhaps. A `-` at the end would ask apt to remove it.
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
    /// The contents of packages and of all that they depend on, a plain tar archive each, in a fixed order. What was fetched once
    /// stays as it is until newer ones are asked for.
    pub fn packages(
        &self,
        set: &PackageSet,
        freshness: Freshness,
        watch: &mut Watch,
    ) -> Result<Vec<PathBuf>, KernelError> {
        let all = self.root().join("packages");
        fs::create_dir_all(&all).map_err(KernelError::cache("making", &all))?;
        let gate = all.join("lock");
        let _gate = Lock::wait(&gate).map_err(KernelError::cache("locking", &gate))?;
        let folder = all.join(set.key());
        if freshness == Freshness::Pinned && folder.is_dir() {
            // The time of its last use decides when it is removed.
            if let Ok(opened) = File::open(&folder) {
                let _ = opened.set_modified(SystemTime::now());
            }
            return contents(&folder);
        }
        let fresh = all.join("new");
        let _ = fs::remove_dir_all(&fresh);
        let (debs, tars) = (fresh.join("debs"), fresh.join("tars"));
        for folder in [&debs.join("partial"), &tars] {
            fs::create_dir_all(folder).map_err(KernelError::cache("making", folder))?;
        }
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
            take_out(&file, &tars)?;
        }
        let _ = fs::remove_dir_all(&folder);
        fs::rename(&tars, &folder).map_err(KernelError::cache("making", &folder))?;
        let _ = fs::remove_dir_all(&fresh);
        contents(&folder)
    }
}

/// Has apt fetch packages with all that they depend on; says which is not there where it does not know one.
fn fetch(apt: &Apt, names: &[String], into: &Path) -> Result<(), KernelError> {
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

/// Files of a folder with this ending, by name.
fn sorted(folder: &Path, ending: &str) -> Result<Vec<PathBuf>, KernelError> {
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

/// Writes what a package installs as a plain tar archive.
fn take_out(package: &Path, folder: &Path) -> Result<(), KernelError> {
    let opened = Package::open(package)?;
    let name = package.file_stem().unwrap_or_default();
    let to = folder.join(name).with_added_extension("tar");
    let mut file = File::create_new(&to).map_err(KernelError::cache("making", &to))?;
    io::copy(&mut opened.member("data.tar")?, &mut file)
        .map_err(|cause| KernelError::decode(package, "data.tar", cause))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
