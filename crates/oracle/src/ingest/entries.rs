//! Reads binary files that consist of entries of equal size without gaps.

use std::io::{BufRead, ErrorKind};

use crate::error::ReferenceErrorKind;

/// Number of entries passed on at a time: few enough that their bytes and IDs stay in a core's private cache.
pub(super) const ENTRIES: usize = 1 << 10;

/// Calls `take` with the entries of a file in order, in pieces. Returns the number of entries. Fails if the file ends
/// within an entry.
///
/// Entries are used in place in the input's buffer, because copying them would take longer than using them.
pub(super) fn entries<const BYTES: usize>(
    mut input: impl BufRead,
    form: &'static str,
    mut take: impl FnMut(&[[u8; BYTES]]) -> Result<(), ReferenceErrorKind>,
) -> Result<u64, ReferenceErrorKind> {
    let mut entries = 0;
    // This is the first part of an entry that continues in the next buffer.
    let mut begun: Vec<u8> = Vec::with_capacity(BYTES);
    loop {
        let mut bytes = match input.fill_buf() {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            break;
        }
        let length = bytes.len();
        if !begun.is_empty() {
            let lacks = bytes.split_off(..bytes.len().min(BYTES - begun.len()));
            begun.extend(lacks.unwrap_or_default());
        }
        let (first, _) = begun.as_chunks::<BYTES>();
        let (whole, rest) = bytes.as_chunks::<BYTES>();
        for some in std::iter::once(first).chain(whole.chunks(ENTRIES)) {
            entries += some.len() as u64;
            take(some)?;
        }
        if begun.len() == BYTES {
            begun.clear();
        }
        begun.extend(rest);
        input.consume(length);
    }
    if begun.is_empty() {
        Ok(entries)
    } else {
        Err(ReferenceErrorKind::Truncated {
            entry: entries + 1,
            rest: begun.len(),
            bytes: BYTES,
            form,
        })
    }
}

/// Returns the 16-bit number at byte `place` of an entry, little-endian.
#[inline]
pub(super) fn u16_at(entry: &[u8], place: usize) -> u16 {
    entry[place..]
        .first_chunk()
        .map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

/// Returns the 32-bit number at byte `place` of an entry, little-endian.
#[inline]
pub(super) fn u32_at(entry: &[u8], place: usize) -> u32 {
    entry[place..]
        .first_chunk()
        .map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Returns the 64-bit number at byte `place` of an entry, little-endian.
#[inline]
pub(super) fn u64_at(entry: &[u8], place: usize) -> u64 {
    entry[place..]
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads entries from `bytes` through a buffer of `capacity` bytes. Returns their ids, and the number of entries or
    /// the error.
    fn ids(bytes: &[u8], capacity: usize) -> (Vec<u64>, Result<u64, ReferenceErrorKind>) {
        let mut all = Vec::new();
        let input = std::io::BufReader::with_capacity(capacity, bytes);
        let result = entries::<24>(input, "a form", |some| {
            all.extend(some.iter().map(|entry| u64_at(entry, 4)));
            Ok(())
        });
        (all, result)
    }

    #[test]
    fn entries_are_whole_wherever_a_buffer_ends() {
        let expected: Vec<u64> = (1..500)
            .map(|id: u64| id.wrapping_mul(1 << 57 | 3))
            .collect();
        let entry = |id: &u64| {
            let mut entry = [7; 24];
            entry[4..12].copy_from_slice(&id.to_le_bytes());
            entry
        };
        let bytes: Vec<u8> = expected.iter().flat_map(entry).collect();
        for capacity in (1..100).chain([1000, 1 << 20]) {
            let (found, result) = ids(&bytes, capacity);
            assert!(result.is_ok() && found == expected, "buffers of {capacity}");
            let (found, result) = ids(&bytes[..24 * 5 + 23], capacity);
            assert_eq!(found, expected[..5], "buffers of {capacity}");
            assert!(matches!(
                result,
                Err(ReferenceErrorKind::Truncated {
                    entry: 6,
                    rest: 23,
                    bytes: 24,
                    ..
                })
            ));
        }
    }
}
