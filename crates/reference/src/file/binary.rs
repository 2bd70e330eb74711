//! The compact binary form: steps from page to page, with run lengths.

use std::io::{self, BufRead, Write};

use super::error::{Position, ReadError};
use crate::limits::{MAX_PAGES, MAX_REFS};

/// First bytes of a file in binary form. The first byte is not ASCII, so that no text begins with it. The last byte
/// changes if line ends are converted, which reveals this.
pub(super) const MAGIC: [u8; 8] = *b"\x89PTREFS\n";

/// Version of the binary form; there are no others so far.
const VERSION: u8 = 1;

/// Number of bytes outside the steps: the header before them and the checksum after them.
pub(super) const HEADER: usize = 24;
pub(super) const TRAILER: usize = 4;

/// Maximum length of an encoded step in bytes: two numbers of at most five bytes.
const LONGEST_STEP_BYTES: usize = 10;

/// Size of the read buffer in bytes.
const BUFFER_BYTES: usize = 8192;

/// Writes `refs` references over `pages` pages in the binary form.
///
/// All numbers are little-endian. The file has, in this order:
///
/// | bytes | content |
/// |---|---|
/// | 8 | `89 50 54 52 45 46 53 0A` (`\x89PTREFS\n`) |
/// | 1 | version, 1 |
/// | 3 | 0 |
/// | 4 | pages: every index is below it, 1 to 2^28 |
/// | 8 | refs: number of references, 1 to 2^32 − 1 |
/// | … | steps |
/// | 4 | CRC-32 (IEEE 802.3) of everything before |
///
/// Each step leads from one page to the next; the first step starts at page 0. A step is a number in LEB128 (7 bits per
/// byte, least significant first, the top bit set in all but the last byte; at most 5 bytes and 32 bits). Its lowest
/// bit says whether a second number *n* follows. The other bits are the distance in zigzag form (0, −1, 1, −2, … as 0,
/// 1, 2, 3, …). The step is taken once, or *n* + 2 times. So a scan or repeated references to one page take a few bytes
/// for any length, a step of less than 32 pages one byte, and random references over 50,000 pages three bytes.
///
/// Fails if `references` does not contain exactly `refs` indices below `pages`, or if writing to `out` fails.
pub fn write_binary(
    out: impl Write,
    pages: u32,
    refs: u64,
    references: impl IntoIterator<Item = u32>,
) -> io::Result<()> {
    let refuse = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    if pages == 0 || pages > MAX_PAGES || refs == 0 || refs > MAX_REFS {
        return Err(refuse(
            "the range or the number of references is out of bounds",
        ));
    }
    let mut out = ChecksumWriter {
        out,
        sum: crc32fast::Hasher::new(),
        buffer: Vec::with_capacity(BUFFER_BYTES),
    };
    out.buffer.extend(MAGIC);
    out.buffer.extend([VERSION, 0, 0, 0]);
    out.buffer.extend(pages.to_le_bytes());
    out.buffer.extend(refs.to_le_bytes());
    let mut left = refs;
    let mut before = 0;
    let mut step = Step {
        distance: 0,
        times: 0,
    };
    for page in references {
        if page >= pages {
            return Err(refuse("a reference is outside the range"));
        }
        left = left
            .checked_sub(1)
            .ok_or_else(|| refuse("there are more references than announced"))?;
        let distance = i64::from(page) - i64::from(before);
        before = page;
        if distance == step.distance && step.times > 0 {
            step.times += 1;
        } else {
            step.put(&mut out)?;
            step = Step { distance, times: 1 };
        }
    }
    if left > 0 {
        return Err(refuse("there are fewer references than announced"));
    }
    step.put(&mut out)?;
    out.finish()
}

/// A writer that computes the CRC-32 of the bytes written through it.
struct ChecksumWriter<W> {
    out: W,
    sum: crc32fast::Hasher,
    buffer: Vec<u8>,
}

