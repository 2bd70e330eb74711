//! The two text forms: one page index per line, and `page count` per line.

use std::io::{self, BufRead, Read, Write};

use super::error::{Position, ReadError};
use super::form::Form;
use crate::limits::MAX_REFS;

/// Maximum length of a line in bytes: enough for two numbers and spaces. Longer lines are errors.
const LONGEST_LINE: u64 = 80;

/// Writes one page index per line, in order.
pub fn write_text(
    mut out: impl Write,
    references: impl IntoIterator<Item = u32>,
) -> io::Result<()> {
    for page in references {
        writeln!(out, "{page}")?;
    }
    out.flush()
}

/// Writes `page count` per line for every page, including those without references.
pub fn write_counts(mut out: impl Write, counts: &[u32]) -> io::Result<()> {
    for (page, count) in counts.iter().enumerate() {
        writeln!(out, "{page} {count}")?;
    }
    out.flush()
}

/// Iterator over the references in a text with one or two numbers per line.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    /// Number of the last line read, from 1.
    line: u64,
    buffer: Vec<u8>,
    /// Number of fields per line, 1 or 2, as in the first line.
    fields: usize,
    pages: u32,
    /// Page of the last line read. `repeat` references to it have not been returned yet.
    page: Option<u32>,
    repeat: u64,
    /// Number of references in all lines read so far.
    total: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads the first line, which decides between one page index per line and `page count` per line.
    pub(super) fn new(input: R, pages: u32) -> Result<Self, ReadError> {
        let mut lines = Self {
            input,
            line: 0,
            buffer: Vec::new(),
            fields: 0,
            pages,
            page: None,
            repeat: 0,
            total: 0,
        };
        if !lines.advance()? {
            return Err(ReadError::Empty);
        }
        Ok(lines)
    }

    pub(super) fn form(&self) -> Form {
        if self.fields == 2 {
            Form::Counts
        } else {
            Form::Text
        }
    }

    pub(super) fn next_page(&mut self) -> Result<Option<u32>, ReadError> {
        while self.repeat == 0 {
            if !self.advance()? {
                // Counts may all be zero.
                return if self.total == 0 {
                    Err(ReadError::Empty)
                } else {
                    Ok(None)
                };
            }
        }
        self.repeat -= 1;
        Ok(self.page)
    }

    /// Reads one line. Returns false at the end of the text.
    fn advance(&mut self) -> Result<bool, ReadError> {
        self.buffer.clear();
        let mut limited = self.input.by_ref().take(LONGEST_LINE);
        if limited.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(false);
        }
        self.line += 1;
        let line = self.line;
        if self.buffer.len() as u64 == LONGEST_LINE && !self.buffer.ends_with(b"\n") {
            let text = shown(&self.buffer);
            return Err(ReadError::NotANumber { line, text });
        }
        let mut fields = self
            .buffer
            .split(u8::is_ascii_whitespace)
            .filter(|field| !field.is_empty());
        let Some(first) = fields.next() else {
            return Err(ReadError::EmptyLine { line });
        };
        let place = Position::Line(line);
        let page = number(first, line)?
            .and_then(|page| u32::try_from(page).ok())
            .filter(|&page| page < self.pages)
            .ok_or_else(|| ReadError::OutOfRange {
                place,
                page: shown(first),
                pages: self.pages,
            })?;
        let second = fields.next();
        let found = 1 + usize::from(second.is_some()) + fields.count();
        if self.fields == 0 {
            self.fields = found.min(2);
        }
        if found != self.fields {
            return Err(ReadError::OtherForm {
                line,
                found,
                expected: self.fields,
            });
        }
        self.repeat = match second {
            Some(count) => number(count, line)?.unwrap_or(u64::MAX),
            None => 1,
        };
        self.total = self.total.saturating_add(self.repeat);
        if self.total > MAX_REFS {
            return Err(ReadError::TooMany { place });
        }
        match self.page {
            Some(before) if second.is_some() && page <= before => {
                return Err(ReadError::Unordered { line, page, before });
            }
            _ => self.page = Some(page),
        }
        Ok(true)
    }
}

/// Parses the number in a field; `None` if it exceeds 64 bits. Fails if the field is not a whole number or is negative.
fn number(field: &[u8], line: u64) -> Result<Option<u64>, ReadError> {
    let digits = field.strip_prefix(b"-").unwrap_or(field);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        let text = shown(field);
        return Err(ReadError::NotANumber { line, text });
    }
    if digits.len() < field.len() {
        let text = shown(field);
        return Err(ReadError::Negative { line, text });
    }
    Ok(digits.iter().try_fold(0_u64, |value, digit| {
        value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    }))
}

/// Returns the text of a field for a message: shortened, with unprintable bytes escaped.
fn shown(field: &[u8]) -> String {
    const ENOUGH: usize = 24;
    let more = if field.len() > ENOUGH { "…" } else { "" };
    let start = &field[..field.len().min(ENOUGH)];
    format!("{}{more}", start.escape_ascii())
}
