//! libCacheSim's lcs: a header of 8 KiB, then requests of one of eight versions.
//!
//! The header is u64 magic, u64 version, the trace's statistics (of which the second of 8 bytes is the number of
//! requests), and u64 magic at its end. A request begins with u32 time and u64 object in every version; the rest
//! differs.
//!
//! Source: `libCacheSim/traceReader/customizedReader/lcs.h` of <https://github.com/1a1a11a/libCacheSim>. Until 2024 a
//! file had another header of 1 KiB with the same magic, which is refused.

use std::io::{BufRead, ErrorKind};

use super::entries::{ENTRIES, entries, u64_at};
use super::sink::Take;
use super::tell::Head;
use crate::error::Trouble;

const HEADER_BYTES: usize = 8192;
/// First and last 8 bytes of the header.
const MAGIC: u64 = 0x1234_5678_9abc_def0;
/// Where the header has the version, the number of requests and the second magic.
const VERSION: usize = 8;
const REQUESTS: usize = 24;
const END: usize = HEADER_BYTES - 8;
/// Where a request has its object.
const OBJECT: usize = 4;

pub(super) fn begins(head: &Head<'_>) -> bool {
    head.bytes.starts_with(&MAGIC.to_le_bytes())
}

/// Reads the objects' ids; there have to be as many as the header says.
pub(super) fn read(mut input: impl BufRead, take: Take<'_>) -> Result<(), Trouble> {
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
        promised if promised != found && promised != 0 => Err(Trouble::Count {
            what: "its header",
            promised,
            found,
        }),
        _ => Ok(()),
    }
}

fn objects<const BYTES: usize>(input: impl BufRead, take: Take<'_>) -> Result<u64, Trouble> {
    let mut ids = Vec::with_capacity(ENTRIES);
    entries::<BYTES>(input, "lcs", |some| {
        ids.clear();
        ids.extend(some.iter().map(|request| u64_at(request, OBJECT)));
        take(&ids, &[])
    })
}

fn not(reason: &'static str) -> Trouble {
    Trouble::Beginning {
        form: "lcs",
        reason,
    }
}
