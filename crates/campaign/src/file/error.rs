//! What is wrong with a campaign file: where, which key, and what was probably meant.

use std::path::PathBuf;

use pagetide_outside::remedy;

/// Why a campaign file is refused.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("reading campaign {path}: {source}; {}", unreadable_remedy(.source))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Something in it is wrong.
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
    /// Whether a user's words were wrong, rather than that the machine could not.
    pub fn is_user_error(&self) -> bool {
        matches!(self, Self::Wrong { .. })
    }
}

/// What is wrong on a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is no TOML.
    #[error("this is no TOML: {message}")]
    Syntax {
        /// The parser's reason, in one line.
        message: String,
    },
    /// A key that means nothing here.
    #[error("unknown key `{key}` in {place}: {}", place_or_meant(*.belongs, .nearest.as_ref(), .known))]
    UnknownKey {
        /// The key.
        key: String,
        /// Where it stands.
        place: String,
        /// Where it would mean something.
        belongs: Option<&'static str>,
        /// The nearest that means something.
        nearest: Option<String>,
        /// What means something, as advice.
        known: String,
    },
    /// A share is asked for of sizes that stand for themselves.
    #[error(
        "--scale has nothing to scale: this file names no scale, so its sizes are meant as they stand; use --memory"
    )]
    NoScale,
    /// A share that is no positive number.
    #[error("--scale {scale} is no size: give a number above 0")]
    BadScale {
        /// The share as given.
        scale: String,
    },
    /// A key that must be there.
    #[error("`{key}` is missing in {place}: add {example}")]
    Missing {
        /// The key.
        key: &'static str,
        /// Where it is missing.
        place: String,
        /// How it may look.
        example: &'static str,
    },
    /// A value of the wrong kind.
    #[error("`{key}` is {found}: give {wanted}")]
    Kind {
        /// The key.
        key: String,
        /// What stands there.
        found: &'static str,
        /// What belongs there.
        wanted: &'static str,
    },
    /// A value that cannot be.
    #[error("`{key}` cannot be `{value}`: {why}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// Why not, and what to write instead.
        why: String,
    },
    /// A name that stands for nothing.
    #[error("there is no {what} `{name}`: {}", meant(.nearest.as_ref(), .known))]
    UnknownName {
        /// What kind of name.
        what: String,
        /// The name.
        name: String,
        /// The nearest that stands for something.
        nearest: Option<String>,
        /// What does, as advice.
        known: String,
    },
    /// A metric that no scenario it is said of has.
    #[error("there is no metric `{name}` here: {}", meant(.nearest.as_ref(), .known))]
    UnknownMetric {
        /// The name.
        name: String,
        /// The nearest that is one.
        nearest: Option<String>,
        /// What else is, as advice.
        known: String,
    },
    /// The bytes are no text.
    #[error("this line is not UTF-8 text: save the file as UTF-8")]
    NotText,
    /// A name that is given twice.
    #[error("{what} `{name}` stands here for the second time: give each a name of its own")]
    Twice {
        /// What kind of name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// More of something than anybody runs.
    #[error("there are more than {most} {what}: leave some out, or split the campaign")]
    TooMany {
        /// What there are too many of.
        what: String,
        /// The limit.
        most: usize,
    },
    /// Keys that exclude each other.
    #[error("`{key}` has no place beside `{other}`: remove one of them")]
    Conflict {
        /// The one.
        key: &'static str,
        /// The other.
        other: &'static str,
    },
}

/// What to do about a campaign file that cannot be read.
fn unreadable_remedy(why: &std::io::Error) -> String {
    match why.kind() {
        std::io::ErrorKind::NotFound => {
            "`pagetide list campaigns` shows those that are there".to_owned()
        }
        std::io::ErrorKind::Other => "rename it".to_owned(),
        _ => remedy(why, None),
    }
}

/// What was probably meant, and where the key itself belongs.
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

/// What was probably meant, or what else there is.
fn meant(nearest: Option<&String>, known: &str) -> String {
    match nearest {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "remove it".to_owned(),
        None => known.to_owned(),
    }
}
