//! Several lists of pages that share one array of slots. Pages are appended at the end, removed anywhere, or moved
//! between lists.

use crate::flat;
use crate::number::{at, narrow};
use crate::queue::Position;

/// Number of slots in the array for each page that the lists can hold together.
const SLOTS_PER_PAGE: usize = 4;

/// `N` lists, numbered from 1, each in order of arrival.
///
/// Every append, to any list, uses the next slot. Each list has a bit for each slot, and the bits of all lists for the
/// same 64 slots are adjacent in memory: removing a page from any list changes one word, whose index follows from the
/// slot, without a branch on the list. When all slots are used, the slots in use are moved to the front.
#[derive(Debug)]
pub(crate) struct Lists<const N: usize> {
    /// List number and slot of each page.
    places: Vec<Position>,
    /// The page in each slot.
    axis: Vec<u32>,
    live: Vec<[u64; N]>,
    lens: [u32; N],
    /// For each list, a slot before which the list has no page.
    low: [u32; N],
    end: u32,
}

impl<const N: usize> Lists<N> {
    /// Creates empty lists. Page numbers must be below `pages`; all lists together hold at most `most` pages.
    pub fn new(pages: u32, most: u32) -> Self {
        let capacity = (at(most.min(pages)) * SLOTS_PER_PAGE)
            .next_multiple_of(64)
            .clamp(256, 1 << 29);
        Self {
            places: flat::zeroed(at(pages)),
            axis: flat::zeroed(capacity),
            live: crate::flat::filled([0; N], capacity / 64),
            lens: [0; N],
            low: [0; N],
            end: 0,
        }
    }

    /// Returns the list and the slot of a page.
    #[inline]
    pub fn place(&self, page: u32) -> Position {
        self.places[at(page)]
    }

    /// Returns the number of pages in a list.
    #[inline]
    pub fn len(&self, list: u32) -> u32 {
        self.lens[at(list) - 1]
    }

    /// Removes a page from its list without updating `places`. The caller must append the page to a list next.
    #[inline]
    pub fn take(&mut self, place: Position) {
        self.clear(place);
        self.lens[at(place.list()) - 1] -= 1;
    }

    #[inline]
    fn clear(&mut self, place: Position) {
        let (list, slot) = (at(place.list()) - 1, place.slot());
        self.live[at(slot >> 6)][list] &= !(1 << (slot & 63));
    }

    /// Appends a page that is in no list. This may change the slots of other pages.
    #[inline]
    pub fn append(&mut self, list: u32, page: u32) {
        self.lens[at(list) - 1] += 1;
        self.put(list, page);
    }

    #[inline]
    fn put(&mut self, list: u32, page: u32) {
        if at(self.end) == self.axis.len() {
            self.compact();
        }
        let slot = self.end;
        self.axis[at(slot)] = page;
        self.live[at(slot >> 6)][at(list) - 1] |= 1 << (slot & 63);
        self.places[at(page)] = Position::new(list, slot);
        self.end += 1;
    }

    /// Moves `page` from its position `place` to the end of `list`.
    #[inline]
    pub fn renew(&mut self, list: u32, page: u32, place: Position) {
        self.clear(place);
        // Update the lengths only if they change: otherwise each reference would wait for the counter of the previous
        // reference.
        if place.list() != list {
            self.lens[at(place.list()) - 1] -= 1;
            self.lens[at(list) - 1] += 1;
        }
        self.put(list, page);
    }

    /// Returns the oldest page of a list, or `None` if the list is empty.
    #[inline]
    pub fn oldest(&mut self, list: u32) -> Option<u32> {
        let list = at(list) - 1;
        if self.lens[list] == 0 {
            return None;
        }
        let low = self.low[list];
        let mut word = at(low >> 6);
        let mut bits = self.live[word][list] & (u64::MAX << (low & 63));
        while bits == 0 {
            word += 1;
            bits = self.live[word][list];
        }
        let slot = narrow(word * 64) + bits.trailing_zeros();
        self.low[list] = slot;
        // The page a few slots later is likely to be among the next oldest.
        if let Some(&later) = self.axis.get(at(slot) + flat::AHEAD) {
            flat::prefetch(&self.places, later);
        }
        Some(self.axis[at(slot)])
    }

    /// Removes and returns the oldest page of a list, or `None` if the list is empty. Does not update `places`: the
    /// caller must append the page to a list next.
    #[inline]
    pub fn pop(&mut self, list: u32) -> Option<u32> {
        let page = self.oldest(list)?;
        let slot = self.low[at(list) - 1];
        self.live[at(slot >> 6)][at(list) - 1] &= !(1 << (slot & 63));
        self.lens[at(list) - 1] -= 1;
        Some(page)
    }

    /// Removes the oldest page of a list and clears its position. Does nothing if the list is empty.
    #[inline]
    pub fn forget(&mut self, list: u32) {
        if let Some(page) = self.pop(list) {
            self.places[at(page)] = Position::default();
        }
    }

    /// Prefetches the position of a page.
    #[inline]
    pub fn prefetch(&self, page: u32) {
        flat::prefetch(&self.places, page);
    }

    /// Prefetches the word of `live` with the bit of a page's slot. Reads the page's position, which should have been
    /// prefetched before.
    #[inline]
    pub fn prefetch_next(&self, page: u32) {
        flat::prefetch(&self.live, self.places[at(page)].slot() >> 6);
    }

    /// Moves the pages of all lists to the first slots of the array, in the same order, so that the other slots are
    /// free again.
    #[cold]
    fn compact(&mut self) {
        let mut write = 0;
        for word in 0..self.live.len() {
            let lists = std::mem::replace(&mut self.live[word], [0; N]);
            let mut bits = lists.iter().fold(0, |all, bits| all | bits);
            while bits != 0 {
                let bit = bits.trailing_zeros();
                bits &= bits - 1;
                // The write index never passes the read index.
                let page = self.axis[word * 64 + at(bit)];
                self.axis[at(write)] = page;
                let list = self.places[at(page)].list();
                self.live[at(write >> 6)][at(list) - 1] |= 1 << (write & 63);
                self.places[at(page)] = Position::new(list, write);
                write += 1;
            }
        }
        self.low = [0; N];
        self.end = write;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn any_mixture_of_moves_keeps_each_list_in_order_of_arrival() {
        let mut rng = pagetide_reference::Rng::new(6);
        for pages in [1, 3, 40, 500] {
            let mut lists = Lists::<3>::new(pages, pages);
            let mut model: [VecDeque<u32>; 3] = std::array::from_fn(|_| VecDeque::new());
            for _ in 0..20_000 {
                let page = rng.below_u32(pages);
                let list = 1 + rng.below_u32(3);
                let held = model.iter_mut().find_map(|list| {
                    let place = list.iter().position(|&other| other == page)?;
                    list.remove(place)
                });
                let place = lists.place(page);
                assert_eq!(held.is_some(), place.list() > 0);
                if held.is_some() {
                    lists.renew(list, page, place);
                } else {
                    lists.append(list, page);
                }
                model[at(list) - 1].push_back(page);
                if rng.below(3) == 0 {
                    let list = 1 + rng.below_u32(3);
                    let oldest = model[at(list) - 1].pop_front();
                    assert_eq!(lists.oldest(list), oldest);
                    lists.forget(list);
                    assert!(oldest.is_none_or(|page| lists.place(page) == Position::default()));
                }
                for list in 1..=3 {
                    assert_eq!(at(lists.len(list)), model[at(list) - 1].len());
                }
            }
        }
    }
}
