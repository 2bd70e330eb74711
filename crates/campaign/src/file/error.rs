//! Errors in campaign files. Messages name the line, the key and the most likely intention.

use std::path::PathBuf;

use pagetide_outside::remedy;
use pagetide_quantity::command::in_backticks;

/// Why a campaign file is refused.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The campaign file cannot be read.
    #[error("reading campaign {path}: {source}; {}", unreadable_remedy(.source))]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The content of the file is wrong.
    #[error("{file}:{line}: {problem}")]
    Wrong {
        /// Path of the file, for messages.
        file: String,
        /// Line of the mistake, counted from 1.
        line: usize,
        /// Description of the mistake.
        problem: Box<Problem>,
    },
}

impl FileError {
    /// True if the user's input was wrong, as opposed to a failure of the machine.
    pub fn is_user_error(&self) -> bool {
        matches!(self, Self::Wrong { .. })
    }
}

/// Description of a mistake in a campaign file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The workload that the file describes is refused.
    #[error("{message}")]
    Workload {
        /// What is wrong with the workload, and what to change.
        message: String,
    },
    /// The file is not valid TOML.
    #[error("this is no TOML: {message}")]
    Syntax {
        /// The TOML parser's reason, in one line.
        message: String,
    },
    /// A table has a key that is not known there.
    #[error("unknown key `{key}` in {place}: {}", place_or_meant(*.belongs, .nearest.as_ref(), .known))]
    UnknownKey {
        /// Name of the unknown key.
        key: String,
        /// Header of the table that has the key, for the message.
        place: String,
        /// Header of the table in which the key would be allowed, if any.
        belongs: Option<&'static str>,
        /// Nearest known key; `None` if none is close.
        nearest: Option<String>,
        /// Known keys of the table, for the advice.
        known: String,
    },
    /// `--scale` is given, but the file does not state the sizes of an original experiment.
    #[error(
        "--scale has nothing to scale: this file names no scale, so its sizes are meant as they stand; use --memory"
    )]
    NoScale,
    /// The scale given with `--scale` is not a positive number.
    #[error("--scale {scale} is no size: give a number above 0")]
    BadScale {
        /// The scale as given.
        scale: String,
    },
    /// A mandatory key is missing.
    #[error("`{key}` is missing in {place}: add {example}")]
    Missing {
        /// Name of the missing key.
        key: &'static str,
        /// Name of the table that lacks the key.
        place: String,
        /// Example of the key with a value.
        example: &'static str,
    },
    /// A value has the wrong type.
    #[error("`{key}` is {found}: give {wanted}")]
    Kind {
        /// The key whose value is wrong.
        key: String,
        /// Type of the value found.
        found: &'static str,
        /// Type of value expected.
        wanted: &'static str,
    },
    /// A value is out of range or malformed.
    #[error("`{key}` cannot be `{value}`: {why}")]
    Value {
        /// The key whose value is refused.
        key: String,
        /// The value as given.
        value: String,
        /// Why the value is refused, and what to write instead.
        why: String,
    },
    /// A name is not known.
    #[error("there is no {what} `{name}`: {}", meant(.nearest.as_ref(), .known))]
    UnknownName {
        /// Kind of the name, such as "scenario".
        what: String,
        /// The unknown name, as given.
        name: String,
        /// Nearest known name; `None` if none is close.
        nearest: Option<String>,
        /// Known names, for the advice.
        known: String,
    },
    /// A metric exists in none of the scenarios concerned.
    #[error("there is no metric `{name}` here: {}", meant(.nearest.as_ref(), .known))]
    UnknownMetric {
        /// Name of the unknown metric, as given.
        name: String,
        /// Nearest known metric; `None` if none is close.
        nearest: Option<String>,
        /// Known metrics, for the advice.
        known: String,
    },
    /// The file is not UTF-8 text.
    #[error("this line is not UTF-8 text: save the file as UTF-8")]
    NotText,
    /// A name is given twice.
    #[error("{what} `{name}` is defined twice: give each its own name")]
    Twice {
        /// Kind of the name, such as "variant".
        what: &'static str,
        /// The name given twice.
        name: String,
    },
    /// The file has too many items of some kind.
    #[error("there are more than {most} {what}: leave some out, or split the campaign")]
    TooMany {
        /// Kind of item that exceeds the limit.
        what: String,
        /// Maximum number of items of this kind.
        most: usize,
    },
    /// Two keys that exclude each other are both given.
    #[error("`{key}` cannot be combined with `{other}`: remove one of them")]
    Conflict {
        /// One of the two keys.
        key: &'static str,
        /// The other of the two keys.
        other: &'static str,
    },
}

/// Returns advice for a campaign file that cannot be read.
fn unreadable_remedy(why: &std::io::Error) -> String {
    match why.kind() {
        std::io::ErrorKind::NotFound => {
            format!(
                "{} shows those that are there",
                in_backticks("list campaigns")
            )
        }
        std::io::ErrorKind::Other => "rename it".to_owned(),
        _ => remedy(why, None),
    }
}

/// Returns advice on an unknown key: the nearest known key and the table in which the key is allowed. If there is
/// neither, all known keys.
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

/// Returns advice for an unknown name: the nearest known name, else `known`, or to remove the name if `known` is empty.
fn meant(nearest: Option<&String>, known: &str) -> String {
    match nearest {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "remove it".to_owned(),
        None => known.to_owned(),
    }
}
