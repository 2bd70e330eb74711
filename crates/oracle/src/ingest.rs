//! Reading references: what a file holds, and dense page numbers for whatever ids it uses.

mod compressed;
mod dense;
mod form;

use std::fs::File;
use std::io::BufRead;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Trouble;
use crate::memory::memory_at_hand;
pub(crate) use dense::Dense;

/// How a file holds references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// A file of this tool, in any of its three forms.
    Pagetide,
    /// One id a line, decimal or with 0x; more after a space or comma is passed over.
    Text,
    /// What `valgrind --tool=lackey --trace-mem=yes` prints; pages of 4 KiB.
    Lackey,
    /// libCacheSim's binary form of 24 bytes an entry: time, id, size, next access.
    OracleGeneral,
}

impl Format {
    /// The formats with the names they are asked for by.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("pagetide", Self::Pagetide),
        ("text", Self::Text),
        ("lackey", Self::Lackey),
        ("oracle-general", Self::OracleGeneral),
    ];

    fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, format)| *format == self);
        found.map_or("", |(name, _)| name)
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, format)| *format).ok_or_else(|| {
            let names: Vec<&str> = Self::NAMES.iter().map(|(name, _)| *name).collect();
            format!("give one of {}", names.join(", "))
        })
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
    let mut numbers = Vec::with_capacity(form::PIECE);
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
        None => form::tell(input.fill_buf()?)?,
    };
    if told == Told::Writes && format != Format::Lackey {
        return Err(Trouble::NoWrites {
            form: format.name(),
        });
    }
    match format {
        Format::Pagetide => form::pagetide(input, &mut take),
        Format::Text => form::text(input, &mut take),
        Format::Lackey => form::lackey(input, &mut take),
        Format::OracleGeneral => form::oracle_general(input, &mut take),
    }
}
