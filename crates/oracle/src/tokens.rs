//! A set of points in time with fast search for the latest point at or before a given time: a tree of bitmaps, 64-way.

use crate::flat;
use crate::number::{at, narrow};

/// Number of levels of the tree. With six, the highest level is a single word for all times below 2^32.
const LEVELS: usize = 6;
const _: () = assert!(6 * LEVELS >= 32, "a level is 64-way");

/// A set of points in time below 2^32, as bitmaps. They grow only when a later point is added.
#[derive(Debug)]
pub(crate) struct Tokens {
    levels: [Vec<u64>; LEVELS],
}

impl Default for Tokens {
    fn default() -> Self {
        Self::new()
    }
}

impl Tokens {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self {
            levels: std::array::from_fn(|_| vec![0; 1]),
        }
    }

    /// Empties the set and allocates bits for `points` points.
    pub fn reset(&mut self, points: usize) {
        let mut words = points.div_ceil(64).max(1);
        for level in &mut self.levels {
            level.clear();
            level.resize(words, 0);
            words = words.div_ceil(64);
        }
    }

    /// Adds a point in time, which may be later than all others.
    #[inline]
    pub fn insert(&mut self, time: u32) {
        if at(time >> 6) >= self.levels[0].len() {
            self.grow(time);
        }
        let mut index = time;
        for level in &mut self.levels {
            let word = &mut level[at(index >> 6)];
            let was = *word;
            *word |= 1 << (index & 63);
            if was != 0 {
                return;
            }
            index >>= 6;
        }
    }

    #[cold]
    fn grow(&mut self, time: u32) {
        let mut words = (at(time >> 6) + 1).max(self.levels[0].len() * 2);
        for level in &mut self.levels {
            level.resize(words.max(level.len()), 0);
            words = words.div_ceil(64);
        }
    }

    /// Removes a point in time, which must be in the set.
    #[inline]
    pub fn remove(&mut self, time: u32) {
        let mut index = time;
        for level in &mut self.levels {
            let word = &mut level[at(index >> 6)];
            *word &= !(1 << (index & 63));
            if *word != 0 {
                return;
            }
            index >>= 6;
        }
    }

    /// Replaces the contents of the set by the bitmap `points`, which has one bit for each point in time.
    pub fn load(&mut self, points: &[u64]) {
        self.reset(points.len() * 64);
        self.levels[0].copy_from_slice(points);
        for upper in 1..LEVELS {
            let (below, above) = self.levels.split_at_mut(upper);
            for (some, word) in below[upper - 1].chunks(64).zip(&mut above[0]) {
                let bit = |bits, word: &u64| bits << 1 | u64::from(*word != 0);
                *word = some.iter().rev().fold(0, bit);
            }
        }
    }

    /// If `removed` is true, removes and returns the latest point at or before `until`, which must exist. Otherwise
    /// changes nothing, and the result must not be used. Has few branches, because most words stay non-zero.
    #[expect(
        clippy::inline_always,
        reason = "it has to be compiled with the caller's processor features"
    )]
    #[inline(always)]
    pub fn remove_latest(&mut self, until: u32, removed: bool) -> u32 {
        let word = &mut self.levels[0][at(until >> 6)];
        let early = *word & (u64::MAX >> (!until & 63));
        let place = early.checked_ilog2().unwrap_or(0);
        let left = *word & !(u64::from(removed) << place);
        // The word has no point at or before `until`, or only that point.
        if removed && (early == 0 || left == 0) {
            let found = if early == 0 {
                self.latest_above(until >> 6).unwrap_or(0)
            } else {
                until & !63 | place
            };
            self.remove(found);
            return found;
        }
        *word = left;
        until & !63 | place
    }

    /// Returns the first point at or after `time`, or `None` if there is none.
    pub fn first(&self, time: u32) -> Option<u32> {
        let later = self.levels[0].iter().enumerate().skip(at(time >> 6));
        let mut within = u64::MAX << (time & 63);
        for (place, word) in later {
            let bits = word & within;
            if bits != 0 {
                return Some(narrow(place) * 64 + bits.trailing_zeros());
            }
            within = u64::MAX;
        }
        None
    }

    /// Prefetches the bits around `time`.
    #[inline]
    pub fn prefetch(&self, time: u32) {
        flat::prefetch(&self.levels[0], time >> 6);
    }

    /// Returns the latest point at or before `time`, or `None` if there is none.
    #[inline]
    pub fn latest(&self, time: u32) -> Option<u32> {
        let last = self.levels[0].len() * 64 - 1;
        let time = if at(time) > last { narrow(last) } else { time };
        let word = self.levels[0][at(time >> 6)] & (u64::MAX >> (63 - (time & 63)));
        if word != 0 {
            return Some((time & !63) + 63 - word.leading_zeros());
        }
        self.latest_above(time >> 6)
    }

    /// Returns the latest point in the words before word number `index`, or `None` if there is none. Searches the
    /// levels above.
    fn latest_above(&self, mut index: u32) -> Option<u32> {
        for level in 1..LEVELS {
            // Bits strictly before `index` within its word.
            let below = (1_u64 << (index & 63)) - 1;
            let word = self.levels[level][at(index >> 6)] & below;
            if word != 0 {
                let mut found = (index & !63) + 63 - word.leading_zeros();
                for lower in (0..level).rev() {
                    let bits = self.levels[lower][at(found)];
                    found = found * 64 + 63 - bits.leading_zeros();
                }
                return Some(found);
            }
            index >>= 6;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_set_that_grows_a_point_at_a_time_keeps_them_all() {
        let mut tokens = Tokens::new();
        for time in 0..300_000 {
            tokens.insert(time);
            assert_eq!(tokens.latest(time), Some(time));
        }
        for time in 1..300_000 {
            tokens.remove(time);
        }
        assert_eq!(tokens.latest(u32::MAX), Some(0));
    }

    #[test]
    fn the_latest_point_is_that_of_an_ordered_set() {
        let mut rng = pagetide_reference::Rng::new(2);
        for range in [3, 70, 5000, 1 << 20] {
            let mut tokens = Tokens::new();
            let mut model = BTreeSet::new();
            for _ in 0..30_000 {
                let time = rng.below_u32(range);
                if model.remove(&time) {
                    tokens.remove(time);
                } else {
                    model.insert(time);
                    tokens.insert(time);
                }
                let asked = rng.below_u32(range);
                assert_eq!(
                    tokens.latest(asked),
                    model.range(..=asked).next_back().copied()
                );
            }
        }
    }
}