impl<W: Write> ChecksumWriter<W> {
    fn number(&mut self, mut value: u64) {
        while value > 0x7f {
            self.buffer.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.buffer.push((value & 0x7f) as u8);
    }

    fn drain(&mut self) -> io::Result<()> {
        self.sum.update(&self.buffer);
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.drain()?;
        self.out.write_all(&self.sum.finalize().to_le_bytes())?;
        self.out.flush()
    }
}

/// A distance between two pages, and how often it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// Distance in pages, up or down; below 2^31.
    pub(super) distance: i64,
    /// Number of repetitions left.
    pub(super) times: u64,
}

impl Step {
    fn put<W: Write>(self, out: &mut ChecksumWriter<W>) -> io::Result<()> {
        if self.times == 0 {
            return Ok(());
        }
        let zigzag = (self.distance.unsigned_abs() << 1) - u64::from(self.distance < 0);
        out.number(zigzag << 1 | u64::from(self.times > 1));
        if let Some(more) = self.times.checked_sub(2) {
            out.number(more);
        }
        if out.buffer.len() + LONGEST_STEP_BYTES > BUFFER_BYTES {
            out.drain()?;
        }
        Ok(())
    }

    /// Parses the step at the start of `bytes` and returns it with its length in bytes. `bytes` must be the whole rest
    /// of the file, or at least [`LONGEST_STEP_BYTES`]. Fails if the step is truncated or damaged.
    pub(super) fn take(bytes: &[u8], place: Position) -> Result<(Self, usize), ReadError> {
        Self::read(bytes).ok_or(if bytes.len() < LONGEST_STEP_BYTES {
            ReadError::Truncated { place }
        } else {
            ReadError::Damaged {
                what: "a step is longer than steps are",
            }
        })
    }

    /// Decodes the step at the start of `bytes`; returns the step and its length in bytes. `None` if it is incomplete
    /// or invalid.
    #[inline]
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let (word, length) = number(bytes)?;
        let zigzag = i64::from(word >> 1);
        let distance = if zigzag & 1 == 0 {
            zigzag >> 1
        } else {
            -((zigzag + 1) >> 1)
        };
        if word & 1 == 0 {
            return Some((Self { distance, times: 1 }, length));
        }
        let (more, further) = number(&bytes[length..])?;
        let times = u64::from(more) + 2;
        Some((Self { distance, times }, length + further))
    }
}

/// Fills the input's buffer. Tries again if a signal interrupts the read.
pub(super) fn wait(input: &mut impl BufRead) -> io::Result<()> {
    loop {
        match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map(|_| ()),
        }
    }
}

#[inline]
fn number(bytes: &[u8]) -> Option<(u32, usize)> {
    let mut value = 0_u64;
    for (place, &byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some((u32::try_from(value).ok()?, place + 1));
        }
    }
    None
}

/// The header of a file in binary form, before the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) pages: u32,
    pub(super) refs: u64,
}

