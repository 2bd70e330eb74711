//! Renumbers a sparse set of times from 0 without gaps.

use crate::number::{at, narrow};

/// A set of times with the rank of each.
#[derive(Debug, Default)]
pub(in crate::curve) struct Ranks {
    words: Vec<u64>,
    /// For each word of the bitmap, the number of times in the set before the word.
    before: Vec<u32>,
}

impl Ranks {
    /// Empties the set and allocates bits for times below `end`.
    pub fn reset(&mut self, end: usize) {
        self.words.clear();
        self.words.resize(end / 64 + 1, 0);
    }

    /// Returns the set as a bitmap, one bit for each time.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Adds a time to the set.
    #[inline]
    pub fn insert(&mut self, time: u32) {
        self.words[at(time >> 6)] |= 1 << (time & 63);
    }

    /// Computes the ranks and returns the number of times in the set. Must be called before [`of`](Self::of).
    pub fn count(&mut self) -> u32 {
        self.before.clear();
        let mut sum = 0;
        for word in &self.words {
            self.before.push(sum);
            sum += word.count_ones();
        }
        sum
    }

    /// Returns the number of times in the set that are earlier than `time`, which must be at most the end.
    #[inline]
    pub fn of(&self, time: u32) -> u32 {
        let earlier = self.words[at(time >> 6)] & ((1 << (time & 63)) - 1);
        self.before[at(time >> 6)] + earlier.count_ones()
    }

    /// Calls `take` with each time of the set in ascending order.
    pub fn each(&self, mut take: impl FnMut(u32)) {
        for (place, &word) in self.words.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                take(narrow(place * 64) + left.trailing_zeros());
                left &= left - 1;
            }
        }
    }
}
