//! Selection of the packages that make up a requested kernel.

use std::collections::BTreeSet;

use crate::apt::Archive;
use crate::deb::Control;
use crate::error::KernelError;
use crate::kernel::series;
use crate::version;
use pagetide_quantity::nearest;

/// Which kernel is requested from an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelQuery {
    /// The newest cloud kernel of the suite's default series.
    Default,
    /// The newest cloud kernel of this series, or of the releases that begin with this string.
    Series(String),
    /// The package with this name, in this exact version or, without a version, in the newest.
    Package(String, Option<String>),
}

/// The packages to fetch for one kernel: the requested package, followed by its dependencies that are split off from
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Control fields of the packages, in the order in which they were found.
    pub packages: Vec<Control>,
}

impl Choice {
    /// Returns the packages, each as `NAME=VERSION`.
    pub fn ids(&self) -> Vec<String> {
        self.packages.iter().map(Control::id).collect()
    }
}

/// The meta-package that depends on a suite's newest cloud kernel.
const META: &str = "linux-image-cloud-amd64";
/// Prefix and suffixes of the names of cloud kernel packages; the release is in between. Unsigned packages lack only
/// the signature for Secure Boot, and are published before signed packages.
const START: &str = "linux-image-";
const ENDINGS: [&str; 2] = ["-cloud-amd64-unsigned", "-cloud-amd64"];

/// Returns the packages that match the query, best first: newest version first, then unsigned before signed; backports
/// come last. Fetches nothing. Fails if no package matches.
pub fn candidates(
    archive: &dyn Archive,
    wanted: &KernelQuery,
) -> Result<Vec<Control>, KernelError> {
    match wanted {
        KernelQuery::Default => {
            let series = default_series(archive)?;
            newest(archive, series.as_deref())
        }
        KernelQuery::Series(series) => newest(archive, Some(series)),
        KernelQuery::Package(name, version) => Ok(vec![exact(archive, name, version.as_deref())?]),
    }
}

/// Returns the package `first` together with the packages split off from it. Fails if one of them is not in the
/// archive.
pub fn with_parts(archive: &dyn Archive, first: Control) -> Result<Choice, KernelError> {
    let mut names: BTreeSet<String> = BTreeSet::from([first.package.clone()]);
    let mut packages = vec![first];
    let mut at = 0;
    while let Some(package) = packages.get(at) {
        let version = package.version.clone();
        let parts: Vec<String> = package
            .parts()
            .into_iter()
            .filter(|part| names.insert(part.clone()))
            .collect();
        for part in parts {
            packages.push(exact(archive, &part, Some(&version))?);
        }
        at += 1;
    }
    Ok(Choice { packages })
}

/// Returns the release in the name of a cloud kernel's package. `None` for other packages, and for meta-packages, whose
/// names contain fewer than three numbers.
fn release_of(package: &str) -> Option<&str> {
    let rest = package.strip_prefix(START)?;
    let release = ENDINGS
        .iter()
        .find_map(|ending| rest.strip_suffix(ending))?;
    let numbers = release
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .next()?;
    (numbers.split('.').filter(|part| !part.is_empty()).count() >= 3).then_some(release)
}

/// Returns the series of the kernel on which the suite's newest meta-package depends; `None` if there is no such
/// kernel. Backports are ignored, because their kernels come from another suite.
fn default_series(archive: &dyn Archive) -> Result<Option<String>, KernelError> {
    let mut metas = archive.show(&[META])?;
    metas.retain(|meta| !is_backport(meta));
    metas.sort_by(|a, b| version::compare(&a.version, &b.version));
    let parts = metas.pop().map(|meta| meta.parts()).unwrap_or_default();
    Ok(parts
        .iter()
        .find_map(|part| release_of(part))
        .map(|release| series(release).to_owned()))
}

fn is_backport(package: &Control) -> bool {
    package.version.contains("~bpo")
}

/// Returns the cloud kernels of the series, newest first. Unsigned packages come before signed ones of the same
/// version. Backports come last, so that they are used only if the suite itself has no matching kernel. Fails if there
/// is none.
fn newest(archive: &dyn Archive, series: Option<&str>) -> Result<Vec<Control>, KernelError> {
    let names = archive.names(START)?;
    let all: BTreeSet<&str> = names.iter().filter_map(|name| release_of(name)).collect();
    let fitting: Vec<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| {
            release_of(name)
                .is_some_and(|release| series.is_none_or(|series| belongs(release, series)))
        })
        .collect();
    let mut candidates = if fitting.is_empty() {
        Vec::new()
    } else {
        archive.show(&fitting)?
    };
    candidates.sort_by(|a, b| {
        let unsigned = |package: &Control| package.package.ends_with("-unsigned");
        is_backport(a)
            .cmp(&is_backport(b))
            .then_with(|| version::compare(&b.version, &a.version))
            .then_with(|| unsigned(b).cmp(&unsigned(a)))
    });
    if candidates.is_empty() {
        let there: BTreeSet<&str> = all
            .iter()
            .map(|release| super::select::series(release))
            .collect();
        let there: Vec<&str> = there.into_iter().collect();
        return Err(KernelError::NoPackage {
            wanted: series.map_or_else(
                || "a cloud kernel for amd64".to_owned(),
                |s| format!("a cloud kernel {s}"),
            ),
            place: archive.place(),
            hint: if there.is_empty() {
                "name another suite, such as `debian:trixie`".to_owned()
            } else {
                format!("it has {}", there.join(", "))
            },
        });
    }
    Ok(candidates)
}

