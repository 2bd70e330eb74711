//! The Debian mirrors this machine already uses, read from its own apt sources (sources.list(5)).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::KernelError;

/// One source of binary packages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Source {
    uris: Vec<String>,
    suites: Vec<String>,
    components: Vec<String>,
    signed_by: Option<String>,
}

/// Debian's sites as the machine names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sites {
    /// Mirrors of the main archive.
    main: Vec<String>,
    /// Mirrors of the security archive; empty if the machine names none.
    security: Vec<String>,
    /// Whether the machine takes backports.
    backports: bool,
    /// The machine's own Debian suites, each with its mirror.
    own: Vec<(String, String)>,
    /// Debian's archive keys.
    keyring: PathBuf,
}

/// The mirror of a machine that names none.
const DEFAULT_MAIN: &str = "http://deb.debian.org/debian";

/// Where Debian's archive keys lie, whatever the release.
const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// Names under which Debian's releases are found on its mirrors.
const RELEASES: [&str; 14] = [
    "buster",
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
    "stable",
    "oldstable",
    "oldoldstable",
    "testing",
    "unstable",
    "experimental",
    "rc-buggy",
];

impl Sites {
    /// Reads the sources of the machine, whose apt folder is `etc` (`/etc/apt`).
    pub fn of_machine(etc: &Path) -> Result<Self, KernelError> {
        let mut files = vec![etc.join("sources.list")];
        if let Ok(entries) = fs::read_dir(etc.join("sources.list.d")) {
            files.extend(entries.flatten().map(|entry| entry.path()));
        }
        files.sort_unstable();
        let mut sources = Vec::new();
        for path in files {
            // Unreadable ones may be another user's private mirrors.
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            match path.extension().and_then(|ending| ending.to_str()) {
                Some("sources") => sources.extend(deb822(&text)),
                Some("list") => sources.extend(one_line(&text)),
                _ => {}
            }
        }
        Self::from_sources(&sources, &KEYRINGS.map(PathBuf::from))
    }

    fn from_sources(sources: &[Source], keyrings: &[PathBuf]) -> Result<Self, KernelError> {
        let debian: Vec<&Source> = sources.iter().filter(|source| source.is_debian()).collect();
        let best = |fits: &dyn Fn(&str) -> bool| {
            debian
                .iter()
                .filter(|source| source.suites.iter().any(|suite| fits(suite)))
                .max_by_key(|source| source.likeness())
                .map(|source| source.uris.clone())
                .unwrap_or_default()
        };
        let mut main = best(&|suite| RELEASES.contains(&suite));
        if main.is_empty() {
            main.push(DEFAULT_MAIN.to_owned());
        }
        let security = best(&is_security);
        let backports = debian.iter().any(|source| {
            source
                .suites
                .iter()
                .any(|suite| suite.ends_with("-backports"))
        });
        let own = debian
            .iter()
            .flat_map(|source| {
                source
                    .suites
                    .iter()
                    .flat_map(|suite| source.uris.iter().map(|uri| (uri.clone(), suite.clone())))
            })
            .collect();
        let stated = debian
            .iter()
            .filter_map(|source| source.signed_by.as_ref())
            .map(PathBuf::from);
        let looked: Vec<PathBuf> = keyrings.iter().cloned().chain(stated).collect();
        let Some(keyring) = looked.iter().find(|path| path.is_file()) else {
            let looked: Vec<String> = looked
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            return Err(KernelError::NoKeyring {
                looked: looked.join(" or "),
            });
        };
        let keyring = keyring.clone();
        Ok(Self {
            main,
            security,
            backports,
            own,
            keyring,
        })
    }

    /// Lines for a private sources.list with one suite, and its security and backports where the machine has those.
    pub fn list_of(&self, suite: &str) -> String {
        let mut list = self.lines(&self.main, suite);
        // Rolling suites have no security site, and parts of a suite have none of their own.
        if !["sid", "unstable", "experimental", "rc-buggy"].contains(&suite) && !suite.contains('-')
        {
            list.push_str(&self.lines(&self.security, &format!("{suite}-security")));
            if self.backports && suite != "testing" {
                list.push_str(&self.lines(&self.main, &format!("{suite}-backports")));
            }
        }
        list
    }

