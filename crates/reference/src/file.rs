//! Files of references in three forms. The form of a file is recognised from its content.
//!
//! - *text*: one page index per line, in order of reference;
//! - *counts*: `page count` per line, in ascending order of pages; when read back, the references are in page order;
//! - *binary*: the compact form documented at [`write_binary`].
//!
//! All forms are read and written as streams, so the length of a trace does not matter.

mod binary;
mod error;
mod form;
mod packed;
mod reader;
mod text;

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use binary::write_binary;
pub use error::{FileError, Position, ReadError};
pub use form::Form;
pub use packed::PackedFile;
pub(crate) use packed::PackedReferences;
pub use reader::Reader;
pub use text::{write_counts, write_text};

/// Summary of a file of references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSummary {
    /// Form of the references in the file.
    pub form: Form,
    /// Number of references, at least 1.
    pub refs: u64,
    /// Size of the smallest range that contains all references: the highest page index plus one.
    pub pages: u32,
}

/// Opens a file of any form as a stream of references. A page index of `pages` or more is an error while reading.
pub fn open_file(path: &Path, pages: u32) -> Result<Reader<BufReader<File>>, FileError> {
    File::open(path)
        .map_err(ReadError::from)
        .and_then(|file| Reader::new(BufReader::new(file), pages))
        .map_err(|reason| FileError::new(path, reason))
}

/// Reads a whole file and returns a summary, or the first error in the file. Meant for checks before an arena starts.
///
/// Page indices must be below `pages`; pass [`MAX_PAGES`](crate::MAX_PAGES) for no further limit.
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

/// Writes the references of a file to `out` in binary form, so that a guest can read them without opening the file.
///
/// The file is read twice, first to check and count. Only buffers are in memory.
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
