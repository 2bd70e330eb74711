//! Renumbers 64-bit IDs from 0 in order of first use.
//!
//! IDs below 2^32 that lie close together are looked up in a radix tree of two levels, which stays in the caches and
//! needs no hash. If the tree would be mostly empty, or an ID is larger, all IDs move to a hash table, whose entries
//! are prefetched a few references ahead.

use crate::error::ReferenceErrorKind;
use crate::flat::{self, AHEAD};
use crate::number::{at, low32, narrow};

/// Number of low bits of an ID that select the entry in a leaf of the radix tree.
const LEAF: u32 = 12;
/// Number of leaves that cover all IDs below 2^32.
const LEAVES: usize = 1 << (32 - LEAF);
/// Number of leaves that may be allocated even if they are nearly empty.
const FREE_LEAVES: usize = 1 << 10;

/// Maps ids to page numbers from 0, in order of first use.
pub(crate) struct Dense {
    table: Table,
    /// IDs indexed by page number. If the radix tree is abandoned, the hash table is built from them.
    ids: Vec<u64>,
    /// Maximum number of bytes that the tables may use.
    memory: u64,
}

enum Table {
    Radix(Radix),
    Hash(Hash),
}

struct Radix {
    /// For each value of an id's upper bits, the index of its leaf in `leaves`; 0 if there is none.
    tops: Vec<u32>,
    /// Entries of the leaves, one leaf after the other: page number plus 1, or 0 for an unknown ID. The first leaf
    /// stays empty.
    leaves: Vec<u32>,
}

struct Hash {
    /// Slots of the hash table: an ID and its page number plus 1. The number of slots is a power of two, and at most
    /// half of them are in use.
    slots: Vec<(u64, u32)>,
}

/// Returns the preferred slot of an id by Fibonacci hashing (Knuth, volume 3, 6.4): the upper `bits` bits of the
/// product with 2^64 / φ.
#[inline]
fn spread(id: u64, bits: u32) -> usize {
    at(low32(
        (id ^ (id >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits),
    ))
}

impl Dense {
    /// Creates a map for a small number of ids. It uses a hash table, because a tree would touch more memory.
    pub fn of_few() -> Self {
        Self {
            table: Table::Hash(Hash::of(&[])),
            ids: Vec::new(),
            memory: u64::MAX,
        }
    }

    /// Creates a map that uses at most `memory` bytes.
    pub fn within(memory: u64) -> Self {
        Self {
            table: Table::Radix(Radix {
                tops: flat::zeroed(LEAVES),
                leaves: flat::zeroed(1 << LEAF),
            }),
            ids: Vec::new(),
            memory,
        }
    }

    /// Returns the number of distinct ids so far.
    pub fn pages(&self) -> u32 {
        narrow(self.ids.len())
    }

    /// Returns all ids, indexed by page number.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    fn bytes(&self) -> u64 {
        let table = match &self.table {
            Table::Radix(radix) => (radix.tops.len() + radix.leaves.capacity()) * 4,
            Table::Hash(hash) => hash.slots.len() * size_of::<(u64, u32)>(),
        };
        (table + self.ids.capacity() * 8) as u64
    }

    /// Appends the page number of each ID to `out`. Fails if there are too many pages or the tables would exceed their
    /// limit.
    pub fn number(&mut self, ids: &[u64], out: &mut Vec<u32>) -> Result<(), ReferenceErrorKind> {
        let mut done = 0;
        if let Table::Radix(radix) = &mut self.table {
            done = radix.number(ids, &mut self.ids, out);
            if done < ids.len() {
                self.table = Table::Hash(Hash::of(&self.ids));
            }
        }
        if let Table::Hash(hash) = &mut self.table {
            hash.number(&ids[done..], &mut self.ids, out);
        }
        if self.ids.len() > at(crate::MAX_PAGES) {
            return Err(ReferenceErrorKind::TooManyPages);
        }
        // While a table grows, the old one and a new one of twice its size exist together.
        if self.bytes().saturating_mul(3) > self.memory {
            return Err(ReferenceErrorKind::Memory {
                pages: self.ids.len(),
                memory: self.memory,
            });
        }
        Ok(())
    }
}

