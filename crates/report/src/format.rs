//! The output formats of a comparison, and the data that each format reads from the store.

use std::collections::BTreeMap;
use std::io::{self, Write};

use pagetide_compare::bisected::BisectResult;
use pagetide_compare::explain::explain_with_accounts;
use pagetide_compare::{CalibrationError, CalibrationNote, CompareError, Comparison, tails};
use pagetide_quantity::Histogram;
use pagetide_record::{ArenaKind, FileError};
use pagetide_store::{Store, StoreError};

use crate::about::About;
use crate::csv::CsvError;
use crate::draw::TextStyle;
use crate::html::{self, HtmlError};
use crate::paper::{self, ExtrasError, NoPaper};
use crate::records::{identities, machine, records};
use crate::terminal::show::{Presence, presence};
use crate::terminal::{self, Options, presence_maps, verdicts};
use crate::{csv, json, kcidb, ktap, mail, markdown};

/// Output format of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// A table for the terminal.
    #[default]
    Table,
    /// Plain text with 75 columns.
    Mail,
    /// Tables in the layout of the original papers.
    Paper,
    /// JSON with all data.
    Json,
    /// CSV with one row for each cell, metric and variant.
    Csv,
    /// CSV with one row for each record and metric.
    Samples,
    /// Markdown tables for issues and merge requests.
    Markdown,
    /// KTAP, the output format of the kernel's tests.
    Ktap,
    /// A report for KCIDB, the kernel's common results database.
    Kcidb,
    /// A web page in one HTML file.
    Html,
}

impl Format {
    /// Every format with its name on the command line and its description for help.
    pub const WORDS: [(Self, &str, &str); 10] = [
        (Self::Table, "table", "Table for the terminal"),
        (
            Self::Mail,
            "mail",
            "A cover letter of 75 columns: what decides; with --all every metric",
        ),
        (
            Self::Paper,
            "paper",
            "The tables of the five papers, each in its own shape",
        ),
        (
            Self::Json,
            "json",
            "Everything, with the records each number comes from",
        ),
        (Self::Csv, "csv", "A row for each cell, metric and variant"),
        (Self::Samples, "samples", "A row for each record and metric"),
        (Self::Markdown, "markdown", "For an issue or a wiki"),
        (Self::Ktap, "ktap", "KTAP version 1"),
        (Self::Kcidb, "kcidb", "KCIDB 5.3"),
        (
            Self::Html,
            "html",
            "One page to open in a browser or to mail: send it to a file",
        ),
    ];

    /// Returns the format with this name on the command line; `None` if the name is unknown.
    pub fn of(word: &str) -> Option<Self> {
        let found = Self::WORDS.iter().find(|(_, name, _)| *name == word);
        found.map(|(format, ..)| *format)
    }

    /// True if the output contains reasons for differences. Computing the reasons requires reading records.
    const fn explains(self) -> bool {
        matches!(
            self,
            Self::Table | Self::Mail | Self::Json | Self::Markdown | Self::Html
        )
    }
}

/// How a comparison is written: layout, additional content, and origin.
#[derive(Clone, Debug)]
pub struct Style {
    /// Colours, width and characters.
    pub text_style: TextStyle,
    /// Content of the terminal table in addition to the primary metrics.
    pub options: Options,
    /// True if the terminal table also judges the quantiles of all accesses.
    pub tails: bool,
    /// Name of the submitting system in a KCIDB report.
    pub origin: String,
}

