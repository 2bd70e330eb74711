//! The formats: how ids are found in bytes.

use std::io::{BufRead, ErrorKind, Read};

use pagetide_reference::{MAX_PAGES, Reader};

use super::Format;
use crate::error::Trouble;

/// Ids that are handed on at a time.
pub(super) const PIECE: usize = 1 << 14;
/// Bytes of an entry of oracleGeneral.
const ENTRY_BYTES: usize = 24;
/// Entries of oracleGeneral that are taken at a time: their bytes and ids stay in a core's own cache.
const ENTRIES: usize = 1 << 10;
/// Bits of an address within a page.
const PAGE_BITS: u32 = 12;

/// Where ids go to, in pieces, with which of them write; nothing where the format does not tell.
type Take<'a> = &'a mut dyn FnMut(&[u64], &[bool]) -> Result<(), Trouble>;

/// Tells a file's format by its beginning.
pub(super) fn tell(head: &[u8]) -> Result<Format, Trouble> {
    let Some(&first) = head.first() else {
        return Err(Trouble::Empty);
    };
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    if head.iter().take(4096).all(is_text) {
        let line = head
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::trim_ascii)
            .find(|line| !line.is_empty())
            .ok_or(Trouble::Empty)?;
        let fields = line.split(u8::is_ascii_whitespace).count();
        let numbers = line
            .iter()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_whitespace());
        return match line[0] {
            b'=' | b'I' | b'L' | b'S' | b'M' => Ok(Format::Lackey),
            // Our own files of counts have two numbers a line.
            _ if numbers && fields == 2 => Ok(Format::Pagetide),
            b'0'..=b'9' => Ok(Format::Text),
            _ => Err(Trouble::Unknown),
        };
    }
    if Reader::new(head, MAX_PAGES)
        .is_ok_and(|reader| reader.form() == pagetide_reference::Form::Binary)
    {
        return Ok(Format::Pagetide);
    }
    // An entry's time is at most its successor's, and sizes are not zero: what else would look like this?
    let (entries, _) = head[..head.len().min(64 * ENTRY_BYTES)].as_chunks::<ENTRY_BYTES>();
    let time =
        |entry: &[u8; ENTRY_BYTES]| u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]);
    let in_order = entries
        .windows(2)
        .all(|pair| time(&pair[0]) <= time(&pair[1]));
    let sized = entries.iter().all(|entry| entry[12..16] != [0; 4]);
    if in_order && sized && (!entries.is_empty() || first == 0) {
        Ok(Format::OracleGeneral)
    } else {
        Err(Trouble::Unknown)
    }
}

/// Our own files.
pub(super) fn pagetide(input: impl BufRead, take: Take<'_>) -> Result<(), Trouble> {
    let mut reader = Reader::new(input, MAX_PAGES)?;
    let mut pages = [0; 1024];
    loop {
        let filled = reader.fill(&mut pages)?;
        let ids: Vec<u64> = pages[..filled].iter().copied().map(u64::from).collect();
        take(&ids, &[])?;
        if filled < pages.len() {
            return Ok(());
        }
    }
}

/// oracleGeneral: u32 time, u64 id, u32 size, i64 next access, little-endian, without gaps.
///
/// Entries are taken where they lie in the input's own buffer: to copy them first would take longer than to use them.
pub(super) fn oracle_general(mut input: impl BufRead, take: Take<'_>) -> Result<(), Trouble> {
    let mut ids = Vec::with_capacity(ENTRIES);
    let mut entries = 0;
    // The beginning of an entry that goes on in the next buffer.
    let mut begun: Vec<u8> = Vec::with_capacity(ENTRY_BYTES);
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
            let lacks = bytes.split_off(..bytes.len().min(ENTRY_BYTES - begun.len()));
            begun.extend(lacks.unwrap_or_default());
        }
        let (first, _) = begun.as_chunks::<ENTRY_BYTES>();
        let (whole, rest) = bytes.as_chunks::<ENTRY_BYTES>();
        for some in std::iter::once(first).chain(whole.chunks(ENTRIES)) {
            ids.clear();
            ids.extend(some.iter().map(id_of_entry));
            entries += some.len() as u64;
            take(&ids, &[])?;
        }
        if begun.len() == ENTRY_BYTES {
            begun.clear();
        }
        begun.extend(rest);
        input.consume(length);
    }
    if begun.is_empty() {
        Ok(())
    } else {
        Err(Trouble::Truncated {
            entry: entries + 1,
            rest: begun.len(),
        })
    }
}

