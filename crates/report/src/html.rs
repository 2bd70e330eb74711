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
mod case;
mod data;
mod escape;
mod figures;
mod flames;
mod forest;
mod heats;
mod input;
mod makeup;
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
mod tier_ages;
mod tiers;
mod verdicts;
mod waterfall;

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use pagetide_quantity::Bytes;
use serde::Serialize;

pub use atlas::atlas;
pub use card::{card, title, with_names};
pub use input::{Assets, HtmlError, Input, LIVE, OpenRecord, SCRIPT, STYLE};
pub(crate) use input::{hash_source, or_omit};
pub use single::single;
pub use sources::{ReferencedPass, Sources};
pub use store::{CaseError, of_case, of_store};
pub use subject::{SubjectError, subject};

/// A page written to a file.
#[derive(Debug, Serialize)]
pub struct PageFile<'a> {
    /// Path of the file.
    pub file: &'a Path,
    /// The title of the page.
    pub title: &'a str,
    /// Summary of the written page.
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
