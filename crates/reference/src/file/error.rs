//! What can be wrong with a file of references, and where.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::pattern::MAX_REFS;

/// A file of references cannot be used.
#[derive(Debug, Error)]
#[error("cannot use the references in {}: {reason}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it, and where.
    pub reason: ReadError,
}

impl FileError {
    pub(crate) fn new(path: &Path, reason: ReadError) -> Self {
        Self {
            path: path.to_owned(),
            reason,
        }
    }
}

/// Where in a file something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line, counted from 1.
    Line(u64),
    /// A reference of the binary form, counted from 1.
    Reference(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Reference(number) => write!(f, "reference {number}"),
        }
    }
}

/// Why references cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// A field is no whole number.
    #[error(
        "line {line}: \"{text}\" is no whole number; write a page index, or a page and its count"
    )]
    NotANumber {
        /// Line, counted from 1.
        line: u64,
        /// The field, shortened and with unprintable bytes escaped.
        text: String,
    },
    /// A line without a number.
    #[error("line {line} is empty; write a page index, or a page and its count, in every line")]
    EmptyLine {
        /// Line, counted from 1.
        line: u64,
    },
    /// A number is below zero.
    #[error("line {line}: {text} is negative; pages and counts start at 0")]
    Negative {
        /// Line, counted from 1.
        line: u64,
        /// The number as given.
        text: String,
    },
    /// A page index lies outside the range.
    #[error(
        "{place}: page {page} is outside the range of {pages} page(s), which start at 0; give a larger range or correct the file"
    )]
    OutOfRange {
        /// Where it stands.
        place: Place,
        /// The index as given.
        page: String,
        /// Pages in the range.
        pages: u32,
    },
    /// A line has more or fewer numbers than the first line, or more than two.
    #[error(
        "line {line} has {found} number(s) instead of {expected}; write either a page index in every line, or a page and its count"
    )]
    OtherForm {
        /// Line, counted from 1.
        line: u64,
        /// Numbers in this line.
        found: usize,
        /// Numbers in the first line, at most two.
        expected: usize,
    },
    /// The pages of a file of counts do not ascend.
    #[error(
        "line {line}: page {page} comes after page {before}; list every page once, in ascending order (sort -n)"
    )]
    Unordered {
        /// Line, counted from 1.
        line: u64,
        /// The page in this line.
        page: u32,
        /// The page before it.
        before: u32,
    },
    /// There are no references.
    #[error("there is no reference in it; give at least one")]
    Empty,
    /// There are more references than a string can have.
    #[error("{place}: there are more than {MAX_REFS} references; shorten the file")]
    TooMany {
        /// Where the limit was passed.
        place: Place,
    },
    /// The file begins as no form does.
    #[error(
        "it is no file of references; give text with one page index a line, or a binary file made by this tool"
    )]
    NotReferences,
    /// The binary form is of a version that is not known.
    #[error(
        "it is of version {version} of the binary form; read it with the tool that made it, or update this one"
    )]
    Version {
        /// Version in the file.
        version: u8,
    },
    /// The binary form ends early.
    #[error("it ends within {place}; copy or make it again")]
    Truncated {
        /// The reference that is incomplete.
        place: Place,
    },
    /// The binary form contradicts itself or its checksum.
    #[error("it is damaged ({what}); copy or make it again")]
    Damaged {
        /// What does not fit.
        what: &'static str,
    },
    /// The operating system refused.
    #[error("{0}; check the path, its permissions and the device")]
    Io(io::Error),
    /// The binary form could not be written.
    #[error(
        "they cannot be written in the binary form: {0}; see that there is room and that the file stays as it is"
    )]
    Copy(io::Error),
}

// The message holds the system's words already, so the cause is not offered as a source to be printed again.
impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
