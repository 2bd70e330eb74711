//! Block traces from MSR Cambridge: CSV of time, host, disk, `Read` or `Write`, offset, size and response time.
//!
//! Offset and size are in bytes. Each disk of each host is a separate volume. A request is a reference to each of its
//! pages of 4 KiB.
//!
//! Source: the README of the traces at SNIA's IOTTA repository (trace set 388), and D. Narayanan, A. Donnelly and
//! A. Rowstron, "Write Off-Loading", FAST 2008.

use std::io::BufRead;

use super::head::Head;
use super::lines::{decimal, lines};
use super::sink::Take;
use super::spaces::Spaces;
use crate::error::ReferenceErrorKind;

/// The header line, which only some copies of the traces have.
const HEADER: &[u8] = b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
const EXPECTED: &str =
    "request of MSR Cambridge (time, host, disk, Read or Write, offset, size, response time)";

struct Request<'a> {
    /// Name of the volume: host and disk, including the comma between them.
    volume: &'a [u8],
    offset: u64,
    bytes: u64,
    write: bool,
}

fn request(line: &[u8]) -> Option<Request<'_>> {
    let mut fields = line.split(|byte| *byte == b',');
    let time = fields.next()?;
    decimal(time)?;
    let host = fields.next().filter(|host| !host.is_empty())?;
    let disk = fields.next()?;
    decimal(disk)?;
    let write = match fields.next()? {
        b"Read" => false,
        b"Write" => true,
        _ => return None,
    };
    let offset = decimal(fields.next()?)?;
    let bytes = decimal(fields.next()?)?;
    decimal(fields.next()?)?;
    let volume = &line[time.len() + 1..time.len() + 2 + host.len() + disk.len()];
    fields.next().is_none().then_some(Request {
        volume,
        offset,
        bytes,
        write,
    })
}

pub(super) fn begins(head: &Head<'_>) -> bool {
    head.is_text && (head.first == HEADER || request(head.first).is_some())
}

/// Reads the pages of all requests. A request of zero bytes has no pages.
pub(super) fn read(input: impl BufRead, take: Take<'_>) -> Result<(), ReferenceErrorKind> {
    let mut volumes = Spaces::default();
    let mut first = true;
    lines(input, take, |line, sink| {
        if std::mem::take(&mut first) && line == HEADER {
            return Ok(());
        }
        let request = request(line).ok_or(EXPECTED)?;
        if request.bytes == 0 {
            return Ok(());
        }
        let volume = volumes.number(request.volume)?;
        sink.range(volume, request.offset, request.bytes, request.write)
    })
}
