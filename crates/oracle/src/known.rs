//! Generates the references of scenarios for which they follow from the parameters.

use std::collections::BTreeMap;

use pagetide_reference::{Pattern, Zipf};
use thiserror::Error;

use crate::error::ReferenceError;
use crate::string::ReferenceString;
use crate::writes::Writes;

/// Size of a page in bytes.
const PAGE_BYTES: u64 = 4096;
/// Maximum number of references kept in memory. A longer string is kept in a temporary file.
const MAX_REFERENCES_IN_MEMORY: u64 = 1 << 30;

/// Why a scenario's references are not known.
#[derive(Debug, Error)]
pub enum UnknownReferences {
    /// The references do not follow from the scenario's parameters.
    #[error(
        "the references of {scenario} do not follow from its parameters; patterns, kv and file:PATH have known references"
    )]
    Scenario {
        /// Name of the scenario.
        scenario: String,
    },
    /// A parameter is missing or cannot be read.
    #[error("the references of {scenario} cannot be made: its parameter {parameter} is `{value}`")]
    Parameter {
        /// Name of the scenario.
        scenario: String,
        /// Name of the parameter.
        parameter: &'static str,
        /// Value of the parameter.
        value: String,
    },
    /// The pattern is not possible with this range or number of references.
    #[error(transparent)]
    Pattern(#[from] pagetide_reference::StringError),
    /// The reference file of the scenario cannot be used.
    #[error(transparent)]
    File(#[from] ReferenceError),
}

/// Returns the references of a scenario with resolved parameters, including those that first fill memory.
///
/// For kv these are the references of the parent. The child's reads for the snapshot, and the copies they cause, are
/// not included.
pub fn known(
    scenario: &str,
    as_written: bool,
    params: &BTreeMap<String, String>,
    seed: u64,
) -> Result<ReferenceString, UnknownReferences> {
    let asked = Request { scenario, params };
    if params.contains_key("pattern") {
        return asked.pattern(as_written, seed);
    }
    if scenario == "kv" {
        return asked.kv(seed);
    }
    Err(UnknownReferences::Scenario {
        scenario: scenario.to_owned(),
    })
}

struct Request<'a> {
    scenario: &'a str,
    params: &'a BTreeMap<String, String>,
}

impl Request<'_> {
    fn value(&self, parameter: &'static str) -> &str {
        self.params.get(parameter).map_or("", String::as_str)
    }

    fn read<T: std::str::FromStr>(&self, parameter: &'static str) -> Result<T, UnknownReferences> {
        let value = self.value(parameter);
        value.parse().map_err(|_| UnknownReferences::Parameter {
            scenario: self.scenario.to_owned(),
            parameter,
            value: value.to_owned(),
        })
    }

    /// Parses a parameter that is a size in canonical text, such as `8192` or `64M`, into bytes.
    fn bytes(&self, parameter: &'static str) -> Result<u64, UnknownReferences> {
        let value = self.value(parameter);
        let (digits, shift) = match value.as_bytes().last() {
            Some(b'K') => (&value[..value.len() - 1], 10),
            Some(b'M') => (&value[..value.len() - 1], 20),
            Some(b'G') => (&value[..value.len() - 1], 30),
            _ => (value, 0),
        };
        let wrong = || UnknownReferences::Parameter {
            scenario: self.scenario.to_owned(),
            parameter,
            value: value.to_owned(),
        };
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        number.checked_mul(1 << shift).ok_or_else(wrong)
    }

    fn pattern(&self, as_written: bool, seed: u64) -> Result<ReferenceString, UnknownReferences> {
        let pattern: Pattern = self.read("pattern")?;
        let pattern = if as_written {
            pattern.as_written()
        } else {
            pattern
        };
        let pages: u32 = self.read("pages")?;
        let refs: u64 = self.read("refs")?;
        let filled = self.value("mapping") == "anon" && self.value("fill") != "none";
        let lead = if filled { pages } else { 0 };
        if let Some(path) = pattern.path() {
            let string = ReferenceString::read_pages(path, pages, lead, MAX_REFERENCES_IN_MEMORY)?;
            return Ok(string.with_writes(self.writes(lead)));
        }
        let references = pattern.references(pages, refs, seed)?;
        Ok(ReferenceString::after_fill(lead, references, pages).with_writes(self.writes(lead)))
    }

    /// Returns which references of a pattern are writes. The first `lead` references, which fill memory, are writes.
    /// `None` for mixed access, because the trial selects the writes at random.
    fn writes(&self, lead: u32) -> Option<Writes> {
        let write = match self.value("access") {
            "read" => false,
            "write" => true,
            _ => return None,
        };
        Some(Writes::after_fill(lead, true, write))
    }

    fn kv(&self, seed: u64) -> Result<ReferenceString, UnknownReferences> {
        let pages = self.bytes("size")? / PAGE_BYTES;
        let pages = u32::try_from(pages).map_err(|_| UnknownReferences::Parameter {
            scenario: self.scenario.to_owned(),
            parameter: "size",
            value: self.value("size").to_owned(),
        })?;
        let pattern = Pattern::Zipf(Zipf {
            exponent: self.read("exponent")?,
            scatter: true,
        });
        let references = pattern.references(pages, self.read("operations")?, seed)?;
        Ok(ReferenceString::after_fill(pages, references, pages))
    }
}
