//! libCacheSim's format lcs: a header of 8 KiB, then requests. There are eight versions of requests.
//!
//! The header is: u64 magic, u64 version, statistics of the trace, and u64 magic in its last bytes. The number of
//! requests is the second u64 of the statistics. In every version, a request begins with u32 time and u64 object; the
//! rest differs.
//!
//! Source: `libCacheSim/traceReader/customizedReader/lcs.h` of <https://github.com/1a1a11a/libCacheSim>. Files written
//! by libCacheSim before 2025 have a different header of 1 KiB with the same magic; they are refused.

use std::io::{BufRead, ErrorKind};

use super::entries::{ENTRIES, entries, u64_at};
use super::head::Head;
use super::sink::Take;
use crate::error::ReferenceErrorKind;

const HEADER_BYTES: usize = 8192;
/// Magic number in the first and in the last 8 bytes of the header.
const MAGIC: u64 = 0x1234_5678_9abc_def0;
/// Byte offset of the version in the header.
const VERSION: usize = 8;
/// Byte offset of the number of requests in the header.
const REQUESTS: usize = 24;
/// Byte offset of the second magic number in the header.
const END: usize = HEADER_BYTES - 8;
/// Byte offset of the object's id in a request.
const OBJECT: usize = 4;

pub(super) fn begins(head: &Head<'_>) -> bool {
    head.bytes.starts_with(&MAGIC.to_le_bytes())
}

/// Reads the ids of all objects. Fails if their number differs from the one in the header, unless that is 0.
pub(super) fn read(mut input: impl BufRead, take: Take<'_>) -> Result<(), ReferenceErrorKind> {
    let mut header = [0; HEADER_BYTES];
    match input.read_exact(&mut header) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            return Err(not("it is shorter than a header of 8,192 bytes"));
        }
        read => read?,
    }
    if u64_at(&header, 0) != MAGIC {
        return Err(not("it does not begin with the magic 0x123456789abcdef0"));
    }
    if matches!(header[VERSION], b'<' | b'>' | b'@' | b'=' | b'!') {
        return Err(not(
            "its header is that of libCacheSim before 2025; convert it with a newer libCacheSim",
        ));
    }
    if u64_at(&header, END) != MAGIC {
        return Err(not(
            "its header does not end with the magic 0x123456789abcdef0",
        ));
    }
    let found = match u64_at(&header, VERSION) {
        1 => objects::<24>(input, take),
        2 => objects::<28>(input, take),
        3 => objects::<36>(input, take),
        4 => objects::<40>(input, take),
        5 => objects::<44>(input, take),
        6 => objects::<52>(input, take),
        7 => objects::<68>(input, take),
        8 => objects::<100>(input, take),
        _ => return Err(not("its version is none from 1 to 8")),
    }?;
    match u64_at(&header, REQUESTS) {
        promised if promised != found && promised != 0 => Err(ReferenceErrorKind::Count {
            what: "its header",
            promised,
            found,
        }),
        _ => Ok(()),
    }
}

fn objects<const BYTES: usize>(
    input: impl BufRead,
    take: Take<'_>,
) -> Result<u64, ReferenceErrorKind> {
    let mut ids = Vec::with_capacity(ENTRIES);
    entries::<BYTES>(input, "lcs", |some| {
        ids.clear();
        ids.extend(some.iter().map(|request| u64_at(request, OBJECT)));
        take(&ids, &[])
    })
}

fn not(reason: &'static str) -> ReferenceErrorKind {
    ReferenceErrorKind::Beginning {
        form: "lcs",
        reason,
    }
}
