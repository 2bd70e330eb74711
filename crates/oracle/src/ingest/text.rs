//! Text with one id per line, decimal or with 0x.

use std::io::BufRead;

use super::head::Head;
use super::lines::{id, lines};
use super::sink::Take;
use crate::error::ReferenceErrorKind;

/// Returns true if the first line is a single number.
pub(super) fn begins(head: &Head<'_>) -> bool {
    head.is_text && id(head.first).is_some()
}

/// Reads the first field of each line as an id. Anything after a space or comma is ignored.
pub(super) fn read(input: impl BufRead, take: Take<'_>) -> Result<(), ReferenceErrorKind> {
    lines(input, take, |line, sink| {
        let field = line
            .split(|byte| byte.is_ascii_whitespace() || *byte == b',')
            .next()
            .unwrap_or_default();
        sink.id(id(field).ok_or("id")?);
        Ok(())
    })
}