impl Radix {
    /// Appends the page numbers of the first IDs, as long as they fit in the tree, to `out`. Returns the number of IDs
    /// processed.
    fn number(&mut self, ids: &[u64], known: &mut Vec<u64>, out: &mut Vec<u32>) -> usize {
        for (place, &id) in ids.iter().enumerate() {
            let Some(top) = usize::try_from(id >> LEAF).ok().filter(|top| *top < LEAVES) else {
                return place;
            };
            if let Some(&next) = ids.get(place + AHEAD) {
                let top = usize::try_from(next >> LEAF).unwrap_or(0) & (LEAVES - 1);
                let low = low32(next & ((1 << LEAF) - 1));
                flat::prefetch(&self.leaves, (self.tops[top] << LEAF) | low);
            }
            let low = at(low32(id & ((1 << LEAF) - 1)));
            let mut leaf = at(self.tops[top]);
            if leaf == 0 {
                leaf = self.leaves.len() >> LEAF;
                // At least one entry in 16 has to be in use.
                if leaf > FREE_LEAVES.max(known.len() >> (LEAF - 4)) {
                    return place;
                }
                self.leaves.resize((leaf + 1) << LEAF, 0);
                self.tops[top] = narrow(leaf);
            }
            let entry = &mut self.leaves[(leaf << LEAF) | low];
            if *entry == 0 {
                known.push(id);
                *entry = narrow(known.len());
            }
            out.push(*entry - 1);
        }
        ids.len()
    }
}

impl Hash {
    fn of(ids: &[u64]) -> Self {
        let slots = (ids.len() * 4).next_power_of_two().max(1 << 12);
        let mut hash = Self {
            slots: flat::zeroed(slots),
        };
        for (number, &id) in ids.iter().enumerate() {
            let slot = hash.find(id);
            hash.slots[slot] = (id, narrow(number) + 1);
        }
        hash
    }

    /// Returns the index of the slot that contains an ID, or of the empty slot where it belongs.
    #[inline]
    fn find(&self, id: u64) -> usize {
        let mut slot = spread(id, self.slots.len().trailing_zeros());
        while self.slots[slot].1 != 0 && self.slots[slot].0 != id {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    fn number(&mut self, ids: &[u64], known: &mut Vec<u64>, out: &mut Vec<u32>) {
        for (place, &id) in ids.iter().enumerate() {
            if let Some(&next) = ids.get(place + AHEAD) {
                let slot = spread(next, self.slots.len().trailing_zeros());
                flat::prefetch(&self.slots, narrow(slot));
            }
            let mut slot = self.find(id);
            if self.slots[slot].1 == 0 {
                if known.len() * 2 >= self.slots.len() {
                    *self = Self::of(known);
                    slot = self.find(id);
                }
                known.push(id);
                self.slots[slot] = (id, narrow(known.len()));
            }
            out.push(self.slots[slot].1 - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn pages_that_do_not_fit_memory_are_refused_before_it_is_taken() {
        let mut rng = pagetide_reference::Rng::new(3);
        let mut dense = Dense::within(64 << 20);
        let refused = (0..1000).find_map(|_| {
            let ids: Vec<u64> = (0..10_000).map(|_| rng.next_u64()).collect();
            dense.number(&ids, &mut Vec::new()).err()
        });
        assert!(matches!(
            refused,
            Some(ReferenceErrorKind::Memory {
                pages: 100_000..1_000_000,
                ..
            })
        ));
        assert!(dense.bytes() < 64 << 20);
    }

    #[test]
    fn ids_of_any_size_and_density_get_numbers_in_order_of_first_use() {
        let mut rng = pagetide_reference::Rng::new(3);
        // The ids are compact, sparse below 2^32, above 2^32, or change from one kind to another.
        for spans in [
            [3000, 3000],
            [1 << 31, 1 << 31],
            [u64::MAX, 10],
            [100, u64::MAX],
        ] {
            let mut dense = Dense::within(u64::MAX);
            let mut model = HashMap::new();
            for span in spans {
                let pool: Vec<u64> = (0..40_000).map(|_| rng.below(span)).collect();
                let ids: Vec<u64> = (0..100_000)
                    .map(|_| pool[at(rng.below_u32(40_000))])
                    .collect();
                let mut out = Vec::new();
                dense.number(&ids, &mut out).unwrap();
                for (id, number) in ids.iter().zip(out) {
                    let next = narrow(model.len());
                    assert_eq!(number, *model.entry(*id).or_insert(next));
                }
            }
            assert_eq!(at(dense.pages()), model.len());
        }
    }
}
