//! The LRU curve by stack distances.
//!
//! A reference is a hit if memory holds as many pages as were used since its page's last use, itself included (Mattson
//! et al. 1970). The last use of each page is a live bit on an axis of time, and the distance is the number of live bits
//! from there on (Bennett and Kruskal, "LRU stack processing", IBM J. R&D 19(4), 1975). The axis is closed up when it is
//! full, so that it is never longer than four times the pages (Olken's bound without a tree). Bits are counted in words;
//! each block of 8 words holds the sums before its words, each group of 32 blocks those before its blocks, and above, each
//! node those before its 16 children, so that a question reads one number a level and a change adds to one cache line a level.

use super::Curve;
use crate::flat::{self, AHEAD};
use crate::number::{at, narrow};

/// Bits in a block.
const BLOCK: u32 = 512;
const WORDS: usize = BLOCK as usize / 64;
/// Blocks in a group: their bits can be counted in 16.
const GROUP: u32 = 32;
/// Children of a node.
const FAN: usize = 16;

/// The exact curve.
pub fn lru(references: &[u32], pages: u32) -> Curve {
    let mut stack = Stack::new(pages);
    stack.run(references);
    Curve::of_distances(
        references.len() as u64,
        stack.distances.iter().copied().map(u64::from),
    )
}

pub(super) struct Stack {
    /// Slot of each page on the axis, plus 1; 0 for none.
    slots: Vec<u32>,
    live: Vec<u64>,
    /// Live bits in the block before each word, for closed words.
    words: Vec<[u16; WORDS]>,
    /// Live bits in the group before each block, for closed blocks.
    groups: Vec<[u16; GROUP as usize]>,
    /// Live bits in the node before each child, for closed blocks; from groups upwards.
    levels: Vec<Vec<[u32; FAN]>>,
    /// Next free slot.
    end: u32,
    count: u32,
    /// References by distance, from 1.
    pub distances: Vec<u32>,
}

impl Stack {
    pub fn new(pages: u32) -> Self {
        let blocks = (at(pages) * 4).div_ceil(at(BLOCK)).max(2);
        let groups = blocks.div_ceil(at(GROUP));
        let mut levels = Vec::new();
        let mut nodes = groups;
        while nodes > 1 {
            nodes = nodes.div_ceil(FAN);
            levels.push(flat::filled([0; FAN], nodes));
        }
        Self {
            slots: flat::zeroed(at(pages)),
            live: flat::zeroed(blocks * WORDS),
            words: flat::zeroed(blocks),
            groups: flat::filled([0; GROUP as usize], groups),
            levels,
            end: 0,
            count: 0,
            distances: flat::zeroed(at(pages)),
        }
    }

    /// Takes references, with the processor's instruction for counting bits if it has one.
    pub fn run(&mut self, references: &[u32]) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("popcnt")
            && std::arch::is_x86_feature_detected!("avx2")
        {
            // SAFETY: the processor has both features.
            unsafe { self.run_fast(references) };
            return;
        }
        self.take(references);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt,avx2")]
    fn run_fast(&mut self, references: &[u32]) {
        self.take(references);
    }

    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn take(&mut self, references: &[u32]) {
        for (place, &page) in references.iter().enumerate() {
            if let Some(&next) = references.get(place + 2 * AHEAD) {
                flat::soon(&self.slots, next);
                let slot = self.slots[at(references[place + AHEAD])];
                flat::soon(&self.live, slot / 64);
                flat::soon(&self.words, slot / BLOCK);
                flat::soon(&self.groups, slot / (BLOCK * GROUP));
            }
            let slot = self.slots[at(page)];
            if slot == self.end && slot > 0 {
                // The newest page again: nothing moves.
                self.distances[0] += 1;
                continue;
            }
            if slot > 0 {
                let distance = self.remove(slot - 1);
                self.distances[at(distance) - 1] += 1;
            }
            if at(self.end / 64) == self.live.len() {
                self.close_up();
            }
            self.append(page);
        }
    }

    /// Clears a slot and returns how many bits were live from there on.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn remove(&mut self, slot: u32) -> u32 {
        let block = slot / BLOCK;
        let word = slot / 64;
        let bit = 1 << (slot % 64);
        let live = &mut self.live[at(word)];
        let mut before = (*live & (bit - 1)).count_ones();
        *live &= !bit;
        let place = word % narrow(WORDS);
        let sums = &mut self.words[at(block)];
        before += u32::from(sums[at(place)]);
        let closed = word != self.end / 64;
        for (other, sum) in (0_u16..).zip(sums.iter_mut()) {
            *sum -= u16::from(closed) * u16::from(other > low16(place));
        }
        let closed = block != self.end / BLOCK;
        let group = block / GROUP;
        let place = block % GROUP;
        let sums = &mut self.groups[at(group)];
        before += u32::from(sums[at(place)]);
        for (other, sum) in (0_u16..).zip(sums.iter_mut()) {
            *sum -= u16::from(closed) * u16::from(other > low16(place));
        }
        let mut child = at(group);
        for level in &mut self.levels {
            let node = &mut level[child / FAN];
            let place = child % FAN;
            before += node[place];
            for (other, sum) in (0..).zip(node.iter_mut()) {
                *sum -= u32::from(closed) * u32::from(other > narrow(place));
            }
            child /= FAN;
        }
        let from_here = self.count - before;
        self.count -= 1;
        from_here
    }

    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    fn append(&mut self, page: u32) {
        let slot = self.end;
        self.live[at(slot / 64)] |= 1 << (slot % 64);
        self.slots[at(page)] = slot + 1;
        self.end += 1;
        self.count += 1;
        if self.end.is_multiple_of(64) {
            self.close_word(slot / 64);
        }
    }

    /// Adds a full word's live bits to the sums behind it, and those of a full block too.
    fn close_word(&mut self, word: u32) {
        // At most 64, and 512 in a block.
        let live = low16(self.live[at(word)].count_ones());
        let block = at(word) / WORDS;
        let place = at(word) % WORDS;
        let sums = &mut self.words[block];
        if place < WORDS - 1 {
            for sum in &mut sums[place + 1..] {
                *sum += live;
            }
            return;
        }
        let live = sums[place] + live;
        let group = block / at(GROUP);
        for sum in &mut self.groups[group][block % at(GROUP) + 1..] {
            *sum += live;
        }
        let mut child = group;
        for level in &mut self.levels {
            for sum in &mut level[child / FAN][child % FAN + 1..] {
                *sum += u32::from(live);
            }
            child /= FAN;
        }
    }

    /// Moves all live slots to the front of the axis.
    #[cold]
    fn close_up(&mut self) {
        let mut before = Vec::with_capacity(self.live.len());
        let mut sum = 1;
        for bits in &self.live {
            before.push(sum);
            sum += bits.count_ones();
        }
        for slot in self.slots.iter_mut().filter(|slot| **slot > 0) {
            let old = *slot - 1;
            let earlier = self.live[at(old / 64)] & ((1 << (old % 64)) - 1);
            *slot = before[at(old / 64)] + earlier.count_ones();
        }
        self.live.fill(0);
        self.words.fill([0; WORDS]);
        self.groups.fill([0; GROUP as usize]);
        for level in &mut self.levels {
            level.fill([0; FAN]);
        }
        self.end = sum - 1;
        self.count = self.end;
        for word in 0..self.end / 64 {
            self.live[at(word)] = u64::MAX;
            self.close_word(word);
        }
        self.live[at(self.end / 64)] = (1 << (self.end % 64)) - 1;
    }
}

/// A count of a block's live bits, at most 512.
fn low16(count: u32) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
