//! Kernel references: the values that a user may type after `--kernel`.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::KernelError;
use pagetide_quantity::command::in_backticks;
use pagetide_quantity::nearest;

/// Possible forms of a value of `--kernel`, each with its meaning. Help, man page and guide are generated from this
/// list.
pub const FORMS: [(&str, &str); 8] = [
    (
        "debian:SUITE",
        "the newest cloud kernel of the suite's own series: bookworm 6.1, trixie 6.12, sid the newest",
    ),
    (
        "debian:SUITE/SERIES",
        "the newest of another series there, or one release: debian:bookworm/6.12",
    ),
    (
        "deb:PACKAGE[=VERSION][/SUITE]",
        "that package, from the machine's own suites or from another",
    ),
    (
        "PATH.deb",
        "a package file; parts split off from it are found beside it",
    ),
    (
        "image:FILE[,modules:DIR][,config:FILE]",
        "a bzImage, the folder of its modules, its configuration",
    ),
    ("DIR", "a built kernel tree, or a build folder made with O="),
    (
        "FILE",
        "a bzImage whose modules and configuration lie where a distribution puts them",
    ),
    (
        "NAME",
        "a kernel in the cache, by release, label, series or start of its digest",
    ),
];

/// Returns the possible forms of a value of `--kernel`, as lines of a help text.
pub fn forms() -> String {
    let form = |(form, meaning): (&str, &str)| format!("  {form}\n      {meaning}\n");
    FORMS.map(form).concat()
}

/// A kernel reference: a kernel as a user names it after `--kernel`, in one of the [`FORMS`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum KernelRef {
    /// The newest cloud kernel of a suite or of one series in a suite.
    Debian {
        /// Name of the suite.
        suite: Suite,
        /// A series (`6.12`) or a release; `None` means the suite's default series.
        series: Option<String>,
    },
    /// A Debian package, by name.
    Package {
        /// Name of the package.
        name: String,
        /// Exact version of the package; `None` means the newest.
        version: Option<String>,
        /// The suite to search; `None` means the suites that the machine uses.
        suite: Option<Suite>,
    },
    /// A boot image with its modules and configuration.
    Image {
        /// Path of the boot image (bzImage).
        image: PathBuf,
        /// Folder with the layout of `/lib/modules/RELEASE`; `None` to search the usual paths.
        modules: Option<PathBuf>,
        /// The `.config` file with which the image was built; `None` to search the usual paths.
        config: Option<PathBuf>,
    },
    /// Path of a package file, an image or a built tree. Which of them it is, is determined when the path is opened.
    Path(PathBuf),
    /// A kernel in the cache, by release, label, series or digest.
    Cached(String),
    /// A kernel that was built from source on this machine. Contains the first digits of its digest, followed by a
    /// description of what it was built from.
    Built(String),
}

/// The name of a Debian suite, such as `bookworm` or `sid`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Suite(String);

/// Names of known suites, for suggestions and to recognise Debian's archives. Other names are accepted too.
pub(crate) const SUITES: [&str; 15] = [
    "bookworm",
    "trixie",
    "sid",
    "forky",
    "duke",
    "bullseye",
    "buster",
    "stable",
    "testing",
    "unstable",
    "oldstable",
    "oldoldstable",
    "experimental",
    "rc-buggy",
    "bookworm-backports",
];

impl Suite {
    /// Creates a suite with this name, which is not checked.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// Returns the name of the suite.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn parse(text: &str, whole: &str) -> Result<Self, KernelError> {
        let valid = !text.is_empty()
            && text
                .bytes()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-');
        let known = SUITES.contains(&text);
        match nearest(text, SUITES) {
            Some(near) if !known && text.len() > 2 => {
                Err(unknown(whole, &format!("did you mean the suite `{near}`?")))
            }
            _ if !valid => Err(unknown(
                whole,
                "name a Debian suite, such as `debian:bookworm` or `debian:sid`",
            )),
            _ => Ok(Self::new(text)),
        }
    }
}

impl Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn unknown(text: &str, hint: &str) -> KernelError {
    KernelError::UnknownReference {
        text: text.to_owned(),
        hint: hint.to_owned(),
    }
}

/// Prefixes of values of `--kernel`, for suggestions in messages.
const PREFIXES: [&str; 3] = ["debian", "deb", "image"];

/// Examples of values for `--kernel`, for suggestions in messages.
pub const EXAMPLES: [&str; 4] = [
    "debian:bookworm",
    "debian:bookworm/6.12",
    "debian:trixie",
    "debian:sid",
];

impl FromStr for KernelRef {
    type Err = KernelError;

