//! Files that hold references: three forms, told apart by their contents.
//!
//! - *text*: one page index a line, in order of reference;
//! - *counts*: `page count` a line, pages ascending; read back as references it has no order but that of the pages;
//! - *binary*: the compact form that [`write_binary`] documents.
//!
//! All are read and written as streams, so that the length of a trace does not matter.

mod binary;
mod error;
mod packed;
mod reader;
mod text;

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use binary::write_binary;
pub use error::{FileError, Place, ReadError};
pub use packed::PackedFile;
pub(crate) use packed::PackedReferences;
pub use reader::Reader;
pub use text::{write_counts, write_text};

/// How a file holds references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// One page index a line.
    Text,
    /// `page count` a line.
    Counts,
    /// The compact form.
    Binary,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Counts => "counts",
            Self::Binary => "binary",
        })
    }
}

/// What a whole file was found to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSummary {
    /// How it holds them.
    pub form: Form,
    /// Number of references, at least 1.
    pub refs: u64,
    /// The smallest range that holds them all: one more than the highest page index.
    pub pages: u32,
}

/// Opens a file for reading its references over `pages` pages, whatever its form.
pub fn open_file(path: &Path, pages: u32) -> Result<Reader<BufReader<File>>, FileError> {
    File::open(path)
        .map_err(ReadError::from)
        .and_then(|file| Reader::new(BufReader::new(file), pages))
        .map_err(|reason| FileError::new(path, reason))
}

/// Reads a whole file and says what it holds, or the first thing wrong with it: for use before an arena starts.
///
/// `pages` is the range that the references must keep to; [`MAX_PAGES`](crate::MAX_PAGES) asks for no other limit.
pub fn check_file(path: &Path, pages: u32) -> Result<FileSummary, FileError> {
    let reader = open_file(path, pages)?;
    let mut summary = FileSummary {
        form: reader.form(),
        refs: 0,
        pages: 0,
    };
    for page in reader {
        let page = page.map_err(|reason| FileError::new(path, reason))?;
        summary.refs += 1;
        summary.pages = summary.pages.max(page.saturating_add(1));
    }
    Ok(summary)
}

/// Writes a file's references to `out` in the binary form, to be carried where the file cannot be opened.
///
/// The file is read twice, first to check and count; nothing but buffers is held.
pub fn pack_file(path: &Path, pages: u32, out: impl Write) -> Result<FileSummary, FileError> {
    let summary = check_file(path, pages)?;
    let mut trouble = None;
    let references = open_file(path, pages)?.map_while(|page| match page {
        Ok(page) => Some(page),
        Err(reason) => {
            trouble = Some(reason);
            None
        }
    });
    let written = write_binary(out, summary.pages, summary.refs, references);
    match (trouble, written) {
        (Some(reason), _) => Err(FileError::new(path, reason)),
        (None, Err(error)) => Err(FileError::new(path, ReadError::Copy(error))),
        (None, Ok(())) => Ok(summary),
    }
}
