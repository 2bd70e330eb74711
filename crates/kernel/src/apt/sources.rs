//! The Debian mirrors that this machine uses, as its apt reports them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::Programs;
use crate::error::KernelError;
use crate::kernel_ref::SUITES;

/// The Debian mirrors and the archive keys of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sites {
    /// The machine's Debian suites, each as (mirror URL, suite).
    own: Vec<(String, String)>,
    /// Path of the file with Debian's archive keys.
    keyring: PathBuf,
}

/// Mirror to use if the machine has no Debian mirror.
const DEFAULT_MAIN: &str = "http://deb.debian.org/debian";
/// Security archive to use if the machine has none.
const DEFAULT_SECURITY: &str = "http://deb.debian.org/debian-security";

/// Possible paths of Debian's archive keys; they differ between releases of Debian.
const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// Suites without separate suites for updates, security and backports.
const ALONE: [&str; 4] = ["sid", "unstable", "experimental", "rc-buggy"];

/// Suffixes of the suites that belong to the same release.
const PARTS: [&str; 6] = [
    "",
    "updates",
    "security",
    "backports",
    "proposed-updates",
    "backports-sloppy",
];

impl Sites {
    /// Reads the package sources of this machine's apt, or of an apt with the configuration file `config`. Fails if apt
    /// cannot be run or Debian's archive keys are not installed.
    ///
    /// `apt-get indextargets` has a clearer output, but prints nothing before the first `apt-get update`. Minimal
    /// images of Debian come without package lists.
    pub fn of_machine(programs: &Programs, config: Option<&Path>) -> Result<Self, KernelError> {
        let output = programs.run(
            "apt-get",
            config,
            &["--print-uris", "update"],
            Path::new("/"),
            Stdio::null(),
        )?;
        // If apt cannot read its sources it prints none, and Debian's default mirror is used.
        let own = own_suites(&String::from_utf8_lossy(&output.stdout));
        Self::new(own, &KEYRINGS.map(PathBuf::from))
    }

    fn new(own: Vec<(String, String)>, keyrings: &[PathBuf]) -> Result<Self, KernelError> {
        match keyrings.iter().find(|path| path.is_file()) {
            Some(keyring) => Ok(Self {
                own,
                keyring: keyring.clone(),
            }),
            None => Err(KernelError::NoKeyring {
                looked: keyrings
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect::<Vec<_>>()
                    .join(" or "),
            }),
        }
    }

    /// Returns the lines of a private sources.list for a suite. If the suite is a whole release, they include its
    /// updates, security and backports, even if the machine does not use them. `testing` has no backports.
    pub fn list_of(&self, suite: &str) -> String {
        let main = self
            .mirror(|suite| !suite.ends_with("-security"))
            .unwrap_or(DEFAULT_MAIN);
        let mut list = self.line(main, suite);
        if ALONE.contains(&suite) || suite.contains('-') {
            return list;
        }
        list += &self.line(main, &format!("{suite}-updates"));
        let security = format!("{suite}-security");
        if let Some(own) = self.mirror(|suite| suite.ends_with("-security")) {
            list += &self.line(own, &security);
        } else {
            // Some mirrors have the security archive next to the main one.
            let beside = format!("{main}-security");
            if main.ends_with("/debian") && beside != DEFAULT_SECURITY {
                list += &self.line(&beside, &security);
            }
            list += &self.line(DEFAULT_SECURITY, &security);
        }
        if suite != "testing" {
            list += &self.line(main, &format!("{suite}-backports"));
        }
        list
    }

    /// Returns the lines of a private sources.list for the Debian suites of the machine. If the machine has none, for
    /// the suites of Debian's stable release.
    pub fn list_of_machine(&self) -> String {
        if self.own.is_empty() {
            return self.list_of("stable");
        }
        self.own
            .iter()
            .map(|(uri, suite)| self.line(uri, suite))
            .collect()
    }

