//! The request for a kernel: a source, a configuration, patches.
//!
//! A recipe has a text form, which can be used as a kernel's name:
//! `source:SOURCE[,config:FILE][,patch:FILE]…[,first:N][,control]`.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::SourceError;

/// Kernel source of a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceRef {
    /// Debian's source package of a series.
    Debian {
        /// The Debian suite that contains the package, such as `bookworm`.
        suite: String,
        /// The kernel series, such as `6.12`.
        series: String,
        /// True if the user named the suite; false if it is the default.
        said: bool,
    },
    /// A git tree of the user.
    Git {
        /// Path of the tree's folder.
        folder: PathBuf,
        /// The revision to build; `None` for `HEAD`.
        revision: Option<String>,
    },
}

/// The default Debian suite. Its backported kernel is the default kernel of other commands.
const SUITE: &str = "bookworm";
/// The kernel series whose Debian configuration is used for a git tree.
const SERIES: &str = "6.12";

impl FromStr for SourceRef {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let unknown = |hint: &str| {
            Err(SourceError::UnknownSource {
                text: text.to_owned(),
                hint: hint.to_owned(),
            })
        };
        if let Some(rest) = text.strip_prefix("debian:") {
            let (suite, series, said) = match rest.split_once('/') {
                Some((suite, series)) => (suite, series, true),
                None => (SUITE, rest, false),
            };
            let is_series = series.starts_with(|c: char| c.is_ascii_digit())
                && series.chars().all(|c| c.is_ascii_digit() || c == '.');
            let is_suite = !suite.is_empty()
                && suite
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            if !is_series || !is_suite {
                return unknown("Debian's are written as in `debian:6.12` or `debian:trixie/6.12`");
            }
            return Ok(Self::Debian {
                suite: suite.to_owned(),
                series: series.to_owned(),
                said,
            });
        }
        if Path::new(text).is_dir() {
            return Ok(Self::Git {
                folder: text.into(),
                revision: None,
            });
        }
        match text.rsplit_once('@') {
            Some((folder, revision)) if Path::new(folder).is_dir() && is_revision(revision) => {
                Ok(Self::Git {
                    folder: folder.into(),
                    revision: Some(revision.to_owned()),
                })
            }
            _ => unknown("give `debian:6.12`, the folder of a git tree, or FOLDER@REVISION"),
        }
    }
}

impl SourceRef {
    /// Returns suite and series of the Debian configuration to use with this source.
    pub(crate) fn debian_config(&self) -> (&str, &str) {
        match self {
            Self::Debian { suite, series, .. } => (suite, series),
            Self::Git { .. } => (SUITE, SERIES),
        }
    }
}

/// Returns true if git would take the text as a revision, not as an option.
fn is_revision(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('-') && !text.contains(char::is_whitespace)
}

impl Display for SourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Debian {
                suite,
                series,
                said,
            } => match said {
                true => write!(f, "debian:{suite}/{series}"),
                false => write!(f, "debian:{series}"),
            },
            Self::Git { folder, revision } => {
                write!(f, "{}", folder.display())?;
                revision
                    .iter()
                    .try_for_each(|revision| write!(f, "@{revision}"))
            }
        }
    }
}

/// Configuration of a kernel to build, other than pagetide's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigRef {
    /// Debian's configuration of its cloud kernels, written `debian`.
    Debian,
    /// Options in this file, which override pagetide's own options.
    File(PathBuf),
}

impl From<&str> for ConfigRef {
    fn from(text: &str) -> Self {
        match text {
            "debian" => Self::Debian,
            path => Self::File(path.into()),
        }
    }
}

impl ConfigRef {
    /// Returns a description of the configuration, which is stored with a built kernel.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Debian => "Debian's configuration".to_owned(),
            Self::File(path) => path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
        }
    }
}

impl Display for ConfigRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Debian => f.write_str("debian"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Everything that determines a kernel: source, configuration and patches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// Source of the kernel.
    pub source: SourceRef,
    /// Configuration of the kernel; `None` for pagetide's own.
    pub config: Option<ConfigRef>,
    /// Files and folders with patches, in the order in which they are applied.
    pub patches: Vec<PathBuf>,
    /// Number of patches that are applied, counted from the first; `None` for all.
    pub first: Option<usize>,
    /// True to build a control: instead of applying the patches, a nop is inserted.
    pub control: bool,
}

