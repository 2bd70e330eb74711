//! Errors in a file of references, with their position.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::limits::MAX_REFS;

/// A file of references cannot be used.
#[derive(Debug, Error)]
#[error("cannot use the references in {}: {reason}", path.display())]
pub struct FileError {
    /// Path of the file of references.
    pub path: PathBuf,
    /// What is wrong with the file, and at which position.
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

/// Position of an error in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// Line number in a text form, from 1.
    Line(u64),
    /// Number of a reference in the binary form, from 1.
    Reference(u64),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Reference(number) => write!(f, "reference {number}"),
        }
    }
}

/// Reasons why references cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// A field is not a whole number, or a line is too long.
    #[error(
        "line {line}: \"{text}\" is no whole number; write a page index, or a page and its count"
    )]
    NotANumber {
        /// Line number, from 1.
        line: u64,
        /// Text of the field, shortened and with unprintable bytes escaped.
        text: String,
    },
    /// A line contains no number.
    #[error("line {line} is empty; write a page index, or a page and its count, in every line")]
    EmptyLine {
        /// Line number, from 1.
        line: u64,
    },
    /// A page index or count is negative.
    #[error("line {line}: {text} is negative; pages and counts start at 0")]
    Negative {
        /// Line number, from 1.
        line: u64,
        /// The negative number, as written.
        text: String,
    },
    /// A page index is outside of the range.
    #[error(
        "{place}: page {page} is outside the range of {pages} page(s), which start at 0; give a larger range or correct the file"
    )]
    OutOfRange {
        /// Position of the page index in the file.
        place: Position,
        /// The page index, as written.
        page: String,
        /// Number of pages in the range.
        pages: u32,
    },
    /// A line has a different number of fields than the first line, or more than two.
    #[error(
        "line {line} has {found} number(s) instead of {expected}; write either a page index in every line, or a page and its count"
    )]
    OtherForm {
        /// Line number, from 1.
        line: u64,
        /// Number of fields in this line.
        found: usize,
        /// Number of fields that the first line requires: 1 or 2.
        expected: usize,
    },
    /// The pages of a file of counts are not in ascending order.
    #[error(
        "line {line}: page {page} comes after page {before}; list every page once, in ascending order (sort -n)"
    )]
    Unordered {
        /// Line number, from 1.
        line: u64,
        /// The page index in this line.
        page: u32,
        /// The page in the previous line.
        before: u32,
    },
    /// The file has no references.
    #[error("there is no reference in it; give at least one")]
    Empty,
    /// The file has more references than [`MAX_REFS`](crate::MAX_REFS).
    #[error("{place}: there are more than {MAX_REFS} references; shorten the file")]
    TooMany {
        /// Position where the limit was exceeded.
        place: Position,
    },
    /// The first bytes of the file match no known form.
    #[error(
        "it is no file of references; give text with one page index a line, or a binary file made by this tool"
    )]
    NotReferences,
    /// The file has an unknown version of the binary form.
    #[error(
        "it is of version {version} of the binary form; read it with the tool that made it, or update this one"
    )]
    Version {
        /// Version number in the file.
        version: u8,
    },
    /// The file in binary form is truncated.
    #[error("it ends within {place}; copy or make it again")]
    Truncated {
        /// Position of the incomplete reference.
        place: Position,
    },
    /// The file in binary form is inconsistent or does not match its checksum.
    #[error("it is damaged ({what}); copy or make it again")]
    Damaged {
        /// The inconsistency, as a short phrase.
        what: &'static str,
    },
    /// The operating system could not read the file.
    #[error("{0}; check the path, its permissions and the device")]
    Io(io::Error),
    /// The references cannot be written in binary form.
    #[error(
        "they cannot be written in the binary form: {0}; see that there is room and that the file stays as it is"
    )]
    Copy(io::Error),
}

// The message already contains the error of the operating system, so it is not also returned as the source.
impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
