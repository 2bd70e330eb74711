//! Reading references: what a file holds, and dense page numbers for whatever ids it uses.

mod compressed;
mod csv;
mod damo;
mod dense;
mod dynamorio;
mod entries;
mod lackey;
mod lcs;
mod lines;
mod msr;
mod oracle_general;
mod own;
mod perf;
mod sink;
mod spaces;
mod tell;
mod text;
mod twitter;
mod vscsi;

use std::fmt;
use std::fs::File;
use std::io::BufRead;
use std::mem::discriminant;
use std::path::Path;
use std::str::FromStr;

use crate::error::Trouble;
use crate::memory::memory_at_hand;
pub(crate) use dense::Dense;
pub(crate) use sink::MOST_PAGES_AT_ONCE;
use tell::Head;

/// How a file holds references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// A file of this tool, in any of its three forms.
    Pagetide,
    /// One id a line, decimal or with 0x; more after a space or comma is passed over.
    Text,
    /// A table of which one column holds ids; without a column, its only one or the one that its header calls id, page,
    /// key or object.
    Csv(Option<Column>),
    /// What `valgrind --tool=lackey --trace-mem=yes` prints; pages of 4 KiB.
    Lackey,
    /// What DynamoRIO's view of drmemtrace and its sample memtrace print; pages of 4 KiB.
    DynamoRio,
    /// What `perf script` and `perf mem report --dump-raw-samples` print; pages of 4 KiB.
    Perf,
    /// What `damo report access --raw_form` prints; pages of 4 KiB.
    Damo,
    /// libCacheSim's binary form of 24 bytes an entry: time, id, size, next access.
    OracleGeneral,
    /// libCacheSim's binary form with a header.
    Lcs,
    /// Block requests of VMware's vscsiStats, binary; pages of 4 KiB.
    Vscsi,
    /// Block requests of MSR Cambridge, CSV; pages of 4 KiB.
    Msr,
    /// Requests to Twitter's caches, CSV; a key is a page.
    Twitter,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// The one that the header calls so.
    Name(String),
    /// Counted from 1.
    Number(usize),
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// What is known of a format.
struct Form {
    /// What it is asked for by.
    name: &'static str,
    format: Format,
    /// Whether it tells which references write.
    writes: bool,
    /// True if a file that begins so can be of this format.
    begins: fn(&Head<'_>) -> bool,
}

const fn form(
    name: &'static str,
    format: Format,
    writes: bool,
    begins: fn(&Head<'_>) -> bool,
) -> Form {
    Form {
        name,
        format,
        writes,
        begins,
    }
}

/// All formats.
static FORMS: [Form; 12] = [
    form("pagetide", Format::Pagetide, false, own::begins),
    form("text", Format::Text, false, text::begins),
    form("csv", Format::Csv(None), false, csv::begins),
    form("lackey", Format::Lackey, true, lackey::begins),
    form("dynamorio", Format::DynamoRio, true, dynamorio::begins),
    form("perf", Format::Perf, false, perf::begins),
    form("damo", Format::Damo, false, damo::begins),
    form(
        "oracle-general",
        Format::OracleGeneral,
        false,
        oracle_general::begins,
    ),
    form("lcs", Format::Lcs, false, lcs::begins),
    form("vscsi", Format::Vscsi, true, vscsi::begins),
    form("msr", Format::Msr, true, msr::begins),
    form("twitter", Format::Twitter, true, twitter::begins),
];

/// The names of all formats, for messages.
pub(crate) fn names() -> String {
    let names: Vec<&str> = FORMS.iter().map(|form| form.name).collect();
    names.join(", ")
}

impl Format {
    fn form(&self) -> Option<&'static Form> {
        FORMS
            .iter()
            .find(|form| discriminant(&form.format) == discriminant(self))
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(column) = text.strip_prefix("csv:") {
            return match column.parse() {
                Ok(0) => Err("columns are counted from 1: give csv:1 or higher".to_owned()),
                Ok(number) => Ok(Self::Csv(Some(Column::Number(number)))),
                Err(_) if column.is_empty() => {
                    Err("give csv:NAME or csv:NUMBER, the column with the ids".to_owned())
                }
                Err(_) => Ok(Self::Csv(Some(Column::Name(column.to_owned())))),
            };
        }
        let found = FORMS.iter().find(|form| form.name == text);
        found
            .map(|form| form.format.clone())
            .ok_or_else(|| format!("give one of {}, or csv:COLUMN", names()))
    }
}

/// What a file has to tell of its references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// Their pages.
    Pages,
    /// Which of them write, too.
    Writes,
}

/// Reads a file, hands its references on as dense numbers in pieces, and returns the number of distinct pages.
pub(crate) fn read(
    path: &Path,
    format: Option<Format>,
    told: Told,
    mut take: impl FnMut(&[u32], &[bool]) -> Result<(), Trouble>,
) -> Result<u32, Trouble> {
    // The other half is for the references.
    let mut dense = Dense::within(memory_at_hand() / 2);
    let mut numbers = Vec::with_capacity(sink::PIECE);
    each(path, format, told, |ids, writes| {
        numbers.clear();
        dense.number(ids, &mut numbers)?;
        take(&numbers, writes)
    })?;
    Ok(dense.pages())
}

/// Reads a file and hands its ids on in pieces.
pub(crate) fn each(
    path: &Path,
    format: Option<Format>,
    told: Told,
    mut take: impl FnMut(&[u64], &[bool]) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let mut input = compressed::open(File::open(path)?)?;
    let format = match format {
        Some(format) => format,
        None => tell::tell(input.fill_buf()?)?,
    };
    if told == Told::Writes && !format.form().is_some_and(|form| form.writes) {
        return Err(Trouble::NoWrites {
            form: format.form().map_or("", |form| form.name),
        });
    }
    match format {
        Format::Pagetide => own::read(input, &mut take),
        Format::Text => text::read(input, &mut take),
        Format::Csv(column) => csv::read(input, column.as_ref(), &mut take),
        Format::Lackey => lackey::read(input, &mut take),
        Format::DynamoRio => dynamorio::read(input, &mut take),
        Format::Perf => perf::read(input, &mut take),
        Format::Damo => damo::read(input, &mut take),
        Format::OracleGeneral => oracle_general::read(input, &mut take),
        Format::Lcs => lcs::read(input, &mut take),
        Format::Vscsi => vscsi::read(input, &mut take),
        Format::Msr => msr::read(input, &mut take),
        Format::Twitter => twitter::read(input, &mut take),
    }
}
