//! The formats: how ids are found in bytes.

use std::io::{BufRead, Read};

use pagetide_reference::{MAX_PAGES, Reader};

use super::Format;
use crate::error::Trouble;

/// Ids that are handed on at a time.
pub(super) const PIECE: usize = 1 << 14;
/// Bytes of an entry of oracleGeneral.
const ENTRY_BYTES: usize = 24;
/// Entries of oracleGeneral that are read at a time: their bytes and ids stay in a core's own cache.
const ENTRIES: usize = 1 << 12;
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
pub(super) fn oracle_general(mut input: impl Read, take: Take<'_>) -> Result<(), Trouble> {
    let mut bytes = vec![0; ENTRIES * ENTRY_BYTES];
    let mut ids = Vec::with_capacity(ENTRIES);
    let mut entries = 0;
    loop {
        let filled = read_full(&mut input, &mut bytes)?;
        let (whole, rest) = bytes[..filled].as_chunks::<ENTRY_BYTES>();
        ids.clear();
        ids.extend(whole.iter().map(|entry| {
            u64::from_le_bytes([
                entry[4], entry[5], entry[6], entry[7], entry[8], entry[9], entry[10], entry[11],
            ])
        }));
        entries += whole.len() as u64;
        take(&ids, &[])?;
        if !rest.is_empty() {
            return Err(Trouble::Truncated {
                entry: entries + 1,
                rest: rest.len(),
            });
        }
        if filled < bytes.len() {
            return Ok(());
        }
    }
}

/// Fills a buffer as far as the input goes.
fn read_full(input: &mut impl Read, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match input.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
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
