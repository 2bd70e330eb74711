//! Collects IDs from the reader of a format, passes them on in pieces, and splits ranges of bytes into pages.

use crate::MAX_PAGES_AT_ONCE;
use crate::error::ReferenceErrorKind;

/// Number of ids passed on at a time.
pub(super) const PIECE: usize = 1 << 14;
/// Number of address bits within a page of 4 KiB.
const PAGE_BITS: u32 = 12;
/// Number of bits of a page number: a 64-bit address without the bits within a page.
const NUMBER_BITS: u32 = 64 - PAGE_BITS;
/// Maximum number of address spaces in a file. An address space's number is stored in the bits above the page number.
pub(super) const MAX_SPACES: usize = 1 << PAGE_BITS;

/// Function that receives IDs in pieces. The second slice states for each ID whether the reference is a write; it is
/// empty if the format does not contain this.
pub type Take<'a> = &'a mut dyn FnMut(&[u64], &[bool]) -> Result<(), ReferenceErrorKind>;

/// Why a line or an entry is refused. The caller adds its position.
pub(super) enum Refusal {
    /// The line or entry does not match the format. The text states what the format requires.
    Not(&'static str),
    /// The line or entry covers more pages than a single one may.
    Long {
        /// Number of pages that the line or entry covers.
        pages: u64,
    },
    /// An error that does not concern a single line or entry.
    Whole(ReferenceErrorKind),
}

impl From<&'static str> for Refusal {
    fn from(expected: &'static str) -> Self {
        Self::Not(expected)
    }
}

/// Collects ids and passes them on in pieces.
pub(super) struct Sink<'a> {
    ids: Vec<u64>,
    writes: Vec<bool>,
    take: Take<'a>,
}

impl<'a> Sink<'a> {
    pub fn new(take: Take<'a>) -> Self {
        Self {
            ids: Vec::with_capacity(PIECE + 1),
            writes: Vec::new(),
            take,
        }
    }

    /// Adds a reference to `id`, for formats that do not state whether a reference is a write.
    #[inline]
    pub fn id(&mut self, id: u64) {
        self.ids.push(id);
    }

    /// Adds a reference to an object that is not a range of addresses.
    #[inline]
    pub fn object(&mut self, id: u64, write: bool) {
        self.ids.push(id);
        self.writes.push(write);
    }

    /// Adds a reference to each page of 4 KiB that overlaps the `bytes` bytes from `address` on in address space
    /// `space`, in ascending order. Zero bytes count as one. Fails if there are more than [`MAX_PAGES_AT_ONCE`] pages.
    #[inline]
    pub fn range(
        &mut self,
        space: u64,
        address: u64,
        bytes: u64,
        write: bool,
    ) -> Result<(), Refusal> {
        let first = address >> PAGE_BITS;
        let last = address.saturating_add(bytes.saturating_sub(1)) >> PAGE_BITS;
        let pages = last - first + 1;
        if pages > MAX_PAGES_AT_ONCE {
            return Err(Refusal::Long { pages });
        }
        let space = space << NUMBER_BITS;
        self.ids.extend((first..=last).map(|page| space | page));
        self.writes.resize(self.ids.len(), write);
        Ok(())
    }

    /// Passes on the collected IDs if there are at least [`PIECE`].
    #[inline]
    pub fn hand_on(&mut self) -> Result<(), ReferenceErrorKind> {
        if self.ids.len() >= PIECE {
            self.finish()?;
        }
        Ok(())
    }

    /// Passes on all collected ids.
    pub fn finish(&mut self) -> Result<(), ReferenceErrorKind> {
        (self.take)(&self.ids, &self.writes)?;
        self.ids.clear();
        self.writes.clear();
        Ok(())
    }
}
