//! Errors in requests to the oracle: policies, parameters, costs and files of references.

use std::path::PathBuf;

use thiserror::Error;

/// An invalid policy, parameter, value or range in a request.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum ParameterError {
    /// No policy has the given name.
    #[error("there is no policy `{name}`{}: `pagetide ideal --policies` lists them", near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default())]
    NoPolicy {
        /// Name that was given.
        name: String,
        /// The nearest known name, or `None` if none is close.
        near: Option<&'static str>,
    },
    /// The closing bracket is missing.
    #[error("`{text}` lacks its closing bracket: write it as name(parameter=value)")]
    Unclosed {
        /// Text that was given.
        text: String,
    },
    /// The policy has no parameter with the given name.
    #[error("{policy} has no parameter `{parameter}`; it has {}", list(known))]
    Unknown {
        /// Name of the policy.
        policy: &'static str,
        /// Name of the parameter that was given.
        parameter: String,
        /// Parameter names that the policy has.
        known: Vec<&'static str>,
    },
    /// A value is not a number.
    #[error("`{text}` is no number for `{parameter}`: write it as {parameter}=VALUE")]
    NotANumber {
        /// Name of the parameter.
        parameter: String,
        /// Text that was given.
        text: String,
    },
    /// A value is out of bounds.
    #[error("{parameter}={value} is out of bounds: give a number from {least} to {most}")]
    Bounds {
        /// Name of the parameter.
        parameter: &'static str,
        /// Value that was given.
        value: f64,
        /// Smallest allowed value.
        least: f64,
        /// Largest allowed value.
        most: f64,
    },
    /// A range of values cannot be parsed.
    #[error(
        "`{text}` is no range: write it as parameter=FIRST:LAST:STEPS, such as small=0.01:0.5:50"
    )]
    Range {
        /// Text that was given.
        text: String,
    },
    /// Ranges were given together with several policies.
    #[error("--sweep tries one policy's parameters: name it with --policy")]
    SweepOfMany,
}

fn list(known: &[&'static str]) -> String {
    if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    }
}

/// Returns the message for a column that cannot be determined: the columns of the table, and how to name one.
fn column(asked: Option<&str>, columns: usize, names: &[String]) -> String {
    let lack = match asked {
        Some(asked) => format!("it has no one column {asked}"),
        None => "it is a table, and which of its columns holds the ids is not known".to_owned(),
    };
    let there = if names.is_empty() {
        format!("{columns} and no header")
    } else {
        names.join(", ")
    };
    format!("{lack}; give --format csv:NAME or csv:NUMBER, of the columns that it has ({there})")
}

/// The cost of a write-back is not a finite number from 0.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error(
    "`{given}` is no cost of a write-back: give a finite number of faults from 0, such as 1 or 0.5"
)]
pub struct WriteCostError {
    /// Text that was given.
    pub given: String,
}

/// A file of references cannot be used.
#[derive(Debug, Error)]
#[error("cannot use the references in {}: {reason}", path.display())]
pub struct ReferenceError {
    /// Path of the file.
    pub path: PathBuf,
    /// Why the file cannot be used.
    pub reason: ReferenceErrorKind,
}