/// Reasons why a comparison cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// A store operation failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The reasons for differences cannot be computed.
    #[error(transparent)]
    Compare(#[from] CompareError),
    /// The last calibration cannot be read.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// Writing CSV failed.
    #[error(transparent)]
    Csv(#[from] CsvError),
    /// Writing the web page failed.
    #[error(transparent)]
    Html(#[from] HtmlError),
    /// A scenario comes from none of the original papers, so it has no table in their layout.
    #[error(transparent)]
    NoPaper(#[from] NoPaper),
    /// Reading the additional data for the papers' tables failed.
    #[error(transparent)]
    Extras(#[from] ExtrasError),
    /// Writing the output failed.
    #[error("writing the comparison")]
    Write(#[from] io::Error),
}

/// Writes a comparison of records in `store`. Returns one line for each piece of data that a web page leaves out
/// because it could not be read or is too large; nothing for the other formats.
pub fn write(
    format: Format,
    style: &Style,
    store: &Store,
    comparison: &Comparison,
    mut about: About,
    out: &mut dyn Write,
) -> Result<Vec<String>, FormatError> {
    let mut comparison = comparison.clone();
    if format.explains() {
        comparison.explanations = explain_with_accounts(store, &comparison)?;
    }
    let comparison = &comparison;
    about.machine = machine(store, comparison).unwrap_or_default();
    let text = match format {
        Format::Table => table(style, store, comparison, about)?,
        Format::Mail => mail::mail(comparison, &about, style.options.all),
        Format::Paper => paper::paper(comparison, &paper::of_store(store, comparison)?)?,
        Format::Json => json::comparison(comparison, &about),
        Format::Markdown => markdown::markdown(comparison, &about),
        Format::Ktap => ktap::ktap(comparison, &about),
        Format::Kcidb => kcidb::kcidb(comparison, &about, &style.origin),
        Format::Csv => {
            csv::judgements(out, comparison)?;
            return Ok(Vec::new());
        }
        Format::Samples => {
            csv::samples(out, &records(store, comparison)?)?;
            return Ok(Vec::new());
        }
        Format::Html => {
            let assets = html::Assets::Inside;
            return Ok(html::of_store(store, comparison, &about, assets, out)?.omitted);
        }
    };
    out.write_all(text.as_bytes())?;
    Ok(Vec::new())
}

/// Writes the result of a search for the first bad version. Tables, mails and JSON contain the search and the
/// comparison of the last good version with the first bad version; other formats contain only the comparison. Returns
/// what [`write`] returns.
pub fn write_bisect(
    format: Format,
    style: &Style,
    store: &Store,
    found: &BisectResult,
    about: About,
    out: &mut dyn Write,
) -> Result<Vec<String>, FormatError> {
    let text_style = match format {
        Format::Table => style.text_style,
        Format::Mail => mail::TEXT_STYLE,
        Format::Json => {
            let mut found = found.clone();
            found.comparison.explanations = explain_with_accounts(store, &found.comparison)?;
            out.write_all(json::pretty(&found).as_bytes())?;
            return Ok(Vec::new());
        }
        _ => return write(format, style, store, &found.comparison, about, out),
    };
    out.write_all(terminal::bisect::bisect(found, &text_style).as_bytes())?;
    write(format, style, store, &found.comparison, about, out)
}

/// Renders the table for the terminal, with pictures and quantiles of all accesses if requested, and with the last
/// calibration of the same arena if it is about cells of the comparison.
fn table(
    style: &Style,
    store: &Store,
    comparison: &Comparison,
    mut about: About,
) -> Result<String, FormatError> {
    let pictures = style.options.pictures;
    if pictures {
        about.access = access(store, comparison)?;
    }
    let mut text = verdicts(comparison, &about, style.options, &style.text_style);
    if pictures {
        let maps = maps(store, comparison)?;
        text.push_str(&presence_maps(comparison, &maps, &style.text_style));
    }
    if style.tails {
        let tails = tails(store, comparison)?;
        text.push_str(&terminal::tails(comparison, &tails, &style.text_style));
    }
    // The noise of another arena says nothing about these records.
    let subjects = || {
        comparison
            .cells
            .iter()
            .filter_map(|cell| cell.subject.as_ref())
    };
    let arena = subjects()
        .next()
        .map_or_else(ArenaKind::default, |subject| subject.arena.kind);
    if let Some(note) = CalibrationNote::read(store, arena)?
        && let Some(line) = terminal::calibration_of(&note, comparison)
    {
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

/// Returns the access latencies in nanoseconds by indices of cell and column, merged over all trials of the column.
fn access(
    store: &Store,
    comparison: &Comparison,
) -> Result<BTreeMap<(usize, usize), Histogram>, StoreError> {
    let mut all: BTreeMap<(usize, usize), Histogram> = BTreeMap::new();
    for (place, id) in identities(comparison) {
        let record = store.load(id)?.into_record();
        if let Some(histogram) = record.results.histograms.get("access") {
            all.entry(place).or_default().merge(histogram);
        }
    }
    Ok(all)
}

/// Returns the last map of the pages in memory of the first trial that has a map, by indices of cell and column.
fn maps(
    store: &Store,
    comparison: &Comparison,
) -> Result<BTreeMap<(usize, usize), Presence>, FormatError> {
    let mut all = BTreeMap::new();
    for (place, id) in identities(comparison) {
        if !all.contains_key(&place)
            && let Some(map) = presence(&store.load(id)?)?.pop()
        {
            all.insert(place, map);
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_stands_for_its_own_format() {
        for (format, word, _) in Format::WORDS {
            assert_eq!(Format::of(word), Some(format));
        }
        assert_eq!(Format::of("seed"), None);
    }
}
