//! The order of pages that all list-like policies share: append at the end, take from anywhere.

use crate::flat;
use crate::number::{at, narrow};

/// Pages in order of arrival, in a ring with a live bit for each slot.
///
/// Taking a page from the middle clears its bit and leaves a hole; holes are closed when the ring is full, which costs
/// one move for each page held, at most once in twice as many appends. A list with two links an entry does the same with four
/// random accesses for each move to its end; here it is one bit and one append. A page's slot is kept by the owner, who
/// is told when it moves.
#[derive(Debug)]
pub(crate) struct Queue {
    pages: Vec<u32>,
    live: Vec<u64>,
    /// Slots from here on, `span` of them, may be live.
    low: u32,
    span: u32,
    count: u32,
}

impl Queue {
    /// An empty queue for at most `most` pages at a time.
    pub fn new(most: u32) -> Self {
        let room = (at(most) * 3).next_multiple_of(64).max(64);
        Self {
            pages: flat::zeroed(room),
            live: flat::zeroed(room / 64),
            low: 0,
            span: 0,
            count: 0,
        }
    }

    /// Pages in the queue.
    #[inline]
    pub fn len(&self) -> u32 {
        self.count
    }

    fn room(&self) -> u32 {
        narrow(self.pages.len())
    }

    #[inline]
    fn wrap(&self, slot: u32) -> u32 {
        if slot >= self.room() {
            slot - self.room()
        } else {
            slot
        }
    }

    /// Appends a page and returns its slot. `moved` is told the new slot of every page that had to move.
    #[inline]
    pub fn push(&mut self, page: u32, moved: impl FnMut(u32, u32)) -> u32 {
        if self.span == self.room() {
            self.close_holes(moved);
        }
        self.append(page)
    }

    /// Appends to a queue that is not full.
    #[inline]
    fn append(&mut self, page: u32) -> u32 {
        let slot = self.wrap(self.low + self.span);
        self.pages[at(slot)] = page;
        self.live[at(slot >> 6)] |= 1 << (slot & 63);
        self.span += 1;
        self.count += 1;
        slot
    }

    /// Takes the page in a live slot out.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        self.live[at(slot >> 6)] &= !(1 << (slot & 63));
        self.count -= 1;
    }

    /// The page in a slot.
    #[inline]
    pub fn page(&self, slot: u32) -> u32 {
        self.pages[at(slot)]
    }

    /// Slot of the oldest page, if there is one.
    #[inline]
    pub fn oldest(&mut self) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        let slot = self.live_from(self.low);
        let passed = if slot >= self.low {
            slot - self.low
        } else {
            slot + self.room() - self.low
        };
        self.low = slot;
        self.span -= passed;
        Some(slot)
    }

    /// Takes the oldest page out.
    #[inline]
    pub fn pop(&mut self) -> Option<u32> {
        let slot = self.oldest()?;
        self.remove(slot);
        self.low = self.wrap(slot + 1);
        self.span -= 1;
        Some(self.page(slot))
    }

    /// The first live slot from `slot` on, going round; there is one.
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

    /// Moves all pages together, in order.
    #[cold]
    fn close_holes(&mut self, mut moved: impl FnMut(u32, u32)) {
        let mut write = self.low;
        let words = narrow(self.live.len());
        let first = self.low >> 6;
        // Word by word round the ring; the first one is passed twice, its upper part first and its lower part last.
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
                // What is written lies at or before what was read last: nothing unread is overwritten.
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

/// Where a page is: the number of a list in the upper three bits, its slot there in the others; 0 is nowhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    /// Slots that fit beside a list's number.
    const SLOTS: u32 = 1 << 29;

    /// A slot of a list; lists are numbered from 1.
    #[inline]
    pub fn new(list: u32, slot: u32) -> Self {
        debug_assert!(slot < Self::SLOTS && list < 8);
        Self(list << 29 | slot)
    }

    /// The list's number, 0 for none.
    #[inline]
    pub fn list(self) -> u32 {
        self.0 >> 29
    }

    /// The slot there.
    #[inline]
    pub fn slot(self) -> u32 {
        self.0 & (Self::SLOTS - 1)
    }
}

/// Appends `page` to a queue as list `list`, and keeps the places of all pages that move.
#[inline]
pub(crate) fn push(queue: &mut Queue, list: u32, page: u32, places: &mut [Place]) {
    let slot = queue.push(page, |page, slot| {
        places[at(page)] = Place::new(list, slot);
    });
    places[at(page)] = Place::new(list, slot);
}

/// Takes the oldest page out of a queue and forgets its place.
#[inline]
pub(crate) fn pop(queue: &mut Queue, places: &mut [Place]) -> Option<u32> {
    let page = queue.pop()?;
    places[at(page)] = Place::default();
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
            let mut places = vec![Place::default(); 1000];
            let mut model: VecDeque<u32> = VecDeque::new();
            for step in 0..20_000 {
                let page = rng.below_u32(1000);
                let held = model.iter().position(|&other| other == page);
                if let Some(place) = held {
                    queue.remove(places[at(page)].slot());
                    places[at(page)] = Place::default();
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
