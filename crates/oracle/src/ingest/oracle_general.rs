//! libCacheSim's format oracleGeneral: u32 time, u64 object, u32 size, i64 next access, little-endian, without gaps.
//!
//! Source: `libCacheSim/traceReader/customizedReader/oracle/oracleGeneralBin.h` of
//! <https://github.com/1a1a11a/libCacheSim>.

use std::io::BufRead;

use super::entries::{ENTRIES, entries, u32_at, u64_at};
use super::head::Head;
use super::sink::Take;
use crate::error::ReferenceErrorKind;

const ENTRY_BYTES: usize = 24;
/// Number of entries examined to detect the format.
const TOLD_BY: usize = 64;
/// Upper limit of valid numbers of a next access. The two values that mean "no next access" are larger.
const NEXT_END: u64 = 1 << 48;

/// Returns true if the file is binary and, in its first [`TOLD_BY`] entries, times never decrease, no size is zero, and
/// each next access is the number of a request or means that there is none.
pub(super) fn begins(head: &Head<'_>) -> bool {
    if head.is_text {
        return false;
    }
    let some = &head.bytes[..head.bytes.len().min(TOLD_BY * ENTRY_BYTES)];
    let (entries, _) = some.as_chunks::<ENTRY_BYTES>();
    let in_order = entries
        .windows(2)
        .all(|pair| u32_at(&pair[0], 0) <= u32_at(&pair[1], 0));
    let plausible = entries.iter().all(|entry| {
        let next = u64_at(entry, 16);
        u32_at(entry, 12) != 0 && (next < NEXT_END || next >= i64::MAX as u64)
    });
    in_order && plausible && (!entries.is_empty() || head.bytes.first() == Some(&0))
}

/// Reads the ids of all objects.
pub(super) fn read(input: impl BufRead, take: Take<'_>) -> Result<(), ReferenceErrorKind> {
    let mut ids = Vec::with_capacity(ENTRIES);
    entries::<ENTRY_BYTES>(input, "oracleGeneral", |some| {
        ids.clear();
        ids.extend(some.iter().map(id_of_entry));
        take(&ids, &[])
    })?;
    Ok(())
}

#[inline]
fn id_of_entry(entry: &[u8; ENTRY_BYTES]) -> u64 {
    u64::from_le_bytes([
        entry[4], entry[5], entry[6], entry[7], entry[8], entry[9], entry[10], entry[11],
    ])
}
