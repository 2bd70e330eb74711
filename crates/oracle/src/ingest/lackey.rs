//! Output of `valgrind --tool=lackey --trace-mem=yes`: `I  addr,size`, ` L addr,size`, ` S addr,size`, ` M addr,size`.
//!
//! Addresses are hexadecimal, sizes decimal. S is a store and M a load and a store; both write. Lines of valgrind
//! itself begin with `==`.
//!
//! Source: valgrind's manual, the chapter on Lackey, and the comment at the top of `lackey/lk_main.c`.

use std::io::BufRead;

use super::head::Head;
use super::lines::{decimal, lines, number};
use super::sink::{Refusal, Sink, Take};
use crate::error::ReferenceErrorKind;

/// Returns true if the first line was printed by lackey or by valgrind itself.
pub(super) fn begins(head: &Head<'_>) -> bool {
    let rest = head.first.strip_prefix(b"==").unwrap_or_default();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let valgrind = digits > 0 && rest[digits..].starts_with(b"==");
    head.is_text && (valgrind || access(head.first).is_some())
}

/// Reads the pages of all memory accesses.
pub(super) fn read(input: impl BufRead, take: Take<'_>) -> Result<(), ReferenceErrorKind> {
    lines(input, take, |line, sink| {
        if line.starts_with(b"==") {
            return Ok(());
        }
        add(line, sink)
    })
}

fn add(line: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
    let (address, size, write) = access(line).ok_or("access as lackey prints it")?;
    sink.range(0, address, size, write)
}

/// Parses an access: address, size in bytes, and true if it writes. `None` if the line is not an access.
fn access(line: &[u8]) -> Option<(u64, u64, bool)> {
    let [kind @ (b'I' | b'L' | b'S' | b'M'), rest @ ..] = line else {
        return None;
    };
    let mut fields = rest.trim_ascii_start().split(|byte| *byte == b',');
    let address = number(fields.next()?, 16)?;
    let size = decimal(fields.next()?)?;
    fields
        .next()
        .is_none()
        .then_some((address, size, matches!(kind, b'S' | b'M')))
}