impl Recipe {
    /// Prefix of a recipe's text form.
    pub const PREFIX: &str = "source:";

    /// Returns true if a kernel name is the text form of a recipe.
    pub fn is_recipe(name: &str) -> bool {
        name.starts_with(Self::PREFIX)
    }

    /// Returns the same recipe without patches.
    #[must_use]
    pub fn base(&self) -> Self {
        Self {
            patches: Vec::new(),
            first: None,
            control: false,
            ..self.clone()
        }
    }
}

/// How the parts of a recipe's text form begin. Paths may contain commas, so a part begins only at a comma followed by
/// a keyword.
const MARKS: [&str; 4] = [",config:", ",patch:", ",first:", ",control"];

impl FromStr for Recipe {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let rest = text.strip_prefix(Self::PREFIX).unwrap_or(text);
        let mut marks: Vec<(usize, &str)> = MARKS
            .iter()
            .flat_map(|mark| rest.match_indices(mark))
            .filter(|(at, mark)| *mark != ",control" || at + mark.len() == rest.len())
            .collect();
        marks.sort_unstable();
        let until = |index: usize| marks.get(index).map_or(rest.len(), |(at, _)| *at);
        let mut recipe = Self {
            source: rest.get(..until(0)).unwrap_or_default().parse()?,
            config: None,
            patches: Vec::new(),
            first: None,
            control: false,
        };
        for (index, (at, mark)) in marks.iter().enumerate() {
            let value = rest
                .get(at + mark.len()..until(index + 1))
                .unwrap_or_default();
            match *mark {
                ",control" => recipe.control = true,
                _ if value.is_empty() => {
                    return Err(SourceError::UnknownSource {
                        text: text.to_owned(),
                        hint: "a file is missing, as in `source:debian:6.12,patch:my.patch`"
                            .to_owned(),
                    });
                }
                ",first:" => match value.parse() {
                    Ok(count) => recipe.first = Some(count),
                    Err(_) => {
                        return Err(SourceError::UnknownSource {
                            text: text.to_owned(),
                            hint: "first: takes a number of patches".to_owned(),
                        });
                    }
                },
                ",config:" => recipe.config = Some(value.into()),
                _ => recipe.patches.push(value.into()),
            }
        }
        Ok(recipe)
    }
}

impl Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, self.source)?;
        self.config
            .iter()
            .try_for_each(|config| write!(f, ",config:{config}"))?;
        self.patches
            .iter()
            .try_for_each(|path| write!(f, ",patch:{}", path.display()))?;
        self.first
            .iter()
            .try_for_each(|count| write!(f, ",first:{count}"))?;
        if self.control {
            f.write_str(",control")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_written_as_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().display();
        for text in [
            "source:debian:6.12".to_owned(),
            "source:debian:trixie/6.12,config:my,x.config,patch:a,b.patch,patch:/c/d.patch"
                .to_owned(),
            "source:debian:6.12,patch:a.patch,control".to_owned(),
            "source:debian:6.12,config:debian,patch:a.patch".to_owned(),
            "source:debian:6.12,patch:a.mbox,first:2".to_owned(),
            format!("source:{tree},patch:control,y.patch"),
            format!("source:{tree}@v6.12-rc1~3"),
        ] {
            let recipe: Recipe = text.parse().unwrap();
            assert_eq!(recipe.to_string(), text);
        }
        let recipe: Recipe = "source:debian:6.12,config:c,patch:a,patch:b"
            .parse()
            .unwrap();
        assert_eq!(recipe.patches, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(recipe.base().to_string(), "source:debian:6.12,config:c");
    }

    #[test]
    fn what_names_no_source_is_answered_with_the_forms() {
        for text in [
            "debian:sid",
            "debian:/6.12",
            "/no/such/tree",
            "",
            "debian:6.12;x",
        ] {
            let error = text.parse::<SourceRef>().unwrap_err().to_string();
            assert!(error.contains("debian:6.12"), "{text}: {error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let hostile = format!("{}@--upload-pack=x", folder.path().display());
        assert!(hostile.parse::<SourceRef>().is_err());
    }
}