    /// Returns the mirror that is most likely a Debian mirror, among those with a suite for which `fits` is true. Among
    /// equally likely ones, a mirror listed earlier is preferred. `None` if no suite fits.
    fn mirror(&self, fits: impl Fn(&str) -> bool) -> Option<&str> {
        self.own
            .iter()
            .rev()
            .filter(|(_, suite)| fits(suite))
            .map(|(uri, _)| uri.as_str())
            .max_by_key(|uri| likeness(uri))
    }

    fn line(&self, uri: &str, suite: &str) -> String {
        let mut line = String::new();
        // Writing to a String cannot fail.
        let _ = writeln!(
            line,
            "deb [arch=amd64 signed-by={}] {uri} {suite} main",
            self.keyring.display()
        );
        line
    }
}

/// Returns the Debian suites in the output of `apt-get --print-uris update`, each as (mirror, suite).
fn own_suites(printed: &str) -> Vec<(String, String)> {
    let mut own = Vec::new();
    for line in printed.lines() {
        let suite = line
            .strip_prefix('\'')
            .and_then(|line| line.split_once('\''))
            .and_then(|(uri, _)| uri.split_once("/main/binary-"))
            .and_then(|(base, _)| base.rsplit_once("/dists/"))
            .filter(|(site, suite)| is_debian(suite) && !site.starts_with("cdrom:"))
            .map(|(site, suite)| (site.to_owned(), suite.to_owned()));
        own.extend(suite.filter(|suite| !own.contains(suite)));
    }
    own
}

/// Returns true if a suite has a name that Debian uses.
fn is_debian(suite: &str) -> bool {
    let (release, part) = suite.split_once('-').unwrap_or((suite, ""));
    SUITES.contains(&suite) || SUITES.contains(&release) && PARTS.contains(&part)
}

