//! Errors in campaign files: the line, the key, and the most likely intention.

use std::path::PathBuf;

use pagetide_outside::remedy;

/// Why a campaign file is refused.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read.
    #[error("reading campaign {path}: {source}; {}", unreadable_remedy(.source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Its content is wrong.
    #[error("{file}:{line}: {problem}")]
    Wrong {
        /// The file.
        file: String,
        /// Line, counted from 1.
        line: usize,
        /// What is wrong.
        problem: Box<Problem>,
    },
}

impl FileError {
    /// True if the user's input was wrong, as opposed to a failure of the machine.
    pub fn is_user_error(&self) -> bool {
        matches!(self, Self::Wrong { .. })
    }
}

/// What is wrong on a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is not valid TOML.
    #[error("this is no TOML: {message}")]
    Syntax {
        /// The parser's reason, in one line.
        message: String,
    },
    /// A key that is not known in this table.
    #[error("unknown key `{key}` in {place}: {}", place_or_meant(*.belongs, .nearest.as_ref(), .known))]
    UnknownKey {
        /// The key.
        key: String,
        /// The table.
        place: String,
        /// The table to which the key belongs, if any.
        belongs: Option<&'static str>,
        /// The nearest known key, or `None` if none is close.
        nearest: Option<String>,
        /// The known keys, as advice.
        known: String,
    },
    /// `--scale` is given, but the file states no sizes of an original.
    #[error(
        "--scale has nothing to scale: this file names no scale, so its sizes are meant as they stand; use --memory"
    )]
    NoScale,
    /// A scale that is not a positive number.
    #[error("--scale {scale} is no size: give a number above 0")]
    BadScale {
        /// The share as given.
        scale: String,
    },
    /// A mandatory key is missing.
    #[error("`{key}` is missing in {place}: add {example}")]
    Missing {
        /// The key.
        key: &'static str,
        /// The table in which it is missing.
        place: String,
        /// An example of it.
        example: &'static str,
    },
    /// A value of the wrong type.
    #[error("`{key}` is {found}: give {wanted}")]
    Kind {
        /// The key.
        key: String,
        /// The type found.
        found: &'static str,
        /// The type expected.
        wanted: &'static str,
    },
    /// A value out of range or malformed.
    #[error("`{key}` cannot be `{value}`: {why}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// Why it is refused, and what to write instead.
        why: String,
    },
    /// An unknown name.
    #[error("there is no {what} `{name}`: {}", meant(.nearest.as_ref(), .known))]
    UnknownName {
        /// What kind of name.
        what: String,
        /// The name.
        name: String,
        /// The nearest known name, or `None` if none is close.
        nearest: Option<String>,
        /// The known names, as advice.
        known: String,
    },
    /// A metric that none of the scenarios concerned has.
    #[error("there is no metric `{name}` here: {}", meant(.nearest.as_ref(), .known))]
    UnknownMetric {
        /// The name.
        name: String,
        /// The nearest metric, or `None` if none is close.
        nearest: Option<String>,
        /// The other metrics, as advice.
        known: String,
    },
    /// The file is not UTF-8 text.
    #[error("this line is not UTF-8 text: save the file as UTF-8")]
    NotText,
    /// A name is given twice.
    #[error("{what} `{name}` is defined twice: give each its own name")]
    Twice {
        /// What kind of name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// Too many of something.
    #[error("there are more than {most} {what}: leave some out, or split the campaign")]
    TooMany {
        /// What there are too many of.
        what: String,
        /// The limit.
        most: usize,
    },
    /// Keys that exclude each other.
    #[error("`{key}` cannot be combined with `{other}`: remove one of them")]
    Conflict {
        /// The first key.
        key: &'static str,
        /// The second key.
        other: &'static str,
    },
}

/// The remedy if a campaign file cannot be read.
fn unreadable_remedy(why: &std::io::Error) -> String {
    match why.kind() {
        std::io::ErrorKind::NotFound => {
            "`pagetide list campaigns` shows those that are there".to_owned()
        }
        std::io::ErrorKind::Other => "rename it".to_owned(),
        _ => remedy(why, None),
    }
}

/// The table to which the key belongs, or the most likely intention.
fn place_or_meant(place: Option<&str>, nearest: Option<&String>, known: &str) -> String {
    match (place.map(under), nearest) {
        (Some(place), Some(name)) => format!("did you mean `{name}`? It belongs {place} itself"),
        (Some(place), None) => format!("it belongs {place}"),
        (None, nearest) => meant(nearest, known),
    }
}

fn under(place: &str) -> String {
    if place.starts_with('[') {
        format!("under {place}")
    } else {
        place.to_owned()
    }
}

/// The most likely intention, or the known names.
fn meant(nearest: Option<&String>, known: &str) -> String {
    match nearest {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "remove it".to_owned(),
        None => known.to_owned(),
    }
}