/// Returns true if the release belongs to the series. Numbers are compared as a whole: `6.1` matches 6.1.0-56 but not
/// 6.12.1.
fn belongs(release: &str, series: &str) -> bool {
    release
        .strip_prefix(series)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn exact(archive: &dyn Archive, name: &str, wanted: Option<&str>) -> Result<Control, KernelError> {
    let mut found = archive.show(&[name])?;
    found.retain(|package| package.package == name);
    found.sort_by(|a, b| version::compare(&a.version, &b.version));
    let versions: Vec<String> = found
        .iter()
        .map(|package| package.version.clone())
        .collect();
    let chosen = found
        .into_iter()
        .rev()
        .find(|package| wanted.is_none_or(|wanted| package.version == wanted));
    if let Some(chosen) = chosen {
        return Ok(chosen);
    }
    let hint = if versions.is_empty() {
        let names = archive.names(START)?;
        match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "add the suite, as in `deb:NAME/sid`".to_owned(),
        }
    } else {
        format!("it has {}", versions.join(", "))
    };
    let wanted = wanted.map_or_else(|| name.to_owned(), |version| format!("{name}={version}"));
    Err(KernelError::NoPackage {
        wanted,
        place: archive.place(),
        hint,
    })
}

#[cfg(test)]
pub mod double {
    //! An archive for tests, which is a list of packages.

    use std::path::{Path, PathBuf};

    use super::*;

    /// An archive that consists of the listed packages. A download copies the package file from `files`, and fails if
    /// it is not there.
    #[derive(Default)]
    pub struct Shelf {
        pub packages: Vec<Control>,
        pub files: PathBuf,
        pub updates: u32,
        pub age: Option<u64>,
        pub offline: bool,
        /// Packages that the archive contains after the next update; `None` if the update changes nothing.
        pub news: Option<Vec<Control>>,
    }

    impl Archive for Shelf {
        fn place(&self) -> String {
            "the shelf".into()
        }

        fn update(&mut self) -> Result<Vec<String>, KernelError> {
            self.updates += 1;
            if self.offline {
                return Err(KernelError::Apt {
                    attempt: "update the lists".into(),
                    said: "no network".into(),
                });
            }
            self.age = Some(0);
            if let Some(news) = self.news.take() {
                self.packages = news;
            }
            Ok(Vec::new())
        }

        fn age(&self) -> Option<u64> {
            self.age
        }

        fn names(&self, start: &str) -> Result<Vec<String>, KernelError> {
            let names = self.packages.iter().map(|package| package.package.clone());
            Ok(names.filter(|name| name.starts_with(start)).collect())
        }

        fn show(&self, names: &[&str]) -> Result<Vec<Control>, KernelError> {
            let wanted = |package: &&Control| names.contains(&package.package.as_str());
            Ok(self.packages.iter().filter(wanted).cloned().collect())
        }

        fn download(&self, package: &Control, into: &Path) -> Result<PathBuf, KernelError> {
            let name = format!("{}_{}_amd64.deb", package.package, package.version);
            let (from, to) = (self.files.join(&name), into.join(&name));
            std::fs::copy(&from, &to).map_err(|_| KernelError::Apt {
                attempt: format!("fetch {name}"),
                said: "404 Not Found".into(),
            })?;
            Ok(to)
        }
    }