impl Header {
    /// Parses the first [`HEADER`] bytes of a file, or fewer if the file is shorter.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        let mut rest = bytes;
        if take(&mut rest) != Some(MAGIC) {
            return Err(ReadError::NotReferences);
        }
        let truncated = ReadError::Truncated {
            place: Position::Reference(1),
        };
        let (Some([version, zeros @ ..]), pages, refs) = (
            take::<4>(&mut rest),
            take(&mut rest).map(u32::from_le_bytes),
            take(&mut rest).map(u64::from_le_bytes),
        ) else {
            return Err(truncated);
        };
        if version != VERSION {
            return Err(ReadError::Version { version });
        }
        let (Some(pages), Some(refs)) = (pages, refs) else {
            return Err(truncated);
        };
        if refs == 0 {
            return Err(ReadError::Empty);
        }
        if zeros != [0; 3] || !(1..=MAX_PAGES).contains(&pages) || refs > MAX_REFS {
            return Err(ReadError::Damaged {
                what: "its header holds numbers out of bounds",
            });
        }
        Ok(Self { pages, refs })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// Iterator over the references in a stream of the binary form.
#[derive(Debug)]
pub(super) struct Steps<R> {
    input: R,
    sum: crc32fast::Hasher,
    buffer: Vec<u8>,
    /// Number of bytes of the buffer that have already been decoded.
    used: usize,
    /// Number of references returned so far, out of `header.refs`.
    given: u64,
    header: Header,
    page: u32,
    step: Step,
    /// Upper bound: every page index must be below this number.
    pages: u32,
}

impl<R: BufRead> Steps<R> {
    pub(super) fn new(input: R, pages: u32) -> Result<Self, ReadError> {
        let mut steps = Self {
            input,
            sum: crc32fast::Hasher::new(),
            buffer: Vec::with_capacity(BUFFER_BYTES),
            used: 0,
            given: 0,
            header: Header { pages: 0, refs: 0 },
            page: 0,
            step: Step {
                distance: 0,
                times: 0,
            },
            pages,
        };
        steps.have(HEADER)?;
        steps.header = Header::read(&steps.buffer)?;
        steps.used = HEADER;
        Ok(steps)
    }

    pub(super) fn next_page(&mut self) -> Result<Option<u32>, ReadError> {
        if self.given == self.header.refs {
            self.end()?;
            return Ok(None);
        }
        self.given += 1;
        if self.step.times == 0 {
            self.have(LONGEST_STEP_BYTES)?;
            let rest = &self.buffer[self.used..];
            let (step, length) = Step::take(rest, Position::Reference(self.given))?;
            if step.times > self.header.refs - self.given + 1 {
                return Err(ReadError::Damaged {
                    what: "a step goes on beyond the last reference",
                });
            }
            self.step = step;
            self.used += length;
        }
        self.step.times -= 1;
        let page = i64::from(self.page) + self.step.distance;
        let inside = u32::try_from(page)
            .ok()
            .filter(|&page| page < self.header.pages);
        let Some(page) = inside else {
            return Err(ReadError::Damaged {
                what: "a step leads outside the file's own range",
            });
        };
        if page >= self.pages {
            return Err(ReadError::OutOfRange {
                place: Position::Reference(self.given),
                page: page.to_string(),
                pages: self.pages,
            });
        }
        self.page = page;
        Ok(Some(page))
    }

    /// Reads until `wanted` unused bytes are in the buffer or the input ends.
    fn have(&mut self, wanted: usize) -> Result<(), ReadError> {
        while self.buffer.len() - self.used < wanted {
            self.sum.update(&self.buffer[..self.used]);
            self.buffer.drain(..self.used);
            self.used = 0;
            wait(&mut self.input)?;
            let more = self.input.fill_buf()?;
            if more.is_empty() {
                break;
            }
            let length = more.len().min(BUFFER_BYTES);
            self.buffer.extend_from_slice(&more[..length]);
            self.input.consume(length);
        }
        Ok(())
    }

    /// Reads the checksum at the end of the stream. Fails if it is wrong or if data follows it.
    fn end(&mut self) -> Result<(), ReadError> {
        self.have(TRAILER + 1)?;
        self.sum.update(&self.buffer[..self.used]);
        let rest = &self.buffer[self.used..];
        check_trailer(
            rest,
            std::mem::take(&mut self.sum).finalize(),
            Position::Reference(self.given),
        )
    }
}

/// Fails unless `rest` consists of exactly the checksum `sum`.
pub(super) fn check_trailer(rest: &[u8], sum: u32, place: Position) -> Result<(), ReadError> {
    let Some(stored) = rest.first_chunk() else {
        return Err(ReadError::Truncated { place });
    };
    if u32::from_le_bytes(*stored) != sum {
        return Err(ReadError::Damaged {
            what: "its checksum does not fit",
        });
    }
    if rest.len() > TRAILER {
        return Err(ReadError::Damaged {
            what: "something follows its checksum",
        });
    }
    Ok(())
}
