//! Input of a page: its data, and how its script and stylesheet are included.

use std::io;

use base64::Engine;
use pagetide_compare::Comparison;
use pagetide_record::{FileError, RecordReader};
use sha2::{Digest, Sha256};

use super::sources::Sources;
use crate::about::About;

/// The script of the page, built by `web/build.sh`.
pub const SCRIPT: &str = include_str!("bundle.js");

/// The script of served pages that update themselves, built by `web/build.sh`.
pub const LIVE: &str = include_str!("live.js");

/// The stylesheet of the page, built by `web/build.sh`.
pub const STYLE: &str = include_str!("bundle.css");

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

/// Function that opens the record with this ID; returns an error message on failure.
pub type OpenRecord<'a> = dyn Fn(&str) -> Result<RecordReader, String> + 'a;

/// Data from which a page is made.
pub struct Input<'a> {
    /// The comparison that the page shows.
    pub comparison: &'a Comparison,
    /// Title, command and machine to show with the comparison.
    pub about: &'a About,
    /// Data that is not in the comparison, such as reclaim tables of observed trials and profiles.
    pub sources: &'a Sources,
    /// Opens a record to read the data of its figures.
    pub open: &'a OpenRecord<'a>,
    /// How the page includes its script and its stylesheet.
    pub assets: Assets<'a>,
}

/// How a page includes its script and stylesheet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Assets<'a> {
    /// Script and stylesheet are part of the file, so that the page can be sent as one file.
    #[default]
    Inside,
    /// Script and stylesheet are loaded from a server; the page contains only their addresses.
    Served {
        /// Address of [`SCRIPT`] on the server.
        script: &'a str,
        /// Address of [`STYLE`] on the server.
        style: &'a str,
        /// Links at the top of every served page, each with address and name.
        links: &'a [(&'a str, &'a str)],
    },
}

/// Returns the source expression of a content security policy that allows a script or style with exactly this text (CSP
/// Level 3, "hash-source").
pub(crate) fn hash_source(text: &str) -> String {
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text));
    format!("'sha256-{digest}'")
}

/// Returns the data that was read from a record for one figure. If reading failed, returns `None` and adds a line to
/// `omitted`, which begins with `what`.
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
