//! A queue of pages in order of arrival: append at the end, remove anywhere. Used by the policies whose lists each have
//! an array of their own.

use crate::flat;
use crate::number::{at, narrow};

/// Pages in order of arrival, in a ring buffer with a bit for each slot, set if the slot is in use.
///
/// Removing a page clears the bit of its slot and leaves a hole. Holes are closed when the ring is full. This moves
/// each page once, and happens at most once in every N appends, where N is twice the maximum number of pages. A doubly
/// linked list needs four random accesses to move a page to its end; here it takes one bit and one append. The caller
/// stores the slot of each page and is called back when a slot changes.
#[derive(Debug)]
pub(crate) struct Queue {
    pages: Vec<u32>,
    live: Vec<u64>,
    /// First slot that may be in use.
    low: u32,
    /// Number of slots from `low` on, wrapping around, that may be in use.
    span: u32,
    count: u32,
}

impl Queue {
    /// Creates an empty queue for at most `most` pages.
    pub fn new(most: u32) -> Self {
        let capacity = (at(most) * 3).next_multiple_of(64).max(64);
        Self {
            pages: flat::zeroed(capacity),
            live: flat::zeroed(capacity / 64),
            low: 0,
            span: 0,
            count: 0,
        }
    }

    /// Returns the number of pages in the queue.
    #[inline]
    pub fn len(&self) -> u32 {
        self.count
    }

    fn capacity(&self) -> u32 {
        narrow(self.pages.len())
    }

    #[inline]
    fn wrap(&self, slot: u32) -> u32 {
        if slot >= self.capacity() {
            slot - self.capacity()
        } else {
            slot
        }
    }

    /// Appends a page and returns its slot. If the ring is full, closes its holes first and calls `moved` with each
    /// page and its new slot.
    #[inline]
    pub fn push(&mut self, page: u32, moved: impl FnMut(u32, u32)) -> u32 {
        if self.span == self.capacity() {
            self.close_holes(moved);
        }
        self.append(page)
    }

    /// Appends a page to a queue that has a free slot at the end, and returns the slot.
    #[inline]
    fn append(&mut self, page: u32) -> u32 {
        let slot = self.wrap(self.low + self.span);
        self.pages[at(slot)] = page;
        self.live[at(slot >> 6)] |= 1 << (slot & 63);
        self.span += 1;
        self.count += 1;
        slot
    }

    /// Removes the page in this slot, which must be in use.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        self.live[at(slot >> 6)] &= !(1 << (slot & 63));
        self.count -= 1;
    }

    /// Returns the page stored in a slot.
    #[inline]
    pub fn page(&self, slot: u32) -> u32 {
        self.pages[at(slot)]
    }

    /// Returns the slot of the oldest page, or `None` if the queue is empty.
    #[inline]
    pub fn oldest(&mut self) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let slot = self.live_from(self.low);
        let passed = if slot >= self.low {
            slot - self.low
        } else {
            slot + self.capacity() - self.low
        };
        self.low = slot;
        self.span -= passed;
        Some(slot)
    }

    /// Removes and returns the oldest page, or returns `None` if the queue is empty.
    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        let slot = self.oldest()?;
        self.remove(slot);
        self.low = self.wrap(slot + 1);
        self.span -= 1;
        Some(self.page(slot))
    }

    /// Returns the first slot in use at or after `slot`, wrapping around. At least one slot must be in use.
    #[inline]
    fn live_from(&self, slot: u32) -> u32 {
        let mut word = at(slot >> 6);
        let mut bits = self.live[word] & (u64::MAX << (slot & 63));
        while bits == 0 {
            word += 1;
            if word == self.live.len() {
                word = 0;
            }
            bits = self.live[word];
        }
        narrow(word * 64) + bits.trailing_zeros()
    }

    /// Closes all holes without changing the order of pages. Calls `moved` with each page and its new slot.
    #[cold]
    fn close_holes(&mut self, mut moved: impl FnMut(u32, u32)) {
        let mut write = self.low;
        let words = narrow(self.live.len());
        let first = self.low >> 6;
        // Word by word around the ring; the first word is visited twice: its upper bits first, its lower bits last.
        for round in 0..=words {
            let word = (first + round) % words;
            let part = match round {
                0 => u64::MAX << (self.low & 63),
                _ if round == words => !(u64::MAX << (self.low & 63)),
                _ => u64::MAX,
            };
            let mut bits = self.live[at(word)] & part;
            self.live[at(word)] &= !part;
            while bits != 0 {
                let read = word * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                let page = self.pages[at(read)];
                // The write index never passes the read index, so no unread page is overwritten.
                self.live[at(write >> 6)] |= 1 << (write & 63);
                self.pages[at(write)] = page;
                if read != write {
                    moved(page, write);
                }
                write = self.wrap(write + 1);
            }
        }
        self.span = self.count;
    }
}

/// Position of a page: list number in the upper three bits, slot in the lower bits. Zero if the page is in no list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Position(u32);

impl Position {
    /// Number of different slots: a slot has 29 bits.
    const SLOTS: u32 = 1 << 29;

    /// Returns the position with this list number and slot. `list` must be from 1 to 7.
    #[inline]
    pub fn new(list: u32, slot: u32) -> Self {
        debug_assert!(slot < Self::SLOTS && list < 8);
        Self(list << 29 | slot)
    }

    /// Returns the list number, or 0 if the page is in no list.
    #[inline]
    pub fn list(self) -> u32 {
        self.0 >> 29
    }

    /// Returns the slot of the page.
    #[inline]
    pub fn slot(self) -> u32 {
        self.0 & (Self::SLOTS - 1)
    }
}

/// Appends `page` to `queue`, which is list number `list`. Updates the positions of all pages that change their slots.
#[inline]
pub(crate) fn push(queue: &mut Queue, list: u32, page: u32, places: &mut [Position]) {
    let slot = queue.push(page, |page, slot| {
        places[at(page)] = Position::new(list, slot);
    });
    places[at(page)] = Position::new(list, slot);
}

/// Removes and returns the oldest page of a queue, and clears its position. Returns `None` if the queue is empty.
#[inline]
pub(crate) fn pop(queue: &mut Queue, places: &mut [Position]) -> Option<u32> {
    let page = queue.pop()?;
    places[at(page)] = Position::default();
    Some(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn any_mixture_of_appends_and_removals_keeps_the_order_of_arrival() {
        let mut rng = pagetide_reference::Rng::new(1);
        for most in [1, 3, 40, 200] {
            let mut queue = Queue::new(most);
            let mut places = vec![Position::default(); 1000];
            let mut model: VecDeque<u32> = VecDeque::new();
            for step in 0..20_000 {
                let page = rng.below_u32(1000);
                let held = model.iter().position(|&other| other == page);
                if let Some(place) = held {
                    queue.remove(places[at(page)].slot());
                    places[at(page)] = Position::default();
                    model.remove(place);
                } else if model.len() == at(most) {
                    assert_eq!(pop(&mut queue, &mut places), model.pop_front(), "{step}");
                }
                if rng.below(3) > 0 && model.len() < at(most) {
                    push(&mut queue, 1, page, &mut places);
                    model.push_back(page);
                }
                assert_eq!(queue.len(), narrow(model.len()));
            }
        }
    }
}