#[inline]
fn id_of_entry(entry: &[u8; ENTRY_BYTES]) -> u64 {
    u64::from_le_bytes([
        entry[4], entry[5], entry[6], entry[7], entry[8], entry[9], entry[10], entry[11],
    ])
}

/// One id a line.
pub(super) fn text(input: impl BufRead, take: Take<'_>) -> Result<(), Trouble> {
    lines(input, take, |line, ids, _| {
        let field = line
            .split(|byte| byte.is_ascii_whitespace() || *byte == b',')
            .next()
            .unwrap_or_default();
        let id = match field {
            [b'0', b'x' | b'X', digits @ ..] => number(digits, 16),
            digits => number(digits, 10),
        };
        ids.push(id.ok_or("id")?);
        Ok(())
    })
}

/// The memory trace of valgrind's lackey: `I  addr,size`, ` L addr,size`, ` S addr,size`, ` M addr,size`, in hex.
pub(super) fn lackey(input: impl BufRead, take: Take<'_>) -> Result<(), Trouble> {
    lines(input, take, |line, ids, writes| {
        if line.starts_with(b"==") {
            return Ok(());
        }
        let [kind @ (b'I' | b'L' | b'S' | b'M'), rest @ ..] = line else {
            return Err("access as lackey prints it");
        };
        let mut fields = rest.trim_ascii_start().split(|byte| *byte == b',');
        let address = fields.next().and_then(|digits| number(digits, 16));
        let size = fields.next().and_then(|digits| number(digits, 10));
        let (Some(address), Some(size)) = (address, size) else {
            return Err("access as lackey prints it");
        };
        let first = address >> PAGE_BITS;
        let last = address.saturating_add(size.saturating_sub(1)) >> PAGE_BITS;
        ids.push(first);
        if last != first {
            ids.push(last);
        }
        writes.resize(ids.len(), matches!(kind, b'S' | b'M'));
        Ok(())
    })
}

/// Takes a file line by line; empty lines are passed over.
fn lines(
    mut input: impl BufRead,
    take: Take<'_>,
    mut parse: impl FnMut(&[u8], &mut Vec<u64>, &mut Vec<bool>) -> Result<(), &'static str>,
) -> Result<(), Trouble> {
    /// Longest line that makes sense; a file without line ends is not read whole.
    const LONGEST_LINE_BYTES: u64 = 4096;
    let mut ids = Vec::with_capacity(PIECE + 1);
    let mut writes = Vec::new();
    let mut line = Vec::new();
    let mut count = 0;
    loop {
        line.clear();
        if input
            .by_ref()
            .take(LONGEST_LINE_BYTES)
            .read_until(b'\n', &mut line)?
            == 0
        {
            break;
        }
        count += 1;
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        parse(text, &mut ids, &mut writes).map_err(|expected| Trouble::Line {
            line: count,
            text: text
                .iter()
                .take(40)
                .map(|b| b.escape_ascii().to_string())
                .collect(),
            expected,
        })?;
        if ids.len() >= PIECE {
            take(&ids, &writes)?;
            ids.clear();
            writes.clear();
        }
    }
    take(&ids, &writes)
}

/// A number in this base, nothing else around it.
fn number(digits: &[u8], base: u32) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of `bytes` as they come from a buffer of `capacity` bytes, and what ended the reading.
    fn ids(bytes: &[u8], capacity: usize) -> (Vec<u64>, Result<(), Trouble>) {
        let mut all = Vec::new();
        let input = std::io::BufReader::with_capacity(capacity, bytes);
        let result = oracle_general(input, &mut |ids, _| {
            all.extend(ids);
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
            let mut entry = [7; ENTRY_BYTES];
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
                Err(Trouble::Truncated { entry: 6, rest: 23 })
            ));
        }
    }
}