    /// Returns a package with this name, version and dependencies.
    pub fn package(name: &str, version: &str, depends: &str) -> Control {
        Control {
            package: name.into(),
            version: version.into(),
            architecture: "amd64".into(),
            depends: depends.into(),
            ..Control::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::double::{Shelf, package};
    use super::*;

    fn choose(archive: &dyn Archive, wanted: &KernelQuery) -> Result<Choice, KernelError> {
        with_parts(archive, candidates(archive, wanted)?.remove(0))
    }

    fn bookworm() -> Shelf {
        let packages = vec![
            package(
                META,
                "6.1.176-1",
                "linux-image-6.1.0-50-cloud-amd64 (= 6.1.176-1)",
            ),
            package(
                META,
                "6.1.192-2",
                "linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)",
            ),
            package(
                META,
                "6.12.9-1~bpo12+1",
                "linux-image-6.12.9+bpo-cloud-amd64 (= 6.12.9-1~bpo12+1)",
            ),
            package(
                "linux-image-6.1.0-9-cloud-amd64-unsigned",
                "6.1.20-1",
                "kmod",
            ),
            package(
                "linux-image-6.1.0-56-cloud-amd64-unsigned",
                "6.1.192-2",
                "kmod, linux-base (>= 4.3~)",
            ),
            package("linux-image-6.1.0-56-cloud-amd64", "6.1.192-2", "kmod"),
            package("linux-image-6.1.0-56-cloud-amd64-dbg", "6.1.192-2", ""),
            package("linux-image-6.1.0-56-amd64", "6.1.192-2", ""),
            package("linux-image-6.12-cloud-amd64", "6.12.117-1~deb12u1", ""),
            package(
                "linux-image-6.12.117+deb12-cloud-amd64-unsigned",
                "6.12.117-1~deb12u1",
                "kmod",
            ),
            package(
                "linux-image-6.12.99+deb12-cloud-amd64-unsigned",
                "6.12.99-1~deb12u1",
                "kmod",
            ),
        ];
        Shelf {
            packages,
            ..Shelf::default()
        }
    }

    fn first(shelf: &Shelf, wanted: &KernelQuery) -> String {
        choose(shelf, wanted).unwrap().ids().remove(0)
    }

    #[test]
    fn a_suite_stands_for_the_newest_kernel_of_its_own_series() {
        assert_eq!(
            first(&bookworm(), &KernelQuery::Default),
            "linux-image-6.1.0-56-cloud-amd64-unsigned=6.1.192-2"
        );
    }

    #[test]
    fn a_series_is_not_taken_for_another_that_begins_alike() {
        let shelf = bookworm();
        let of = |series: &str| first(&shelf, &KernelQuery::Series(series.into()));
        assert_eq!(
            of("6.12"),
            "linux-image-6.12.117+deb12-cloud-amd64-unsigned=6.12.117-1~deb12u1"
        );
        assert_eq!(
            of("6.1"),
            "linux-image-6.1.0-56-cloud-amd64-unsigned=6.1.192-2"
        );
        assert_eq!(
            of("6.1.0-9"),
            "linux-image-6.1.0-9-cloud-amd64-unsigned=6.1.20-1"
        );
    }

    #[test]
    fn a_backport_is_taken_only_where_the_suite_has_nothing_of_its_own() {
        let mut shelf = bookworm();
        for (release, version) in [
            ("6.12.200+bpo", "6.12.200-1~bpo12+1"),
            ("6.16.3+bpo", "6.16.3-1~bpo12+1"),
        ] {
            let name = format!("linux-image-{release}-cloud-amd64-unsigned");
            shelf.packages.push(package(&name, version, "kmod"));
        }
        let of = |series: &str| first(&shelf, &KernelQuery::Series(series.into()));
        assert!(of("6.12").ends_with("=6.12.117-1~deb12u1"));
        assert!(of("6.16").ends_with("=6.16.3-1~bpo12+1"));
    }

    #[test]
    fn a_series_that_is_not_there_is_answered_with_those_that_are() {
        let text = choose(&bookworm(), &KernelQuery::Series("6.6".into()))
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("6.6") && text.contains("it has 6.1, 6.12"),
            "{text}"
        );
    }

    #[test]
    fn split_packages_are_followed_to_the_last() {
        let v = "7.2.13-1";
        let packages = vec![
            package(
                META,
                v,
                "linux-base-cloud-amd64 (= 7.2.13-1), linux-image-7.2.13+deb14-cloud-amd64 (= 7.2.13-1)",
            ),
            package(
                "linux-image-7.2.13+deb14-cloud-amd64",
                v,
                "dracut | x, linux-base-7.2 (= 7.2.13-1), linux-binary-7.2 (= 7.2.13-1), linux-modules-7.2 (= 7.2.13-1)",
            ),
            package("linux-binary-7.2", v, "linux-base-7.2 (= 7.2.13-1)"),
            package("linux-modules-7.2", v, "kmod, linux-base-7.2 (= 7.2.13-1)"),
            package("linux-base-7.2", v, ""),
        ];
        let ids = choose(
            &Shelf {
                packages,
                ..Shelf::default()
            },
            &KernelQuery::Default,
        )
        .unwrap()
        .ids();
        let names: Vec<&str> = ids.iter().filter_map(|id| id.split('=').next()).collect();
        assert_eq!(
            names,
            [
                "linux-image-7.2.13+deb14-cloud-amd64",
                "linux-base-7.2",
                "linux-binary-7.2",
                "linux-modules-7.2"
            ]
        );
    }

    #[test]
    fn an_exact_package_or_version_that_is_not_there_is_answered_with_the_nearest() {
        let slip = KernelQuery::Package("linux-image-6.1.0-56-cloud-amd46".into(), None);
        let text = choose(&bookworm(), &slip).unwrap_err().to_string();
        assert!(
            text.contains("did you mean `linux-image-6.1.0-56-cloud-amd64`"),
            "{text}"
        );
        let old = KernelQuery::Package(
            "linux-image-6.1.0-9-cloud-amd64-unsigned".into(),
            Some("6.1.19-1".into()),
        );
        let text = choose(&bookworm(), &old).unwrap_err().to_string();
        assert!(
            text.contains("=6.1.19-1") && text.contains("it has 6.1.20-1"),
            "{text}"
        );
    }
}
