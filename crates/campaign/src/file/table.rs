//! Reads a TOML table key by key; errors name the line of the key.

use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{FileError, Problem};
use super::reference::{TableKeys, place_of};
use pagetide_quantity::nearest;

/// Maximum size of a campaign file in bytes.
pub const MAX_BYTES: u64 = 1 << 20;

/// Name and text of a campaign file.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// Creates an error about the text at `span`, with the line on which the span starts.
    pub fn wrong(&self, span: &Range<usize>, problem: Problem) -> FileError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        FileError::Wrong {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            problem: Box::new(problem),
        }
    }
}

/// A key with its value and its position in the file.
#[derive(Clone)]
pub(super) struct Item<'a> {
    pub source: Source<'a>,
    pub key: String,
    pub span: Range<usize>,
    pub value: &'a DeValue<'a>,
}

/// A table of a campaign file.
pub(super) struct Table<'a> {
    source: Source<'a>,
    /// Name of the table in messages, such as "[[variant]]".
    pub place: String,
    pub span: Range<usize>,
    entries: &'a DeTable<'a>,
}

/// Returns the key with underscores replaced by hyphens. Both spellings are accepted.
fn canonical(key: &str) -> String {
    key.replace('_', "-")
}

impl<'a> Table<'a> {
    /// Creates a table in which any key is allowed.
    pub fn free(
        source: Source<'a>,
        place: &str,
        span: Range<usize>,
        table: &'a DeTable<'a>,
    ) -> Self {
        Self {
            source,
            place: place.to_owned(),
            span,
            entries: table,
        }
    }

    /// Creates a table in which only these keys are allowed; fails if there are others.
    pub fn new(
        source: Source<'a>,
        span: Range<usize>,
        table: &'a DeTable<'a>,
        known: &TableKeys,
    ) -> Result<Self, FileError> {
        for key in table.keys() {
            let name = canonical(key.get_ref());
            if !known.has(&name) {
                let problem = Problem::UnknownKey {
                    key: key.get_ref().to_string(),
                    place: known.place.to_owned(),
                    belongs: place_of(&name, known.place),
                    nearest: nearest(&name, known.names()),
                    known: format!("known are {}", known.names().collect::<Vec<_>>().join(", ")),
                };
                return Err(source.wrong(&key.span(), problem));
            }
        }
        Ok(Self::free(source, known.place, span, table))
    }

    /// Creates an error about the whole table.
    pub fn wrong(&self, problem: Problem) -> FileError {
        self.source.wrong(&self.span, problem)
    }

    /// Returns the item of this key; `None` if it is missing.
    pub fn get(&self, key: &str) -> Option<Item<'a>> {
        self.items().find(|item| canonical(&item.key) == key)
    }

    /// Returns the text of this key; `None` if it is missing.
    pub fn text(&self, key: &str, wanted: &'static str) -> Result<Option<String>, FileError> {
        self.get(key).map(|item| item.string(wanted)).transpose()
    }

    /// Returns the text or list of texts of this key; empty if it is missing.
    pub fn texts(&self, key: &str, wanted: &'static str) -> Result<Vec<String>, FileError> {
        let items = self.get(key).map(|item| item.list()).unwrap_or_default();
        items.iter().map(|item| item.string(wanted)).collect()
    }

    /// Returns the value of this key, parsed from text; `None` if it is missing.
    pub fn parsed<T: FromStr>(
        &self,
        key: &str,
        wanted: &'static str,
    ) -> Result<Option<T>, FileError>
    where
        T::Err: ToString,
    {
        let read = |item: Item<'_>| {
            let text = item.string(wanted)?;
            text.parse()
                .map_err(|why: T::Err| item.value(&why.to_string()))
        };
        self.get(key).map(read).transpose()
    }

    /// Returns the item of this key; fails if it is missing.
    pub fn need(&self, key: &'static str, example: &'static str) -> Result<Item<'a>, FileError> {
        self.get(key).ok_or_else(|| {
            let problem = Problem::Missing {
                key,
                place: self.place.clone(),
                example,
            };
            self.source.wrong(&self.span, problem)
        })
    }

    /// Returns all keys of the table with their values.
    pub fn items(&self) -> impl Iterator<Item = Item<'a>> + use<'a> {
        let source = self.source;
        self.entries.iter().map(move |(key, value)| Item {
            source,
            key: key.get_ref().to_string(),
            span: key.span(),
            value: value.get_ref(),
        })
    }
}

impl<'a> Item<'a> {
    pub fn wrong(&self, problem: Problem) -> FileError {
        self.source.wrong(&self.span, problem)
    }