/// Returns how likely a mirror is a Debian mirror; larger is likelier. This is only a guess, because other
/// distributions use the names of Debian's suites too. apt checks the signature in any case.
fn likeness(uri: &str) -> usize {
    let path = uri.ends_with("/debian") || uri.ends_with("/debian-security");
    2 * usize::from(uri.contains("debian.org")) + usize::from(path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Parses apt's output for these entries of a sources.list. The private apt state has no package lists yet.
    fn sites(entries: &str) -> Sites {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        fs::create_dir_all(at.join("lists/partial")).unwrap();
        for (name, text) in [
            ("sources.list", entries.to_owned()),
            ("status", String::new()),
            (
                "apt.conf",
                format!(
                    "Dir::State \"{0}\";\nDir::State::status \"{0}/status\";\nDir::Etc::sourcelist \"{0}/sources.list\";\n\
                     Dir::Etc::sourceparts \"/dev/null\";\n",
                    at.display()
                ),
            ),
        ] {
            fs::write(at.join(name), text).unwrap();
        }
        let mut sites =
            Sites::of_machine(&Programs::default(), Some(&at.join("apt.conf"))).unwrap();
        sites.keyring = "/k.gpg".into();
        sites
    }

    fn lines(list: &str) -> Vec<&str> {
        list.lines()
            .map(|line| {
                line.strip_prefix("deb [arch=amd64 signed-by=/k.gpg] ")
                    .unwrap()
            })
            .collect()
    }

    #[test]
    fn a_machine_that_names_only_the_main_archive_gets_every_suite_of_a_release() {
        let bookworm = [
            "http://deb.debian.org/debian bookworm main",
            "http://deb.debian.org/debian bookworm-updates main",
            "http://deb.debian.org/debian-security bookworm-security main",
            "http://deb.debian.org/debian bookworm-backports main",
        ];
        for own in ["bookworm", "trixie"] {
            let sites = sites(&format!("deb http://deb.debian.org/debian {own} main\n"));
            assert_eq!(lines(&sites.list_of("bookworm")), bookworm);
            assert_eq!(
                lines(&sites.list_of("sid")),
                ["http://deb.debian.org/debian sid main"]
            );
            assert_eq!(
                lines(&sites.list_of_machine()),
                [format!("http://deb.debian.org/debian {own} main")]
            );
        }
    }

    /// Runs only with `PAGETIDE_TEST_NETWORK=1`, because it fetches about 20 MB of package lists.
    #[test]
    fn a_cloud_kernel_of_the_security_suite_is_found_from_a_list_that_names_only_the_main_archive()
    {
        use crate::apt::{Apt, Archive, KernelQuery, candidates};
        if std::env::var_os("PAGETIDE_TEST_NETWORK").is_none_or(|value| value != "1") {
            return pagetide_testing::skip(
                pagetide_testing::Need::Network,
                "PAGETIDE_TEST_NETWORK=1 is not set",
            );
        }
        for own in ["bookworm", "trixie"] {
            let mut sites = sites(&format!("deb http://deb.debian.org/debian {own} main\n"));
            sites.keyring = KEYRINGS[0].into();
            let state = tempfile::tempdir().unwrap();
            let list = sites.list_of("bookworm");
            let mut apt =
                Apt::open(state.path(), "Debian bookworm", &list, Programs::default()).unwrap();
            assert_eq!(apt.update().unwrap(), Vec::<String>::new());
            let found = candidates(&apt, &KernelQuery::Series("6.12".to_owned())).unwrap();
            assert!(found[0].version.contains("deb12"), "{}", found[0].id());
        }
    }

    #[test]
    fn the_machines_own_mirrors_are_used_for_other_releases_too() {
        let sites = sites(
            "deb [arch=amd64] http://mirror.example/debian/ bookworm main contrib\n\
             deb cdrom:[Debian 12]/ bookworm main\n\
             deb-src http://src.example/debian bookworm main\n\
             deb http://mirror.example/security bookworm-security main\n",
        );
        assert_eq!(
            lines(&sites.list_of("trixie")),
            [
                "http://mirror.example/debian trixie main",
                "http://mirror.example/debian trixie-updates main",
                "http://mirror.example/security trixie-security main",
                "http://mirror.example/debian trixie-backports main",
            ]
        );
        assert_eq!(sites.list_of_machine().lines().count(), 2);
    }

    #[test]
    fn a_mirror_of_the_main_archive_is_asked_for_security_before_debians_own() {
        let sites = sites("deb http://mirror.example/debian bookworm main\n");
        let list = sites.list_of("bookworm");
        let security: Vec<&str> = lines(&list)
            .into_iter()
            .filter(|line| line.contains("-security main"))
            .collect();
        assert_eq!(
            security,
            [
                "http://mirror.example/debian-security bookworm-security main",
                "http://deb.debian.org/debian-security bookworm-security main",
            ]
        );
    }

    #[test]
    fn other_vendors_suites_with_debians_names_are_not_taken_for_debian() {
        let sites = sites(
            "deb https://download.docker.com/linux/debian bookworm stable\n\
             deb https://packages.example.com/prod bookworm main\n\
             deb http://ftp.de.debian.org/debian bookworm main\n",
        );
        assert_eq!(
            sites.mirror(|_| true),
            Some("http://ftp.de.debian.org/debian")
        );
    }

    #[test]
    fn a_machine_of_another_distribution_falls_back_to_debians_own_mirror() {
        let sites = sites("deb http://archive.ubuntu.com/ubuntu noble main universe\n");
        assert_eq!(
            lines(&sites.list_of_machine())[0],
            "http://deb.debian.org/debian stable main"
        );
    }

    #[test]
    fn missing_archive_keys_are_an_error_with_a_remedy() {
        let text = Sites::new(Vec::new(), &["/no/such.gpg".into()])
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("/no/such.gpg") && text.contains("debian-archive-keyring"),
            "{text}"
        );
    }
}