    fn from_str(text: &str) -> Result<Self, KernelError> {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.contains('\0') {
            return Err(unknown(
                text,
                "try `debian:bookworm`, a .deb file, an image or a built kernel tree",
            ));
        }
        if let Some((prefix, rest)) = trimmed
            .split_once(':')
            .filter(|(prefix, _)| !prefix.contains(['/', '.']))
        {
            return match prefix {
                "debian" => debian(rest, trimmed),
                "deb" => package(rest, trimmed),
                "image" => image(rest, trimmed),
                "built" => built(rest, trimmed),
                "source" => Err(unknown(
                    trimmed,
                    &format!(
                        "it is to be built first: {} does so with --source and --patch, and in campaign files",
                        in_backticks("run SCENARIO")
                    ),
                )),
                other => Err(unknown(
                    trimmed,
                    &match nearest(other, PREFIXES) {
                        Some(near) => format!("did you mean `{near}:{rest}`?"),
                        None => "known forms begin with `debian:`, `deb:` or `image:`".to_owned(),
                    },
                )),
            };
        }
        let path = Path::new(trimmed);
        let is_path = trimmed.contains('/')
            || matches!(trimmed, "." | "..")
            || path
                .extension()
                .is_some_and(|ending| ending.eq_ignore_ascii_case("deb"));
        Ok(if is_path {
            Self::Path(path.to_owned())
        } else {
            Self::Cached(trimmed.to_owned())
        })
    }
}

fn debian(rest: &str, whole: &str) -> Result<KernelRef, KernelError> {
    let (suite, series) = match rest.split_once('/') {
        Some((suite, series)) => (suite, Some(series)),
        None => (rest, None),
    };
    let plausible = |series: &str| {
        series.starts_with(|c: char| c.is_ascii_digit()) && !series.contains(['/', ' ', ':'])
    };
    if !series.is_none_or(plausible) {
        return Err(unknown(
            whole,
            "a series is written as in `debian:bookworm/6.12`",
        ));
    }
    Ok(KernelRef::Debian {
        suite: Suite::parse(suite, whole)?,
        series: series.map(str::to_owned),
    })
}

/// Parses `PACKAGE[=VERSION][/SUITE]`. Accepts only the characters of Debian Policy 5.6.1 and 5.6.12, so that apt
/// cannot interpret the name as an option.
fn package(rest: &str, whole: &str) -> Result<KernelRef, KernelError> {
    let (rest, suite) = match rest.rsplit_once('/') {
        Some((rest, suite)) => (rest, Some(Suite::parse(suite, whole)?)),
        None => (rest, None),
    };
    let (name, version) = match rest.split_once('=') {
        Some((name, version)) => (name, Some(version)),
        None => (rest, None),
    };
    let plain = |text: &str, more: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    if !plain(name, "+-.") || !version.is_none_or(|version| plain(version, "+-.~:")) {
        return Err(unknown(
            whole,
            "a package is written as in `deb:linux-image-cloud-amd64` or `deb:NAME=VERSION`",
        ));
    }
    Ok(KernelRef::Package {
        name: name.to_owned(),
        version: version.map(str::to_owned),
        suite,
    })
}

fn built(rest: &str, whole: &str) -> Result<KernelRef, KernelError> {
    let digest = rest.split(' ').next().unwrap_or_default();
    if digest.len() < 6 || !digest.bytes().all(|c| c.is_ascii_hexdigit()) {
        return Err(unknown(
            whole,
            &format!(
                "a kernel that was built here is named by its digest, as {} shows it",
                in_backticks("kernel list")
            ),
        ));
    }
    Ok(KernelRef::Built(rest.to_owned()))
}

fn image(rest: &str, whole: &str) -> Result<KernelRef, KernelError> {
    // Paths may contain commas, so the parts are separated by comma and keyword together.
    let mut marks: Vec<(usize, &str)> = [",modules:", ",config:"]
        .into_iter()
        .filter_map(|mark| rest.find(mark).map(|at| (at, mark)))
        .collect();
    marks.sort_unstable();
    let path_until = |from: usize, until: Option<usize>| {
        let part = rest
            .get(from..until.unwrap_or(rest.len()))
            .unwrap_or_default();
        if part.is_empty() {
            Err(unknown(
                whole,
                "an image is written as in `image:FILE,modules:FOLDER`",
            ))
        } else {
            Ok(PathBuf::from(part))
        }
    };
    let image = path_until(0, marks.first().map(|(at, _)| *at))?;
    let (mut modules, mut config) = (None, None);
    for (index, (at, mark)) in marks.iter().enumerate() {
        let path = path_until(at + mark.len(), marks.get(index + 1).map(|(at, _)| *at))?;
        *(if *mark == ",config:" {
            &mut config
        } else {
            &mut modules
        }) = Some(path);
    }
    Ok(KernelRef::Image {
        image,
        modules,
        config,
    })
}