    /// Lines with the machine's own Debian suites, or those of Debian's stable release if it has none.
    pub fn list_of_machine(&self) -> String {
        if self.own.is_empty() {
            return self.list_of("stable");
        }
        self.own
            .iter()
            .map(|(uri, suite)| self.lines(std::slice::from_ref(uri), suite))
            .collect()
    }

    fn lines(&self, uris: &[String], suite: &str) -> String {
        let keyring = self.keyring.display();
        uris.iter().fold(String::new(), |mut list, uri| {
            // Writing to a String cannot fail.
            let _ = writeln!(
                list,
                "deb [arch=amd64 signed-by={keyring}] {uri} {suite} main"
            );
            list
        })
    }
}

/// The security archive's suites, in today's form and in that up to Debian 10.
fn is_security(suite: &str) -> bool {
    suite.split_once(['-', '/']).is_some_and(|(release, part)| {
        RELEASES.contains(&release)
            && (part == "security" || part == "updates" && suite.contains('/'))
    })
}

impl Source {
    /// Whether this is an archive of Debian itself: one of its suites, with the component all of them have.
    fn is_debian(&self) -> bool {
        let known = |suite: &String| {
            let (release, rest) = suite.split_once(['-', '/']).unwrap_or((suite, ""));
            RELEASES.contains(&release)
                && [
                    "",
                    "updates",
                    "security",
                    "backports",
                    "proposed-updates",
                    "backports-sloppy",
                ]
                .contains(&rest)
        };
        self.components.iter().any(|component| component == "main") && self.suites.iter().any(known)
    }

    /// How surely it is Debian's: others use its suites' names too. apt checks the signature either way.
    fn likeness(&self) -> usize {
        let ours = self
            .signed_by
            .as_ref()
            .is_some_and(|path| path.contains("debian-archive"));
        let host = self.uris.iter().any(|uri| uri.contains("debian.org"));
        let path = self.uris.iter().any(|uri| {
            let uri = uri.trim_end_matches('/');
            uri.ends_with("/debian") || uri.ends_with("/debian-security")
        });
        4 * usize::from(ours) + 2 * usize::from(host) + usize::from(path)
    }
}

/// Whether apt can fetch from there unattended.
fn fetchable(uri: &str) -> bool {
    !uri.starts_with("cdrom:") && uri.contains(':') && !uri.contains(char::is_whitespace)
}

/// The one-line form: `deb [options] uri suite component…`.
fn one_line(text: &str) -> Vec<Source> {
    text.lines()
        .filter_map(|line| line_source(line.split('#').next().unwrap_or_default().trim()))
        .collect()
}

fn line_source(line: &str) -> Option<Source> {
    let rest = line.strip_prefix("deb")?;
    if !rest.starts_with([' ', '\t', '[']) {
        return None;
    }
    let rest = rest.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let signed_by = options
        .split_whitespace()
        .find_map(|option| option.strip_prefix("signed-by="));
    let mut words = rest.split_whitespace();
    let uri = words.next().filter(|uri| fetchable(uri))?;
    let suite = words.next()?;
    Some(Source {
        uris: vec![uri.to_owned()],
        suites: vec![suite.to_owned()],
        components: words.map(str::to_owned).collect(),
        signed_by: signed_by.map(str::to_owned),
    })
}

/// The paragraph form of `.sources` files.
fn deb822(text: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut paragraph = Vec::new();
    for line in text.lines().chain([""]) {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            sources.extend(paragraph_source(&paragraph));
            paragraph.clear();
        } else {
            paragraph.push(line);
        }
    }
    sources
}

