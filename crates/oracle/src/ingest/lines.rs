//! Reads text files line by line, and parses the numbers in them.

use std::io::{BufRead, Read};

use super::sink::{Refusal, Sink, Take};
use crate::error::ReferenceErrorKind;

/// Maximum length of a line in bytes. It prevents a file without line ends from being read as a whole.
const LONGEST_LINE_BYTES: u64 = 1 << 16;
/// Maximum number of bytes of a refused line that a message shows.
const SHOWN_BYTES: usize = 40;

/// Reads a file line by line and calls `parse` with each line, without surrounding white space. Empty lines are
/// skipped. If `parse` refuses a line, fails with the line's number.
pub(super) fn lines(
    mut input: impl BufRead,
    take: Take<'_>,
    mut parse: impl FnMut(&[u8], &mut Sink<'_>) -> Result<(), Refusal>,
) -> Result<(), ReferenceErrorKind> {
    let mut sink = Sink::new(take);
    let mut line = Vec::new();
    let mut count = 0;
    loop {
        line.clear();
        let read = input
            .by_ref()
            .take(LONGEST_LINE_BYTES)
            .read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        count += 1;
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let parsed = if read as u64 == LONGEST_LINE_BYTES && line.last() != Some(&b'\n') {
            Err("line of less than 64 KiB".into())
        } else {
            parse(text, &mut sink)
        };
        parsed.map_err(|refusal| refused(refusal, count, text))?;
        sink.hand_on()?;
    }
    sink.finish()
}

fn refused(refusal: Refusal, line: u64, text: &[u8]) -> ReferenceErrorKind {
    match refusal {
        Refusal::Not(expected) => ReferenceErrorKind::Line {
            line,
            text: shown(text),
            expected,
        },
        Refusal::Long { pages } => ReferenceErrorKind::LongRequest {
            place: format!("line {line}"),
            pages,
        },
        Refusal::Whole(trouble) => trouble,
    }
}

/// Returns the beginning of a line as printable text.
pub(super) fn shown(text: &[u8]) -> String {
    text.iter()
        .take(SHOWN_BYTES)
        .map(|byte| byte.escape_ascii().to_string())
        .collect()
}

/// Parses a number in the given base; `None` if there are other characters or it does not fit in 64 bits.
pub(super) fn number(digits: &[u8], base: u32) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, &byte| {
        let digit = char::from(byte).to_digit(base)?;
        number
            .checked_mul(u64::from(base))?
            .checked_add(u64::from(digit))
    })
}

/// Parses a decimal number; `None` if the text is anything else.
pub(super) fn decimal(digits: &[u8]) -> Option<u64> {
    number(digits, 10)
}

/// Parses a hexadecimal number, with or without 0x; `None` if the text is anything else.
pub(super) fn hex(digits: &[u8]) -> Option<u64> {
    number(after_0x(digits).unwrap_or(digits), 16)
}

/// Parses a hexadecimal number with 0x, or a decimal number; `None` if the text is anything else.
pub(super) fn id(field: &[u8]) -> Option<u64> {
    match after_0x(field) {
        Some(digits) => number(digits, 16),
        None => decimal(field),
    }
}

fn after_0x(digits: &[u8]) -> Option<&[u8]> {
    digits
        .strip_prefix(b"0x")
        .or_else(|| digits.strip_prefix(b"0X"))
}

/// Returns the words of a line, separated by white space.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}
