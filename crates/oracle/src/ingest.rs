//! Reads files of references in any known format, and turns the ids in them into dense page numbers.

mod compressed;
mod csv;
mod damo;
mod dense;
mod dynamorio;
mod entries;
mod format;
mod head;
mod lackey;
mod lcs;
mod lines;
mod msr;
mod oracle_general;
mod own;
mod perf;
mod sink;
mod spaces;
mod text;
mod twitter;
mod vscsi;

use std::fs::File;
use std::io::BufRead;
use std::mem::discriminant;
use std::path::Path;
use std::str::FromStr;

use crate::error::ReferenceErrorKind;
pub(crate) use dense::Dense;
pub use format::{Column, Format};
use head::Head;
pub use sink::Take;

/// Description of a file format.
struct Form {
    /// Name of the format on the command line.
    name: &'static str,
    format: Format,
    /// True if the format states which references are writes.
    writes: bool,
    /// Returns true if a file with this beginning can be of this format.
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

/// Descriptions of all formats.
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

/// Returns the names of all formats, for messages.
fn names() -> Vec<&'static str> {
    FORMS.iter().map(|form| form.name).collect()
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
            .ok_or_else(|| format!("give one of {}, or csv:COLUMN", names().join(", ")))
    }
}

/// What a file must state about its references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredContent {
    /// The page of each reference.
    Pages,
    /// The page of each reference, and whether the reference is a write.
    Writes,
}

/// Reads a file, decompressing it if needed, and calls `take` with the IDs of its references in pieces. Fails if the
/// format is unknown or lacks what `told` requires.
pub(crate) fn each(
    path: &Path,
    format: Option<Format>,
    told: RequiredContent,
    mut take: impl FnMut(&[u64], &[bool]) -> Result<(), ReferenceErrorKind>,
) -> Result<(), ReferenceErrorKind> {
    let mut input = compressed::open(File::open(path)?)?;
    let format = match format {
        Some(format) => format,
        None => tell(input.fill_buf()?)?,
    };
    if told == RequiredContent::Writes && !format.form().is_some_and(|form| form.writes) {
        return Err(ReferenceErrorKind::NoWrites {
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

/// Returns the only format that matches these first bytes of a file; `csv` is ignored if another format matches too.
/// Fails if no format matches, or if several do.
fn tell(bytes: &[u8]) -> Result<Format, ReferenceErrorKind> {
    let head = Head::of(bytes)?;
    let mut fits: Vec<&Form> = FORMS.iter().filter(|form| (form.begins)(&head)).collect();
    if fits.len() > 1 {
        // Files in most text formats look like tables too, so a more specific format takes precedence.
        fits.retain(|form| form.format != Format::Csv(None));
    }
    match fits[..] {
        [] => Err(ReferenceErrorKind::Unknown { known: names() }),
        [form] => Ok(form.format.clone()),
        _ => Err(ReferenceErrorKind::Ambiguous {
            names: fits.iter().map(|form| form.name).collect(),
        }),
    }
}