fn paragraph_source(lines: &[&str]) -> Option<Source> {
    let field = |name: &str| -> Option<String> {
        let is_field = |line: &&str| {
            line.split_once(':')
                .is_some_and(|(key, _)| key.eq_ignore_ascii_case(name))
        };
        let at = lines.iter().position(is_field)?;
        let mut value = lines.get(at)?.split_once(':')?.1.trim().to_owned();
        for line in lines
            .iter()
            .skip(at + 1)
            .take_while(|line| line.starts_with([' ', '\t']))
        {
            value.push(' ');
            value.push_str(line.trim());
        }
        Some(value)
    };
    let words = |name: &str| -> Vec<String> {
        field(name)
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    };
    let off = field("Enabled")
        .is_some_and(|value| ["no", "false", "0", "off", "without"].contains(&value.as_str()));
    if off || !words("Types").iter().any(|kind| kind == "deb") {
        return None;
    }
    let mut uris = words("URIs");
    uris.retain(|uri| fetchable(uri));
    // Keys may stand in the file itself; Debian's own keyring serves then.
    let signed_by = field("Signed-By")
        .filter(|value| value.starts_with('/'))
        .map(|value| {
            value
                .split(|c: char| c.is_whitespace() || c == ',')
                .next()
                .unwrap_or_default()
                .to_owned()
        });
    let source = Source {
        uris,
        suites: words("Suites"),
        components: words("Components"),
        signed_by,
    };
    (!source.uris.is_empty()).then_some(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEB822: &str = "Types: deb deb-src\n# a snapshot\nURIs: http://mirror.example/debian\nSuites: bookworm \
                          bookworm-updates\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n\n\
                          Types: deb\nURIs:\n http://mirror.example/debian-security/\nSuites: bookworm-security\nComponents: main\n\n\
                          Types: deb\nURIs: http://off.example/debian\nSuites: trixie\nComponents: main\nEnabled: no\n\n\
                          Types: deb\nURIs: https://deb.nodesource.com/node_20.x\nSuites: nodistro\nComponents: main\n";

    fn sites(sources: &[Source]) -> Sites {
        let keyring = tempfile::NamedTempFile::new().unwrap();
        let mut sites = Sites::from_sources(sources, &[keyring.path().to_owned()]).unwrap();
        sites.keyring = "/k.gpg".into();
        sites
    }

    #[test]
    fn both_forms_of_sources_name_the_same_mirrors() {
        let lines = "# comment\ndeb [arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                     http://mirror.example/debian bookworm main contrib # end\n\
                     deb http://mirror.example/debian bookworm-updates main\n\
                     deb-src http://src.example/debian bookworm main\ndeb cdrom:[Debian 12]/ bookworm main\n\
                     deb http://mirror.example/debian-security/ bookworm-security main\n";
        for sources in [deb822(DEB822), one_line(lines)] {
            let sites = sites(&sources);
            assert_eq!(sites.main, ["http://mirror.example/debian"]);
            assert_eq!(sites.security, ["http://mirror.example/debian-security/"]);
            assert!(!sites.backports);
        }
    }

    #[test]
    fn another_suite_is_taken_from_the_machines_mirror_with_its_security_site() {
        let sites = sites(&deb822(DEB822));
        assert_eq!(
            sites.list_of("trixie"),
            "deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian trixie main\n\
             deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian-security/ trixie-security main\n"
        );
        assert_eq!(
            sites.list_of("sid"),
            "deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian sid main\n"
        );
        assert_eq!(sites.list_of_machine().lines().count(), 3);
    }

    #[test]
    fn backports_are_used_only_where_the_machine_names_them() {
        let with = format!(
            "{DEB822}\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: bookworm-backports\nComponents: main\n"
        );
        assert!(
            sites(&deb822(&with))
                .list_of("bookworm")
                .contains("bookworm-backports")
        );
        assert!(
            !sites(&deb822(DEB822))
                .list_of("bookworm")
                .contains("bookworm-backports")
        );
    }

    #[test]
    fn other_vendors_suites_with_debians_names_are_not_taken_for_debian() {
        let lines = "deb https://download.docker.com/linux/debian bookworm stable\n\
                     deb https://packages.example.com/prod bookworm main\n\
                     deb http://ftp.de.debian.org/debian bookworm main\n";
        assert_eq!(
            sites(&one_line(lines)).main,
            ["http://ftp.de.debian.org/debian"]
        );
    }

    #[test]
    fn a_machine_of_another_distribution_falls_back_to_debians_own_mirror() {
        let lines = "deb http://archive.ubuntu.com/ubuntu noble main universe\n";
        let sites = sites(&one_line(lines));
        assert_eq!(
            (sites.main.as_slice(), sites.security.len()),
            (&[DEFAULT_MAIN.to_owned()][..], 0)
        );
        assert!(sites.list_of_machine().contains("stable"));
    }

    #[test]
    fn missing_archive_keys_are_an_error_with_a_remedy() {
        let text = Sites::from_sources(&[], &["/no/such.gpg".into()])
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("/no/such.gpg") && text.contains("debian-archive-keyring"),
            "{text}"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_sources_file_makes_it_panic(text in "(Types: deb\n|URIs:|Suites: |deb |\\[|\\]|:| |\n|http://x|sid|main){0,20}") {
            let _ = (deb822(&text), one_line(&text));
        }
    }
}
