//! The way of ids from a reader to the one who asked for them, and the pages that a range of bytes covers.

use crate::error::Trouble;

/// Ids that are handed on at a time.
pub(super) const PIECE: usize = 1 << 14;
/// Bits of an address within a page of 4 KiB.
const PAGE_BITS: u32 = 12;
/// Bits of a page number: an address of 64 bits without its bits within a page.
const NUMBER_BITS: u32 = 64 - PAGE_BITS;
/// Most spaces of addresses in a file: their numbers fill the bits above a page number.
pub(super) const MOST_SPACES: usize = 1 << PAGE_BITS;
/// Most pages that one entry of a file may cover: 4 GiB.
pub(crate) const MOST_PAGES_AT_ONCE: u64 = 1 << 20;

/// Receives ids in pieces, and for each whether it writes; the second slice is empty if the format does not tell.
pub(super) type Take<'a> = &'a mut dyn FnMut(&[u64], &[bool]) -> Result<(), Trouble>;

/// Why a line or an entry is refused; its reader adds the place.
pub(super) enum Refusal {
    /// It is not what was expected.
    Not(&'static str),
    /// It covers more pages than one entry may.
    Long {
        /// The number of pages.
        pages: u64,
    },
    /// The reason needs no place.
    Whole(Trouble),
}

impl From<&'static str> for Refusal {
    fn from(expected: &'static str) -> Self {
        Self::Not(expected)
    }
}

/// Collects ids and hands them on in pieces.
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

    /// Adds a reference of which it is not known whether it writes.
    #[inline]
    pub fn id(&mut self, id: u64) {
        self.ids.push(id);
    }

    /// Adds a reference to an object that is no range of addresses.
    #[inline]
    pub fn object(&mut self, id: u64, write: bool) {
        self.ids.push(id);
        self.writes.push(write);
    }

    /// Adds a reference to each page of 4 KiB that `bytes` bytes from `address` of this space touch, in order.
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
        if pages > MOST_PAGES_AT_ONCE {
            return Err(Refusal::Long { pages });
        }
        let space = space << NUMBER_BITS;
        self.ids.extend((first..=last).map(|page| space | page));
        self.writes.resize(self.ids.len(), write);
        Ok(())
    }

    /// Hands on what was collected if it is enough for a piece.
    #[inline]
    pub fn hand_on(&mut self) -> Result<(), Trouble> {
        if self.ids.len() >= PIECE {
            self.finish()?;
        }
        Ok(())
    }

    /// Hands on what was collected.
    pub fn finish(&mut self) -> Result<(), Trouble> {
        (self.take)(&self.ids, &self.writes)?;
        self.ids.clear();
        self.writes.clear();
        Ok(())
    }
}
