//! The web page: one HTML file that contains everything and makes no network requests.
//!
//! Verdicts, tables and provenance are plain HTML and readable without scripts. Figures are drawn in the browser from
//! data in the file: typed arrays, delta-encoded, deflated and base64-encoded, in script elements of a type that no
//! browser runs (see [`blob`]). The script is built from `web/`; the result is committed here, so that cargo alone can
//! build the crate.
//!
//! Large data is streamed: only one chunk of a log of accesses is in memory at a time (see [`accesses`]). Begin reading
//! at [`write`].

pub(crate) mod accesses;
mod atlas;
mod axis;
mod bars;
mod because;
mod blob;
mod card;
mod data;
mod escape;
mod figures;
mod forest;
mod meaning;
mod page;
mod parts;
mod provenance;
mod reclaim;
mod single;
mod sources;
mod squeeze;
mod states;
mod store;
mod strip;
mod subject;
mod table;
mod verdicts;
mod waterfall;

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use base64::Engine;
use pagetide_compare::Comparison;
use pagetide_quantity::Bytes;
use pagetide_record::{FileError, RecordReader};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::about::About;
pub use atlas::atlas;
pub use card::{card, title, with_names};
pub use single::single;
pub use sources::Sources;
pub use store::of_store;
pub use subject::{SubjectError, subject};

/// The script of the page, built by `web/build.sh`.
pub const SCRIPT: &str = include_str!("html/bundle.js");
/// The script of served pages that update themselves, built by `web/build.sh`.
pub const LIVE: &str = include_str!("html/live.js");
/// The stylesheet of the page, built by `web/build.sh`.
pub const STYLE: &str = include_str!("html/bundle.css");

/// Reasons why a page cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// Writing the output failed.
    #[error("writing the report was refused ({0}): check the disk and the file's permissions")]
    Write(#[from] io::Error),
    /// The data of the figures cannot be serialized.
    #[error("the figures' data cannot be written as JSON ({0}): please report it")]
    Data(#[from] serde_json::Error),
}

/// Function that opens the record with this identity; returns an error message on failure.
pub type OpenRecord<'a> = dyn Fn(&str) -> Result<RecordReader, String> + 'a;

/// Data from which a page is made.
pub struct Input<'a> {
    /// The comparison that the page shows.
    pub comparison: &'a Comparison,
    /// Title, command and machine to show with the comparison.
    pub about: &'a About,
    /// Data that the comparison does not contain: reclaim tables of observed trials, and searches for the smallest
    /// memory.
    pub sources: &'a Sources,
    /// Opens a record to read the data of its figures.
    pub open: &'a OpenRecord<'a>,
    /// How the page includes its script and its stylesheet.
    pub assets: Assets<'a>,
}

/// How a page includes its script and stylesheet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assets<'a> {
    /// Script and stylesheet are inside the file, so that it can be mailed.
    #[default]
    Inside,
    /// Script and stylesheet are requested from a server; the page contains only their addresses.
    Served {
        /// Address at which the server has [`SCRIPT`].
        script: &'a str,
        /// Address at which the server has [`STYLE`].
        style: &'a str,
        /// Addresses and names of the links at the top of every served page.
        links: &'a [(&'a str, &'a str)],
    },
}

/// A page written to a file.
#[derive(Debug, Serialize)]
pub struct PageFile<'a> {
    /// Path of the file.
    pub file: &'a Path,
    /// The page's title.
    pub title: &'a str,
    /// Summary of what the page contains.
    #[serde(flatten)]
    pub page: PageSummary,
}

impl fmt::Display for PageFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = Bytes(self.page.bytes);
        write!(f, "{}: {}, {size}", self.file.display(), self.title)?;
        match self.page.accesses {
            0 => Ok(()),
            n => write!(f, ", {n} single accesses to zoom into"),
        }
    }
}

/// Summary of a written page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PageSummary {
    /// Number of accesses that can be shown individually.
    pub accesses: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// One line for each piece of data that could not be shown; the page contains the same lines.
    pub omitted: Vec<String>,
}

/// Writes the page as HTML to `out` and returns a summary of its content.
pub fn write(input: &Input<'_>, out: &mut dyn Write) -> Result<PageSummary, HtmlError> {
    let mut out = CountingWriter { out, bytes: 0 };
    out.write_all(page::before(input).as_bytes())?;
    let mut blobs = blob::Blobs::new(&mut out);
    let figures = figures::collect(input, &mut blobs)?;
    // The JSON must not contain a tag that ends the script element.
    let json = serde_json::to_string(&figures.page)?.replace('<', "\\u003c");
    writeln!(
        out,
        "<script type=\"application/json\" id=\"figures-data\">{json}</script>"
    )?;
    out.write_all(page::after(input, &figures.omitted).as_bytes())?;
    Ok(PageSummary {
        accesses: figures.accesses,
        bytes: out.bytes,
        omitted: figures.omitted,
    })
}

/// Source expression of a content security policy that allows exactly this text (CSP Level 3, "hash-source").
pub(crate) fn hash_source(text: &str) -> String {
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text));
    format!("'sha256-{digest}'")
}

/// Returns data of a record for one figure; if it is damaged, returns `None` and adds a line to `omitted`.
pub(crate) fn or_omit<T>(
    result: Result<T, FileError>,
    what: &str,
    omitted: &mut Vec<String>,
) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            omitted.push(format!("{what}: {error}"));
            None
        }
    }
}

/// A writer that counts the bytes written.
struct CountingWriter<'a> {
    out: &'a mut dyn Write,
    bytes: u64,
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
