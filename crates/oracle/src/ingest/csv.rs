//! Tables with IDs in one column: CSV, and tables with semicolons, tabs or spaces between columns.
//!
//! Fields may be in double quotes (RFC 4180), but a field may not contain a line end. The first line is a header if
//! none of its fields is a number. A column is selected by its name in the header or its number, counted from 1. If its
//! first value is a number, all values must be numbers. Otherwise values are words, and equal words are the same page.
//! A range of bytes is not split into pages.

use std::hash::{DefaultHasher, Hasher};
use std::io::BufRead;

use super::format::Column;
use super::head::Head;
use super::lines::{id, lines, shown};
use super::sink::{Refusal, Sink, Take};
use crate::error::ReferenceErrorKind;

/// Possible separators, in order of precedence: the first of them that occurs in the first line is used.
const SEPARATORS: [u8; 4] = *b",;\t ";
/// Header names of the column that contains IDs, if no column is requested.
const IDS: [&str; 6] = ["id", "page", "key", "obj_id", "object_id", "object"];
/// Maximum number of column names listed in a message.
const MAX_SHOWN: usize = 12;

/// Returns a 64-bit hash of a word: SipHash with a key of zeros.
pub(super) fn id_of_word(word: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(word);
    hasher.finish()
}

/// Returns the separator of a table with this first line.
fn separator(line: &[u8]) -> u8 {
    let found = SEPARATORS.iter().find(|byte| line.contains(byte));
    found.copied().unwrap_or(b',')
}

/// Iterates over the fields of a line, without surrounding white space and quotes.
struct Fields<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let mut rest = self.rest.take()?;
        if self.separator == b' ' {
            rest = rest.trim_ascii_start();
        }
        let mut quoted = false;
        let end = rest.iter().position(|byte| {
            quoted ^= *byte == b'"';
            *byte == self.separator && !quoted
        });
        let field = match end {
            Some(end) => {
                self.rest = Some(&rest[end + 1..]);
                &rest[..end]
            }
            None => rest,
        };
        let field = field.trim_ascii();
        let inner = field
            .strip_prefix(b"\"")
            .and_then(|f| f.strip_suffix(b"\""));
        Some(inner.unwrap_or(field))
    }
}

fn fields(line: &[u8], separator: u8) -> Fields<'_> {
    Fields {
        rest: Some(line),
        separator,
    }
}

/// Returns a header line without the leading `#` that some tools write.
fn header(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"#").unwrap_or(line).trim_ascii_start()
}

fn is_header(line: &[u8], separator: u8) -> bool {
    fields(line, separator).all(|field| id(field).is_none() && !is_measure(field))
}

/// Returns true if the field is a number of any kind. Negative numbers and fractions are included, although they cannot
/// be IDs.
fn is_measure(field: &[u8]) -> bool {
    std::str::from_utf8(field).is_ok_and(|text| text.parse::<f64>().is_ok())
}

/// Returns true if the file can be a table. The first line must have at least two columns, and the second line as many.
/// A field of the second line (of the first line if there is no other) must be an ID.
///
/// Files of many other text formats match too, so other matching formats are preferred.
pub(super) fn begins(head: &Head<'_>) -> bool {
    if !head.is_text {
        return false;
    }
    let first = header(head.first);
    let separator = separator(first);
    let columns = fields(first, separator).count();
    let has_number = |line| fields(line, separator).any(|field| id(field).is_some());
    let same = |second| fields(second, separator).count() == columns && has_number(second);
    columns > 1 && head.second.map_or_else(|| has_number(first), same)
}

/// Layout of a table as determined from its first line, and the type of its IDs.
struct Table {
    separator: u8,
    /// Index of the column with the ids, from 0.
    column: usize,
    columns: usize,
    /// True if the IDs are words, false if they are numbers; `None` until the first ID was read.
    words: Option<bool>,
}

impl Table {
    /// Determines the column with the IDs from the first line. The second result is true if that line is a header.
    /// Fails if no single column matches.
    fn begin(line: &[u8], column: Option<&Column>) -> Result<(Self, bool), ReferenceErrorKind> {
        let separator = separator(header(line));
        let is_header = is_header(header(line), separator);
        let line = if is_header { header(line) } else { line };
        let columns = fields(line, separator).count();
        let names = || -> Vec<String> {
            let names = fields(line, separator).filter(|_| is_header);
            names.take(MAX_SHOWN).map(shown).collect()
        };
        let place = |wanted: &dyn Fn(&[u8]) -> bool| {
            let mut found = fields(line, separator)
                .zip(0..)
                .filter(|(name, _)| wanted(name));
            let (_, place) = found.next()?;
            found.next().is_none().then_some(place)
        };
        let found = match column {
            Some(Column::Number(number)) => number.checked_sub(1).filter(|at| *at < columns),
            Some(Column::Name(name)) if is_header => place(&|field| field == name.as_bytes()),
            None if columns == 1 => Some(0),
            None if is_header => {
                let is_id = |field: &[u8]| {
                    IDS.iter()
                        .any(|id| field.eq_ignore_ascii_case(id.as_bytes()))
                };
                place(&is_id)
            }
            Some(Column::Name(_)) | None => None,
        };
        let table = Self {
            separator,
            column: found.ok_or_else(|| ReferenceErrorKind::Column {
                asked: column.map(Column::to_string),
                columns,
                names: names(),
            })?,
            columns,
            words: None,
        };
        Ok((table, is_header))
    }

    fn row(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        let (mut value, mut columns) = (None, 0);
        for field in fields(line, self.separator) {
            if columns == self.column {
                value = Some(field);
            }
            columns += 1;
        }
        let value = value.filter(|value| !value.is_empty() && columns == self.columns);
        let value = value.ok_or("row with as many columns as the first line")?;
        let number = id(value);
        if *self.words.get_or_insert(number.is_none()) {
            sink.id(id_of_word(value));
        } else {
            sink.id(number.ok_or("row with a number in the column of ids")?);
        }
        Ok(())
    }
}

/// Reads the IDs in `column`. If it is `None`, reads the only column, or the column whose header name is one of
/// [`IDS`].
pub(super) fn read(
    input: impl BufRead,
    column: Option<&Column>,
    take: Take<'_>,
) -> Result<(), ReferenceErrorKind> {
    let mut table: Option<Table> = None;
    lines(input, take, |line, sink| {
        if let Some(table) = &mut table {
            return table.row(line, sink);
        }
        let (mut begun, is_header) = Table::begin(line, column).map_err(Refusal::Whole)?;
        if !is_header {
            begun.row(line, sink)?;
        }
        table = Some(begun);
        Ok(())
    })
}