    /// Creates the error for a value of the wrong type.
    pub fn kind(&self, wanted: &'static str) -> FileError {
        let found = match self.value {
            DeValue::String(_) => "text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a fraction",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.wrong(Problem::Kind {
            key: self.key.clone(),
            found,
            wanted,
        })
    }

    /// Creates the error for a value that is not allowed.
    pub fn value(&self, why: &impl ToString) -> FileError {
        self.wrong(Problem::Value {
            key: self.key.clone(),
            value: match self.value {
                DeValue::Array(values) if values.is_empty() => "[]".to_owned(),
                _ => self.text().unwrap_or_else(|| "this".to_owned()),
            },
            why: why.to_string(),
        })
    }

    /// Returns the value as text, if it is text, a number or a truth value; `None` for other types.
    pub fn text(&self) -> Option<String> {
        match self.value {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(number) => Some(match number.radix() {
                10 => number.as_str().replace('_', ""),
                radix => i128::from_str_radix(number.as_str(), radix)
                    .map_or_else(|_| number.as_str().to_owned(), |value| value.to_string()),
            }),
            DeValue::Float(number) => Some(number.as_str().replace('_', "")),
            DeValue::Boolean(truth) => Some(truth.to_string()),
            _ => None,
        }
    }

    /// Returns the value as text; fails if it is of another type.
    pub fn string(&self, wanted: &'static str) -> Result<String, FileError> {
        match self.value {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.kind(wanted)),
        }
    }

    /// Returns the value as a path: joined to the campaign file's folder if that path exists, else as written.
    pub fn path(&self, wanted: &'static str) -> Result<String, FileError> {
        let written = self.string(wanted)?;
        let beside = Path::new(self.source.file).with_file_name(&written);
        if beside.exists()
            && let Some(beside) = beside.to_str()
        {
            return Ok(beside.to_owned());
        }
        Ok(written)
    }

    /// Returns the value as a truth value; fails if it is of another type.
    pub fn truth(&self) -> Result<bool, FileError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.kind("true or false"))
    }

    /// Returns the value as a number, integer or not; fails if it is of another type.
    pub fn number(&self, wanted: &'static str) -> Result<f64, FileError> {
        match self.value {
            DeValue::Integer(_) | DeValue::Float(_) => self.text(),
            _ => None,
        }
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| self.kind(wanted))
    }

    /// Returns the value as an integer; fails if it is not an integer within the bounds.
    pub fn whole(&self, bounds: std::ops::RangeInclusive<u64>) -> Result<u64, FileError> {
        let DeValue::Integer(_) = self.value else {
            return Err(self.kind("a whole number"));
        };
        self.text()
            .and_then(|text| text.parse().ok())
            .filter(|number| bounds.contains(number))
            .ok_or_else(|| {
                self.value(&match bounds.end() {
                    &u64::MAX => format!("give a whole number of at least {}", bounds.start()),
                    end => format!("give a whole number from {} to {end}", bounds.start()),
                })
            })
    }

    /// Returns the value as a `u32`; fails if it is not an integer within the bounds.
    pub fn count(&self, bounds: std::ops::RangeInclusive<u32>) -> Result<u32, FileError> {
        let (low, high) = bounds.into_inner();
        let number = self.whole(u64::from(low)..=u64::from(high))?;
        Ok(u32::try_from(number).unwrap_or(high))
    }

    /// Returns the values of a list; a single value becomes a list of one.
    pub fn list(&self) -> Vec<Item<'a>> {
        match self.value {
            DeValue::Array(values) => values.iter().map(|value| self.element(value)).collect(),
            _ => vec![self.clone()],
        }
    }

    fn element(&self, value: &'a Spanned<DeValue<'a>>) -> Self {
        Self {
            source: self.source,
            key: self.key.clone(),
            span: value.span(),
            value: value.get_ref(),
        }
    }

    /// Returns the value as an array of tables; fails if a table has a key not in `known`.
    pub fn tables(&self, known: &TableKeys) -> Result<Vec<Table<'a>>, FileError> {
        let wanted = "one or more tables, each under a double bracket such as [[variant]]";
        let DeValue::Array(values) = self.value else {
            return Err(self.kind(wanted));
        };
        values
            .iter()
            .map(|value| match value.get_ref() {
                DeValue::Table(table) => Table::new(self.source, value.span(), table, known),
                _ => Err(self.element(value).kind(wanted)),
            })
            .collect()
    }

    /// Returns the value as a table; fails if it is of another type or has a key not in `known`.
    pub fn table(&self, known: Option<&TableKeys>) -> Result<Table<'a>, FileError> {
        let DeValue::Table(table) = self.value else {
            return Err(self.kind("a table"));
        };
        let span = self.span.clone();
        match known {
            Some(known) => Table::new(self.source, span, table, known),
            None => Ok(Table::free(
                self.source,
                &format!("[{}]", self.key),
                span,
                table,
            )),
        }
    }
}
