//! What can be wrong with what the oracle is asked.

use std::path::PathBuf;

use thiserror::Error;

/// A policy or its parameter was asked for wrongly.
#[derive(Debug, Error, Clone, PartialEq)]
pub enum ParameterError {
    /// No policy has this name.
    #[error("there is no policy `{name}`{}: `pagetide ideal --policies` lists them", near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default())]
    NoPolicy {
        /// The name given.
        name: String,
        /// The nearest known one.
        near: Option<&'static str>,
    },
    /// A bracket is missing.
    #[error("`{text}` lacks its closing bracket: write it as name(parameter=value)")]
    Unclosed {
        /// The text given.
        text: String,
    },
    /// The policy has no such parameter.
    #[error("{policy} has no parameter `{parameter}`; it has {}", list(known))]
    Unknown {
        /// The policy.
        policy: &'static str,
        /// The name given.
        parameter: String,
        /// The names there are.
        known: Vec<&'static str>,
    },
    /// A value is no number.
    #[error("`{text}` is no number for `{parameter}`: write it as {parameter}=VALUE")]
    NotANumber {
        /// The parameter.
        parameter: String,
        /// The text given.
        text: String,
    },
    /// A value lies outside its bounds.
    #[error("{parameter}={value} is out of bounds: give a number from {least} to {most}")]
    Bounds {
        /// The parameter.
        parameter: &'static str,
        /// The value given.
        value: f64,
        /// Smallest value.
        least: f64,
        /// Largest value.
        most: f64,
    },
    /// A range of values cannot be read.
    #[error(
        "`{text}` is no range: write it as parameter=FIRST:LAST:STEPS, such as small=0.01:0.5:50"
    )]
    Range {
        /// The text given.
        text: String,
    },
    /// Ranges were given for several policies.
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

/// Says which columns a table has and how to name one.
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

/// What a write-back costs was given wrongly.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error(
    "`{given}` is no cost of a write-back: give a finite number of faults from 0, such as 1 or 0.5"
)]
pub struct WriteCostError {
    /// What was given.
    pub given: String,
}

/// A file of references cannot be used.
#[derive(Debug, Error)]
#[error("cannot use the references in {}: {reason}", path.display())]
pub struct ReferenceError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: Trouble,
}

/// Why references cannot be read.
#[derive(Debug, Error)]
pub enum Trouble {
    /// There are none.
    #[error("there is no reference in it; give at least one")]
    Empty,
    /// A binary file does not end with a whole entry.
    #[error(
        "it ends within entry {entry}, after {rest} of its {bytes} bytes; copy it again, or name another format with --format if it is no {form} file"
    )]
    Truncated {
        /// The entry, counted from 1.
        entry: u64,
        /// Bytes of it that are there.
        rest: usize,
        /// Bytes of an entry.
        bytes: usize,
        /// The format.
        form: &'static str,
    },
    /// A line does not fit the format.
    #[error(
        "line {line}: \"{text}\" is no {expected}; keep to one format in a file, and name it with --format if it was told wrongly"
    )]
    Line {
        /// The line, counted from 1.
        line: u64,
        /// The line, shortened.
        text: String,
        /// What was expected.
        expected: &'static str,
    },
    /// A binary entry does not fit the format.
    #[error(
        "entry {entry} is no {expected}; copy the file again, or name another format with --format"
    )]
    Entry {
        /// The entry, counted from 1.
        entry: u64,
        /// What was expected.
        expected: &'static str,
    },
    /// One line or entry covers more pages than is plausible.
    #[error(
        "{place} covers {pages} pages of 4 KiB at once, more than {}; correct it, or name another format with --format",
        crate::ingest::MOST_PAGES_AT_ONCE
    )]
    LongRequest {
        /// The line or entry.
        place: String,
        /// Pages that it covers.
        pages: u64,
    },
    /// The beginning of a file is not that of the format which was asked for.
    #[error(
        "it cannot be read as {form}: {reason}; copy it again, or name another format with --format"
    )]
    Beginning {
        /// The format.
        form: &'static str,
        /// What is wrong.
        reason: &'static str,
    },
    /// A file says how many entries follow, and there are more or fewer.
    #[error(
        "{what} says that {promised} follow, and {found} do; copy the file again, or make it anew"
    )]
    Count {
        /// What says it.
        what: &'static str,
        /// Entries that were promised.
        promised: u64,
        /// Entries that are there.
        found: u64,
    },
    /// It is not known which column of a table holds ids.
    #[error("{}", column(asked.as_deref(), *columns, names))]
    Column {
        /// The column that was asked for.
        asked: Option<String>,
        /// Columns that there are.
        columns: usize,
        /// Their names, if there is a header.
        names: Vec<String>,
    },
    /// The contents fit no format.
    #[error(
        "its contents fit no format; name one with --format: {}, or csv:COLUMN",
        crate::ingest::names()
    )]
    Unknown,
    /// The contents fit several formats.
    #[error("its contents fit several formats; name one with --format: {}", names.join(" or "))]
    Ambiguous {
        /// The formats, as they are named on the command line.
        names: Vec<&'static str>,
    },
    /// There are more references than can be counted.
    #[error("it has more than {} references; shorten it", crate::MOST_REFERENCES)]
    TooLong,
    /// There are more distinct pages than tables can hold.
    #[error("it has more than {} distinct pages; sample it", crate::MOST_PAGES)]
    TooManyPages,
    /// Its pages need more memory than this process can have.
    #[error(
        "its pages, {pages} and more, cannot be numbered in {}, half of the memory at hand; estimate its curve with --curve --sample 0.01", pagetide_quantity::Bytes(*memory)
    )]
    Memory {
        /// Distinct pages so far.
        pages: usize,
        /// Bytes that may be taken.
        memory: u64,
    },
    /// A sample has too few pages to tell how far off it is.
    #[error(
        "a share of {rate} of its pages is {pages}: too few to tell anything; sample more of them, with --sample {enough}"
    )]
    SmallSample {
        /// Pages in the sample.
        pages: u32,
        /// Share that was asked for.
        rate: f64,
        /// Share that has enough.
        enough: f64,
    },
    /// The format does not tell which references write.
    #[error(
        "files of the form {form} do not say which references write; ask about write-backs of a scenario, or of a file of the form lackey, dynamorio, vscsi, msr or twitter"
    )]
    NoWrites {
        /// The form, as it is named on the command line.
        form: &'static str,
    },
    /// What writes needs more memory than this process can have.
    #[error(
        "which of its references write, {references} and more, cannot be kept in {}, a quarter of the memory at hand; leave write-backs out", pagetide_quantity::Bytes(*memory)
    )]
    TooManyWrites {
        /// References so far.
        references: u64,
        /// Bytes that may be taken.
        memory: u64,
    },
    /// One of our own files is not in order.
    #[error("{0}")]
    Reference(#[from] pagetide_reference::ReadError),
    /// The operating system refused, or compressed data is damaged.
    #[error("{0}; check the path, its permissions and whether the file is whole")]
    Io(std::io::Error),
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