/// Why references cannot be read from a file.
#[derive(Debug, Error)]
pub enum ReferenceErrorKind {
    /// The file has no references.
    #[error("there is no reference in it; give at least one")]
    Empty,
    /// A binary file ends within an entry.
    #[error(
        "it ends within entry {entry}, after {rest} of its {bytes} bytes; copy it again, or name another format with --format if it is no {form} file"
    )]
    Truncated {
        /// Number of the entry, counted from 1.
        entry: u64,
        /// Number of bytes of the entry that are present.
        rest: usize,
        /// Size of an entry in bytes.
        bytes: usize,
        /// Name of the format.
        form: &'static str,
    },
    /// A line does not match the format.
    #[error(
        "line {line}: \"{text}\" is no {expected}; keep to one format in a file, and name it with --format if it was told wrongly"
    )]
    Line {
        /// Number of the line, counted from 1.
        line: u64,
        /// Text of the line, shortened.
        text: String,
        /// What the format requires here.
        expected: &'static str,
    },
    /// A binary entry does not match the format.
    #[error(
        "entry {entry} is no {expected}; copy the file again, or name another format with --format"
    )]
    Entry {
        /// Number of the entry, counted from 1.
        entry: u64,
        /// What the format requires here.
        expected: &'static str,
    },
    /// One line or entry covers more pages than is plausible.
    #[error(
        "{place} covers {pages} pages of 4 KiB at once, more than {}; correct it, or name another format with --format",
        crate::MAX_PAGES_AT_ONCE
    )]
    LongRequest {
        /// The line or entry, in words.
        place: String,
        /// Number of pages that the line or entry covers.
        pages: u64,
    },
    /// The beginning of a file does not match the requested format.
    #[error(
        "it cannot be read as {form}: {reason}; copy it again, or name another format with --format"
    )]
    Beginning {
        /// Name of the requested format.
        form: &'static str,
        /// Why the beginning does not match.
        reason: &'static str,
    },
    /// A file states how many entries follow, but has more or fewer.
    #[error(
        "{what} says that {promised} follow, and {found} do; copy the file again, or make it anew"
    )]
    Count {
        /// The part of the file that states the number.
        what: &'static str,
        /// Number of entries that the file states.
        promised: u64,
        /// Number of entries found.
        found: u64,
    },
    /// No single column of the table could be identified as the one that contains IDs.
    #[error("{}", column(asked.as_deref(), *columns, names))]
    Column {
        /// The requested column; `None` if no column was requested.
        asked: Option<String>,
        /// Number of columns in the table.
        columns: usize,
        /// Column names from the header; empty without a header.
        names: Vec<String>,
    },
    /// The contents of the file match no format.
    #[error(
        "its contents fit no format; name one with --format: {}, or csv:COLUMN",
        known.join(", ")
    )]
    Unknown {
        /// Names of all formats, as the command line takes them.
        known: Vec<&'static str>,
    },
    /// The contents of the file match several formats.
    #[error("its contents fit several formats; name one with --format: {}", names.join(" or "))]
    Ambiguous {
        /// Names of the matching formats, as on the command line.
        names: Vec<&'static str>,
    },
    /// The file has more references than can be counted.
    #[error("it has more than {} references; shorten it", crate::MAX_REFERENCES)]
    TooLong,
    /// The file has more distinct pages than tables can hold.
    #[error("it has more than {} distinct pages; sample it", crate::MAX_PAGES)]
    TooManyPages,
    /// The tables for the pages would need more than half of the memory that this process can have.
    #[error(
        "its pages, {pages} and more, cannot be numbered in {}, half of the memory at hand; estimate its curve with --curve --sample 0.01", pagetide_quantity::Bytes(*memory)
    )]
    Memory {
        /// Number of distinct pages read so far.
        pages: usize,
        /// Bytes that the tables may use.
        memory: u64,
    },
    /// A sample is too small for an estimate: it has too few pages, or the estimate's standard error is too large.
    #[error(
        "a share of {rate} of its pages is {pages}: too few to tell anything; sample more of them, with --sample {enough}"
    )]
    SmallSample {
        /// Number of pages in the sample.
        pages: u32,
        /// The requested fraction of the pages.
        rate: f64,
        /// A fraction that gives enough pages.
        enough: f64,
    },
    /// The file's format does not state which references are writes.
    #[error(
        "files of the form {form} do not say which references write; ask about write-backs of a scenario, or of a file of the form lackey, dynamorio, vscsi, msr or twitter"
    )]
    NoWrites {
        /// Name of the format, as on the command line.
        form: &'static str,
    },
    /// The table of which references are writes would need more than a quarter of the memory that this process can
    /// have.
    #[error(
        "which of its references write, {references} and more, cannot be kept in {}, a quarter of the memory at hand; leave write-backs out", pagetide_quantity::Bytes(*memory)
    )]
    TooManyWrites {
        /// Number of references read so far.
        references: u64,
        /// Number of bytes that the table may use.
        memory: u64,
    },
    /// A reference file of pagetide is damaged or invalid.
    #[error("{0}")]
    Reference(#[from] pagetide_reference::ReadError),
    /// The operating system reported an error, or compressed data is damaged.
    #[error("{0}; check the path, its permissions and whether the file is whole")]
    Io(std::io::Error),
}

impl From<std::io::Error> for ReferenceErrorKind {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
