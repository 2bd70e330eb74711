//! Traces of block requests by VMware's vscsiStats, in both versions of the binary records.
//!
//! A record of version 1 is: u32 number, u32 bytes, u32 segments, u16 command, u16 version, u64 block, u64 time. A
//! record of version 2 is: u16 command, u16 version, u32 number, u32 bytes, u32 segments, u64 block, u64 time, u64
//! response time. All are little-endian. The version is the upper byte of its field. Commands are those of SCSI (SBC-3,
//! table 13). Blocks have 512 bytes.
//!
//! Source: `libCacheSim/traceReader/customizedReader/vscsi.h` of <https://github.com/1a1a11a/libCacheSim>. libCacheSim
//! uses the first block of a request as its object. Here a request is a reference to each of its pages of 4 KiB.

use std::io::BufRead;

use super::entries::{entries, u16_at, u32_at, u64_at};
use super::head::Head;
use super::sink::{Refusal, Sink, Take};
use crate::error::ReferenceErrorKind;

const BLOCK_BYTES: u64 = 512;
/// Number of entries examined to detect the format.
const TELL_FORMAT: usize = 64;
/// Number of entries examined to determine the version of a file that is known to have this format.
const TELL_VERSION: usize = 2;

/// Byte offsets of the fields in a record of one version.
#[derive(Clone, Copy)]
struct Layout {
    version: u16,
    command_at: usize,
    version_at: usize,
    bytes_at: usize,
}

const ONE: Layout = Layout {
    version: 1,
    command_at: 12,
    version_at: 14,
    bytes_at: 4,
};
const TWO: Layout = Layout {
    version: 2,
    command_at: 0,
    version_at: 2,
    bytes_at: 8,
};
/// Byte offset, in a record, of the field with the number of the first block; the same in both versions.
const BLOCK_AT: usize = 16;
const ONE_BYTES: usize = 32;
const TWO_BYTES: usize = 40;

impl Layout {
    /// Returns true if an entry can be a record of this version: its version field matches, its command fits in one
    /// byte, and its size is a whole number of blocks.
    fn fits(&self, entry: &[u8]) -> bool {
        u16_at(entry, self.version_at) >> 8 == self.version
            && u16_at(entry, self.command_at) <= 0xff
            && u64::from(u32_at(entry, self.bytes_at)).is_multiple_of(BLOCK_BYTES)
    }

    fn request(&self, entry: &[u8], sink: &mut Sink<'_>) -> Result<(), Refusal> {
        if !self.fits(entry) {
            return Err("request of the same version of vscsi".into());
        }
        let write = match u16_at(entry, self.command_at) {
            0x08 | 0x28 | 0x88 | 0xa8 => false,
            0x0a | 0x2a | 0x8a | 0xaa => true,
            _ => return Ok(()),
        };
        let bytes = u64::from(u32_at(entry, self.bytes_at));
        let address = u64_at(entry, BLOCK_AT)
            .checked_mul(BLOCK_BYTES)
            .ok_or("request below 2^64 bytes")?;
        if bytes == 0 {
            return Ok(());
        }
        sink.range(0, address, bytes, write)
    }
}

/// Returns the version that fits the first `entries` entries; `None` if neither version fits.
fn layout(head: &[u8], entries: usize) -> Option<Layout> {
    let fit = |layout: &Layout, bytes: usize| {
        let mut some = head.chunks_exact(bytes).take(entries).peekable();
        some.peek().is_some() && some.all(|entry| layout.fits(entry))
    };
    if fit(&TWO, TWO_BYTES) {
        Some(TWO)
    } else if fit(&ONE, ONE_BYTES) {
        Some(ONE)
    } else {
        None
    }
}

pub(super) fn begins(head: &Head<'_>) -> bool {
    !head.is_text && layout(head.bytes, TELL_FORMAT).is_some()
}

/// Reads the pages of all reads and writes. Other commands are ignored.
pub(super) fn read(mut input: impl BufRead, take: Take<'_>) -> Result<(), ReferenceErrorKind> {
    match layout(input.fill_buf()?, TELL_VERSION) {
        Some(layout) if layout.version == ONE.version => requests::<ONE_BYTES>(input, layout, take),
        Some(layout) => requests::<TWO_BYTES>(input, layout, take),
        None => Err(ReferenceErrorKind::Beginning {
            form: "vscsi",
            reason: "its first entries are of neither version",
        }),
    }
}

fn requests<const BYTES: usize>(
    input: impl BufRead,
    layout: Layout,
    take: Take<'_>,
) -> Result<(), ReferenceErrorKind> {
    let mut sink = Sink::new(take);
    let mut count = 0;
    entries::<BYTES>(input, "vscsi", |some| {
        for entry in some {
            count += 1;
            layout
                .request(entry, &mut sink)
                .map_err(|refusal| match refusal {
                    Refusal::Not(expected) => ReferenceErrorKind::Entry {
                        entry: count,
                        expected,
                    },
                    Refusal::Long { pages } => ReferenceErrorKind::LongRequest {
                        place: format!("entry {count}"),
                        pages,
                    },
                    Refusal::Whole(trouble) => trouble,
                })?;
            sink.hand_on()?;
        }
        Ok(())
    })?;
    sink.finish()
}