impl Display for KernelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Debian { suite, series } => {
                write!(f, "debian:{suite}")?;
                series.iter().try_for_each(|series| write!(f, "/{series}"))
            }
            Self::Package {
                name,
                version,
                suite,
            } => {
                write!(f, "deb:{name}")?;
                version
                    .iter()
                    .try_for_each(|version| write!(f, "={version}"))?;
                suite.iter().try_for_each(|suite| write!(f, "/{suite}"))
            }
            Self::Image {
                image,
                modules,
                config,
            } => {
                write!(f, "image:{}", image.display())?;
                modules
                    .iter()
                    .try_for_each(|path| write!(f, ",modules:{}", path.display()))?;
                config
                    .iter()
                    .try_for_each(|path| write!(f, ",config:{}", path.display()))
            }
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Cached(name) => f.write_str(name),
            Self::Built(rest) => write!(f, "built:{rest}"),
        }
    }
}

impl From<KernelRef> for String {
    fn from(reference: KernelRef) -> Self {
        reference.to_string()
    }
}

impl TryFrom<String> for KernelRef {
    type Error = KernelError;

    fn try_from(text: String) -> Result<Self, KernelError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> KernelRef {
        text.parse().unwrap()
    }

    #[test]
    fn each_form_is_told_from_the_others() {
        let suite = Suite::new("bookworm");
        assert_eq!(
            parse("debian:bookworm"),
            KernelRef::Debian {
                suite: suite.clone(),
                series: None
            }
        );
        assert_eq!(
            parse("debian:bookworm/6.12"),
            KernelRef::Debian {
                suite: suite.clone(),
                series: Some("6.12".into())
            }
        );
        assert_eq!(
            parse("deb:linux-image-6.12.1+deb12=6.12.1-1~x/bookworm"),
            KernelRef::Package {
                name: "linux-image-6.12.1+deb12".into(),
                version: Some("6.12.1-1~x".into()),
                suite: Some(suite),
            }
        );
        assert_eq!(
            parse("image:/boot/a,b,modules:/lib/m,config:/c"),
            KernelRef::Image {
                image: "/boot/a,b".into(),
                modules: Some("/lib/m".into()),
                config: Some("/c".into()),
            }
        );
        assert_eq!(
            parse("image:k,config:c"),
            KernelRef::Image {
                image: "k".into(),
                modules: None,
                config: Some("c".into()),
            }
        );
        assert_eq!(parse("x.deb"), KernelRef::Path("x.deb".into()));
        assert_eq!(parse("../linux"), KernelRef::Path("../linux".into()));
        assert_eq!(
            parse("6.1.0-56-cloud-amd64"),
            KernelRef::Cached("6.1.0-56-cloud-amd64".into())
        );
    }

    #[test]
    fn slips_are_answered_with_what_was_meant() {
        for (typed, meant) in [
            ("debain:sid", "`debian:sid`"),
            ("debian:bookwrom", "`bookworm`"),
            ("debian:trixi/6.12", "`trixie`"),
            ("debian:bookworm/new", "debian:bookworm/6.12"),
            ("debian:", "debian:bookworm"),
            ("imag:/x", "`image:/x`"),
            ("deb:-o=x", "deb:NAME=VERSION"),
            ("image:,modules:/x", "image:FILE,modules:FOLDER"),
        ] {
            let text = typed.parse::<KernelRef>().unwrap_err().to_string();
            assert!(
                text.contains(meant) && text.contains(typed),
                "{typed}: {text}"
            );
        }
    }

    #[test]
    fn every_form_shown_in_help_is_understood() {
        for (form, _) in FORMS {
            let filled = form
                .replace("SUITE", "sid")
                .replace("SERIES", "6.12")
                .replace("PACKAGE", "linux")
                .replace("VERSION", "1-1")
                .replace(['[', ']'], "");
            assert_eq!(parse(&filled).to_string(), filled);
        }
    }

    #[test]
    fn a_suite_yet_to_come_is_taken_as_it_is() {
        assert_eq!(parse("debian:quokka").to_string(), "debian:quokka");
    }

    proptest! {
        #[test]
        fn whatever_parses_is_written_so_that_it_parses_to_the_same(text in "(debian|deb|image|built)?:?[a-z0-9./,:=+~-]{0,24}") {
            if let Ok(reference) = text.parse::<KernelRef>() {
                prop_assert_eq!(reference.to_string().parse::<KernelRef>().unwrap(), reference);
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            let _ = text.parse::<KernelRef>();
        }
    }
}
